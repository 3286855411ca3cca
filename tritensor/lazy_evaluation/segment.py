"""Segment: calls that have been noted and not yet run, the memory that is to hold their results, and the run itself."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tritensor.autograd.node import FREED, Node
from tritensor.fusion.graph import WRITE, WRITE_OP, Call, Value, Window, needed
from tritensor.ground import shortcuts
from tritensor.ground.call_site import user_instruction
from tritensor.ground.device import cpu, device
from tritensor.ground.process.locks import rlock
from tritensor.ground.strides import contiguous_strides
from tritensor.ground.thread_state import here
from tritensor.lazy_evaluation.known.cursor import Cursor
from tritensor.lazy_evaluation.known.fresh import FreshTensor
from tritensor.lazy_evaluation.known.records import Trail
from tritensor.lazy_evaluation.regions import close_region, go_on, is_left_open
from tritensor.ops.array import device_of, element_strides, same_memory
from tritensor.ops.lazy_array import LazyArray, PendingStorage, is_shared, waiting
from tritensor.ops.strided_array import StridedArray
from tritensor.ops.table import Op

LONGEST = 4096  # calls after which a segment runs by itself
watchers: list[
    Callable[[Any, str], Callable[[], None]]
] = []  # told (segment, why) before a segment runs; what each gives is called when it has


class Segment:
    """Calls of one thread. Whoever asks for a value runs them all, in any thread; what nobody holds any more, and nothing needs, is not computed."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.storages: list[weakref.ref[PendingStorage]] = []
        self.tensors: list[weakref.ref[Any]] = []  # which are given their arrays when these are there
        self.nodes: list[weakref.ref[Any]] = []
        self.leaves: dict[int, Value] = {}
        self.versions: dict[int, tuple[Any, int]] = {}  # of memory that was read, by its array: the counter of writes, and what it said
        # memory that there is, what it held before a write, and how many calls came before that
        self.overwritten: list[tuple[int, PendingStorage, Value]] = []
        self.lock = rlock()
        self.runs = 0  # how often what waited has run
        self.cursor = Cursor(self)
        self.graph: list[weakref.ref[Any]] = []  # of what a compiled function gave that has left its region open

    # -- what goes in
    def operand(self, x: Any) -> Any:
        """An argument of a call as it stands in the graph."""
        if type(x) is LazyArray:
            storage = x.storage
            if storage.failure is not None:
                raise storage.failure  # which is no value of this segment, nor any other
            if storage.value is None or storage.segment is not self:  # computed, or another thread's
                return self.leaf(x.settled())
            value = storage.value
            if x.whole:
                return value
            value.fixed = True
            return Window(value, x.shape, x.dtype, x.strides, x.first)
        if isinstance(x, np.ndarray | StridedArray):
            return self.leaf(x)
        return tuple([self.operand(y) for y in x]) if type(x) is tuple else x

    def leaf(self, array: Any) -> Value:
        """Memory that there is, as a value."""
        found = self.leaves.get(id(array))
        if found is None:
            if is_shared(array):  # as it is now
                from tritensor.lazy_evaluation.storing import copied

                array = copied(array, tuple(element_strides(array)))
                self.leaves[id(array)] = found = Value(tuple(array.shape), array.dtype, tuple(element_strides(array)), cpu, array=array)
                return found
            found = self.leaves[id(array)] = Value(
                tuple(array.shape), array.dtype, tuple(element_strides(array)), device_of(array), array=array
            )
        return found

    def add(self, call: Call) -> None:
        """Note a call."""
        if not self.calls:
            self.cursor.stop()
            waiting.add(self)
            shortcuts.turn("lazy", 1)  # no plan knows of memory that calls are waiting for
        self.calls.append(call)

    def new(
        self, call: Call, place: int, shape: tuple[int, ...], dtype: np.dtype, strides: tuple[int, ...] | None, on: device
    ) -> LazyArray:
        """An array that a call will make."""
        return self.hold(Value(shape, dtype, contiguous_strides(shape) if strides is None else strides, on, call, place))

    def hold(self, value: Value, home: Any = None) -> LazyArray:
        """An array, in memory of its own, of a value; `home` is memory that there is, which nobody else looks at, and which the value is written to."""
        storage = PendingStorage(value.device, math.prod(value.shape) * value.dtype.itemsize, value.strides, value, self, home)
        self.storages.append(weakref.ref(storage))
        made = LazyArray(storage, value.shape, value.dtype, value.strides)
        made.whole = True
        return made

    def written(self, base: Value, item: Any, window: tuple[Any, ...]) -> Value:
        """The value of memory with an item written over a window of it."""
        base.fixed = True
        return self._written((base, item, window), base, base.strides)

    def copied(self, item: Any, strides: tuple[int, ...]) -> Value:
        """A copy of a value, or of a window, that lies so."""
        return self._written((None, item, None), item, strides)

    def _written(self, inputs: tuple[Any, ...], like: Any, strides: tuple[int, ...]) -> Value:
        call = Call(WRITE_OP, WRITE, inputs, {}, user_instruction())
        on = like.device if type(like) is Value else like.value.device
        made = Value(like.shape, like.dtype, strides, on, call)
        made.fixed = True
        call.results = (made,)
        self.add(call)
        return made

    def reads(self, array: Any) -> bool:
        """Whether a waiting call reads memory of an array."""
        return any([v.array is not None and same_memory(v.array, array) for v in tuple(self.leaves.values())])  # other threads ask, too

    # -- what comes out
    def settle(self, storage: PendingStorage | None = None, everything: bool = False, why: str = "") -> None:
        """Run all calls that lead to what is still held, or all there are. Raises the first error of a call, noted with its op and line, when what does not
        hang on that call has been computed; memory that existed before is then as it was before that call. `why`, for whoever watches; none: a value is
        asked for."""
        ends = [begun(self, why) for begun in watchers] if watchers else ()
        try:
            self._run(storage, everything)
        finally:
            for end in ends:
                end()
            if storage is not None and here.segment is self and is_left_open(self) and not self._is_graph_held():
                close_region()

    def waits(self) -> list[Call]:
        """The calls that have not run, passed over or noted."""
        last = self.cursor.at.prev
        return self.calls if last is None else Trail(last).calls

    def held(self) -> list[PendingStorage]:
        """The memory that somebody holds and that is yet to be computed."""
        return [s for mark in self.storages if (s := mark()) is not None and s.value is not None and s.failure is None]

    def end_step(self) -> None:
        """An optimizer has made its step: a region that was left open for that is closed."""
        if go_on(self):
            try:
                self.settle(why="the end of an optimizer's step")
            finally:
                close_region()

    def _is_graph_held(self) -> bool:
        """Whether backward may yet come: somebody holds the graph of a compiled function's results."""
        held = [x for mark in self.graph if (x := mark()) is not None]
        nodes = [x if isinstance(x, Node) else x._node for x in held if type(x) is not FreshTensor]
        return len(nodes) < len(held) or any([n is not None and n.inputs is not FREED and n.outputs is not FREED for n in nodes])

    def _run(self, storage: PendingStorage | None, everything: bool) -> None:
        with self.lock:
            if storage is not None and storage.value is None:
                return  # another thread was faster
            if self.cursor.follows:
                self.cursor.run()
                return
            if storage is not None and storage.failure is not None:
                raise storage.failure
            self.runs += 1
            if not (self.calls or self.storages or self.tensors or self.nodes):
                self.leaves.clear()
                self.cursor.rest()
                return
            calls, self.calls = self.calls, []
            held = self.held()
            tensors, nodes, leaves = self.tensors, self.nodes, self.leaves
            overwritten = self.overwritten
            self.storages, self.tensors, self.nodes, self.leaves, self.overwritten = [], [], [], {}, []
            before, here.segment = here.segment, None  # what corners call runs as it is called
            try:
                # kernels are read when something runs, not when a region opens
                from tritensor.fusion.running import run_calls
                from tritensor.fusion.structure import compute
                from tritensor.lazy_evaluation.storing import store_results

                if calls:
                    waiting.discard(self)
                    shortcuts.turn("lazy", -1)
                stale = self._written_meanwhile()
                if stale:
                    for s in held:
                        s.failure = stale
                    raise stale
                wanted = {s.value for s in held}
                failed = run_calls(calls, wanted) if everything else compute(needed(calls, wanted), wanted)
                if failed:
                    _undo(calls, overwritten, failed, held)
                store_results(held, leaves.values(), failed)
                for value in wanted:
                    if value.call is not None:
                        value.array = None  # storages have it; the calls may be run again on other leaves
            except BaseException as error:
                if not isinstance(error, Exception):  # an interrupt: what waits for it waits on
                    self.storages = [weakref.ref(s) for s in held]
                    self.tensors, self.nodes, self.leaves, self.overwritten = tensors, nodes, leaves, overwritten
                    for call in calls:
                        self.add(call)
                raise
            finally:
                here.segment, self.versions = before, {}
            _hand_out(tensors, nodes)
            for leaf in leaves.values():
                leaf.array = None  # calls and their values hold each other until they are collected
            self.cursor.rest()
            if failed:
                raise _first_error(failed, len(calls))

    def _written_meanwhile(self) -> RuntimeError | None:
        """The error for memory that was read and has been written since, which no call may compute with."""
        for counter, seen in self.versions.values():
            if counter.value != seen and not counter.loose:
                return RuntimeError(
                    f"lazy: {counter.writer} wrote to memory that waiting calls read; this is a mistake of tritensor's, please report it"
                )
        return None


def _first_error(failed: Mapping[Value, Exception], calls: int) -> Exception:
    first = next(iter(failed.values()))
    if isinstance(first, MemoryError) and calls > 1:
        first.add_note(
            f"{calls} calls had waited, and their results that are held are made together; call tritensor.evaluate(...) "
            "on some of them earlier, or leave lazy() more often"
        )
    return first


def _undo(
    calls: list[Call], overwritten: list[tuple[int, PendingStorage, Value]], failed: Mapping[Value, Exception], held: list[PendingStorage]
) -> None:
    """Let memory that there is hold what it did when a call came that has failed: what was written before that is written, and nothing after it."""
    from tritensor.fusion.running import run_calls

    at = next(k for k, call in enumerate(calls) if any([v in failed for v in call.results]))
    for count, storage, value in reversed(overwritten):
        if count > at:
            storage.value = value
    wanted = {s.value for s in held}
    run_calls(needed(calls[:at], wanted), wanted)


def _hand_out(tensors: Sequence[weakref.ref[Any]], nodes: Sequence[weakref.ref[Any]]) -> None:
    """Give tensors, and nodes that saved outputs, the computed arrays."""
    for mark in tensors:
        t = mark()
        if t is not None and type(t._array) is LazyArray and t._array.storage.value is None:
            t._set_array(t._array.settled())
    for mark in nodes:
        n = mark()
        if n is not None and n.outputs:
            n.outputs = tuple([
                (held[0].settled(), held[1]) if held is not None and type(held[0]) is LazyArray else held for held in n.outputs
            ])  # fmt: skip


def attributes(op: Op, attrs: dict[str, Any]) -> dict[str, Any]:
    """Attributes as a call keeps them: lists may change later."""
    return {k: list(v) if type(v) is list else v for k, v in attrs.items()}
