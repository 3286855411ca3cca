"""Moments of numbers in one pass: (count, mean, sum of squared distances from it), and how those of two sets become those of both."""

from __future__ import annotations

import triton
import triton.language as tl


# Chan's update: of (n, mean, m2) and (n', mean', m2') with d = mean' - mean, N = n + n': mean + d n'/N, m2 + m2' + d^2 n n'/N
@triton.jit
def merged(n, mean, m2, n_, mean_, m2_):
    """The moments of two sets together."""
    both = n + n_
    share = n_ / tl.maximum(both, 1)
    d = mean_ - mean
    return both, mean + d * share, m2 + m2_ + d * (d * (n * share))  # so that an infinite d * d never meets a count of 0


# Welford's update: of one more number x with d = x - mean: mean + d / count, m2 + d (x - new mean)
@triton.jit
def walked(n, mean, m2, n_, x, _, count, share):
    """The moments of a set and one number more; n_ is 0 for what is no number of the row."""
    d = tl.where(n_ > 0, x - mean, 0)
    mean += d * share
    return tl.broadcast_to(count, n.shape), mean, m2 + d * (x - mean)


@triton.jit
def moments(x, index):
    """Those of one number."""
    return tl.zeros_like(x) + 1, x, tl.zeros_like(x)
