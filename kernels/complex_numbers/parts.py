"""Complex numbers, which live on the CPU: conjugates, their parts as views, and a complex number made of two real ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.ground.errors import DTypeError, ShapeError
from tritensor.kernels.parts.pointwise_samples import complex_normals
from tritensor.ops.array import CudaArray, element_strides
from tritensor.ops.strided_array import StridedArray
from tritensor.ops.table import Sample, Spec, op, ops

COMPLEX = ("complex64", "complex128")
_REAL: dict[np.dtype, np.dtype] = {np.dtype(np.complex64): np.dtype(np.float32), np.dtype(np.complex128): np.dtype(np.float64)}
_WHOLE: dict[np.dtype, np.dtype] = {real: whole for whole, real in _REAL.items()}


def _refuse_real(name: str, x: Any) -> None:
    if x.dtype not in _REAL:
        raise DTypeError(f"{name}: x is {x.dtype}, which has no imaginary part; it takes complex64 and complex128")


def _samples(rng: np.random.Generator) -> list[Sample]:
    return [Sample(complex_normals(rng, *shape)) for shape in ((), (7,), (3, 5), (2, 3, 4), (0, 2))]


# conj: y = re x - i im x
def _conj_shape(x: Any) -> Spec:
    _refuse_real("conj", x)
    return Spec(x.shape, x.dtype)


op(
    "conj", lambda x: x.real - 1j * x.imag, cpu=np.conjugate, shape=_conj_shape, samples=_samples, host=True, holomorphic=False,
    layout="elementwise", dtypes=COMPLEX, rule=lambda g: ops.conj(g), doc="The complex conjugate.",
)  # fmt: skip


# real, imag: views of every other number in memory
def _part_shape(name: str) -> Any:
    def shape(x: Any) -> Spec:
        _refuse_real(name, x)
        return Spec(x.shape, _REAL[x.dtype])

    return shape


def _imag_rule(g: Any, x_dtype: np.dtype) -> Any:
    return ops.mul(ops.cast(g, dtype=x_dtype), 1j)


op(
    "real", lambda x: x.real, shape=_part_shape("real"), samples=_samples, view=True, holomorphic=False, dtypes=COMPLEX,
    rule=lambda g, x_dtype: ops.cast(g, dtype=x_dtype), cpu_backward=lambda g, x_dtype: g.astype(x_dtype),
    doc="The real parts.",
)  # fmt: skip
op(
    "imag", lambda x: x.imag, shape=_part_shape("imag"), samples=_samples, view=True, holomorphic=False, dtypes=COMPLEX, rule=_imag_rule,
    cpu_backward=lambda g, x_dtype: g.astype(x_dtype) * 1j,
    doc="The imaginary parts.",
)  # fmt: skip


# view_as_real: y[..., 0] = re x, y[..., 1] = im x, and view_as_complex the other way
def _view_as_real(x: Any) -> Any:
    if not isinstance(x, np.ndarray):
        return x.real.as_strided((*x.shape, 2), (*x.real.strides, 1), 0)
    return np.lib.stride_tricks.as_strided(x.real, (*x.shape, 2), (*x.strides, _REAL[x.dtype].itemsize))


def _view_as_real_shape(x: Any) -> Spec:
    _refuse_real("view_as_real", x)
    return Spec((*x.shape, 2), _REAL[x.dtype])


def _view_as_complex(x: Any) -> Any:
    steps = element_strides(x)
    if (steps[-1] != 1 or any(s % 2 for s in steps[:-1])) and x.size:
        raise ShapeError(f"view_as_complex: strides {steps}: the last must be 1 and the others even; use it on a contiguous() copy")
    if x.size or isinstance(x, StridedArray):
        return x.view(_WHOLE[x.dtype])[..., 0]
    return np.empty(x.shape[:-1], _WHOLE[x.dtype])


def _view_as_complex_shape(x: Any) -> Spec:
    if isinstance(x, CudaArray) or x.dtype not in _WHOLE:
        raise DTypeError(f"view_as_complex: x is {x.dtype}; it takes float32 and float64, on the CPU, where complex numbers live")
    if not x.shape or x.shape[-1] != 2:
        raise ShapeError(f"view_as_complex: x {tuple(x.shape)}: its last size must be 2, a real and an imaginary part")
    return Spec(tuple(x.shape[:-1]), _WHOLE[x.dtype])


def _pairs(rng: np.random.Generator) -> list[Sample]:
    return [Sample(rng.normal(size=(*shape, 2)), in_c_order=True) for shape in ((), (7,), (3, 5))]


op(
    "view_as_real", _view_as_real, shape=_view_as_real_shape, samples=_samples, view=True, holomorphic=False, dtypes=COMPLEX,
    rule=lambda g: ops.complex(*[ops.index_view(g, index=(slice(None),) * (g.ndim - 1) + (part,)) for part in (0, 1)]),
    cpu_backward=lambda g: _view_as_complex(np.asarray(g, order="C")),
    doc="The two parts of every number along a new last dimension.",
)  # fmt: skip
op(
    "view_as_complex", _view_as_complex, shape=_view_as_complex_shape, samples=_pairs, view=True, holomorphic=False, dtypes=("float64", "float32"),
    rule=lambda g: ops.view_as_real(g), cpu_backward=lambda g: _view_as_real(np.asarray(g, order="C")),
    doc="Pairs along the last dimension as complex numbers.",
)  # fmt: skip


# complex: y = a + i b
def _complex_cpu(real: np.ndarray, imag: np.ndarray) -> np.ndarray:
    shape = np.broadcast_shapes(real.shape, imag.shape)
    y = np.empty(shape, _WHOLE[real.dtype])
    y.real, y.imag = real, imag
    return y


def _complex_shape(real: Any, imag: Any) -> Spec:
    if real.dtype not in _WHOLE or real.dtype != imag.dtype:
        raise DTypeError(f"complex: real is {real.dtype} and imag {imag.dtype}; both must be float32, or both float64")
    try:
        shape = np.broadcast_shapes(real.shape, imag.shape)
    except ValueError:
        raise ShapeError(f"complex: real {tuple(real.shape)} and imag {tuple(imag.shape)} do not broadcast") from None
    return Spec(shape, _WHOLE[real.dtype])


def _two_parts(rng: np.random.Generator) -> list[Sample]:
    return [Sample(rng.normal(size=a), rng.normal(size=b)) for a, b in (((), ()), ((7,), (7,)), ((3, 5), (5,)), ((4, 1), (3,)))]


op(
    "complex", np.vectorize(complex, otypes=[np.complex128]), cpu=_complex_cpu, inputs=("real", "imag"), shape=_complex_shape,
    samples=_two_parts, host=True, holomorphic=False, broadcasts=True,
    dtypes=("float64", "float32"), rule=(lambda g: ops.real(g), lambda g: ops.imag(g)),
    doc="Complex numbers from real and imaginary parts.",
)  # fmt: skip
