"""Records: what a public function was given, and what it gave, as places that hold the tensors of the run of now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tritensor.fusion.graph import Call, Value
from tritensor.ground.device import device
from tritensor.lazy_evaluation.known.places import NOTHING, Place
from tritensor.ops.array import Layout, device_of, element_strides
from tritensor.ops.lazy_array import LazyArray

_GONE = object()


class Leaf(Place):
    """A tensor from outside, with memory of its own: another one may stand in its place in the next run, if it lies as this one did."""

    __slots__ = ("__weakref__", "array", "ends", "first", "layout", "of", "tracked", "value")

    def __init__(self, t: Any, layout: Layout, value: Value) -> None:
        super().__init__(t)
        self.layout, self.tracked, self.value = layout, bool(t._tracked), value
        self.ends = t._node is None  # whether the graph does here
        self.of = type(t)  # as subclasses have functions of their own
        self.array: Any = None  # of the run of now, once it was read
        self.first: Record | None = None  # which reads it first, and may be given another

    def let_go(self) -> None:
        """A run is over: what a program gives anew each time is not kept for the next."""
        if self.is_there and (not self.tracked or self.t._node is not None):
            self.forget()

    @property
    def is_there(self) -> bool:
        """Whether it holds a tensor."""
        return self.t is not _GONE

    def forget(self) -> None:
        """Hold no tensor any more."""
        self.t = _GONE  # and not None, which an argument may be

    @property
    def memory(self) -> Any:
        """Its array of now: of one that is written when the path runs, the memory that this writes."""
        array = self.t._array
        return array.storage.home if type(array) is LazyArray and array.storage.home is not None else array


class Group(Place):
    """A list of arguments, or a tuple with tensors in it."""

    __slots__ = ("items", "make")

    def __init__(self, make: Any, items: list[Source]) -> None:
        super().__init__(None)
        self.make, self.items = make, items

    def value(self) -> Any:
        """The list or tuple of the run of now."""
        return self.make([p.value() if type(p) is Group else p.t for p in self.items])


class Derived(NamedTuple):
    """A value that is a window on a leaf: strides in elements, `first` in bytes from the leaf's first element."""

    value: Value
    leaf: Leaf
    strides: tuple[int, ...]
    first: int


class Hand(Layout):
    """A tensor that a record hands out, and how it lies: Tensor.shape asks its `_layout`, which this is. `storage` is the number of its memory in the path,
    `first` the bytes before its first element there. base, steps, origin: of a view the hand of what it was taken of, the way from there, and why it must
    not be written (see Extra). twin: the hand that counts writes with it. lost: it is a view of a tensor that no record hands out."""

    __slots__ = ("base", "cursor", "first", "kind", "lost", "origin", "steps", "storage", "t", "tracked", "twin", "whole")

    def __init__(
        self, cursor: Any, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype, on: device, tracked: bool, storage: int, first: int,
        whole: bool,
    ) -> None:  # fmt: skip
        super().__init__(shape, strides, dtype, 0, on)
        self.cursor, self.tracked, self.storage, self.first, self.whole = cursor, tracked, storage, first, whole
        self.kind = None
        self.t: Any = None
        self.base: Hand | None = None
        self.twin: Hand | None = None
        self.steps: tuple[Any, ...] = ()
        self.origin, self.lost = "", False


class View(Hand):
    """A view of memory that is there: of `leaf`, `first` bytes from its first element. It is taken when somebody asks for more than its shape."""

    __slots__ = ("leaf",)

    def __init__(self, cursor: Any, array: Any, tracked: bool, leaf: Leaf, first: int) -> None:
        super().__init__(
            cursor, tuple(array.shape), tuple(element_strides(array)), array.dtype, device_of(array), tracked, -1, first, False
        )
        self.leaf = leaf


Source = Place | Hand  # where a tensor comes from


class Several(Place):
    """Several results in one tuple, made anew at each call."""

    __slots__ = ("hands", "make")

    def __init__(self, hands: tuple[Source, ...], make: Callable[[list[Any]], Any]) -> None:
        self.hands, self.make = hands, make
        super().__init__(None)

    def value(self) -> Any:
        """The results of the run of now."""
        return self.make([h.value() if type(h) is Several else h.t for h in self.hands])


class Record:
    """One call of a public function: `places` of its arguments, of which `a`, `b`, `c` are the first, and by name; `named` are values of the latter.

    call: the function; None where a look at the places alone does not tell whether the call is this one, which then `asked` says.
    out: the place of its result. hands: those that it computes. views: those that it makes without a call. calls: the calls of ops that it came to. writes:
    (storage number, value) of memory that holds another value from here on. versions: (hand, how often its memory has been written). grads: of leaves, what
    `grad` was and what it is from here on. freed: tensors whose nodes have let go of what they saved. adopted: (leaf, storage number) of those whose memory is
    written from here on, when the path runs; bumps: of leaves that it writes the name of the write, once for each. enabled: whether gradients were recorded.
    next: the record that followed last time, others: those that did before.
    """

    __slots__ = (
        "a", "adopted", "asked", "b", "bumps", "by_name", "c", "call", "calls", "count", "derived", "draws", "enabled", "ends", "freed", "grads", "hands",
        "leaves", "long", "named", "next", "others", "out", "places", "prev", "through", "trail", "versions", "views", "writes",
    )  # fmt: skip

    def __init__(self, prev: Record | None, call: Any) -> None:
        self.prev, self.call, self.asked = prev, call, call
        self.a = self.b = self.c = NOTHING
        self.places: tuple[Source, ...] = ()
        self.by_name: dict[str, Source] = {}
        self.count = 0
        self.named: dict[str, Any] = {}
        self.out: Any = NOTHING
        self.long: Any = None
        self.hands: tuple[Hand, ...] = ()
        self.views: tuple[View, ...] = ()
        self.leaves: tuple[Leaf, ...] = ()
        self.calls: tuple[Call, ...] = ()
        self.writes: tuple[tuple[int, Value], ...] = ()
        self.versions: tuple[tuple[Hand, int], ...] = ()
        self.derived: tuple[Derived, ...] = ()
        self.draws: tuple[tuple[Call, int], ...] = ()
        self.grads: tuple[tuple[Leaf, Source | None, Source], ...] = ()
        self.freed: tuple[Hand, ...] = ()
        self.adopted: tuple[tuple[Leaf, int], ...] = ()
        self.bumps: tuple[tuple[Leaf, str], ...] = ()
        self.enabled = True
        self.next: Any = None
        self.others: list[Record] = []
        self.ends: dict[Any, Any] = {}  # runs of a path that ends here, by which hands are held, and by how many references they have
        self.trail: Trail | None = None
        self.through: dict[Any, int] = {}  # functions that, called next, have run what waits, and how often: see Cursor.through

    @property
    def acts(self) -> bool:
        """Whether it does more than to hand out tensors."""
        return bool(self.bumps or self.grads or self.draws)

    def repeat(self) -> Any:
        """Call it again, on the tensors of the run of now."""
        args = [p.value() if type(p) is Group else p.t for p in self.places]
        return self.long(*args, **{k: p.value() if type(p) is Group else p.t for k, p in self.by_name.items()})


class Trail:
    """All of a path up to a record: its records, hands, leaves and calls, and the value that each memory holds in the end."""

    def __init__(self, last: Record) -> None:
        self.records: list[Record] = []
        r: Record | None = last
        while r is not None:
            self.records.append(r)
            r = r.prev
        self.records.reverse()
        self.hands = tuple([h for r in self.records for h in r.hands])
        self.views = tuple([h for r in self.records for h in r.views])
        self.leaves = tuple([leaf for r in self.records for leaf in r.leaves])
        self.derived = tuple([d for r in self.records for d in r.derived])
        self.draws = tuple([d for r in self.records for d in r.draws])
        self.grads = tuple([g for r in self.records for g in r.grads])
        self.adopted = tuple([a for r in self.records for a in r.adopted])
        self.freed = {id(h) for r in self.records for h in r.freed}
        self.calls = [c for r in self.records for c in r.calls]
        self.held: dict[int, Value] = {}
        self.versions: dict[Hand, int] = {}
        for r in self.records:
            self.held.update(r.writes)
            self.versions.update(r.versions)


class _End(Record):
    """What stands behind the last record of a path: no function matches it."""

    def __init__(self, prev: Record | None) -> None:
        super().__init__(prev, None)
        self.call = self.asked = _NO_FUNCTION


_NO_FUNCTION = object()


def end_of(prev: Record | None) -> Record:
    """The place behind a record that nothing has followed yet."""
    return _End(prev)
