"""Layer-wise decay of the learning rate: the nearer a layer is to the input, the slower it learns.

Clark et al. 2020, appendix B: each layer's rate is that of the layer above it times the decay, and
the head has the full rate. The official code has one power more everywhere below the head, a
remnant of a pooler that was removed; its published results were made with it.
"""

from typing import Any, Literal

from torch import Tensor, nn
from torch.optim import AdamW

from amber.optim.config import OptimConfig

DecayRule = Literal["paper", "official"]


def layer_rates(num_layers: int, decay: float, rule: DecayRule) -> list[float]:
    """Return the rates of the embeddings, of each layer from below, and of the head.

    Args:
        num_layers: of the encoder.
        decay: from each layer to the one below; 1 = all the same.
        rule: paper: the top layer has decay^1; official: decay^2.

    Returns:
        `num_layers` + 2 numbers, as shares of the head's rate.
    """
    extra = 1 if rule == "official" else 0
    return [decay ** (num_layers + 1 - depth + extra) for depth in range(num_layers + 1)] + [1.0]


def layer_names(num_layers: int) -> list[str]:
    """Name what `layer_rates` gives the rates of."""
    return ["embeddings", *(f"layer {i + 1}" for i in range(num_layers)), "head"]


def depth_of(name: str, num_layers: int) -> int:
    """Return the place in `layer_rates` of a weight of a task network.

    Args:
        name: the projection after the tables belongs to them, the norm after the last layer to it.
        num_layers: of the encoder.

    Raises:
        ValueError: the name is not of a task network.
    """
    part, _, rest = name.partition(".")
    if part == "head":
        return num_layers + 1
    if part == "encoder":
        if rest.startswith(("embeddings.", "embeddings_project.")):
            return 0
        if rest.startswith("final_norm."):
            return num_layers
        if rest.startswith("layers."):
            return int(rest.split(".")[1]) + 1
    raise ValueError(f"no layer is known for the weight {name}")


def build_layered_adamw(
    model: nn.Module, config: OptimConfig, *, num_layers: int, decay: float, rule: DecayRule
) -> AdamW:
    """Build AdamW with a rate for each layer, for `set_rates`.

    Args:
        model: a task network: `encoder` and `head`.
        config: peak rate of the head, and weight decay, which norms and biases are exempt from.
        num_layers: of the encoder.
        decay: as for `layer_rates`.
        rule: as for `layer_rates`.
    """
    rates = layer_rates(num_layers, decay, rule)
    groups: dict[tuple[int, float], list[Tensor]] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            weight_decay = config.weight_decay if parameter.ndim > 1 else 0.0
            key = depth_of(name, num_layers), weight_decay
            groups.setdefault(key, []).append(parameter)
    listed: list[dict[str, Any]] = [
        {"params": parameters, "ratio": rates[depth], "decay": weight_decay}
        for (depth, weight_decay), parameters in groups.items()
    ]
    return AdamW(
        listed,
        lr=config.learning_rate,
        betas=(config.beta1, config.beta2),
        eps=config.eps,
        weight_decay=config.weight_decay,
        fused=True,
    )
