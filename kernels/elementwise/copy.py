"""Copies and casts: the shared elementwise kernel with the formula x."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.device import cpu
from tritensor.ground.errors import DTypeError
from tritensor.ground.strides import (
    MemoryFormat,
    channels_last,
    channels_last_3d,
    contiguous_format,
    contiguous_strides,
    preserve_format,
    strides_in_format,
)
from tritensor.kernels.parts.allocation import allocate_result
from tritensor.kernels.parts.copying import convert, copied
from tritensor.kernels.parts.cpu.float_conversions import as_integers, converted
from tritensor.kernels.parts.elementwise import work
from tritensor.kernels.parts.pointwise_samples import Domain, sample_calls, timed_calls
from tritensor.ops.array import CudaArray, element_strides, empty, refuse_no_kernel_type
from tritensor.ops.table import INTS, Sample, Spec, op, ops

_ANY = ("bool", *INTS, "float16", "bfloat16", "float32", "float64")


def _copy_reference(x: np.ndarray, *, memory_format: MemoryFormat = contiguous_format) -> np.ndarray:
    """A copy of x, C-ordered or in another memory format."""
    return x.copy()


def _copy_cpu(x: np.ndarray, *, memory_format: MemoryFormat = contiguous_format, out: np.ndarray | None = None) -> np.ndarray:
    if out is None:
        if memory_format is contiguous_format or (memory_format is preserve_format and x.flags.c_contiguous):
            return np.array(x, order="C")
        out = cast(np.ndarray, empty(x.shape, x.dtype, cpu, strides_in_format(x.shape, element_strides(x), memory_format)))
    np.copyto(out, x)
    return out


def _copy_shape(x: Any, *, memory_format: MemoryFormat = contiguous_format) -> Spec:
    strides_in_format(tuple(x.shape), contiguous_strides(x.shape), memory_format)  # refuses one of another number of dimensions
    return Spec(x.shape, x.dtype)


def _copy_samples(rng: np.random.Generator) -> list[Sample]:
    plain = sample_calls((Domain(-2.0, 2.0),), False, (), None)(rng)
    image, volume = rng.uniform(-2, 2, (2, 3, 4, 5)), rng.uniform(-2, 2, (2, 3, 2, 2, 2))
    return [
        *plain,
        Sample(image, memory_format=channels_last),
        Sample(volume, memory_format=channels_last_3d),
        Sample(image, memory_format=preserve_format),
    ]


def _pass(g: Any) -> Any:
    return g


def _cast_reference(x: np.ndarray, *, dtype: np.dtype) -> np.ndarray:
    """x as another type: floats round to nearest even, floats to integers truncate, anything nonzero is True.

    Floats that an integer cannot hold, NaN too: of int32 and int64 the least, of narrower types the low bits of int32, of uint32 those of int64.
    """
    return x.astype(dtype)


def _cast_cpu(x: np.ndarray, *, dtype: np.dtype) -> np.ndarray:
    if dtypes.of(dtype).kind == "float8":  # through float32, as in the kernel
        x = x.astype(np.float32, copy=False)
    if x.dtype.kind in "fV":
        return as_integers(x, dtype) if dtype.kind in "iu" else converted(x, dtype)
    return x.astype(dtype)


def _cast_shape(x: Any, *, dtype: np.dtype) -> Spec:
    if dtypes.of(x.dtype).kind == "complex" and dtypes.of(dtype).kind not in ("complex", "bool"):  # a number is True by either part
        # A function that drops it on purpose takes the real part itself, as tensor/casting.py does.
        raise DTypeError(f"cast: {dtypes.of(x.dtype).name} to {dtypes.of(dtype).name} would drop the imaginary part; use .real or .abs()")
    return Spec(x.shape, dtype)


def _cast_cuda(x: CudaArray, *, dtype: np.dtype) -> CudaArray:
    refuse_no_kernel_type("cast", dtype)
    out = allocate_result((x,), x.shape, dtype)
    convert(x, out)
    return out


def _cast_rule(g: Any, x_dtype: np.dtype) -> Any:
    if g._array.dtype.kind == "c" and x_dtype.kind != "c":
        g = ops.real(g)
    return ops.cast(g, dtype=x_dtype)


def _cast_backward(g: CudaArray, x_dtype: np.dtype) -> CudaArray:
    return g if g.dtype == x_dtype else _cast_cuda(g, dtype=x_dtype)


def _cast_cpu_backward(g: np.ndarray, x_dtype: np.dtype) -> np.ndarray:
    if g.dtype.kind == "c" and x_dtype.kind != "c":
        g = g.real
    return g if g.dtype == x_dtype else _cast_cpu(g, dtype=x_dtype)


def _cast_samples(rng: np.random.Generator) -> list[Sample]:
    x = rng.uniform(-3, 3, (3, 5))
    found = [
        Sample(x, dtype=dtypes.as_dtype(t).numpy, smooth=t == "float64")
        for t in ("float64", "float32", "bfloat16", "float16", "bool", "int8", "int64")
    ]
    halves = np.array([1 + 2**-9, 1 + 3 * 2**-9, 1 + 2**-12, 65519.0, -0.0, np.inf, np.nan])  # ties of bfloat16 and float16
    found += [Sample(halves, dtype=dtypes.as_dtype(t).numpy, smooth=False) for t in ("bfloat16", "float16", "float32")]
    whole = rng.integers(-100, 100, (135,))
    return found + [Sample(whole.astype(t), dtype=dtypes.as_dtype("float32").numpy) for t in (np.int8, np.int64)]


op(
    "copy", _copy_reference, cpu=_copy_cpu, shape=_copy_shape, forward=copied, rule=(_pass,), backward=(_pass,), cpu_backward=(_pass,), into=True,
    layout="own", dtypes=_ANY, samples=_copy_samples, sizes=timed_calls((Domain(-2.0, 2.0),)), work=work,
)  # fmt: skip
op(
    "cast", _cast_reference, cpu=_cast_cpu, shape=_cast_shape, forward=_cast_cuda, rule=(_cast_rule,), backward=(_cast_backward,),
    cpu_backward=(_cast_cpu_backward,), layout="elementwise", holomorphic=False, dtypes=_ANY, samples=_cast_samples, work=work,
)  # fmt: skip
