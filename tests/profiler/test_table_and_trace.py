"""Views of a profile: the table, the notebook's table, the trace and its schema, stacks, memory over time."""

from __future__ import annotations

import gzip
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import tritensor as tt
from tritensor import nn
from tritensor.ground.errors import ArgumentError
from tritensor.profiler import ProfilerActivity, profile, record_function
from tritensor.profiler.results.units import format_bytes, format_count, format_time

CPU = [ProfilerActivity.CPU]
CUDA = [ProfilerActivity.CPU, ProfilerActivity.CUDA]


def step(device: str = "cpu") -> Any:
    tt.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 2)).to(device)
    opt = tt.optim.SGD(net.parameters(), lr=0.1)
    x = tt.randn(3, 8).to(device)

    def run() -> float:
        with record_function("forward"):
            loss = net(x).sum()
        loss.backward()
        opt.step()
        opt.zero_grad()
        return float(loss.item())

    run()
    return run


def profiled(device: str = "cpu", **settings: Any) -> profile:
    run = step(device)
    with profile(activities=CPU if device == "cpu" else CUDA, **settings) as prof:
        run()
        run()
    return prof


def test_figures_as_they_read_best() -> None:
    assert [format_time(t) for t in (0.5, 1234.5, 2.5e6)] == ["0.500us", "1.234ms", "2.500s"]
    assert format_time(1234.5, "us") == "1234.500us"
    assert [format_bytes(n) for n in (0, 1023, 1536, -3 << 20, 5 << 30)] == ["0 B", "1023 B", "1.50 KB", "-3.00 MB", "5.00 GB"]
    assert [format_count(n) for n in (480, 1234, 5e9)] == ["480", "1.23 K", "5.00 G"]


def test_the_table() -> None:
    averages = profiled().key_averages()
    table = averages.table(sort_by="self_cpu_time_total")
    rows = table.splitlines()
    shown = [r.split()[0] for r in rows if re.match(r"\S+ .*%.*\d", r)]
    by_self = sorted(averages, key=lambda e: -e.self_cpu_time_total)
    assert [n[:10] for n in shown] == [e.key[:10] for e in by_self]
    assert re.search(r"Self CPU time total: [\d.]+[mu]?s", table)
    assert re.search(r"^linear +[\d.]+% +[\d.]+us +[\d.]+% +[\d.]+us +[\d.]+us +4$", table, re.M)
    assert "CUDA" not in table
    assert "FLOP" not in table


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_rows_fit_a_screen(device: str) -> None:
    everything = {"record_shapes": True, "with_flops": True, "profile_memory": True, "with_modules": True}
    for settings in ({}, everything):
        lines = profiled(device, **settings).key_averages().table(sort_by="cpu_time_total").splitlines()
        assert max(len(line) for line in lines if not line.startswith("Roofline")) <= 140


def test_rows_are_sorted_limited_and_titled() -> None:
    averages = profiled(record_shapes=True).key_averages(group_by_input_shape=True)
    table = averages.table(sort_by="count", row_limit=2, header="two rows")
    assert table.splitlines()[1] == "two rows"
    assert table.count("AccumulateGrad") == 1
    assert averages.table(sort_by="cuda_time_total", row_limit=-1)
    assert "[[3, 8], [4, 8], [4]]" in averages.table()
    assert "1.000s" not in averages.table(time_unit="ms")
    with pytest.raises(ArgumentError, match="sort_by 'speed' is no figure"):
        averages.table(sort_by="speed")
    with pytest.raises(ArgumentError, match="time_unit 'h'"):
        averages.table(time_unit="h")


def test_events_as_a_table() -> None:
    events = profiled().events()
    assert "linear" in events.table(sort_by="cpu_time_total", row_limit=-1)
    top = events.table(top_level_events_only=True)
    assert "forward" in top
    assert "linear" not in top
    assert "forward" in str(events)
    assert "linear" in events.table(sort_by="roofline")


def test_names_are_cut() -> None:
    with profile(activities=CPU) as prof, record_function("a" * 100):
        pass
    assert "a" * 52 + "..." in prof.key_averages().table()
    assert "a" * 7 + "..." in prof.key_averages().table(max_name_column_width=10)


def test_averages_are_not_averaged_again() -> None:
    averages = profiled().key_averages()
    with pytest.raises(ArgumentError, match="averages already"):
        averages.key_averages()
    total = averages.total_average()
    assert (total.key, total.count) == ("Total", sum(e.count for e in averages))
    linear = next(e for e in averages if e.key == "linear")
    assert linear.cpu_time == pytest.approx(linear.cpu_time_total / 4)
    assert next(d for d in averages.to_dicts() if d["key"] == "linear")["count"] == 4


def test_a_notebook_shows_a_table() -> None:
    with profile(activities=CPU) as prof, record_function("<b>"):
        tt.ones(2).exp()
    page = prof._repr_html_()
    assert page.startswith("<table>")
    assert "&lt;b&gt;" in page
    assert page == prof.key_averages()._repr_html_()


def test_an_empty_profile() -> None:
    with profile(activities=CPU) as prof:
        pass
    assert "(no events)" in prof.key_averages().table()
    assert prof.key_averages().table(sort_by="cpu_time_total").endswith("0.000us")


# the trace
def trace_of(prof: profile, path: Path) -> list[dict[str, Any]]:
    prof.export_chrome_trace(str(path))
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as f:
        content = json.load(f)
    assert content["schemaVersion"] == 1
    assert content["baseTimeNanoseconds"] > 1.6e18
    return content["traceEvents"]  # type: ignore[no-any-return]


def check_schema(events: list[dict[str, Any]]) -> None:
    """The rules of the trace event format, and calls on a row that lie inside one another or apart."""
    rows: dict[tuple[int, int], list[tuple[float, float]]] = {}
    arrows: dict[tuple[str, int], list[tuple[str, float]]] = {}
    for e in events:
        assert {"ph", "name", "pid", "tid", "ts"} <= set(e)
        assert isinstance(e["pid"], int)
        assert isinstance(e["tid"], int)
        if e["ph"] == "X":
            assert e["dur"] >= 0
            rows.setdefault((e["pid"], e["tid"]), []).append((e["ts"], e["ts"] + e["dur"]))
        elif e["ph"] in "sf":
            arrows.setdefault((e["cat"], e["id"]), []).append((e["ph"], e["ts"]))
            assert e["ph"] == "s" or e["bp"] == "e"
        else:
            assert e["ph"] in ("M", "C")
    for spans in rows.values():
        open_: list[float] = []
        for start, end in sorted(spans, key=lambda s: (s[0], -s[1])):
            while open_ and open_[-1] <= start:
                open_.pop()
            assert not open_ or end <= open_[-1] + 1e-6, "two calls on a row overlap in part"
            open_.append(end)
    for ends in arrows.values():
        (first, start), (last, end) = ends
        assert (first, last) == ("s", "f")
        assert start <= end
    named = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    assert set(rows) <= named


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_a_trace(tmp_path: Path, device: str, name: str) -> None:
    prof = profiled(device, record_shapes=True, with_flops=True, profile_memory=True, with_modules=True, with_stack=True)
    events = trace_of(prof, tmp_path / name)
    check_schema(events)
    calls = [e for e in events if e["ph"] == "X"]
    assert {e["cat"] for e in calls} >= {"cpu_op", "user_annotation", "python_function"} | (
        {"kernel", "cuda_runtime"} if device == "cuda" else set()
    )
    linear = next(e for e in calls if e["name"] == ("linear" if device == "cpu" else "linear_activation_by_result"))
    assert linear["args"]["Input Dims"] == [[3, 8], [4, 8], [4]]
    assert linear["args"]["FLOPs"] == 2 * 3 * 8 * 4 + (12 if device == "cpu" else 24)
    assert linear["args"]["Module"] == ("Sequential.0" if device == "cpu" else "Sequential")  # whose two modules are one kernel there
    assert "test_table_and_trace.py" in linear["args"]["Call stack"]
    assert linear["pid"] == os.getpid()
    assert sum(e["ph"] == "s" and e["cat"] == "fwdbwd" for e in events) == (8 if device == "cpu" else 6)
    assert any(e["ph"] == "C" and e["name"] == "memory CPU" and e["args"]["bytes"] > 0 for e in events)
    if device == "cuda":
        kernel = next(e for e in calls if e["cat"] == "kernel")
        assert kernel["pid"] == 0
        assert kernel["args"]["grid"]
        launch = next(e for e in calls if e["cat"] == "cuda_runtime" and e["args"]["External id"] == kernel["args"]["External id"])
        assert launch["name"] == "cuLaunchKernelEx"
        assert any(e["ph"] == "C" and e["name"] == "memory CUDA" for e in events)


def test_metadata_stands_in_the_trace(tmp_path: Path) -> None:
    with profile(activities=CPU) as prof:
        prof.add_metadata("run", "first")
        prof.add_metadata_json("rates", '{"lr": 0.1}')
        with pytest.raises(ValueError, match="no valid JSON"):
            prof.add_metadata_json("rates", "{lr")
    prof.export_chrome_trace(str(tmp_path / "t.json"))
    content = json.loads((tmp_path / "t.json").read_text())
    assert (content["run"], content["rates"]) == ("first", {"lr": 0.1})
    assert prof.get_trace_id() == prof.get_trace_id()


def test_stacks_for_flame_graphs(tmp_path: Path) -> None:
    run = step()
    with profile(activities=CPU, with_stack=True) as prof:
        for _ in range(50):
            run()
    prof.export_stacks(str(tmp_path / "s"), "self_cpu_time_total")
    lines = (tmp_path / "s").read_text().splitlines()
    assert any(re.fullmatch(r"\S*test_table_and_trace\.py:\d+:_run;linear \d+", line.split(";", line.count(";") - 1)[-1]) for line in lines)
    with pytest.raises(ArgumentError, match="metric 'speed'"):
        prof.export_stacks(str(tmp_path / "s"), "speed")
    with pytest.raises(ArgumentError, match="kept no stacks"):
        profiled().export_stacks(str(tmp_path / "s"))


@pytest.mark.parametrize("name", ["m.json", "m.json.gz"])
def test_memory_over_time(tmp_path: Path, name: str) -> None:
    with profile(activities=CPU, profile_memory=True) as prof:
        x = tt.ones(1 << 18)
        y = x.exp()
        del x, y
    prof.export_memory_timeline(str(tmp_path / name), "cpu")
    with gzip.open(tmp_path / name, "rt") if name.endswith("gz") else (tmp_path / name).open() as f:
        at, held = json.load(f)
    assert at == sorted(at)
    assert max(held) - min(held) >= 2 << 20
    with pytest.raises(ArgumentError, match="json"):
        prof.export_memory_timeline(str(tmp_path / "m.html"))
    with pytest.raises(ArgumentError, match="kept no memory"):
        profiled().export_memory_timeline(str(tmp_path / name))


def test_the_older_spelling(tmp_path: Path) -> None:
    run = step()
    with tt.autograd.profiler.profile(record_shapes=True) as prof:
        run()
    assert {e.name for e in prof.function_events} >= {"linear", "AddmmBackward0"}
    assert "linear" in prof.key_averages().table(sort_by="self_cpu_time_total")
    assert "linear" in str(prof)
    assert prof.self_cpu_time_total > 0
    assert prof.total_average().count == len(prof.function_events)
    prof.export_chrome_trace(str(tmp_path / "t.json"))
    with tt.autograd.profiler.profile(enabled=False):
        run()
    assert isinstance(next(iter(prof.key_averages())), tt.autograd.profiler_util.FunctionEventAvg)


def test_ranges_for_nvidias_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    from tritensor.ground import nvtx

    said: list[str] = []
    monkeypatch.setattr(nvtx, "range_push", lambda name: said.append(name))
    monkeypatch.setattr(nvtx, "range_pop", lambda: said.append("-"))
    x = tt.ones(3, requires_grad=True)
    with tt.autograd.profiler.emit_nvtx(record_shapes=True):
        y = x.exp()
        y.sum().backward()
    assert said[:2] == ["exp, sizes = [[3]]", "-"]
    assert [s.split(",")[0] for s in said if s != "-"] == ["exp", "sum", "SumBackward0", "ExpBackward0"]
    assert said.count("-") == len(said) // 2


def test_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="to_pandas: needs pandas, which is not installed: pip install 'pandas'"):
        profiled().key_averages().to_pandas()
