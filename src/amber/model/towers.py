"""Two causal networks that predict every token from its left and from its right (Electric)."""

from dataclasses import asdict
from pathlib import Path
from typing import Final

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from amber import __version__
from amber.config import update
from amber.errors import UserError
from amber.model.config import EncoderConfig
from amber.model.embeddings import Embeddings, layer_norm
from amber.model.encoder import Encoder
from amber.model.files import place_folder, read_folder
from amber.model.folder import load_plain, plain_weights
from amber.tokens.tokenizer import load_tokenizer

MODEL_TYPE: Final = "amber-two-towers"


class TwoTowers(nn.Module):
    """The noise model of Electric (Clark et al. 2020b): q(x_t given all other tokens) in one pass.

    One tower reads from the left and one from the right; the state of the first at t - 1 and that
    of the second at t + 1 have seen all tokens but x_t. Joined, they go through a dense layer,
    GELU and LayerNorm to the token table.
    """

    def __init__(self, config: EncoderConfig, embeddings: Embeddings) -> None:
        """Build both towers over one set of tables.

        Args:
            config: shape of each tower.
            embeddings: tables of both, which another network may share.
        """
        super().__init__()
        self.left = Encoder(config, embeddings, direction="left")
        self.right = Encoder(config, embeddings, direction="right")
        has_bias = config.body == "bert"
        self.dense = nn.Linear(2 * config.hidden_size, config.embedding_size, bias=has_bias)
        self.norm = layer_norm(config, config.embedding_size)
        self.bias = nn.Parameter(self.dense.weight.new_zeros(config.vocab_size))

    def forward(
        self,
        input_ids: Int[Tensor, "B T"],
        attention_mask: Bool[Tensor, "B T"] | None,
        token_type_ids: Int[Tensor, "B T"] | None,
        is_ordinary: Bool[Tensor, "B T"],
    ) -> Float[Tensor, "N V"]:
        """Score the vocabulary at every ordinary token, in the order of rows and positions.

        Args:
            input_ids: the text, nothing hidden.
            attention_mask: True for real tokens; None when all are.
            token_type_ids: segments.
            is_ordinary: the N tokens that are predicted; never the first or the last of a row,
                since [CLS] and [SEP] stand there.
        """
        before = self.left(input_ids, attention_mask, token_type_ids)
        after = self.right(input_ids, attention_mask, token_type_ids)
        row, at = is_ordinary.nonzero(as_tuple=True)
        states = torch.cat([before[row, at - 1], after[row, at + 1]], dim=-1)  # (N, 2 D)
        x = self.norm(F.gelu(self.dense(states)))
        return F.linear(x, self.left.embeddings.table, self.bias)


def save_towers(folder: Path, towers: TwoTowers, *, tokenizer_dir: Path, card: str) -> None:
    """Write both towers to a folder, which only amber reads: `transformers` has no such class.

    Args:
        folder: replaced if it exists.
        towers: in any precision; written as float32.
        tokenizer_dir: a tokenizer, written again.
        card: content of README.md.
    """
    shape = towers.left.config
    settings = {"model_type": MODEL_TYPE, "amber": {"version": __version__}, "shape": asdict(shape)}
    files = {"model.safetensors": plain_weights(towers)}
    place_folder(folder, files, settings, load_tokenizer(tokenizer_dir), shape, card)


def load_towers(folder: Path) -> TwoTowers:
    """Read both towers.

    Raises:
        UserError: a file is missing or damaged, or the folder holds another kind of model.
    """
    settings, _, path = read_folder(folder)
    if settings.get("model_type") != MODEL_TYPE:
        raise UserError(f"{folder}: holds no pair of towers: give the folder that pretrain wrote")
    where = f"{folder / 'config.json'}"
    shape = update(EncoderConfig(), settings.get("shape", {}), where=where)
    towers = TwoTowers(shape, Embeddings(shape))
    load_plain(path, towers)
    return towers
