"""State of this thread: the GPU that plain "cuda" means, and the stream of each GPU that launches and copies go to."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class _NoRecord:
    """What matches no call, and has none before it."""

    call: Any = None
    prev: Any = None


class _Nowhere:
    """A cursor of a thread without lazy regions."""

    at: Any = _NoRecord()


nowhere = _Nowhere()
new_segment: Callable[[], Any] | None = None  # makes the segment of a thread, where the whole program is lazy


class _Here(threading.local):
    """Per-thread state.

    Attributes:
        index: the GPU meant by "cuda" without a number.
        streams: raw stream handle by GPU; 0, and a GPU that is missing, stand for the default stream.
        context: the GPU whose context is current (-1: none yet).
        place: what the driver's context, stream and pool are set to, as one object to compare (None: to be entered anew).
        recorder: what writes down the launches of a corner that is being learnt (see tritensor/ops/replay/corner.py), or None.
        noting: what writes down the ops of a call that is being learnt (see tritensor/dispatch/plans/), or None.
        doing: the op and corner whose Python runs ("add forward"; "" for none), for error messages.
        segment: where ops are noted that are not to run yet (see tritensor/lazy_evaluation/), or None.
        own_segment: the one that this thread's regions share, once it has opened one.
        cursor: where this thread is in what it did before (see tritensor/lazy_evaluation/known/).
        lasting: what goes when this thread ends.
        places: of random numbers, which draws that are repeated take again, or None.
        calling: what the user's line called, while a call that has waited runs ("" for none).
        config: the line of a tuned file that the corner's config comes from ("" for none), for error messages.
        capture: the graph capture that this thread has begun (see streams/capture.py), or None.
    """

    index = 0
    context = -1
    pool = 0
    place: Any = None
    recorder: Any = None
    noting: Any = None
    segment: Any = None
    cursor: Any = nowhere
    own_segment: Any = None
    lasting: Any = None
    places: Any = None
    doing = ""
    calling = ""
    config = ""
    capture: Any = None

    def __init__(self) -> None:
        self.streams: dict[int, int] = {}
        if new_segment is not None:
            self.segment = self.own_segment = new_segment()
            self.cursor = self.segment.cursor


here = _Here()


def leave_path() -> None:
    """What this thread has passed over is called by the settings of now, which are about to change (see tritensor/lazy_evaluation/known/)."""
    if here.cursor.at.prev is not None:
        here.cursor.leave()


def stream_of(index: int) -> int:
    """The raw handle of this thread's current stream on a GPU."""
    return here.streams.get(index, 0)


def set_stream(index: int, stream: int) -> None:
    """Send this thread's launches and copies on a GPU to a stream (raw handle; 0: the default one)."""
    run_waiting()  # on the stream that was current when it was called
    # the place is dropped with it: allocations and launches look both up together
    here.streams[index] = stream
    here.place = None


def run_waiting() -> None:
    """Run what this thread has noted and not yet run."""
    if here.segment is not None:
        here.segment.settle()


def set_pool(pool: int) -> None:
    """Take this thread's allocations from a private pool (0: the general one)."""
    here.pool = pool
    here.place = None
