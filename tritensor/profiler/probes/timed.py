"""Timed wrappers of calls: two readings of the clock and a tuple; shapes, memory and stacks where they are asked for."""

from __future__ import annotations

import functools
from collections.abc import Callable
from threading import get_ident
from typing import Any

from tritensor.autograd.node import Branch
from tritensor.ground.call_site import wrapper
from tritensor.profiler.recording import Recording, held, stack
from tritensor.profiler.records import NAMED, OP, ArrayInfo, Detail, clock


def strip_memory(value: Any) -> Any:
    """An argument without its memory: arrays as Given, lists of them as tuples, numbers and strings as they are, anything else None."""
    array = getattr(value, "_array", None)
    if array is not None and hasattr(array, "dtype"):
        return ArrayInfo(tuple(array.shape), array.dtype)
    if isinstance(value, list | tuple):
        return tuple([strip_memory(v) for v in value])
    return value if value is None or isinstance(value, bool | int | float | complex | str) else None


def time_op(recording: Recording, op: Any, call: Callable[..., Any]) -> Callable[..., Any]:
    """An op's call, timed, with the sequence number of its result's node."""
    around = recording.around or (_time_op_in_detail if recording.options.detailed else _time_op)
    made = around(recording, op, call)
    made.profiled = call  # type: ignore[attr-defined]
    return made


def _time_op(recording: Recording, op: Any, call: Callable[..., Any]) -> Callable[..., Any]:
    append, now, thread, name = recording.records.append, clock, get_ident, op.name

    @wrapper
    @functools.wraps(call)  # its signature is read for the error when arguments do not fit
    def timed(*args: Any, **attrs: Any) -> Any:
        if not recording.on:
            return call(*args, **attrs)
        start = now()
        try:
            out = call(*args, **attrs)
        except BaseException:
            append((OP, name, start, now(), thread(), 0, None))  # a call that raises took time as well
            raise
        end = now()
        node = getattr(out, "_node", None)
        append((OP, name, start, end, thread(), find_sequence(out) if node is None else node.sequence, None))
        return out

    return timed


def find_sequence(out: Any) -> int:
    """The sequence number of the node of a result, or of the first of several; 0 without a node."""
    if type(out) is tuple:  # looked at last: most ops have one output
        for y in out:
            node = getattr(y, "_node", None)
            if node is not None:
                # an op with several outputs has a branch of its node for each; a Function that returns a tuple of one has none
                return int(node.edges[0].sequence if type(node) is Branch else node.sequence)
    return 0


def _time_op_in_detail(recording: Recording, op: Any, call: Callable[..., Any]) -> Callable[..., Any]:
    append, options = recording.records.append, recording.options

    @wrapper
    @functools.wraps(call)
    def timed(*args: Any, **attrs: Any) -> Any:
        if not recording.on:
            return call(*args, **attrs)
        given = tuple([strip_memory(a) for a in args]) if options.inputs else None
        where = stack(2) if options.stack else None
        before = held() if options.memory else None
        sequence = 0
        start = clock()
        end = 0
        try:
            out = call(*args, **attrs)
            end = clock()
            node = getattr(out, "_node", None)
            sequence = find_sequence(out) if node is None else node.sequence
            return out
        finally:
            kept = {k: strip_memory(v) if hasattr(v, "_array") else v for k, v in attrs.items()} if options.inputs else None
            after = held() if options.memory else None
            append((OP, op.name, start, end or clock(), get_ident(), sequence, Detail(given, kept, before, after, where, op)))

    return timed


def time_call(
    recording: Recording, kind: int, what: Callable[..., Any], call: Callable[..., Any], only: Callable[[Any], bool] | None = None
) -> Callable[..., Any]:
    """Any other call, timed, under the name `what(*args)`. `only` says of a result whether the call is kept."""
    append, options = recording.records.append, recording.options
    detailed = options.memory or options.stack

    @wrapper
    @functools.wraps(call)
    def timed(*args: Any, **kwargs: Any) -> Any:
        if not recording.on:
            return call(*args, **kwargs)
        name = what(*args)
        where = stack(2) if options.stack else None
        before = held() if options.memory else None
        start = clock()
        wanted, sequence = True, 0
        try:
            out = call(*args, **kwargs)
            wanted = only is None or only(out)
            if kind == NAMED and (node := getattr(out, "_node", None)) is not None:
                sequence = node.sequence
            return out
        finally:
            end = clock()
            if wanted:
                detail = Detail(None, None, before, held() if options.memory else None, where) if detailed else None
                append((kind, name, start, end, get_ident(), sequence, detail))

    return timed
