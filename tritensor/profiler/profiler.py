"""Class profile: the calls of a stretch of a program, on the CPU and on GPUs, under PyTorch's names."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from typing import Any

from tritensor.ground.errors import ArgumentError, AssertedArgumentError
from tritensor.ground.process import locks
from tritensor.profiler import ranges
from tritensor.profiler.metadata import ProfileInfo, as_json
from tritensor.profiler.probes.backward import backward_probe
from tritensor.profiler.probes.device import device_probe
from tritensor.profiler.probes.forward import forward_probe
from tritensor.profiler.probes.programs import programs_probe
from tritensor.profiler.recording import Options, Recording
from tritensor.profiler.results.averages import EventList
from tritensor.profiler.results.chrome_trace import sample_memory, write_json
from tritensor.profiler.results.timeline import make_events
from tritensor.profiler.schedules import ProfilerAction, ProfilerActivity, supported_activities

_beginning = locks.lock()
_running: list[profile] = []  # the one whose recording is on


class ProfileRun:
    """A recording from start to stop, and its events when it is over."""

    def __init__(self, options: Options, roofline: bool) -> None:
        self.recording = Recording(options)
        self.about = ProfileInfo(self.recording, roofline)
        self._events: EventList | None = None

    def start(self) -> None:
        """Put the probes in place and record."""
        o = self.recording.options
        probes: list[Any] = [forward_probe, backward_probe, programs_probe] if o.cpu else []
        self.recording.begin(*probes, *([device_probe] if o.device else []))
        ranges.recordings.append(self.recording)

    def stop(self) -> None:
        """Stop recording, and take the probes away."""
        if self.recording in ranges.recordings:
            ranges.recordings.remove(self.recording)
            self.recording.end()

    def close(self) -> None:
        """Stop, and free the driver's events: nobody asks for the results."""
        self.stop()
        if self.recording.driver is not None:
            self.recording.driver.close()

    @property
    def events(self) -> EventList:
        """The events, made once."""
        if self._events is None:
            try:
                self._events = EventList(make_events(self.recording), about=self.about)
            finally:
                if self.recording.driver is not None:
                    self.recording.driver.close()
            self.recording.records.clear()
            self.recording.fired.clear()
            self.recording.unpacked.clear()
        return self._events


class profile:
    """`with tt.profiler.profile() as prof: train_step()`, then `print(prof.key_averages().table(sort_by="self_cpu_time_total"))`.

    Written down are ops forward and backward (by the name that grad_fn shows), steps of optimizers, batches of a DataLoader, ranges of `record_function`, and,
    on device cuda, launches, copies, waits and the kernels themselves, timed by the driver's events. All threads are; a profile inside another is refused.

    Args:
        activities: of ProfilerActivity.CPU and .CUDA; None: both, where there is a GPU.
        schedule: a function from the step's number (see `step`) to a ProfilerAction; None: record from start to stop.
        on_trace_ready: called with the profile when a recording is over.
        record_shapes: keep the shapes of inputs.
        profile_memory: keep what each call took of memory and did not give back, on the CPU (as the C library counts, in steps of 16 bytes) and on GPUs.
        with_stack: keep the lines of the program that called.
        with_flops: count floating point operations and bytes, by the records of the ops.
        with_modules: write down calls of modules, and in which one an op ran.
        experimental_config, execution_trace_observer, use_cuda, custom_trace_id_callback, post_processing_timeout_s: accepted for PyTorch's sake; use_cuda
            adds ProfilerActivity.CUDA.
        acc_events: keep the events of all cycles of a schedule; otherwise those of the last one.
        roofline: with_flops, and the share of the device's peaks that each op reaches. The CPU is measured for it, in a few tenths of a second, once.

    Raises ArgumentError for an activity that is not here, RuntimeError for one profile inside another.

    >>> x = tt.ones(64, 64, requires_grad=True)
    >>> with tt.profiler.profile(with_flops=True) as prof:
    ...     (x @ x).sum().backward()
    >>> [(e.key, e.count, e.flops) for e in prof.key_averages() if e.key == "matmul"]
    [('matmul', 1, 524288)]
    """

    def __init__(
        self, *, activities: Iterable[Any] | None = None, schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None, record_shapes: bool = False, profile_memory: bool = False, with_stack: bool = False,
        with_flops: bool = False, with_modules: bool = False, experimental_config: Any = None, execution_trace_observer: Any = None,
        acc_events: bool = False, use_cuda: bool | None = None, custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None, roofline: bool = False,
    ) -> None:  # fmt: skip
        self.activities = _check_activities(activities, use_cuda)
        self.schedule, self.on_trace_ready = schedule, on_trace_ready
        self.record_shapes, self.with_flops = bool(record_shapes), bool(with_flops or roofline)
        self.profile_memory, self.with_stack, self.with_modules = bool(profile_memory), bool(with_stack), bool(with_modules)
        self.acc_events, self.roofline = bool(acc_events), bool(roofline)
        self.custom_trace_id_callback = custom_trace_id_callback
        self._options = Options(
            cpu=ProfilerActivity.CPU in self.activities, device=ProfilerActivity.CUDA in self.activities, inputs=self.record_shapes or self.with_flops,
            flops=self.with_flops, memory=self.profile_memory, stack=self.with_stack, modules=self.with_modules,
        )  # fmt: skip
        self.step_num = 0
        self.current_action = self._action(0)
        self.profiler: ProfileRun | None = None  # the recording that runs, or ran last
        self._before: ProfileRun | None = None  # while one runs, the one before it
        self.metadata: dict[str, Any] = {}
        self._earlier: list[EventList] = []
        self._range: Any = None
        self._on = False
        self._writing = True  # what toggle_collection_dynamic has left on

    def _action(self, step: int) -> ProfilerAction:
        return ProfilerAction.RECORD if self.schedule is None else self.schedule(step)

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    # running
    def start(self) -> None:
        """Begin, as the schedule says of step 0."""
        if self._on:
            raise RuntimeError("profile.start: it runs already; stop() it first")
        self._on, self.step_num = True, 0
        self.current_action = self._action(0)
        try:
            self._change_action(ProfilerAction.NONE, self.current_action)
        except BaseException:
            self._on = False
            raise
        self._name_step()

    def stop(self) -> None:
        """End; on_trace_ready is called where a recording ends with it."""
        if not self._on:
            return
        self._close_step()
        self._on = False
        before, self.current_action = self.current_action, ProfilerAction.NONE
        self._change_action(before, ProfilerAction.NONE)

    def step(self) -> None:
        """Begin the next step: to be called at the end of each step of the program where there is a schedule."""
        if not self._on:
            raise RuntimeError("profile.step: the profile does not run; call it between start() and stop(), or inside `with profile(...)`")
        self._close_step()
        before = self.current_action
        self.step_num += 1
        self.current_action = self._action(self.step_num)
        self._change_action(before, self.current_action)
        self._name_step()

    def _name_step(self) -> None:
        if self.schedule is not None:
            self._range = ranges.record_function(f"ProfilerStep#{self.step_num}")
            self._range.__enter__()

    def _close_step(self) -> None:
        if self._range is not None:
            self._range.__exit__(None, None, None)
            self._range = None

    def _change_action(self, before: ProfilerAction, now: ProfilerAction) -> None:
        """Go from one action to the next: end, begin, or clear a warm-up."""
        none, warmup, save = ProfilerAction.NONE, ProfilerAction.WARMUP, ProfilerAction.RECORD_AND_SAVE
        # a recording ends where the schedule stops, saves, or begins another cycle
        if before is not none and (now is none or before is save or (before is ProfilerAction.RECORD and now is warmup)):
            self._end(before is not warmup)
            before = none
        if before is none and now is not none:
            self._begin()
        elif before is warmup and now is not warmup and self.profiler is not None:
            self.profiler.recording.clear()  # the warm-up was recorded like the rest, so that caches and allocations are as they will be

    def _begin(self) -> None:
        made = ProfileRun(self._options, self.roofline)
        made.about.metadata = self.metadata
        with _beginning:
            if _running:
                raise RuntimeError("profile: another profile is running; stop it first, or name stretches inside it with record_function")
            _running.append(self)
        try:
            made.start()
        except BaseException:
            self._release()
            raise
        made.recording.on = self._writing  # toggle_collection_dynamic may have switched it off before
        self._before, self.profiler = self.profiler, made

    def _release(self) -> None:
        with _beginning:
            if self in _running:
                _running.remove(self)

    def _end(self, wanted: bool) -> None:
        self._release()
        if self.profiler is None:
            return
        if not wanted:  # it ends in a warm-up, of which nothing is kept
            self.profiler.close()
            self.profiler = self._before
            return
        self.profiler.stop()
        if self.acc_events and self._before is not None:  # made now: the driver's events are freed with the recording
            self._earlier.append(self._before.events)
        self._before = None
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[Any] = ()) -> None:
        """Stop recording, or go on, in the middle of one. `activities` is accepted: all go together."""
        self._writing = bool(enable)
        if self.profiler is not None and self in _running:
            self.profiler.recording.on = self._writing

    # results
    def _require_events(self, who: str) -> EventList:
        if self in _running:
            raise RuntimeError(f"profile.{who}: the recording still runs; ask after stop(), after the `with` block, or in on_trace_ready")
        if self.profiler is None:
            raise RuntimeError(
                f"profile.{who}: nothing was recorded; run the program between start() and stop(), in a step that the schedule records"
            )
        found = self.profiler.events
        return found if not self._earlier else EventList([e for part in (*self._earlier, found) for e in part], about=found.about)

    def events(self) -> EventList:
        """All events, as FunctionEvent: those of the host in the order in which they began, then those of devices."""
        return self._require_events("events")

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """Sums of the events by name, where asked by shapes and by frames of the stack as well (see EventList.table)."""
        return self._require_events("key_averages").key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def total_average(self) -> Any:
        """The sums of all events."""
        return self._require_events("total_average").total_average()

    def export_chrome_trace(self, path: str, use_python_export: bool = False) -> None:
        """Write a trace that chrome://tracing and ui.perfetto.dev show; a path that ends in .gz is compressed. `use_python_export` is accepted: Python
        writes it in any case."""
        self._require_events("export_chrome_trace").export_chrome_trace(str(path))

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write stacks as flame graphs are drawn from: see EventList.export_stacks. Raises ArgumentError without with_stack=True."""
        if not self.with_stack:
            raise ArgumentError("export_stacks: the profile kept no stacks; make it with with_stack=True")
        self._require_events("export_stacks").export_stacks(str(path), metric)

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        """Write bytes held over time as JSON, [[microseconds], [bytes]]; a path that ends in .gz is compressed. `device`: "cpu" or "cuda:0"; None: cuda
        where memory of one was taken, else cpu. Raises ArgumentError without profile_memory=True, and for a path of another ending."""
        if not self.profile_memory:
            raise ArgumentError("export_memory_timeline: the profile kept no memory; make it with profile_memory=True")
        if not str(path).endswith((".json", ".json.gz")):
            raise ArgumentError(f"export_memory_timeline: {path!r}: write .json or .json.gz; export_chrome_trace draws the same as a curve")
        samples = sorted(sample_memory(list(self._require_events("export_memory_timeline"))))
        which = int(any(held[1] for _, held in samples)) if device is None else int(not str(device).startswith("cpu"))
        write_json(path, [[at for at, _ in samples], [held[which] for _, held in samples]])

    def add_metadata(self, key: str, value: str) -> None:
        """Add a text to the trace."""
        self.metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Add a value to the trace, given as JSON. Raises ValueError for what is none."""
        self.metadata[key] = as_json(key, value)

    preset_metadata_json = add_metadata_json

    def get_trace_id(self) -> str:
        """The trace's name: that of custom_trace_id_callback, or a random one."""
        if "trace_id" not in self.metadata:
            own = self.custom_trace_id_callback
            self.metadata["trace_id"] = uuid.uuid4().hex.upper() if own is None else own()
        return str(self.metadata["trace_id"])

    def _repr_html_(self) -> str:
        return self.key_averages()._repr_html_()


def _check_activities(given: Iterable[Any] | None, use_cuda: bool | None) -> set[ProfilerActivity]:
    """The activities to be profiled. Raises ArgumentError for others than CPU and CUDA."""
    supported = supported_activities()
    wanted = supported if given is None else set()
    for a in () if given is None else given:
        for one in a if isinstance(a, dict) else (a,):
            if not isinstance(one, ProfilerActivity):
                raise ArgumentError(f"profile: activities holds {one!r}; give ProfilerActivity.CPU, ProfilerActivity.CUDA or both")
            wanted.add(one)
    if use_cuda:
        wanted = wanted | {ProfilerActivity.CUDA}
    if not wanted:
        raise AssertedArgumentError("profile: activities is empty; give ProfilerActivity.CPU, ProfilerActivity.CUDA or both")
    foreign = wanted - {ProfilerActivity.CPU, ProfilerActivity.CUDA}
    if foreign:
        raise ArgumentError(f"profile: {sorted(a.name for a in foreign)[0]}: devices here are the CPU and cuda")
    return wanted


def is_recording() -> bool:
    """Whether a profile is running in this process."""
    return bool(_running)
