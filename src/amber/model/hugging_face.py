"""Names and settings of `transformers` for our networks: pure translation, no files."""

from typing import Any, Literal

from amber import __version__
from amber.config import update
from amber.errors import UserError
from amber.model.config import EncoderConfig

BERT_NAMES = {
    "embeddings.token": "embeddings.word_embeddings",
    "embeddings.position": "embeddings.position_embeddings",
    "embeddings.token_type": "embeddings.token_type_embeddings",
    "embeddings.norm": "embeddings.LayerNorm",
    "embeddings_project": "embeddings_project",
    "layers": "encoder.layer",
    "qkv": "attention.self.{query,key,value}",
    "attention_output": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "up": "intermediate.dense",
    "down": "output.dense",
    "feed_forward_norm": "output.LayerNorm",
}
MODERN_NAMES = {
    "embeddings.token": "embeddings.tok_embeddings",
    "embeddings.norm": "embeddings.norm",
    "layers": "layers",
    "qkv": "attn.Wqkv",
    "attention_output": "attn.Wo",
    "attention_norm": "attn_norm",
    "up": "mlp.Wi",
    "down": "mlp.Wo",
    "feed_forward_norm": "mlp_norm",
    "final_norm": "final_norm",
}
ENCODER_NAMES = {"electra": BERT_NAMES, "bert": BERT_NAMES, "modernbert": MODERN_NAMES}
ENCODER_PREFIX = {"electra": "electra.", "bert": "bert.", "modernbert": "model."}

MLM_NAMES = {
    "electra": {
        "dense": "generator_predictions.dense",
        "norm": "generator_predictions.LayerNorm",
        "": "generator_lm_head",
    },
    "bert": {
        "dense": "cls.predictions.transform.dense",
        "norm": "cls.predictions.transform.LayerNorm",
        "": "cls.predictions",
    },
    "modernbert": {"dense": "head.dense", "norm": "head.norm", "": "decoder"},
}
RTD_NAMES = {
    "electra": {
        "dense": "discriminator_predictions.dense",
        "classifier": "discriminator_predictions.dense_prediction",
    },
    "bert": {},
    "modernbert": {"dense": "head.dense", "norm": "head.norm", "classifier": "classifier"},
}
RTD_LABELS = {"0": "original", "1": "replaced"}
ENERGY_LABELS = {"0": "zero", "1": "energy"}
Meaning = Literal["replaced", "energy"]
"""What the one score per token of a binary head means: the logit of replaced, or an energy."""

TIED_DECODER = {
    "electra": "generator_lm_head.weight",
    "bert": "cls.predictions.decoder.weight",
    "modernbert": "decoder.weight",
}
"""Where a file may repeat the token table as the output layer."""


def weight_names(model_type: str, name: str, table: dict[str, str]) -> list[str]:
    """Translate the name of one of our weights.

    Args:
        model_type: of `transformers`: electra, bert or modernbert.
        name: as in our `state_dict`, for example `layers.3.qkv.weight`.
        table: of the encoder or of a head.

    Returns:
        The name in the file; three for a bert body's fused queries, keys and values.
    """
    path, _, kind = name.rpartition(".")
    if path.startswith("layers."):
        _, index, part = path.split(".")
        path = f"{table['layers']}.{index}.{table[part]}"
    else:
        path = table[path]
    before, brace, inside = path.partition("{")
    parts = inside.rstrip("}").split(",") if brace else [""]
    prefix = ENCODER_PREFIX[model_type] if table is ENCODER_NAMES[model_type] else ""
    return [f"{prefix}{before}{part}.{kind}" for part in parts]


def to_settings(
    config: EncoderConfig,
    *,
    architecture: str,
    special: dict[str, int],
    meaning: Meaning = "replaced",
) -> dict[str, Any]:
    """Write a shape as the content of config.json.

    Args:
        config: the shape.
        meaning: of a binary head's score.
        architecture: the class of `transformers` that the folder is for.
        special: ids of `pad`, `cls` and `sep`.
    """
    shared = {
        "architectures": [architecture],
        "dtype": "float32",
        "vocab_size": config.vocab_size,
        "hidden_size": config.hidden_size,
        "num_hidden_layers": config.num_hidden_layers,
        "num_attention_heads": config.num_attention_heads,
        "intermediate_size": config.intermediate_size,
        "max_position_embeddings": config.max_position_embeddings,
        "initializer_range": config.initial_std,
        "pad_token_id": special["pad"],
        "tie_word_embeddings": True,
        "amber": {
            "version": __version__,
            "initial_std": config.initial_std,
            "initial_scale": config.initial_scale,
            **({"score": meaning} if meaning != "replaced" else {}),
        },
    }
    if config.body == "bert":
        return shared | {
            "model_type": "electra",
            "embedding_size": config.embedding_size,
            "type_vocab_size": config.type_vocab_size,
            "hidden_act": "gelu",
            "hidden_dropout_prob": config.hidden_dropout,
            "attention_probs_dropout_prob": config.attention_dropout,
            "layer_norm_eps": config.norm_eps,
        }
    rope = {"rope_type": "default", "rope_theta": config.rope_theta}
    settings = shared | {
        "model_type": "modernbert",
        "hidden_activation": "gelu",
        "classifier_activation": "gelu",
        "embedding_dropout": config.hidden_dropout,
        "mlp_dropout": config.hidden_dropout,
        "attention_dropout": config.attention_dropout,
        "norm_eps": config.norm_eps,
        "attention_bias": False,
        "mlp_bias": False,
        "norm_bias": False,
        "classifier_bias": False,
        "classifier_pooling": "mean",  # docs/decisions has the figures
        "decoder_bias": True,
        "layer_types": ["full_attention"] * config.num_hidden_layers,
        "global_attn_every_n_layers": 1,
        "rope_parameters": {"full_attention": rope, "sliding_attention": rope},
        "global_rope_theta": config.rope_theta,  # this and the next: transformers 4
        "local_rope_theta": config.rope_theta,
        "bos_token_id": special["cls"],
        "cls_token_id": special["cls"],
        "eos_token_id": special["sep"],
        "sep_token_id": special["sep"],
    }
    if architecture == "ModernBertForTokenClassification":
        labels = RTD_LABELS if meaning == "replaced" else ENERGY_LABELS
        settings["id2label"] = labels
        settings["label2id"] = {label: int(i) for i, label in labels.items()}
    return settings


def from_settings(settings: dict[str, Any], *, where: str) -> EncoderConfig:
    """Read a shape from the content of config.json.

    Args:
        settings: of an ELECTRA, BERT or ModernBERT model.
        where: the file, for messages.

    Raises:
        UserError: a kind of model, or an option of one, that our networks do not have.
    """
    model_type = settings.get("model_type")
    if model_type not in ENCODER_NAMES:
        raise UserError(
            f"{where}: model_type is {model_type!r}: only electra, bert and modernbert can be read"
        )
    if model_type == "modernbert":
        refuse_modern_options(settings, where=where)
    else:
        require(settings, "hidden_act", "gelu", where=where)
        require(settings, "position_embedding_type", "absolute", where=where)
        require(settings, "is_decoder", False, where=where)
    require(settings, "tie_word_embeddings", True, where=where)
    values = (modern_values if model_type == "modernbert" else bert_values)(settings)
    extras = settings.get("amber", {})
    values["initial_scale"] = extras.get("initial_scale", 0.0)
    values["initial_std"] = extras.get("initial_std", settings.get("initializer_range", 0.02))
    for name in ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads"):
        values[name] = need(settings, name, where=where)
    values["intermediate_size"] = need(settings, "intermediate_size", where=where)
    values.setdefault("embedding_size", values["hidden_size"])
    return update(EncoderConfig(), values, where=where)


def bert_values(settings: dict[str, Any]) -> dict[str, Any]:
    """Read what ELECTRA and BERT have and ModernBERT lacks."""
    values = {
        "body": "bert",
        "max_position_embeddings": settings.get("max_position_embeddings", 512),
        "type_vocab_size": settings.get("type_vocab_size", 2),
        "hidden_dropout": settings.get("hidden_dropout_prob", 0.1),
        "attention_dropout": settings.get("attention_probs_dropout_prob", 0.1),
        "norm_eps": settings.get("layer_norm_eps", 1e-12),
    }
    if settings["model_type"] == "electra":
        values["embedding_size"] = settings.get("embedding_size", 128)
    return values


def modern_values(settings: dict[str, Any]) -> dict[str, Any]:
    """Read what ModernBERT calls otherwise."""
    rope = (settings.get("rope_parameters") or {}).get("full_attention") or {}
    theta = rope.get("rope_theta", settings.get("global_rope_theta", 160_000.0))
    return {
        "body": "modern",
        "max_position_embeddings": settings.get("max_position_embeddings", 8192),
        "type_vocab_size": 0,
        "hidden_dropout": settings.get("embedding_dropout", 0.0),
        "attention_dropout": settings.get("attention_dropout", 0.0),
        "norm_eps": settings.get("norm_eps", 1e-5),
        "rope_theta": theta,
    }


def refuse_modern_options(settings: dict[str, Any], *, where: str) -> None:
    """Refuse a ModernBERT that differs from our modern body.

    Raises:
        UserError: local attention, biases, another activation or another kind of rotary positions.
    """
    num_layers = need(settings, "num_hidden_layers", where=where)
    every = settings.get("global_attn_every_n_layers", 3)
    assumed = ["sliding_attention" if i % every else "full_attention" for i in range(num_layers)]
    if "sliding_attention" in (settings.get("layer_types") or assumed):
        raise UserError(
            f"{where}: layers with local attention, which amber does not have: choose a ModernBERT "
            "with global attention in every layer (global_attn_every_n_layers = 1)"
        )
    for name in ("attention_bias", "mlp_bias", "norm_bias", "classifier_bias"):
        require(settings, name, False, where=where)
    require(settings, "decoder_bias", True, where=where)
    require(settings, "hidden_activation", "gelu", where=where)
    require(settings, "classifier_activation", "gelu", where=where)
    rope = (settings.get("rope_parameters") or {}).get("full_attention") or {}
    require(rope, "rope_type", "default", where=where)


def need(settings: dict[str, Any], name: str, *, where: str) -> Any:
    """Take a setting that must be there.

    Raises:
        UserError: it is absent.
    """
    if name not in settings:
        raise UserError(f"{where}: {name} is missing: the file is not a whole model configuration")
    return settings[name]


def require(settings: dict[str, Any], name: str, accepted: object, *, where: str) -> None:
    """Accept a setting that is absent or has its usual value.

    Raises:
        UserError: any other value.
    """
    if settings.get(name, accepted) != accepted:
        raise UserError(
            f"{where}: {name} is {settings[name]!r}: amber's networks have {accepted!r} only"
        )
