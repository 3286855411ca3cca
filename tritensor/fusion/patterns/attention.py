"""Attention written by hand, softmax(scale q @ k^T + mask) @ v, as the attention op; its gradients where the graph has them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tritensor.fusion.graph import Call, Value, Window
from tritensor.fusion.patterns.match import Factor, Match, Mismatch, is_factor, is_floating, is_number
from tritensor.fusion.patterns.windows import expanded, reshaped, same_order, transposed, window
from tritensor.ground.strides import contiguous_strides
from tritensor.ops.strided_array import empty_meta
from tritensor.ops.table import registry

LEAST = 1 << 17  # weights from which the CPU's op is faster than the calls one by one: below it its blocks cost more than they save
LARGEST = 256  # features of a head that the flash kernels take

Shape = tuple[int, ...]


class Mask(NamedTuple):
    """A mask of scores. `fill`: where the condition `x` says `hidden` the scores are -inf; else `x` is added to them."""

    x: Any
    fill: bool
    hidden: bool = True


class Scores(NamedTuple):
    """What a softmax is of: its masks, numbers that the product was multiplied by or (`above` False) divided by, the product's call, leading sizes."""

    masks: list[Mask]
    factors: list[tuple[Factor, bool]]
    product: Call
    lead: Shape
    path: list[tuple[Call, int]]  # calls from the softmax's input down to the product, each with the place of what leads on


def attention(m: Match) -> None:
    """softmax(scale q @ k^T + mask, -1) @ v; the scores may be multiplied and divided by numbers, masked, and cast to another floating type and back.

    Rounding: scores and weights are not rounded to 16 bits on the way, and the sums are the op's. A row that sees no key is NaN, as by hand.
    """
    weights, v = m.last.inputs
    (y,) = m.last.results
    assert y is not None
    m.ask(is_floating(y.dtype), type(v) in (Value, Window), 0 not in y.shape)
    path: list[tuple[Call, int]] = [(m.last, 0)]
    x = _past_casts(m, weights, path)
    softmax = m.made(x, "softmax")
    rows = _first(softmax)
    path.append((softmax, 0))
    m.ask(softmax.attrs["dim"] in (-1, len(rows.shape) - 1), len(v.shape) > 1)
    scores = _scores(m, softmax.inputs[0], rows.shape[:-2])
    q, k_t = scores.product.inputs
    m.ask(weights.shape[:-2] == y.shape[:-2], weights.shape[-2:] == rows.shape[-2:] == _first(scores.product).shape[-2:])
    m.ask(
        len(q.shape) > 1,
        len(k_t.shape) > 1,
        q.dtype == k_t.dtype == v.dtype == y.dtype,
        y.device.type == "cuda" or math.prod(rows.shape) >= LEAST,
    )
    own, lead = _first(scores.product).shape[:-2], scores.lead
    operands = _operand(q, own, lead), _operand(transposed(k_t), own, lead), _operand(v, y.shape[:-2], lead)
    mask, causal = _mask(m, scores.masks, (*lead, *rows.shape[-2:]), y)
    scale = m.number(partial(_scale, above=tuple([a for _, a in scores.factors])), [f for f, _ in scores.factors])
    name = _op(y, operands)
    more: dict[str, Any] = {"p": 0.0, "seed": 0, "offset": 0} if name == "flash_attention" else {}
    results = m.put(name, *operands, mask, on=y.device, scale=scale, causal=causal, **more)
    named = {
        **dict(zip("qkv", operands, strict=True)),
        "mask": mask,
        "scale": scale,
        "causal": causal,
        **more,
        **dict(zip(registry[name].outputs, results, strict=True)),
    }
    _gradients(m, [*path, *scores.path], operands, name, named)
    _result(m, y, results[0])


def _op(y: Value, operands: Sequence[Window]) -> str:
    """Which of the two ops takes it, as scaled_dot_product_attention chooses."""
    wide = max([x.shape[-1] for x in operands]) > LARGEST
    return "attention" if y.device.type == "cpu" or wide or y.dtype == np.float64 else "flash_attention"


def _first(call: Call) -> Value:
    (value, *_) = call.results
    assert value is not None
    return value


# -- what leads to the softmax
def _past_casts(m: Match, x: Any, path: list[tuple[Call, int]]) -> Any:
    """What floating numbers were before they were cast to another floating type."""
    while m.is_made(x, "cast"):
        call = m.made(x, "cast")
        path.append((call, 0))
        x = call.inputs[0]
        m.ask(is_floating(x.dtype))
    return x


def _scores(m: Match, x: Any, lead: Shape) -> Scores:
    """The chain from a softmax's input down to the product of queries and keys."""
    masks: list[Mask] = []
    path: list[tuple[Call, int]] = []
    while True:
        x = _past_casts(m, x, path)
        if m.is_made(x, "where"):
            call = m.made(x, "where")
            place = 2 if call.inputs[1] == -math.inf else 1
            m.ask(is_number(call.inputs[3 - place]), call.inputs[3 - place] == -math.inf)
            masks.append(Mask(call.inputs[0], True, place == 2))
        elif m.is_made(x, "add"):
            call = m.made(x, "add")
            place = 0 if _is_product(m, call.inputs[0]) else 1
            masks.append(Mask(call.inputs[1 - place], False))
        else:
            break
        m.ask(type(masks[-1].x) in (Value, Window), call.inputs[place].shape == _first(call).shape)
        m.ask(len(masks) == 1 or _first(call).shape[:-2] == lead)  # all masks are of one shape of scores
        lead = _first(call).shape[:-2]
        path.append((call, place))
        x = call.inputs[place]
    factors: list[tuple[Factor, bool]] = []
    while m.is_made(x, "mul", "div"):
        call = m.made(x, "mul", "div")
        place = 1 if is_number(call.inputs[0]) else 0
        m.ask(is_factor(call.inputs[1 - place]), place == 0 or call.op.name == "mul")
        factors.append(((call, 1 - place), call.op.name == "mul"))
        path.append((call, place))
        x = _past_casts(m, call.inputs[place], path)
    product = m.made(x, "matmul")
    return Scores(masks, factors, product, lead, [*path, (product, 0)])


def _is_product(m: Match, x: Any) -> bool:
    """Whether an argument comes from a product by nothing but what `_scores` follows."""
    while (call := m.maker(x)) is not None and call.op.name in ("cast", "mul", "div", "where", "add"):
        if call.op.name == "add":
            return any([_is_product(m, y) for y in call.inputs])
        x = next((y for y in call.inputs if type(y) in (Value, Window) and is_floating(y.dtype)), None)
    return m.is_made(x, "matmul")


def _scale(*numbers: float, above: tuple[bool, ...]) -> float:
    """The product of numbers, of those that were divided by their inverses."""
    return math.prod([float(n) if up else 1 / n for n, up in zip(numbers, above, strict=True)])


def _operand(x: Any, own: Shape, lead: Shape) -> Window:
    """Queries, keys or values with the leading sizes of their product, in the shape of the masked scores."""
    found = reshaped(expanded(x, (*own, *x.shape[-2:])), (*lead, *x.shape[-2:]))
    if found is None:
        raise Mismatch
    return found


# -- masks
def _mask(m: Match, masks: list[Mask], shape: Shape, y: Value) -> tuple[Any, bool]:
    """The op's mask, and whether it is causal: one of numbers that are added, NaN in a row that sees nothing, which the op would make 0."""
    if not masks:
        return None, False
    if len(masks) == 1 and _is_causal(m, masks[0], shape):
        return None, True
    total: Any = None
    for x, fill, hidden in masks:
        m.ask(0 < len(x.shape) <= len(shape), fill or x.dtype == y.dtype)
        if fill:
            (other,) = (total,) if total is not None else m.put("full", on=y.device, shape=(), value=0.0, dtype=y.dtype, device=y.device)
            (total,) = m.put("where", x, *((-math.inf, other) if hidden else (other, -math.inf)), on=y.device)
        else:
            (total,) = (x,) if total is None else m.put("add", total, x, on=y.device)
    (top,) = m.put("amax", total, on=y.device, dim=(len(total.shape) - 1,), keepdim=True)
    (nothing,) = m.put("sub", top, top, on=y.device)
    (total,) = m.put("add", total, nothing, on=y.device)
    return total, False


def _is_causal(m: Match, mask: Mask, shape: Shape) -> bool:
    """Whether a mask is made in the graph, and hides from each query the keys behind it."""
    x, hidden = mask.x, mask.hidden
    if math.prod(x.shape) != math.prod(shape[-2:]) or x.shape[-2:] != shape[-2:]:
        return False
    if not mask.fill:
        return _is_triangle(m, x, "triu", 1, -math.inf)
    while (call := m.maker(x)) is not None and call.op.name in ("logical_not", "bitwise_not", "eq", "ne", "cast"):
        if call.op.name in ("eq", "ne") and not (is_number(call.inputs[1]) and call.inputs[1] == 0):
            return False
        if call.op.name == "cast" and call.attrs["dtype"] != np.bool_:
            return False
        if call.op.name not in ("ne", "cast"):
            hidden = not hidden
        x = call.inputs[0]
        if call.op.name == "bitwise_not" and x.dtype != np.bool_:
            return False
    return _is_triangle(m, x, "triu", 1) if hidden else _is_triangle(m, x, "tril", 0)


def _is_triangle(m: Match, x: Any, name: str, diagonal: int, value: float | None = None) -> bool:
    """Whether an array is a triangle of one value, any but 0 and NaN unless given."""
    call = m.maker(x)
    if call is None or call.op.name != name or call.attrs["diagonal"] != diagonal:
        return False
    full = m.maker(call.inputs[0])
    if full is None or full.op.name != "full":
        return False
    found = full.attrs["value"]
    return bool(found == value if value is not None else found and found == found)


# -- results
def _result(m: Match, y: Value, made: Value) -> None:
    """Let the op's result be the graph's; where that is only copied with its heads beside each other, as the op lays them, it is the copy too."""
    readers = m.uses.readers.get(y, ())
    found = reshaped(made, y.shape)
    if found is None:
        raise Mismatch
    if len(readers) == 1 and y not in m.uses.wanted and readers[0].op.name == "copy" and type(readers[0].inputs[0]) is Window:
        (copy,) = readers
        seen, copied = copy.inputs[0], _first(copy)
        order = _order(seen, y)
        if order is not None:
            turned = found._replace(shape=seen.shape, strides=tuple([found.strides[d] for d in order]))
            if same_order(copied.shape, turned.strides, copied.strides):
                m.take(copy)
                m.give(copied, turned, at=copy)
                return
    m.give(y, found)


def _order(seen: Window, y: Value) -> list[int] | None:
    """The dims of a value in the order in which a window shows all of it; None for any other window."""
    dims = {s: d for d, s in enumerate(y.strides)}
    order = [dims.get(s, -1) for s in seen.strides]
    if seen.first or sorted(order) != list(range(len(y.shape))) or seen.shape != tuple([y.shape[d] for d in order]):
        return None
    return order


# -- gradients
def _gradients(m: Match, path: Sequence[tuple[Call, int]], operands: Sequence[Window], name: str, named: dict[str, Any]) -> None:
    """Put the op's gradient in the place of those of the chain, where the graph has them. `path` leads from the second product to the first one."""
    g = m.gradient_of_result(path, next(k for k, (c, _) in enumerate(path) if c.op.name == "softmax"))
    if g is None:
        return
    last, product = path[0][0], path[-1][0]
    down = m.gradient_along(path[:-1], g)
    wanted = m.gradient(product, 0, down), m.gradient(product, 1, down), m.gradient(last, 1, g)
    at = m.first_gradient()
    named = {**named, "g": _operand(g, g.shape[:-2], operands[0].shape[:-2]), "needs": (*[d is not None for d in wanted], False)}
    like = [None if d is None else _as_op_lays(x, name) for d, x in zip(wanted, operands, strict=True)]
    made = m.put_gradient(registry[name], named, [*like, None], _first(last).device, at)
    for value, given, turn in zip(wanted, made, (window, transposed, window), strict=False):
        if value is not None and given is not None:
            shape = turn(value).shape
            m.give(value, turn(_operand(given, given.shape[:-2], shape[:-2])), at)


def _as_op_lays(x: Window, name: str) -> Window:
    """A gradient of an operand, as the op's corner lays it."""
    like = empty_meta(x.shape, x.dtype, x.strides)
    from tritensor.kernels.attention.layout import strides_like

    return x._replace(strides=strides_like(like, x.shape[-1]) if name == "flash_attention" else contiguous_strides(x.shape))
