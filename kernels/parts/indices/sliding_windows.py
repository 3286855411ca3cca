"""Sliding windows over images: their sizes, and in plain numpy, for references, what each tap of each window holds, and the adjoint, which adds up."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

Sizes = tuple[int, ...]


class Windows(NamedTuple):
    """Windows of `kernel` cells over images of `size`: `outs` of them along each axis, their steps, padding and dilation."""

    size: Sizes
    outs: Sizes
    kernel: Sizes
    stride: Sizes
    padding: Sizes
    dilation: Sizes

    @property
    def apart(self) -> bool:
        """Whether no two windows share a cell."""
        return all(s > (k - 1) * d for s, k, d in zip(self.stride, self.kernel, self.dilation, strict=True))

    def three(self) -> Windows:
        """The same over three axes: an image is a volume of one plane."""
        # kernels know volumes alone: an image is one of a single plane, whose loop is compiled away (DEEP)
        if len(self.size) == 3:
            return self
        return Windows(*[(0 if i == 4 else 1, *v) for i, v in enumerate(self)])


def read_windows(x: np.ndarray, s: Any, outside: float = 0) -> np.ndarray:
    """x (..., *s.size) as (..., *s.outs, taps): tap t of window o holds cell o * stride + t * dilation - padding, or `outside` where there is none.

    s is Windows, or says as much.
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
