"""Recordings for the real device: free lists, parameter blocks and result layouts looked up once, so that a replay is a few dozen bytecodes.

The steady state of a call: one comparison tells that this thread still works on the GPU, stream and pool that the recording is
bound to; blocks are popped off their free lists; addresses are packed into the block of each launch, and it is launched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from tritensor.cuda.driver.memory import DeviceStorage
from tritensor.ground.device import device, gpu
from tritensor.ground.thread_state import here
from tritensor.ops.array import CudaArray, Layout
from tritensor.ops.replay.recorder import Given, Window
from tritensor.ops.replay.replayed_numbers import ReplayedNumber

Recording = Callable[[Sequence[CudaArray]], Any]
_NOWHERE: Any = object()  # no thread's place: a recording that has not been bound yet is not taken for one bound to None


class _Step:
    """A launch of a recording, and where its addresses come from: numbers of sources, or addresses that never change."""

    __slots__ = ("launch", "pick", "places")

    def __init__(self, launch: Any, places: list[int]) -> None:
        self.launch = launch
        self.places = tuple(places)
        self.pick = _picker(places)


def _picker(places: list[int]) -> Callable[[list[int]], tuple[int, ...]]:
    """The addresses at these places of a list, as a tuple."""
    if not places:
        return lambda pointers: ()
    if len(places) == 1:
        only = places[0]
        return lambda pointers: (pointers[only],)
    return itemgetter(*places)


class _Plan:
    """The form that a recording comes to on a GPU.

    Addresses are numbered: inputs, then allocations, then `derived` ones: (number of another, bytes behind it), or (-1, address).
    """

    def __init__(self, runtime: Any, recorder: Any, result: Any) -> None:
        self.runtime = runtime
        self.inputs = len(recorder.inputs)
        self.addresses = [x.pointer for x in recorder.inputs]  # of this recording; layouts tell of them what every replay has in common
        self.sizes = [s.nbytes for s in recorder.storages]
        self.derived: list[tuple[int, int]] = []
        self.result = result
        held = [x for x in (*recorder.inputs, *recorder.storages) if type(x) is not ReplayedNumber]
        self.device: device = held[0].device if held else gpu(here.index)
        self.index = self.device.index or 0
        self._numbers: dict[tuple[int, int], int] = {}
        launches: list[tuple[Any, list[Any], int]] = []
        for call in recorder.calls:
            made, given = runtime.prepare(call, recorder.drawn)
            windows = [x if type(x) in (Given, Window) else recorder.window(x) for x in given]
            if recorder.spoiled:
                return
            scratch = made.scratch()
            if scratch:
                self.sizes.append(scratch)
            launches.append((made, windows, len(self.sizes) - 1 if scratch else -1))
        self.steps = [_Step(made, self._places(windows, area)) for made, windows, area in launches]

    def _places(self, windows: list[Any], area: int) -> list[int]:
        """The numbers of a launch's addresses, and of the replayed ones among its arguments, which are packed like addresses."""
        found = []
        for w in windows:
            if type(w) is Given:
                found.append(w.source)
            else:
                found.append(self._number(w.source, w.delta) if type(w) is Window else self._number(-1, w.pointer))
        return [*found, self.inputs + area] if area >= 0 else found

    def _number(self, source: int, delta: int) -> int:
        if delta == 0:
            return source
        key = (source, delta)
        if key not in self._numbers:
            self._numbers[key] = self.inputs + len(self.sizes) + len(self.derived)
            self.derived.append(key)
        return self._numbers[key]


def driver_recording(runtime: Any, recorder: Any, result: Any) -> Recording | None:
    """A recording of what `recorder` has seen, for a DriverRuntime; None where a launch took memory that spoils it."""
    plan = _Plan(runtime, recorder, result)
    if recorder.spoiled:
        return None
    fresh = type(result) is Window and result.source == plan.inputs and result.delta == 0
    # most calls: one block, one launch, the block is the result
    if fresh and len(plan.steps) == 1 and len(plan.sizes) == 1 and plan.sizes[0] and not plan.derived:
        return _single_launch_recording(plan, result)
    if type(result) is Given and len(plan.steps) == 1 and not plan.sizes and not plan.derived:
        return _in_place_recording(plan, result.source)
    return _general_recording(plan)


def _layout(window: Any, on: device, address: int = 0) -> Layout:
    """The layout of a result in memory that begins at an address; blocks begin where they divide by all that matters."""
    shape = CudaArray.__new__(CudaArray)
    storage = DeviceStorage.__new__(DeviceStorage)
    storage.pointer, storage.device = 0, on
    shape.storage, shape.shape, shape.strides, shape.dtype = storage, window.shape, window.strides, window.dtype
    shape.pointer, shape.known_layout = address + window.delta, None
    return shape.layout()


def _single_launch_recording(plan: _Plan, window: Any) -> Recording:
    """The recording of most calls: one block, one launch, the block is the result. Written out for speed; Launch.fire says why it is safe."""
    runtime, launch, kernels = plan.runtime, plan.steps[0].launch, plan.runtime.kernels
    start, ok, pack, memory = kernels.start, kernels.ok, launch.block.pack, launch.block.memory
    config, function, address, pick = launch.config, launch.loaded.function, launch.block.address, plan.steps[0].pick
    nbytes, on, index = plan.sizes[0], plan.device, plan.index
    shape, strides, dtype, layout = window.shape, window.strides, window.dtype, _layout(window, on)
    order = {(2, (2, 0, 1)): 2, (1, (1, 0)): 1}.get((plan.inputs, plan.steps[0].places), 0)  # result, then inputs: elementwise ops
    new_storage, new_array, thread = DeviceStorage.__new__, CudaArray.__new__, here
    bound: Any = (_NOWHERE, None, None, 0)  # place, allocator, free list, bytes of its blocks: what this recording was last used with

    def bind() -> Any:
        """Take up the GPU, stream and pool that this thread works on now."""
        nonlocal bound
        place = runtime.place(index)
        free_list = place.allocator.free_list(nbytes, place.stream)
        bound = (place, place.allocator, free_list, free_list.size)
        return bound

    def recording(arrays: Sequence[CudaArray]) -> CudaArray:
        place, a, free_list, size = bound
        if thread.place is not place:
            place, a, free_list, size = bind()
        if a.several:
            runtime.mark(arrays, place)
        storage = new_storage(DeviceStorage)
        storage.pointer = 0
        storage.free_list = free_list
        storage.nbytes = nbytes
        storage.device = on
        if free_list.free:
            # no call between the look and the pop: see the allocator's rules for callers
            storage.pointer = pointer = free_list.free.pop()
            a.live = live = a.live + size
            if live > a.peak:
                a.peak = live
        else:
            storage.pointer = pointer = a.take(free_list, nbytes)
        if launch.busy:
            launch.fire(pick([*[x.pointer for x in arrays], pointer]), place.stream)
        else:
            launch.busy = True
            try:
                if launch.stream != place.stream:
                    launch.turn(place.stream)
                if order == 2:
                    pack(memory, 0, pointer, arrays[0].pointer, arrays[1].pointer)
                elif order == 1:
                    pack(memory, 0, pointer, arrays[0].pointer)
                else:
                    pack(memory, 0, *pick([*[x.pointer for x in arrays], pointer]))
                (status,) = start(config, function, address, 0)
            finally:
                launch.busy = False
            if status is not ok:
                raise launch.failed(status)
        y = new_array(CudaArray)
        y.storage, y.pointer, y.known_layout = storage, pointer, layout
        y.shape, y.strides, y.dtype = shape, strides, dtype
        return y

    return recording


def launching_by(recording: Any, start: Any, instead_of: Any = None) -> None:
    """Let a recording launch by another function than it does now (only `instead_of`, where given): for a profiler, so that nobody pays for the question
    whether one looks. Only `_single_launch_recording` keeps the function; other recordings ask for it at each call."""
    code = getattr(recording, "__code__", None)
    if code is _ONE_LAUNCH:
        cell = recording.__closure__[code.co_freevars.index("start")]
        if instead_of is None or cell.cell_contents is instead_of:
            cell.cell_contents = start


# The code of all recordings that _single_launch_recording makes.
_ONE_LAUNCH = next(c for c in _single_launch_recording.__code__.co_consts if getattr(c, "co_name", "") == "recording")


def _in_place_recording(plan: _Plan, source: int) -> Recording:
    """The recording of a write into one of the arrays that a call is given (x.mul_(2.0), out=): one launch, no block."""
    runtime, index, launch, pick = plan.runtime, plan.index, plan.steps[0].launch, plan.steps[0].pick
    bound: Any = _NOWHERE

    def recording(arrays: Sequence[CudaArray]) -> CudaArray:
        nonlocal bound
        place = bound
        if here.place is not place:
            bound = place = runtime.place(index)
        if place.allocator.several:
            runtime.mark(arrays, place)
        launch.fire(pick([x.pointer for x in arrays]), place.stream)
        return arrays[source]

    return recording


def _general_recording(plan: _Plan) -> Recording:
    """The recording of any other call: several launches, blocks of its own, several results or views of inputs."""
    runtime, index, on = plan.runtime, plan.index, plan.device
    sizes, derived, steps, made = plan.sizes, plan.derived, plan.steps, _Out(plan.result, plan).made
    bound: Any = (_NOWHERE, ())  # place, a free list for each block

    def bind() -> Any:
        nonlocal bound
        place = runtime.place(index)
        bound = (place, [place.allocator.free_list(nbytes, place.stream) if nbytes else None for nbytes in sizes])
        return bound

    def recording(arrays: Sequence[CudaArray]) -> Any:
        place, free_lists = bound
        if here.place is not place:
            place, free_lists = bind()
        if place.allocator.several:
            runtime.mark(arrays, place)
        # all before the first launch: what runs out of memory has launched nothing
        storages = [_block(free_list, nbytes, on) for free_list, nbytes in zip(free_lists, sizes, strict=True)]
        pointers = [x.pointer for x in arrays]
        pointers += [s.pointer for s in storages]
        for source, delta in derived:
            pointers.append(delta if source < 0 else pointers[source] + delta)
        for step in steps:
            step.launch.fire(step.pick(pointers), place.stream)
        return made(arrays, storages)

    return recording


def _block(free_list: Any, nbytes: int, on: device) -> DeviceStorage:
    """Memory off a free list (None: no bytes)."""
    storage = DeviceStorage.__new__(DeviceStorage)
    storage.pointer = 0
    storage.nbytes = nbytes
    storage.device = on
    if free_list is None:
        return storage
    storage.free_list = free_list
    a = free_list.allocator
    if free_list.free:
        storage.pointer = free_list.free.pop()
        a.live = live = a.live + free_list.size
        if live > a.peak:
            a.peak = live
    else:
        storage.pointer = a.take(free_list, nbytes)
    return storage


class _Out:
    """The result of a recording: memory of an allocation or of an input, an input itself, the same each time, or a tuple of these."""

    __slots__ = ("always", "delta", "dtype", "first", "given", "layout", "parts", "shape", "source", "strides")

    def __init__(self, window: Any, plan: _Plan) -> None:
        """`window` is what Recorder.result says of it."""
        kind = type(window)
        self.first = plan.inputs
        self.parts = tuple([_Out(w, plan) for w in window]) if kind is tuple else None
        self.given = kind is Given
        self.always = None if kind in (tuple, Given, Window) else (window,)
        if kind is Given:
            self.source = window.source
        if kind is Window:
            self.source, self.delta, self.shape, self.strides, self.dtype = window
            self.layout = _layout(window, plan.device, plan.addresses[self.source] if self.source < self.first else 0)

    def made(self, arrays: Sequence[CudaArray], storages: list[DeviceStorage]) -> Any:
        """The result of one replay."""
        if self.parts is not None:
            return tuple([part.made(arrays, storages) for part in self.parts])
        if self.given:
            return arrays[self.source]
        if self.always is not None:
            return self.always[0]
        y = CudaArray.__new__(CudaArray)
        if self.source < self.first:
            x = arrays[self.source]
            y.storage, y.pointer = x.storage, x.pointer + self.delta
        else:
            y.storage = storage = storages[self.source - self.first]
            y.pointer = storage.pointer + self.delta
        y.known_layout = self.layout
        y.shape, y.strides, y.dtype = self.shape, self.strides, self.dtype
        return y
