"""Class FunctionEvent: a call of the program, or a piece of a GPU's work; names and units (microseconds) are PyTorch's."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tritensor.profiler.results.units import Texts


class DeviceType(enum.Enum):
    """The kind of device of an event."""

    CPU = 0
    CUDA = 1


class Interval(NamedTuple):
    """(start, end) in microseconds since the profile began."""

    start: float
    end: float

    def elapsed_us(self) -> float:
        """Its length in microseconds."""
        return self.end - self.start


class Kernel(NamedTuple):
    """Work that a call gave to a device: its name, the device's number, microseconds."""

    name: str
    device: int
    duration: float


@dataclass(slots=True, eq=False)
class FunctionEvent(Texts):
    """One call on a thread of the host, or one piece of work of a device.

    Times are in microseconds, memory in bytes. `sequence_nr` is the number of the graph's node that a forward call left and a backward one ran, -1 where there
    is none. `flops` and `nbytes` are what the op's record counts for one call, 0 where it counts none; `nbytes` is at least what has to be moved.
    """

    name: str
    kind: str  # "op", "backward", "user_annotation", "module", "optimizer", "loader", "runtime", "kernel", "memcpy", "memset", "graph"
    time_range: Interval
    thread: int
    device_type: DeviceType = DeviceType.CPU
    device_index: int = 0
    stream: int = 0
    sequence_nr: int = -1
    input_shapes: list[Any] = field(default_factory=list)
    concrete_inputs: list[Any] = field(default_factory=list)
    kwinputs: dict[str, Any] = field(default_factory=dict)
    dtype: str = ""  # of the first input that is a tensor
    flops: int = 0
    nbytes: int = 0
    product_flops: int = 0  # of flops, those of matrix products, convolutions and attention
    stack: list[str] = field(default_factory=list)
    cpu_parent: FunctionEvent | None = None
    cpu_children: list[FunctionEvent] = field(default_factory=list)
    kernels: list[Kernel] = field(default_factory=list)
    device_events: list[FunctionEvent] = field(default_factory=list)  # queued by this very call
    launched_by: FunctionEvent | None = None  # of a device's work: the call that queued it
    forward: FunctionEvent | None = None  # of a backward call: the one that left its node
    module: str = ""  # of a module's call: its path; of any other, that of the module it ran in
    metadata: dict[str, Any] = field(default_factory=dict)
    memory_before: tuple[int, int] | None = None
    memory_after: tuple[int, int] | None = None
    id: int = 0
    count: int = 1
    is_async: bool = False
    is_remote: bool = False
    is_legacy: bool = False
    node_id: int = -1
    overload_name: str = ""
    use_device: str | None = None

    @property
    def key(self) -> str:
        """The name that sums go by: all steps of a schedule are one."""
        return "ProfilerStep*" if self.name.startswith("ProfilerStep#") else self.name

    @property
    def trace_name(self) -> str:
        """The name in the trace."""
        return self.name

    @property
    def is_user_annotation(self) -> bool:
        """Whether `record_function` made it."""
        return self.kind == "user_annotation"

    @property
    def scope(self) -> int:
        """PyTorch's number of the kind: 0 a function, 1 backward, 7 a user's range."""
        return {"backward": 1, "user_annotation": 7, "loader": 7, "optimizer": 7}.get(self.kind, 0)

    @property
    def fwd_thread(self) -> int | None:
        """Of a backward call the thread of the forward call that left its node; None where there is none."""
        return None if self.forward is None else self.forward.thread

    @property
    def cpu_time_total(self) -> float:
        """Microseconds on the host, 0 for work of a device."""
        return self.time_range.elapsed_us() if self.device_type is DeviceType.CPU else 0.0

    cpu_time = cpu_time_total

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds on the host, without those of calls inside."""
        return self.cpu_time_total - sum([c.cpu_time_total for c in self.cpu_children])

    @property
    def self_device_time_total(self) -> float:
        """Microseconds on devices of what this very call queued."""
        if self.device_type is not DeviceType.CPU:
            return self.time_range.elapsed_us()
        return sum([e.time_range.elapsed_us() for e in self.device_events])

    @property
    def device_time_total(self) -> float:
        """Microseconds on devices of what this call, and those inside it, queued."""
        return self.self_device_time_total + sum([c.device_time_total for c in self.cpu_children])

    device_time = device_time_total
    cuda_time = cuda_time_total = device_time_total
    self_cuda_time_total = self_device_time_total

    def _kept(self, which: int) -> int:
        if self.memory_before is None or self.memory_after is None:
            return 0
        return self.memory_after[which] - self.memory_before[which]

    @property
    def cpu_memory_usage(self) -> int:
        """Bytes of the C library that the call took and did not give back."""
        return self._kept(0)

    @property
    def device_memory_usage(self) -> int:
        """The same of all GPUs."""
        return self._kept(1)

    @property
    def self_cpu_memory_usage(self) -> int:
        """cpu_memory_usage without that of calls inside."""
        return self.cpu_memory_usage - sum([c.cpu_memory_usage for c in self.cpu_children])

    @property
    def self_device_memory_usage(self) -> int:
        """device_memory_usage without that of calls inside."""
        return self.device_memory_usage - sum([c.device_memory_usage for c in self.cpu_children])

    cuda_memory_usage = device_memory_usage
    self_cuda_memory_usage = self_device_memory_usage

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} device_type={self.device_type.name} thread={self.thread} sequence_nr={self.sequence_nr} "
            f"cpu_time={self.cpu_time_total:.3f}us device_time={self.device_time_total:.3f}us input_shapes={self.input_shapes}>"
        )
