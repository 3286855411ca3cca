"""int32 arithmetic that wraps around on its way into an address: values carry what they would be, until they are right again or used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import triton.language as tl
from triton.runtime import interpreter as upstream

from tritensor.cuda.emulator.source_lines import kernel_line

_Handle = upstream.TensorHandle
KEY = "exact"  # among a handle's attributes
BOUND = "bound"  # there too: no value of the handle is further from 0, which is at least 1
_INT32, _INT64 = np.dtype(np.int32), np.dtype(np.int64)
_LIMIT = 1 << 31


class Exact(NamedTuple):
    """What int32 values that wrapped around would be in int64 (lanes that did not hold the same value), and where the first one wrapped."""

    values: np.ndarray
    where: str


def binary(function: Callable[..., np.ndarray], name: str, most: Callable[[int, int], int]) -> Callable[[Any, Any, Any], Any]:
    """A builder's method for int32 arithmetic that may wrap around.

    `function` is numpy's, `name` what a message calls it, `most(a, b)` the largest result of operands up to a and b: as long as that fits,
    nothing else is looked at. int32 alone is watched: in unsigned arithmetic, as in C, wrapping around is what the author wants (hashes,
    random numbers).
    """

    def method(self: Any, lhs: Any, rhs: Any) -> Any:
        out = self.binary_op(lhs, rhs, function)
        carried = KEY in lhs.attr or KEY in rhs.attr
        # of arrays in an address's making nearly all are small: two bounds multiplied spare the arithmetic in int64
        if out.data.dtype is _INT32:
            bound = most(lhs.attr.get(BOUND) or _bound(lhs), rhs.attr.get(BOUND) or _bound(rhs))
            if bound < _LIMIT and not carried:
                out.attr[BOUND] = bound
                return out
            x, y = _exact_values(lhs), _exact_values(rhs)
            exact = function(x, y, dtype=np.int64)
            wrong = exact != out.data
            if wrong.any():
                out.attr[KEY] = Exact(exact, _source(lhs, rhs) or _describe(name, x, y, exact, wrong))
        elif carried:
            _keep(out, function(_exact_values(lhs), _exact_values(rhs)), _source(lhs, rhs))
        return out

    return method


def through(function: Callable[..., np.ndarray]) -> Callable[[Any, Any, Any], Any]:
    """A builder's method for integer arithmetic whose result is no larger than its operands, which may have wrapped around."""

    def method(self: Any, lhs: Any, rhs: Any) -> Any:
        out = self.binary_op(lhs, rhs, function)
        if KEY in lhs.attr or KEY in rhs.attr:
            _keep(out, function(_exact_values(lhs), _exact_values(rhs)), _source(lhs, rhs))
        elif BOUND in lhs.attr and BOUND in rhs.attr:
            out.attr[BOUND] = max(lhs.attr[BOUND], rhs.attr[BOUND])
        return out

    return method


def moved(source: Any, out: Any, again: Callable[[Any], Any]) -> Any:
    """`out`, which holds values of `source` in other places; `again(handle)` puts a handle's values there."""
    if BOUND in source.attr:
        out.attr[BOUND] = source.attr[BOUND]
    if KEY in source.attr:
        exact = np.broadcast_to(source.attr[KEY].values, source.data.shape)
        out.attr[KEY] = Exact(again(_Handle(exact, tl.int1 if exact.dtype == np.bool_ else tl.int64)).data, source.attr[KEY].where)
    return out


def cast(source: Any, out: Any) -> Any:
    """`out`, which is `source` cast to another integer type; a 64-bit value that int32 cannot hold wraps around."""
    if KEY in source.attr:
        _keep(out, source.attr[KEY].values, source.attr[KEY].where)
    elif out.data.dtype is _INT32 and source.data.dtype is _INT64:
        wrong = source.data != out.data
        if wrong.any():
            value = int(np.broadcast_to(source.data, wrong.shape)[wrong][0])
            out.attr[KEY] = Exact(source.data, f"{value} cast to int32 in {kernel_line()}")
    return out


def select(cond: Any, lhs: Any, rhs: Any, out: Any) -> Any:
    """`out`, which is `lhs` where `cond` holds and `rhs` elsewhere."""
    if KEY in lhs.attr or KEY in rhs.attr:
        _keep(out, np.where(cond.data, _exact_values(lhs), _exact_values(rhs)), _source(lhs, rhs))
    return out


def offset(ptr: Any, by: Any, out: Any) -> Any:
    """`out`, which is the pointer `ptr` moved by `by` elements: it carries which lanes wrapped around on their way here."""
    wrong = [np.asarray(by.attr[KEY].values != by.data)] if KEY in by.attr else []
    wrong += [ptr.attr[KEY].values] if KEY in ptr.attr else []
    if wrong:
        lanes = np.broadcast_to(wrong[0] | wrong[-1], out.data.shape)
        out.attr[KEY] = Exact(lanes, (by if KEY in by.attr else ptr).attr[KEY].where)
    return out


def _bound(handle: Any) -> int:
    """The largest distance of a value from 0, or 1, kept with the handle."""
    data = handle.data
    found = abs(int(data.reshape(-1)[0])) if data.size == 1 else max(int(data.max(initial=0)), -int(data.min(initial=0)))
    handle.attr[BOUND] = found = found or 1
    return found


def _exact_values(handle: Any) -> np.ndarray:
    """What a value would be if nothing had wrapped around."""
    return handle.attr[KEY].values if KEY in handle.attr else handle.data


def _keep(out: Any, exact: np.ndarray, where: str) -> None:
    """Note what `out` would be, unless it is that."""
    if (exact != out.data).any():
        out.attr[KEY] = Exact(exact, where)


def _source(lhs: Any, rhs: Any) -> str:
    return next((h.attr[KEY].where for h in (lhs, rhs) if KEY in h.attr), "")


def _describe(name: str, x: np.ndarray, y: np.ndarray, exact: np.ndarray, wrong: np.ndarray) -> str:
    """The first of the operations that wrapped around, in numbers."""
    one, two, result = (int(np.broadcast_to(v, wrong.shape)[wrong][0]) for v in (x, y, exact))
    return f"{one} {name} {two} is {result} in {kernel_line()}"
