"""The two networks of a run, and what they share."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from amber.electra.config import Method
from amber.model.config import EncoderConfig
from amber.model.embeddings import Embeddings
from amber.model.encoder import Encoder
from amber.model.towers import TwoTowers


class Networks(NamedTuple):
    """The main encoder, and what proposes replacements: the same one where all is shared."""

    encoder: Encoder
    generator: Encoder | TwoTowers | None


def build_networks(
    encoder: EncoderConfig, generator: EncoderConfig | None, method: Method
) -> Networks:
    """Build the encoders around the tables that `sharing` asks for.

    | sharing | the generator's tables |
    |---|---|
    | embeddings | those of the main encoder: token, position, type, and their LayerNorm |
    | tokens | its token table is the main encoder's; the rest is its own |
    | none | its own |
    | all | the generator is the main encoder |
    | gdes | its own; the main encoder's token table is the generator's plus a difference |

    Args:
        encoder: shape of the main encoder.
        generator: shape of the trained generator, or of each tower; None where there is none.
        method: objective, noise source, algorithm and sharing.
    """
    if generator is None:
        return Networks(Encoder(encoder, Embeddings(encoder)), None)
    sharing = method.sharing if method.is_shared else "none"
    if sharing == "all":
        main = Encoder(encoder, Embeddings(encoder))
        return Networks(main, main)
    theirs = Embeddings(generator)
    if sharing == "embeddings":
        ours = theirs
    elif sharing == "tokens":
        ours = Embeddings(encoder, token=theirs.token)
    elif sharing == "gdes":
        ours = Embeddings(encoder, base=theirs.token)
    else:
        ours = Embeddings(encoder)
    main = Encoder(encoder, ours)
    if method.noise.source == "two_tower":
        return Networks(main, TwoTowers(generator, theirs))
    return Networks(main, Encoder(generator, theirs))


@torch.no_grad()
def copy_weights(source: nn.Module, target: nn.Module) -> None:
    """Copy every weight into the weight of the same name and shape."""
    places = dict(target.named_parameters())
    for name, weight in source.named_parameters():
        places[name].copy_(weight)


@torch.no_grad()
def plain(encoder: Encoder) -> Encoder:
    """Return an encoder with one token table of its own: itself, or a copy with its sum of two."""
    embeddings = encoder.embeddings
    base = embeddings.base[0]
    if base is None:
        return encoder
    result = Encoder(encoder.config, Embeddings(encoder.config)).to(base.weight.device)
    weights = {name: weight.detach() for name, weight in encoder.named_parameters()}
    weights["embeddings.token.weight"] = embeddings.table
    del weights["embeddings.delta.weight"]
    result.load_state_dict(weights)
    return result.train(encoder.training)


@torch.no_grad()
def set_table(embeddings: Embeddings, table: torch.Tensor) -> None:
    """Make the token table equal to a given one.

    Where it is the sum of another table and a difference, a table that was such a sum of the same
    other table comes back to the last bit; any other one as nearly as float32 can, to 1.2e-7 of the
    larger of the two entries.
    """
    base = embeddings.base[0]
    if base is None:
        embeddings.token.weight.copy_(table)
        return
    embeddings.delta.weight.copy_(table - base.weight)


def fixed_scores(
    method: Method,
    vocab_size: int,
    ordinary_ids: Int[Tensor, " N"],
    token_counts: Int[Tensor, " V"] | None,
) -> Float[Tensor, " V"] | None:
    """Return the scores of a noise source that is the same everywhere; None of a network.

    Raises:
        ValueError: unigram without counts.
    """
    if method.objective == "mlm" or method.has_network:
        return None
    if method.noise.source == "uniform":
        scores = torch.full((vocab_size,), -torch.inf, device=ordinary_ids.device)
        return scores.index_fill(0, ordinary_ids, 0.0)
    if token_counts is None:
        raise ValueError("the noise source unigram needs token_counts")
    counts = F.pad(token_counts, (0, vocab_size - len(token_counts)))  # rows without a token
    return counts.double().log().float().to(ordinary_ids.device)
