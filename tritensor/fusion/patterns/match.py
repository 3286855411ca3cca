"""Match: what a pattern asks of the calls that lead to one call, and the calls that it puts in their place."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tritensor.dispatch import meta
from tritensor.fusion.graph import BACKWARD, FORWARD, WRITE, WRITE_OP, Call, DerivedNumber, Value, Window
from tritensor.fusion.patterns.windows import argument, same_order, value_of, window
from tritensor.ground.device import device
from tritensor.ground.strides import contiguous_strides
from tritensor.ops.strided_array import empty_meta
from tritensor.ops.table import Op, registry

PASSING = ("add", "cast")  # ops whose gradient may be that of their result, as it is
Factor = tuple[Call, int]  # a number of a graph: the call that takes it, and its place there


class Mismatch(Exception):
    """Calls are not what a pattern describes."""


class Uses:
    """Calls in order, with who makes and who reads each value. wanted: the values that outlive them."""

    def __init__(self, calls: Sequence[Call], wanted: set[Value]) -> None:
        self.wanted = wanted
        self.place: dict[Call, int] = {c: k for k, c in enumerate(calls)}
        self.maker: dict[Value, Call] = {v: c for c in calls for v in c.results if v is not None}
        self.readers: dict[Value, list[Call]] = {}
        for c in calls:
            for v in dict.fromkeys(c.values()):
                self.readers.setdefault(v, []).append(c)


class Match:
    """One try of a pattern, which begins at the call `last`.

    A pattern names the calls that it takes the place of (`made`, `gradient`) and puts others there (`put`, `put_gradient`, `give`). What it asks for in vain
    raises Mismatch: nothing is replaced then, nor where `check` finds that somebody else holds or reads what would be gone.
    """

    def __init__(self, uses: Uses, last: Call) -> None:
        self.uses, self.last = uses, last
        self.parts: list[Call] = [last]
        self.new: list[tuple[Call, Call]] = []  # before which call, and what

    # -- what there is
    def maker(self, x: Any) -> Call | None:
        """The call whose first result an argument is, in C order and in whatever shape; None for any other."""
        value = value_of(x)
        call = None if value is None else self.uses.maker.get(value)
        return call if call is not None and call.results[0] is value else None

    def is_made(self, x: Any, *names: str) -> bool:
        """Whether an argument is what an op of one of these names has made, be it in another shape."""
        call = self.maker(x)
        return call is not None and call.corner == FORWARD and call.op.name in names

    def made(self, x: Any, *names: str) -> Call:
        """The call of one of these ops that made an argument, which becomes part of what is replaced."""
        call = self.maker(x)
        if call is None or not self.is_made(x, *names):
            raise Mismatch
        self.take(call)
        return call

    def take(self, call: Call) -> None:
        """Let a call be part of what is replaced."""
        if call not in self.parts:
            self.parts.append(call)

    def gradient(self, call: Call, place: int, of: Any) -> Value | None:
        """The gradient of a call's input, of a gradient of its result, with the call that makes it as part of what is replaced; None where there is none."""
        known = (*call.inputs, *call.results)
        found = []
        for reader in self.uses.readers.get(_value(of), ()):
            if reader.corner != BACKWARD or reader.op is not call.op or value_of(_gradient_in(reader)) is not _value(of):
                continue
            result = reader.results[place] if reader.part is None else reader.results[0] if reader.part == place else None
            if result is not None and all([x in known for x in reader.inputs[1:] if type(x) in (Value, Window)]):
                found.append((reader, result))
        if not found:
            return None
        ((reader, result),) = found if len(found) == 1 else _none()
        self.take(reader)
        return result

    def gradient_of_result(self, path: Sequence[tuple[Call, int]], k: int) -> Any:
        """The gradient of what the first call of a chain makes, of which the gradient of its k-th call is made; None where the graph has none of that.

        path: calls, each of which reads at its place what the next one makes. The k-th is of an op whose gradient reads its result.
        """
        call = path[k][0]
        readers = [r for r in self.uses.readers.get(call.results[0], ()) if r.corner == BACKWARD and r.op is call.op]  # type: ignore[arg-type]
        if not readers:
            return None
        self.ask(len(readers) == 1)
        g = readers[0].inputs[0]
        for c, _ in reversed(path[:k]):
            maker = self.maker(g)
            if maker is not None and maker.corner == BACKWARD and maker.op is c.op:
                g = maker.inputs[0]
            else:
                self.ask(c.op.name in PASSING)
        return g

    def gradient_along(self, path: Sequence[tuple[Call, int]], g: Any) -> Any:
        """The gradient of what the last call of a chain reads, of a gradient of what its first one makes."""
        for call, place in path:
            found = self.gradient(call, place, g)
            self.ask(found is not None or call.op.name in PASSING)
            g = g if found is None else found
        return g

    def only_reader(self, value: Any, name: str) -> Call:
        """The one call that reads a value, of an op of this name, as part of what is replaced."""
        readers = self.uses.readers.get(value, [])
        self.ask(len(readers) == 1 and readers[0].op.name == name and readers[0].corner == FORWARD)
        self.take(readers[0])
        return readers[0]

    def first_gradient(self) -> Call:
        """The first of the gradients' calls that are replaced."""
        return min([c for c in self.parts if c.corner == BACKWARD], key=lambda c: self.uses.place[c])

    def ask(self, *whether: bool) -> None:
        """Raise Mismatch unless all are true."""
        if not all(whether):
            raise Mismatch

    # -- what is put in its place
    def number(self, by: Callable[..., float], factors: Sequence[Factor]) -> float | DerivedNumber:
        """What `by` makes of numbers of the graph, in each run of those that it then has."""
        return DerivedNumber(by, tuple(factors)) if factors else by()

    def put(self, name: str, *inputs: Any, on: device, at: Call | None = None, **attrs: Any) -> tuple[Value, ...]:
        """The results of an op's call before another one, `last` unless given. Mismatch where the op refuses it."""
        op = registry[name]
        before = self.last if at is None else at
        given = tuple([argument(x) if type(x) is Window else x for x in inputs])
        arrays = [empty_meta(x.shape, x.dtype, window(x).strides) if type(x) in (Value, Window) else x for x in given]
        told = {k: 1.0 if type(a) is DerivedNumber else a for k, a in attrs.items()}
        try:
            said = op.shape(*arrays, **told)
        except (ValueError, TypeError, NotImplementedError):  # as shape rules refuse
            raise Mismatch from None
        call = Call(op, FORWARD, given, attrs, before.at)
        results = []
        for k, spec in enumerate(said if type(said) is tuple else (said,)):
            strides = meta.result_strides(op, spec.shape, arrays, told, k)
            results.append(Value(spec.shape, spec.dtype, contiguous_strides(spec.shape) if strides is None else strides, on, call, k))
        call.results = tuple(results)
        self.new.append((before, call))
        return call.results  # type: ignore[return-value]

    def put_gradient(self, op: Op, named: dict[str, Any], like: Sequence[Window | None], on: device, at: Call) -> tuple[Value | None, ...]:
        """The results of an op's gradient corner, a joint one or one of a single function, before another call: `named` are the arguments by the names that
        it asks for them, `like` are arrays that the results lie as; None where none is asked for."""
        corner = op.cpu_backward if on.type == "cpu" else op.backward
        if corner is None or len(corner.functions) != 1:
            raise Mismatch
        given = tuple([named[n] for n in ("g", *corner.names[0])])
        call = Call(
            op,
            BACKWARD,
            tuple([argument(x) if type(x) is Window else x for x in given]),
            {},
            at.at,
            corner.steps[0][1],
            None if corner.joint else 0,
        )
        call.kernels = ()
        call.results = tuple([None if w is None else Value(w.shape, w.dtype, w.strides, on, call, k) for k, w in enumerate(like)])
        self.new.append((at, call))
        return call.results

    def give(self, value: Value, by: Any, at: Call | None = None) -> None:
        """Let a value of the graph be what new calls have made, which is copied where it would lie otherwise than the graph says for sure."""
        before = self.last if at is None else at
        self.ask(by is not None and by.shape == value.shape and by.dtype == value.dtype)
        maker = self.uses.maker[value]
        if not same_order(value.shape, window(by).strides, value.strides) and not (maker.corner == BACKWARD and not maker.op.broadcasts):
            self.ask(same_order(value.shape, value.strides))
            (by,) = self.put("copy", by, on=value.device, at=before, memory_format=registry["copy"].attrs["memory_format"])
        call = Call(WRITE_OP, WRITE, (None, argument(window(by)), None), {}, before.at)
        call.results = (value,)
        self.new.append((before, call))

    # -- at the end
    def check(self) -> None:
        """Raise Mismatch where what would be gone is wanted or read elsewhere, or where new calls read what is gone or not there yet."""
        uses = self.uses
        parts = set(self.parts)
        self.ask(not any([p.op.reports for p in self.parts]) or any([c.op.reports for _, c in self.new]))
        made = {v for _, c in self.new for v in c.results}
        for part in self.parts:
            for value in part.results:
                if value is not None and value not in made:
                    self.ask(value not in uses.wanted, all([r in parts for r in uses.readers.get(value, ())]))
        there: set[Value] = set()
        for before, call in self.new:
            for value in call.values():
                maker = uses.maker.get(value)
                if value not in there and maker is not None:
                    self.ask(maker not in parts, uses.place[maker] < uses.place[before])
            there.update([v for v in call.results if v is not None])


def is_number(x: Any) -> bool:
    """Whether an argument is a Python number, but no bool."""
    return type(x) is float or type(x) is int


def is_factor(x: Any) -> bool:
    """Whether it is a number above 0 and finite: all that a pattern may know of one, as plans of a structure serve any such."""
    return is_number(x) and 0 < x < math.inf


def is_floating(dtype: np.dtype) -> bool:
    """Whether a type is of real floating numbers, bfloat16 among them."""
    return dtype.kind in "fV"


def _gradient_in(call: Call) -> Any:
    """The gradient that a gradient's call is given, of an op of several results that of the first where it has no other."""
    g = call.inputs[0]
    return g[0] if type(g) is tuple and g[1:] == (None,) * (len(g) - 1) else g


def _value(x: Any) -> Any:
    return x.value if type(x) is Window else x


def _none() -> Any:
    raise Mismatch
