"""What a fine-tuned network is for, and how the config.json of `transformers` says so."""

from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from amber.errors import UserError
from amber.model.hugging_face import ENERGY_LABELS, RTD_LABELS

ModelType = Literal["electra", "bert", "modernbert"]
"""The family of `transformers` that a folder belongs to; the first two have the bert body."""
TaskKind = Literal["classification", "multilabel", "regression", "tagging", "qa"]
HeadStyle = Literal["hugging_face", "official"]
"""`hugging_face`: as the task classes of `transformers`. `official`: as the ELECTRA code, one dense
layer on [CLS] or on each token, and for questions an end that depends on the start."""
Pooling = Literal["cls", "mean"]
"""The one vector of a text: that of [CLS], or the mean over its tokens (modernbert only)."""

FAMILIES: Final[dict[ModelType, str]] = {
    "electra": "Electra",
    "bert": "Bert",
    "modernbert": "ModernBert",
}
CLASSES: Final[dict[TaskKind, str]] = {
    "classification": "ForSequenceClassification",
    "multilabel": "ForSequenceClassification",
    "regression": "ForSequenceClassification",
    "tagging": "ForTokenClassification",
    "qa": "ForQuestionAnswering",
}
PROBLEMS: Final[dict[TaskKind, str]] = {
    "classification": "single_label_classification",
    "multilabel": "multi_label_classification",
    "regression": "regression",
}
MODERN_HEAD: Final = {"dense": "head.dense", "norm": "head.norm", "output": "classifier"}
TEXT_HEADS: Final[dict[ModelType, dict[str, str]]] = {
    "electra": {"dense": "classifier.dense", "output": "classifier.out_proj"},
    "bert": {"dense": "bert.pooler.dense", "output": "classifier"},
    "modernbert": MODERN_HEAD,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskShape:
    """The kind of task and of head on an encoder."""

    model_type: ModelType
    kind: TaskKind
    labels: tuple[str, ...] = ()
    """Names in the order of their numbers; regression and questions have none."""
    head: HeadStyle = "hugging_face"
    dropout: float = 0.1
    """On what the output layer reads. Heads without any ignore it: ELECTRA's and BERT's for
    questions, the official code's for tags and questions."""
    pooling: Pooling = "cls"

    def __post_init__(self) -> None:
        """Refuse what no head can have.

        Raises:
            UserError: labels too few, repeated or without use, or a setting out of range.
        """
        least = {"classification": 2, "multilabel": 1, "tagging": 1}.get(self.kind, 0)
        if len(self.labels) < least or (least == 0 and self.labels):
            wanted = f"at least {least} labels" if least else "no labels"
            raise UserError(f"a head for {self.kind} takes {wanted}, got {len(self.labels)}")
        repeated = sorted({name for name in self.labels if self.labels.count(name) > 1})
        if repeated:
            raise UserError(f"label {repeated[0]!r} is listed more than once: list each one once")
        if not 0 <= self.dropout < 1:
            raise UserError(f"the dropout of the head must be in [0, 1), got {self.dropout}")
        is_modern = self.model_type == "modernbert" and self.head == "hugging_face"
        if self.pooling == "mean" and not (is_modern and self.is_text):
            raise UserError(
                f"pooling = mean has no effect on the {self.head} head of {self.model_type} for "
                f"{self.kind}: leave it out"
            )

    @property
    def is_text(self) -> bool:
        """Whether there is one answer for the whole text, not one per token."""
        return self.kind in PROBLEMS

    @property
    def num_outputs(self) -> int:
        """Scores per text or token: the labels, one number, or start and end."""
        return {"regression": 1, "qa": 2}.get(self.kind, len(self.labels))

    @property
    def has_class(self) -> bool:
        """Whether `transformers` has a class for the whole network."""
        is_plain_tagger = self.kind == "tagging" and self.model_type != "modernbert"
        return self.head == "hugging_face" or is_plain_tagger

    @property
    def architecture(self) -> str:
        """The class of `transformers` that reads the folder; of the encoder alone if need be."""
        return FAMILIES[self.model_type] + (CLASSES[self.kind] if self.has_class else "Model")


def head_names(shape: TaskShape) -> dict[str, str]:
    """Translate the layers of a head that `transformers` has a class for."""
    if shape.is_text:
        return TEXT_HEADS[shape.model_type]
    if shape.model_type == "modernbert":
        return MODERN_HEAD
    layer = "qa_outputs" if shape.kind == "qa" else "classifier"
    return {("logits" if shape.head == "official" else "output"): layer}


def task_settings(
    shape: TaskShape, settings: dict[str, Any], details: dict[str, Any]
) -> dict[str, Any]:
    """Put the task into the content of config.json.

    Args:
        shape: the task and the head.
        settings: of the encoder, as `to_settings` gives them.
        details: kept for amber itself, any JSON values.
    """
    task = {"kind": shape.kind, "head": shape.head, "details": details}
    changed = settings | {
        "architectures": [shape.architecture],
        "model_type": shape.model_type,
        "classifier_dropout": shape.dropout,
        "amber": settings["amber"] | {"task": task},
    }
    if shape.model_type == "bert":
        changed.pop("embedding_size")
    if shape.model_type == "modernbert":
        changed["classifier_pooling"] = shape.pooling
    if shape.kind in PROBLEMS:
        changed["problem_type"] = PROBLEMS[shape.kind]
    if shape.kind != "qa":
        names = shape.labels or ("score",)
        changed["id2label"] = {str(i): name for i, name in enumerate(names)}
        changed["label2id"] = {name: i for i, name in enumerate(names)}
    return changed


def task_shape(settings: dict[str, Any], *, where: str) -> TaskShape:
    """Read the task of a fine-tuned folder, ours or from elsewhere.

    Args:
        settings: content of config.json, of a model type that we have.
        where: the file, for messages.

    Raises:
        UserError: not fine-tuned, or for a kind of task that amber does not have.
    """
    task = (settings.get("amber") or {}).get("task")
    if task is None:
        kind, head = foreign_kind(settings, where=where), "hugging_face"
    else:
        kind, head = task.get("kind"), task.get("head")
    if kind not in get_args(TaskKind) or head not in get_args(HeadStyle):
        raise UserError(
            f"{where}: amber.task has the kind {kind!r} and the head {head!r}, which this version "
            "does not know: use the version that wrote the folder"
        )
    has_names = kind in ("classification", "multilabel", "tagging")
    model_type = settings["model_type"]
    is_pooled = model_type == "modernbert" and kind in PROBLEMS and head == "hugging_face"
    pooling = read_pooling(settings, where=where) if is_pooled else "cls"
    dropout = settings.get("classifier_dropout")
    if dropout is None:
        other = 0.0 if model_type == "modernbert" else 0.1
        dropout = settings.get("hidden_dropout_prob", other)
    if not isinstance(dropout, int | float):
        raise UserError(f"{where}: classifier_dropout is {dropout!r}: write a number in [0, 1)")
    return TaskShape(
        model_type=model_type,
        kind=kind,
        labels=label_names(settings, where=where) if has_names else (),
        head=head,
        dropout=float(dropout),
        pooling=pooling,
    )


def read_pooling(settings: dict[str, Any], *, where: str) -> Pooling:
    """Read how a folder makes one vector of a text; "cls" where it does not say.

    Args:
        settings: content of config.json.
        where: the file, for messages.

    Raises:
        UserError: a way that amber does not have.
    """
    pooling = settings.get("classifier_pooling") or "cls"
    if pooling not in get_args(Pooling):
        raise UserError(
            f"{where}: classifier_pooling is {pooling!r}: amber has "
            f"{' and '.join(get_args(Pooling))}"
        )
    return pooling


def foreign_kind(settings: dict[str, Any], *, where: str) -> TaskKind:
    """Tell the kind of task from the class that a folder was written with.

    Raises:
        UserError: the class is none of the three for tasks.
    """
    architecture = (settings.get("architectures") or [None])[0]
    family = FAMILIES[settings["model_type"]]
    if architecture == f"{family}ForSequenceClassification":
        problem, num_labels = settings.get("problem_type"), len(label_names(settings, where=where))
        if problem is None:
            return "regression" if num_labels == 1 else "classification"
        kinds: dict[str, TaskKind] = {name: kind for kind, name in PROBLEMS.items()}
        if problem in kinds and (problem != "regression" or num_labels == 1):
            return kinds[problem]
        raise UserError(
            f"{where}: problem_type is {problem!r} with {num_labels} labels: amber has "
            f"{', '.join(kinds)}, regression with one number only"
        )
    is_discriminator = (settings.get("id2label") or {}) in (RTD_LABELS, ENERGY_LABELS)
    if architecture == f"{family}ForTokenClassification" and not is_discriminator:
        return "tagging"
    if architecture == f"{family}ForQuestionAnswering":
        return "qa"
    what = "a discriminator" if is_discriminator else f"architectures is {architecture}"
    raise UserError(
        f"{where}: {what}: the folder holds no fine-tuned classifier, tagger or question answerer; "
        "fine-tune it first"
    )


def label_names(settings: dict[str, Any], *, where: str) -> tuple[str, ...]:
    """Read the names of the labels; `transformers` leaves them out when they are its two defaults.

    Raises:
        UserError: the numbers have gaps.
    """
    names = {str(i): str(name) for i, name in (settings.get("id2label") or {}).items()}
    if not names:
        return tuple(f"LABEL_{i}" for i in range(settings.get("num_labels") or 2))
    if set(names) != {str(i) for i in range(len(names))}:
        raise UserError(f"{where}: id2label does not number its {len(names)} labels from 0")
    return tuple(names[str(i)] for i in range(len(names)))
