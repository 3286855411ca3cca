"""Flops and bytes of events, counted by the ops' records; a product's backward takes as many again for each gradient."""

from __future__ import annotations

import math
from typing import Any

from tritensor.profiler.records import ArrayInfo

_LINEAR = ("linear", "linear_activation", "linear_activation_by_result")
# Ops whose gradient by either factor is a product of the same size. The cost of bias, activation and residual is not part of it.
_PRODUCTS = (
    *_LINEAR, "matmul", "add_product", "conv1d", "conv2d", "conv3d", "conv1d_input", "conv2d_input", "conv3d_input",
    "conv1d_weight", "conv2d_weight", "conv3d_weight", "conv1d_relu", "conv2d_relu", "conv3d_relu",
)  # fmt: skip
_ATTENTION = ("attention", "flash_attention")
_RECURRENT = {"lstm_sequence": 3, "gru_sequence": 2, "rnn_sequence": 2}  # the input that is the weight


def count_work(op: Any, given: tuple[Any, ...], attrs: dict[str, Any]) -> tuple[int, int]:
    """(flops, bytes) of one forward call; (0, 0) where the record of the op counts none, or the count looks at values."""
    if op.work is None:
        return 0, 0
    try:
        found = op.work(*_flatten_variadic(op, given), **{**op.attrs, **attrs})
    except (
        TypeError,
        AttributeError,
        IndexError,
        ValueError,
    ):  # a form of the call that `work` does not know: no number rather than a wrong one
        return 0, 0
    return int(found.flops), int(found.bytes)


def product_flops(op: Any, given: tuple[Any, ...], attrs: dict[str, Any], flops: int) -> int:
    """The flops of matrix products, convolutions and attention in a forward, which PyTorch's FlopCounterMode counts. Masked attention counts whole there."""
    if op.name in _PRODUCTS:
        return flops - _flops_beside_product(op.name, flops, given)
    if op.name in _ATTENTION:
        return count_work(op, given, {**attrs, "causal": False})[0]
    if op.name in _RECURRENT:
        return 2 * given[0].shape[0] * given[_RECURRENT[op.name]].size  # a row of the input meets the whole weight at each step
    return 0


def count_product_backward(name: str, product: int, given: tuple[Any, ...], needs: int) -> int:
    """The same of a backward: as many again for each factor that wants a gradient; of attention scores, and products with gradients of four."""
    if name in _PRODUCTS or name in _RECURRENT:
        return (needs if name in _PRODUCTS else 2) * product
    if name not in _ATTENTION:
        return 0
    q, k, v = given[0].shape, given[1].shape, given[2].shape
    each = 2 * math.prod(q[:-1]) * k[-2]
    return int(each * (3 * q[-1] + 2 * v[-1]))


def _flatten_variadic(op: Any, given: tuple[Any, ...]) -> tuple[Any, ...]:
    """The inputs, the lists of an op with a variadic one flattened."""
    return tuple([x for y in given for x in (y if isinstance(y, tuple) else (y,))]) if op.variadic else given


def count_backward_work(name: str, flops: int, nbytes: int, given: tuple[Any, ...], needs: int) -> tuple[int, int]:
    """(flops, bytes) of a node's backward, of those of its forward; `needs` of the first two inputs want gradients. (0, 0) where nobody counts them."""
    if name not in _PRODUCTS or not flops:
        return 0, 0
    return needs * (flops - _flops_beside_product(name, flops, given)), needs * nbytes


def _flops_beside_product(name: str, flops: int, given: tuple[Any, ...]) -> int:
    """The flops of a forward beside its product: of linear bias, activation, scale and residual."""
    if name in _LINEAR and isinstance(given[0], ArrayInfo) and isinstance(given[1], ArrayInfo):
        return flops - 2 * given[0].size * given[1].shape[0]
    return 0
