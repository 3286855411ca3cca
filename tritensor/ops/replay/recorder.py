"""Recordings: what a corner allocates, launches and returns when it is called, and a recording that does the same again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tritensor.cuda.compiler.arguments import LaunchCall
from tritensor.cuda.compiler.tensor_descriptor import TensorDescriptor
from tritensor.cuda.memory.storage import Storage
from tritensor.cuda.runtime import active
from tritensor.ground.device import device
from tritensor.ground.thread_state import here
from tritensor.ops.array import CudaArray
from tritensor.ops.replay.replayed_numbers import ReplayedNumber

NOWHERE = 1 << 60  # an address that no device has


class Window(NamedTuple):
    """An array of a recorded call: `source` is the number of the input (then of the allocation) whose memory it lies in, `delta` the
    bytes from that input's first element, or from the allocation's first byte, to its own."""

    source: int
    delta: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: Any


class Tiles(NamedTuple):
    """A tensor descriptor in a recorded call: of which array, in what tiles."""

    window: Any
    block_shape: tuple[int, ...]
    padding: str
    rounds: bool


class Given(NamedTuple):
    """A result that is an input itself, or a replayed number among the inputs."""

    source: int


class Address(NamedTuple):
    """The address of an array as a number in a recorded call (see address_of)."""

    window: Window


class Drawn(NamedTuple):
    """A replayed number in a recorded call: which input, and the numpy type that the kernel takes it as."""

    source: int
    kind: Any


class _Borrowed(Storage):
    """Memory of an input under a name of its own, so that two inputs that share memory stay two inputs in the recording."""

    __slots__ = ("free_list",)

    def __init__(self, x: CudaArray) -> None:
        self.pointer = x.storage.pointer
        self.nbytes = x.storage.nbytes
        self.device = x.storage.device
        self.free_list = getattr(x.storage, "free_list", None)  # a runtime with streams asks whose block it is


class NotThere(Exception):
    """The host reads or writes memory that a dry recording has only imagined."""


class Imagined(Storage):
    """Memory of a dry recording: an address that no other memory of the recording has, and nothing behind it."""

    __slots__ = ()

    def __init__(self, pointer: int, nbytes: int, on: device) -> None:
        self.pointer, self.nbytes, self.device = pointer, nbytes, on

    def read(self, into: np.ndarray, offset: int) -> None:
        raise NotThere

    def write(self, source: np.ndarray, offset: int) -> None:
        raise NotThere


class Recorder:
    """Writes down what a corner does. `spoiled` says why it cannot be replayed ("" while it can).

    `inputs` stand for the caller's arrays, then for the `replayed` numbers. A `dry` recording launches and allocates nothing. `drawn`
    tells, by id, which numbers among the launches' arguments are replayed (see `match_numbers`), or are addresses of arrays.
    """

    def __init__(self, arrays: Sequence[CudaArray], replayed: Sequence[ReplayedNumber] = (), *, dry: bool = False) -> None:
        self.dry = dry
        borrowed = [CudaArray(_Borrowed(x), x.shape, x.dtype, x.strides, x.offset) for x in arrays]
        self.replayed = replayed
        self.inputs: list[Any] = [*borrowed, *replayed]
        self.drawn: dict[int, Given | Window] = {}
        self._addresses: list[Any] = []  # held to the end: `drawn` knows numbers by id
        self.kinds: dict[int, Any] = {}  # the types of the replayed numbers that launches take, by place among the inputs
        self.storages: list[Storage] = []  # held to the end, so that no address is used twice in one recording
        self.calls: list[LaunchCall] = []
        self.spoiled = ""
        self._sources: dict[int, tuple[int, int]] = {id(x.storage): (i, x.pointer) for i, x in enumerate(borrowed)}

    def imagined(self, nbytes: int, on: device) -> Storage:
        """The storage that a dry recording gives for an allocation."""
        last = self.storages[-1] if self.storages else None
        end = NOWHERE if last is None else last.pointer + last.nbytes
        # as an allocator aligns: types that are recorded tell whether addresses divide by 16
        storage = Imagined(-(-end // 256) * 256, nbytes, on)
        self.allocated(storage)
        return storage

    def allocated(self, storage: Storage) -> None:
        self._sources[id(storage)] = (len(self.inputs) + len(self.storages), storage.pointer)
        self.storages.append(storage)

    def launched(self, call: LaunchCall) -> None:
        self.calls.append(call)

    def starts_runtime(self) -> None:
        """The first runtime of the process is asked for within the recording."""

    def spoil(self, reason: str) -> None:
        self.spoiled = self.spoiled or reason

    def window(self, x: CudaArray) -> Any:
        """The Window of an array that the corner made or was given; the array itself where its memory is permanent."""
        found = self._sources.get(id(x.storage))
        if found is None:
            # an error record: its address may stand in a recording
            if x.storage.permanent:
                return x
            self.spoil("it uses device memory that it neither was given nor allocated")
            return None
        source, start = found
        return Window(source, x.pointer - start, x.shape, x.strides, x.dtype)

    def note_address(self, number: np.int64, x: CudaArray) -> None:
        """Take note that a number is the address of an array: each replay gives the address of its own."""
        window = self.window(x)
        if type(window) is Window:  # permanent memory stays where it is
            self.drawn[id(number)] = window
            self._addresses.append(number)

    def result(self, value: Any) -> Any:
        """The corner's result, with Windows in place of arrays."""
        if type(value) is tuple:
            return tuple([self.result(v) for v in value])
        if type(value) is not CudaArray:
            if value is not None:
                self.spoil(f"it returns a {type(value).__name__}")
            return None
        for i, x in enumerate(self.inputs):
            if value is x:
                return Given(i)
        return self.window(value)

    def returned(self, value: Any, arrays: Sequence[CudaArray]) -> Any:
        """The corner's result, with the caller's arrays and storages in place of those that stood for them."""
        if type(value) is tuple:
            return tuple([self.returned(v, arrays) for v in value])
        if type(value) is CudaArray and type(value.storage) is _Borrowed:
            for x, real in zip(self.inputs, arrays, strict=False):  # replayed numbers come after the arrays
                if value is x:
                    return real
                if value.storage is x.storage:
                    value.storage = real.storage
        return value


def address_of(x: CudaArray) -> np.int64:
    """The address of an array as a number for a kernel, which is compiled for pointers that divide by 16 and for others, but once for numbers.

    A corner may give launches no other address as a number: replays would give the old one.
    """
    number = np.int64(x.pointer)
    if here.recorder is not None:
        here.recorder.note_address(number, x)
    return number


def runtime_recording(recorder: Recorder, result: Any) -> Callable[[Sequence[CudaArray]], Any]:
    """A recording for any runtime: allocates, puts arrays back where Windows stand, and launches through the runtime."""
    calls = [c.given(_windows(c.args, recorder), {k: _windows(v, recorder) for k, v in c.named.items()}) for c in recorder.calls]
    wanted = [(s.nbytes, s.device) for s in recorder.storages]

    def recording(arrays: Sequence[CudaArray]) -> Any:
        runtime = active.runtime()
        sources: list[Any] = [(x.storage, x.pointer) for x in arrays]
        # Not by memory.allocate: a recorder is told of both what a recording allocates and what it launches, or of neither.
        sources += [(s, s.pointer) for s in [runtime.allocate(nbytes, on.index or 0) for nbytes, on in wanted]]
        for c in calls:
            runtime.launch(c.given(_arrays(c.args, sources, arrays), {k: _arrays(v, sources, arrays) for k, v in c.named.items()}))
        return _arrays(result, sources, arrays)

    return recording


# Functions of their own: a nested one that calls itself is a reference cycle, and would keep the memory until the collector runs.
def _windows(value: Any, recorder: Recorder) -> Any:
    """A launch's argument with Windows in place of arrays."""
    if type(value) is CudaArray:
        return recorder.window(value)
    if type(value) is tuple:
        return tuple([_windows(v, recorder) for v in value])
    if type(value) is TensorDescriptor:
        return Tiles(_windows(value.array, recorder), value.block_shape, value.padding, value.rounds)
    found = recorder.drawn.get(id(value))
    if type(found) is Window:
        return Address(found)
    return value if found is None else Drawn(found.source, type(value))


def _arrays(value: Any, sources: list[Any], arrays: Sequence[Any]) -> Any:
    """The same with arrays in place of Windows."""
    if type(value) is Window:
        storage, start = sources[value.source]
        made = CudaArray(storage, value.shape, value.dtype, value.strides)
        made.pointer = start + value.delta
        return made
    if type(value) is Given:
        return arrays[value.source]
    if type(value) is Address:
        return np.int64(sources[value.window.source][1] + value.window.delta)
    if type(value) is tuple:
        return tuple([_arrays(v, sources, arrays) for v in value])
    if type(value) is Tiles:
        return TensorDescriptor(_arrays(value.window, sources, arrays), value.block_shape, value.padding, value.rounds)
    if type(value) is Drawn:
        return value.kind(arrays[value.source].value)
    return value


def match_numbers(recorder: Recorder, other: Recorder, changed: dict[tuple[Any, Any, Any], int]) -> None:
    """Find the replayed numbers among a recording's arguments by comparing it with another recording of the same call with others.

    `changed` says what a difference may be: (type, number here, number there) -> its place among the replayed. Anything else that
    differs was computed from those, and spoils the recording; so does a number that is taken as two types.
    """
    first = len(recorder.inputs) - len(other.replayed)
    places = {k: Given(first + i) for k, i in changed.items()}
    alike = [s.nbytes for s in recorder.storages] == [s.nbytes for s in other.storages] and len(recorder.calls) == len(other.calls)
    if not alike or not all([_match(a, b, places, recorder, other) for a, b in zip(recorder.calls, other.calls, strict=True)]):
        recorder.spoil("what it launches depends on a number in a way that no replay can repeat")


def _match(a: Any, b: Any, places: dict[Any, Given], recorder: Recorder, other: Recorder) -> bool:
    """True where two recordings hold the same here, or a replayed number, which `recorder` notes."""
    kind = type(a)
    if kind is not type(b):
        return False
    if isinstance(a, tuple):
        return len(a) == len(b) and all([_match(x, y, places, recorder, other) for x, y in zip(a, b, strict=True)])
    if kind is LaunchCall:
        return all([_match(getattr(a, name), getattr(b, name), places, recorder, other) for name in LaunchCall.__slots__])
    if kind is dict:
        return a.keys() == b.keys() and all([_match(x, b[k], places, recorder, other) for k, x in a.items()])
    if isinstance(a, np.number | float) and (found := places.get((kind, a, b))) is not None:
        recorder.drawn[id(a)] = found
        return recorder.kinds.setdefault(found.source, kind) is kind
    if kind is CudaArray:
        return bool(recorder.window(a) == other.window(b))
    if kind is TensorDescriptor:
        forms = [(d.block_shape, d.padding, d.rounds) for d in (a, b)]
        return forms[0] == forms[1] and _match(a.array, b.array, places, recorder, other)
    return bool(a is b or a == b)
