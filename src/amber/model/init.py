"""Initial weights: the one place that sets them."""

import hashlib
import math

import torch
from torch import Tensor, nn

from amber.model.config import EncoderConfig

OFFICIAL_LAYERS = ("logits", "start", "end_dense", "end", "no_answer_dense", "no_answer")
GLOROT_LAYERS = ("embeddings_project", *OFFICIAL_LAYERS)


@torch.no_grad()
def initialize(module: nn.Module, config: EncoderConfig, *, seed: int) -> None:
    """Set all weights of an encoder, a head, or a model that holds several of them.

    | weights | rule |
    |---|---|
    | tables (`nn.Embedding`) | normal, `config.initial_std`, cut at 2 standard deviations |
    | matrices | the same; with `config.initial_scale` > 0, `initial_scale / sqrt(fan_in)` |
    | `embeddings_project` | Glorot uniform (the official code's framework default) |
    | `classifier`, the one unit | bert: Glorot uniform; modern: normal, `config.initial_std` |
    | `output`, the last layer of a task head as in `transformers` | normal, `config.initial_std` |
    | all layers of the official code's task heads | Glorot uniform, its framework's default |
    | `delta`, the difference to another table | 0 |
    | biases | 0 |
    | LayerNorm weights | 1 |

    Each weight is drawn from its own stream, which depends on nothing but the seed and its name:
    the depth of the generator does not change where the discriminator starts. Initialise both
    through the module that holds them: each alone, a generator of equal width would start as a
    copy of the discriminator's first layers.

    A task head's `output` is small so that the first scores are near 0 and the pre-trained layers
    get small gradients at first: BERT's and ELECTRA's rule in `transformers`, but for the cut.
    ModernBERT's classes use `hidden_size ** -0.5` there.

    Args:
        module: what to fill; shared embeddings are filled once.
        config: gives the body and the scales; of the two networks, the main one's.
        seed: of the run.

    Raises:
        ValueError: a weight for which there is no rule.
    """
    for path, part in module.named_modules():
        for name, weight in part.named_parameters(recurse=False):
            full_name = f"{path}.{name}" if path else name
            rng = torch.Generator().manual_seed(stream_seed(seed, full_name))
            if name == "bias" or path.endswith(".delta"):
                weight.zero_()
            elif isinstance(part, nn.LayerNorm):
                weight.fill_(1.0)
            elif isinstance(part, nn.Embedding):
                weight.copy_(cut_normal(weight, config.initial_std, rng))
            elif isinstance(part, nn.Linear):
                weight.copy_(matrix(weight, path.rsplit(".", 1)[-1], config, rng))
            else:
                raise ValueError(f"no rule for the weight {full_name}")


def matrix(weight: Tensor, layer: str, config: EncoderConfig, rng: torch.Generator) -> Tensor:
    """Draw the weights of a linear layer by its name."""
    fan_out, fan_in = weight.shape
    if layer in GLOROT_LAYERS or (layer == "classifier" and config.body == "bert"):
        bound = math.sqrt(6 / (fan_in + fan_out))
        return torch.empty(weight.shape).uniform_(-bound, bound, generator=rng)
    if layer in ("classifier", "output") or config.initial_scale == 0:
        return cut_normal(weight, config.initial_std, rng)
    return cut_normal(weight, config.initial_scale / math.sqrt(fan_in), rng)


def cut_normal(weight: Tensor, std: float, rng: torch.Generator) -> Tensor:
    """Draw from a normal distribution without what lies beyond 2 standard deviations."""
    values = torch.empty(weight.shape)  # on the CPU: the same bits on every device
    return nn.init.trunc_normal_(values, std=std, a=-2 * std, b=2 * std, generator=rng)


def stream_seed(seed: int, name: str) -> int:
    """Turn a seed and a name into the seed of one random stream."""
    digest = hashlib.sha256(f"{seed}:{name}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
