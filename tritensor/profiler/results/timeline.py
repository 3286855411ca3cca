"""Time line of a recording: events of its records, nested by time on each thread, backward joined to forward, a device's work to the calls that queued it."""

from __future__ import annotations

import gc
from typing import Any

from tritensor.ground.call_site import file_and_line
from tritensor.profiler import records
from tritensor.profiler.recording import Recording
from tritensor.profiler.records import ArrayInfo, Detail, DeviceWork, Record
from tritensor.profiler.results.events import DeviceType, FunctionEvent, Interval, Kernel
from tritensor.profiler.results.roofline import count_backward_work, count_product_backward, count_work, product_flops

_KINDS = {
    records.OP: "op", records.NAMED: "op", records.FUNCTION: "op", records.BACKWARD: "backward", records.ACCUMULATE: "backward",
    records.RANGE: "user_annotation",
    records.MODULE: "module", records.OPTIMIZER: "optimizer", records.LOADER: "loader", records.RUNTIME: "runtime",
}  # fmt: skip


def make_events(recording: Recording) -> list[FunctionEvent]:
    """All events of a recording that has ended, those of the host in the order in which they began, then those of devices."""
    collecting = gc.isenabled()
    gc.disable()  # it would walk over the events again and again, of which none can go
    try:
        return _make_all(recording)
    finally:
        if collecting:
            gc.enable()


def _make_all(recording: Recording) -> list[FunctionEvent]:
    fired = recording.fired if recording.driver is None else recording.driver.resolve(recording.fired)
    made = [(_make_event(r, recording), r) for r in recording.records]
    threads: dict[int, list[tuple[FunctionEvent, Record, int]]] = {}
    for position, (event, record) in enumerate(made):
        threads.setdefault(event.thread, []).append((event, record, position))
    host = [e for found in threads.values() for e in _nest_events(found)]
    host.sort(key=lambda e: e.time_range.start)
    _join_backward(host)
    if recording.options.flops:
        _count_backward(host, recording)
    _set_module_paths(host, {id(e): r[1] for e, r in made if r[0] == records.MODULE})
    device = _make_device_events(host, fired, recording)
    for i, e in enumerate((*host, *device)):
        e.id = i
    return [*host, *device]


def _make_event(record: Record, recording: Recording) -> FunctionEvent:
    """The event of a record, without its parent and children."""
    kind, what, start, end, thread, sequence, detail = record
    made = FunctionEvent(_name(kind, what), _KINDS[kind], _interval(start, end, recording), thread, sequence_nr=sequence or -1)
    if detail is not None:
        _add_detail(made, kind, detail, recording.options.flops)
    return made


def _interval(start: int, end: int, recording: Recording) -> Interval:
    return Interval((start - recording.started) / 1e3, (end - recording.started) / 1e3)


def _name(kind: int, what: Any) -> str:
    return f"nn.Module: {type(what).__name__}" if kind == records.MODULE else str(what)


def _add_detail(made: FunctionEvent, kind: int, detail: Detail, counted: bool) -> None:
    made.memory_before, made.memory_after = detail.before, detail.after
    if detail.stack is not None:
        made.stack = [f"{file_and_line(code.co_filename, line)}: {code.co_name}" for code, line in detail.stack]
    if detail.given is not None:
        made.input_shapes = [list_shape(x) for x in detail.given]
        made.concrete_inputs = ["" if isinstance(x, ArrayInfo | tuple) or x is None else x for x in detail.given]
        made.kwinputs = dict(detail.attrs or {})
        made.dtype = next((x.dtype.name for x in _find_arrays(detail.given)), "")
        if kind == records.OP and counted:
            made.flops, made.nbytes = count_work(detail.op, detail.given, made.kwinputs)
            made.product_flops = product_flops(detail.op, detail.given, made.kwinputs, made.flops)


def _find_arrays(given: tuple[Any, ...]) -> list[ArrayInfo]:
    return [y for x in given for y in (x if isinstance(x, tuple) else (x,)) if isinstance(y, ArrayInfo)]


def list_shape(x: Any) -> Any:
    """An input's shape as PyTorch's profiler lists it: [] for other values."""
    if isinstance(x, ArrayInfo):
        return list(x.shape)
    return [list_shape(y) for y in x] if isinstance(x, tuple) else []


def _nest_events(found: list[tuple[FunctionEvent, Record, int]]) -> list[FunctionEvent]:
    """The events of one thread with their parents and children. One that repeats its parent is dropped."""
    # A call before those inside it: it began first, or ended last, or was recorded last where the clock shows no difference.
    found.sort(key=lambda f: (f[1][2], -f[1][3], -f[2]))
    open_: list[tuple[FunctionEvent, Record]] = []
    kept = []
    for event, record, _ in found:
        while open_ and open_[-1][1][3] < record[3]:
            open_.pop()
        if open_:
            parent, above = open_[-1]
            # the same call seen twice: an operator and its op
            if above[0] == record[0] == records.OP and above[1] == record[1]:
                if event.input_shapes and not parent.input_shapes:  # the operator keeps nothing of its inputs, its op does
                    parent.input_shapes, parent.concrete_inputs, parent.kwinputs = event.input_shapes, event.concrete_inputs, event.kwinputs
                if event.sequence_nr > 0 and parent.sequence_nr < 0:
                    parent.sequence_nr = event.sequence_nr
                continue
            event.cpu_parent = parent
            parent.cpu_children.append(event)
        open_.append((event, record))
        kept.append(event)
    return kept


def _join_backward(host: list[FunctionEvent]) -> None:
    """Join backward calls to the forward ones, by the number of the node, and count their work."""
    forward = {e.sequence_nr: e for e in host if e.kind == "op" and e.sequence_nr > 0}
    for e in host:
        found = forward.get(e.sequence_nr) if e.kind == "backward" else None
        if found is not None:
            e.forward = found
            e.input_shapes, e.dtype = found.input_shapes, found.dtype


def _count_backward(host: list[FunctionEvent], recording: Recording) -> None:
    """Flops and bytes of backward calls: those of their forward, for each gradient."""
    nodes = {r[5]: r[6] for r in recording.records if r[0] == records.BACKWARD}
    given = {r[5]: r[6].given for r in recording.records if r[0] == records.OP and r[6] is not None and r[6].given is not None}
    for e in host:
        if e.kind == "backward" and e.forward is not None and (node := nodes.get(e.sequence_nr)) is not None:
            name, inputs = node.op.name, given.get(e.sequence_nr, ())
            e.flops, e.nbytes = count_backward_work(name, e.forward.flops, e.forward.nbytes, inputs, node.needs)
            e.product_flops = count_product_backward(name, e.forward.product_flops, inputs, node.needs)
            for call in _calls_of_rule(e, recording):  # they are counted themselves
                e.flops, e.nbytes = max(0, e.flops - call.flops), max(0, e.nbytes - call.nbytes)
                e.product_flops = max(0, e.product_flops - call.product_flops)


def _calls_of_rule(e: FunctionEvent, recording: Recording) -> list[FunctionEvent]:
    """The products that a backward call made by the ops' public names, as all do under create_graph; not those of a hook that unpacks saved tensors."""
    products = [c for c in e.cpu_children if c.product_flops]
    if not products or not recording.unpacked:
        return products
    times = [_interval(start, end, recording) for thread, start, end in recording.unpacked if thread == e.thread]
    return [c for c in products if not any(t.start <= c.time_range.start and c.time_range.end <= t.end for t in times)]


def _set_module_paths(host: list[FunctionEvent], modules: dict[int, Any]) -> None:
    """Give every event the path of the module that it ran in, as in `LeNet.conv1`, and calls of modules their path as name."""
    names: dict[int, dict[int, str]] = {}  # of the modules below one, by id
    running: dict[int, Any] = {}  # the module that a call of one is, by the event's id
    for e in host:  # in the order in which they began: a parent comes first
        above = e.cpu_parent if e.forward is None else e.forward
        outer = None if above is None else running.get(id(above))
        module = modules.get(id(e))
        if module is None:
            e.module = "" if above is None else above.module
        else:
            below = {} if outer is None else names.setdefault(id(outer), {id(m): n for n, m in outer.named_modules() if n})
            own = below.get(id(module))
            e.module = f"{above.module}.{own}" if own is not None and above is not None else type(module).__name__
            e.name = f"nn.Module: {e.module}" + (f" ({type(module).__name__})" if own is not None else "")
        running[id(e)] = outer if module is None else module


def _make_device_events(host: list[FunctionEvent], fired: list[DeviceWork], recording: Recording) -> list[FunctionEvent]:
    """The events of devices, each joined to the call that queued it."""
    calls = {(e.thread, e.time_range.start): e for e in host if e.kind == "runtime"}
    out = []
    for f in fired:
        queued = _interval(f.launched, f.returned, recording)
        by = calls.get((f.thread, queued.start))
        where = _interval(f.begin, f.end, recording) if f.begin is not None else Interval(queued.end, queued.end)
        made = FunctionEvent(
            f.name, f.kind, where, f.thread, DeviceType.CUDA, f.device, f.stream, metadata=dict(f.about), launched_by=by, is_async=True
        )
        if f.begin is None:
            made.metadata["time"] = "not known"
        if f.kind == "kernel":
            made.metadata["kernel"] = f.name
        if by is not None:
            owner = by.cpu_parent or by  # the op that called the driver, not the call itself
            owner.device_events.append(made)
            owner.kernels.append(Kernel(f.name, f.device, where.elapsed_us()))
            if f.kind == "kernel" and owner is not by:  # many ops share a kernel
                made.name = f"{f.name} ({owner.name})"
        out.append(made)
    return out
