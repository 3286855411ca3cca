"""What stands around a call while a profile is on: two looks at the clock and a tuple; more where more is asked for."""

from __future__ import annotations

import functools
from collections.abc import Callable
from threading import get_ident
from typing import Any

from tritensor.call_site import wrapper
from tritensor.cuda import nvtx
from tritensor.profiler.raw import NAMED, OP, Detail, Given, clock
from tritensor.profiler.recording import Recording, held, stack


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
    around = _ranged if recording.options.nvtx else _detailed if recording.options.detailed else _plain
    return around(recording, op, call)


def _ranged(recording: Recording, op: Any, call: Callable[..., Any]) -> Callable[..., Any]:
    """A range for NVIDIA's tools instead of a record."""

    @wrapper
    @functools.wraps(call)
    def ranged(*args: Any, **attrs: Any) -> Any:
        if not recording.on:
            return call(*args, **attrs)
        nvtx.range_push(ranged_name(op.name, args if recording.options.inputs else None))
        try:
            return call(*args, **attrs)
        finally:
            nvtx.range_pop()

    ranged.profiled = call  # type: ignore[attr-defined]
    return ranged


def ranged_name(name: str, args: tuple[Any, ...] | None) -> str:
    """What a range is called: the op, and the shapes of its inputs where they are asked for."""
    if args is None:
        return name
    shapes = [list(a.array.shape) if hasattr(a, "array") else [] for a in args]
    return f"{name}, sizes = {shapes}"


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

    timed.profiled = call  # type: ignore[attr-defined]
    return timed


def number_of(out: Any) -> int:
    """The number of the node that a result, or the first of several, hangs at; 0 where it hangs at none."""
    if type(out) is tuple:
        for y in out:
            node = getattr(y, "node", None)
            if node is not None:
                return int(node.edges[0].sequence)  # of an op with several outputs the result hangs at a branch of its node
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

    timed.profiled = call  # type: ignore[attr-defined]
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
