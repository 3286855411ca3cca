"""Trace of a profile in Chrome's JSON format, which chrome://tracing and ui.perfetto.dev show: calls by thread, work by stream, arrows between them.

Format: "Trace Event Format" (Google): `X` a complete event with `ts` and `dur` in microseconds, `s` and `f` the ends of an arrow, `C` a counter, `M` a name.
"""

from __future__ import annotations

import gzip
import json
import os
import socket
import sys
from typing import Any

from tritensor.profiler.results.events import DeviceType, FunctionEvent

_CATEGORIES = {
    "op": "cpu_op", "backward": "cpu_op", "user_annotation": "user_annotation", "module": "python_function", "optimizer": "user_annotation",
    "loader": "user_annotation", "runtime": "cuda_runtime", "kernel": "kernel", "memcpy": "gpu_memcpy", "memset": "gpu_memset", "graph": "kernel",
}  # fmt: skip


def write_trace(path: str, events: list[FunctionEvent], about: Any) -> None:
    """Write the trace to a file, compressed where its name ends in .gz."""
    write_json(path, make_trace(events, about))


def write_json(path: str, content: Any) -> None:
    """Write a value as JSON, compressed where the file's name ends in .gz."""
    text = json.dumps(content, default=str)
    with gzip.open(path, "wt", encoding="utf-8") if str(path).endswith(".gz") else open(path, "w", encoding="utf-8") as f:
        f.write(text)


def make_trace(events: list[FunctionEvent], about: Any) -> dict[str, Any]:
    """The trace as a dictionary."""
    pid = os.getpid()
    made = [*_name_rows(events, about, pid), *(_complete_event(e, pid) for e in events)]
    made += _make_arrows(events, pid) + _make_counters(events, pid)
    content: dict[str, Any] = {"schemaVersion": 1, "displayTimeUnit": "ms", "host_name": socket.gethostname(), "traceEvents": made}
    if about is not None:
        content |= about.trace_header()
    return content


def _row_ids(e: FunctionEvent, pid: int) -> dict[str, Any]:
    """The row of an event: a thread of the process, or a stream of a device."""
    return {"pid": pid, "tid": e.thread} if e.device_type is DeviceType.CPU else {"pid": e.device_index, "tid": e.stream}


def _complete_event(e: FunctionEvent, pid: int) -> dict[str, Any]:
    args: dict[str, Any] = {"External id": e.id}
    if e.sequence_nr > 0:
        args["Sequence number"] = e.sequence_nr
    if e.forward is not None:
        args["Forward"] = e.forward.name
    if e.input_shapes:
        args["Input Dims"] = e.input_shapes
    if e.flops or e.nbytes:
        args |= {"FLOPs": e.flops, "Bytes": e.nbytes}
    if e.module and e.kind != "module":
        args["Module"] = e.module
    if e.stack:
        args["Call stack"] = ";".join(e.stack)
    if e.device_type is not DeviceType.CPU:
        args |= {"device": e.device_index, "stream": e.stream, **e.metadata}
        if e.launched_by is not None:
            args["External id"] = e.launched_by.id
    times = {"ts": e.time_range.start, "dur": e.time_range.elapsed_us()}
    return {"ph": "X", "cat": _CATEGORIES[e.kind], "name": e.name, **_row_ids(e, pid), **times, "args": args}


def _name_rows(events: list[FunctionEvent], about: Any, pid: int) -> list[dict[str, Any]]:
    """The names of the rows, and their order."""
    out: list[dict[str, Any]] = []

    def name(what: str, pid: int, tid: int, **args: Any) -> None:
        out.append({"ph": "M", "name": what, "pid": pid, "tid": tid, "ts": 0, "args": args})

    name("process_name", pid, 0, name=os.path.basename(sys.argv[0] or "python"))
    name("process_labels", pid, 0, labels="CPU")
    name("process_sort_index", pid, 0, sort_index=pid)
    threads = {} if about is None else about.threads
    for i, thread in enumerate(sorted({e.thread for e in events if e.device_type is DeviceType.CPU})):
        name("thread_name", pid, thread, name=f"thread {thread} ({threads.get(thread, 'ended')})")
        name("thread_sort_index", pid, thread, sort_index=i)
    for device in sorted({e.device_index for e in events if e.device_type is not DeviceType.CPU}):
        shown = f"cuda:{device}" if about is None or not about.emulated else f"cuda:{device}, emulated (times of Triton's interpreter)"
        name("process_name", device, 0, name=shown)
        name("process_labels", device, 0, labels=f"GPU {device}")
        name("process_sort_index", device, 0, sort_index=pid + 1 + device)
        for stream in sorted({e.stream for e in events if e.device_type is not DeviceType.CPU and e.device_index == device}):
            name("thread_name", device, stream, name=f"stream {stream:#x}" if stream else "default stream")
            name("thread_sort_index", device, stream, sort_index=stream)
    return out


def _make_arrows(events: list[FunctionEvent], pid: int) -> list[dict[str, Any]]:
    """Arrows from forward calls to their backward, and from launches to their kernels."""
    out: list[dict[str, Any]] = []

    def arrow(kind: str, number: int, start: FunctionEvent, end: FunctionEvent) -> None:
        about = {"id": number, "cat": kind, "name": kind}
        out.append({"ph": "s", **about, **_row_ids(start, pid), "ts": start.time_range.start})
        out.append({"ph": "f", "bp": "e", **about, **_row_ids(end, pid), "ts": end.time_range.start})

    for e in events:
        if e.forward is not None:
            arrow("fwdbwd", e.id, e.forward, e)
        if e.launched_by is not None:
            arrow("ac2g", e.id, e.launched_by, e)
    return out


def _make_counters(events: list[FunctionEvent], pid: int) -> list[dict[str, Any]]:
    """Memory over time, where it was recorded: before and after every call."""
    samples = sorted(sample_memory(events))
    return [
        {"ph": "C", "name": f"memory {device}", "pid": pid, "tid": 0, "ts": at, "args": {"bytes": held[i]}}
        for at, held in samples
        for i, device in enumerate(("CPU", "CUDA"))
        if i == 0 or any(h[1] for _, h in samples)  # no empty curve of GPUs
    ]


def sample_memory(events: list[FunctionEvent]) -> list[tuple[float, tuple[int, int]]]:
    """(microseconds, (bytes of the C library, bytes on GPUs)) at the beginning and the end of every call whose memory was recorded."""
    out = []
    for e in events:
        if e.memory_before is not None and e.memory_after is not None:
            out += [(e.time_range.start, e.memory_before), (e.time_range.end, e.memory_after)]
    return out
