"""Discrete Fourier transforms by numpy's pocketfft: complex (or real) to complex, real to half a spectrum, half a spectrum to real.

`scale` says what a sum is divided by: "none", "ortho" (the root of the number of its terms) or "n" (that number).
A result lies as PyTorch lays it on the CPU: the transformed dimensions innermost, those around them in the order of their strides.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from tritensor.ground.errors import ArgumentError, DTypeError, ShapeError
from tritensor.ground.strides import elementwise_strides
from tritensor.kernels.parts.pointwise_samples import complex_normals
from tritensor.kernels.parts.view_arithmetic import inverse, zero_tensor
from tritensor.ops.array import element_strides
from tritensor.ops.table import Sample, Spec, op, ops

_WHOLE: dict[np.dtype, np.dtype] = {np.dtype(np.float32): np.dtype(np.complex64), np.dtype(np.float64): np.dtype(np.complex128)}
_REAL: dict[np.dtype, np.dtype] = {whole: real for real, whole in _WHOLE.items()}
# What numpy calls a scale: it counts from the forward transform, which is divided by nothing unless told otherwise.
_FORWARD: dict[str, Any] = {"none": "backward", "ortho": "ortho", "n": "forward"}
_INVERSE: dict[str, Any] = {"none": "forward", "ortho": "ortho", "n": "backward"}


def _refuse(name: str, x: Any, kinds: dict[Any, Any], *dims: int) -> None:
    if x.dtype not in kinds:
        raise DTypeError(f"{name}: x is {x.dtype}; it takes {' and '.join(str(k) for k in kinds)}; cast it with .to(...)")
    shape = x.shape
    for d in dims:
        if d >= len(shape) or not shape[d]:
            raise ShapeError(f"{name}: x {tuple(shape)} has no element along dim {d}; a transform takes at least one")


def _inward(x: np.ndarray, dims: tuple[int, ...], steps: tuple[int, ...] | None = None) -> tuple[np.ndarray, tuple[int, ...]]:
    """x with its dimensions in `inward_order` of its strides, or of other `steps`, and the way back."""
    order = inward_order(steps or x.strides, dims)
    return x.transpose(order), inverse(order)


def inward_order(steps: tuple[int, ...], dims: tuple[int, ...]) -> tuple[int, ...]:
    """`dims` behind the others; the others, and of several dims all, in the order of their strides."""
    others = [d for d in range(len(steps)) if d not in dims]
    return (*sorted(others, key=lambda d: -steps[d]), *sorted(dims, key=lambda d: -steps[d]))


def _transform(x: np.ndarray, dim: int, scale: str, sign: int) -> np.ndarray:
    """sum_j x_j exp(sign 2 pi i j k / n) along a dim by its matrix, times 1, 1 / sqrt(n) or 1 / n."""
    n = x.shape[dim]
    turns = np.outer(np.arange(n), np.arange(n)) % n / n  # whole ones taken off: exact angles however large j k is
    matrix = np.exp(sign * 2j * np.pi * turns) / {"none": 1, "ortho": np.sqrt(n), "n": n}[scale]
    return np.moveaxis(np.tensordot(x, matrix, (dim, 0)), -1, dim)


# fft_c2c: y_k = sum_j x_j exp(-+ 2 pi i j k / n) over every dim of `dims`
def _c2c(x: np.ndarray, *, dims: tuple[int, ...], scale: str, inverse: bool, keep_order: bool = False) -> np.ndarray:
    """`keep_order`: the result lies as x does."""
    for d in dims:
        x = _transform(x, d, scale, 1 if inverse else -1)
    return x


def _c2c_cpu(x: np.ndarray, *, dims: tuple[int, ...], scale: str, inverse: bool, keep_order: bool = False) -> np.ndarray:
    norm = (_INVERSE if inverse else _FORWARD)[scale]
    if keep_order:
        return (np.fft.ifftn if inverse else np.fft.fftn)(x, axes=dims, norm=norm, out=np.empty_like(x))
    t, back = _inward(x, dims)
    y = np.empty(t.shape, t.dtype)  # numpy's own would lie as t does
    if len(dims) == 1:
        return (np.fft.ifft if inverse else np.fft.fft)(t, axis=-1, norm=norm, out=y).transpose(back)
    return (np.fft.ifftn if inverse else np.fft.fftn)(t, axes=tuple(range(-len(dims), 0)), norm=norm, out=y).transpose(back)


def _c2c_shape(x: Any, *, dims: tuple[int, ...], scale: str, inverse: bool, keep_order: bool = False) -> Spec:
    _refuse("fft_c2c", x, _REAL, *dims)
    return Spec(x.shape, x.dtype)


def _c2c_samples(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample(complex_normals(rng, 8), dims=(0,), scale="none", inverse=False),
        Sample(complex_normals(rng, 3, 5), dims=(1,), scale="n", inverse=True),
        Sample(complex_normals(rng, 3, 4, 2), dims=(1, 0), scale="ortho", inverse=False),
        Sample(complex_normals(rng, 3, 4, 2), dims=(0,), scale="n", inverse=False, keep_order=True),
        Sample(complex_normals(rng, 0, 3), dims=(1,), scale="none", inverse=True),
    ]


# fft_r2c: the first n // 2 + 1 of y_k = sum_j x_j exp(-2 pi i j k / n); the others are their conjugates
def _r2c(x: np.ndarray, *, dim: int, scale: str) -> np.ndarray:
    return np.take(_transform(x, dim, scale, -1), range(x.shape[dim] // 2 + 1), axis=dim)


def _r2c_cpu(x: np.ndarray, *, dim: int, scale: str) -> np.ndarray:
    t, back = _inward(x, (dim,))
    return _rows_r2c(t, scale).transpose(back)


def _rows_r2c(x: np.ndarray, scale: str) -> np.ndarray:
    """Of the last dimension."""
    n = x.shape[-1]
    y = np.empty((*x.shape[:-1], n // 2 + 1), _WHOLE[x.dtype])
    if not x.flags.c_contiguous or x.size < 2 * _PIECE or 0 in x.shape:
        return np.fft.rfft(x, axis=-1, norm=_FORWARD[scale], out=y)
    rows, out = x.reshape(-1, n), y.reshape(-1, n // 2 + 1)
    step = max(_PIECE // n, 1)  # a cache's worth at a time is up to twice as fast
    for first in range(0, len(rows), step):
        part = slice(first, first + step)
        np.fft.rfft(rows[part], axis=-1, norm=_FORWARD[scale], out=out[part])
    return y


_PIECE = 50_000  # real numbers


def _r2c_shape(x: Any, *, dim: int, scale: str) -> Spec:
    _refuse("fft_r2c", x, _WHOLE, dim)
    return Spec((*x.shape[:dim], x.shape[dim] // 2 + 1, *x.shape[dim + 1 :]), _WHOLE[x.dtype])


def _r2c_rule(g: Any, x_shape: tuple[int, ...], dim: int, scale: str) -> Any:
    """The real part of the conjugate transform of g, the half that is not there being 0."""
    index = (slice(None),) * dim + (slice(0, g.shape[dim]),)
    return ops.real(ops.fft_c2c(ops.pad_view(g, shape=x_shape, index=index), dims=(dim,), scale=scale, inverse=True))


def _r2c_samples(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample(rng.normal(size=8), dim=0, scale="none"),
        Sample(rng.normal(size=(3, 5)), dim=1, scale="n"),
        Sample(rng.normal(size=(4, 3, 2)), dim=0, scale="ortho"),
        Sample(rng.normal(size=(2, 1)), dim=1, scale="none"),
    ]


# fft_of_real: fft_c2c of real numbers
def _of_real(x: np.ndarray, *, dims: tuple[int, ...], scale: str, inverse: bool) -> np.ndarray:
    return _c2c(x, dims=dims, scale=scale, inverse=inverse)


def _of_real_cpu(x: np.ndarray, *, dims: tuple[int, ...], scale: str, inverse: bool) -> np.ndarray:
    """One half by fft_r2c, the other the conjugates of what stands opposite, y_-k."""
    cast = elementwise_strides(x.shape, ((x.shape, element_strides(x)),))
    x, back = _inward(x, dims, cast if len(dims) > 1 else None)  # of several dims PyTorch makes complex numbers first
    n = x.shape[-1]
    norm, half = _FORWARD[scale], n // 2 + 1
    y = np.empty(x.shape, _WHOLE[x.dtype])
    known = np.fft.rfft(x, axis=-1, norm=norm, out=y[..., :half])
    others = range(x.ndim - len(dims), x.ndim - 1)
    if others:
        np.fft.fftn(known, axes=tuple(others), norm=norm, out=known)
    if inverse:
        np.conjugate(known, out=known)
    for first in itertools.product((True, False), repeat=len(others)):  # element 0 stands opposite itself, k opposite n - k
        to, of = [slice(None)] * y.ndim, [slice(None)] * y.ndim
        for d, is_first in zip(others, first, strict=True):
            to[d], of[d] = (slice(0, 1), slice(0, 1)) if is_first else (slice(1, None), slice(None, 0, -1))
        to[-1], of[-1] = slice(half, None), slice(n - half, 0, -1)
        np.conjugate(y[tuple(of)], out=y[tuple(to)])
    return y.transpose(back)


def _of_real_shape(x: Any, *, dims: tuple[int, ...], scale: str, inverse: bool) -> Spec:
    _refuse("fft_of_real", x, _WHOLE, *dims)
    return Spec(x.shape, _WHOLE[x.dtype])


def _of_real_samples(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample(rng.normal(size=8), dims=(0,), scale="none", inverse=False),
        Sample(rng.normal(size=(3, 5)), dims=(1,), scale="n", inverse=True),
        Sample(rng.normal(size=(3, 4, 5)), dims=(2, 0, 1), scale="ortho", inverse=True),
        Sample(rng.normal(size=(2, 1)), dims=(0, 1), scale="none", inverse=False),
    ]


# fft_c2r: y_j = sum_k x_k exp(2 pi i j k / n) over a spectrum of which x is the first half, the rest its conjugates; n terms
def _c2r(x: np.ndarray, *, dim: int, n: int, scale: str) -> np.ndarray:
    rest = np.take(x, range((n - 1) // 2, 0, -1), axis=dim)
    return _transform(np.concatenate([x, rest.conj()], dim), dim, scale, 1).real


def _c2r_cpu(x: np.ndarray, *, dim: int, n: int, scale: str) -> np.ndarray:
    t, back = _inward(x, (dim,))
    y = np.empty((*t.shape[:-1], n), _REAL[x.dtype])
    return np.fft.irfft(t, n, axis=-1, norm=_INVERSE[scale], out=y).transpose(back)


def _c2r_shape(x: Any, *, dim: int, n: int, scale: str) -> Spec:
    _refuse("fft_c2r", x, _REAL, dim)
    if x.shape[dim] != n // 2 + 1:
        raise ArgumentError(f"fft_c2r: {x.shape[dim]} of {n // 2 + 1} values along dim {dim} for {n} results")
    return Spec((*x.shape[:dim], n, *x.shape[dim + 1 :]), _REAL[x.dtype])


def _c2r_rule(g: Any, dim: int, n: int, scale: str) -> Any:
    """The transform of g; an element that stands for its conjugate as well counts twice. Imaginary parts of those that do not are not read."""
    weights = np.full(n // 2 + 1, 2.0)
    weights[0] = 1.0
    if n % 2 == 0:
        weights[-1] = 1.0
    shape = (weights.size,) + (1,) * (len(g.shape) - 1 - dim)
    kept = zero_tensor(shape, g)
    kept._array[...] = weights.reshape(shape)
    return ops.mul(ops.fft_r2c(g, dim=dim, scale=scale), kept)


def _c2r_samples(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample(complex_normals(rng, 5), dim=0, n=8, scale="none"),
        Sample(complex_normals(rng, 3, 3), dim=1, n=5, scale="n"),
        Sample(complex_normals(rng, 3, 2, 2), dim=0, n=4, scale="ortho"),
        Sample(complex_normals(rng, 2, 1), dim=1, n=1, scale="none"),
    ]


op(
    "fft_c2c", _c2c, cpu=_c2c_cpu, shape=_c2c_shape, samples=_c2c_samples, host=True, layout="own", dtypes=("complex128", "complex64"),
    tolerance={"complex64": (1e-5, "sums of products with rounded roots of one"), "complex128": (1e-12, "the same")},
    # the matrix of the transform is symmetric: g times it; the engine conjugates on both sides.
    rule=(lambda g, dims, scale, inverse: ops.fft_c2c(g, dims=dims, scale=scale, inverse=inverse),),
)  # fmt: skip
op(
    "fft_r2c", _r2c, cpu=_r2c_cpu, shape=_r2c_shape, samples=_r2c_samples, host=True, layout="own", holomorphic=False, rule=(_r2c_rule,),
    dtypes=("float64", "float32"), doc="The first half of the Fourier transform of real numbers along a dim; the rest are its conjugates.",
)  # fmt: skip
op(
    "fft_of_real", _of_real, cpu=_of_real_cpu, shape=_of_real_shape, samples=_of_real_samples, host=True, layout="own", holomorphic=False,
    dtypes=("float64", "float32"), doc="The whole Fourier transform, or its inverse, of real numbers over several dims.",
    # the real part of the conjugate transform of g.
    rule=(lambda g, dims, scale, inverse: ops.real(ops.fft_c2c(g, dims=dims, scale=scale, inverse=not inverse)),),
)  # fmt: skip
op(
    "fft_c2r", _c2r, cpu=_c2r_cpu, shape=_c2r_shape, samples=_c2r_samples, host=True, layout="own", holomorphic=False, rule=(_c2r_rule,),
    dtypes=("complex128", "complex64"), doc="Real numbers from the first half of their Fourier transform along a dim; its other half are conjugates.",
)  # fmt: skip
