"""PyTorch's names for a history of a GPU's memory: torch.cuda.memory._record_memory_history, _snapshot, _dump_snapshot."""

from __future__ import annotations

import pickle
from typing import Any

from tritensor.cuda.memory import report
from tritensor.cuda.runtime import active
from tritensor.debug.allocations import MemoryTrace
from tritensor.ground.call_site import line_of
from tritensor.ground.errors import ArgumentError

_traces: list[MemoryTrace] = []


def _record_memory_history(enabled: Any = "all", *args: Any, **kwargs: Any) -> None:
    """From now on keep what ops and gradients allocate and free, for _snapshot. None: no more. "state": what is there is known without a history.

    What other settings PyTorch has are accepted: of a stack the user's innermost line is kept. Raises ArgumentError for another word.
    """
    if enabled not in (None, False, True, "all", "state"):
        raise ArgumentError(f"_record_memory_history: enabled={enabled!r}; give 'all', 'state' or None")
    # A second call replaces the recording, as in PyTorch.
    while _traces:
        _traces.pop().__exit__()
    if enabled in ("all", True):
        _traces.append(MemoryTrace().__enter__())


def _snapshot(device: Any = None) -> dict[str, Any]:
    """{"segments": live allocations of GPUs whose line is known, "device_traces": for each GPU what was allocated and freed}, as PyTorch's. Sizes in bytes."""
    if not active.started():
        return {"segments": [], "device_traces": []}
    runtime = active.runtime()
    changes = _traces[-1].changes if _traces else []
    histories: list[list[dict[str, Any]]] = [[] for _ in range(runtime.device_count())]
    for c in changes:
        # PyTorch's viewer knows GPUs only.
        if c.device != "cpu":
            module, op, code, instruction = c.key
            name, line = line_of(code, instruction)
            frames = [{"filename": name, "line": line, "name": code.co_qualname}, {"filename": module, "line": 0, "name": op}]
            action = "alloc" if c.nbytes > 0 else "free_completed"
            index = int(c.device.partition(":")[2] or 0)
            histories[index].append(
                {"action": action, "addr": c.address, "size": abs(c.nbytes), "stream": 0, "time_us": c.time // 1000, "frames": frames}
            )
    segments = [_segment(block) for accounts in runtime.allocators() for block in report.snapshot(accounts)]
    return {"segments": segments, "device_traces": histories}


def _segment(block: dict[str, Any]) -> dict[str, Any]:
    """An allocation as a segment of one block."""
    nbytes = block["size"]
    inside = {"address": block["address"], "size": nbytes, "requested_size": nbytes, "state": block["state"], "frames": block["frames"]}
    return {
        "device": block["device"], "address": block["address"], "total_size": nbytes, "allocated_size": nbytes, "active_size": nbytes, "stream": 0,
        "segment_type": "large" if nbytes >= 1 << 20 else "small", "blocks": [inside],
    }  # fmt: skip


def _dump_snapshot(filename: str = "dump_snapshot.pickle") -> None:
    """Write _snapshot() as PyTorch does, by pickle: plain dictionaries and lists, which its viewer reads."""
    with open(filename, "wb") as f:
        pickle.dump(_snapshot(), f)
