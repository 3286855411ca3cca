"""Collating: a list of samples becomes one batch of the same structure."""

from __future__ import annotations

import copy
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np

from tritensor.errors import ShapeError
from tritensor.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.constructors import tensor
from tritensor.tensor.size import Size


def default_collate(batch: Sequence[Any]) -> Any:
    """A batch of samples, a new first dimension before each tensor.

    Tensors and numpy arrays are stacked, numbers become one tensor (of their common type; of float64 where the first is a float),
    strings stay as they are; dicts and sequences are collated member by member, the first sample's keys, in the first sample's type,
    but tuples become lists, as in PyTorch.
    Raises ShapeError where the samples' sizes differ or a key is missing, TypeError for what no tensor can hold.
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return _stacked(batch, Tensor)
    if isinstance(first, str | bytes):  # before numpy's scalars: its strings are strings, too
        return batch
    if isinstance(first, np.ndarray):
        return _collate_arrays(batch)
    if isinstance(first, np.generic):
        _refuse_foreign(first.dtype)
        return Tensor.wrap(np.array(batch, _common_type(batch)))
    if isinstance(first, int | float):
        return _collate_numbers(first, list(batch))
    if isinstance(first, Mapping):
        return _collate_mapping(first, batch)
    if isinstance(first, Sequence):
        return _collate_sequence(first, batch)
    raise TypeError(f"default_collate: no tensor can hold a {type(first).__name__}; give DataLoader a collate_fn that makes the batch")


def _stacked(batch: Sequence[Any], kind: Any) -> Tensor:
    for i, x in enumerate(batch):
        if not isinstance(x, kind):
            raise TypeError(f"default_collate: sample 0 is a {kind.__name__}, sample {i} a {type(x).__name__}; one batch needs one kind")
        if x.shape != batch[0].shape:
            given = f"sample 0 is {tuple(batch[0].shape)}, sample {i} is {tuple(x.shape)}"
            raise ShapeError(f"default_collate: {given}: one batch needs one shape; pad them in a collate_fn")
    if kind is Tensor:
        return ops.stack(*batch, dim=0)
    return Tensor.wrap(np.stack(batch))


def _collate_arrays(batch: Sequence[Any]) -> Tensor:
    kinds = {x.dtype for x in batch if isinstance(x, np.ndarray)}
    for dtype in kinds:
        _refuse_foreign(dtype)
    if len(kinds) == 1:
        return _stacked(batch, np.ndarray)
    return _stacked([Tensor.wrap(x) if isinstance(x, np.ndarray) else x for x in batch], Tensor)  # of mixed types: promoted as tensors are


def _refuse_foreign(dtype: np.dtype) -> None:
    if dtype.kind in "SUOMm":
        raise TypeError(f"default_collate: a numpy array of {dtype} cannot become a tensor; give DataLoader a collate_fn")


def _collate_numbers(first: float, batch: list[Any]) -> Tensor:
    kinds = set(map(type, batch))
    if len(kinds) == 1:  # all as the first is
        return Tensor.wrap(np.array(batch, np.float64 if isinstance(first, float) else np.bool_ if isinstance(first, bool) else np.int64))
    return tensor(batch, dtype=np.float64 if isinstance(first, float) else None)


def _common_type(batch: Sequence[Any]) -> np.dtype:
    """The type that holds all of the numbers, Python's among them weak."""
    kinds = {x.dtype if isinstance(x, np.generic) else type(x) for x in batch}
    if foreign := [kind.__name__ for kind in kinds if isinstance(kind, type) and kind not in (bool, int, float)]:
        raise TypeError(f"default_collate: sample 0 is a number and another a {foreign[0]}; give DataLoader a collate_fn")
    return np.result_type(*[kind if isinstance(kind, np.dtype) else kind(0) for kind in kinds])


def _collate_mapping(first: Mapping[Any, Any], batch: Sequence[Any]) -> Any:
    for i, sample in enumerate(batch):
        if not sample.keys() >= first.keys():
            raise ShapeError(f"default_collate: sample 0 has keys {sorted(map(str, first))}, sample {i} has {sorted(map(str, sample))}")
    return refilled(first, {key: default_collate([sample[key] for sample in batch]) for key in first})


def _collate_sequence(first: Sequence[Any], batch: Sequence[Any]) -> Any:
    for i, sample in enumerate(batch):
        if len(sample) != len(first):
            raise ShapeError(f"default_collate: sample 0 has {len(first)} members, sample {i} has {len(sample)}")
    members = [default_collate(column) for column in zip(*batch, strict=True)]  # a column is a tuple: one of strings stays one
    return members if type(first) in (tuple, list) else reordered(first, members)


def default_convert(data: Any) -> Any:
    """One sample, not batched: numpy arrays and scalars in it become tensors, all else stays; tuples become lists, as in PyTorch."""
    if isinstance(data, Tensor | str | bytes):
        return data
    if isinstance(data, np.ndarray | np.generic):
        return data if data.dtype.kind in "SUOMm" else Tensor.wrap(np.asarray(data))
    if isinstance(data, Mapping):
        return refilled(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, Sequence):
        members = [default_convert(value) for value in data]
        return members if type(data) in (tuple, list) else reordered(data, members)
    return data


def refilled(like: Mapping[Any, Any], found: dict[Any, Any]) -> Any:
    """`found` in the type of `like`, with what else that holds (a defaultdict's factory); a plain dict where its type takes no values."""
    if type(like) is dict:
        return found
    try:
        if isinstance(like, MutableMapping):
            out = copy.copy(like)
            for key, value in found.items():
                out[key] = value
            return out
        return type(like)(found)  # type: ignore[call-arg]
    except TypeError:
        return found


def reordered(like: Sequence[Any], members: list[Any]) -> Any:
    """`members` in the type of `like`; a list where that type takes none."""
    if isinstance(like, tuple) and hasattr(like, "_fields"):
        return type(like)(*members)
    if isinstance(like, range | bytearray | memoryview | Size):
        return members
    try:
        if isinstance(like, MutableSequence):
            out = copy.copy(like)
            for i, member in enumerate(members):
                out[i] = member
            return out
        return type(like)(members)  # type: ignore[call-arg]
    except TypeError:
        return members


def pinned(batch: Any) -> Any:
    """A batch with its tensors in pinned host memory, its structure kept; an object with a method pin_memory() pins itself."""
    if isinstance(batch, Tensor):
        return batch if batch.is_cuda else batch.pin_memory()
    if isinstance(batch, str | bytes):
        return batch
    if hasattr(batch, "pin_memory"):
        return batch.pin_memory()
    if isinstance(batch, Mapping):
        return refilled(batch, {key: pinned(value) for key, value in batch.items()})
    if isinstance(batch, Sequence):
        return reordered(batch, [pinned(value) for value in batch])
    return batch
