"""Fourier transforms under PyTorch's names, torch.fft in full. Spectra are complex and live on the CPU, so do the transforms.

Every function takes floating and complex tensors (integers become floating), `n` or `s`: the length along each dim, to which the input
is trimmed or filled up with zeros; `dim`; and `norm`: "backward" (the inverse transform is divided by the length, the default),
"ortho" (both by its root) or "forward". float16 and bfloat16 are refused, as PyTorch's CPU does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.device import as_device
from tritensor.ground.errors import ArgumentError, DTypeError, OutOfRangeError, ShapeError
from tritensor.ops.array import from_host
from tritensor.ops.table import normal_dim, ops
from tritensor.tensor.core import Tensor, new_tensor
from tritensor.tensor.public_api.publish import function, rename_function

Size = int | None
Sizes = Sequence[int] | int | None
_SCALE = {
    "forward": {"backward": "none", "ortho": "ortho", "forward": "n"},
    "inverse": {"backward": "n", "ortho": "ortho", "forward": "none"},
}


def _parse_norm(name: str, norm: str | None, way: str) -> str:
    found = _SCALE[way].get("backward" if norm is None else norm)
    if found is None:
        raise ArgumentError(f"{name}: norm is {norm!r}; it is 'forward', 'backward' or 'ortho'")
    return found


def _to_transform_type(name: str, x: Tensor, complex_wanted: bool) -> Tensor:
    """x in a type that has a transform: integers as the default floating type; complex where that is wanted."""
    kind = x.dtype
    if kind.kind in ("bool", "int", "uint"):
        x = ops.cast(x, dtype=dtypes.default_float().numpy)
    # numpy's FFT would compute float16 in float32 silently; PyTorch's CPU refuses.
    elif kind.itemsize < 4:
        raise DTypeError(f"{name}: input is {kind.name}, which has no transform on the CPU; cast it with .to(float32)")
    if complex_wanted and not x.is_complex():
        x = ops.cast(x, dtype=np.dtype(np.complex128 if x._array.dtype == np.float64 else np.complex64))
    return x


def _require_real(name: str, x: Tensor) -> Tensor:
    if x.is_complex():
        raise DTypeError(f"{name}: input is {x.dtype.name}; it takes real numbers; use fft for complex ones, or take .real")
    return _to_transform_type(name, x, False)


def _parse_dims(name: str, x: Tensor, s: Sizes, dim: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(dims, lengths) of an n-dimensional transform, from `s` and `dim` as PyTorch has them."""
    sizes = None if s is None else (s,) if isinstance(s, int) else tuple(s)
    if dim is None:
        if sizes is not None and len(sizes) > x.ndim:
            raise ShapeError(f"{name}: s {sizes} has {len(sizes)} lengths, the input {tuple(x.shape)} has {x.ndim} dims")
        dims = tuple(range(x.ndim)) if sizes is None else tuple(range(x.ndim - len(sizes), x.ndim))
    else:
        dims = tuple(normal_dim(name, d, x.ndim) for d in ((dim,) if isinstance(dim, int) else tuple(dim)))
    # numpy's own error would speak of axes that the user has not named.
    if dims and not x.ndim:
        raise OutOfRangeError(f"{name}: a 0-d tensor has no dim to transform; reshape it to (1,)")
    if len(set(dims)) != len(dims):
        raise ShapeError(f"{name}: dim {dim} names a dim of {tuple(x.shape)} twice; each is transformed once")
    if sizes is not None and len(sizes) != len(dims):
        raise ShapeError(f"{name}: s {sizes} and dim {dims} must be of one length")
    lengths = tuple(x.shape[d] if sizes is None or sizes[i] == -1 else sizes[i] for i, d in enumerate(dims))
    _check_lengths(name, lengths)
    return dims, lengths


def _check_lengths(name: str, lengths: Sequence[int]) -> None:
    for n in lengths:
        if n < 1:
            raise ShapeError(f"{name}: a transform of {n} points; give n (or s) of at least 1")


def _trim_or_pad(x: Tensor, dims: Sequence[int], lengths: Sequence[int]) -> Tensor:
    """x trimmed or filled up with zeros at the end of each dim."""
    shape, index = list(x.shape), [slice(None)] * x.ndim
    wanted = list(shape)
    for d, n in zip(dims, lengths, strict=True):
        wanted[d] = n
        if n < shape[d]:
            index[d] = slice(0, n)
    # Trimmed before it is padded: the pad copies only what stays.
    if index != [slice(None)] * x.ndim:
        x = ops.index_view(x, index=tuple(index))
    if list(x.shape) == wanted:
        return x
    return ops.pad_view(x, shape=tuple(wanted), index=tuple(slice(0, n) for n in x.shape))


def _parse_dim(name: str, x: Tensor, n: Size, dim: int) -> tuple[int, int]:
    """(dim, length) of a one-dimensional transform."""
    if not x.ndim:
        raise OutOfRangeError(f"{name}: a 0-d tensor has no dim to transform; reshape it to (1,)")
    d = normal_dim(name, dim, x.ndim)
    length = x.shape[d] if n is None else int(n)
    _check_lengths(name, (length,))
    return d, length


def _transform_complex(name: str, x: Tensor, dims: tuple[int, ...], lengths: tuple[int, ...], norm: str | None, way: str) -> Tensor:
    x = _trim_or_pad(_to_transform_type(name, x, not dims), dims, lengths)
    scale = _parse_norm(name, norm, way)
    if not dims:
        return ops.copy(x)
    # A real input has half the work: the other half of its spectrum are conjugates.
    return (ops.fft_c2c if x.is_complex() else ops.fft_of_real)(x, dims=dims, scale=scale, inverse=way == "inverse")


_publish = functools.partial(function, out=True, namespace="fft")


def _transform_real(name: str, x: Tensor, dims: tuple[int, ...], lengths: tuple[int, ...], norm: str | None, way: str) -> Tensor:
    """Real numbers to half a spectrum: along the last of dims, then along the others. The inverse way gives the conjugates."""
    if not dims:
        raise ShapeError(f"{name}: there is no dim to transform; name at least one")
    x = _trim_or_pad(_require_real(name, x), dims, lengths)
    scale = _parse_norm(name, norm, way)
    y = ops.fft_r2c(x, dim=dims[-1], scale=scale)
    if way == "inverse":
        # ihfft(x) = conj(rfft(x)) / n.
        y = ops.conj(y)
    if len(dims) == 1:
        return y
    if way == "inverse":
        return ops.fft_c2c(y, dims=dims[:-1], scale=scale, inverse=True)
    return ops.fft_c2c(y, dims=dims[:-1], scale=scale, inverse=False, keep_order=True)


def _transform_to_real(name: str, x: Tensor, dims: tuple[int, ...], lengths: tuple[int, ...], norm: str | None, way: str) -> Tensor:
    """Half a spectrum to real numbers: along the other dims first, then along the last of dims."""
    if not dims:
        raise ShapeError(f"{name}: there is no dim to transform; name at least one")
    scale = _parse_norm(name, norm, way)
    # Of a real result's n points the half spectrum holds n // 2 + 1.
    x = _trim_or_pad(_to_transform_type(name, x, True), dims, (*lengths[:-1], lengths[-1] // 2 + 1))
    if len(dims) > 1:
        x = ops.fft_c2c(x, dims=dims[:-1], scale=scale, inverse=way == "inverse")
    if way == "forward":
        # hfft(x) = n irfft(conj(x)).
        x = ops.conj(x)
    return ops.fft_c2r(x, dim=dims[-1], n=lengths[-1], scale=scale)


def _parse_real_dim(name: str, x: Tensor, n: Size, dim: int) -> tuple[int, int]:
    """(dim, length of the result) of a transform to real numbers: 2 (m - 1) of m values unless n says otherwise."""
    d, length = _parse_dim(name, x, n, dim)
    # m values of a half spectrum come from 2 (m - 1) or 2 m - 1 points; the even number is the convention.
    length = 2 * (length - 1) if n is None else length
    _check_lengths(name, (length,))
    return d, length


def _parse_real_dims(name: str, x: Tensor, s: Sizes, dim: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    dims, lengths = _parse_dims(name, x, s, dim)
    given = None if s is None else (s,) if isinstance(s, int) else tuple(s)
    if dims and (given is None or given[-1] == -1):
        lengths = (*lengths[:-1], 2 * (x.shape[dims[-1]] - 1))
        _check_lengths(name, lengths)
    return dims, lengths


def _publish_one_dim(name: str, transform: Callable[..., Tensor], way: str, doc: str) -> None:
    parse = _parse_real_dim if transform is _transform_to_real else _parse_dim

    def call(x: Tensor, n: Size = None, dim: int = -1, norm: str | None = None) -> Tensor:
        d, length = parse(name, x, n, dim)
        return transform(name, x, (d,), (length,), norm, way)

    _publish(rename_function(call, name, doc))


def _publish_several_dims(name: str, transform: Callable[..., Tensor], way: str, doc: str) -> None:
    parse = _parse_real_dims if transform is _transform_to_real else _parse_dims

    def call(x: Tensor, s: Sizes = None, dim: Any = None, norm: str | None = None) -> Tensor:
        return transform(name, x, *parse(name, x, s, dim), norm, way)

    # The one difference between fft2 and fftn is the default of dim.
    if name.endswith("2"):
        call.__defaults__ = (None, (-2, -1), None)
    _publish(rename_function(call, name, doc))


_TRANSFORMS: dict[str, tuple[Callable[..., Tensor], str, str]] = {
    "fft": (
        _transform_complex,
        "forward",
        "The discrete Fourier transform along dim, complex: y_k = sum_j x_j exp(-2 pi i j k / n).\n\n"
        ">>> tt.fft.fft(tt.tensor([1.0, 1.0, 1.0, 1.0])).abs()\n"
        "tensor([4., 0., 0., 0.])",
    ),
    "ifft": (_transform_complex, "inverse", "The inverse of `fft`."),
    "rfft": (_transform_real, "forward", "`fft` of real numbers: the first n // 2 + 1 values, of which the others are the conjugates."),
    "irfft": (
        _transform_to_real,
        "inverse",
        "The inverse of `rfft`, real; n is the length of the result, 2 (m - 1) of m values unless given.",
    ),
    "hfft": (_transform_to_real, "forward", "`fft` of a signal that is the conjugate of itself reversed, given by its first half: real."),
    "ihfft": (_transform_real, "inverse", "The inverse of `hfft`."),
    "fftn": (
        _transform_complex,
        "forward",
        "The discrete Fourier transform over several dims, all unless dim names them (or s, counted from the last).",
    ),
    "ifftn": (_transform_complex, "inverse", "The inverse of `fftn`."),
    "rfftn": (_transform_real, "forward", "`fftn` of real numbers, half of it along the last dim."),
    "irfftn": (_transform_to_real, "inverse", "The inverse of `rfftn`, real."),
    "hfftn": (_transform_to_real, "forward", "`hfft` along the last dim, `fft` along the others: real."),
    "ihfftn": (_transform_real, "inverse", "The inverse of `hfftn`."),
    "fft2": (_transform_complex, "forward", "`fftn` over the last two dims."),
    "ifft2": (_transform_complex, "inverse", "The inverse of `fft2`."),
    "rfft2": (_transform_real, "forward", "`rfftn` over the last two dims."),
    "irfft2": (_transform_to_real, "inverse", "The inverse of `rfft2`, real."),
    "hfft2": (_transform_to_real, "forward", "`hfftn` over the last two dims."),
    "ihfft2": (_transform_real, "inverse", "The inverse of `hfft2`."),
}
for _name, _given in _TRANSFORMS.items():
    (_publish_one_dim if _name.endswith("t") else _publish_several_dims)(_name, *_given)


# -- frequencies, and their order
def _shift(name: str, x: Tensor, dim: Any, way: int) -> Tensor:
    given = range(x.ndim) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    dims = tuple(normal_dim(name, d, x.ndim) for d in given)
    return x.roll(tuple(x.shape[d] // 2 if way > 0 else (x.shape[d] + 1) // 2 for d in dims), dims) if dims else ops.copy(x)


@function(namespace="fft")
def fftshift(x: Tensor, dim: Any = None) -> Tensor:
    """x with the zero frequency in the middle of dim (of all, or several)."""
    return _shift("fftshift", x, dim, 1)


@function(namespace="fft")
def ifftshift(x: Tensor, dim: Any = None) -> Tensor:
    """The inverse of `fftshift`."""
    return _shift("ifftshift", x, dim, -1)


def _frequencies(name: str, n: int, d: float, half: bool, dtype: Any, where: Any) -> Tensor:
    # A spacing of 0 would divide by it.
    if n < 0 or d == 0:
        raise ArgumentError(f"{name}: n is {n} and d is {d}; n must not be negative, nor d be 0")
    kind = dtypes.default_float().numpy if dtype is None else dtypes.as_dtype(dtype).numpy
    k = np.arange(n // 2 + 1) if half else np.concatenate([np.arange((n + 1) // 2), np.arange(-(n // 2), 0)])
    return new_tensor(from_host((k * (1.0 / (n * d)) if n else k).astype(kind), as_device(where)))


@function(namespace="fft", maker=True, out=True)
def fftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of `fft` of n points `d` apart, in cycles per unit of d: 0, 1, ..., then the negative ones, over n d."""
    return _frequencies("fftfreq", n, d, False, dtype, device)


@function(namespace="fft", maker=True, out=True)
def rfftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of `rfft` of n points `d` apart: 0, 1, ..., n // 2, over n d."""
    return _frequencies("rfftfreq", n, d, True, dtype, device)
