"""Reading data that is no tensor yet: numbers and nested lists, which may hold tensors and numpy's values, as one array."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.device import cpu
from tritensor.ground.errors import DTypeError, NumberRangeError, ShapeError
from tritensor.ops.array import from_host, to_host
from tritensor.ops.lazy_array import note_shared
from tritensor.tensor.core import Tensor, new_tensor

_NUMBERS = frozenset((bool, int, float, complex))
_FLOATS = {float}
_FEW = 64  # of more, numpy's two passes are the sooner way
_EVERY_TYPE_HOLDS = 65504  # float16's largest number: what a default type can hold whatever it is
_SEQUENCES = (list, tuple, range)


def as_tensor(x: Any, like: Tensor | None = None, name: str = "tensor") -> Tensor:
    """A tensor from a tensor, numpy array, number or nested list; on `like`'s device where one is given. Errors begin with `name`."""
    if isinstance(x, Tensor):
        return x
    try:
        array = x if isinstance(x, np.ndarray) else np.asarray(x)
    except ValueError:
        raise ShapeError(f"{name}: the nested lists are ragged; all lists of one level must have one length") from None
    # numpy makes object, string and date arrays of anything; no kernel holds them.
    if array.dtype.kind in "OUSmM":
        given = f"a {type(x).__name__} of {array.dtype}" if isinstance(x, np.ndarray) else repr(x)[:40]
        raise DTypeError(
            f"{name}: {given} is no number; tensors cannot hold {array.dtype}; they hold {', '.join(d.name for d in dtypes.ALL)}"
        )
    # Python floats take the default type, numpy's own float64 stays, as in PyTorch.
    if not isinstance(x, np.ndarray | np.generic) and array.dtype == np.float64:
        array = array.astype(dtypes.default_float().numpy)
    dtypes.of(array.dtype)
    where = cpu if like is None else like.device
    if array is x:
        note_shared(array)
    return new_tensor(array if where.type == "cpu" else from_host(array, where))


def parse_values(name: str, data: Any, dtype: Any) -> np.ndarray:
    """Data as a numpy array: Python floats in the default type, ints int64, bools bool; tensors and numpy's values keep theirs.

    Nested lists have the type that all they hold promote to. Raises ShapeError for ragged ones, DTypeError for what is no
    number, NumberRangeError for a Python number that the type asked for cannot hold.
    """
    if dtype is None and (found := _few_plain(data)) is not None:
        return found
    wanted = None if dtype is None else dtypes.as_dtype(dtype)
    if isinstance(data, Tensor):
        return _cast_to(to_host(data._array), wanted)
    if isinstance(data, np.ndarray | np.generic):
        return _cast_to(_require_numbers(name, np.asarray(data), data), wanted)
    types: set[Any] = set()
    if isinstance(data, _SEQUENCES):
        _collect_types(data, types)
    else:
        types.add(type(data))
    plain = types <= _NUMBERS
    found = _require_numbers(name, _join_lists(name, data, types, wanted), data)
    if wanted is None:
        return _cast_to(found, _default_type(found) if plain or not isinstance(data, _SEQUENCES) else _common_type(types, found))
    if plain:
        # Python numbers are meant exactly, so one that does not fit is a mistake; arrays are cast as C casts.
        _refuse_out_of_range(name, found, wanted)
    return _cast_to(found, wanted)


def is_made_anew(data: Any) -> bool:
    """Whether `parse_values` gives memory that nobody else holds."""
    return type(data) in _NUMBERS or isinstance(data, _SEQUENCES)


def _few_plain(data: Any) -> np.ndarray | None:
    """A Python number, or a list of a few floats, which need no further look; None for all else, and for what might be out of range."""
    kind = type(data)
    if kind is float:
        return np.array(data, dtypes.default_float().numpy) if -_EVERY_TYPE_HOLDS <= data <= _EVERY_TYPE_HOLDS else None
    if kind is bool:
        return np.array(data)
    if kind is int:
        return np.array(data, np.int64) if -_EVERY_TYPE_HOLDS <= data <= _EVERY_TYPE_HOLDS else None
    if (
        kind is not list
        or not 0 < len(data) <= _FEW
        or set(map(type, data)) != _FLOATS
        or not -_EVERY_TYPE_HOLDS <= min(data) <= max(data) <= _EVERY_TYPE_HOLDS
    ):
        return None
    return np.array(data, dtypes.default_float().numpy)


def _collect_types(data: Any, types: set[Any]) -> None:
    """What nested lists hold: types of Python's values, numpy dtypes of all that has one (of tensors with whether they hold one element)."""
    here = set(map(type, data))
    # set(map(type, ...)) runs in C: a long list of numbers is looked through at its speed.
    if here <= _NUMBERS:
        types |= here
        return
    for x in data:
        if isinstance(x, _SEQUENCES):
            _collect_types(x, types)
        elif isinstance(x, Tensor):
            types.add((x._array.dtype, x._array.size == 1))
        else:
            types.add(x.dtype if isinstance(x, np.ndarray | np.generic) else type(x))


def _join_lists(name: str, data: Any, types: set[Any], wanted: dtypes.DType | None) -> np.ndarray:
    """Nested lists as one numpy array, in whatever type numpy makes of them."""
    tensors = [k for k in types if isinstance(k, tuple)]
    if isinstance(data, _SEQUENCES) and not types <= _NUMBERS:
        data = _prepare_lists(data, all(one for _, one in tensors))
    try:
        found = np.asarray(data)
    except ValueError:
        raise ShapeError(f"{name}: the nested lists are ragged; all lists of one level must have one length") from None
    return _convert_huge_integers(name, found, types, wanted) if found.dtype == object and types <= _NUMBERS else found


def _convert_huge_integers(name: str, found: np.ndarray, types: set[Any], wanted: dtypes.DType | None) -> np.ndarray:
    """Python's integers beyond 64 bits as floating or complex numbers, where the type or their neighbours ask for such."""
    inexact = {float, complex} & types if wanted is None else wanted.kind in ("float", "complex", "float8")
    if not inexact:
        raise NumberRangeError(
            f"{name}: an integer does not fit {'int64' if wanted is None else wanted.name}; give dtype=tritensor.float64, or smaller numbers"
        )
    try:
        return found.astype(np.complex128 if complex in types else np.float64)
    except OverflowError:
        raise NumberRangeError(f"{name}: an integer is beyond what float64 holds; give smaller numbers") from None


def _prepare_lists(data: Any, numbers: bool) -> Any:
    """Nested lists with their tensors as arrays, 0-d ones where all are `numbers`; small floats that numpy cannot join as float32."""
    if isinstance(data, _SEQUENCES):
        return [_prepare_lists(d, numbers) for d in data]
    if isinstance(data, Tensor):
        data = to_host(data._array)
        data = data.reshape(()) if numbers else data
    # numpy's asarray knows no common type of ml_dtypes (bfloat16, float8) and others.
    if isinstance(data, np.ndarray | np.generic) and data.dtype.isbuiltin == 2:
        return data.astype(np.float32)
    return data


def _require_numbers(name: str, found: np.ndarray, data: Any) -> np.ndarray:
    if found.dtype.kind in "OUSmM":
        raise DTypeError(
            f"{name}: {type(data).__name__} {str(data)[:40]!r} does not hold numbers; give numbers, nested lists of them, or an array"
        )
    return found


def _default_type(found: np.ndarray) -> dtypes.DType | None:
    """The type of Python numbers: the default floating or complex type in place of numpy's."""
    if found.dtype == np.float64:
        return dtypes.default_float()
    return dtypes.default_complex() if found.dtype == np.complex128 else None


_EXAMPLES = {bool: False, int: 0, float: 0.0, complex: 0j}


def _common_type(types: set[Any], found: np.ndarray) -> dtypes.DType:
    """The type that all members of mixed nested lists promote to, as equals."""
    common = None
    for kind in types:
        if isinstance(kind, tuple):
            one = kind[0]
        elif isinstance(kind, np.dtype):
            one = kind
        else:
            one = dtypes.of_number(_EXAMPLES[kind]).numpy if kind in _EXAMPLES else found.dtype
        common = one if common is None else dtypes.promote(common, one, "tensor")
    return dtypes.of(found.dtype if common is None else common)


def _refuse_out_of_range(name: str, x: np.ndarray, wanted: dtypes.DType) -> None:
    """Python numbers that the type cannot hold raise; arrays and tensors are cast, and wrap."""
    if x.dtype.kind == "c" and not wanted.is_complex:
        raise DTypeError(f"{name}: complex numbers for {wanted.name}; give dtype=tritensor.complex64, or their real parts")
    if wanted.kind not in ("uint", "int") or not x.size or x.dtype.kind not in "iuf":
        return
    info = np.iinfo(wanted.numpy)
    for n in (x.min(), x.max()):
        if not info.min <= n <= info.max:  # NaN too
            raise NumberRangeError(f"{name}: {n} does not fit {wanted.name} ({info.min} to {info.max}); give a wider dtype=")


def _cast_to(x: np.ndarray, wanted: dtypes.DType | None) -> np.ndarray:
    if wanted is None:
        return x
    with np.errstate(invalid="ignore", over="ignore"):
        return x if x.dtype == wanted.numpy else dtypes.astype(x, wanted.numpy)
