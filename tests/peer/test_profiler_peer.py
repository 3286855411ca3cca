"""The profiler beside torch.profiler: names, arguments, what a script's events are called and how often they come, flops, schedules, benchmark tables."""

from __future__ import annotations

import contextlib
import inspect
import itertools
import json
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.utils.benchmark
import torch.utils.flop_counter

import tritensor as tt
import tritensor.profiler
import tritensor.utils.benchmark
import tritensor.utils.flop_counter

pytestmark = pytest.mark.peer
BOTH = [torch, tt]
ABSENT = {"ExecutionTraceObserver"}  # of PyTorch's own binaries


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """PyTorch's profiler writes about itself to stderr."""
    kept, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(null)


def profiled(t: Any, run: Any, **settings: Any) -> Any:
    run()
    with quiet(), t.profiler.profile(activities=[t.profiler.ProfilerActivity.CPU], **settings) as prof:
        run()
    return prof


def training(t: Any) -> Any:
    net = t.nn.Sequential(t.nn.Linear(8, 4), t.nn.ReLU(), t.nn.Linear(4, 2))
    opt = t.optim.SGD(net.parameters(), lr=0.1)
    data = t.utils.data.DataLoader(t.utils.data.TensorDataset(t.randn(6, 8)), batch_size=3)

    def run() -> None:
        for (x,) in data:
            with t.profiler.record_function("forward"):
                loss = net(x).sum()
            loss.backward()
            opt.step()
            opt.zero_grad()

    return run


def test_public_names_and_arguments() -> None:
    for name in set(torch.profiler.__all__) - ABSENT:
        assert hasattr(tt.profiler, name), name
    for ours, theirs in (
        (tt.profiler.profile.__init__, torch.profiler.profile.__init__),
        (tt.profiler.schedule, torch.profiler.schedule),
        (tt.profiler.tensorboard_trace_handler, torch.profiler.tensorboard_trace_handler),
        (tt.profiler.profile.key_averages, torch.profiler.profile.key_averages),
        (tt.autograd.profiler.profile.__init__, torch.autograd.profiler.profile.__init__),
        (tt.autograd.profiler.emit_nvtx.__init__, torch.autograd.profiler.emit_nvtx.__init__),
        (tt.autograd.profiler.record_function.__init__, torch.autograd.profiler.record_function.__init__),
        (tt.autograd.profiler_util.EventList.table, torch.autograd.profiler_util.EventList.table),
        (tt.utils.benchmark.Timer.__init__, torch.utils.benchmark.Timer.__init__),
        (tt.utils.benchmark.Timer.timeit, torch.utils.benchmark.Timer.timeit),
        (tt.utils.benchmark.Timer.blocked_autorange, torch.utils.benchmark.Timer.blocked_autorange),
        (tt.utils.benchmark.Timer.adaptive_autorange, torch.utils.benchmark.Timer.adaptive_autorange),
        (tt.utils.flop_counter.FlopCounterMode.__init__, torch.utils.flop_counter.FlopCounterMode.__init__),
    ):
        want = {n: (p.kind, n in ("timer", "language") or p.default) for n, p in inspect.signature(theirs).parameters.items()}
        have = {n: (p.kind, n in ("timer", "language") or p.default) for n, p in inspect.signature(ours).parameters.items()}
        assert {n: have.get(n) for n in want} == want
        assert list(have)[: len(want)] == list(want)
    for name in (n for n in dir(torch.profiler.profile) if not n.startswith("_")):
        assert hasattr(tt.profiler.profile, name) or name in (
            "prepare_trace",
            "start_trace",
            "stop_trace",
            "set_custom_trace_id_callback",
        ), name


OF_KINETO = {  # of the library that PyTorch's profiler is made with, and of its own making of lists
    "activity_type", "append_cpu_child", "append_kernel", "device_resource_id", "event_metadata", "external_id", "flow_id", "flow_start", "flow_type",
    "input_dtypes", "is_python_function", "linked_correlation_id", "metadata_json", "python_id", "python_module_id", "python_parent_id",
    "self_cpu_percent", "set_cpu_parent", "structured_input_shapes", "structured_input_strides", "total_cpu_percent", "total_device_percent",
}  # fmt: skip


def test_attributes_that_scripts_read() -> None:
    events = {t: profiled(t, training(t)).events()[0] for t in BOTH}
    unknown = {n for n in dir(events[torch]) if not n.startswith("_")} - set(dir(events[tt]))
    assert unknown <= OF_KINETO, unknown - OF_KINETO
    averages = {t: profiled(t, training(t)).key_averages()[0] for t in BOTH}
    unknown = {n for n in dir(averages[torch]) if not n.startswith("_")} - set(dir(averages[tt]))
    assert not unknown


RENAMED = {
    "aten::linear": "linear", "aten::relu": "relu", "aten::sum": "sum", "AddmmBackward0": "AddmmBackward0", "ReluBackward0": "ReluBackward0",
    "SumBackward0": "SumBackward0", "torch::autograd::AccumulateGrad": "AccumulateGrad", "Optimizer.step#SGD.step": "Optimizer.step#SGD.step",
    "Optimizer.zero_grad#SGD.zero_grad": "Optimizer.zero_grad#SGD.zero_grad", "forward": "forward",
    "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__": "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
}  # fmt: skip


def test_events_of_a_training_script() -> None:
    theirs, ours = ({e.key: e for e in profiled(t, training(t), record_shapes=True).key_averages()} for t in BOTH)
    counts = {RENAMED[n]: e.count for n, e in theirs.items() if n in RENAMED}
    assert len(counts) == len(RENAMED)
    counts["sum"] = 2  # PyTorch sums over rows for a bias's gradient as well
    assert {n: ours[n].count for n in counts} == counts
    assert set(ours) - set(counts) == {"index_get"}
    for e in ours.values():
        assert e.cpu_time_total >= e.self_cpu_time_total >= 0
    shapes = {
        t: {str(e.input_shapes) for e in profiled(t, training(t), record_shapes=True).events() if e.name in ("linear", "aten::linear")}
        for t in BOTH
    }
    assert shapes[tt] == shapes[torch] == {"[[3, 8], [4, 8], [4]]", "[[3, 4], [2, 4], [2]]"}


def test_backward_is_linked_by_sequence_numbers() -> None:
    def pairs(t: Any) -> set[tuple[str, str]]:
        x, w = t.ones(3, 8), t.ones(2, 8, requires_grad=True)
        events = profiled(t, lambda: (t.nn.functional.linear(x, w) * 2).exp().sum().backward()).events()
        forward = {
            e.sequence_nr: e.name.removeprefix("aten::") for e in events if e.scope == 0 and e.sequence_nr >= 0 and "Backward" not in e.name
        }
        names = {"linear": "matmul", "mm": "matmul"}
        back = [
            e for e in events if e.scope == 1 and e.name.endswith("Backward0") and "evaluate" not in e.name and e.sequence_nr in forward
        ]
        return {(names.get(forward[e.sequence_nr], forward[e.sequence_nr]), e.name) for e in back}

    wanted = {("exp", "ExpBackward0"), ("mul", "MulBackward0"), ("sum", "SumBackward0"), ("matmul", "MmBackward0")}
    assert pairs(tt) == wanted
    assert wanted - {("matmul", "MmBackward0")} <= pairs(torch)


@pytest.mark.parametrize(
    ("name", "ours", "run"),
    [
        ("aten::mm", "matmul", lambda t: t.ones(5, 7) @ t.ones(7, 3)),
        ("aten::bmm", "matmul", lambda t: t.bmm(t.ones(2, 5, 7), t.ones(2, 7, 3))),
        ("aten::add", "add", lambda t: t.ones(5, 7) + t.ones(5, 7)),
        ("aten::mul", "mul", lambda t: t.ones(5, 7) * t.ones(5, 7)),
        ("aten::conv2d", "conv2d", lambda t: t.nn.functional.conv2d(t.ones(2, 3, 8, 9), t.ones(4, 3, 3, 2), stride=2, padding=1)),
        ("aten::conv2d", "conv2d", lambda t: t.nn.functional.conv2d(t.ones(2, 4, 8, 8), t.ones(6, 2, 3, 3), groups=2)),
    ],
)  # fmt: skip
def test_flops_of_ops(name: str, ours: str, run: Any) -> None:
    theirs = {e.key: e.flops for e in profiled(torch, lambda: run(torch), with_flops=True).key_averages()}
    mine = {e.key: e.flops for e in profiled(tt, lambda: run(tt), with_flops=True).key_averages()}
    assert mine[ours] == theirs[name] > 0


@pytest.mark.parametrize("kind", ["lenet", "lstm", "products", "transposed"])
def test_the_flop_counter(kind: str) -> None:
    def total(t: Any) -> int:
        nn = t.nn
        if kind == "lenet":
            net = nn.Sequential(nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.Flatten(), nn.Linear(1024, 10))
            run = lambda: net(t.ones(2, 1, 28, 28)).sum().backward()  # noqa: E731
        elif kind == "transposed":
            layer = nn.ConvTranspose2d(3, 4, 3, stride=2)
            run = lambda: layer(t.ones(2, 3, 5, 5)).sum().backward()  # noqa: E731
        elif kind == "lstm":
            cell = nn.LSTMCell(4, 8)
            run = lambda: cell(t.ones(3, 4))  # noqa: E731
        else:
            a = t.ones(4, 5, requires_grad=True)
            run = lambda: ((a @ a.T) @ t.ones(4, 3)).sum().backward()  # noqa: E731
        with t.utils.flop_counter.FlopCounterMode(display=False) as counter:
            run()
        return int(counter.get_total_flops())

    assert total(tt) == total(torch) > 0


def test_attention_is_counted_by_its_formula() -> None:
    """On the CPU PyTorch 2.13 does not count the kernel that it takes; its formula is that of GPUs."""
    q, k, v = (tt.ones(2, 4, n, d, requires_grad=True) for n, d in ((8, 16), (10, 16), (10, 12)))
    shapes = [tuple(x.shape) for x in (q, k, v)]
    with tt.utils.flop_counter.FlopCounterMode(display=False) as counter:
        tt.nn.functional.scaled_dot_product_attention(q, k, v).sum().backward()
    theirs = torch.utils.flop_counter
    there = {
        "attention": theirs.sdpa_flop_count(*shapes),
        "attention backward": theirs.sdpa_backward_flop_count((2, 4, 8, 12), *shapes),
    }
    assert counter.get_flop_counts()["Global"] == there


def test_modules_of_the_flop_counter() -> None:
    def counts(t: Any) -> dict[str, int]:
        net = t.nn.Sequential(t.nn.Linear(8, 4), t.nn.Sequential(t.nn.ReLU(), t.nn.Linear(4, 2)))
        with t.utils.flop_counter.FlopCounterMode(display=False) as counter:
            net(t.ones(3, 8)).sum().backward()
        return {module: sum(ops.values()) for module, ops in counter.get_flop_counts().items() if ops}

    assert counts(tt) == counts(torch)


def test_schedules() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for wait, warmup, active, repeat, skip, shift in itertools.product((0, 1, 3), (0, 2), (1, 2), (0, 1, 2), (0, 2), (0, 1)):
            numbers = {"wait": wait, "warmup": warmup, "active": active, "repeat": repeat, "skip_first": skip, "skip_first_wait": shift}
            ours, theirs = (t.profiler.schedule(**numbers) for t in (tt, torch))
            assert [ours(i).name for i in range(20)] == [theirs(i).name for i in range(20)], numbers


def test_when_traces_are_ready() -> None:
    def ready(t: Any, steps: int, **numbers: int) -> list[int]:
        seen: list[int] = []
        plan = t.profiler.schedule(**numbers)
        with quiet(), t.profiler.profile(
            activities=[t.profiler.ProfilerActivity.CPU], schedule=plan, on_trace_ready=lambda p: seen.append(p.step_num)
        ) as prof:  # fmt: skip
            for _ in range(steps):
                t.ones(2).exp()
                prof.step()
        return seen

    numbers = {"wait": 1, "warmup": 1, "active": 2, "repeat": 1}  # one cycle: PyTorch 2.13 may die of several in a process without a GPU
    assert ready(tt, 6, **numbers) == ready(torch, 6, **numbers) == [4]


def test_traces_are_alike(tmp_path: Path) -> None:
    found = {}
    for t in BOTH:
        path = tmp_path / f"{t.__name__}.json"
        with quiet():
            profiled(t, training(t)).export_chrome_trace(str(path))
        found[t] = json.loads(path.read_text())
    assert {"schemaVersion", "traceEvents", "displayTimeUnit", "baseTimeNanoseconds", "host_name"} <= set(found[torch]) & set(found[tt])
    keys = {t: {k for e in found[t]["traceEvents"] if e["ph"] == "X" and e["cat"] == "cpu_op" for k in e} for t in BOTH}
    assert keys[tt] == keys[torch]
    flows = {t: {(e["ph"], e["cat"], "bp" in e) for e in found[t]["traceEvents"] if e["ph"] in "sf" and e["cat"] == "fwdbwd"} for t in BOTH}
    assert flows[tt] == flows[torch] == {("s", "fwdbwd", False), ("f", "fwdbwd", True)}


def test_tables_of_measurements() -> None:
    def table(t: Any, trim: bool) -> list[str]:
        b = t.utils.benchmark
        made = [
            b.Measurement(10, times, b.TaskSpec("x", "pass", "", "a table", row, column, None, threads))
            for row, column, threads, times in (
                ("small", "ours", 1, [1.234e-2, 1.25e-2]), ("small", "theirs", 1, [2.5e-2]), ("a large one", "ours", 1, [3.21e-1]), ("small", "ours", 2, [0.5e-2]),
            )
        ]  # fmt: skip
        compare = b.Compare(made)
        if trim:
            compare.trim_significant_figures()
        return [" ".join(line.replace("-", " ").split()) for line in str(compare).splitlines() if line.strip()]

    for trim in (False, True):
        assert table(tt, trim) == table(torch, trim)


@pytest.mark.parametrize("times", [[1e-3], [1e-3, 1.1e-3, 0.9e-3, 1.05e-3], [1e-6, 5e-6, 2e-6], [3.0, 3.1, 2.9, 3.0, 3.2], [1e-9, 2e-9]])
def test_what_measurements_are_worth(times: list[float]) -> None:
    def told(t: Any) -> tuple[Any, ...]:
        m = t.utils.benchmark.Measurement(1, times, t.utils.benchmark.TaskSpec("x + y", "y = 1", label="sum"))
        return (
            m.significant_figures, m.has_warnings, pytest.approx(m.iqr), pytest.approx(m.mean), pytest.approx(m.median), m.title, m.env,
            repr(m).split("\n", 1)[1],
        )  # fmt: skip

    assert told(tt) == told(torch)
