"""Small poolings that reach every path, for tests, and large ones, for the clock."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tritensor.ops.table import Sample

Case = tuple[np.ndarray, dict[str, Any]]
Samples = Callable[[np.random.Generator], list[Sample]]


def window_cases(rng: np.random.Generator, axes: int = 2) -> list[Case]:
    """Images, or volumes, and windows over them."""

    def x(*size: int) -> np.ndarray:
        return rng.permutation(math.prod(size)).reshape(size) / 8.0 - 2  # no two values near each other

    two: dict[str, Any] = {"kernel_size": (2,) * axes, "stride": (2,) * axes, "padding": (0,) * axes, "ceil_mode": False}
    if axes == 3:
        return [
            (x(1, 2, 3, 4, 5), two | {"kernel_size": (2, 3, 2), "stride": (1, 2, 2), "padding": (1, 1, 0), "ceil_mode": True}),
            (x(1, 4, 2, 5, 3).transpose(0, 4, 1, 2, 3), two),  # channels innermost
        ]
    return [
        (x(2, 2, 4, 6), two),
        (x(1, 2, 5, 7), two),  # a row and a column left over
        (x(3, 5, 4, 2).transpose(3, 0, 1, 2), two),  # batch innermost
        (x(2, 4, 5, 3).transpose(0, 3, 1, 2), two),  # channels innermost
        (x(1, 2, 5, 7), two | {"ceil_mode": True}),
        (x(2, 1, 5, 6), two | {"kernel_size": (3, 2), "stride": (2, 1), "padding": (1, 1)}),  # windows overlap
        (x(1, 1, 7, 6), two | {"kernel_size": (2, 3), "stride": (3, 4), "padding": (0, 1), "ceil_mode": True}),
        (x(3, 5, 9, 5), two | {"stride": (1, 1)}),  # more than one block
        (x(0, 2, 4, 4), two),
    ]


class Pooled(NamedTuple):
    """Samples of max pooling, of the scatter that is its gradient, and of the gather that is the gradient of that."""

    forward: Samples
    scatter: Samples
    gather: Samples


def largest(axes: int, reference: Callable[..., Any]) -> Pooled:
    """Samples of max pooling; `reference` says where the maxima are."""

    def forward(rng: np.random.Generator) -> list[Sample]:
        cases = [(x, a | {"dilation": (1,) * axes}) for x, a in window_cases(rng, axes)]
        if axes == 3:
            cases.append((cases[0][0], cases[0][1] | {"dilation": (1, 1, 3), "stride": (2, 1, 1)}))
            return [Sample(x, **a) for x, a in cases]
        cases.append((cases[5][0], cases[5][1] | {"dilation": (1, 3), "stride": (1, 2)}))
        whole = [(rng.integers(-9, 9, (1, 2, 5, 4)), cases[5][1]), (rng.integers(-128, 128, (2, 1, 4, 4)).astype(np.int8), cases[0][1])]
        return [Sample(x, **a) for x, a in cases + whole]

    def found(s: Sample) -> tuple[np.ndarray, dict[str, Any]]:
        return reference(s.inputs[0], **s.attrs)[1], {k: v for k, v in s.attrs.items() if k != "ceil_mode"}

    def scatter(rng: np.random.Generator) -> list[Sample]:
        out = []
        for s in forward(rng):
            index, attrs = found(s)
            out.append(Sample(rng.standard_normal(index.shape), index, size=s.inputs[0].shape[2:], **attrs))
        return out

    def gather(rng: np.random.Generator) -> list[Sample]:
        return [Sample(s.inputs[0], index, **attrs) for s in forward(rng) for index, attrs in [found(s)]]

    return Pooled(forward, scatter, gather)


def means(axes: int) -> Samples:
    """Samples of average pooling."""

    def forward(rng: np.random.Generator) -> list[Sample]:
        cases = window_cases(rng, axes)
        more, divided = (cases[:1], []) if axes == 3 else (cases[5:7], cases[5:7])
        out = [Sample(x, **a, count_include_pad=i % 2 == 0) for i, (x, a) in enumerate([*cases, *more])]
        return out + [Sample(x, **a, count_include_pad=True, divisor_override=3) for x, a in divided]

    return forward


def shares(axes: int, reference: Callable[..., Any]) -> Samples:
    """Samples of average pooling's gradient; `reference` says of which shape the means are."""

    def spread(rng: np.random.Generator) -> list[Sample]:
        out = means(axes)(rng)
        return [Sample(rng.standard_normal(reference(s.inputs[0], **s.attrs).shape), size=s.inputs[0].shape[2:], **s.attrs) for s in out]

    return spread


def sizes(axes: int, more: dict[str, Any]) -> Samples:
    """Calls worth timing."""
    a: dict[str, Any] = {"kernel_size": (2,) * axes, "stride": (2,) * axes, "padding": (0,) * axes, "ceil_mode": False, **more}

    def samples(rng: np.random.Generator) -> list[Sample]:
        if axes == 3:
            return [Sample(rng.standard_normal((8, 32, 16, 56, 56)), **a)]
        return [Sample(rng.standard_normal((64, 6, 24, 24)), **a), Sample(rng.standard_normal((32, 64, 112, 112)), **a)]

    return samples
