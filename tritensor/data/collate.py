"""Collating: a list of samples becomes one batch of the same structure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tritensor.errors import ShapeError
from tritensor.table import ops
from tritensor.tensor.core import Tensor


def default_collate(batch: Sequence[Any]) -> Any:
    """A batch of samples, a new first dimension before each tensor.

    Tensors and numpy arrays are stacked, Python numbers become one tensor (float64, int64, bool), strings stay a list;
    dicts, tuples, named tuples and lists are collated member by member. Tuples become lists, as in PyTorch.
    Raises ShapeError where the samples' sizes differ, TypeError for what no tensor can hold.
    """
    first = batch[0]
    if isinstance(first, Tensor):
        _same_shapes(batch)
        return ops.stack(*batch, dim=0)
    if isinstance(first, np.ndarray | np.generic):
        _same_shapes(batch)
        values = np.stack(batch)
        if values.dtype.kind in "SUO":
            raise TypeError(f"default_collate: a numpy array of {values.dtype} cannot become a tensor; give DataLoader a collate_fn")
        return Tensor.wrap(values)
    if isinstance(first, bool):
        return Tensor.wrap(np.array(batch, np.bool_))
    if isinstance(first, int):
        return Tensor.wrap(np.array(batch, np.int64))
    if isinstance(first, float):
        return Tensor.wrap(np.array(batch, np.float64))
    if isinstance(first, str | bytes):
        return list(batch)
    if isinstance(first, Mapping):
        return _collate_mapping(first, batch)
    if isinstance(first, Sequence):
        return _collate_sequence(first, batch)
    raise TypeError(f"default_collate: no tensor can hold a {type(first).__name__}; give DataLoader a collate_fn that makes the batch")


def _same_shapes(batch: Sequence[Any]) -> None:
    shape = batch[0].shape
    for i, x in enumerate(batch):
        if x.shape != shape:
            given = f"sample 0 is {tuple(shape)}, sample {i} is {tuple(x.shape)}"
            raise ShapeError(f"default_collate: {given}: one batch needs one shape; pad them in a collate_fn")


def _collate_mapping(first: Mapping[Any, Any], batch: Sequence[Any]) -> Any:
    for i, sample in enumerate(batch):
        if sample.keys() != first.keys():
            raise ShapeError(f"default_collate: sample 0 has keys {sorted(map(str, first))}, sample {i} has {sorted(map(str, sample))}")
    out = {key: default_collate([sample[key] for sample in batch]) for key in first}
    return out if type(first) is dict else type(first)(out)  # type: ignore[call-arg]


def _collate_sequence(first: Sequence[Any], batch: Sequence[Any]) -> Any:
    for i, sample in enumerate(batch):
        if len(sample) != len(first):
            raise ShapeError(f"default_collate: sample 0 has {len(first)} members, sample {i} has {len(sample)}")
    members = [default_collate(column) for column in zip(*batch, strict=True)]
    return type(first)(*members) if hasattr(first, "_fields") else members


def pinned(batch: Any) -> Any:
    """A batch with its tensors in pinned host memory, its structure kept; an object with a method pin_memory() pins itself."""
    if isinstance(batch, Tensor):
        return batch if batch.is_cuda else batch.pin_memory()
    if isinstance(batch, str | bytes):
        return batch
    if hasattr(batch, "pin_memory"):
        return batch.pin_memory()
    if isinstance(batch, Mapping):
        out = {key: pinned(value) for key, value in batch.items()}
        return out if type(batch) is dict else type(batch)(out)  # type: ignore[call-arg]
    if isinstance(batch, Sequence):
        members = [pinned(value) for value in batch]
        return type(batch)(*members) if hasattr(batch, "_fields") else members if type(batch) is not tuple else tuple(members)
    return batch
