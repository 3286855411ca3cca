"""Recording of paths: what each public function was given and gave, written down while its calls are noted."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from tritensor.autograd.engine import collect_nodes
from tritensor.autograd.modes import state
from tritensor.autograd.node import version_of
from tritensor.fusion.graph import Call, Value
from tritensor.ground.call_site import wrapper
from tritensor.ground.thread_state import here
from tritensor.lazy_evaluation.adoption import is_adopted
from tritensor.lazy_evaluation.known.becoming import become
from tritensor.lazy_evaluation.known.binding import is_there, place_in_graph, tensors_in
from tritensor.lazy_evaluation.known.draws import Draws
from tritensor.lazy_evaluation.known.fresh import fresh
from tritensor.lazy_evaluation.known.notes import Notes
from tritensor.lazy_evaluation.known.places import NOTHING, Place, atom, strictly
from tritensor.lazy_evaluation.known.records import Group, Hand, Leaf, Record, Several, Source, View, end_of
from tritensor.lazy_evaluation.known.same_values import SameValues
from tritensor.lazy_evaluation.known.windows import derive, places_in, view_of
from tritensor.ops.array import device_of, first_address, layout_of
from tritensor.ops.lazy_array import LazyArray, is_lent, show_computed
from tritensor.tensor.core import Tensor


class Writer:
    """Writes the records of one path, from its root or from a record where Python has gone another way. It holds no tensor that the program does not."""

    def __init__(self, cursor: Any) -> None:
        self.cursor = cursor
        self.segment = cursor.segment
        self.prev: Record | None = None
        self.begun_by: Record | None = None  # the first new record
        self.spoiled = ""
        self.places: dict[int, tuple[weakref.ref[Any], Source]] = {}  # of tensors, by id
        self.storages: dict[int, tuple[weakref.ref[Any], int]] = {}
        self.values: dict[int, Value] = {}  # that each storage holds, by its number
        self.counters: dict[int, tuple[Any, Leaf]] = {}  # of writes to leaves, by their ids
        self.counts: dict[Hand, int] = {}  # how often the memory of each was written
        self.leaves: list[Leaf] = []
        self.fresh_leaves: list[Leaf] = []  # of the call that runs
        self.known_leaves: set[int] = set()  # ids of values
        self.lay: list[Any] = []  # the arrays that the tensors had which it was given
        self.adopted: dict[int, int] = {}  # the storage numbers of leaves that are written, by their ids
        self.draws = Draws()
        self.same = SameValues()

    def spoil(self, reason: str) -> None:
        """From here on nothing is known of the path."""
        self.spoiled = self.spoiled or reason

    # -- a call
    @wrapper
    def call(self, call: Any, long: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Run a public function and write its record."""
        if self.spoiled:
            return long(*args, **named)
        segment = self.segment
        record = Record(self.prev, call)
        fresh_leaves = self.fresh_leaves = []
        given = [self._place(v, record, fresh_leaves) for v in args]
        by_name = {k: self._place(v, record, fresh_leaves) for k, v in named.items()}
        tensors = tensors_in((*args, *named.values()))
        told = None not in given and None not in by_name.values()
        if not told and tensors:
            self.spoil("an argument of a kind that is not told again")
            return long(*args, **named)
        self.lay = lay = [t._array for t in tensors]
        start, runs, seen = len(segment.calls), segment.runs, set(segment.leaves)
        counts = self._counters(tensors)
        graph = [place_in_graph(t, self._known(t)) for t in tensors]
        tracked = [leaf for leaf in (*self.leaves, *fresh_leaves) if leaf.tracked]
        grads = [(leaf, leaf.t._grad) for leaf in tracked if leaf.is_there]
        freed = self._freed_by(args) if call is Tensor.backward else []
        notes = Notes()
        before, here.noting = here.noting, notes
        try:
            result = long(*args, **named)
        finally:
            here.noting, self.lay = before, []
        if segment.runs != runs:
            through = (self.cursor if self.prev is None else self.prev).through
            through[call] = through.get(call, 0) + 1
            return result
        if self.spoiled:
            return result
        if any([t._array is not a and not is_adopted(t._array, a) for t, a in zip(tensors, lay, strict=True)]):
            notes.spoil("it lets a tensor look at another array")
        if not tensors and not notes.spoiled and len(segment.calls) == start and is_there(result):
            self.cursor.makers.add(call)
            return result
        if not told:
            notes.spoil("an argument of a kind that is not told again")
        if result is None and not tensors:
            notes.spoil("it sets something, in every run")
        record.calls = tuple([self.same.told(c) for c in segment.calls[start:]])
        record.freed = tuple(freed)
        if call is Tensor.backward and (len(grads) < len(tracked) or any([leaf.t._node is not None for leaf, _ in grads])):
            notes.spoil("a gradient of a tensor that is forgotten, or whose graph goes on to what no record knows")
        record.bumps = tuple([(leaf, counter.writer) for leaf, counter, count in counts for _ in range(counter.value - count)])
        if [place_in_graph(t, self._known(t)) for t in tensors] != graph:
            notes.spoil("a tensor that it was given has another place in the graph")
        if notes.spoiled or not self._note_gradients(record, grads, call is Tensor.backward) or not self._complete(
            record, given, by_name, args, named, result, fresh_leaves, seen, notes
        ):  # fmt: skip
            self.spoil(notes.spoiled or "its effects are not told again")
            return result
        record.long, record.enabled = long, state.enabled
        self._append(record)
        return result

    def _counters(self, tensors: list[Any]) -> list[tuple[Leaf, Any, int]]:
        """Of memory that is there, and that tensors look at: a leaf on it, the counter of its writes, and what that says."""
        found: dict[int, tuple[Leaf, Any, int]] = {}
        for t in tensors:
            counter = version_of(t)
            known = self.counters.get(id(counter))
            if known is not None and known[0] is counter:
                found[id(counter)] = known[1], counter, counter.value
        return list(found.values())

    def _append(self, record: Record) -> None:
        """Hang a new record behind the last."""
        prev = self.prev
        if self.begun_by is None:
            self.begun_by = record
        else:
            assert prev is not None
            prev.next = record
        self.prev = record

    def _complete(
        self, record: Record, given: list[Any], by_name: dict[str, Any], args: tuple[Any, ...], named: dict[str, Any], result: Any,
        fresh_leaves: list[Leaf], seen: set[int], notes: Notes,
    ) -> bool:  # fmt: skip
        """Fill in a record; False where it would not tell all that the call did."""
        tensors = [*tensors_in((*args, *named.values())), *[leaf.t._grad for leaf, _, _ in record.grads]]
        for leaf in fresh_leaves:
            leaf.value = self.same.get(leaf.value, leaf.value)
            if leaf.memory is not leaf.array or id(leaf.value) in self.known_leaves:
                return False  # it was written, or is another tensor on the same memory
            self.known_leaves.add(id(leaf.value))
        if not self._note_adopted(record, tensors):
            return False
        derived = derive(self.segment, seen, [*self.leaves, *fresh_leaves])
        out = self._out(result, record, fresh_leaves)
        if derived is None or out is None:
            return False
        if record.views and any([type(h) is Hand for h in (*record.hands, *places_in((*given, *by_name.values())))]):
            return False  # views are taken when a run is over: of what it has made they cannot be
        record.writes = self._writes([t for t in (*tensors, *tensors_in((result,))) if type(t._array) is LazyArray])
        record.versions = self._versions([*tensors, *tensors_in((result,))])
        record.leaves, record.derived = tuple(fresh_leaves), derived
        self.leaves += fresh_leaves
        self.fresh_leaves = []
        for leaf in fresh_leaves:
            leaf.first = record
        drawing = [c for c in record.calls if "seed" in c.attrs]
        if len(drawing) != len(notes.draws) or not self.draws.link(record.calls):
            return False
        record.draws = tuple(zip(drawing, notes.draws, strict=True))
        self._arrange(record, given, by_name)
        record.out = out
        return True

    def _note_adopted(self, record: Record, tensors: list[Any]) -> bool:
        """Note leaves whose memory is to be written; False where a leaf is lazy for another reason, and where a view of one is written."""
        found = []
        for t in tensors:
            leaf = self._known(t)
            if type(leaf) is View and type(t._array) is LazyArray:
                return False
            if type(leaf) is not Leaf or type(t._array) is not LazyArray:
                continue
            if t._array.storage.home is not leaf.array or not t._array.whole:
                return False
            if id(leaf) not in self.adopted:
                self.adopted[id(leaf)] = self._number(t._array.storage)
                found.append((leaf, self.adopted[id(leaf)]))
        record.adopted = tuple(found)
        return True

    @staticmethod
    def _arrange(record: Record, given: list[Any], by_name: dict[str, Any]) -> None:
        """Put arguments where the code of functions looks for them; whether that suffices to tell the call."""
        record.a, record.b, record.c = [*given[:3], NOTHING, NOTHING, NOTHING][:3]
        record.places, record.by_name = tuple(given), by_name
        record.count = len(given)
        # the first of a path tells others that it is followed
        plain = (
            len(given) <= 3
            and record.prev is not None
            and not record.draws
            and not record.bumps
            and not any([type(p) is Group for p in given])
        )
        if plain and not record.grads and all([type(p) is Place and p.kind is not None for p in by_name.values()]):
            record.named = {k: strictly(p) for k, p in by_name.items()}  # type: ignore[arg-type]
        else:
            record.call = None

    # -- gradients
    def _freed_by(self, args: tuple[Any, ...]) -> list[Hand]:
        """The tensors whose nodes let go of what they have saved in `backward(*args)`."""
        root, _, retain, create, _ = args
        if retain or create or root._node is None:
            return []
        nodes = {id(n) for n in collect_nodes([root._node])}
        tracked = [(mark(), place) for mark, place in self.places.values() if isinstance(place, Hand) and place.tracked]
        return [place for t, place in tracked if t is not None and id(t._node) in nodes]

    def _note_gradients(self, record: Record, before: list[tuple[Leaf, Any]], backward: bool) -> bool:
        """Note which leaves have another gradient than before, or more in it; False where somebody else's has changed, or may have."""
        if not backward and not any([leaf.t._grad is not g for leaf, g in before]):
            return True
        found: list[tuple[Leaf, Source | None, Source]] = []
        for leaf, g in before:
            now = leaf.t._grad
            was = None if g is None else self._known(g)
            if now is None or (g is not None and was is None):
                return False
            place = self._known(now)
            if place is None:
                place = self._hand(now) if type(now) is Tensor and type(now._array) is LazyArray else None
                if place is None:
                    return False
                self.places[id(now)] = weakref.ref(now), place
            found.append((leaf, was, place))
        record.grads = tuple(found)
        return True

    # -- places
    def _known(self, t: Any) -> Source | None:
        found = self.places.get(id(t))
        if found is None or found[0]() is not t or (type(found[1]) is Leaf and found[1].t is not t):  # it was forgotten
            return None
        return found[1]

    def _place(self, value: Any, record: Record, leaves: list[Leaf]) -> Source | None:
        """Where an argument comes from; None for what cannot be told again."""
        if isinstance(value, Tensor):
            found = self._known(value)
            if found is None:
                found = self._leaf(value)
                if found is not None:
                    leaves.append(found)  # type: ignore[arg-type]
                    self.places[id(value)] = weakref.ref(value), found
            elif found.tracked != value._tracked or (type(found) is Leaf and found.memory is not found.array):  # type: ignore[union-attr]
                return None  # by `requires_grad_` or `.data =`, which no record tells
            return found
        if type(value) is list or (type(value) is tuple and tensors_in((value,))):
            items = [self._place(v, record, leaves) for v in value]
            return None if None in items else Group(type(value), items)  # type: ignore[arg-type]
        return atom(value)

    def _leaf(self, t: Any) -> Leaf | None:
        show_computed(t)
        if is_lent(t):
            return None
        array = t._array
        layout = layout_of(array)
        if layout is None or hasattr(type(t), "becomes"):
            return None
        leaf = Leaf(t, layout, self.segment.leaf(array))
        leaf.array = array
        self.cursor.kept.add(leaf)
        self.counters[id(version_of(t))] = version_of(t), leaf
        return leaf

    # -- results
    def _out(self, result: Any, record: Record, fresh_leaves: list[Leaf]) -> Source | None:
        """The place of a result; None for one that is no lazy tensor, nor a view of a leaf, nor one that was given."""
        hands: list[Hand] = []
        found = self._out_of(result, hands, [*self.leaves, *fresh_leaves])
        record.hands = tuple([h for h in (*hands, *[g for _, _, g in record.grads]) if type(h) is Hand])
        record.views = tuple([h for h in hands if type(h) is View])
        if type(found) is Several:
            record.call = None
        return found

    def _out_of(self, result: Any, hands: list[Hand], leaves: list[Leaf]) -> Source | None:
        if isinstance(result, Tensor):
            known = self._known(result)
            if known is not None:
                return known
            if type(result) is not Tensor:
                return None
            hand: Hand | None = self._hand(result) if type(result._array) is LazyArray else view_of(self.cursor, result, leaves)
            if hand is None:
                return None
            hands.append(hand)
            self.places[id(result)] = weakref.ref(result), hand
            return hand
        if type(result) is tuple or (type(result) is list and result) or hasattr(result, "_fields"):
            items = [self._out_of(r, hands, leaves) for r in result]
            if None in items:
                return None
            kind = type(result)
            return Several(tuple(items), (lambda ts: kind(*ts)) if hasattr(kind, "_fields") else kind)  # type: ignore[arg-type]
        return atom(result) if result is None else None

    def _hand(self, t: Any) -> Hand | None:
        array: LazyArray = t._array
        if not array.pending:
            return None
        hand = Hand(
            self.cursor,
            array.shape,
            array.predicted,
            array.dtype,
            device_of(array),
            bool(t._tracked),
            self._number(array.storage),
            array.first,
            array.whole,
        )
        if t._view_path is not None:
            base = self._known(t._view_path[0])
            hand.base, hand.lost, hand.steps = base if type(base) is Hand else None, type(base) is not Hand, t._view_path[1:]
            hand.origin = t._extra.origin if t._extra is not None else ""
        elif t._version_counter is not None:
            if id(t._version_counter) in self.counters:
                return None  # writes through it are counted on a leaf, which a run does not do
            same = [(mark(), h) for mark, h in self.places.values() if type(h) is Hand and h.storage == hand.storage and h.base is None]
            hand.twin = next((h for x, h in same if x is not None and x._version_counter is t._version_counter), None)
        hand.t = fresh(hand)
        return hand

    def _versions(self, tensors: list[Any]) -> tuple[tuple[Hand, int], ...]:
        """The hands, none of them a view's, whose memory has been written since it was last looked at, and how often in all."""
        found: dict[Hand, int] = {}
        for t in tensors:
            hand = self._known(t)
            if type(hand) is Hand:
                root = hand.base or hand
                root, count = root.twin or root, 0 if t._version_counter is None else t._version_counter.value
                if self.counts.get(root, 0) != count:
                    found[root] = self.counts[root] = count
        return tuple(found.items())

    def _number(self, storage: Any) -> int:
        """The number of some memory in the path."""
        found = self.storages.get(id(storage))
        if found is None or found[0]() is not storage:
            found = self.storages[id(storage)] = weakref.ref(storage), len(self.values)
            self.values[found[1]] = None  # type: ignore[assignment]
        return found[1]

    def _writes(self, tensors: list[Any]) -> tuple[tuple[int, Value], ...]:
        """The memory of tensors that holds another value than when it was last looked at."""
        found = {}
        for t in tensors:
            storage = t._array.storage
            number = self._number(storage)
            value = self.same.of(storage.value)
            if value is not None and self.values[number] is not value:
                found[number] = self.values[number] = value
        return tuple(found.items())

    # -- what was passed over
    def repeat(self, record: Record) -> None:
        """Call what a record tells, on the tensors that were handed out, which become the results."""
        segment = self.segment
        for leaf in record.leaves:
            self.places[id(leaf.t)] = weakref.ref(leaf.t), leaf
            self.leaves.append(leaf)
            self.counters[id(version_of(leaf.t))] = version_of(leaf.t), leaf
            leaf.array = leaf.t._array
            self.known_leaves.add(id(leaf.value))
            self.same[segment.leaf(leaf.array)] = leaf.value
        start, seen = len(segment.calls), set(segment.leaves)
        become(record.out, record.repeat(), self)
        for leaf, _, place in record.grads:
            become(place, leaf.t._grad, self)
            leaf.t._grad = place.t
        for leaf, number in record.adopted:
            if type(leaf.t._array) is LazyArray:
                self.adopted[id(leaf)] = number
                self.hold(leaf.t._array.storage, number)
        for leaf, _ in record.bumps:
            if type(leaf.t._array) is LazyArray:
                self.hold(leaf.t._array.storage, self._number(leaf.t._array.storage))
        self.prev = record
        if not self._recognize(record, segment.calls[start:], [v for k, v in segment.leaves.items() if k not in seen]):
            self.spoil(f"{record.asked} came to other calls than before")

    def _recognize(self, record: Record, calls: list[Call], read: list[Value]) -> bool:
        """Note which values of a record those are that it has just made, and read, again."""
        if [(c.op, c.corner, c.part) for c in calls] != [(c.op, c.corner, c.part) for c in record.calls]:
            return False
        for mine, again in zip(record.calls, calls, strict=True):
            self.draws.note(again, mine)
            again.at, again.who = mine.at, mine.who  # the line that is being left is another
            self.same.update([(y, x) for x, y in zip(mine.results, again.results, strict=True) if x is not None and y is not None])
        lies = {(d.value.shape, d.value.dtype, d.strides, d.first + first_address(d.leaf.array)): d.value for d in record.derived}
        for value in read:
            found = lies.get((value.shape, value.dtype, value.strides, first_address(value.array)))
            if found is None:
                return False
            self.same[value] = found
        return True

    def met(self, t: Any, hand: Hand) -> None:
        """A tensor has become what a call gave."""
        self.places[id(t)] = weakref.ref(t), hand
        array = t._array
        if type(array) is LazyArray:
            self.hold(array.storage, hand.storage)

    def hold(self, storage: Any, number: int) -> None:
        """Some memory is that of a number, and holds its value of now."""
        self.storages[id(storage)] = weakref.ref(storage), number
        self.values[number] = self.same.of(storage.value)

    # -- the end
    def finish(self) -> None:
        """What has waited has run: the path is known from now on."""
        for leaf in self.leaves:
            leaf.array = leaf.value.array = None
            if not self.cursor.depth:  # no call goes on, which would ask for it
                leaf.let_go()
        for value in self.same:
            value.array = None
        record = self.prev
        while record is not None:
            for d in record.derived:
                d.value.array = None
            record = record.prev
        first = self.begun_by
        if first is None or self.prev is None or self.spoiled:
            return
        self.prev.next = self.prev.next or end_of(self.prev)
        cursor = self.cursor
        if first.prev is None:
            cursor.latest = first
            roots = cursor.roots.setdefault(first.asked, [])
            roots.insert(0, first)
            del roots[cursor.ROOTS :]
        else:
            cursor.branch(first.prev, first)
