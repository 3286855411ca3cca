"""Calls of a model with a batch, and the outputs of many calls as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tritensor.ground.errors import ArgumentError
from tritensor.ground.pytree import tree_flatten, tree_unflatten
from tritensor.nn import Module
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import public
from tritensor.training.batches import describe


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
