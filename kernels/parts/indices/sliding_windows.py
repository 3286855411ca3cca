"""Sliding windows over images in plain numpy, for references: what each tap of each window holds, and the adjoint, which adds up."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def read_windows(x: np.ndarray, s: Any, outside: float = 0) -> np.ndarray:
    """x (..., *s.size) as (..., *s.outs, taps): tap t of window o holds cell o * stride + t * dilation - padding, or `outside` where there is none.

    s says size, outs, kernel, stride, padding and dilation, a number for each axis.
    """
    lead, axes = x.shape[: x.ndim - len(s.size)], range(x.ndim - len(s.size), x.ndim)
    spans = [d * (k - 1) + 1 for k, d in zip(s.kernel, s.dilation, strict=True)]
    ends = [(m - 1) * step + span for m, step, span in zip(s.outs, s.stride, spans, strict=True)]
    sides = [(p, max(end - n - p, 0)) for end, n, p in zip(ends, s.size, s.padding, strict=True)]
    padded = np.pad(x, [(0, 0)] * len(lead) + sides, constant_values=outside)
    found: Any = np.lib.stride_tricks.sliding_window_view(padded, spans, tuple(axes))  # type: ignore[call-overload]
    steps = [slice(0, (m - 1) * step + 1, step) for m, step in zip(s.outs, s.stride, strict=True)]
    taken = (..., *steps, *[slice(None, None, d) for d in s.dilation])
    return found[taken].reshape(*lead, *s.outs, math.prod(s.kernel))  # type: ignore[arg-type, no-any-return]


def cells_read(s: Any) -> np.ndarray:
    """The number of the cell that each tap of each window holds, (*s.outs, taps); -1 where there is none."""
    return read_windows(np.arange(math.prod(s.size)).reshape(s.size), s, outside=-1)


def add_windows(parts: np.ndarray, s: Any) -> np.ndarray:
    """The adjoint of read_windows: (..., *s.size) with parts (..., *s.outs, taps) added up in the cells that they are of."""
    cells, lead = cells_read(s), parts.shape[: parts.ndim - len(s.outs) - 1]
    total = np.zeros((*lead, math.prod(s.size)), parts.dtype)
    at: Any = (..., cells[cells >= 0])
    np.add.at(total, at, parts[..., cells >= 0])  # type: ignore[arg-type]
    return total.reshape(*lead, *s.size)
