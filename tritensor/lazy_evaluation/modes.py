"""Modes of lazy evaluation: `lazy()`, inside of which ops are noted and not run, and `evaluate`, which runs what leads to tensors."""

from __future__ import annotations

import contextlib
from typing import Any

from tritensor.dispatch import dispatcher
from tritensor.ground import shortcuts, thread_state
from tritensor.ground.process import locks
from tritensor.ground.thread_state import here
from tritensor.lazy_evaluation.known.door_code import install
from tritensor.lazy_evaluation.segment import Segment
from tritensor.ops.lazy_array import LazyArray
from tritensor.tensor.core import Tensor

_counting = locks.lock()


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
        self._before: list[Any] = []  # a stack: one object may be entered again inside itself

    def __enter__(self) -> lazy:
        self._before.append(here.segment)
        if here.segment is None:
            begin()
        return self

    def __exit__(self, *error: object) -> None:
        before = self._before.pop()
        if before is None:
            segment = here.segment
            try:
                if error[0] is None:
                    segment.settle()
            finally:
                here.segment, here.cursor = None, thread_state.nowhere
                count_regions(-1)


def begin() -> None:
    """Open a region in this thread."""
    install()
    segment = here.own_segment
    if segment is None:
        segment = here.own_segment = Segment()
    here.segment, here.cursor = segment, segment.cursor
    count_regions(1)


def begin_everywhere() -> None:
    """Let the whole program be lazy, in every thread: TRITENSOR_LAZY=1."""
    thread_state.new_segment = Segment
    begin()


def count_regions(more: int) -> None:
    """So many more regions are open; while there are any, no plan is taken."""
    with _counting:
        dispatcher.lazy_regions += more
    shortcuts.turn("lazy", more)


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
