"""Checkpoints that are kept: the best by a metric, or those of the last few epochs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tritensor.ground.errors import ArgumentError
from tritensor.training.callbacks.base import MetricCallback


class ModelCheckpoint(MetricCallback):
    """Keeps checkpoints beside the trainer's own `last.safetensors`::

        callbacks=[ModelCheckpoint(monitor="val_accuracy", mode="max")]      # out/best.safetensors
        model.load_state_dict(tt.load("out/best.safetensors")["model"])

    Args:
        folder: where; None: the trainer's `checkpoint`.
        monitor: with it the `keep` best are kept, one as `best.safetensors`, several by epoch and step; None keeps those of the last `keep` epochs.
        mode: "min" or "max", which is better.
        keep: how many. The others are removed, once the newer one is on the disk.

    Each is a whole checkpoint: `fit(resume=path)` goes on from it. Raises ValueError for settings that make no sense, KeyError where the run has
    no such metric.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None, monitor: str | None = None, mode: str = "min", keep: int = 1) -> None:
        super().__init__(monitor or "", mode)
        if not isinstance(keep, int) or isinstance(keep, bool) or keep < 1:
            raise ArgumentError(f"ModelCheckpoint: keep is {keep!r}; give an integer of at least 1")
        self.folder, self.keep = None if folder is None else Path(folder), keep
        self.kept: list[tuple[float, str]] = []  # (value, name), the best or latest first

    @property
    def best(self) -> Path | None:
        """The best or latest file; None before there is one."""
        return self.folder / self.kept[0][1] if self.kept and self.folder is not None else None

    def on_fit_start(self, trainer: Any) -> None:
        if self.folder is None:
            if trainer.checkpoint is None:
                raise ArgumentError("ModelCheckpoint: no folder to save to; give ModelCheckpoint('out') or Trainer(checkpoint='out')")
            self.folder = trainer.checkpoint.parent

    def on_epoch_end(self, trainer: Any) -> None:
        if self.monitor:
            super().on_epoch_end(trainer)
        else:
            self._keep(trainer, 0.0, 0)

    def _check_metric(self, trainer: Any, value: float) -> None:
        rank = sum(not self._is_better(value, other) for other, _ in self.kept)
        if rank < self.keep and value == value:  # NaN is no value
            self._keep(trainer, value, rank)

    def _keep(self, trainer: Any, value: float, rank: int) -> None:
        assert self.folder is not None
        single = self.monitor and self.keep == 1
        name = "best.safetensors" if single else f"epoch{trainer.epoch:03d}-step{trainer.step:06d}.safetensors"
        others = [pair for pair in self.kept if pair[1] != name]  # a run that went on may save the same step again
        self.kept = [*others[:rank], (value, name), *others[rank:]]
        kept, gone = self.kept[: self.keep], [self.folder / n for _, n in self.kept[self.keep :]]
        self.kept = kept
        trainer.save_after_hooks(self.folder / name, gone)

    def state_dict(self) -> dict[str, Any]:
        """The files that are kept."""
        return {"kept": self.kept}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on with the files that are kept."""
        self.kept = [(value, name) for value, name in state_dict["kept"]]
