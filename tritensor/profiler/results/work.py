"""Flops and bytes of events, by what the op's record counts; of a matrix product's or convolution's backward, as many again for each gradient."""

from __future__ import annotations

import math
from typing import Any

from tritensor.profiler.records import Given

_LINEAR = ("linear", "linear_activation", "linear_activation_by_result")
# Ops whose gradient by either factor is a product of the same size. What bias, activation and residual cost is not among it.
_PRODUCTS = (
    *_LINEAR, "matmul", "add_product", "conv1d", "conv2d", "conv3d", "conv1d_input", "conv2d_input", "conv3d_input",
    "conv1d_weight", "conv2d_weight", "conv3d_weight", "conv1d_relu", "conv2d_relu", "conv3d_relu",
)  # fmt: skip
_ATTENTION = ("attention", "flash_attention")
_RECURRENT = {"lstm_sequence": 3, "gru_sequence": 2, "rnn_sequence": 2}  # which input is the weight


def work_of(op: Any, given: tuple[Any, ...], attrs: dict[str, Any]) -> tuple[int, int]:
    """(flops, bytes) of one forward call; (0, 0) where the record of the op counts none, or the count looks at values."""
    if op.work is None:
        return 0, 0
    try:
        found = op.work(*_alike(op, given), **{**op.attrs, **attrs})
    except (
        TypeError,
        AttributeError,
        IndexError,
        ValueError,
    ):  # a call of a form that the count does not know: no number rather than a wrong one
        return 0, 0
    return int(found.flops), int(found.bytes)


def product_flops(op: Any, given: tuple[Any, ...], attrs: dict[str, Any], flops: int) -> int:
    """Of a forward's flops those of matrix products, convolutions and attention: what PyTorch's FlopCounterMode counts. Masked attention counts whole there."""
    if op.name in _PRODUCTS:
        return flops - _beside(op.name, flops, given)
    if op.name in _ATTENTION:
        return work_of(op, given, {**attrs, "causal": False})[0]
    if op.name in _RECURRENT:
        return 2 * given[0].shape[0] * given[_RECURRENT[op.name]].size
    return 0


def product_backward(name: str, product: int, given: tuple[Any, ...], needs: int) -> int:
    """The same of a backward: as many again for each factor that wants a gradient; of attention scores, and products with gradients of four."""
    if name in _PRODUCTS or name in _RECURRENT:
        return (needs if name in _PRODUCTS else 2) * product
    if name not in _ATTENTION:
        return 0
    q, k, v = given[0].shape, given[1].shape, given[2].shape
    each = 2 * math.prod(q[:-1]) * k[-2]
    return int(each * (3 * q[-1] + 2 * v[-1]))


def _alike(op: Any, given: tuple[Any, ...]) -> tuple[Any, ...]:
    """The inputs, where an op with a variadic one may have been given a list."""
    return tuple([x for y in given for x in (y if isinstance(y, tuple) else (y,))]) if op.variadic else given


def backward_work(name: str, flops: int, nbytes: int, given: tuple[Any, ...], needs: int) -> tuple[int, int]:
    """(flops, bytes) of a node's backward, of those of its forward; `needs` of the first two inputs want gradients. (0, 0) where nobody counts them."""
    if name not in _PRODUCTS or not flops:
        return 0, 0
    return needs * (flops - _beside(name, flops, given)), needs * nbytes


def _beside(name: str, flops: int, given: tuple[Any, ...]) -> int:
    """What a forward's flops hold beside the product: of linear bias, activation, scale and residual."""
    if name in _LINEAR and isinstance(given[0], Given) and isinstance(given[1], Given):
        return flops - 2 * given[0].size * given[1].shape[0]
    return 0
