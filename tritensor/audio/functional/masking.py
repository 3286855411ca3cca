"""Masks over stretches of time or frequency: SpecAugment (Park et al. 2019)."""

from __future__ import annotations

from tritensor.audio import tensors as T
from tritensor.ground.errors import ArgumentError
from tritensor.tensor.core import Tensor


def _width(name: str, specgram: Tensor, mask_param: int, axis: int, p: float, least: int) -> int:
    """The widest mask: mask_param, and at most a share p of the axis."""
    dim = specgram.dim()
    if dim < least:
        raise ArgumentError(
            f"{name}: the spectrogram is of shape {tuple(specgram.shape)}; give {least} dimensions or more, the last freq and time"
        )
    if axis not in (dim - 2, dim - 1):
        raise ArgumentError(f"{name}: axis is {axis}; give {dim - 2} for frequencies or {dim - 1} for time")
    if not 0 <= p <= 1:
        raise ArgumentError(f"{name}: p is {p}; give a share, 0 to 1")
    return mask_param if p == 1 else min(mask_param, int(specgram.shape[axis] * p))


def _mask(specgram: Tensor, shape: tuple[int, ...], width: int, mask_value: float | Tensor, axis: int) -> Tensor:
    """The spectrogram with one stretch for each of `shape` filled."""
    size = specgram.shape[axis]
    length = T.rand(shape, device=specgram.device) * width
    start = (T.rand(shape, device=specgram.device) * (size - length)).long()[..., None, None]
    at = T.arange(size, device=specgram.device)
    at = at.unsqueeze(-1) if axis == specgram.dim() - 2 else at
    made: Tensor = T.where(
        (at >= start) & (at < start + length.long()[..., None, None]), T.as_tensor(mask_value, dtype=specgram.dtype), specgram
    )
    return made


def mask_along_axis(specgram: Tensor, mask_param: int, mask_value: float, axis: int, p: float = 1.0) -> Tensor:
    """(..., freq, time) with one stretch of up to mask_param - 1 rows or columns, the same in all, set to mask_value."""
    width = _width("mask_along_axis", specgram, mask_param, axis, p, 2)
    return specgram if width < 1 else _mask(specgram, (), width, mask_value, axis)


def mask_along_axis_iid(specgrams: Tensor, mask_param: int, mask_value: float | Tensor, axis: int, p: float = 1.0) -> Tensor:
    """(..., freq, time), 3 dimensions or more, with a stretch of its own in each spectrogram set to mask_value."""
    width = _width("mask_along_axis_iid", specgrams, mask_param, axis, p, 3)
    return specgrams if width < 1 else _mask(specgrams, tuple(specgrams.shape[:-2]), width, mask_value, axis)
