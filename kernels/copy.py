"""Copies and casts: the shared elementwise kernel with the formula x."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton

from tritensor import dtypes
from tritensor.array import Array, CudaArray, is_contiguous
from tritensor.errors import DTypeError
from tritensor.kernels.elementwise import empty_on_device, run, work
from tritensor.kernels.pointwise_samples import Domain, sample_calls, timed_calls
from tritensor.table import INTS, Sample, Spec, op, ops

_ANY = ("bool", *INTS, "float16", "bfloat16", "float32", "float64")


# y = x
@triton.jit
def _same(x):
    return x


def write(target: Array, source: Array) -> None:
    """target[...] = source, broadcast and cast: copies into an existing window of any strides, on either device.

    Overlapping windows of one memory are the caller's business (copy the source first).
    """
    if isinstance(target, CudaArray):
        assert isinstance(source, CudaArray)
        run((_same,), ((0,),), (source,), (target,), target.dtype)
        return
    assert isinstance(source, np.ndarray)
    np.copyto(target, source, casting="unsafe")


def contiguous(x: Array) -> Array:
    """x itself where it lies in C order, else a C-ordered copy."""
    if is_contiguous(x):
        return x
    return _copy_cuda(x) if isinstance(x, CudaArray) else np.array(x, order="C")


def _copy_cuda(x: CudaArray, *, out: CudaArray | None = None) -> CudaArray:
    if out is None:
        out = empty_on_device(x.shape, x.dtype, x)
    run((_same,), ((0,),), (x,), (out,), x.dtype)
    return out


def _copy(x: np.ndarray, *, out: np.ndarray | None = None) -> np.ndarray:
    """A C-ordered copy."""
    if out is None:
        return np.array(x, order="C")
    np.copyto(out, x)
    return out


def _pass(g: Any) -> Any:
    return g


def _cast(x: np.ndarray, *, dtype: np.dtype) -> np.ndarray:
    """x as another type: floats round to nearest even, floats to integers truncate, anything nonzero is True."""
    with np.errstate(all="ignore"):  # out-of-range values have no defined integer, infinities are what overflow gives
        if x.dtype.kind == "c" and dtype.kind != "c":
            x = x.real
        return x.astype(dtype, order="C")


def _cast_shape(x: Any, *, dtype: np.dtype) -> Spec:
    dtypes.of(dtype)
    return Spec(x.shape, dtype)


def _cast_cuda(x: CudaArray, *, dtype: np.dtype) -> CudaArray:
    if dtypes.of(dtype).triton is None:
        raise DTypeError(f"cast: {dtypes.of(dtype).name} lives on the CPU only; move the tensor there first with .cpu()")
    out = empty_on_device(x.shape, dtype, x)
    run((_same,), ((0,),), (x,), (out,), dtype)
    return out


def _cast_rule(g: Any, x_dtype: np.dtype) -> Any:
    return ops.cast(g, dtype=x_dtype)


def _cast_backward(g: CudaArray, x_dtype: np.dtype) -> CudaArray:
    return g if g.dtype == x_dtype else _cast_cuda(g, dtype=x_dtype)


def _cast_reference_backward(g: np.ndarray, x_dtype: np.dtype) -> np.ndarray:
    return g if g.dtype == x_dtype else _cast(g, dtype=x_dtype)


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
    "copy", _copy, shape=lambda x: Spec(x.shape, x.dtype), forward=_copy_cuda, rule=(_pass,), backward=(_pass,), reference_backward=(_pass,), into=True,
    broadcasts=False, dtypes=_ANY, samples=sample_calls((Domain(-2.0, 2.0),), False, (), None), sizes=timed_calls((Domain(-2.0, 2.0),)), work=work,
    doc="A C-ordered copy of x.",
)  # fmt: skip
op(
    "cast", _cast, shape=_cast_shape, forward=_cast_cuda, rule=(_cast_rule,), backward=(_cast_backward,), reference_backward=(_cast_reference_backward,),
    dtypes=_ANY, samples=_cast_samples, work=work,
)  # fmt: skip
