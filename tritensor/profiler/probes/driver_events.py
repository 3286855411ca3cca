"""Pairs of the driver's events and their times on the host's clock: recorded without a wait, read when the profile is over."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tritensor.profiler.recording import Recording
from tritensor.profiler.records import DeviceWork, clock

_AHEAD = 256  # events that are made at once
_TRIES = 5  # looks at both clocks; the one in which least passed between asking and answer counts
_ANCHOR_MS = 1000.0  # an elapsed time comes as a float32 of milliseconds: beyond this the next event is measured from a later one


class DriverEvents:
    """Events of all GPUs for one recording. `zero`: by GPU an event, and the host's time at which it was passed (ns)."""

    def __init__(self, recording: Recording, runtime: Any) -> None:
        self.recording = recording
        self.runtime = runtime
        self.driver = runtime.driver
        self.enter = runtime.enter
        # Its status is looked at when times are read: a lost device shows in the launch that follows.
        self.record = self.driver.api.cuEventRecord
        self.zero: dict[int, tuple[Any, int]] = {}
        self._free: dict[int, list[Any]] = {}
        self._made: list[tuple[int, Any]] = []

    def take(self, index: int) -> Any:
        """An event of the GPU that is current on this thread."""
        free = self._free.get(index)
        if free is None:
            free = self._free.setdefault(index, [])
        if index not in self.zero:  # a GPU that was not there at the beginning
            self._anchor(index)
        try:
            return free.pop()
        except IndexError:
            made = [self._new(index) for _ in range(_AHEAD)]  # creating one costs microseconds in the middle of a launch
            free.extend(made[1:])
            return made[0]

    def _new(self, index: int) -> Any:
        event = self.driver.call("cuEventCreate", 0)
        self._made.append((index, event))
        return event

    def _anchor(self, index: int) -> None:
        """Relate the clock of a GPU that is first used while the profile runs: by an event that nobody waits for, which the idle GPU passes at once."""
        event = self._new(index)
        self.driver.call("cuEventRecord", event, 0)
        self.zero[index] = event, clock()

    def align(self, index: int) -> None:
        """Read both clocks at once, at the beginning: the GPU is idle then, and a wait for an event takes some microseconds."""
        if self.runtime.captured(index):
            return
        with self.runtime.devices.visiting():
            self.enter(index)
            self.driver.call("cuCtxSynchronize")
            best = 1 << 62
            for _ in range(_TRIES):
                event = self._new(index)
                asked = clock()
                self.driver.call("cuEventRecord", event, 0)
                self.driver.call("cuEventSynchronize", event)
                answered = clock()
                if answered - asked < best:  # the closest pair of readings
                    best = answered - asked
                    self.zero[index] = event, (asked + answered) // 2

    def resolve(self, fired: Iterable[DeviceWork]) -> list[DeviceWork]:
        """Work with times of the host's clock in place of events, and the driver's facts about kernels. Waits for the GPUs."""
        work = list(fired)
        for index in {f.device for f in work}:
            if self.driver.lost or self.runtime.captured(index):
                lost = "the profile ended in a graph's capture, or the context is lost"
                self.recording.notes.append(f"cuda:{index}: no device times: {lost}")
                return [self._describe_launch(f)._replace(begin=None, end=None) for f in work]
            self.enter(index)
            self.driver.call("cuCtxSynchronize")
        anchors = dict(self.zero)
        out = []
        for f in work:
            times = self._host_times(f, anchors)
            out.append(self._describe_launch(f)._replace(begin=times[0], end=times[1]))
        return out

    def _host_times(self, f: DeviceWork, anchors: dict[int, tuple[Any, int]]) -> tuple[int | None, int | None]:
        """(begin, end) of work on the host's clock; None where an event was not recorded, as in a launch that failed."""
        try:
            event, at = anchors[f.device]
            since = self.runtime.event_elapsed(f.device, int(event), int(f.begin))
            took = self.runtime.event_elapsed(f.device, int(f.begin), int(f.end))
        except Exception as error:
            note = f"cuda:{f.device}: some device times are not known: {error}"
            if note not in self.recording.notes:
                self.recording.notes.append(note)
            return None, None
        begin = at + round(since * 1e6)
        if since > _ANCHOR_MS:
            anchors[f.device] = f.begin, begin
        return begin, begin + round(took * 1e6)

    def _describe_launch(self, f: DeviceWork) -> DeviceWork:
        """A launch with the kernel's name, grid, block, shared memory and registers."""
        if f.kind != "kernel":
            return f
        function, config = f.about
        # by the handle: a launch keeps no name
        found = next((k for k in tuple(self.runtime.kernels._loaded.values()) if k.function is function), None)
        about: dict[str, Any] = {
            "grid": (int(config.gridDimX), int(config.gridDimY), int(config.gridDimZ)),
            "block": (int(config.blockDimX), int(config.blockDimY), int(config.blockDimZ)),
            "shared memory": int(config.sharedMemBytes),
        }
        attribute = self.driver.api.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NUM_REGS
        code, registers = self.driver.status("cuFuncGetAttribute", attribute, function)
        if code == "CUDA_SUCCESS":
            about["registers per thread"] = int(registers)
        return f._replace(name=found.name if found is not None else "kernel", about=about)

    def reuse(self, fired: Iterable[DeviceWork]) -> None:
        """Free the events of work that is forgotten, for other work."""
        for f in fired:
            self._free[f.device] += [f.begin, f.end]

    def close(self) -> None:
        """Give the events back."""
        for index, event in self._made:
            self.runtime.event_destroy(index, int(event))
        self._made.clear()
        self._free.clear()
