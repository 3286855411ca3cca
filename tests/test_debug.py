"""tt.debug: why a kernel was compiled, and where the host waits for the GPU."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import tritensor as tt
from tests.stub.build import environment
from tests.stub.child import on_stub
from tritensor.cuda.compiler import compile_log
from tritensor.cuda.compiler.arguments import Specialization
from tritensor.cuda.streams import hidden_waits
from tritensor.debug import Wait

ROOT = Path(__file__).resolve().parents[1]


def kernel(*names: str) -> Any:
    def function() -> None:
        """Stands for the Python function of a kernel."""

    return SimpleNamespace(arg_names=list(names), fn=function)


KERNEL = kernel("x", "cols", "BLOCK")


def spec(x: Any = "*fp32:16", cols: Any = "i32:16", block: Any = 128, warps: int = 4, stages: int = 3, options: Any = ()) -> Specialization:
    constants = (((2,), block),) if cols != "constexpr" else (((1,), None), ((2,), block))
    return Specialization(KERNEL, (x, cols, "constexpr"), constants, tuple(type(v) for _, v in constants), warps, stages, options)


def double() -> None:
    """Stands for a function in a constant."""


REASONS = [
    (spec(x="*bf16:16"), "x: *fp32 -> *bf16"),
    (spec(x="*fp32"), "the address of x no longer divides by 16"),
    (spec(cols="i32"), "cols no longer divides by 16"),
    (spec(cols="i64:16"), "cols: i32 -> i64"),
    (spec(cols="constexpr"), "cols: i32 -> None"),
    (spec(block=256), "constant BLOCK 128 -> 256"),
    (spec(block=True), "constant BLOCK 128 -> True"),
    (spec(block=(double, 2)), "constant BLOCK 128 -> (double, 2)"),
    (spec(warps=8), "num_warps 4 -> 8"),
    (spec(stages=2), "num_stages 3 -> 2"),
    (spec(options=(("launch_pdl", True),)), "options () -> ((launch_pdl, True))"),
    (spec(cols="i32", block=256), "cols no longer divides by 16; constant BLOCK 128 -> 256"),
    (spec(), "asked again"),
]


@pytest.mark.parametrize(("new", "said"), REASONS, ids=[said for _, said in REASONS])
def test_the_reason_names_what_is_new(new: Specialization, said: str) -> None:
    assert compile_log.reason(new, 90, [(spec(), 90)]) == said


def test_the_reason_is_against_the_nearest_one() -> None:
    before = [(spec(), 90), (spec(x="*bf16:16", block=64), 90), (spec(block=64), 80)]
    assert compile_log.reason(spec(x="*bf16:16", cols="i32", block=64), 90, before) == "cols no longer divides by 16"
    assert compile_log.reason(spec(block=64), 90, before[2:]) == "sm_80 -> sm_90"
    assert compile_log.reason(spec(cols="i32"), 90, [(spec(cols="i32", warps=8), 90)]) == "num_warps 8 -> 4"
    assert compile_log.reason(spec(cols="i32:16"), 90, [(spec(cols="i32"), 90)]) == "cols now divides by 16"
    assert compile_log.reason(spec(), 90, []) == "first use"


def test_the_reason_looks_into_tuples() -> None:
    def tupled(*types: str) -> Specialization:
        return spec(x=types)

    before = [(tupled("*fp32:16", "*fp32:16"), 90)]
    assert compile_log.reason(tupled("*fp32:16", "*fp16:16"), 90, before) == "x[1]: *fp32 -> *fp16"
    assert compile_log.reason(tupled("*fp32:16"), 90, before) == "x: 2 values -> 1"
    assert compile_log.reason(tupled("*fp32", "*fp32:16"), 90, before) == "the address of x[0] no longer divides by 16"


@on_stub()
def test_compiles_lists_kernel_op_line_and_reason(tmp_path: Path) -> None:
    import os

    os.environ["TRITENSOR_CACHE"] = str(tmp_path)
    x = tt.ones(64, 64, device="cuda")
    start = len(tt.debug.compiles())
    y = x * 2.0
    (x[:, 1:] * 2.0).sum()
    z = (x.to(tt.bfloat16) * 2.0).requires_grad_()
    (z * z).sum().backward()
    found = tt.debug.compiles()[start:]
    first = found[0]
    assert y.shape == (64, 64)
    assert (first.op, first.arch, first.source in ("compiled", "triton")) == ("mul", 90, True)
    assert first.kernel.startswith("pointwise.")
    assert Path(first.line.rpartition(":")[0]).name == Path(__file__).name
    assert 0 < first.seconds < 60
    assert first.reason == "first use" or "->" in first.reason or "divides" in first.reason
    assert any("divides by 16" in e.reason or "->" in e.reason for e in found[1:])
    assert {"mul", "sum", "cast", "mul backward"} <= {e.op for e in found}
    line = str(first)
    assert repr(first) == line
    for part in (first.kernel, "sm_90", "for mul", first.source, first.reason, first.line):
        assert part in line
    assert "\n" not in line


@on_stub()
def test_a_steady_state_compiles_nothing() -> None:
    x = tt.ones(64, device="cuda")
    for _ in range(2):
        x = x * 2.0 + 1.0
    before = len(tt.debug.compiles())
    for _ in range(5):
        x = x * 2.0 + 1.0
    assert len(tt.debug.compiles()) == before


def test_print_compiles(capsys: pytest.CaptureFixture[str]) -> None:
    before = compile_log.entries()
    tt.debug.print_compiles()
    tt.debug.print_compiles()  # once is enough: nothing is printed twice
    try:
        compile_log.record(spec(), 90, 0.25, "compiled", "add")
    finally:
        tt.debug.print_compiles(False)
    compile_log.record(spec(block=256), 90, 0.001, "disk")
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert said[0].startswith("tritensor: test_debug.function(x: *fp32:16, cols: i32:16) sm_90 for add: compiled in 0.25 s: ")
    assert logging.getLogger("tritensor.compiles").level == logging.NOTSET
    assert len(compile_log.entries()) == len(before) + 2


def test_the_variable_prints_from_the_start(tmp_path: Path) -> None:
    code = "import tritensor as tt; x = tt.ones(64, device='cuda'); x * 3.0"
    env = environment(TRITENSOR_LOG="compiles", TRITENSOR_CACHE=tmp_path)
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True, timeout=120)
    lines = [line for line in done.stderr.splitlines() if line.startswith("tritensor: ")]
    assert any(" for mul: " in line and "<string>:1" in line for line in lines), done.stderr


# Waits
def test_waits_are_counted_by_line() -> None:
    x = tt.ones(4, device="cuda")
    with tt.debug.sync_trace() as trace:
        for _ in range(3):
            x.sum().item()
        tt.cuda.synchronize()
        x + 1
    kinds = {w.kind: w for w in trace.waits}
    assert set(kinds) == {"copy to host", "synchronize"}
    assert kinds["copy to host"].times == 3
    assert trace.waits[0] is not kinds["synchronize"], "the most frequent comes first"
    assert trace.count == 4
    name, _, line = kinds["copy to host"].line.rpartition(":")
    assert Path(name).name == Path(__file__).name
    assert "x.sum().item()" in Path(__file__).read_text().splitlines()[int(line) - 1]
    assert str(trace).splitlines()[0] == "4 waits for the GPU"
    assert kinds["synchronize"].line in str(trace)


def test_nobody_is_told_outside_of_a_trace() -> None:
    x = tt.ones(4, device="cuda")
    with tt.debug.sync_trace() as trace:
        x + 1
    x.cpu()
    assert trace.count == 0
    assert str(trace) == "no waits for the GPU"
    assert hidden_waits.listener is None


def test_traces_nest_and_end_with_an_error() -> None:
    x = tt.ones(4, device="cuda")
    with tt.debug.sync_trace() as outer:
        with pytest.raises(IndexError), tt.debug.sync_trace() as inner:
            x.cpu()[9]
        x.cpu()
    assert (outer.count, inner.count) == (2, 1)
    assert hidden_waits.listener is None


def test_a_trace_sees_all_threads() -> None:
    x = tt.ones(4, device="cuda")
    with tt.debug.sync_trace() as trace:
        threads = [threading.Thread(target=lambda: [x.cpu() for _ in range(10)]) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert trace.count == 40
    assert trace.waits == [Wait("copy to host", trace.waits[0].line, 40)]


@on_stub()
def test_the_driver_tells_its_waits() -> None:
    x = tt.ones(4, device="cuda")
    x.cpu()
    with tt.debug.sync_trace() as trace:
        y = x * 2.0
        assert trace.count == 0, "a launch waits for nothing"
        y.cpu()
        tt.cuda.synchronize()
        event = tt.cuda.Event()
        event.record()
        event.synchronize()
        tt.cuda.current_stream().synchronize()
    assert {w.kind for w in trace.waits} == {"copy to host", "synchronize", "event synchronize", "stream synchronize"}


def test_the_debug_module_is_imported_when_it_is_asked_for() -> None:
    code = "import sys, tritensor as tt; assert 'tritensor.debug' not in sys.modules; tt.debug.compiles(); assert tt.debug.compiles() == []"
    subprocess.run([sys.executable, "-c", code], env=environment(), check=True, timeout=60)
