"""How the text is fed to training."""

from dataclasses import dataclass

from amber.errors import UserError


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchConfig:
    """The sequences of one optimiser step."""

    size: int = 128
    """Sequences per optimiser step, over all processes and micro-batches."""

    micro_size: int = 0
    """Sequences per forward pass in one process; 0 = all of the process's share at once."""

    length: int = 128
    """Tokens per sequence, [CLS] and [SEP] included."""

    pair_fraction: float = 0.0
    """Share of documents laid out as `[CLS] a [SEP] b [SEP]` with two token types."""

    num_workers: int = 1
    """Threads that prepare coming batches; 0 = none. Changes nothing that is trained on."""

    def __post_init__(self) -> None:
        """Refuse impossible values.

        Raises:
            UserError: with the name of the setting.
        """
        if self.size < 1:
            raise UserError(f"batch.size must be at least 1, got {self.size}")
        if self.micro_size < 0:
            raise UserError(f"batch.micro_size must be at least 0, got {self.micro_size}")
        if self.length < 8:
            raise UserError(f"batch.length must be at least 8 tokens, got {self.length}")
        if not 0 <= self.pair_fraction <= 1:
            raise UserError(f"batch.pair_fraction must be in [0, 1], got {self.pair_fraction}")
        if self.num_workers < 0:
            raise UserError(f"batch.num_workers must be at least 0, got {self.num_workers}")
