"""Recursive filters a[0] y[t] = sum b[k] x[t - k] - sum a[k] y[t - k], in blocks of time, with gradients of signal and coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.audio import tensors as T
from tritensor.autograd.function import Function
from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.nn import functional as F
from tritensor.tensor.core import Tensor

BLOCK = 128  # samples that one matrix product filters


def _responses(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of the coefficients a[1:], (channels, order): what a block answers to its inputs, (channels, BLOCK, BLOCK), and to the outputs before it, latest
    last, (channels, BLOCK, order)."""
    channels, order = a.shape
    # column k < order: output k of those before was 1; the last column: the block's first input was 1
    found = np.zeros((channels, order + BLOCK, order + 1))
    found[:, np.arange(order), np.arange(order)] = 1.0
    for t in range(BLOCK):
        found[:, order + t] = -np.einsum("ck,cko->co", a[:, ::-1], found[:, t : order + t])
        found[:, order + t, order] += t == 0
    impulse = found[:, order:, order]
    late = np.arange(BLOCK)[:, None] - np.arange(BLOCK)
    return np.where(late >= 0, impulse[:, np.maximum(late, 0)], 0.0), found[:, order:, :order]


def _recurse(x: Tensor, a: Tensor) -> Tensor:
    """y[t] = x[t] - sum over k of a[k - 1] y[t - k], of x (n, channels, time) and a (channels, order)."""
    n, channels, time = x.shape
    order = a.shape[1]
    to_inputs, to_before = (T.tensor(r, dtype=x.dtype, device=x.device) for r in _responses(a.detach().cpu().numpy().astype(np.float64)))
    blocks = F.pad(x, (0, -time % BLOCK)).reshape(n, channels, -1, BLOCK)
    own = T.matmul(blocks, to_inputs.transpose(-1, -2))  # each block as if silence were before it
    before, starts = T.zeros(n, channels, order, dtype=x.dtype, device=x.device), []
    carry = to_before[:, BLOCK - order :].transpose(-1, -2)
    for j in range(blocks.shape[2]):
        starts.append(before)
        before = own[:, :, j, BLOCK - order :] + T.matmul(before.unsqueeze(-2), carry).squeeze(-2)
    whole = own + T.matmul(T.stack(starts, 2), to_before.transpose(-1, -2))
    made: Tensor = whole.reshape(n, channels, -1)[..., :time]
    return made


class _Recursion(Function):
    """The recursion with its gradients: of the signal the same filter backwards in time, of a[k] its product with the outputs k before."""

    @staticmethod
    def forward(x: Tensor, a: Tensor) -> Tensor:  # type: ignore[override]
        return _recurse(x, a)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(inputs[1], output)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:  # type: ignore[override]
        a, y = ctx.saved_tensors
        by_x: Tensor = _Recursion.apply(g.flip(-1), a).flip(-1)
        time = y.shape[-1]
        by_a = [-(by_x[..., k:] * y[..., : time - k]).sum((0, 2)) if k < time else a[:, k - 1] * 0 for k in range(1, a.shape[1] + 1)]
        return by_x, T.stack(by_a, 1)


def lfilter(waveform: Tensor, a_coeffs: Tensor, b_coeffs: Tensor, clamp: bool = True, batching: bool = True) -> Tensor:
    """Filter (..., time) by coefficients (order + 1,), lowest delay first; the result in -1 ... 1 where `clamp`.

    Coefficients (filters, order + 1): one filter for each row of (..., filters, time), or with batching=False all filters for each signal, which gives
    (..., filters, time). a_coeffs[0] is not 0. Raises ValueError where shapes do not fit.
    """
    if a_coeffs.shape != b_coeffs.shape:
        raise ArgumentError(
            f"lfilter: a_coeffs {tuple(a_coeffs.shape)} and b_coeffs {tuple(b_coeffs.shape)} are of two shapes; fill up with zeros"
        )
    if a_coeffs.dim() not in (1, 2):
        raise ArgumentError(f"lfilter: a_coeffs {tuple(a_coeffs.shape)}; give (order + 1) or (filters, order + 1)")
    if a_coeffs.dim() == 1:
        a_coeffs, b_coeffs = a_coeffs.unsqueeze(0), b_coeffs.unsqueeze(0)
    elif not batching:
        waveform = T.stack([waveform] * a_coeffs.shape[0], -2)
    elif waveform.dim() < 2 or waveform.shape[-2] != a_coeffs.shape[0]:
        raise ArgumentError(
            f"lfilter: {a_coeffs.shape[0]} filters for a waveform {tuple(waveform.shape)}; give (..., {a_coeffs.shape[0]}, time), or batching=False"
        )
    order = a_coeffs.shape[1] - 1
    if order >= BLOCK:
        raise ShapeError(f"lfilter: {order + 1} coefficients; filters have at most {BLOCK}")
    shape, channels = waveform.shape, a_coeffs.shape[0]
    first = a_coeffs[:, :1]
    delayed = F.pad(waveform.reshape(-1, channels, shape[-1]), (order, 0))
    made: Tensor = F.conv1d(delayed, (b_coeffs / first).flip(-1).unsqueeze(1), groups=channels)
    if order:
        made = _Recursion.apply(made, (a_coeffs / first)[:, 1:])
    return (made.clamp(-1.0, 1.0) if clamp else made).reshape(shape)


def filtfilt(waveform: Tensor, a_coeffs: Tensor, b_coeffs: Tensor, clamp: bool = True) -> Tensor:
    """lfilter forwards and then backwards in time, which delays nothing."""
    there = lfilter(waveform, a_coeffs, b_coeffs, clamp=False)
    return lfilter(there.flip(-1), a_coeffs, b_coeffs, clamp=clamp).flip(-1)
