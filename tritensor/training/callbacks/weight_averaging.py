"""Averages of a run's weights: exponential (EMA), or plain from some step on (SWA)."""

from __future__ import annotations

from typing import Any

from tritensor.ground.errors import ArgumentError
from tritensor.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from tritensor.training.callbacks.base import StepCallback


class WeightAveraging(StepCallback):
    """Keeps a copy of the model, `averaged.module`, whose weights are a mean of those that the run passes through; validation is of the copy.

    Args:
        decay: of the exponential mean, a <- decay a + (1 - decay) p (EMA). None: the plain mean (Izmailov et al. 2018, SWA).
        start: the step that is averaged first.
        every: steps between two that are averaged.
        use_buffers: whether running statistics are averaged as well; else they are the model's.

    Raises ValueError for settings that make no sense.
    """

    def __init__(self, decay: float | None = 0.999, start: int = 0, every: int = 1, use_buffers: bool = True) -> None:
        if decay is not None and not 0 <= decay < 1:
            raise ArgumentError(f"WeightAveraging: decay is {decay!r}; give a number from 0 to 1, or None for the plain mean")
        for name, given in (("start", start), ("every", every)):
            if not isinstance(given, int) or given < (name == "every"):
                raise ArgumentError(f"WeightAveraging: {name} is {given!r}; give a number of steps")
        self.decay, self.start, self.every, self.use_buffers = decay, start, every, use_buffers
        self.averaged: AveragedModel | None = None
        self._loaded: Any = None

    def on_fit_start(self, trainer: Any) -> None:
        average = None if self.decay is None else get_ema_multi_avg_fn(self.decay)
        self.averaged = AveragedModel(trainer.model, multi_avg_fn=average, use_buffers=self.use_buffers)
        super().on_fit_start(trainer)
        if self._loaded is not None:
            self.averaged.load_state_dict(self._loaded)
            self._loaded = None
        if self.averaged.n_averaged.item():  # before the first average the copy is the model as it began
            trainer.validated_model = self.averaged.module

    def _after_step(self, trainer: Any) -> None:
        if trainer.step > self.start and (trainer.step - self.start - 1) % self.every == 0:
            assert self.averaged is not None
            self.averaged.update_parameters(trainer.model)
            trainer.validated_model = self.averaged.module

    def state_dict(self) -> dict[str, Any]:
        """The averaged model's."""
        return {} if self.averaged is None else {"averaged": self.averaged.state_dict()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on averaging."""
        self._loaded = state_dict.get("averaged")  # the averaged model is made in on_fit_start, which comes later
