"""Triton's own classes among the arguments of a launch: descriptors, reinterpreted tensors, constants, mock tensors."""

from __future__ import annotations

from typing import Any

from tritensor.cuda.compiler.tensor_descriptor import TensorDescriptor
from tritensor.cuda.launch import register_conversion
from tritensor.cuda.memory.storage import Storage
from tritensor.ground import dtypes
from tritensor.ground.device import device, gpu
from tritensor.ground.errors import DeviceError, DTypeError
from tritensor.ground.thread_state import here
from tritensor.ops.array import CudaArray
from tritensor.ops.lazy_array import compute_now, run_before_write


def _array_behind(value: Any, kernel: str, parameter: str) -> CudaArray:
    """The array of a tensor that one of Triton's classes holds."""
    if hasattr(value, "_array"):
        compute_now(value)
        run_before_write(value._array)
    array = getattr(value, "_array", value)
    # exact: a wrapped array inside a transform has no address
    if type(array) is not CudaArray:
        raise DeviceError(f"launch {kernel}: {parameter} is of a {type(value).__name__} that is not on device cuda; make it of x.cuda()")
    return array


def _convert_descriptor(d: Any, kernel: str, parameter: str) -> TensorDescriptor:
    """triton.tools.tensor_descriptor.TensorDescriptor: a shape, strides and tiles over the memory that begins at a tensor's first element."""
    array = _array_behind(d.base, kernel, parameter)
    # the descriptor's own shape and strides: Triton lets it describe less than the tensor, or another order
    window = array.as_strided(tuple(int(n) for n in d.shape), tuple(int(n) for n in d.strides), 0)
    return TensorDescriptor(window, [int(n) for n in d.block_shape], d.padding, getattr(d, "round_f32_to_tf32", False))


def _convert_reinterpreted(x: Any, kernel: str, parameter: str) -> CudaArray:
    """triton.reinterpret(tensor, dtype): the same bytes as another type."""
    array = _array_behind(x.base, kernel, parameter)
    name = getattr(x.dtype, "name", str(x.dtype))
    wanted = next((d for d in dtypes.ALL if name in (d.triton, d.name)), None)
    if wanted is None or wanted.triton is None:
        raise DTypeError(f"launch {kernel}: {parameter} is reinterpreted as {x.dtype}, of which no tensor can be here")
    return array.view(wanted.numpy)


class _ForeignStorage(Storage):
    """The memory behind an object that says no more of it than an address and a type. It lives as long as the object, which is kept here."""

    __slots__ = ("holder",)
    bounded = False

    def __init__(self, holder: Any) -> None:
        self.holder = holder
        self.pointer, self.nbytes = holder.data_ptr(), 0
        of = getattr(holder, "device", None)
        self.device = gpu(of.index if isinstance(of, device) and of.index is not None else here.index)


def is_typed_pointer(value: Any) -> bool:
    """Whether it is an address with one of our types, which is all that Triton asks of a tensor: `data_ptr()` and `dtype`."""
    return hasattr(value, "data_ptr") and isinstance(getattr(value, "dtype", None), dtypes.DType)


def array_at_pointer(value: Any, kernel: str, parameter: str) -> CudaArray:
    """How a kernel sees such an object: a pointer, of which nobody knows how far it may go."""
    return CudaArray(_ForeignStorage(value), (1,), value.dtype.numpy)


class _MockStorage(Storage):
    """The memory of a tensor that a warm-up is told of by its type alone: an address that divides by 16."""

    __slots__ = ()

    def __init__(self) -> None:
        self.pointer, self.nbytes, self.device = 1 << 40, 256, gpu(0)


def replace_mocks(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of a warm-up with arrays in place of types (`kernel.warmup(torch.float32, ...)` as `MockTensor`s)."""
    return tuple([_mock_array(a) if isinstance(a, dtypes.DType) or is_mock(a) else a for a in args])


def _mock_array(like: Any) -> CudaArray:
    dtype = dtypes.as_dtype(like if isinstance(like, dtypes.DType) else like.dtype)
    return CudaArray(_MockStorage(), (16,), dtype.numpy)


def is_mock(value: Any) -> bool:
    """Whether it is what Triton stands for a tensor of which only the type is known."""
    cls = type(value)
    return cls.__name__ == "MockTensor" and cls.__module__ == "triton.runtime.jit"


def is_constexpr(value: Any) -> bool:
    """Whether it is a tl.constexpr made outside of a kernel."""
    import triton.language as tl

    return isinstance(value, tl.constexpr)


def is_function(value: Any) -> bool:
    """Whether it is a function for kernels, which is compiled into the one that is given it."""
    return isinstance(value, _function_classes())


def _function_classes() -> tuple[type, ...]:
    import sys

    from triton.runtime.jit import JITFunction

    interpreter = sys.modules.get("triton.runtime.interpreter")
    return (JITFunction,) if interpreter is None else (JITFunction, interpreter.InterpretedFunction)


def install() -> None:
    """Tell launch() how kernels see them."""
    from triton.runtime.jit import TensorWrapper
    from triton.tools.tensor_descriptor import TensorDescriptor as Theirs

    register_conversion(Theirs, _convert_descriptor)
    register_conversion(TensorWrapper, _convert_reinterpreted)
