"""The GPU benchmark without a GPU: every part of it runs here on the emulated device, on tiny inputs, with a peer that stands in for torch."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from bench.cpu.ops import OnCpu as Host
from bench.gpu import command, roofline, rows, run, training
from bench.gpu.clock import Ours, Torch, TorchOnHost, measure
from bench.gpu.peers import PEERS
from bench.gpu.roofline import Roof
from bench.gpu.rows import Case, cases, corners
from bench.gpu.run import Bench, Plan
from bench.gpu.sizes import EXTRA, Tiled
from bench.gpu.training import GPTShape
from bench.reports.report import Report, facts, lines
from tests.stub.build import environment
from tritensor.cuda.runtime.interface import Properties
from tritensor.ops.table import Sample, registry
from tritensor.ops.table.op_selection import select_ops

ROOT = Path(__file__).resolve().parents[2]
TINY = GPTShape(blocks=1, width=8, heads=2, length=4, words=7, batch=2)
PROPERTIES = Properties("NVIDIA Test 9000", (9, 0), 1 << 34, 132, 227 << 10, 2048, 32, 1 << 10, 1_980_000, 3_200_000, 6144, 13000)
HEAD = facts(PROPERTIES, quick=True)


class OnCpu(Host):
    """tritensor on the CPU where torch would be: it has torch's functions under torch's names."""

    name = "torch"


def tiny(*names: str) -> list[Case]:
    rng = np.random.default_rng(0)
    found = []
    for name in names:
        sample = next(s for s in registry[name].samples(rng) if all(getattr(x, "size", 1) for x in s.inputs))
        found += list(corners(registry[name], "float32", sample))
    return found


def planned(found: list[Case], parts: Any = ("roofline", "ops"), **others: Any) -> Plan:
    return Plan(found, {}, True, others.pop("seconds", None), parts, 4096, {"bfloat16": 16}, 2, [TINY], 0.001)


def bench(tmp_path: Path, plan: Plan, peer: Ours | None = None) -> Bench:
    return Bench(plan, Report(tmp_path / "report.json", HEAD), Ours(), peer, 0)


def read(tmp_path: Path) -> dict[str, Any]:
    return json.loads((tmp_path / "report.json").read_text())


# what is timed
def test_no_op_is_left_out() -> None:
    """An op has a row in --quick, or it is a view; a size or a peer is no other op's."""
    without = [name for name, op in registry.items() if not list(cases(op, quick=True))]
    assert without == [name for name, op in registry.items() if op.view or op.host], "give the record `sizes`"
    assert not EXTRA.keys() - registry.keys()
    assert not PEERS.keys() - registry.keys()
    assert not [name for name in EXTRA if registry[name].sizes is not None], "its record has sizes of its own"


def test_elementwise_ops_are_timed_on_64_mib() -> None:
    for dtype in ("float32", "bfloat16"):
        (large,) = {c.label for c in cases(registry["tanh"], quick=False) if c.largest and c.dtype == dtype}
        count = int(large.strip("[]"))
        assert count * (4 if dtype == "float32" else 2) == 64 << 20


def test_samples_are_drawn_when_asked_for() -> None:
    case = next(c for c in cases(registry["embedding"], quick=True))
    weight, index = case.draw().inputs[:2]
    assert str(list(weight.shape)) in case.label
    assert index.dtype == np.int64
    assert len(np.unique(index)) > 1000, "all indices are the same: no gather is like that"


@pytest.mark.parametrize("dry", [False, True])
def test_tiled_draws_numpys_shapes(dry: bool) -> None:
    rng = Tiled(dry=dry)
    assert rng.standard_normal((3, 4), np.float32).shape == (3, 4)
    assert rng.random(5).shape == (5,)
    assert rng.uniform(1.0, 2.0, (2, 3)).min() >= 1
    assert rng.integers(0, 7, (600, 1000)).max() < 7
    assert rng.integers(0, 7, size=3).shape == (3,)
    assert rng.normal(size=4).dtype == np.float32
    assert np.ndim(rng.random()) == 0
    assert sorted(rng.permutation(5)) == [0, 1, 2, 3, 4]


def test_integers_and_bools_are_rows_of_their_type() -> None:
    for name, dtype in (("bitwise_and", "int32"), ("logical_not", "bool")):
        case = Case(registry[name], "forward", dtype, "", True, lambda: Sample(np.array([0.5, -1.0]), np.array([1.0, 2.0])))
        assert all((x.dtype == dtype and x.all()) or dtype == "bool" for x in rows.host_inputs(case))


# the run
def test_a_whole_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = bench(tmp_path, planned(tiny("softmax", "add", "full")), OnCpu())
    assert made.run() == 0
    content = read(tmp_path)
    assert len(content["rows"]) == 5  # softmax and add have a backward
    for row in content["rows"].values():
        assert row["ms"] > 0
        assert row["bytes"] > 0
        assert row["torch_ms"] > 0
        assert "note" not in row, f"not captured: {row['note']}"
    assert {r["corner"] for r in content["rows"].values() if r["op"] == "softmax"} == {"forward", "backward"}
    assert content["roofline"]["copy_gbs"].keys() == {"tritensor", "torch"}
    assert content["seconds"] > 0
    shown = "\n".join(lines(content))
    assert "softmax" in shown
    assert "NVIDIA Test 9000" in shown
    assert "ops: done" in capsys.readouterr().out


def test_one_failure_does_not_stop_the_rest(tmp_path: Path) -> None:
    broken = dataclasses.replace(registry["full"], name="no_such_op")
    found = [*corners(broken, "float32", Sample(shape=(2,), value=1, dtype=np.dtype(np.float32))), *tiny("relu")]
    assert bench(tmp_path, planned(found)).run() == 1
    content = read(tmp_path)
    (failed,) = content["failed"]
    assert failed.startswith("no_such_op/forward")
    assert "no_such_op" in content["failed"][failed]
    assert {r["op"] for r in content["rows"].values()} == {"relu"}
    assert "FAILED: no_such_op" in "\n".join(lines(content))


def test_a_failure_of_the_peer_is_the_peers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*args: Any, **attrs: Any) -> Any:
        raise RuntimeError("not on this device")

    monkeypatch.setitem(PEERS, "relu", refuses)
    assert bench(tmp_path, planned(tiny("relu", "max_pool2d_gather")), OnCpu()).run() == 0
    content = read(tmp_path)
    assert all("not on this device" in why for why in content["peer_failed"].values())
    assert len(content["peer_failed"]) == 2
    assert any(r.get("torch_note") == "torch has no such op" for r in content["rows"].values())


def test_what_there_is_no_time_for_is_listed(tmp_path: Path) -> None:
    found = tiny("relu", "tanh")
    assert bench(tmp_path, planned(found, ("ops",), seconds=0.0)).run() == 0
    content = read(tmp_path)
    assert not content["rows"]
    assert content["not_timed"].keys() == {c.key for c in found}


def test_the_clock_thins_the_repeats(tmp_path: Path) -> None:
    made = bench(tmp_path, planned([], seconds=100.0)._replace(most=0.4))
    assert made._share(10) == 0.4
    assert 0.02 < made._share(500) < 0.1
    assert made._share(10**6) == run.LEAST


def test_a_run_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = tiny("relu"), tiny("tanh")
    bench(tmp_path, planned(first)).run()
    again = Report.resumed(tmp_path / "report.json", HEAD)
    asked = []
    monkeypatch.setattr(run, "time_ours", lambda lib, case, *rest: asked.append(case.op.name) or {"ms": 1.0})
    Bench(planned([*first, *second]), again, Ours(), None, 0).run()
    assert asked == ["tanh", "tanh"]
    assert len(read(tmp_path)["rows"]) == 4
    other = {**HEAD, "gpu": "another"}
    assert not Report.resumed(tmp_path / "report.json", other).content["rows"]


def test_every_set_of_inputs_has_results_of_its_own() -> None:
    """Else all calls would write into the block that the one before has just freed, and the cache would hold it."""
    lib = Ours()
    for case in tiny("softmax"):
        made = rows.prepare(lib, case, 1 << 16, rows.caller(lib, case))  # type: ignore[arg-type]
        assert len(made.runs) == rows.MOST_SETS
        with lib.working():
            places = [(y[0] if isinstance(y, tuple) else y).untyped_storage().data_ptr() for y in (run() for run in made.runs)]
        assert len(set(places)) >= len(places) - 1, "the one that is spare goes round"


def test_the_report_is_whole_at_every_moment(tmp_path: Path) -> None:
    report = Report(tmp_path / "deep" / "report.json", HEAD)
    for i in range(5):
        report.put("rows", str(i), {"ms": 1.0})
        report.save()
        assert len(json.loads(report.path.read_text())["rows"]) == i + 1
    assert [p.name for p in report.path.parent.iterdir()] == ["report.json"]


def test_an_interruption_saves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[int] = []

    def two_then_stop(*args: Any) -> dict[str, Any]:
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(1)
        return {"ms": 1.0}

    monkeypatch.setattr(run, "time_ours", two_then_stop)
    with pytest.raises(KeyboardInterrupt):
        bench(tmp_path, planned(tiny("relu", "tanh"), ("ops",))).run()
    assert len(read(tmp_path)["rows"]) == 2


def test_training_and_host_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "works", lambda batch, shapes: training.works(batch, shapes)[1:2])
    monkeypatch.setattr(run, "host_calls", lambda lib: {"x.view(-1)": None, "empty(64, 64)": None})
    assert bench(tmp_path, planned([], ("training", "host")), OnCpu()).run() == 0
    content = read(tmp_path)
    ((name, row),) = content["training"].items()
    assert "GPT 1x8" in name
    assert row["last_loss"] < row["first_loss"]
    assert row["torch_last_loss"] < row["torch_first_loss"]
    assert {"eager_ms", "graph_ms", "torch_eager_ms", "torch_graph_ms"} <= row.keys()
    assert content["host"].keys() == {"x.view(-1)", "empty(64, 64)"}
    assert all(r["host_us"] > 0 and r["torch_host_us"] > 0 for r in content["host"].values())


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """`bench gpu` from its flags to its exit code."""
    out = tmp_path / "report.json"
    monkeypatch.setattr(command, "why_not", lambda: "")
    monkeypatch.setattr(tt.cuda, "get_device_properties", lambda index: PROPERTIES, raising=False)
    monkeypatch.setattr(command, "peer_library", lambda names: None)
    warmed: list[int] = []
    monkeypatch.setattr(command, "compile_ahead", lambda given, arch: warmed.append(arch))
    monkeypatch.setattr(command, "cases", lambda op, quick: tiny(op.name))
    monkeypatch.setattr(run, "measure_roof", lambda *rest: {"copy_gbs": {"tritensor": 100.0}, "tflops": {"bfloat16": {}}, "failed": []})
    assert command.main(["--quick", "--op", "relu,add", "--out", str(out), "--seconds", "100"]) == 0
    assert warmed == [90]
    shown = capsys.readouterr().out
    assert f"written to {out}" in shown
    assert read(tmp_path)["mode"] == "quick"
    assert command.main(["--table", str(out)]) == 0
    assert "relu" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="2"):
        command.main(["--op", "nothing"])
    assert "bench gpu: no op is called 'nothing'" in capsys.readouterr().err


def test_the_plan_of_the_flags() -> None:
    def plan(*flags: str) -> Plan:
        given = command.parser().parse_args(flags)
        return command.plan(given, select_ops(given.op))

    everything = plan("--quick")
    assert everything.parts == run.PARTS
    assert everything.seconds == run.QUICK_SECONDS < 480
    assert everything.untimed.keys() == {n for n, op in registry.items() if op.view or op.host}
    assert everything.cases[0].op.broadcasts is False, "what is more than a formula comes first"
    assert plan("--host").parts == ("host",)
    assert plan("--op", "relu").seconds is None


def test_without_a_gpu_it_says_so() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench", "gpu", "--quick"], cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT), "TRITON_INTERPRET": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "needs a GPU" in done.stdout
    assert "bench static" in done.stdout


def test_without_a_gpu_it_does_not_send_anybody_to_emulation() -> None:
    env = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"} | {"PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([sys.executable, "-m", "bench", "gpu", "--quick"], cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "TRITON_INTERPRET" not in done.stdout


# the clock
class Ticking(TorchOnHost):
    """A library whose calls take a millisecond of a clock that stands still otherwise."""

    def __init__(self, fails: bool = False) -> None:
        super().__init__(tt)
        self.now = 0.0
        self.fails = fails

    def mark(self) -> float:
        return self.now

    def between(self, start: float, end: float) -> float:
        return (end - start) * 1e3

    def capture(self, run: Any) -> Any:
        if self.fails:
            raise RuntimeError("cannot be captured")
        return run

    def call(self) -> None:
        self.now += 1e-3


def test_a_timing_is_that_of_one_call() -> None:
    lib = Ticking()
    found = measure(lib, [lib.call] * 3, 0.01)
    assert found.ms == pytest.approx(1.0)
    assert found.eager_ms == pytest.approx(1.0)
    assert found.spread == pytest.approx(0.0, abs=1e-6)
    assert not found.note


def test_what_cannot_be_captured_is_timed_by_events() -> None:
    lib = Ticking(fails=True)
    found = measure(lib, [lib.call], 0.01)
    assert found.ms == pytest.approx(1.0)
    assert found.note == "no graph: RuntimeError: cannot be captured"


def test_torchs_side_of_the_clock() -> None:
    """The lines that only a GPU with torch would run, on a stand-in for torch.cuda."""
    log: list[str] = []

    class Event:
        def __init__(self, enable_timing: bool) -> None:
            assert enable_timing

        def record(self, stream: str) -> None:
            log.append(f"record on {stream}")

        def synchronize(self) -> None:
            log.append("wait")

        def elapsed_time(self, end: Any) -> float:
            return 2.5

    class CUDAGraph:
        def capture_begin(self) -> None:
            log.append("begin")

        def capture_end(self) -> None:
            log.append("end")

        def replay(self) -> None:
            log.append("replay")

    cuda = SimpleNamespace(
        Stream=lambda: "side", stream=lambda s: f"in {s}", Event=Event, CUDAGraph=CUDAGraph, synchronize=lambda: log.append("synchronize"),
        empty_cache=lambda: log.append("empty"),
    )  # fmt: skip
    lib = Torch(SimpleNamespace(cuda=cuda, device=lambda *which: which, manual_seed=lambda n: log.append(f"seed {n}")))
    assert lib.working() == "in side"
    assert lib.between(lib.mark(), lib.mark()) == 2.5
    lib.capture(lambda: log.append("run"))()
    with pytest.raises(ZeroDivisionError):
        lib.capture(lambda: 1 / 0)
    lib.free()
    lib.seed()
    assert log[3:] == ["synchronize", "begin", "run", "end", "replay", "synchronize", "begin", "end", "empty", "seed 0"]


def test_our_capture_is_abandoned_after_an_error() -> None:
    lib = Ours()
    x = tt.ones(4, device="cuda")
    with lib.working():
        with pytest.raises(ZeroDivisionError):
            lib.capture(lambda: 1 / 0)
        replay = lib.capture(lambda: x.add_(1.0))
        replay()
        replay()
    assert x.cpu().numpy().tolist() == [3.0] * 4


# the roofline
def test_the_roofline_is_the_better_of_two() -> None:
    found = roofline.measure_roof([Ours(), OnCpu()], 0.001, 4096, {"bfloat16": 16, "tf32": 16})
    assert not found["failed"]
    roof = roofline.best(found)
    assert roof.gbs == max(found["copy_gbs"].values())
    assert roof.tflops.keys() == {"bfloat16", "tf32"}
    assert tt.get_float32_matmul_precision() == "highest", "it was left as it was"


def test_the_least_time() -> None:
    roof = Roof(1000.0, {"bfloat16": 500.0, "float32": 50.0})
    assert roof.least_ms(1e9, 0, "float32") == pytest.approx(1.0)
    assert roof.least_ms(1, 500e9, "bfloat16") == pytest.approx(1.0)
    assert roof.least_ms(1, 500e9, "float32") == pytest.approx(10.0)
    assert roof.least_ms(1e9, 1e15, "int64") == pytest.approx(1.0), "no matrix rate is known for integers"
    assert Roof(0.0, {}).least_ms(1e9, 1e9, "float32") == 0.0


def test_a_rate_that_cannot_be_measured_is_reported(tmp_path: Path) -> None:
    class Broken(OnCpu):
        name = "torch"

        def mark(self) -> Any:
            raise RuntimeError("lost")

    made = bench(tmp_path, planned([], ("roofline",)), Broken())
    assert made.run() == 0
    assert read(tmp_path)["peer_failed"]
    assert read(tmp_path)["roofline"]["copy_gbs"].keys() == {"tritensor"}


# on the stub driver: the real runtime, whose kernels do nothing
@pytest.mark.slow
def test_the_road_through_the_driver(tmp_path: Path) -> None:
    """`bench gpu` as a user starts it, streams, events and graphs of the driver's own; what it measures there means nothing."""
    out = tmp_path / "report.json"
    done = subprocess.run(
        [sys.executable, "-m", "bench", "gpu", "--quick", "--op", "relu,embedding", "--seconds", "60", "--against", "none", "--no-warm", "--out", str(out)],
        cwd=ROOT, env=environment(STUB_CHECK=0), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    content = json.loads(out.read_text())
    assert {(r["op"], r["corner"]) for r in content["rows"].values()} >= {
        ("embedding", "forward"),
        ("embedding", "backward"),
        ("relu", "forward"),
    }
    assert not [r for r in content["rows"].values() if "note" in r], "every one of them was captured"
    assert content["properties"]["l2_cache_size"] > 0
    assert content["roofline"]["tflops"].keys() == {"bfloat16", "tf32", "float32"}
    assert "copy" in done.stdout


# compiling ahead
@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "flags"),
    [("bench.gpu.warm", ["--op", "relu", "--quick"]), ("tests.gpu.warm", ["--op", "logical_not"])],
)
def test_compiling_ahead(module: str, flags: list[str], tmp_path: Path) -> None:
    clean = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    clean |= {"PYTHONPATH": str(ROOT), "TRITENSOR_CACHE": str(tmp_path / "cache"), "TRITON_CACHE_DIR": str(tmp_path / "triton")}
    done = subprocess.run(
        [sys.executable, "-m", module, "--arch", "90", "--processes", "1", *flags], cwd=ROOT, env=clean, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "kernels ready for sm_90" in done.stdout
    assert ", 0 did not compile" in done.stdout
    assert len(list((tmp_path / "cache").rglob("*.ttcubin"))) >= 2
