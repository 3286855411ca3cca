"""What stands around a call while a profile is on: two looks at the clock and a tuple; more where more is asked for."""

from __future__ import annotations

import functools
from collections.abc import Callable
from threading import get_ident
from typing import Any

from tritensor.autograd.node import Branch
from tritensor.ground.call_site import wrapper
from tritensor.profiler.recording import Recording, held, stack
from tritensor.profiler.records import NAMED, OP, Detail, Given, clock


def given_of(value: Any) -> Any:
    """An argument without its memory: arrays as Given, lists of them as tuples, numbers and strings as they are, anything else None."""
    array = getattr(value, "array", None)
    if array is not None and hasattr(array, "dtype"):
        return Given(tuple(array.shape), array.dtype)
    if isinstance(value, list | tuple):
        return tuple([given_of(v) for v in value])
    return value if value is None or isinstance(value, bool | int | float | complex | str) else None


def timed_op(recording: Recording, op: Any, call: Callable[..., Any]) -> Callable[..., Any]:
    """The call of an op, written down: with the number of the node that its result hangs at."""
    around = recording.around or (_detailed if recording.options.detailed else _plain)
    made = around(recording, op, call)
    made.profiled = call  # type: ignore[attr-defined]
    return made


def _plain(recording: Recording, op: Any, call: Callable[..., Any]) -> Callable[..., Any]:
    append, now, thread, name = recording.records.append, clock, get_ident, op.name

    @wrapper
    @functools.wraps(call)  # whose signature the door reads when arguments do not fit
    def timed(*args: Any, **attrs: Any) -> Any:
        if not recording.on:
            return call(*args, **attrs)
        start = now()
        try:
            out = call(*args, **attrs)
        except BaseException:
            append((OP, name, start, now(), thread(), 0, None))
            raise
        end = now()
        node = getattr(out, "node", None)
        append((OP, name, start, end, thread(), number_of(out) if node is None else node.sequence, None))
        return out

    return timed


def number_of(out: Any) -> int:
    """The number of the node that a result, or the first of several, hangs at; 0 where it hangs at none."""
    if type(out) is tuple:
        for y in out:
            node = getattr(y, "node", None)
            if node is not None:
                # Of an op with several outputs the result hangs at a branch of its node; a Function that returns a tuple of one has none.
                return int(node.edges[0].sequence if type(node) is Branch else node.sequence)
    return 0


def _detailed(recording: Recording, op: Any, call: Callable[..., Any]) -> Callable[..., Any]:
    append, options = recording.records.append, recording.options

    @wrapper
    @functools.wraps(call)
    def timed(*args: Any, **attrs: Any) -> Any:
        if not recording.on:
            return call(*args, **attrs)
        given = tuple([given_of(a) for a in args]) if options.inputs else None
        where = stack(2) if options.stack else None
        before = held() if options.memory else None
        sequence = 0
        start = clock()
        end = 0
        try:
            out = call(*args, **attrs)
            end = clock()
            node = getattr(out, "node", None)
            sequence = number_of(out) if node is None else node.sequence
            return out
        finally:
            kept = {k: given_of(v) if hasattr(v, "array") else v for k, v in attrs.items()} if options.inputs else None
            after = held() if options.memory else None
            append((OP, op.name, start, end or clock(), get_ident(), sequence, Detail(given, kept, before, after, where, op)))

    return timed


def timed_call(
    recording: Recording, kind: int, what: Callable[..., Any], call: Callable[..., Any], only: Callable[[Any], bool] | None = None
) -> Callable[..., Any]:
    """Any other call, written down as `what(*args)` says. `only`: whether a result is worth it."""
    append, options = recording.records.append, recording.options
    detailed = options.memory or options.stack

    @wrapper
    @functools.wraps(call)
    def timed(*args: Any, **kwargs: Any) -> Any:
        if not recording.on:
            return call(*args, **kwargs)
        said = what(*args)
        where = stack(2) if options.stack else None
        before = held() if options.memory else None
        start = clock()
        wanted, sequence = True, 0
        try:
            out = call(*args, **kwargs)
            wanted = only is None or only(out)
            if kind == NAMED and (node := getattr(out, "node", None)) is not None:
                sequence = node.sequence
            return out
        finally:
            end = clock()
            if wanted:
                detail = Detail(None, None, before, held() if options.memory else None, where) if detailed else None
                append((kind, said, start, end, get_ident(), sequence, detail))

    return timed
