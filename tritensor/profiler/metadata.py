"""Facts of a profile beside its events, for tables and traces: peaks of the devices, remarks, metadata."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from tritensor.profiler.recording import Recording, host_memory_known
from tritensor.profiler.results.events import DeviceType, FunctionEvent
from tritensor.profiler.results.roofline import Roof, find_gpu_roof, measure_cpu_roof

EMULATED = "device cuda is emulated: its times are those of Triton's interpreter on the CPU, and say nothing of a GPU"


@dataclass(slots=True, eq=False)
class ProfileInfo:
    """The facts of one recording. `peaks`: whether calls are compared with the peaks of the device."""

    recording: Recording
    peaks: bool = False
    metadata: dict[str, Any] = field(default_factory=dict)
    _roofs: dict[Any, Roof | None] = field(default_factory=dict)

    @property
    def emulated(self) -> bool:
        return self.recording.emulated

    @property
    def memory(self) -> bool:
        return self.recording.options.memory and host_memory_known()

    @property
    def threads(self) -> dict[int, str]:
        return self.recording.threads

    def roof(self, e: FunctionEvent) -> Roof | None:
        """The peaks of the device of a call's work; None where they were not asked for, or are not known."""
        if not self.peaks:
            return None
        device = ("cuda", e.kernels[0].device if e.kernels else 0) if e.device_time_total else ("cpu", 0)
        if device not in self._roofs:
            self._roofs[device] = measure_cpu_roof() if device[0] == "cpu" else find_gpu_roof(device[1])
        return self._roofs[device]

    def remarks(self, events: list[Any]) -> list[str]:
        """The lines below a table, which a reader of its figures must know."""
        out = []
        if self.emulated and any(e.device_type is not DeviceType.CPU for e in events):
            out.append(EMULATED)
        for roof in self._roofs.values():
            if roof is not None:
                rates = ", ".join(f"{rate / 1e12:.3g} TFLOP/s {name}" for name, rate in sorted(roof.flops.items()))
                out.append(
                    f"Roofline of {roof.name}: {roof.bandwidth / 1e9:.3g} GB/s, {rates} ({roof.source}); above 100%: its data lies in a cache"
                )
        if self.recording.options.memory and not host_memory_known():
            out.append("CPU memory is not known: this C library does not tell what malloc has handed out")
        return out + self.recording.notes

    def trace_header(self) -> dict[str, Any]:
        """The entries of a trace beside its events."""
        o = self.recording.options
        return {
            "baseTimeNanoseconds": self.recording.epoch, "record_shapes": int(o.inputs), "profile_memory": int(o.memory), "with_stack": int(o.stack),
            "with_modules": int(o.modules), "emulated": self.emulated, **self.metadata,
        }  # fmt: skip


def as_json(key: str, value: str) -> Any:
    """A value of add_metadata_json. Raises ValueError for text that is no JSON."""
    try:
        return json.loads(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"add_metadata_json: the value of {key!r} is no valid JSON: {error}; add_metadata takes plain text") from None
