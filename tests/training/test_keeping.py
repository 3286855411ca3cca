"""Callbacks that keep: the best checkpoints or the last, averages of the weights, curves in tensorboard."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tritensor as tt
import tritensor.nn.functional as F
from tests.training import runs
from tests.training.test_callbacks import Values
from tests.training.test_trainer import DEVICES, X, Y, linear, pairs, trained
from tests.utils.tensorboard.reading import accumulated
from tritensor import optim
from tritensor.training import Callback, ModelCheckpoint, Trainer, WeightAveraging
from tritensor.training.callbacks import TensorBoard
from tritensor.utils.tensorboard import SummaryWriter


def kept(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def test_the_best_is_kept(tmp_path: Path) -> None:
    keep = ModelCheckpoint(monitor="val_loss")
    trainer = trained(
        pairs(12), epochs=4, validation=pairs(12), callbacks=[Values(5, 2, float("nan"), 3), keep], checkpoint=tmp_path, train_metrics={}
    )
    assert kept(tmp_path) == ["best.safetensors", "last.safetensors"]
    best = tt.load(tmp_path / "best.safetensors")
    assert best["run"]["history"][-1]["val_loss"] == 2
    assert best["run"]["step"] == 2
    assert keep.best == tmp_path / "best.safetensors"
    assert not tt.equal(best["model"]["weight"], trainer.model.weight)


def test_several_of_the_best_or_of_the_last(tmp_path: Path) -> None:
    given = {"epochs": 5, "validation": pairs(12)}
    trained(pairs(12), callbacks=[Values(5, 2, 4, 3, 1), ModelCheckpoint(tmp_path / "a", "val_loss", keep=2)], **given)
    assert kept(tmp_path / "a") == ["epoch001-step000002.safetensors", "epoch004-step000005.safetensors"]
    trained(pairs(12), callbacks=[Values(5, 2, 4, 3, 1), ModelCheckpoint(tmp_path / "b", "val_loss", "max", keep=2)], **given)
    assert kept(tmp_path / "b") == ["epoch000-step000001.safetensors", "epoch002-step000003.safetensors"]
    trained(pairs(12), callbacks=[ModelCheckpoint(tmp_path / "c", keep=3)], **given)
    assert kept(tmp_path / "c") == [f"epoch{i:03d}-step{i + 1:06d}.safetensors" for i in (2, 3, 4)]


def test_a_run_goes_on_from_any_that_is_kept(tmp_path: Path) -> None:
    whole = runs.trainer(tmp_path, [ModelCheckpoint(keep=9), ModelCheckpoint(tmp_path / "best", "val_accuracy", "max", keep=9)])
    whole.fit(*runs.loaders())
    for name in [f"epoch{i:03d}-step{(i + 1) * 4:06d}.safetensors" for i in range(3)]:
        for folder in (tmp_path, tmp_path / "best"):
            if (folder / name).exists():
                again = runs.trainer(
                    tmp_path / "again", [ModelCheckpoint(keep=9), ModelCheckpoint(tmp_path / "best", "val_accuracy", "max", 9)]
                )
                again.fit(*runs.loaders(), resume=folder / name)
                assert again.losses == whole.losses
                assert again.history == whole.history
                assert [c.state_dict() for c in again.callbacks] == [c.state_dict() for c in whole.callbacks]


def test_checkpoints_that_cannot_be_kept(tmp_path: Path) -> None:
    for given, said in (({"keep": 0}, "keep is 0"), ({"mode": "best"}, "mode is 'best'")):
        with pytest.raises(ValueError, match=f"ModelCheckpoint: {said}; give"):
            ModelCheckpoint(**given)
    with pytest.raises(ValueError, match="ModelCheckpoint: no folder to save to"):
        trained(pairs(12), callbacks=[ModelCheckpoint()])
    with pytest.raises(KeyError, match="ModelCheckpoint: the run has no metric 'val_f1', it has 'loss', 'lr'"):
        trained(pairs(12), callbacks=[ModelCheckpoint(tmp_path, "val_f1")])


@pytest.mark.parametrize("device", DEVICES)
def test_an_exponential_average_is_validated(device: str) -> None:
    average = WeightAveraging(0.5)
    trainer = trained(pairs(6, 6), device, callbacks=[average], validation=pairs(12))
    model, optimizer = linear(device)
    mean: Any = None
    for x, y in pairs(6, 6) * 2:
        optimizer.zero_grad()
        F.mse_loss(model(x.to(device)), y.to(device)).backward()
        optimizer.step()
        now = model.weight.detach().clone()
        mean = now if mean is None else 0.5 * mean + 0.5 * now
    assert average.averaged is not None
    tt.testing.assert_close(average.averaged.module.weight.detach(), mean)
    tt.testing.assert_close(trainer.model.weight.detach(), model.weight.detach())
    with tt.no_grad():
        expected = F.mse_loss(average.averaged.module(X.to(device)), Y.to(device)).item()
    assert trainer.history[-1]["val_loss"] == pytest.approx(expected, rel=1e-6)


def test_a_plain_average_from_some_step_on() -> None:
    average = WeightAveraging(None, start=2, every=2)
    trained(pairs(3, 3, 3, 3), epochs=2, callbacks=[average])
    assert average.averaged is not None
    assert average.averaged.n_averaged.item() == 3
    for given, said in (({"decay": 1.5}, "decay is 1.5"), ({"every": 0}, "every is 0"), ({"start": -1}, "start is -1")):
        with pytest.raises(ValueError, match=f"WeightAveraging: {said}; give"):
            WeightAveraging(**given)


@pytest.mark.parametrize("device", DEVICES)
def test_curves_in_tensorboard(device: str, tmp_path: Path) -> None:
    """All of them, and no more waits for a GPU than without."""
    waits = []
    for more in ([], [TensorBoard(tmp_path)]):
        model, optimizer = linear(device)
        scheduler = optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
        trainer = Trainer(model, optimizer, F.mse_loss, epochs=2, scheduler=scheduler, clip_norm=1.0, callbacks=more, progress=False,
                          metrics={"error": lambda out, y: (out - y).abs().mean()})  # fmt: skip
        with tt.debug.sync_trace() as trace:
            trainer.fit(pairs(*[1] * 12), pairs(12))
        waits.append(trace.count)
    assert waits[0] == waits[1]
    found = accumulated(tmp_path)
    assert set(found.Tags()["scalars"]) == {"loss/train", "lr", "grad_norm", "loss/epoch", "loss/val", "error/val"}
    assert [(e.step, e.value) for e in found.Scalars("loss/train")] == [(i, np.float32(v)) for i, v in enumerate(trainer.losses, 1)]
    assert [e.value for e in found.Scalars("lr")] == pytest.approx([0.1] * 12 + [0.05] * 12)
    assert [e.value for e in found.Scalars("grad_norm")] == [np.float32(v) for v in trainer.grad_norms]
    assert [(e.step, e.value) for e in found.Scalars("loss/val")] == [(h["step"], np.float32(h["val_loss"])) for h in trainer.history]
    times = [e.wall_time for e in found.Scalars("loss/train")]
    assert times == sorted(times)


def test_histograms_a_writer_of_ones_own_and_every_few_steps(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        trained(pairs(4, 4, 4), callbacks=[TensorBoard(every=2, histograms=True, writer=writer)])
        writer.add_scalar("mine", 1.0)
    found = accumulated(tmp_path)
    assert [e.step for e in found.Scalars("loss/train")] == [2, 4, 6]
    assert {"parameters/weight", "gradients/bias"} <= set(found.Tags()["histograms"])
    assert found.Scalars("mine")


def test_a_run_that_begins_anew_hides_the_one_before(tmp_path: Path) -> None:
    for epochs in (3, 1):
        trained(pairs(12), epochs=epochs, callbacks=[TensorBoard(tmp_path)])
    assert [e.step for e in accumulated(tmp_path).Scalars("loss/train")] == [1]


class Keeps(Callback):
    """Has a state of any kind."""

    def __init__(self, held: Any) -> None:
        self.held = held

    def state_dict(self) -> dict[str, Any]:
        return {"held": self.held}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.held = state["held"]


@pytest.mark.parametrize("held", [object(), np.ones(3), range(3), lambda: 1], ids=["object", "array", "range", "function"])
def test_a_state_that_no_run_could_go_on_from_is_told_when_it_is_saved(held: Any, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"callbacks\.1\.1\.held is "):
        runs.trainer(tmp_path, [Keeps(held)], epochs=1).fit(*runs.loaders())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("held", [{3, 4}, np.float32(2), 1 + 2j, b"ab", 2**100, math.inf, {1: (2, None)}], ids=str)
def test_a_state_of_plain_values_comes_back(held: Any, tmp_path: Path) -> None:
    runs.trainer(tmp_path, [Keeps(held)], epochs=1).fit(*runs.loaders())
    again = Keeps(None)
    runs.trainer(tmp_path, [again], epochs=2).fit(*runs.loaders(), resume=True)
    assert again.held == held
    assert type(again.held) is type(held)
