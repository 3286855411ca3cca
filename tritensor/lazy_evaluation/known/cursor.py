"""Cursor: where a thread's program is in what it did before."""

from __future__ import annotations

from sys import getrefcount
from typing import Any

from tritensor.autograd.modes import state
from tritensor.fusion.graph import Value, needed
from tritensor.fusion.structure import compute
from tritensor.ground import shortcuts
from tritensor.ground.call_site import wrapper
from tritensor.ground.thread_state import here
from tritensor.lazy_evaluation.known import recording
from tritensor.lazy_evaluation.known.fresh import FreshTensor, fresh, settle_fresh
from tritensor.lazy_evaluation.known.records import Hand, Record, Several, Trail, end_of
from tritensor.lazy_evaluation.storing import store_results
from tritensor.ops.array import layout_of, same_memory
from tritensor.ops.lazy_array import LazyArray, PendingStorage, cursors, window_of
from tritensor.random import default_generator
from tritensor.tensor.core import Tensor

BRANCHES = 8  # ways that go on from one record
_UNHELD = 2  # references to a tensor that nobody holds: its hand's, and the counting's
NOWHERE = end_of(None)  # where a cursor is while nothing is known
WATCHED = False  # see ground/shortcuts.py: who looks at single ops is shown each of them
shortcuts.read_by(globals())


def _leave_all(watched: bool) -> None:
    """Somebody looks at single ops from now on, or nobody any more."""
    for cursor in tuple(cursors):
        cursor.leave()
        if not watched and cursor.writer is None and not cursor.segment.calls:
            cursor.at = cursor.latest


shortcuts.when_watched.append(_leave_all)


class Cursor:
    """`at` is the record that comes next if the program does what it did. Its `prev` is the last that was passed over; where there is none nothing waits.

    depth: public functions that are running: what they call themselves is theirs.
    """

    ROOTS = 8  # paths that begin with the same function

    def __init__(self, segment: Any) -> None:
        self.segment = segment
        self.at: Record = NOWHERE
        self.roots: dict[Any, list[Record]] = {}
        self.latest: Record = NOWHERE  # the root of the last path
        cursors.add(self)
        self.depth = 0
        self.writer: recording.Writer | None = None  # what notes a new path
        self.places: list[tuple[int, int]] = []  # of random numbers that were drawn on the way
        self.given: list[tuple[LazyArray, Any]] = []  # arrays of tensors that were handed out, and these
        self.views: set[Any] = set()  # functions that gave views of memory that is there
        self.through: set[Any] = set()  # functions that run what waits: those that they call are known by themselves

    @property
    def follows(self) -> bool:
        """Whether calls were passed over that have not run."""
        return self.at.prev is not None

    # -- a call that the record at hand does not simply match
    @wrapper
    def arrive(self, call: Any, long: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """A call of a public function in this thread's region."""
        if self.depth or WATCHED or call in self.through:
            return long(*args, **named)
        found = self._find(call, args, named)
        if found is not None:
            self.at = found.next
            for _, blocks in found.draws:
                self.places.append(default_generator.draw(blocks))
            return found.out.value() if type(found.out) is Several else found.out.t
        if self.follows:
            if call in self.views and recording.are_there(args, named):
                self.depth += 1
                try:
                    return long(*args, **named)
                finally:
                    self.depth -= 1
            self.leave()
        return self._note(call, long, args, named)

    def _find(self, call: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Record | None:
        """The record of a call among those that may come next, which it is bound to."""
        at = self.at
        if at.prev is None:
            writer = self.writer
            if self.segment.calls or (writer is not None and (writer.prev is not None or writer.spoiled)):
                return None
            known = self.roots.get(call, ())
        else:
            known = [at, *at.prev.others] if at.asked is not None else at.prev.others
        for record in known:
            if record.asked is call and record.enabled is state.enabled and recording.bind(record, args, named):
                if at.prev is not None and record is not at:
                    self._turn(at.prev, record)
                elif at.prev is None:
                    self.latest, self.writer = record, None
                return record
        return None

    @staticmethod
    def _turn(prev: Record, record: Record) -> None:
        """Another way was taken: it is looked at first from now on."""
        before = prev.next
        if type(before) is Record:
            prev.others = [before, *[r for r in prev.others if r is not record]]
        prev.next = record

    @wrapper
    def _note(self, call: Any, long: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Run a call, and note it where a path is being written."""
        writer = self.writer
        if writer is None and not self.segment.calls:
            writer = self.writer = recording.Writer(self)
        self.depth += 1
        try:
            if writer is None:
                return long(*args, **named)
            return writer.call(call, long, args, named)
        finally:
            self.depth -= 1

    # -- what was passed over is called after all
    def leave(self) -> None:
        """Call what was passed over, and go on without the path; its tensors are ordinary ones then."""
        last = self.at.prev
        if last is None:
            return
        self.at = NOWHERE
        trail = _trail(last)
        before, enabled = self.depth, state.enabled
        places, self.places = self.places, []
        self.depth = 1
        drawn, here.places = here.places, places
        writer = recording.Writer(self)
        try:
            for record in trail.records:
                state.enabled = record.enabled
                writer.repeat(record)
        finally:
            self.depth, state.enabled, here.places = before, enabled, drawn
            given, self.given = self.given, []
            for array, t in given:
                array.stand_for(t._array)
            for hand in trail.hands:
                hand.t = fresh(hand)
        self.writer = writer

    # -- arrays
    def give_array(self, t: FreshTensor) -> LazyArray:
        """The lazy array of a tensor that was handed out."""
        hand: Any = t._layout
        last = self.at.prev
        if last is None:
            raise AttributeError("_array: the tensor belongs to a run that has not begun")
        value = _trail(last).held[hand.storage]
        storage = PendingStorage(hand.device, 0, value.strides, value, self.segment)
        storage.fixed = not hand.whole
        array = LazyArray(storage, hand.shape, hand.dtype, hand.strides)
        array.first, array.whole = hand.first, hand.whole
        Tensor.__dict__["_array"].__set__(t, array)
        self.given.append((array, t))
        return array

    def reads(self, array: Any) -> bool:
        """Whether what was passed over reads memory of an array."""
        last = self.at.prev
        return last is not None and any([same_memory(leaf.t._array, array) for leaf in _trail(last).leaves])

    def run(self) -> None:
        """Compute what somebody holds of what was passed over."""
        last = self.at.prev
        assert last is not None
        trail = _trail(last)
        hands = trail.hands
        held = [h for h in hands if getrefcount(h.t) > _UNHELD or _has_array(h.t)]
        if not all([layout_of(leaf.t._array) is leaf.layout for leaf in trail.leaves]) or any([h.tracked for h in held]):
            self.leave()
            self.segment.settle()
            return
        wanted = {trail.held[h.storage] for h in held}
        storages = {n: self._storage(trail.held[n]) for n in {h.storage for h in held}}
        for leaf in trail.leaves:
            leaf.value.array = leaf.t._array
        for d in trail.derived:
            d.value.array = window_of(d.leaf.t._array, d.value.shape, d.value.dtype, d.strides, d.first)
        for (call, _), (seed, offset) in zip(trail.draws, self.places, strict=True):
            call.attrs["seed"], call.attrs["offset"] = seed, offset
        before, here.segment = here.segment, None
        try:
            failed = compute(needed(trail.calls, wanted), wanted)
            store_results(list(storages.values()), [leaf.value for leaf in trail.leaves], failed)
        finally:
            here.segment = before
            for v in wanted:
                if v.call is not None:
                    v.array = None
            for leaf in (*trail.leaves, *trail.derived):
                leaf.value.array = None
        if failed:
            self.leave()
            self.segment.settle()
            return
        self.rest()
        self.given = []
        for h in held:
            self._hand_over(h, storages[h.storage].real)
        for leaf in trail.leaves:
            if not leaf.tracked or leaf.t._node is not None:  # what a program gives anew each time is not kept for it
                leaf.t = None

    def stop(self) -> None:
        """A call is noted: no path begins before what waits has run."""
        assert not self.follows, "what was passed over is called first"
        self.at = NOWHERE

    def rest(self) -> None:
        """What has waited has run: the next call may begin a path."""
        writer, self.writer = self.writer, None
        if writer is not None:
            writer.finish()
        self.at, self.places = NOWHERE if WATCHED else self.latest, []

    def branch(self, prev: Record, record: Record) -> None:
        """Another way goes on from a record."""
        if len(prev.others) < BRANCHES:
            self._turn(prev, record)

    def _storage(self, value: Value) -> PendingStorage:
        made = PendingStorage(value.device, 0, value.strides, value, self.segment)
        made.fixed = True
        return made

    def _hand_over(self, hand: Hand, real: Any) -> None:
        """Give a tensor that is held its array; the hand has another one for the next run."""
        t, hand.t = hand.t, fresh(hand)
        array = real if hand.whole else window_of(real, hand.shape, hand.dtype, hand.strides, hand.first)
        lazy = object.__getattribute__(t, "_array") if _has_array(t) else None
        settle_fresh(t, array)
        if lazy is not None:
            lazy.storage.real, lazy.storage.value, lazy.storage.segment = real, None, None


def _has_array(t: Any) -> bool:
    """Whether somebody has asked for a fresh tensor's array."""
    try:
        Tensor.__dict__["_array"].__get__(t)
    except AttributeError:
        return False
    return True


def _trail(last: Record) -> Trail:
    """The path up to a record."""
    if last.trail is None:
        last.trail = Trail(last)
    return last.trail


def forget_paths() -> None:
    """What programs did is forgotten, in all threads: the next calls are noted anew."""
    for cursor in tuple(cursors):
        cursor.roots.clear()
        cursor.views.clear()
        cursor.through.clear()
        cursor.latest = NOWHERE
        if not cursor.follows:
            cursor.at = NOWHERE
