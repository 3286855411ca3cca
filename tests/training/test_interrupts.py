"""Ctrl-C and SIGTERM end a run behind a step, with a checkpoint that goes on to the same losses; twice, they end it at once."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.training import runs
from tests.training.test_resume import in_child, same, whole
from tritensor.training import Callback, Trainer


class Signals(Callback):
    """Sends its process signals in the n-th call of a hook."""

    def __init__(self, hook: str, count: int, *numbers: int) -> None:
        self.left = count

        def send(*_: Any) -> None:
            self.left -= 1
            if self.left < 0:
                for number in numbers:
                    os.kill(os.getpid(), number)

        setattr(self, hook, send)


def interrupted(folder: Path, callback: Callback, kind: type[BaseException], **given: Any) -> tuple[Trainer, BaseException]:
    trainer = runs.trainer(folder, [callback], **given)
    with pytest.raises(kind) as caught:
        trainer.fit(*runs.loaders())
    return trainer, caught.value


@pytest.mark.parametrize("hook", ["on_batch_start", "on_after_backward", "on_batch_end", "on_validation_start", "on_epoch_end"])
@pytest.mark.parametrize("given", [{}, {"validate_every": 2}], ids=["every epoch", "often"])
def test_one_ctrl_c_ends_behind_the_step(hook: str, given: dict[str, Any], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    trainer, error = interrupted(tmp_path, Signals(hook, 1, signal.SIGINT), KeyboardInterrupt, **given)
    assert 0 < trainer.step < 12
    assert "SIGINT: the run ends after this step; once more ends it at once" in capfd.readouterr().err
    assert f"stopped behind step {trainer.step}, saved to {tmp_path / 'last.safetensors'}; fit(resume=True) goes on from there" in str(
        error
    )
    again = runs.trainer(tmp_path, **given)
    again.fit(*runs.loaders(), resume=True)
    expected = whole("every epoch") if not given else runs.trainer(None, **given)
    if given:
        expected.fit(*runs.loaders())
    same(again, expected)


def test_a_second_ctrl_c_ends_at_once(tmp_path: Path) -> None:
    trainer, error = interrupted(tmp_path, Signals("on_after_backward", 2, signal.SIGINT, signal.SIGINT), KeyboardInterrupt)
    assert trainer.step == 2
    assert "in the middle of a step" in str(error)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_sigterm_ends_with_a_checkpoint_and_its_status(tmp_path: Path) -> None:
    """As a scheduler sends it before it takes the machine away."""

    def run() -> None:
        runs.trainer(tmp_path, [Signals("on_batch_start", 5, signal.SIGTERM)]).fit(*runs.loaders())

    assert in_child(run) == 128 + signal.SIGTERM
    again = runs.trainer(tmp_path)
    again.fit(*runs.loaders(), resume=True)
    same(again, whole("every epoch"))


def test_a_programs_own_handler_stays(tmp_path: Path) -> None:
    got: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: got.append(number))
    try:
        trainer = runs.trainer(None, [Signals("on_batch_end", 2, signal.SIGINT)], epochs=1)
        trainer.fit(*runs.loaders())
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(got) == 2
    assert trainer.step == runs.BATCHES


def sleeps() -> None:
    time.sleep(60)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_process_that_is_forked_meanwhile_ends_as_ever(number: signal.Signals, capfd: pytest.CaptureFixture[str]) -> None:
    """A worker of a loader is told to end by SIGTERM."""
    ended: list[int | None] = []

    class Forks(Callback):
        def on_epoch_start(self, trainer: Trainer) -> None:
            child = multiprocessing.get_context("fork").Process(target=sleeps)
            child.start()
            time.sleep(0.1)
            assert child.pid is not None
            os.kill(child.pid, number)
            child.join(30)
            ended.append(child.exitcode)

    trainer = runs.trainer(None, [Forks()], epochs=1)
    trainer.fit(*runs.loaders())
    assert ended == [-signal.SIGTERM if number is signal.SIGTERM else 1], "KeyboardInterrupt ends a child of multiprocessing with 1"
    assert trainer.step == runs.BATCHES
    assert "the run ends after this step" not in capfd.readouterr().err


def test_training_in_another_thread() -> None:
    trainer = runs.trainer(None, epochs=1)
    thread = threading.Thread(target=trainer.fit, args=runs.loaders())
    thread.start()
    thread.join(60)
    assert trainer.step == runs.BATCHES
