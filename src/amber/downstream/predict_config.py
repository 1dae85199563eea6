"""The settings of `amber predict`; nothing here imports torch."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from amber.errors import UserError
from amber.tasks.config import DataColumns

SUFFIXES: Final = (".jsonl", ".tsv")
LABEL_COLUMNS: Final = ("label", "tags", "answers", "separator")
"""Of columns that are not read for a prediction."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PredictConfig:
    """Label texts, tag words or answer questions with a fine-tuned model.

    There is one prediction for each row of the file, in its order. Labels in the file are not read.
    """

    model: Path
    """A folder of `amber finetune` (of all seeds: the median run), or a model folder that was
    fine-tuned for texts, tags or questions, ours or from elsewhere."""

    file: Path
    """Texts in a layout of the task that the model was trained on; TSV, CSV, JSON Lines or Parquet
    with its columns; or, but for pairs and questions, a .txt file with a text on each line.
    Or the task's folder, of which --split is read."""

    out: Path | None = None
    """A .jsonl file, with the probability of every label, or a .tsv file (default: JSON Lines on
    stdout)."""

    submission: Path | None = None
    """Folder for the file that the leaderboard of a named task takes (GLUE, CLUE, SQuAD)."""

    task: str | None = None
    """Name of the task whose files are read, or own (default: that of the training)."""

    split: str | None = None
    """Which file of a folder (test, dev, test_mismatched ...), and which name a submission gets
    (default: test)."""

    batch_size: int = 0
    """Sequences per forward pass; 0 = as many as have a fixed number of tokens."""

    device: Literal["auto", "cpu", "cuda"] = "auto"
    """auto: a GPU where there is one."""

    precision: Literal["auto", "float32", "bf16"] | None = None
    """Of the matrix products (default: as in the training, else auto: bf16 where the chip has
    it)."""

    own: DataColumns = field(default_factory=DataColumns)
    """Columns of the file, where it is not as the files that the model was trained on."""

    def __post_init__(self) -> None:
        """Refuse what cannot be written, and columns that are not read.

        Raises:
            UserError: with the name of the setting.
        """
        if self.batch_size < 0:
            raise UserError(f"batch_size must be at least 0, got {self.batch_size}")
        for name in LABEL_COLUMNS:
            if name in self.own.given():
                raise UserError(f"own.{name} has no effect: labels are not read; leave it out")
        if self.out is None:
            return
        if self.out.suffix not in SUFFIXES:
            raise UserError(f"out is {self.out}: name a file that ends in {' or '.join(SUFFIXES)}")
        if self.out.resolve() == self.file.resolve():
            raise UserError(f"out is {self.out}, the input itself: name another file")
