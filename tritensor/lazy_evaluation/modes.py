"""Modes of lazy evaluation: `lazy()`, inside of which ops are noted and not run, and `evaluate`, which runs what leads to tensors."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator
from typing import Any

from tritensor.ground import thread_state
from tritensor.ground.pytree import tree_leaves
from tritensor.ground.thread_state import here
from tritensor.lazy_evaluation.known.door_code import install
from tritensor.lazy_evaluation.known.fresh import FreshTensor
from tritensor.lazy_evaluation.regions import close_region, close_with_thread, go_on, leave_open, open_region
from tritensor.lazy_evaluation.segment import Segment
from tritensor.ops.lazy_array import LazyArray
from tritensor.tensor.core import Tensor


class lazy(contextlib.ContextDecorator):
    """Inside, ops are noted as they are called and run when a value is asked for: by `item`, `print`, `numpy`, a condition, `evaluate`, or at the end.

    Python runs as ever, so that conditions, closures and globals mean what they mean; what nobody holds any more, and nothing needs, is not computed.
    Errors of shapes, types and devices come at the line of the call, those of values (a label out of range) when the values are asked for, with that
    line noted. Of this thread alone; a decorator, too.

    >>> with tt.lazy():
    ...     y = tt.ones(3) + 2
    ...     z = y * y
    >>> z
    tensor([9., 9., 9.])
    """

    def __init__(self) -> None:
        self._mine: list[Any] = []  # a stack of segments, or None: one object may be entered again inside itself

    def __enter__(self) -> lazy:
        self._mine.append(here.segment if enter_region() else None)
        return self

    def __exit__(self, *error: object) -> None:
        mine = self._mine.pop()
        if mine is not None and mine is here.segment:  # a generator may be closed in another thread, or while something runs at once
            try:
                if error[0] is None:
                    here.segment.settle(why="the end of lazy()")
            finally:
                close_region()


def enter_region() -> bool:
    """Open a region in this thread, or go on with the one that a compiled function has left open. Gives False inside of another one, of which this is part."""
    if here.segment is not None:
        return go_on(here.segment)
    begin()
    return True


def leave_region(results: Any, why: str) -> None:
    """The end of a compiled function that `enter_region` gave True: what waits is computed, and the region closed. Where its results require grad, nothing is
    computed and the region stays open, so that loss, backward and clipping join the segment: until a value is asked for when nobody holds the results'
    graph any more, or until an optimizer has made its step."""
    segment = here.segment
    nodes = _graph_of(results)
    if nodes:
        segment.graph = nodes
        leave_open(segment)
        return
    try:
        segment.settle(why=why)
    finally:
        close_region()


def abandon_region(error: BaseException | None, why: str) -> None:
    """The end by an error, or by what ends a generator (None): what was written before it is computed, as it was when each op ran by itself, and the region
    closed."""
    segment = here.segment
    try:
        if error is None or isinstance(error, Exception):
            segment.settle(why=why)
    except Exception as other:  # whoever asks for what could not be computed is told again
        if error is None:
            raise
        error.add_note(f"before that, {type(other).__name__}: {other}")
    finally:
        close_region()


def close_if_left_open(why: str) -> None:
    """Compute what waits in a region that a compiled function has left open, and close it."""
    segment = here.segment
    if segment is not None and go_on(segment):
        try:
            segment.settle(why=why)
        finally:
            close_region()


@contextlib.contextmanager
def at_once_inside(why: str) -> Iterator[None]:
    """Inside, ops run as they are called, whatever region this is in; what waits is computed first."""
    segment, cursor = here.segment, here.cursor
    if segment is None:
        yield
        return
    segment.settle(why=why)
    left = go_on(segment)
    here.segment, here.cursor = None, thread_state.nowhere
    try:
        yield
    finally:
        if here.segment is not None:  # a compiled function has left it open
            close_region()
        here.segment, here.cursor = segment, cursor
        if left:
            leave_open(segment)


def _graph_of(results: Any) -> list[Any]:
    """The nodes, held weakly, of results that wait and require grad; of a known path the tensors, which have no nodes yet."""
    tensors = [results] if isinstance(results, Tensor) else [t for t in tree_leaves(results) if isinstance(t, Tensor)]
    waiting = [t for t in tensors if t._tracked and _is_pending(t)]
    return [weakref.ref(t if type(t) is FreshTensor or t._node is None else t._node) for t in waiting]


def _is_pending(t: Tensor) -> bool:
    return type(t) is FreshTensor or (type(t._array) is LazyArray and t._array.pending)


def begin() -> None:
    """Open a region in this thread."""
    install()
    segment = here.own_segment
    if segment is None:
        segment = here.own_segment = Segment()
        close_with_thread(segment)
    open_region(segment)


def begin_everywhere() -> None:
    """Let the whole program be lazy, in every thread: TRITENSOR_LAZY=1."""
    thread_state.new_segment = Segment
    begin()


def evaluate(*tensors: Tensor) -> None:
    """Compute tensors that are lazy, and all else that their segment holds. Raises TypeError for what is no tensor."""
    for t in tensors:
        if not isinstance(t, Tensor):
            raise TypeError(f"evaluate: {type(t).__name__} is not a tensor; give those whose values you want")
    if here.segment is not None:
        here.segment.settle()
    for t in tensors:
        if type(t._array) is LazyArray:  # of another region, or thread
            t._array.settled()
