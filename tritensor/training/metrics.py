"""Metrics over many batches: means of functions, weighted by samples, and objects that count for themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tritensor.ground.dtypes import float64
from tritensor.ground.errors import ShapeError
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import public
from tritensor.training.batches import describe

_OBJECT = ("update", "compute", "reset")


def is_metric_object(metric: Any) -> bool:
    """Whether a metric is an object with update(outputs, targets), compute() and reset(), as torchmetrics' are; else it is a function."""
    return all(callable(getattr(metric, name, None)) for name in _OBJECT)


class Metrics:
    """Metrics of a pass over batches: `update` after each, `compute` at the end.

    Args:
        metrics: {name: a function (outputs, targets) -> number (or one for each sample), or an object that counts itself}.
        prefix: of the names that `compute` gives.
    """

    def __init__(self, metrics: Mapping[str, Any], prefix: str = "") -> None:
        self._prefix = prefix
        self._objects = {name: m for name, m in metrics.items() if is_metric_object(m)}
        self._functions = {name: m for name, m in metrics.items() if not is_metric_object(m)}
        self.reset()

    def reset(self) -> None:
        """Begin anew."""
        self.count = 0  # samples
        self._totals: dict[str, Any] = {}
        for metric in self._objects.values():
            metric.reset()

    def update(self, outputs: Any, targets: Any, samples: int, **means: Any) -> None:
        """Take a batch in; `means` are numbers that are known already, such as the loss. Nothing waits for a GPU."""
        for name, value in means.items():
            self._add(name, _batch_mean(name, value, samples), samples)
        for name, metric in self._functions.items():
            with _note_metric(name):
                self._add(name, _batch_mean(name, metric(outputs, targets), samples), samples)
        for name, metric in self._objects.items():
            with _note_metric(name):
                metric.update(outputs, targets)
        self.count += samples

    def _add(self, name: str, mean: Any, samples: int) -> None:
        self._totals[name] = self._totals.get(name, 0.0) + mean * samples

    def compute(self) -> dict[str, float]:
        """{prefix + name: number} of all batches so far."""
        devices: dict[Any, list[str]] = {}  # one wait for each device
        for name, total in self._totals.items():
            if isinstance(total, Tensor):
                devices.setdefault(total.device, []).append(name)
        read: dict[str, float] = {}
        for names in devices.values():
            read |= zip(names, public["stack"]([self._totals[n] for n in names]).tolist(), strict=True)
        found = {name: read.get(name, total) / self.count for name, total in self._totals.items()}
        for name, metric in self._objects.items():
            with _note_metric(name):
                found[name] = _as_number(name, metric.compute())
        return {self._prefix + name: float(value) for name, value in found.items()}

    def state_dict(self) -> dict[str, Any]:
        """The state for a checkpoint; of objects their own, where they have one."""
        objects = {name: m.state_dict() for name, m in self._objects.items() if callable(getattr(m, "state_dict", None))}
        return {"count": self.count, "totals": dict(self._totals), "objects": objects}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was called."""
        self.count, self._totals = state["count"], dict(state["totals"])
        for name, own in state["objects"].items():
            if name in self._objects:  # a metric that was dropped since the checkpoint
                self._objects[name].load_state_dict(own)


@contextmanager
def _note_metric(name: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        error.add_note(f"in metric {name!r}")
        raise


def _batch_mean(name: str, value: Any, samples: int) -> Any:
    """A function's number for a batch; the mean of one number for each sample."""
    if not isinstance(value, Tensor):
        return _as_number(name, value)
    if value.numel() != 1 and tuple(value.shape) != (samples,):
        raise ShapeError(
            f"Trainer: metric {name!r} is {tuple(value.shape)} for a batch of {samples}; give one number, or one for each sample"
        )
    return value.detach().to(float64).mean()  # in float64: a sum over a whole data set loses digits in float32


def _as_number(name: str, value: Any) -> float:
    if isinstance(value, Tensor) and value.numel() != 1:
        raise ShapeError(f"Trainer: metric {name!r} is {tuple(value.shape)}; give one number")
    try:
        return float(value.item()) if isinstance(value, Tensor) else float(value)
    except (TypeError, ValueError):
        raise TypeError(f"Trainer: metric {name!r} is {describe(value)}; give one number") from None
