"""Mixing of two signals: convolution and noise; distances between sequences and between distributions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritensor.audio import tensors as T
from tritensor.ground.errors import ArgumentError
from tritensor.nn import functional as F
from tritensor.tensor.core import Tensor

_MODES = ("full", "valid", "same")


def require_mode(name: str, mode: str) -> None:
    """Refuse a word that says not how much of a convolution is kept."""
    if mode not in _MODES:
        raise ArgumentError(f"{name}: mode is {mode!r}; give one of {', '.join(map(repr, _MODES))}")


def _require_fit(name: str, x: Tensor, y: Tensor, mode: str) -> None:
    require_mode(name, mode)
    pairs = zip(x.shape[:-1], y.shape[:-1], strict=False)
    if x.dim() != y.dim() or any(m != n and 1 not in (m, n) for m, n in pairs):
        raise ArgumentError(
            f"{name}: x {tuple(x.shape)} and y {tuple(y.shape)}; give as many dimensions, of the same sizes or 1 but for the last"
        )


def _keep(whole: Tensor, x: int, y: int, mode: str) -> Tensor:
    """The part of a convolution that a mode keeps, of the lengths of both."""
    length = {"full": x + y - 1, "same": x, "valid": abs(x - y) + 1}[mode]
    return whole.narrow(-1, (whole.shape[-1] - length) // 2, length)


def fftconvolve(x: Tensor, y: Tensor, mode: str = "full") -> Tensor:
    """convolve by Fourier transforms, faster where both are long."""
    _require_fit("fftconvolve", x, y, mode)
    n = x.shape[-1] + y.shape[-1] - 1
    return _keep(T.irfft(T.rfft(x, n=n) * T.rfft(y, n=n), n=n), x.shape[-1], y.shape[-1], mode)


def convolve(x: Tensor, y: Tensor, mode: str = "full") -> Tensor:
    """(..., m), (..., n) -> (..., m + n - 1), each row of x by its row of y; "same" keeps the middle m, "valid" where the shorter lies wholly inside."""
    _require_fit("convolve", x, y, mode)
    sizes = x.shape[-1], y.shape[-1]
    if sizes[0] < sizes[1]:
        x, y = y, x
    lead = [max(m, n) for m, n in zip(x.shape[:-1], y.shape[:-1], strict=True)]
    rows, filters = (t.expand(*lead, t.shape[-1]).reshape(1, -1, t.shape[-1]) for t in (x, y))
    whole = F.conv1d(rows, filters.flip(-1).transpose(0, 1), groups=rows.shape[1], padding=filters.shape[-1] - 1)
    return _keep(whole.reshape(*lead, -1), *sizes, mode)


def add_noise(waveform: Tensor, noise: Tensor, snr: Tensor, lengths: Tensor | None = None) -> Tensor:
    """(..., time): the waveform with noise (..., time), scaled so that the signal is snr (...) dB above it; energies of the first `lengths` samples."""
    lead = snr.dim()
    if (
        waveform.dim() - 1 != lead
        or noise.dim() - 1 != lead
        or (lengths is not None and lengths.dim() != lead)
        or waveform.shape[-1] != noise.shape[-1]
    ):
        told = ", ".join(str(tuple(t.shape)) for t in (waveform, noise, snr))
        raise ArgumentError(f"add_noise: waveform, noise and snr of shapes {told}; give (..., time), (..., time) and (...)")
    heard = 1.0 if lengths is None else (T.arange(waveform.shape[-1], device=lengths.device) < lengths.unsqueeze(-1)).to(waveform.dtype)
    signal, disturbance = ((t * heard).square().sum(-1) for t in (waveform, noise))
    scale = 10 ** ((10 * (signal.log10() - disturbance.log10()) - snr) / 20.0)
    return waveform + scale.unsqueeze(-1) * noise


def edit_distance(seq1: Sequence[Any], seq2: Sequence[Any]) -> int:
    """How many insertions, deletions and replacements make one sequence the other."""
    row = list(range(len(seq2) + 1))
    for i, one in enumerate(seq1, 1):
        corner, row[0] = row[0], i
        for j, other in enumerate(seq2, 1):
            corner, row[j] = row[j], min(corner + (one != other), row[j - 1] + 1, row[j] + 1)
    return row[-1]


def frechet_distance(mu_x: Tensor, sigma_x: Tensor, mu_y: Tensor, sigma_y: Tensor) -> Tensor:
    """The Frechet distance of two normal distributions with means (n) and covariances (n, n)."""
    n = mu_x.shape[0] if mu_x.dim() == 1 else -1
    if mu_y.shape != (n,) or sigma_x.shape != (n, n) or sigma_y.shape != (n, n):
        told = ", ".join(str(tuple(t.shape)) for t in (mu_x, sigma_x, mu_y, sigma_y))
        raise ArgumentError(f"frechet_distance: means and covariances of shapes {told}; give (n), (n, n), (n), (n, n)")
    common: Tensor = T.eigvals(sigma_x @ sigma_y).sqrt().real.sum()
    return (mu_x - mu_y).square().sum() + sigma_x.trace() + sigma_y.trace() - 2 * common
