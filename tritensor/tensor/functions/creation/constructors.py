"""Making tensors: from data, from a shape, from another tensor."""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import index as as_index
from typing import Any

import numpy as np

from tritensor.cuda.memory import pinned
from tritensor.ground import dtypes
from tritensor.ground.device import as_device, cpu, device
from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.ground.strides import as_format, contiguous_format, contiguous_strides, dims_by_stride, preserve_format, strides_in_format
from tritensor.ground.transforms import WrappedArray, transform
from tritensor.ops import array
from tritensor.ops.array import from_host
from tritensor.ops.lazy_array import note_shared
from tritensor.ops.table import ops
from tritensor.tensor import dlpack
from tritensor.tensor.core import Tensor, new_tensor
from tritensor.tensor.functions.shaping.moving import pin_memory as to_pinned
from tritensor.tensor.functions.shaping.reshaping import parse_sizes, unpack_sequence
from tritensor.tensor.parsing.data import is_made_anew, parse_values
from tritensor.tensor.public_api.publish import function


def numpy_type(dtype: Any) -> np.dtype:
    """The numpy dtype meant by `dtype=`; None is the default floating type."""
    return dtypes.default_float().numpy if dtype is None else dtypes.as_dtype(dtype).numpy


def finish_tensor(t: Tensor, requires_grad: bool, pin_memory: bool = False) -> Tensor:
    """A new tensor as its maker was asked for it."""
    if pin_memory:
        t = to_pinned(t)
    return t.requires_grad_() if requires_grad else t


# -- from data
@function(method=False)
def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    """A copy of data: a number, nested lists, a numpy array, a tensor.

    Python floats become the default floating type (float32), ints int64, bools bool; numpy arrays and tensors keep theirs.
    Raises ShapeError for ragged lists, DTypeError for what is no number.

    >>> tt.tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]])
    >>> tt.tensor([1.0, 2.0]).dtype, tt.tensor(True).dtype
    (tritensor.float32, tritensor.bool)
    """
    # A copy of a tensor stays on its device unless another is given.
    where = as_device(device) if device is not None else data.device if isinstance(data, Tensor) else as_device(None)
    values = parse_values("tensor", data, dtype)
    made = new_tensor(values if where is cpu and is_made_anew(data) else from_host(values, where))
    return finish_tensor(made, requires_grad, pin_memory) if requires_grad or pin_memory else made


@function(method=False)
def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Data as a tensor, without a copy where it is a tensor, or a numpy array for the CPU, of the type asked for."""
    if isinstance(data, Tensor):
        return data if dtype is None and device is None else data.to(device=device, dtype=dtype)
    values = parse_values("as_tensor", data, dtype)
    dtypes.of(values.dtype)
    where = as_device(device)
    if isinstance(data, np.ndarray):
        note_shared(values)
    return new_tensor(values if where.type == "cpu" else from_host(values, where))


@function(method=False)
def asarray(obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None, requires_grad: bool = False) -> Tensor:
    """Data as a tensor, without a copy where that can be.

    Args:
        copy: True for one in any case; False for none, which raises ValueError where the data has to be converted or moved.

    The result is a leaf: it stands outside the graph of a tensor that is given.
    """
    memory = obj._array if isinstance(obj, Tensor) else obj if isinstance(obj, np.ndarray) else None
    made = as_tensor(obj, dtype, device)
    # Identity of memory, not of objects: a numpy array is wrapped without a copy.
    same = memory is not None and made._array is memory
    if copy is False and not same:
        raise ArgumentError("asarray: the data cannot be had without a copy; leave copy=False out, or convert it before")
    found = made.detach()
    if copy and same:
        found = found.clone()
    return finish_tensor(found, requires_grad)


@function(method=False, bare=True)
def from_numpy(ndarray: np.ndarray) -> Tensor:
    """A tensor on the memory of a numpy array: writes are seen on both sides.

    >>> import numpy as np
    >>> a = np.zeros(3, dtype=np.float32)
    >>> x = tt.from_numpy(a)
    >>> x[0] = 5
    >>> a
    array([5., 0., 0.], dtype=float32)
    """
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"from_numpy: {type(ndarray).__name__} is no numpy array; use tensor(...)")
    dtypes.of(ndarray.dtype, "from_numpy")  # raises for what no tensor holds
    note_shared(ndarray)
    return new_tensor(ndarray)


@function(method=False, maker=True)
def scalar_tensor(s: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A 0-d tensor, floating unless dtype says otherwise."""
    return full((), s, dtype=numpy_type(dtype), device=device)


# -- from a shape
def _parse_shape(name: str, shape: Any) -> tuple[int, ...]:
    found = parse_sizes(name, shape) if shape else ()
    if min(found, default=0) < 0:
        raise ShapeError(f"{name}: shape {found} has a negative size; give sizes of 0 or more")
    # numpy's own error for such a size names neither the function nor the shape.
    if math.prod(found) >= 1 << 60:
        raise ShapeError(f"{name}: shape {found} has {math.prod(found)} elements, more than memory can address; give smaller sizes")
    return found


def _full(shape: tuple[int, ...], value: Any, dtype: Any, where: Any) -> Tensor:
    return ops.full(shape=shape, value=value, dtype=numpy_type(dtype), device=as_device(where))


@function(method=False, maker=True, out=True)
def zeros(*size: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Zeros of a shape: `zeros(2, 3)` or `zeros((2, 3))`.

    >>> tt.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    >>> tt.zeros(2, dtype=tt.int64)
    tensor([0, 0])
    """
    return _full(_parse_shape("zeros", size), 0, dtype, device)


@function(method=False, maker=True, out=True)
def ones(*size: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones of a shape."""
    return _full(_parse_shape("ones", size), 1, dtype, device)


@function(method=False, maker=True, out=True)
def empty(*size: Any, dtype: Any = None, device: Any = None, pin_memory: bool = False, memory_format: Any = None) -> Tensor:
    """Uninitialised memory of a shape, in C order or another memory format."""
    shape = _parse_shape("empty", size)
    where, kind = as_device(device), numpy_type(dtype)
    wanted = as_format("empty", memory_format, contiguous_format)
    if wanted is not contiguous_format:
        strides = strides_in_format(shape, contiguous_strides(shape), wanted)
        made = new_tensor(array.empty(shape, kind, where, strides))
    else:
        made = new_tensor(pinned.empty(shape, kind) if pin_memory and where.type == "cpu" else array.empty(shape, kind, where))
    return to_pinned(made) if pin_memory else made


def _to_number(name: str, fill_value: Any) -> Any:
    """The Python number that a number, or an array or tensor of one element, is."""
    # numpy scalars and tensors of one element are numbers here.
    value = fill_value.item() if hasattr(fill_value, "item") else fill_value
    if not isinstance(value, bool | int | float | complex):
        raise TypeError(f"{name}: fill_value is {fill_value!r}; give a number")
    return value


def _as_element(name: str, value: Any, dtype: Any) -> Any:
    """The number as `dtype` holds it. Raises NumberRangeError where it does not, DTypeError for an imaginary part in a real type."""
    return value if dtype is None else dtypes.as_element(numpy_type(dtype), value, name)


@function(method=False, maker=True, out=True)
def full(size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """One value in a shape; without dtype, bool, int64 or the default floating type as the value is."""
    value = _as_element("full", _to_number("full", fill_value), dtype)
    return _full(_parse_shape("full", (size,)) if size != () else (), value, dtypes.of_number(value) if dtype is None else dtype, device)


@function(method=False, maker=True)
def zeros_like(x: Tensor, *, dtype: Any = None, device: Any = None, memory_format: Any = None) -> Tensor:
    """Zeros of x's shape, dtype, device and layout, or in a memory format."""
    return _like(x, 0, dtype, device, memory_format)


@function(method=False, maker=True)
def ones_like(x: Tensor, *, dtype: Any = None, device: Any = None, memory_format: Any = None) -> Tensor:
    """Ones of x's shape, dtype, device and layout, or in a memory format."""
    return _like(x, 1, dtype, device, memory_format)


@function(method=False, maker=True)
def full_like(x: Tensor, fill_value: Any, *, dtype: Any = None, device: Any = None, memory_format: Any = None) -> Tensor:
    """One value in x's shape, dtype, device and layout, or in a memory format."""
    # Checked against the type before memory is made.
    value = _as_element("full_like", _to_number("full_like", fill_value), x.dtype if dtype is None else dtype)
    return _like(x, value, dtype, device, memory_format)


@function(method=False, maker=True)
def empty_like(x: Tensor, *, dtype: Any = None, device: Any = None, memory_format: Any = None) -> Tensor:
    """Uninitialised memory of x's shape, dtype, device and layout, or in a memory format."""
    where, kind = options_like(x, dtype, device)
    return make_in_layout(x, memory_format, lambda shape: new_tensor(array.empty(shape, kind, where)))


def options_like(x: Tensor, dtype: Any, where: Any) -> tuple[device, np.dtype]:
    """Device and dtype given, or x's own."""
    return x.device if where is None else as_device(where), x._array.dtype if dtype is None else numpy_type(dtype)


def make_in_layout(x: Tensor, memory_format: Any, make: Callable[[tuple[int, ...]], Tensor]) -> Tensor:
    """What `make` gives for x's shape, in x's layout (closed up where x has gaps) or in a memory format; it is filled along memory."""
    shape, wanted = tuple(x._array.shape), as_format("memory_format", memory_format, preserve_format)
    if type(x._array) is WrappedArray:
        return transform.current.like(make(shape), x)  # type: ignore[no-any-return]
    # The usual layout needs no permutation.
    if wanted is contiguous_format or (wanted is preserve_format and array.is_contiguous(x._array)):
        return make(shape)
    # Made in C order of the permuted shape and permuted back: filling runs along memory.
    order = dims_by_stride(strides_in_format(shape, array.element_strides(x._array), wanted))
    y = make(tuple([shape[d] for d in order]))
    return new_tensor(y._array.transpose(tuple([order.index(d) for d in range(len(shape))])))


def _like(x: Tensor, value: Any, dtype: Any, where: Any, memory_format: Any) -> Tensor:
    on, kind = options_like(x, dtype, where)
    return make_in_layout(x, memory_format, lambda shape: ops.full(shape=shape, value=value, dtype=kind, device=on))


def _publish_new(name: str, make: Callable[..., Tensor]) -> None:
    def method(self: Tensor, *given: Any, dtype: Any = None, device: Any = None, **options: Any) -> Tensor:
        # new_zeros and its like take type and device of the tensor, unless they are given.
        made = make(*given, dtype=self.dtype if dtype is None else dtype, device=self.device if device is None else device, **options)
        return made if type(self._array) is not WrappedArray else transform.current.like(made, self)  # type: ignore[no-any-return]

    method.__name__ = method.__qualname__ = f"new_{name}"
    method.__doc__ = f"{name}(...) of this tensor's dtype and device."
    setattr(Tensor, method.__name__, method)


for _name, _make in {"zeros": zeros, "ones": ones, "empty": empty, "full": full, "tensor": tensor}.items():
    _publish_new(_name, _make)


# -- matrices
@function(method=False, maker=True, out=True)
def eye(n: int, m: int | None = None, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones on the diagonal of an (n, m) matrix; m is n where not given."""
    return ops.eye(rows=as_index(n), columns=as_index(n if m is None else m), dtype=numpy_type(dtype), device=as_device(device))


@function(inplace=True, out=True)
def tril(x: Tensor, diagonal: int = 0) -> Tensor:
    """The lower triangle of the last two dimensions, zeros elsewhere."""
    return ops.tril(x, diagonal=int(diagonal))


@function(inplace=True, out=True)
def triu(x: Tensor, diagonal: int = 0) -> Tensor:
    """The upper triangle of the last two dimensions, zeros elsewhere."""
    return ops.triu(x, diagonal=int(diagonal))


@function(method=False)
def meshgrid(*tensors: Tensor, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Coordinates of the grid that vectors span, as views; indexing "ij" (matrix) or "xy" (Cartesian)."""
    given = unpack_sequence(tensors)
    if indexing not in ("ij", "xy"):
        raise ArgumentError(f"meshgrid: indexing {indexing!r} is neither 'ij' nor 'xy'")
    if not given:
        raise ArgumentError("meshgrid: no tensors; give one at least")
    # Cartesian order exchanges the first two axes, and leaves the others.
    swap = indexing == "xy" and len(given) > 1
    axes = list(range(len(given)))
    if swap:
        axes[0], axes[1] = 1, 0
    shape = [1] * len(given)
    for axis, x in zip(axes, given, strict=True):
        if len(x._array.shape) > 1:
            raise ShapeError(
                f"meshgrid: a tensor of shape {tuple(x._array.shape)} is not a vector; give tensors of one dimension, such as x.flatten()"
            )
        shape[axis] = x._array.size
    out = []
    for axis, x in zip(axes, given, strict=True):
        along_axis = ops.reshape(x, shape=tuple(x._array.size if d == axis else 1 for d in range(len(given))))
        out.append(ops.expand(along_axis, shape=tuple(shape)))
    return tuple(out)


@function(method=False)
def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor on the memory of anything that speaks DLPack, or of a capsule, on the CPU or a GPU; on `device`, or a copy, where one is asked for.

    Raises ValueError for copy=False with a device to which the memory has to be copied, DeviceError for memory of other devices.
    """
    if isinstance(ext_tensor, Tensor):
        found = ext_tensor
    # A bare capsule is accepted, as PyTorch's older from_dlpack did.
    elif not hasattr(ext_tensor, "__dlpack__") and type(ext_tensor).__name__ != "PyCapsule":
        raise TypeError(f"from_dlpack: {type(ext_tensor).__name__} does not speak DLPack; give the array itself, or use tensor(...)")
    else:
        found = new_tensor(dlpack.import_array(ext_tensor))
    # DLPack has no copy to another device of its own: `to` moves it.
    moved = found if device is None else found.to(device)
    if copy is False and moved is not found:
        raise ArgumentError(f"from_dlpack: the memory is on {found.device}, device is {device}; leave copy=False out, or the device")
    return moved.clone() if copy and moved is found else moved


@function(method=False)
def to_dlpack(x: Tensor) -> Any:
    """A DLPack capsule on x's memory, to be taken once by another library's from_dlpack. Raises BufferError for a tensor that requires grad."""
    return x.__dlpack__()
