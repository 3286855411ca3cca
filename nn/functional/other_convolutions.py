"""Convolutions of numbers that have no kernel: complex ones from their parts, integers tap by tap."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor.ground.errors import DTypeError, ShapeError
from tritensor.nn.functional.padding import pad
from tritensor.ops.table import ops, registry
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.pointwise.complex_numbers import complex as joined
from tritensor.tensor.functions.pointwise.complex_numbers import imag, real


def _require_same_dtype(name: str, x: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    for what, other in (("weight", weight), ("bias", bias)):
        if other is not None and other.dtype != x.dtype:
            raise DTypeError(f"{name}: input is {x.dtype.name}, {what} {other.dtype.name}; cast one so that both are the same")


def convolve_complex(
    operation: Callable[..., Tensor], name: str, x: Tensor, weight: Tensor, bias: Tensor | None, settings: dict[str, Any]
) -> Tensor:
    """An op of x, weight and bias that is linear in x and weight, of complex ones: four of real ones."""
    _require_same_dtype(name, x, weight, bias)
    (a, b), (c, d) = (real(x), imag(x)), (real(weight), imag(weight))
    e, f = (None, None) if bias is None else (real(bias), imag(bias))
    return joined(
        operation(a, c, e, **settings) - operation(b, d, None, **settings),
        operation(a, d, f, **settings) + operation(b, c, None, **settings),
    )


def convolve_integers(name: str, x: Tensor, weight: Tensor, bias: Tensor | None, settings: dict[str, Any]) -> Tensor:
    """The convolution of integers (batch, in, *size) with (out, in / groups, *kernel), a matrix product for each cell of the kernel."""
    _require_same_dtype(name, x, weight, bias)
    outs = _shape_of_floats(registry[name].shape, x, weight, bias, settings)
    stride, dilation, groups = settings["stride"], settings["dilation"], settings["groups"]
    x = pad(x, [p for p in reversed(settings["padding"]) for _ in (0, 1)])
    batch, kernel, places = x.shape[0], tuple(weight.shape[2:]), math.prod(outs[2:])
    y: Tensor | None = None
    for tap in np.ndindex(*kernel):
        at = [slice(i * d, i * d + (n - 1) * step + 1, step) for i, d, n, step in zip(tap, dilation, outs[2:], stride, strict=True)]
        cells = x[(slice(None), slice(None), *at)].reshape(batch, groups, -1, places)
        part = ops.matmul(weight[(..., *tap)].reshape(groups, weight.shape[0] // groups, -1), cells)
        y = part if y is None else y + part
    assert y is not None
    y = y.reshape(outs)
    return y if bias is None else y + bias.reshape(-1, *(1,) * len(kernel))


def _shape_of_floats(spec: Callable[..., Any], x: Tensor, weight: Tensor, bias: Tensor | None, settings: dict[str, Any]) -> tuple[int, ...]:
    """The shape of the result; refuses what the op of floats refuses."""
    return tuple(spec(*(None if t is None else np.broadcast_to(np.float32(0), t.shape) for t in (x, weight, bias)), **settings).shape)


def convolve_integers_transposed(
    name: str, x: Tensor, weight: Tensor, bias: Tensor | None, settings: dict[str, Any], size: tuple[int, ...]
) -> Tensor:
    """The transposed convolution of integers: the convolution, with the kernel turned round, of x with zeros between its cells."""
    if weight.shape[1] == 0:
        raise ShapeError(f"{name}: weight {tuple(weight.shape)} has no output channels")
    stride, groups = settings["stride"], settings["groups"]
    apart = ops.full(
        shape=(*x.shape[:2], *[(n - 1) * s + 1 for n, s in zip(x.shape[2:], stride, strict=True)]),
        value=0,
        dtype=x.dtype.numpy,
        device=x.device,
    )
    apart[(..., *[slice(None, None, s) for s in stride])] = x
    kernel, sides = weight.shape[2:], []
    for k, d, p, more in zip(kernel, settings["dilation"], settings["padding"], settings["output_padding"], strict=True):
        reach = d * (k - 1) - p
        sides.append((reach, reach + more))
    apart = pad(apart, [side for both in reversed(sides) for side in both])
    turned = ops.flip(weight.reshape(groups, -1, *weight.shape[1:]), dims=tuple(range(3, 3 + len(kernel)))).transpose(1, 2)
    plain = {"stride": (1,) * len(kernel), "padding": (0,) * len(kernel), "dilation": settings["dilation"], "groups": groups}
    y = convolve_integers(f"conv{len(kernel)}d", apart, turned.reshape(-1, *turned.shape[2:]), bias, plain)
    assert tuple(y.shape[2:]) == size
    return y
