"""Making tensors: from data, from a shape, from another tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor import array, dtypes
from tritensor.array import from_host, to_host
from tritensor.cuda import pinned
from tritensor.device import as_device, device
from tritensor.errors import DeviceError, DTypeError, ShapeError
from tritensor.table import ops
from tritensor.tensor.core import Tensor, new_tensor
from tritensor.tensor.moving import pin_memory as to_pinned
from tritensor.tensor.publish import function
from tritensor.tensor.shaping import sizes


def numpy_type(dtype: Any) -> np.dtype:
    """The numpy dtype meant by `dtype=`; None is the default floating type."""
    return dtypes.default_float().numpy if dtype is None else dtypes.as_dtype(dtype).numpy


def finished(t: Tensor, requires_grad: bool, pin_memory: bool = False) -> Tensor:
    """A new tensor as its maker was asked for it."""
    if pin_memory:
        t = to_pinned(t)
    return t.requires_grad_() if requires_grad else t


# -- from data
def _plain(data: Any) -> Any:
    """Nested lists with their tensors replaced by numbers."""
    if isinstance(data, Tensor):
        return to_host(data.array)
    if isinstance(data, list | tuple):
        return [_plain(d) for d in data]
    return data


def values_of(name: str, data: Any, dtype: Any) -> np.ndarray:
    """Data as a numpy array: Python floats in the default type, ints int64, bools bool, numpy's own types kept."""
    if isinstance(data, Tensor):
        found = to_host(data.array)
    elif isinstance(data, np.ndarray | np.generic):
        found = np.asarray(data)
    else:
        try:
            found = np.asarray(_plain(data))
        except ValueError:
            raise ShapeError(f"{name}: the nested lists are ragged; all lists of one level must have one length") from None
        except OverflowError:
            raise ShapeError(f"{name}: an integer does not fit int64; give dtype=tritensor.float64, or smaller numbers") from None
        if dtype is None and found.dtype == np.float64 and not hasattr(data, "dtype") and not _holds_arrays(data):
            found = found.astype(dtypes.default_float().numpy)
        elif dtype is None and found.dtype == np.complex128 and not hasattr(data, "dtype"):
            found = found.astype(dtypes.as_dtype(complex).numpy)
    if found.dtype.kind in "OUSmM":
        raise DTypeError(
            f"{name}: {type(data).__name__} {str(data)[:40]!r} does not hold numbers; give numbers, nested lists of them, or an array"
        )
    if dtype is None:
        return found
    wanted = dtypes.as_dtype(dtype)
    if found.dtype.kind in "iu" and wanted.kind in ("uint", "int") and found.size and not hasattr(data, "dtype"):
        _refuse_overflow(name, found, wanted)
    return _cast(found, wanted.numpy)


def _refuse_overflow(name: str, x: np.ndarray, dtype: dtypes.DType) -> None:
    """Python integers that the type cannot hold raise; arrays and tensors are cast, and wrap."""
    info = np.iinfo(dtype.numpy)
    for n in (int(x.min()), int(x.max())):
        if not info.min <= n <= info.max:
            raise OverflowError(f"{name}: {n} does not fit {dtype.name} ({info.min} to {info.max}); give a wider dtype=")


def _cast(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    with np.errstate(invalid="ignore", over="ignore"):
        return x.astype(dtype, copy=False)


def _holds_arrays(data: Any) -> bool:
    """Whether nested lists hold float64 arrays or tensors, whose type is kept."""
    while isinstance(data, list | tuple) and data:
        data = data[0]
    return hasattr(data, "dtype")


@function(method=False)
def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    """A copy of data: a number, nested lists, a numpy array, a tensor.

    Python floats become the default floating type (float32), ints int64, bools bool; numpy arrays and tensors keep theirs.
    Raises ShapeError for ragged lists, DTypeError for what is no number.
    """
    where = as_device(device) if device is not None else data.device if isinstance(data, Tensor) else as_device(None)
    return finished(new_tensor(from_host(values_of("tensor", data, dtype), where)), requires_grad, pin_memory)


@function(method=False, names=("asarray",))
def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Data as a tensor, without a copy where it is a tensor, or a numpy array for the CPU, of the type asked for."""
    if isinstance(data, Tensor):
        return data if dtype is None and device is None else data.to(device=device, dtype=dtype)
    values = values_of("as_tensor", data, dtype)
    dtypes.of(values.dtype)
    where = as_device(device)
    return new_tensor(values if where.type == "cpu" else from_host(values, where))


@function(method=False)
def from_numpy(x: np.ndarray) -> Tensor:
    """A tensor on the memory of a numpy array: writes are seen on both sides."""
    if not isinstance(x, np.ndarray):
        raise TypeError(f"from_numpy: {type(x).__name__} is no numpy array; use tensor(...)")
    dtypes.of(x.dtype)
    return new_tensor(x)


@function(method=False, names=("scalar_tensor",))
def scalar_tensor(value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A 0-d tensor, floating unless dtype says otherwise."""
    return full((), value, dtype=numpy_type(dtype), device=device, requires_grad=requires_grad)


# -- from a shape
def _shaped(name: str, shape: Any) -> tuple[int, ...]:
    found = sizes(name, shape) if shape else ()
    if min(found, default=0) < 0:
        raise ShapeError(f"{name}: shape {found} has a negative size")
    return found


def _filled(shape: tuple[int, ...], value: Any, dtype: Any, where: Any, requires_grad: bool, pin_memory: bool = False) -> Tensor:
    return finished(ops.full(shape=shape, value=value, dtype=numpy_type(dtype), device=as_device(where)), requires_grad, pin_memory)


@function(method=False)
def zeros(
    *given: Any, size: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    """Zeros of a shape: `zeros(2, 3)` or `zeros((2, 3))`."""
    return _filled(_shaped("zeros", given if size is None else (size,)), 0, dtype, device, requires_grad, pin_memory)


@function(method=False)
def ones(
    *given: Any, size: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    """Ones of a shape."""
    return _filled(_shaped("ones", given if size is None else (size,)), 1, dtype, device, requires_grad, pin_memory)


@function(method=False)
def empty(
    *given: Any, size: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    """Uninitialised memory of a shape."""
    shape = _shaped("empty", given if size is None else (size,))
    where, kind = as_device(device), numpy_type(dtype)
    made = pinned.empty(shape, kind) if pin_memory and where.type == "cpu" else array.empty(shape, kind, where)
    return finished(new_tensor(made), requires_grad, pin_memory)


def _type_of_value(value: Any, dtype: Any) -> Any:
    if dtype is not None:
        return dtype
    return bool if isinstance(value, bool) else int if isinstance(value, int) else complex if isinstance(value, complex) else float


@function(method=False)
def full(size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """One value in a shape; without dtype, bool, int64 or the default floating type as the value is."""
    value = fill_value.item() if hasattr(fill_value, "item") else fill_value
    return _filled(_shaped("full", (size,)) if size != () else (), value, _type_of_value(value, dtype), device, requires_grad)


@function(method=False)
def zeros_like(x: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, memory_format: Any = None) -> Tensor:
    """Zeros of x's shape, dtype and device."""
    return _like(x, 0, dtype, device, requires_grad)


@function(method=False)
def ones_like(x: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, memory_format: Any = None) -> Tensor:
    """Ones of x's shape, dtype and device."""
    return _like(x, 1, dtype, device, requires_grad)


@function(method=False)
def full_like(x: Tensor, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """One value in x's shape, dtype and device."""
    return _like(x, fill_value.item() if hasattr(fill_value, "item") else fill_value, dtype, device, requires_grad)


@function(method=False)
def empty_like(x: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, memory_format: Any = None) -> Tensor:
    """Uninitialised memory of x's shape, dtype and device."""
    where, kind = like_options(x, dtype, device)
    return finished(new_tensor(array.empty(tuple(x.array.shape), kind, where)), requires_grad)


def like_options(x: Tensor, dtype: Any, where: Any) -> tuple[device, np.dtype]:
    """Device and dtype given, or x's own."""
    return x.device if where is None else as_device(where), x.array.dtype if dtype is None else numpy_type(dtype)


def _like(x: Tensor, value: Any, dtype: Any, where: Any, requires_grad: bool) -> Tensor:
    on, kind = like_options(x, dtype, where)
    return finished(ops.full(shape=tuple(x.array.shape), value=value, dtype=kind, device=on), requires_grad)


def _new(name: str, make: Callable[..., Tensor]) -> None:
    def method(self: Tensor, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
        return make(
            *size,
            dtype=self.dtype if dtype is None else dtype,
            device=self.device if device is None else device,
            requires_grad=requires_grad,
        )

    method.__name__ = method.__qualname__ = f"new_{name}"
    method.__doc__ = f"{name}(...) of this tensor's dtype and device."
    setattr(Tensor, method.__name__, method)


for _name, _make in {"zeros": zeros, "ones": ones, "empty": empty, "full": full, "tensor": tensor}.items():
    _new(_name, _make)


# -- sequences and matrices
@function(method=False)
def arange(start: Any = 0, end: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """start, start + step, ... before end; `arange(n)` counts from 0. int64 for integers, else the default floating type."""
    if end is None:
        start, end = 0, start
    low, high, by = (v.item() if hasattr(v, "item") else v for v in (start, end, step))
    kind = dtype if dtype is not None else float if any(isinstance(v, float) for v in (low, high, by)) else int
    return finished(ops.arange(start=low, end=high, step=by, dtype=numpy_type(kind), device=as_device(device)), requires_grad)


@function(method=False)
def linspace(start: Any, end: Any, steps: int, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """`steps` numbers from start to end, both included."""
    y = ops.linspace(start=float(start), end=float(end), steps=int(steps), dtype=numpy_type(dtype), device=as_device(device))
    return finished(y, requires_grad)


@function(method=False)
def logspace(
    start: Any, end: Any, steps: int, base: float = 10.0, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """base ** linspace(start, end, steps)."""
    values = np.power(base, np.linspace(float(start), float(end), int(steps))).astype(numpy_type(dtype))
    return finished(new_tensor(from_host(values, as_device(device))), requires_grad)


@function(method=False)
def eye(n: int, m: int | None = None, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Ones on the diagonal of an (n, m) matrix; m is n where not given."""
    y = ops.eye(rows=int(n), columns=int(n if m is None else m), dtype=numpy_type(dtype), device=as_device(device))
    return finished(y, requires_grad)


@function(inplace=True)
def tril(x: Tensor, diagonal: int = 0) -> Tensor:
    """The lower triangle of the last two dimensions, zeros elsewhere."""
    return ops.tril(x, diagonal=int(diagonal))


@function(inplace=True)
def triu(x: Tensor, diagonal: int = 0) -> Tensor:
    """The upper triangle of the last two dimensions, zeros elsewhere."""
    return ops.triu(x, diagonal=int(diagonal))


@function(method=False)
def tril_indices(row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Row and column numbers of the lower triangle: (2, count)."""
    found = np.stack(np.tril_indices(row, offset, col)).astype(numpy_type(dtype or int))
    return new_tensor(from_host(found, as_device(device)))


@function(method=False)
def triu_indices(row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Row and column numbers of the upper triangle: (2, count)."""
    found = np.stack(np.triu_indices(row, offset, col)).astype(numpy_type(dtype or int))
    return new_tensor(from_host(found, as_device(device)))


@function(method=False)
def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Coordinates of the grid that vectors span, as views; indexing "ij" (matrix) or "xy" (Cartesian)."""
    given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], tuple | list) else tensors
    if indexing not in ("ij", "xy"):
        raise ValueError(f"meshgrid: indexing {indexing!r} is neither 'ij' nor 'xy'")
    swap = indexing == "xy" and len(given) > 1
    axes = list(range(len(given)))
    if swap:
        axes[0], axes[1] = 1, 0
    shape = [1] * len(given)
    for axis, x in zip(axes, given, strict=True):
        if len(x.array.shape) > 1:
            raise ShapeError(f"meshgrid: a tensor of shape {tuple(x.array.shape)} is not a vector")
        shape[axis] = x.array.size
    out = []
    for axis, x in zip(axes, given, strict=True):
        lined = ops.reshape(x, shape=tuple(x.array.size if d == axis else 1 for d in range(len(given))))
        out.append(ops.expand(lined, shape=tuple(shape)))
    return tuple(out)


@function(method=False)
def from_dlpack(x: Any) -> Tensor:
    """A tensor on the memory of anything that speaks DLPack and lives on the CPU."""
    if isinstance(x, Tensor):
        return x
    if not hasattr(x, "__dlpack__"):
        raise TypeError(f"from_dlpack: {type(x).__name__} does not speak DLPack; give the array itself, or use tensor(...)")
    if hasattr(x, "__dlpack_device__") and int(x.__dlpack_device__()[0]) != 1:
        raise DeviceError("from_dlpack: the memory is not on the CPU; copy it there first")
    return new_tensor(np.from_dlpack(x))
