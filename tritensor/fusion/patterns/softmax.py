"""Softmax written by hand where it is trained: its forward fuses as well by itself, its gradient passes through the largest of each row for nothing."""

from __future__ import annotations

from typing import Any

from tritensor.fusion.graph import BACKWARD, Call
from tritensor.fusion.patterns.match import Match, Mismatch, is_floating, is_number
from tritensor.fusion.patterns.windows import window
from tritensor.ground.strides import contiguous_strides
from tritensor.ops.table import registry


def softmax(m: Match) -> None:
    """e / sum e, e = exp(x - max x), in a graph with its gradient, of which a part passes through max x.

    All of that part is rounding: a softmax does not change by what is taken off a row. Without it, and without a gradient, the chain fuses into one launch.
    """
    (y,) = m.last.results
    e, total = m.last.inputs
    exp = m.made(e, "exp")
    less = m.made(exp.inputs[0], "sub")
    x, top = less.inputs
    largest = take_largest(m, top, x)
    summed = m.made(total, "sum")
    m.ask(y is not None and is_floating(y.dtype), e is exp.results[0], summed.inputs[0] is e, is_last(summed, x))
    assert y is not None
    g = _gradient_of_quotient(m, exp)
    (made,) = m.put("softmax", x, on=y.device, dim=len(x.shape) - 1)
    of_e, of_total = m.gradient(m.last, 0, g), m.gradient(m.last, 1, g)
    m.ask(of_e is not None, of_total is not None)
    back = m.gradient(summed, 0, m.only_reader(of_total, "sum").results[0])
    both = m.only_reader(of_e, "add")
    m.ask(back in both.inputs)
    down = m.gradient(exp, 0, both.results[0])
    dx, of_top = m.gradient(less, 0, down), m.gradient(less, 1, down)
    through = m.gradient(largest, 0, m.only_reader(of_top, "sum").results[0])
    joined = m.only_reader(dx, "add")
    m.ask(through in joined.inputs)
    at, dx = m.first_gradient(), joined.results[0]
    assert dx is not None
    like = window(x)._replace(strides=contiguous_strides(x.shape))
    m.give(dx, m.put_gradient(registry["softmax"], {"g": g, "y": made, "dim": len(x.shape) - 1}, (like,), y.device, at)[0], at)
    m.give(y, made)


def take_largest(m: Match, top: Any, x: Any) -> Call:
    """The call that makes the largest of each row, or (with two more) 0 where that is infinite, as part of what is replaced."""
    if m.is_made(top, "where"):
        finite, top, zero = m.made(top, "where").inputs
        m.ask(m.made(finite, "isfinite").inputs[0] is top, is_number(zero), zero == 0)
    call = m.made(top, "amax", "max_dim")
    m.ask(call.inputs[0] == x, is_last(call, x))
    return call


def is_last(call: Call, x: Any) -> bool:
    """Whether a call reduces the last dim, and keeps it."""
    last = len(x.shape) - 1
    return bool(last >= 0 and call.attrs["dim"] in (last, (last,)) and call.attrs["keepdim"])


def _gradient_of_quotient(m: Match, exp: Call) -> Any:
    """The gradient of e / sum e, from that of e."""
    readers = [r for r in m.uses.readers.get(exp.results[0], ()) if r.corner == BACKWARD and r.op is exp.op]  # type: ignore[arg-type]
    m.ask(len(readers) == 1)
    for part in m.made(readers[0].inputs[0], "add").inputs:
        maker = m.maker(part)
        if maker is not None and maker.corner == BACKWARD and maker.op is m.last.op:
            return maker.inputs[0]
    raise Mismatch
