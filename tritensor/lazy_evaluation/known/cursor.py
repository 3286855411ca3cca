"""Cursor: where a thread's program is in what it did before."""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from sys import getrefcount
from typing import Any

from tritensor.autograd.modes import state
from tritensor.autograd.node import version_of
from tritensor.ground import dtypes, shortcuts
from tritensor.ground.call_site import wrapper
from tritensor.ground.thread_state import here, nowhere
from tritensor.ground.transforms import running
from tritensor.lazy_evaluation.adoption import adopt
from tritensor.lazy_evaluation.known.binding import bind, gives_tensors
from tritensor.lazy_evaluation.known.finish import NOT_COUNTED, finish, trail_of
from tritensor.lazy_evaluation.known.fresh import FreshTensor, fresh
from tritensor.lazy_evaluation.known.recording import Writer
from tritensor.lazy_evaluation.known.records import Leaf, Record, Several, Trail, View, end_of
from tritensor.ops import replay
from tritensor.ops.array import same_memory
from tritensor.ops.lazy_array import LazyArray, PendingStorage, cursors, following, window_of
from tritensor.random import default_generator
from tritensor.tensor.core import Tensor

SETTLES = 2  # runs of what waits from which a function is taken to be one that asks for it: once it may learn something
BRANCHES = 32  # ways that go on from one record, beside that of the last time; of more, those that were not taken for the longest time are forgotten
_set_array = Tensor.__dict__["_array"].__set__
NOWHERE = end_of(None)  # where a cursor is while nothing is known
WATCHED = False  # see ground/shortcuts.py: who looks at single ops is shown each of them
shortcuts.read_by(globals())


def _leave_all(watched: bool) -> None:
    """Somebody looks at single ops from now on, or nobody any more."""
    for cursor in tuple(cursors):
        cursor.leave()
        if not watched and cursor.writer is None and not cursor.segment.calls:
            cursor.at = cursor.latest


def forget_paths() -> None:
    """An op was replaced, or a setting that calls depend on has changed, or is about to: no path is known."""
    for cursor in tuple(cursors):
        cursor.leave()
        cursor.roots.clear()
        cursor.latest = NOWHERE
        if cursor.writer is not None:
            cursor.writer.begun_by = None
            cursor.writer.spoil("what calls depend on has changed")
        if not cursor.segment.calls:
            cursor.at = NOWHERE


def _let_go(phase: str, info: dict[str, int]) -> None:
    """Garbage is collected, all of it: parameters of a model that is gone are."""
    if phase == "start" and info["generation"] == 2 and here.own_segment is not None:
        here.own_segment.cursor.let_go()


gc.callbacks.append(_let_go)
shortcuts.when_watched.append(_leave_all)
replay.when_forgotten.append(forget_paths)
dtypes.before_default_changes.append(forget_paths)


class Cursor:
    """`at` is the record that comes next if the program does what it did. Its `prev` is the last that was passed over; where there is none nothing waits.

    depth: public functions that are running: what they call themselves is theirs.
    """

    ROOTS = 64  # paths that begin with the same function; of more, those that were not followed for the longest time are forgotten

    def __init__(self, segment: Any) -> None:
        self.segment = segment
        self.at: Record = NOWHERE
        self.roots: dict[Any, list[Record]] = {}
        self.latest: Record = NOWHERE  # the root of the last path
        self.kept: weakref.WeakSet[Leaf] = weakref.WeakSet()  # which may hold a tensor from run to run
        cursors.add(self)
        self.depth = 0
        self.writer: Writer | None = None  # what notes a new path
        self.places: list[tuple[int, int]] = []  # of random numbers that were drawn on the way
        self.given: list[tuple[LazyArray, Any]] = []  # arrays of tensors that were handed out, and these
        self.adopted: list[tuple[Any, Any]] = []  # tensors whose memory is to be written, with the arrays that they had
        self.homes: dict[int, Any] = {}  # that memory as a PendingStorage, by its number
        self.makers: set[Any] = set()  # functions that have made tensors that are there, of no tensors
        # a path that has run and the tensors of its hands, while these are the same: to count references to each is half of what a long path's end costs
        self.counted: tuple[Trail | None, list[Any]] = NOT_COUNTED
        self.through: dict[Any, int] = {}  # functions that have run what waits, and how often: those that they call are known by themselves

    @property
    def follows(self) -> bool:
        """Whether calls were passed over that have not run."""
        return self.at.prev is not None

    # -- a call that the record at hand does not simply match
    @wrapper
    def arrive(self, call: Any, long: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """A call of a public function in this thread's region."""
        if self.depth or WATCHED:
            return long(*args, **named)
        prev = self.at.prev
        if (self if prev is None else prev).through.get(call, 0) >= SETTLES:
            if prev is not None:
                self.segment.settle()
            return long(*args, **named)
        found = self._find(call, args, named)
        if found is not None and (not found.adopted or all([self._adopt(leaf.t, number) for leaf, number in found.adopted])):
            self.at = found.next
            if prev is None:
                following.add(self)
            if found.acts:
                for leaf, who in found.bumps:
                    version_of(leaf.t).bump(who)
                for leaf, _, place in found.grads:
                    leaf.t._grad = place.t
                for _, blocks in found.draws:
                    self.places.append(default_generator.draw(blocks))
            return found.out.value() if type(found.out) is Several else found.out.t
        if self.follows:
            if call in self.makers and not gives_tensors(args, named):
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
            known = self.roots.get(call, [])
        else:
            known = [at, *at.prev.others] if at.asked is not None else at.prev.others
        for record in known:
            if record.asked is call and record.enabled is state.enabled and bind(record, args, named) and _may_add(record):
                if self.at is not at:  # looking at what was given has left the path
                    return None
                if at.prev is not None and record is not at:
                    self._turn(at.prev, record)
                elif at.prev is None:
                    self.latest, self.writer = record, None
                    if record is not known[0]:  # it is looked at first from now on
                        self.roots[call].sort(key=lambda r: r is not record)
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
            writer = self.writer = Writer(self)
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
        with self.segment.lock:  # another thread may ask for one of them
            last = self.at.prev
            if last is not None:
                self._leave(last)

    def _leave(self, last: Record) -> None:
        before, enabled = self.depth, state.enabled
        self.depth = 1  # first, so that nothing is let go of
        self.at, self.counted = NOWHERE, NOT_COUNTED
        following.discard(self)
        trail = trail_of(last)
        places, self.places = self.places, []
        drawn, here.places = here.places, places
        self.give_back()
        for record in trail.records:
            for leaf, _ in record.bumps:
                version_of(leaf.t).value -= 1  # it is counted again
        writer = self.writer = Writer(self)
        grads = {id(leaf): (leaf.t, leaf.t._grad) for leaf, _, _ in trail.grads}
        for leaf, was, _ in reversed(trail.grads):
            leaf.t._grad = None if was is None else was.t
        try:
            for record in trail.records:
                state.enabled = record.enabled
                writer.repeat(record)
        except BaseException:
            self.writer = None  # nothing follows from what did not happen
            raise
        finally:
            self.depth, state.enabled, here.places = before, enabled, drawn
            for t, grad in grads.values():  # the program may have changed it since
                t._grad = grad
            given, self.given = self.given, []
            for array, t in given:
                if type(array) is LazyArray:
                    array.stand_for(t._array)
            for hand in (*trail.hands, *trail.views):
                hand.t = fresh(hand)

    def forget(self, t: Any) -> None:
        """A tensor is about to be another one than it was."""
        if self.follows and any([leaf.t is t for leaf in trail_of(self.at.prev).leaves]):  # type: ignore[arg-type]
            self.leave()
        self._forget([leaf for leaf in self.kept if leaf.t is t])

    def forget_leaf(self, array: Any) -> None:
        """Others than tensors may write to memory from now on: no tensor on it is taken for what it was."""
        self._forget([leaf for leaf in self.kept if leaf.is_there and same_memory(leaf.t._array, array)])

    def _forget(self, leaves: list[Leaf]) -> None:
        if leaves and self.writer is not None:
            self.writer.spoil("a tensor that it was given is another one now, or others may write to it")
        for leaf in leaves:
            leaf.forget()

    def let_go(self) -> None:
        """Hold no tensor any more that nobody else holds: its memory is free."""
        if self.follows or self.depth or self.writer is not None:
            return
        kept = [leaf for leaf in self.kept if leaf.is_there]
        holders = Counter([id(leaf.t) for leaf in kept])
        for leaf in kept:
            if getrefcount(leaf.t) == holders[id(leaf.t)] + 1:  # the counting's
                holders[id(leaf.t)] -= 1
                leaf.forget()

    # -- arrays
    def arrays_noted(self) -> list[int]:
        """The ids of the arrays that a path which is being written holds, once for each time."""
        writer = self.writer
        return [] if writer is None else [id(a) for a in (*[leaf.array for leaf in (*writer.leaves, *writer.fresh_leaves)], *writer.lay)]

    def give_array(self, t: FreshTensor) -> Any:
        """The array of a tensor that was handed out: a lazy one, or a window on memory that is there."""
        hand: Any = t._layout
        last = self.at.prev
        if last is None:
            raise AttributeError("_array: the tensor belongs to a run that has not begun")
        if type(hand) is View:
            window = window_of(hand.leaf.memory, hand.shape, hand.dtype, hand.strides, hand.first)
            _set_array(t, window)
            self.given.append((window, t))
            return window
        value = trail_of(last).held[hand.storage]
        storage = PendingStorage(hand.device, 0, value.strides, value, self.segment)
        storage.fixed, storage.number = not hand.whole, hand.storage
        array = LazyArray(storage, hand.shape, hand.dtype, hand.strides)
        array.first, array.whole = hand.first, hand.whole
        _set_array(t, array)
        self.given.append((array, t))
        return array

    def _adopt(self, t: Any, number: int) -> bool:
        """Let a tensor that is there look at its memory as it will be; False where somebody would see that late."""
        segment = self.segment
        shown = len(segment.tensors)
        here.cursor = nowhere
        try:
            family = adopt(t, segment)
        finally:
            here.cursor = self
        if not family:
            return False
        del segment.tensors[shown:]
        segment.storages.pop()  # the path's, and no call's of the segment
        segment.leaves.pop(id(family[0][1]), None)
        self.homes[number] = storage = family[0][0]._array.storage
        storage.number = number
        self.adopted += family
        self.given += [(x._array, x) for x, _ in family]
        return True

    def give_back(self) -> None:
        """Let tensors look at their memory as it is."""
        adopted, self.adopted, homes, self.homes = self.adopted, [], self.homes, {}
        for storage in homes.values():
            storage.home = None
            if storage.value is not None:
                storage.value.array = None
        before, here.cursor = here.cursor, nowhere
        try:
            for t, array in adopted:
                t._set_array(array)
        finally:
            here.cursor = before

    def reads(self, array: Any) -> bool:
        """Whether what was passed over reads memory of an array."""
        last = self.at.prev
        return last is not None and any([same_memory(leaf.memory, array) for leaf in trail_of(last).leaves])

    def run(self) -> None:
        """Compute what somebody holds of what was passed over."""
        finish(self)

    def stop(self) -> None:
        """A call is noted: no path begins before what waits has run."""
        assert not self.follows, "what was passed over is called first"
        self.at = NOWHERE

    def rest(self) -> None:
        """What has waited has run: the next call may begin a path."""
        writer, self.writer = self.writer, None
        if writer is not None:
            writer.finish()
        following.discard(self)
        self.at, self.places = NOWHERE if WATCHED else self.latest, []

    def branch(self, prev: Record, record: Record) -> None:
        """Another way goes on from a record."""
        self._turn(prev, record)
        del prev.others[BRANCHES:]


def _may_add(record: Record) -> bool:
    """Whether gradients are what they were when the record was written, and nobody has asked to be told of them."""
    return not record.grads or (
        state.anomaly is None and not running.levels and all([
            leaf.t._grad is (None if was is None else was.t) and ((e := leaf.t._extra) is None or (e.hooks is None and not e.post_hooks))
            for leaf, was, _ in record.grads
        ])
    )  # fmt: skip
