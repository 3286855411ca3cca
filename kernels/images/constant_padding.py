"""constant_pad: an array surrounded by one value along any of its dimensions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tritensor.ground.errors import ShapeError
from tritensor.kernels.images.resampling_cpu import channels_last
from tritensor.kernels.parts.allocation import image_for
from tritensor.kernels.parts.copying import write
from tritensor.kernels.parts.filling import filled
from tritensor.kernels.parts.view_arithmetic import is_channels_last
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Sample, Spec, Work, op, ops

Sides = tuple[tuple[int, int], ...]  # before and after, not negative, for each dimension


def _index(x_shape: tuple[int, ...], sides: Sides) -> tuple[slice, ...]:
    return tuple([slice(before, before + n) for n, (before, _) in zip(x_shape, sides, strict=True)])


def _shape(x: Any, *, sides: Sides, value: Any) -> Spec:
    if len(sides) != len(x.shape) or any(min(s) < 0 for s in sides):
        raise ShapeError(f"constant_pad: x {tuple(x.shape)}, sides {sides}: give two sizes, not negative, for each dimension")
    return Spec(tuple([n + before + after for n, (before, after) in zip(x.shape, sides, strict=True)]), x.dtype)


def _reference(x: np.ndarray, *, sides: Sides, value: Any) -> np.ndarray:
    """x with `sides` elements of `value` before and after it along each dimension."""
    return np.pad(x, sides, constant_values=value) if sides else x


def _cpu(x: np.ndarray, *, sides: Sides, value: Any) -> np.ndarray:
    last = channels_last(x)
    # with channels innermost a border of the image is one run of memory
    if last:
        x, sides = np.moveaxis(x, 1, -1), (sides[0], *sides[2:], sides[1])
    y = np.empty(_shape(x, sides=sides, value=value).shape, x.dtype)
    index = _index(x.shape, sides)
    y[index] = x
    for d, (before, after) in enumerate(sides):  # inside along the dimensions before it, everything along those behind
        if before:
            y[(*index[:d], slice(0, before))] = value
        if after:
            y[(*index[:d], slice(y.shape[d] - after, None))] = value
    return np.moveaxis(y, -1, 1) if last else y


def _forward(x: CudaArray, *, sides: Sides, value: Any) -> CudaArray:
    """Two launches: the value everywhere, then x."""
    shape = _shape(x, sides=sides, value=value).shape
    # no image: there are no channels that could lie innermost
    if len(shape) < 2:
        memory = y = filled(shape, x.dtype, x.device, value)
    else:
        memory, y = image_for(shape, x.dtype, x, is_channels_last(x))
        filled(memory.shape, x.dtype, x.device, value, out=memory)
    write(y[_index(x.shape, sides)], x)
    return y


def _samples(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample(rng.standard_normal((3, 4)), sides=((0, 0), (1, 2)), value=0),
        Sample(rng.standard_normal((2, 1, 3)), sides=((1, 0), (0, 2), (1, 1)), value=-2.5),
        Sample(np.moveaxis(rng.standard_normal((2, 3, 2, 3)), -1, 1), sides=((0, 0), (0, 0), (2, 1), (1, 0)), value=1.5),
        Sample(rng.integers(-9, 9, (4,)), sides=((2, 1),), value=7),
        Sample(rng.integers(0, 2, (2, 2)) > 0, sides=((0, 1), (1, 0)), value=True),
        Sample(np.zeros((0, 2)), sides=((1, 1), (0, 1)), value=3.0),
        Sample(rng.standard_normal(()), sides=(), value=1.0),
    ]


def _work(x: Any, *, sides: Sides, value: Any) -> Work:
    """No arithmetic; both arrays once."""
    return Work(0, (math.prod(x.shape) + math.prod(_shape(x, sides=sides, value=value).shape)) * x.dtype.itemsize)


op(
    "constant_pad", _reference, cpu=_cpu, shape=_shape, forward=_forward, samples=_samples, layout="images",
    sizes=lambda rng: [Sample(rng.standard_normal((8, 64, 128, 128)), sides=((0, 0), (0, 0), (3, 3), (3, 3)), value=1.5)], work=_work,
    rule=lambda g, x_shape, sides: ops.index_view(g, index=_index(x_shape, sides)),
    backward=lambda g, x_shape, sides: g[_index(x_shape, sides)],
    cpu_backward=lambda g, x_shape, sides: np.asarray(g[_index(x_shape, sides)]),  # a view: half of what the rule's op costs
)  # fmt: skip
