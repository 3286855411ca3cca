"""Collation: a list of samples as one batch of the same structure."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any, TypeAlias

import numpy as np

from tritensor.ground.errors import ShapeError
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.constructors import tensor
from tritensor.tensor.size import Size

CollateMap: TypeAlias = dict[type | tuple[type, ...], Callable[..., Any]]

# Takes the memory of what is stacked: shared memory, in a worker process of a DataLoader.
allocate: Callable[[tuple[int, ...], np.dtype], np.ndarray] = np.empty


def default_collate(batch: Sequence[Any]) -> Any:
    """A batch of samples, a new first dimension before each tensor.

    Tensors and numpy arrays are stacked, numbers become one tensor (of their common type; of float64 where the first is a float),
    strings stay as they are; dicts and sequences are collated member by member, the first sample's keys, in the first sample's type,
    but tuples become lists, as in PyTorch. `default_collate_fn_map` says more types.
    Raises ShapeError where the samples' sizes differ or a key is missing, TypeError for what no tensor can hold.
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


def collate(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Any:
    """A batch of samples by the functions that a map has for their types: {type or types: f(samples, collate_fn_map=the map)}; structures member by
    member. A map of other types than `default_collate_fn_map` collates these alone, in any structure.

    Raises TypeError where neither has a function for the first sample's type, IndexError for no samples.
    """
    if len(batch) == 0:  # a batch_sampler may give empty lists
        raise IndexError("default_collate: a batch of no samples has no type and no shape; leave empty lists out of batch_sampler")
    first = batch[0]
    if collate_fn_map is not None:
        kind = type(first)
        found = collate_fn_map.get(kind) or next((f for types, f in collate_fn_map.items() if isinstance(first, types)), None)
        if found is not None:
            return found(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, Mapping):
        return _collate_mapping(first, batch, collate_fn_map)
    if isinstance(first, Sequence):
        return _collate_sequence(first, batch, collate_fn_map)
    raise collate_error(TypeError, f"no tensor can hold a {type(first).__name__}; give DataLoader a collate_fn that makes the batch", 0)


def collate_error(kind: type[Exception], message: str, *samples: int) -> Exception:
    """The error for samples that make no batch, with their positions as `samples`: the reader of the dataset adds their indices."""
    error = kind(f"default_collate: {message}")
    vars(error)["samples"] = samples
    return error


def _kind_error(i: int, first: str, other: Any) -> Exception:
    message = f"sample 0 is a {first}, sample {i} a {type(other).__name__}; one batch needs one kind"
    return collate_error(TypeError, message, 0, i)


def _stack(batch: Sequence[Any], kind: Any) -> Tensor:
    first = batch[0]
    for i, x in enumerate(batch):
        if not isinstance(x, kind):
            raise _kind_error(i, kind.__name__, x)
        if x.shape != first.shape:
            given = f"sample 0 is {tuple(first.shape)} of {_dtype_name(first)}, sample {i} is {tuple(x.shape)} of {_dtype_name(x)}"
            raise collate_error(ShapeError, f"{given}: one batch needs one shape; pad them in a collate_fn", 0, i)
    if kind is Tensor:
        arrays = [x._array for x in batch]
        if any(type(a) is not np.ndarray or a.dtype is not arrays[0].dtype for a in arrays) or any(x._tracked for x in batch):
            return ops.stack(*batch, dim=0)  # on a GPU, in a graph, or to be promoted
        if any(not a.flags.c_contiguous for a in arrays):
            return ops.stack(*batch, dim=0)  # keeps the layout of images with their channels last
        return Tensor.wrap(np.stack(arrays, out=allocate((len(batch), *arrays[0].shape), arrays[0].dtype)))
    return Tensor.wrap(np.stack(batch, out=allocate((len(batch), *first.shape), first.dtype)))


def _dtype_name(x: Any) -> str:
    return str(getattr(x.dtype, "name", x.dtype))


def collate_tensor_fn(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Any:
    return _stack(batch, Tensor)


def collate_str_fn(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Any:
    return batch


def collate_numpy_array_fn(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Tensor:
    kinds = {x.dtype for x in batch if isinstance(x, np.ndarray)}
    for dtype in kinds:
        _refuse_foreign(dtype, batch)
    if len(kinds) == 1:
        return _stack(batch, np.ndarray)
    return _stack([Tensor.wrap(x) if isinstance(x, np.ndarray) else x for x in batch], Tensor)  # of mixed types: promoted as tensors are


def collate_numpy_scalar_fn(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Tensor:
    _refuse_foreign(batch[0].dtype, batch)
    return Tensor.wrap(np.array(batch, _common_type(batch)))


def _refuse_foreign(dtype: np.dtype, batch: Sequence[Any]) -> None:
    if dtype.kind in "SUOMm":
        i = next(i for i, x in enumerate(batch) if getattr(x, "dtype", None) == dtype)
        raise collate_error(TypeError, f"a numpy array of {dtype} cannot become a tensor; give DataLoader a collate_fn", i)


def collate_number_fn(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Tensor:
    first, kinds = batch[0], set(map(type, batch))
    if len(kinds) == 1:  # the usual case, and without a loop over the samples
        return Tensor.wrap(np.array(batch, np.float64 if isinstance(first, float) else np.bool_ if isinstance(first, bool) else np.int64))
    try:
        return tensor(list(batch), dtype=np.float64 if isinstance(first, float) else None)
    except (TypeError, ValueError) as error:
        i = next((i for i, x in enumerate(batch) if not isinstance(x, int | float | np.generic)), 0)
        vars(error)["samples"] = (0, i)
        raise


def _common_type(batch: Sequence[Any]) -> np.dtype:
    """The type that holds all numbers; Python's among them are weak, as in numpy."""
    for i, x in enumerate(batch):
        if not isinstance(x, np.generic) and type(x) not in (bool, int, float):
            raise collate_error(
                TypeError, f"sample 0 is a number and sample {i} another kind, a {type(x).__name__}; give DataLoader a collate_fn", 0, i
            )
    kinds = {x.dtype if isinstance(x, np.generic) else type(x) for x in batch}
    return np.result_type(*[kind if isinstance(kind, np.dtype) else kind(0) for kind in kinds])


def _collate_member(name: str, column: Sequence[Any], collate_fn_map: CollateMap | None) -> Any:
    """One member of all samples, collated; an error names the member."""
    try:
        return collate(column, collate_fn_map=collate_fn_map)
    except (ValueError, TypeError) as error:
        samples = getattr(error, "samples", None)
        if samples is None:
            raise
        message = str(error).removeprefix("default_collate: ")
        joint = "" if message.startswith("in [") else ": "
        located = type(error)(f"default_collate: in [{name}]{joint}{message.removeprefix('in ') if not joint else message}")
        vars(located)["samples"] = samples
        raise located from error


def _collate_mapping(first: Mapping[Any, Any], batch: Sequence[Any], collate_fn_map: CollateMap | None) -> Any:
    for i, sample in enumerate(batch):
        if not isinstance(sample, Mapping):
            raise _kind_error(i, type(first).__name__, sample)
        if not sample.keys() >= first.keys():
            raise collate_error(ShapeError, f"sample 0 has keys {sorted(map(str, first))}, sample {i} has {sorted(map(str, sample))}", 0, i)
    return rebuild_mapping(first, {key: _collate_member(repr(key), [sample[key] for sample in batch], collate_fn_map) for key in first})


def _collate_sequence(first: Sequence[Any], batch: Sequence[Any], collate_fn_map: CollateMap | None) -> Any:
    for i, sample in enumerate(batch):
        try:
            n = len(sample)
        except TypeError:
            raise _kind_error(i, type(first).__name__, sample) from None
        if n != len(first):
            raise collate_error(ShapeError, f"sample 0 has {len(first)} members, sample {i} has {n}", 0, i)
    # a column is a tuple: one of strings stays one
    members = [_collate_member(str(k), column, collate_fn_map) for k, column in enumerate(zip(*batch, strict=True))]
    return members if type(first) in (tuple, list) else rebuild_sequence(first, members)


# default_collate's functions by the first sample's type; programs may add theirs. The first entry that fits is taken.
default_collate_fn_map: CollateMap = {
    Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    str: collate_str_fn,  # before numpy's scalars: its strings are strings, too
    bytes: collate_str_fn,
    np.generic: collate_numpy_scalar_fn,
    float: collate_number_fn,
    int: collate_number_fn,
}


def default_convert(data: Any) -> Any:
    """One sample, not batched: numpy arrays and scalars in it become tensors, all else stays; tuples become lists, as in PyTorch."""
    if isinstance(data, Tensor | str | bytes):
        return data
    if isinstance(data, np.ndarray | np.generic):
        return data if data.dtype.kind in "SUOMm" else Tensor.wrap(np.asarray(data))
    if isinstance(data, Mapping):
        return rebuild_mapping(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, Sequence):
        members = [default_convert(value) for value in data]
        return members if type(data) in (tuple, list) else rebuild_sequence(data, members)
    return data


def rebuild_mapping(like: Mapping[Any, Any], found: dict[Any, Any]) -> Any:
    """`found` in the type of `like`; a plain dict where that type takes no values."""
    if type(like) is dict:
        return found
    try:
        if isinstance(like, MutableMapping):
            out = copy.copy(like)  # for what else it holds, such as a defaultdict's factory
            for key, value in found.items():
                out[key] = value
            return out
        return type(like)(found)  # type: ignore[call-arg]
    except TypeError:
        return found


def rebuild_sequence(like: Sequence[Any], members: list[Any]) -> Any:
    """`members` in the type of `like`; a list where that type takes none."""
    if isinstance(like, tuple) and hasattr(like, "_fields"):
        return type(like)(*members)
    # types that hold numbers alone, or whose constructor means something else
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


def pin_tensors(batch: Any) -> Any:
    """A batch with its tensors in pinned host memory, its structure kept; an object with a method pin_memory() pins itself."""
    if isinstance(batch, Tensor):
        return batch if batch.is_cuda else batch.pin_memory()
    if isinstance(batch, str | bytes):
        return batch
    if hasattr(batch, "pin_memory"):
        return batch.pin_memory()
    if isinstance(batch, Mapping):
        return rebuild_mapping(batch, {key: pin_tensors(value) for key, value in batch.items()})
    if isinstance(batch, Sequence):
        return rebuild_sequence(batch, [pin_tensors(value) for value in batch])
    return batch
