"""Finish of a path: what was passed over runs, for the tensors that somebody holds by then, and these get their arrays."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from sys import getrefcount
from typing import Any

from tritensor.autograd.modes import state
from tritensor.autograd.node import version_of
from tritensor.ground.thread_state import here, nowhere
from tritensor.lazy_evaluation.known.becoming import become
from tritensor.lazy_evaluation.known.freed_graph import FreedGraph
from tritensor.lazy_evaluation.known.fresh import fresh, make_view, settle_fresh
from tritensor.lazy_evaluation.known.records import Hand, Record, Trail
from tritensor.lazy_evaluation.known.windows import takers
from tritensor.ops.array import layout_of
from tritensor.ops.lazy_array import LazyArray, window_of

_UNHELD = 2  # references to a view that nobody holds: its hand's, and the counting's
_UNHELD_IN_LIST = 3  # to another tensor: that of the cursor's list, too
_ENDS = 64  # entries of a record's `ends` from which on none is added for counts that say the same as others
NOT_COUNTED: tuple[None, list[Any]] = None, []
_tensor_of = attrgetter("t")


def finish(cursor: Any) -> None:
    """Compute what somebody holds of what was passed over."""
    last = cursor.at.prev
    assert last is not None
    trail = trail_of(last)
    hands = trail.hands
    views = trail.views and [h for h in trail.views if getrefcount(h.t) > _UNHELD]
    taking = takers(views, trail) if views else []
    if cursor.counted[0] is not trail:
        cursor.counted = NOT_COUNTED  # which would be one reference more
        cursor.counted = trail, list(map(_tensor_of, hands))
    tensors = cursor.counted[1]
    references = tuple(map(getrefcount, tensors))
    ending = last.ends.get(references) or _ending(last, trail, references)
    may_run = taking is not None and ending.may_run
    for leaf in trail.leaves:
        if leaf.t._layout is not leaf.layout and layout_of(leaf.memory) is not leaf.layout:
            may_run = False
    if not may_run:
        cursor.leave()
        cursor.segment.settle()
        return
    quick = ending.handing is not None and not (views or cursor.given)
    before, here.segment, here.cursor = here.segment, None, nowhere
    try:
        reals = ending.run_quick() if quick else ending.run(cursor.places, cursor.homes)
    finally:
        here.segment, here.cursor = before, cursor
    if quick:
        cursor.rest()
        for h, place, k in ending.handing:
            t, h.t = h.t, fresh(h)
            tensors[k] = h.t
            settle_fresh(t, reals[place])
    else:
        cursor.counted = NOT_COUNTED
        if reals is None:
            cursor.leave()
            cursor.segment.settle()
            return
        cursor.depth += 1
        try:
            _hand_out(cursor, trail, ending, reals)
            if taking:
                _take(taking)
        finally:
            cursor.depth -= 1
    for leaf in trail.leaves:
        leaf.let_go()


def _hand_out(cursor: Any, trail: Trail, ending: Any, reals: dict[int, Any]) -> None:
    """Give all tensors that are held their arrays, those with their graph and those that are views among them."""
    places, given = cursor.places, cursor.given
    cursor.rest()
    graph = FreedGraph(trail, places, ending.hands).make if ending.tracked else None
    theirs = {} if ending.plain else {h: h.t for h in ending.hands}
    for h, storage in zip(ending.hands, ending.storages, strict=True):
        _hand_over(h, reals[storage], graph)
    for h, t in theirs.items():
        if h in trail.versions:
            version_of(t).value = trail.versions[h]
    for h, t in theirs.items():
        if h.twin is not None:
            t._version_counter = version_of(theirs[h.twin])
        if h.base is not None:
            make_view(t, theirs[h.base], h.steps, h.origin)
    if given:
        cursor.given = []
        for array, _ in given:
            if type(array) is LazyArray:
                array.storage.real, array.storage.value, array.storage.segment = reals[array.storage.number], None, None
    if cursor.adopted or cursor.homes:
        cursor.give_back()


def _take(takers: list[Record]) -> None:
    """Have views that are held taken of the memory that is there, as their calls take them."""
    enabled = state.enabled
    try:
        for record in takers:
            state.enabled = record.enabled
            become(record.out, record.repeat())
    finally:
        state.enabled = enabled
    for record in takers:
        for v in record.views:
            v.t = fresh(v)


def _ending(last: Record, trail: Trail, references: tuple[int, ...]) -> Any:
    """What runs when a path ends at a record, and hands' tensors have so many references."""
    from tritensor.lazy_evaluation.known.ending import Ending  # which reads kernels

    held = tuple([k for k, count in enumerate(references) if count > _UNHELD_IN_LIST])
    if held not in last.ends:
        last.ends[held] = Ending(trail, [trail.hands[k] for k in held])
    found = last.ends[held]
    if len(last.ends) < _ENDS:
        last.ends[references] = found
    return found


def _hand_over(hand: Hand, real: Any, graph: Callable[[], None] | None) -> None:
    """Give a tensor that is held its array; the hand has another one for the next run."""
    t, hand.t = hand.t, fresh(hand)
    array = real if hand.whole else window_of(real, hand.shape, hand.dtype, hand.strides, hand.first)
    settle_fresh(t, array, graph if hand.tracked else None)


def trail_of(last: Record) -> Trail:
    """The path up to a record."""
    if last.trail is None:
        last.trail = Trail(last)
    return last.trail
