"""Class FunctionEventAvg: sums of the calls of one name, and their rates."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tritensor.profiler.results.events import DeviceType, FunctionEvent
from tritensor.profiler.results.units import Texts

_SUMMED = (
    "cpu_time_total", "self_cpu_time_total", "device_time_total", "self_device_time_total", "cpu_memory_usage", "self_cpu_memory_usage",
    "device_memory_usage", "self_device_memory_usage", "flops", "nbytes",
)  # fmt: skip


@dataclass(slots=True, eq=False)
class FunctionEventAvg(Texts):
    """The sums of the calls of one name. `counted` is the time of those calls whose flops or bytes are counted, in microseconds: the device's where they
    ran on one, and `roof_time` the least that they could take at the peaks of the device (0 where these are not known)."""

    key: str = ""
    count: int = 0
    cpu_time_total: float = 0.0
    self_cpu_time_total: float = 0.0
    device_time_total: float = 0.0
    self_device_time_total: float = 0.0
    cpu_memory_usage: int = 0
    self_cpu_memory_usage: int = 0
    device_memory_usage: int = 0
    self_device_memory_usage: int = 0
    flops: int = 0
    nbytes: int = 0
    counted: float = 0.0
    roof_time: float = 0.0
    input_shapes: Any = None
    stack: list[str] = field(default_factory=list)
    device_type: DeviceType = DeviceType.CPU
    kind: str = ""
    scope: int = 0
    cpu_parent: FunctionEvent | None = None
    cpu_children: list[FunctionEvent] = field(default_factory=list)
    node_id: int = -1
    overload_name: str = ""
    use_device: str | None = None
    is_async: bool = False
    is_remote: bool = False
    is_legacy: bool = False
    is_user_annotation: bool = False

    def add(self, e: Any) -> FunctionEventAvg:
        """Take a call, or the sums of others, into the sums."""
        if not self.key:
            self.key, self.device_type, self.kind, self.scope = e.key, e.device_type, e.kind, e.scope
            self.is_user_annotation, self.cpu_parent = e.is_user_annotation, e.cpu_parent
        for name in _SUMMED:
            setattr(self, name, getattr(self, name) + getattr(e, name))
        self.count += e.count
        if isinstance(e, FunctionEventAvg):
            self.counted += e.counted
            self.roof_time += e.roof_time
        elif e.flops or e.nbytes:
            self.counted += e.device_time_total or e.cpu_time_total
        return self

    __iadd__ = add

    @property
    def cpu_time(self) -> float:
        """Of one call, on average."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        """Of one call, on average."""
        return self.device_time_total / self.count if self.count else 0.0

    cuda_time = device_time

    @property
    def cuda_time_total(self) -> float:
        """device_time_total under its older name."""
        return self.device_time_total

    @property
    def self_cuda_time_total(self) -> float:
        """self_device_time_total under its older name."""
        return self.self_device_time_total

    @property
    def gbs(self) -> float:
        """GB/s that the counted bytes were moved at; 0 where none are counted."""
        return self.nbytes / self.counted / 1e3 if self.counted else 0.0

    @property
    def tflops(self) -> float:
        """TFLOP/s."""
        return self.flops / self.counted / 1e6 if self.counted else 0.0

    @property
    def roofline(self) -> float:
        """The share of the device's peaks: the least time of the counted work over the time that it took. 0 where it is not known."""
        return self.roof_time / self.counted if self.counted else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Its figures by name."""
        names = ("key", "count", *_SUMMED, "cpu_time", "device_time", "gbs", "tflops", "roofline", "input_shapes")
        return {n: getattr(self, n) for n in names}

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total:.3f}us cpu_time={self.cpu_time:.3f}us "
            f"self_device_time={self.self_device_time_total:.3f}us device_time={self.device_time:.3f}us count={self.count} input_shapes={self.input_shapes}>"
        )
