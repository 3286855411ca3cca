"""Small convolutions that reach every path, for tests, and large ones, for the clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor.kernels.convolution.geometry import geometry
from tritensor.kernels.parts.pointwise_samples import normals
from tritensor.ops.table import Sample

Case = tuple[np.ndarray, np.ndarray, dict[str, Any]]


def _plain(axes: int) -> dict[str, Any]:
    return {"stride": (1,) * axes, "padding": (0,) * axes, "dilation": (1,) * axes, "groups": 1}


def _of_rows(x: Any) -> list[Case]:
    plain = _plain(1)
    return [
        (x(2, 4, 9), x(4, 2, 2), plain | {"stride": (2,), "dilation": (3,), "padding": (2,), "groups": 2}),
        (x(2, 5, 3).transpose(0, 2, 1), x(2, 3, 2), plain),  # channels innermost
        (x(2, 3, 9), x(3, 1, 4), plain | {"padding": (2,), "groups": 3}),  # depthwise
    ]


def _of_images(x: Any) -> list[Case]:
    plain = _plain(2)
    last = x(2, 5, 4, 3).transpose(0, 3, 1, 2)  # channels innermost
    inner = x(3, 5, 4, 2).transpose(3, 0, 1, 2)  # batch innermost
    return [
        (x(2, 3, 5, 6), x(2, 3, 3, 2), plain),
        (x(1, 2, 6, 5), x(4, 2, 2, 3), plain | {"stride": (2, 1), "padding": (1, 2)}),
        (x(2, 2, 7, 6), x(2, 2, 2, 2), plain | {"dilation": (2, 3), "padding": (1, 1)}),
        (x(2, 4, 5, 4), x(6, 2, 3, 3), plain | {"groups": 2, "padding": (1, 1)}),
        (x(2, 3, 4, 4), x(3, 1, 3, 3), plain | {"groups": 3, "stride": (2, 2), "padding": (1, 1)}),  # depthwise
        (last, x(2, 3, 2, 2), plain | {"padding": (1, 0)}),
        (inner, x(2, 3, 2, 2), plain),
        (x(2, 3, 4, 3), x(2, 3, 1, 1), plain),  # a matrix product at every pixel
        (x(5, 1, 3, 27), x(2, 1, 2, 2), plain),  # a split weight gradient on a GPU
        (x(1, 18, 5, 5), x(17, 18, 2, 2), plain | {"stride": (3, 3)}),  # several tiles and steps; a row and a column unused
        (x(0, 2, 4, 4), x(3, 2, 2, 2), plain),
        # two kernels a channel, channels innermost
        (x(2, 5, 4, 3).transpose(0, 3, 1, 2), x(6, 1, 2, 4), plain | {"groups": 3, "padding": (1, 2), "dilation": (2, 1)}),
    ]


def _of_volumes(x: Any) -> list[Case]:
    plain = _plain(3)
    last = x(1, 3, 4, 3, 2).transpose(0, 4, 1, 2, 3)
    return [
        (x(2, 4, 4, 3, 5), x(4, 2, 2, 2, 3), plain | {"stride": (2, 1, 2), "dilation": (1, 2, 1), "padding": (0, 1, 1), "groups": 2}),
        (last, x(2, 2, 2, 2, 1), plain),
        (x(2, 2, 4, 3, 5), x(4, 1, 2, 2, 3), plain | {"stride": (2, 1, 2), "padding": (1, 0, 1), "groups": 2}),  # depthwise
    ]


_CASES = {1: _of_rows, 2: _of_images, 3: _of_volumes}
Samples = Callable[[np.random.Generator], list[Sample]]


def _cases(rng: np.random.Generator, axes: int) -> list[Case]:
    return _CASES[axes](normals(rng))


def _result(x: np.ndarray, w: np.ndarray, attrs: dict[str, Any]) -> tuple[int, ...]:
    s = geometry(x.shape, w.shape, **attrs)
    return (s.batch, s.out, *s.outs)


def forward(axes: int) -> Samples:
    """Calls of the convolution, every other one with a bias."""

    def samples(rng: np.random.Generator) -> list[Sample]:
        cases = enumerate(_cases(rng, axes))
        return [Sample(x, w, *((rng.standard_normal(w.shape[0]),) if i % 2 == 0 else ()), **attrs) for i, (x, w, attrs) in cases]

    return samples


def to_input(axes: int) -> Samples:
    """Calls of its gradient to x, the first two with a bias."""

    def samples(rng: np.random.Generator) -> list[Sample]:
        out = []
        for i, (x, w, attrs) in enumerate(_cases(rng, axes)):
            bias = (rng.standard_normal(x.shape[1]),) if i < 2 else ()
            out.append(Sample(rng.standard_normal(_result(x, w, attrs)), w, *bias, size=x.shape[2:], **attrs))
        return out

    return samples


def to_weight(axes: int) -> Samples:
    """Calls of its gradient to the weight."""

    def samples(rng: np.random.Generator) -> list[Sample]:
        return [Sample(x, rng.standard_normal(_result(x, w, attrs)), kernel_size=w.shape[2:], **attrs) for x, w, attrs in _cases(rng, axes)]

    return samples


def sizes(axes: int) -> Samples:
    """Calls worth timing."""
    plain, same = _plain(axes), _plain(axes) | {"padding": (1,) * axes}

    def samples(rng: np.random.Generator) -> list[Sample]:
        x = normals(rng)
        if axes == 1:
            return [Sample(x(32, 64, 4096), x(64, 64, 3), **same)]
        if axes == 3:
            return [Sample(x(4, 32, 16, 56, 56), x(32, 32, 3, 3, 3), **same)]
        return [
            Sample(x(64, 1, 28, 28), x(6, 1, 5, 5), x(6), **plain),
            Sample(x(64, 6, 12, 12), x(16, 6, 5, 5), x(16), **plain),
            Sample(x(32, 64, 56, 56), x(64, 64, 3, 3), **same),
            Sample(x(32, 3, 224, 224), x(64, 3, 7, 7), **(plain | {"padding": (3, 3), "stride": (2, 2)})),
        ]

    return samples
