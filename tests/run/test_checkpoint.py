"""A checkpoint is whole or passed over; nothing that was good is lost."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from amber.electra.config import GeneratorConfig, Method, generator_shape
from amber.electra.pretraining import PretrainingModel
from amber.errors import UserError
from amber.model.config import EncoderConfig
from amber.optim.config import OptimConfig
from amber.optim.optimizer import build_optimizers
from amber.run import checkpoint
from amber.run.checkpoint import (
    OPTIMIZER,
    STATE,
    WEIGHTS,
    TrainState,
    check,
    list_checkpoints,
    load_newest,
    load_weights,
    save_checkpoint,
)

SHAPE = EncoderConfig(
    vocab_size=20,
    hidden_size=8,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=8,
    embedding_size=8,
)


class Setup:
    """A tiny pair with its optimisers."""

    def __init__(self, seed: int = 0, *, matrices: str = "muon", shape: EncoderConfig = SHAPE):
        self.model = PretrainingModel(
            shape,
            generator_shape(shape, GeneratorConfig(depth_fraction=0.5)),
            Method(),
            forbidden_ids=torch.arange(4),
            ordinary_ids=torch.arange(5, 20),
            seed=seed,
        )
        self.optimizers = build_optimizers(self.model, OptimConfig(matrices=matrices))

    def take_step(self, gradient: float) -> None:
        """Move all weights."""
        for parameter in self.model.parameters():
            parameter.grad = torch.full_like(parameter, gradient)
        for optimizer in self.optimizers:
            optimizer.step()

    def weights(self) -> dict[str, torch.Tensor]:
        """A copy of all weights."""
        return {name: p.detach().clone() for name, p in self.model.named_parameters()}

    def save(self, folder: Path, step: int, *, keep: int = 2, best: int = -1) -> Path:
        """Take a step that depends on the number, and save."""
        self.take_step(0.01 * step)
        state = TrainState(step=step, tokens=100 * step, seconds=step / 3, best_step=best)
        return save_checkpoint(folder, self.model, self.optimizers, state, keep=keep)


def load(folder: Path) -> tuple[TrainState, Setup, list[str]]:
    """Load the newest sound checkpoint into other weights."""
    notes: list[str] = []
    setup = Setup(seed=1)
    state = load_newest(folder, setup.model, setup.optimizers, warn=notes.append)
    return state, setup, notes


def cut_off(path: Path) -> None:
    """Lose the end of a file."""
    path.write_bytes(path.read_bytes()[:-100])


def change_a_byte(path: Path) -> None:
    """Turn one bit in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def empty(path: Path) -> None:
    """Lose all of a file."""
    path.write_bytes(b"")


def write_foreign(path: Path) -> None:
    """Put something else in its place."""
    path.write_text('["a", 1]')


DAMAGES = [cut_off, change_a_byte, empty, Path.unlink, write_foreign]


def test_everything_comes_back_to_the_last_bit(tmp_path: Path):
    setup = Setup()
    setup.take_step(0.3)
    state = TrainState(
        step=7,
        tokens=5,
        places=6,
        flops=2**70,
        seconds=1 / 3,
        best_loss=0.1 + 0.2,
        best_step=4,
        first_evaluation={"a": 1 / 7},
    )
    save_checkpoint(tmp_path, setup.model, setup.optimizers, state, keep=1)
    found, other, notes = load(tmp_path)
    assert found == state
    assert notes == []
    for one in (setup, other):
        one.take_step(-0.2)  # needs the moments, too
    for name, weight in setup.weights().items():
        assert torch.equal(other.weights()[name], weight), name


def test_a_state_without_a_best_loss_yet_comes_back(tmp_path: Path):
    setup = Setup()
    save_checkpoint(tmp_path, setup.model, setup.optimizers, TrainState(step=1), keep=1)
    assert load(tmp_path)[0] == TrainState(step=1)
    assert load(tmp_path)[0].best_loss == float("inf")


@pytest.mark.parametrize("name", [WEIGHTS, OPTIMIZER, STATE])
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_checkpoint_is_passed_over(
    tmp_path: Path, name: str, damage: Callable[[Path], None]
):
    setup = Setup()
    setup.save(tmp_path, 1)
    weights = setup.weights()
    damage(setup.save(tmp_path, 2) / name)
    state, other, notes = load(tmp_path)
    assert (state.step, state.tokens) == (1, 100)
    assert len(notes) == 1
    assert notes[0].startswith(f"passed over: {tmp_path / 'step-2'}")
    assert all(torch.equal(other.weights()[n], w) for n, w in weights.items())


def test_every_byte_of_the_state_counts(tmp_path: Path):
    path = Setup().save(tmp_path, 12) / STATE
    text = path.read_text()
    path.write_text(text.replace('"tokens": 1200', '"tokens": 1201'))
    assert path.read_text() != text
    with pytest.raises(UserError, match=r"step-12/state.json: is changed$"):
        check(path.parent)


@pytest.mark.parametrize("content", ["{}", "5", "null", '{"sha256": 1}', "[]", "{", "\x00"])
def test_a_foreign_state_is_passed_over(tmp_path: Path, content: str):
    setup = Setup()
    setup.save(tmp_path, 1)
    (setup.save(tmp_path, 2) / STATE).write_text(content)
    state, _, notes = load(tmp_path)
    assert state.step == 1
    assert len(notes) == 1


def test_a_state_of_another_version_is_passed_over(tmp_path: Path):
    setup = Setup()
    setup.save(tmp_path, 1)
    path = setup.save(tmp_path, 2) / STATE
    content = json.loads(path.read_text())
    content["state"]["more"] = 3
    del content["sha256"]
    content["sha256"] = checkpoint._digest(content)
    path.write_text(json.dumps(content))
    state, _, notes = load(tmp_path)
    assert state.step == 1
    assert "another version" in notes[0]


def test_a_state_that_vouches_for_no_file_is_passed_over(tmp_path: Path):
    setup = Setup()
    setup.save(tmp_path, 1)
    path = setup.save(tmp_path, 2) / STATE
    content = json.loads(path.read_text())
    content["files"] = {}
    del content["sha256"]
    content["sha256"] = checkpoint._digest(content)
    path.write_text(json.dumps(content))
    assert load(tmp_path)[0].step == 1


def test_a_renamed_checkpoint_is_passed_over(tmp_path: Path):
    setup = Setup()
    setup.save(tmp_path, 1)
    (tmp_path / "step-1").rename(tmp_path / "step-9")
    setup.save(tmp_path, 2, keep=9)
    shutil.copytree(tmp_path / "step-2", tmp_path / "step-30")
    state, _, notes = load(tmp_path)
    assert state.step == 2
    assert "holds step 2" in notes[0]


def test_unfinished_and_odd_folders_are_no_checkpoints(tmp_path: Path):
    setup = Setup()
    setup.save(tmp_path, 3)
    for name in (".step-5.unfinished", "step-", "step-x", "step-1.5", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "step-8").write_text("a file")
    assert list_checkpoints(tmp_path) == [3]
    assert load(tmp_path)[0].step == 3
    assert list_checkpoints(tmp_path / "none") == []


def test_leftovers_of_a_kill_are_removed_by_the_next_save(tmp_path: Path):
    for step in (5, 7):
        (tmp_path / f".step-{step}.unfinished").mkdir()
        (tmp_path / f".step-{step}.unfinished" / WEIGHTS).write_text("half")
    setup = Setup()
    setup.save(tmp_path, 5)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-5"]
    assert load(tmp_path)[0].step == 5


def test_nothing_sound_at_all_is_refused(tmp_path: Path):
    with pytest.raises(UserError, match="no sound checkpoint to resume from"):
        load(tmp_path)
    cut_off(Setup().save(tmp_path, 1) / WEIGHTS)
    with pytest.raises(UserError, match="no sound checkpoint to resume from"):
        load(tmp_path)


def test_the_newest_are_kept_and_the_best(tmp_path: Path):
    setup = Setup()
    for step, best in ((2, 2), (4, 2), (6, 2), (8, 2), (10, 10), (12, 10)):
        setup.save(tmp_path, step, keep=2, best=best)
        newest = [step, step - 2] if step > 2 else [step]
        assert list_checkpoints(tmp_path) == sorted({*newest, best}, reverse=True)


def test_a_checkpoint_that_was_passed_over_does_not_push_out_good_ones(tmp_path: Path):
    setup = Setup()
    setup.save(tmp_path, 10)
    cut_off(setup.save(tmp_path, 20) / WEIGHTS)
    setup.save(tmp_path, 15, keep=2)  # resumed from 10
    assert list_checkpoints(tmp_path) == [15, 10]
    setup.save(tmp_path, 16, keep=1)
    assert list_checkpoints(tmp_path) == [16]


def test_the_same_step_is_written_again(tmp_path: Path):
    setup = Setup()
    setup.save(tmp_path, 3)
    setup.save(tmp_path, 3)
    _, other, _ = load(tmp_path)
    assert all(torch.equal(other.weights()[n], w) for n, w in setup.weights().items())


@pytest.mark.parametrize("name", ["save_file", "_describe", "_sync"])
@pytest.mark.parametrize("kind", [OSError, RuntimeError])
def test_a_full_disk_leaves_the_earlier_ones_and_no_leftover(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, kind: type
):
    setup = Setup()
    setup.save(tmp_path, 1)

    def fail(*args: object) -> None:
        raise kind("No space left on device")

    monkeypatch.setattr(checkpoint, name, fail)
    with pytest.raises(UserError, match=r"step-2: .*No space left on device.*free some space"):
        setup.save(tmp_path, 2, keep=1)
    monkeypatch.undo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-1"]
    assert load(tmp_path)[0].step == 1


def test_a_save_is_invisible_until_it_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    setup = Setup()
    setup.save(tmp_path, 1)
    seen, sync = [], checkpoint._sync

    def look(path: Path) -> None:
        seen.append((path.name, list_checkpoints(tmp_path)))
        sync(path)

    monkeypatch.setattr(checkpoint, "_sync", look)
    setup.save(tmp_path, 2)
    before = [(name, [1]) for name in (WEIGHTS, OPTIMIZER, STATE, ".step-2.unfinished")]
    assert seen == [*before, (tmp_path.name, [2, 1])]


def test_shared_tables_are_saved_once_and_are_one_tensor_after_loading(tmp_path: Path):
    setup = Setup()
    path = setup.save(tmp_path, 1)
    from_disk = checkpoint.load_file(path / WEIGHTS)
    assert "encoder.embeddings.token.weight" in from_disk
    assert not any("generator.embeddings" in name for name in from_disk)
    _, other, _ = load(tmp_path)
    encoder, generator = other.model.encoder, other.model.generator
    assert encoder.embeddings.table.data_ptr() == generator.embeddings.table.data_ptr()
    before = encoder.embeddings.table.detach().clone()
    other.take_step(0.5)
    assert not torch.equal(encoder.embeddings.table, before)
    assert torch.equal(encoder.embeddings.table, generator.embeddings.table)


def test_another_shape_is_refused(tmp_path: Path):
    path = Setup().save(tmp_path, 1) / WEIGHTS
    wide = Setup(shape=replace(SHAPE, intermediate_size=16))
    with pytest.raises(UserError, match=r"up.weight has shape \(16, 8\), the model \(32, 8\)"):
        load_weights(path, wide.model)
    deep = Setup(shape=replace(SHAPE, num_hidden_layers=3))
    with pytest.raises(UserError, match=r"another network; differing weights: encoder.layers.2"):
        load_weights(path, deep.model)


def test_other_optimisers_are_refused(tmp_path: Path):
    setup = Setup(matrices="adamw")
    setup.save(tmp_path, 1)
    with pytest.raises(UserError, match="no sound checkpoint"):
        load(tmp_path)
    other = Setup(matrices="muon")
    notes: list[str] = []
    with pytest.raises(UserError):
        load_newest(tmp_path, other.model, other.optimizers, warn=notes.append)
    assert "made with other optimisers" in notes[0]
