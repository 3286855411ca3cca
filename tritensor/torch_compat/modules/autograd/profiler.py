"""torch.autograd.profiler: the older names of tritensor.profiler, and ranges of all ops for NVIDIA's tools."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tritensor.autograd import walk as walk_module
from tritensor.ground import nvtx
from tritensor.ground.call_site import wrapper
from tritensor.profiler import ProfilerActivity
from tritensor.profiler import profile as _profile
from tritensor.profiler.probes.forward import forward_probe
from tritensor.profiler.recording import Options, Patches, Recording
from tritensor.profiler.results.averages import EventList, FunctionEventAvg

__all__ = ["emit_nvtx", "profile"]


class profile:
    """`with autograd.profiler.profile() as prof:`, PyTorch's older profiler: the one of tritensor.profiler, without steps.

    Args:
        enabled: False: do nothing.
        use_cuda, use_device: look at device cuda as well ("cuda").
        record_shapes, with_flops, profile_memory, with_stack, with_modules, acc_events: see tritensor.profiler.profile.
        use_cpu: look at the CPU.
        use_kineto, experimental_config, custom_trace_id_callback, post_processing_timeout_s, activity_filters: accepted.
    """

    def __init__(
        self, enabled: bool = True, *, use_cuda: bool = False, use_device: str | None = None, record_shapes: bool = False, with_flops: bool = False,
        profile_memory: bool = False, with_stack: bool = False, with_modules: bool = False, use_kineto: bool = False, use_cpu: bool = True,
        experimental_config: Any = None, acc_events: bool = False, custom_trace_id_callback: Any = None, post_processing_timeout_s: float | None = None,
        activity_filters: Any = None,
    ) -> None:  # fmt: skip
        self.enabled = bool(enabled)
        device = use_cuda or str(use_device or "").startswith("cuda")  # two ages of PyTorch's arguments
        wanted = [ProfilerActivity.CPU] * bool(use_cpu) + [ProfilerActivity.CUDA] * bool(device)
        self._inside = _profile(
            activities=wanted, record_shapes=record_shapes, with_flops=with_flops, profile_memory=profile_memory, with_stack=with_stack,
            with_modules=with_modules, acc_events=acc_events,
        )  # fmt: skip

    def __enter__(self) -> profile:
        if self.enabled:
            self._inside.start()
        return self

    def __exit__(self, *exc: object) -> None:
        if self.enabled:
            self._inside.stop()

    @property
    def function_events(self) -> EventList:
        """All events."""
        return self._inside.events()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of the host in all events."""
        return self.function_events.self_cpu_time_total

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """Sums of the events by name."""
        return self._inside.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def table(self, *args: Any, **kwargs: Any) -> str:
        """All events as text: see EventList.table."""
        return self.function_events.table(*args, **kwargs)

    def total_average(self) -> FunctionEventAvg:
        """The sums of all events."""
        return self.function_events.total_average()

    def export_chrome_trace(self, path: str) -> None:
        """Write a trace that chrome://tracing and ui.perfetto.dev show."""
        self._inside.export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write stacks as flame graphs are drawn from."""
        self._inside.export_stacks(path, metric)

    def __str__(self) -> str:
        return self.table() if self.enabled else "<unfinished torch.autograd.profile>"


class emit_nvtx:
    """`with autograd.profiler.emit_nvtx():` gives NVIDIA's tools a range for every op, forward and backward; see cuda.nvtx.

    record_shapes: with the shapes of inputs in the name.
    """

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = bool(enabled)
        self._recording = Recording(Options(inputs=bool(record_shapes)), around=_ranged)

    def __enter__(self) -> emit_nvtx:
        if self.enabled:
            self._recording.begin(forward_probe, _backward_ranges)
        return self

    def __exit__(self, *exc: object) -> None:
        if self.enabled:
            self._recording.end()


def _ranged(recording: Recording, op: Any, call: Callable[..., Any]) -> Callable[..., Any]:
    """An op's call with a range around it."""

    @wrapper
    @functools.wraps(call)
    def ranged(*args: Any, **attrs: Any) -> Any:
        if not recording.on:  # an op that is called after the `with` through a reference kept inside it
            return call(*args, **attrs)
        sizes = f", sizes = {[list(a._array.shape) if hasattr(a, '_array') else [] for a in args]}" if recording.options.inputs else ""
        nvtx.range_push(op.name + sizes)
        try:
            return call(*args, **attrs)
        finally:
            nvtx.range_pop()

    return ranged


def _backward_ranges(recording: Recording, patches: Patches) -> None:
    """A range around each node of the plain walk."""
    walk = walk_module.walk_arrays

    def walked(order: list[Any], *rest: Any) -> None:
        for n in order:
            nvtx.range_push(f"{n.name()}, seq = {n.sequence}")
            try:
                walk([n], *rest)  # one node at a time, so that its range ends where it does
            finally:
                nvtx.range_pop()

    patches.put(walk_module, "walk_arrays", walked)
