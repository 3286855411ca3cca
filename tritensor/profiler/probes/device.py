"""Probes of device cuda: launches, copies, replays of graphs and waits, on the driver with a pair of its events around each."""

from __future__ import annotations

import functools
from collections.abc import Callable
from threading import get_ident
from typing import Any

from tritensor.cuda.compiler.arguments import LaunchCall
from tritensor.cuda.runtime import active
from tritensor.ground.thread_state import here
from tritensor.ops.replay.corner import recordings
from tritensor.profiler.probes.driver_events import DriverEvents
from tritensor.profiler.recording import Patches, Recording
from tritensor.profiler.records import RUNTIME, DeviceWork, clock

_WAITS = {
    "synchronize": "cuCtxSynchronize",
    "stream_synchronize": "cuStreamSynchronize",
    "event_synchronize": "cuEventSynchronize",
    "_wait": "cuStreamSynchronize",
}
# By the method of the runtime (queue_* where the driver serves): the driver's function, its name in a time line, and the bytes that it moves.
_COPIES: dict[str, tuple[str, str, Callable[..., int]]] = {
    "copy_to_device": ("cuMemcpyHtoDAsync", "Memcpy HtoD", lambda storage, offset, source, *_: int(source.nbytes)),
    "copy_to_host": ("cuMemcpyDtoHAsync", "Memcpy DtoH", lambda into, storage, offset, *_: int(into.nbytes)),
    "copy_on_device": ("cuMemcpyDtoDAsync", "Memcpy DtoD", lambda target, at, source, since, nbytes: int(nbytes)),
}


def device_probe(recording: Recording, patches: Patches) -> None:
    """Wrap the methods of the runtime that serves device cuda; where none has started yet, as soon as it does."""
    if active.started():
        _attach(recording, patches, active.runtime())
        return
    choose = active._choose

    def chosen() -> Any:
        made = choose()
        if recording.on:
            _attach(recording, patches, made)
        return made

    patches.put(active, "_choose", chosen)


def _attach(recording: Recording, patches: Patches, runtime: Any) -> None:
    for method, name in _WAITS.items():
        if hasattr(runtime, method):
            patches.put(runtime, method, _time_call(recording, name, getattr(runtime, method)))
    if hasattr(runtime, "kernels"):
        _attach_driver(recording, patches, runtime)
    elif active.emulated():
        _attach_emulator(recording, patches, runtime)


def _time_call(recording: Recording, name: str, call: Callable[..., Any]) -> Callable[..., Any]:

    @functools.wraps(call)
    def timed(*args: Any, **kwargs: Any) -> Any:
        if not recording.on:
            return call(*args, **kwargs)
        start = clock()
        try:
            return call(*args, **kwargs)
        finally:
            recording.records.append((RUNTIME, name, start, clock(), get_ident(), 0, None))

    return timed


# the driver
def _attach_driver(recording: Recording, patches: Patches, runtime: Any) -> None:
    from tritensor.ops.replay.driver_recordings import launching_by  # needs cuda-python, which a process without a GPU does not load

    events = DriverEvents(recording, runtime)
    recording.driver = events
    for index in {here.index, *[a.index for a in runtime.allocators()]}:
        events.align(index)
    kernels = runtime.kernels
    start = kernels.start
    timed = _time_launch(recording, events, start)
    patches.put(kernels, "start", timed)
    for recording in recordings():
        launching_by(recording, timed)  # recordings of ops hold the launch itself: they do not look it up again

    def restore() -> None:
        for recording in recordings():
            launching_by(recording, start, timed)

    patches.at_end(restore)
    for method, (name, words, size) in _COPIES.items():
        # the argument that is on the GPU
        device = (lambda storage, *_: storage) if method != "copy_to_host" else (lambda into, storage, *_: storage)
        queue = method.replace("copy", "queue")
        patches.put(runtime, queue, _time_queued(recording, events, (name, words, "memcpy"), getattr(runtime, queue), device, size))
    replay = runtime.graph_launch
    on = lambda index, *_: index  # noqa: E731
    launched = _time_queued(recording, events, ("cuGraphLaunch", "CUDA graph", "graph"), replay, on, lambda *_: 0)
    patches.put(runtime, "graph_launch", launched)
    fill = runtime.fill_word
    patches.put(runtime, "fill_word", _time_queued(recording, events, ("cuMemsetD32Async", "Memset", "memset"), fill, on, lambda *_: 4))


def _time_launch(recording: Recording, events: DriverEvents, start: Callable[..., Any]) -> Callable[..., Any]:
    """cuLaunchKernelEx between two events. During a capture it passes through: the kernel runs later, when its graph is launched."""
    take, record = events.take, events.record
    fired, append = recording.fired.append, recording.records.append

    def timed(config: Any, function: Any, address: int, extra: int) -> Any:
        if not recording.on or here.capture is not None:
            return start(config, function, address, extra)
        index = here.context
        stream = here.streams.get(index, 0)
        before, after = take(index), take(index)
        record(before, stream)
        begun = clock()
        found = start(config, function, address, extra)
        done = clock()
        record(after, stream)
        thread = get_ident()
        append((RUNTIME, "cuLaunchKernelEx", begun, done, thread, 0, None))
        fired(DeviceWork("", "kernel", index, stream, thread, begun, done, before, after, (function, config)))
        return found

    return timed


def _time_queued(
    recording: Recording, events: DriverEvents, words: tuple[str, str, str], call: Callable[..., Any], device: Any, size: Callable[..., int]
) -> Callable[..., Any]:
    """Other queued work, between two events. `device` gives of the arguments a storage on the GPU, or the GPU's number."""
    name, shown, kind = words

    @functools.wraps(call)
    def timed(*args: Any) -> Any:
        if not recording.on or here.capture is not None:
            return call(*args)
        target = device(*args)
        index = target if isinstance(target, int) else target.device.index or 0
        events.enter(index)
        stream = here.streams.get(index, 0)
        if kind == "graph":
            stream = args[2]  # a graph is launched on a stream of its own
        before, after = events.take(index), events.take(index)
        events.record(before, stream)
        begun = clock()
        try:
            return call(*args)
        finally:
            done = clock()
            events.enter(index)
            events.record(after, stream)
            recording.records.append((RUNTIME, name, begun, done, get_ident(), 0, None))
            about = {"bytes": size(*args)}
            recording.fired.append(DeviceWork(shown, kind, index, stream, get_ident(), begun, done, before, after, about))

    return timed


# the emulated device
def _attach_emulator(recording: Recording, patches: Patches, runtime: Any) -> None:
    recording.emulated = True
    launch = runtime.launch

    def launched(call: LaunchCall) -> None:
        if not recording.on or here.capture is not None:
            launch(call)
            return
        start = clock()
        try:
            launch(call)
        finally:
            about = {"grid": (*call.grid, 1, 1)[:3], "block": (32 * call.num_warps, 1, 1)}
            _note_emulated(recording, ("cuLaunchKernelEx", call.kernel.fn.__name__, "kernel"), here.index, start, about)

    patches.put(runtime, "launch", launched)
    for method, (name, words, size) in _COPIES.items():
        patches.put(
            runtime, method, _time_copy(recording, (name, words, "memcpy"), getattr(runtime, method), method == "copy_to_host", size)
        )


def _time_copy(recording: Recording, words: tuple[str, str, str], call: Any, second: bool, size: Callable[..., int]) -> Callable[..., Any]:
    @functools.wraps(call)
    def timed(*args: Any, **kwargs: Any) -> Any:
        if not recording.on or here.capture is not None:
            return call(*args, **kwargs)
        start = clock()
        try:
            return call(*args, **kwargs)
        finally:
            _note_emulated(recording, words, args[1 if second else 0].device.index or 0, start, {"bytes": size(*args)})

    return timed


def _note_emulated(recording: Recording, words: tuple[str, str, str], index: int, start: int, about: dict[str, Any]) -> None:
    """Note work of the emulated device: it is done when the call returns, and its time is the interpreter's."""
    end, thread = clock(), get_ident()
    recording.records.append((RUNTIME, words[0], start, end, thread, 0, None))
    recording.fired.append(DeviceWork(words[1], words[2], index, here.streams.get(index, 0), thread, start, end, start, end, about))
