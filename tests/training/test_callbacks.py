"""Callbacks: every hook, in order; what they may change; early stopping; the progress bar's text."""

from __future__ import annotations

import io
import math
import sys
from typing import Any

import pytest

import tritensor as tt
import tritensor.nn.functional as F
from tests.training.test_trainer import X, Y, linear, pairs, trained
from tritensor.training import Callback, EarlyStopping, ProgressBar, Trainer
from tritensor.training.callbacks import HOOKS
from tritensor.utils import progress


def test_the_order_of_hooks() -> None:
    called: list[str] = []
    notes = type("Notes", (Callback,), {name: lambda self, trainer, *given, name=name: called.append(name) for name in HOOKS})
    trained(pairs(6, 6), epochs=1, accumulate=2, callbacks=[notes()], validation=pairs(12))
    batch = ["on_batch_start", "on_after_forward", "on_after_backward"]
    assert called == [
        "on_fit_start", "on_epoch_start", *batch, "on_batch_end", *batch, "on_before_optimizer_step", "on_batch_end", "on_validation_start",
        "on_validation_end",
        "on_epoch_end", "on_fit_end",
    ]  # fmt: skip


def test_a_batch_an_output_and_a_loss() -> None:
    """The next callback gets what the one before has made; None leaves it."""

    class Changes(Callback):
        def on_batch_start(self, trainer: Trainer, batch: Any) -> Any:
            return batch[0] * 2, batch[1]

        def on_after_forward(self, trainer: Trainer, outputs: Any, loss: Any) -> Any:
            seen.append((trainer.batch[0], outputs))
            return loss + outputs.pow(2).mean()

    seen: list[Any] = []
    trainer = trained([(X, Y)], epochs=1, callbacks=[Changes(), Callback(), Changes()])
    model, _ = linear()
    outputs = model(4 * X)
    assert tt.equal(seen[1][0], 4 * X)
    assert tt.equal(seen[1][1], outputs)
    assert trainer.losses[0] == pytest.approx((F.mse_loss(outputs, Y) + 2 * outputs.pow(2).mean()).item())


def test_a_gradient_and_a_rate() -> None:
    class Changes(Callback):
        def on_after_backward(self, trainer: Trainer) -> None:
            trainer.model.weight.grad.fill_(2.0)

        def on_before_optimizer_step(self, trainer: Trainer) -> None:
            trainer.model.bias.grad = None
            trainer.optimizer.param_groups[0]["lr"] = 0.25

    model, _ = linear()
    trainer = trained([(X, Y)], epochs=1, callbacks=[Changes()])
    assert tt.equal(trainer.model.weight, model.weight - 0.5)
    assert tt.equal(trainer.model.bias, model.bias)


def test_a_stop() -> None:
    class Stops(Callback):
        def on_batch_end(self, trainer: Trainer) -> None:
            trainer.should_stop = trainer.step == 2

    trainer = trained(pairs(4, 4, 4), callbacks=[Stops()], validation=pairs(12))
    assert (trainer.step, trainer.batch_index) == (2, 2)
    assert [h["step"] for h in trainer.history] == [2]


def test_the_end_is_told_after_an_error_as_well() -> None:
    class Fails(Callback):
        ended = False

        def on_batch_start(self, trainer: Trainer, batch: Any) -> Any:
            raise KeyError("mine")

        def on_fit_end(self, trainer: Trainer) -> None:
            Fails.ended = True

    class Looks(Callback):
        seen: BaseException | None = None

        def on_exception(self, trainer: Trainer, error: BaseException) -> None:
            Looks.seen = error

        def on_fit_end(self, trainer: Trainer) -> None:
            raise OSError("another")

    with pytest.raises(KeyError, match="mine") as caught:
        trained(pairs(12), callbacks=[Looks(), Fails()])
    assert Fails.ended
    assert Looks.seen is caught.value
    assert caught.value.__notes__ == [
        "in on_batch_start of callback Fails, at step 0, batch 0 of epoch 0",
        "and then OSError('another') in on_fit_end of callback Looks, at step 0, batch 0 of epoch 0",
    ]
    with pytest.raises(OSError, match="another"):
        trained(pairs(12), callbacks=[Looks()])


class Values(Callback):
    """Pretends that validation gave these numbers, one after another."""

    def __init__(self, *values: float) -> None:
        self.values = list(values)

    def on_validation_end(self, trainer: Trainer, metrics: dict[str, float]) -> None:
        metrics["val_loss"] = self.values.pop(0)


@pytest.mark.parametrize(
    ("values", "given", "epochs"),
    [
        ((5, 4, 3, 2, 1), {"patience": 1}, 5),
        ((5, 4, 4, 4, 1), {"patience": 2}, 4),
        ((5, 4, 4.5, 3, 3.5), {"patience": 2}, 5),
        ((5, 4.9, 4.8, 4, 1), {"patience": 2, "min_delta": 0.5}, 3),
        ((1, 2, 2, 2, 5), {"patience": 2, "mode": "max"}, 4),
        ((math.nan, math.nan, 1, 1, 1), {"patience": 2}, 2),
    ],
    ids=str,
)
def test_early_stopping(values: tuple[float, ...], given: dict[str, Any], epochs: int) -> None:
    trainer = trained(pairs(12), epochs=5, validation=pairs(12), callbacks=[Values(*values), EarlyStopping(**given)])
    assert trainer.epoch == epochs


def test_early_stopping_by_the_training_loss_or_by_what_is_not_there() -> None:
    assert trained(pairs(12), epochs=9, callbacks=[EarlyStopping("loss", patience=2, min_delta=1e9)]).epoch == 3
    with pytest.raises(KeyError, match=r"EarlyStopping: the run has no metric 'val_loss', it has 'loss', 'lr'; name one, or give fit"):
        trained(pairs(12), callbacks=[EarlyStopping()])
    for given, said in (({"mode": "least"}, "mode is 'least'"), ({"patience": 0}, "patience is 0"), ({"min_delta": -1}, "min_delta is -1")):
        with pytest.raises(ValueError, match=f"EarlyStopping: {said}; give"):
            EarlyStopping(**given)


def test_progress_as_lines(capsys: pytest.CaptureFixture[str]) -> None:
    trainer = trained(pairs(6, 6), epochs=2, progress=True, validation=pairs(12), accumulate=1)
    losses, said = trainer.losses, capsys.readouterr().err.splitlines()
    known = [f"loss {h['loss']:.4f}, val_loss {h['val_loss']:.4f}" for h in trainer.history]
    assert said == [
        f"training: 1 of 4 steps, epoch 1/2, loss {losses[0]:.4f}",
        f"epoch 1, step 2: {known[0]}",
        f"training: 4 of 4 steps, epoch 2/2, loss {losses[3]:.4f}",
        f"epoch 2, step 4: {known[1]}",
    ]
    trained(pairs(12), progress=False)
    assert not capsys.readouterr().err


def test_progress_as_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    trainer = trained(pairs(6, 6), epochs=2, callbacks=[ProgressBar()])
    said = screen.getvalue()
    assert "4/4" in said
    assert f"epoch 2/2, loss {trainer.losses[-1]:.4f}" in said
    assert f"epoch 1, step 2: loss {trainer.history[0]['loss']:.4f}" in said
    assert said.endswith("\n"), "the bar is closed"


def test_a_bar_without_a_total(capsys: pytest.CaptureFixture[str]) -> None:
    bar = progress.Bar("counting", "words")
    bar.step()
    bar.begin("known", 3)
    bar.step()
    bar.step("last")
    bar.close()
    assert capsys.readouterr().err == "counting\ncounting: 1 words\nknown: 3 of 3 words, last\n"
