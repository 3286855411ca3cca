"""Evaluation of a model on batches: its calls, its loss and metrics, its outputs as one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from tritensor.amp import autocast
from tritensor.autograd.modes import no_grad
from tritensor.ground.device import device as Device
from tritensor.ground.dtypes import DType
from tritensor.ground.errors import ArgumentError
from tritensor.ground.pytree import tree_flatten, tree_map, tree_unflatten
from tritensor.nn import Module
from tritensor.nn.inspection import preserve_modes
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import public
from tritensor.training.batches import count_batches, count_samples, describe, is_movable
from tritensor.training.checks import check_loader
from tritensor.training.generators import Stream
from tritensor.training.metrics import Metrics
from tritensor.training.signals import Interrupts
from tritensor.utils.progress import show_progress


def split_pair(batch: Any) -> tuple[Any, Any]:
    """(inputs, targets). Raises TypeError for a batch that is no pair."""
    if not isinstance(batch, tuple | list) or len(batch) != 2:
        raise TypeError(
            f"Trainer.fit: a batch is {describe(batch)}, and a loss takes a pair (inputs, targets); "
            "make pairs in the loader, or give Trainer(step=...), a function (model, batch) -> loss"
        )
    return batch[0], batch[1]


def call_model(model: Module, inputs: Any) -> Any:
    """The model's outputs; inputs that are a tuple or a dict are its arguments."""
    if isinstance(inputs, Mapping):
        return model(**inputs)
    return model(*inputs) if isinstance(inputs, tuple | list) else model(inputs)


def get_inputs(batch: Any) -> Any:
    """The inputs of a batch: the first of a pair, as in training, or of a list with one item; else the batch itself."""
    if isinstance(batch, tuple | list) and len(batch) in (1, 2):
        return batch[0]
    return batch


def join_outputs(outputs: Sequence[Any]) -> Any:
    """Outputs of many batches as those of one: tensors joined along their first dimension, in the nest that each was."""
    if not outputs:
        raise ArgumentError("Trainer.predict: the loader gave no batch; give one that is not empty, and can be iterated again")
    leaves, spec = tree_flatten(outputs[0])
    columns = [leaves]
    for one in outputs[1:]:
        more, other = tree_flatten(one)
        if other != spec:  # batches of different structure have no common one
            raise ArgumentError(f"Trainer.predict: the first batch gave {spec}, and another {other}; give outputs of one kind")
        columns.append(more)
    parts = []
    for column in zip(*columns, strict=True):
        if not all(isinstance(x, Tensor) and x.ndim for x in column):
            raise TypeError(f"Trainer.predict: an output is {describe(column[0])}; give tensors whose first dimension is the batch")
        parts.append(public["cat"](list(column)))
    return tree_unflatten(parts, spec)


class Evaluation:
    """The part of a Trainer that runs the model on batches: as in training, or for metrics and outputs alone."""

    device: Device
    autocast: DType | None
    metrics: Mapping[str, Any]
    progress: bool
    validated_model: Module  # validation runs it: a callback may keep a better one than `model`
    _loss: Callable[[Any, Any], Tensor] | None
    _step: Callable[[Module, Any], Any] | None
    _seeds: dict[str, int]
    _interrupts: Interrupts

    def evaluate(self, loader: Iterable[Any], prefix: str = "") -> dict[str, float]:
        """{"loss": ..., "<metric>": ...}: means over a loader's samples, in eval mode and without gradients; nothing else changes."""
        found = Metrics(self.metrics, prefix)
        with self._evaluation_mode() as model:
            for batch in self._iterate_batches(loader, "evaluate"):
                outputs, loss = self._forward(model, batch)
                found.update(outputs, batch[1] if self._step is None else batch, count_samples(batch), loss=loss)
        return found.compute()

    def validate(self, loader: Iterable[Any]) -> dict[str, float]:
        """The numbers of `evaluate`, as {"val_loss": ..., "val_<metric>": ...}."""
        return self.evaluate(loader, "val_")

    def predict(self, loader: Iterable[Any], step: Callable[[Module, Any], Any] | None = None) -> Any:
        """The model's outputs for all batches, joined along their first dimension, on the model's device; in eval mode, without gradients.

        A batch is a pair (inputs, targets), or inputs alone: a tensor, or a dict of the model's arguments. With `step` the outputs are
        step(model, batch).
        """
        with self._evaluation_mode() as model:
            return join_outputs(
                [call_model(model, get_inputs(b)) if step is None else step(model, b) for b in self._iterate_batches(loader, "predict")]
            )

    @contextmanager
    def _evaluation_mode(self) -> Iterator[Module]:
        """The model in eval mode, without gradients, random numbers from a stream of their own."""
        model = self.validated_model
        with preserve_modes(model), no_grad(), Stream(self._seeds).at("validation"), self._autocast_context():
            model.eval()
            yield model

    def _iterate_batches(self, loader: Iterable[Any], who: str) -> Iterator[Any]:
        """The batches of a loader, on the model's device; with a progress bar where they take long."""
        batches = show_progress(check_loader("loader", loader, who), who, "batches", count_batches(loader), show=self.progress)
        empty = True
        for batch in batches:
            empty = False
            self._interrupts.check()
            yield self._move_batch(batch)
        if empty:
            raise ArgumentError(f"Trainer.{who}: the loader gave no batch; give one that is not empty, and can be iterated again")

    def _forward(self, model: Module, batch: Any) -> tuple[Any, Any]:
        """(outputs, loss) of a batch."""
        if self._step is not None:
            found = self._step(model, batch)
            if isinstance(found, tuple) and len(found) == 2:  # a step may return (loss, outputs), for metrics
                return found[1], found[0]
            return None, found
        inputs, targets = split_pair(batch)
        outputs = call_model(model, inputs)
        assert self._loss is not None
        return outputs, self._loss(outputs, targets)

    def _move_batch(self, batch: Any) -> Any:
        def move(x: Any) -> Any:
            if isinstance(x, Tensor):
                return x.to(self.device, non_blocking=True)  # from pinned memory the host does not wait
            return x.to(self.device) if is_movable(x) else x

        return tree_map(move, batch, is_leaf=is_movable)

    def _autocast_context(self) -> AbstractContextManager[Any]:
        return nullcontext() if self.autocast is None else autocast(self.device.type, self.autocast)
