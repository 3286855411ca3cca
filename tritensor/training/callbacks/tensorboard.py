"""Logs of a run in tensorboard: losses, rates, norms and metrics."""

from __future__ import annotations

import os
import time
from collections import deque
from typing import Any

from tritensor.optim.state import to_number
from tritensor.training.callbacks.base import StepCallback
from tritensor.utils.tensorboard import SummaryWriter


class TensorBoard(StepCallback):
    """Logs a run for `tensorboard --logdir`: every step's loss, learning rates and, where the trainer keeps it, the norm of the gradients; every
    entry of the history at its step.

    Losses are logged as the trainer reads them, so that a GPU is never waited for. A run that goes on from a checkpoint goes on in the same
    curves: entries behind the checkpoint are hidden, earlier ones are on the disk.

    Args:
        log_dir: the folder; None: the trainer's `checkpoint`, or else runs/<date>_<host>.
        every: steps between those that are logged.
        histograms: whether parameters and gradients are logged at each epoch's end, which reads them.
        writer: a SummaryWriter to log to in place of one of log_dir; it is left open. `writer` is also where hooks of one's own may log.
    """

    def __init__(
        self, log_dir: str | os.PathLike[str] | None = None, every: int = 1, histograms: bool = False, writer: SummaryWriter | None = None
    ) -> None:
        self.log_dir, self.every, self.histograms = log_dir, every, histograms
        self.writer: Any = writer  # a SummaryWriter once the run has begun
        self._owns = writer is None
        self._trainer: Any = None
        self._begin()

    def _begin(self) -> None:
        self._waiting: deque[tuple[int, float, list[float]]] = deque()  # (step, time, rates) whose loss has not been read
        self._logged = 0  # entries of the history that are logged

    def on_fit_start(self, trainer: Any) -> None:
        self._trainer = trainer
        self._begin()
        # of a run that goes on: those are in the earlier file
        self._logged = sum(known["step"] <= trainer.step for known in trainer.history)
        if self._owns:
            folder = self.log_dir or (None if trainer.checkpoint is None else trainer.checkpoint.parent)
            self.writer = SummaryWriter(folder, purge_step=trainer.step + 1)
        super().on_fit_start(trainer)

    def _after_step(self, trainer: Any) -> None:
        if trainer.step % self.every == 0:
            rates = [to_number(group["lr"]) for group in trainer.optimizer.param_groups]
            self._waiting.append((trainer.step, time.time(), rates))
        self._log()

    def _log(self) -> None:
        """Log the steps whose losses the trainer has read, and new entries of the history."""
        trainer, writer = self._trainer, self.writer
        while self._waiting and self._waiting[0][0] <= trainer.steps_read:
            step, when, rates = self._waiting.popleft()
            writer.add_scalar("loss/train", trainer.losses[step - 1], step, when)
            for i, rate in enumerate(rates):
                writer.add_scalar("lr" if len(rates) == 1 else f"lr/{i}", rate, step, when)
            if len(trainer.grad_norms) >= step:
                writer.add_scalar("grad_norm", trainer.grad_norms[step - 1], step, when)
        for known in trainer.history[self._logged :]:
            for name, value in known.items():
                if isinstance(value, int | float) and name not in ("epoch", "step", "lr", "loss"):
                    writer.add_scalar(_scalar_tag(name), value, known["step"])
            writer.add_scalar("loss/epoch", known["loss"], known["step"])
        self._logged = len(trainer.history)

    def on_epoch_end(self, trainer: Any) -> None:
        self._log()
        if self.histograms:
            for name, p in trainer.model.named_parameters():
                for kind, x in (("parameters", p), ("gradients", p.grad)):
                    if x is not None and x.numel():
                        self.writer.add_histogram(f"{kind}/{name}", x, trainer.step)

    def on_fit_end(self, trainer: Any) -> None:
        if self._trainer is not None and self.writer is not None:
            self._log()
            self.writer.close() if self._owns else self.writer.flush()  # a writer of the program's own may be used again
        self._trainer = None

    def state_dict(self) -> dict[str, Any]:
        """No state; but all entries up to a checkpoint are on the disk before the checkpoint is."""
        if self._trainer is not None:
            self._log()
            self.writer.flush()
        return {}


def _scalar_tag(name: str) -> str:
    """val_accuracy as accuracy/val, so that a metric's curves stand together."""
    return f"{name[4:]}/val" if name.startswith("val_") else f"{name}/train"
