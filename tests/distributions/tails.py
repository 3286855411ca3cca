"""Counts of draws beyond the quantiles of their distribution, down to one in a hundred thousand, in whatever type they were rounded to."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

import tritensor as tt
from tritensor.ground.dtypes import of

QUANTILES = np.array([1e-5, 1e-4, 1e-3, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999])
CHANCE = 1e-9  # of a count that is refused though the distribution is right


def _stored(x: np.ndarray, dtype: tt.dtype) -> np.ndarray:
    """Numbers of a type next to x."""
    return np.asarray(x, np.float64).astype(dtype.numpy)


def _halfway(edges: np.ndarray) -> np.ndarray:
    """Up to where numbers are rounded to these, or to lesser ones, in float64."""
    above = np.nextafter(edges, edges.dtype.type(np.inf))
    return (edges.astype(np.float64) + above.astype(np.float64)) / 2


def wrong_counts(drawn: tt.Tensor, theirs: Any, down: bool = False, below: float = np.inf) -> list[str]:
    """Which counts of draws up to a quantile are not binomial ones of the distribution's probability. `down`: numbers are rounded down, not to the
    nearest; `below`: what would be rounded to this is the number before it."""
    dtype, n = of(drawn.cpu().numpy().dtype), drawn.numel()
    values = np.sort(drawn.cpu().double().numpy().reshape(-1))
    with np.errstate(over="ignore"):
        edges = np.unique(_stored(theirs.ppf(QUANTILES), dtype))
    edges = edges[np.isfinite(edges.astype(np.float64)) & (np.abs(edges.astype(np.float64)) < float(tt.finfo(dtype).max) / 2)]
    if dtype is not tt.float64:
        whole = hasattr(theirs.dist, "pmf") or theirs.support()[0] < 0
        edges = edges[((edges == 0) & whole) | (np.abs(edges.astype(np.float64)) > 4 * float(tt.finfo(dtype).tiny))]
    if hasattr(theirs.dist, "pmf"):
        chances = theirs.cdf(edges.astype(np.float64))
    else:
        chances = theirs.cdf(np.nextafter(edges, edges.dtype.type(np.inf)).astype(np.float64) if down else _halfway(edges))
    chances = np.where(np.nextafter(edges, edges.dtype.type(np.inf)).astype(np.float64) >= below, 1.0, chances)
    counts = np.searchsorted(values, edges.astype(np.float64), side="right")
    grain = 0.0 if dtype is tt.float64 else 2.0**-23  # of a uniform number of 24 bits
    low = stats.binom.ppf(CHANCE, n, np.clip(chances - grain, 0, 1))
    high = stats.binom.isf(CHANCE, n, np.clip(chances + grain, 0, 1))
    return [
        f"{c} of {n} draws are up to {float(e)}; {n * p:.1f} are expected"
        for e, p, c, a, b in zip(edges, chances, counts, low, high, strict=True)
        if not a <= c <= b
    ]
