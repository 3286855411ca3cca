"""`tritensor tune`: what is timed, what is dropped before, what survives a kill and a full disk, and every mistake in one line."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.stub.build import environment
from tests.stub.child import on_stub
from tritensor.ops.table.op_selection import select_ops
from tritensor.ops.tuning import tuned
from tritensor.ops.tuning.search import worker as workers
from tritensor.ops.tuning.search.halving import Found, halve
from tritensor.ops.tuning.search.journal import FullDiskError, Journal, JournalError
from tritensor.ops.tuning.search.kernel_file import _number
from tritensor.ops.tuning.search.pruning import Facts, judged, regret
from tritensor.tools import command_line, tune

ROOT = Path(__file__).resolve().parents[2]
HEAD = {"gpu": "Some GPU", "triton": "3.9.0"}


def run(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    """The command in a process where kernels are compiled and not interpreted."""
    kept = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    command = [sys.executable, "-m", "tritensor.tools.command_line", "tune", *arguments]
    return subprocess.run(command, env={**kept, "PYTHONPATH": str(ROOT), **env}, capture_output=True, text=True, timeout=240, cwd=ROOT)


# Halving
def test_halving_finds_the_fastest_and_drops_what_fails() -> None:
    times = {"rule": 10.0, "a": 9.0, "b": 5.0, "c": 20.0, "d": 8.0, "e": 30.0}
    asked: list[tuple[str, int]] = []

    def measure(config: str, round: int, seconds: float) -> float | str:
        asked.append((config, round))
        return "a crash" if config == "x" else times[config]

    found = halve("rule", ["a", "b", "c", "x", "d", "e"], measure)
    assert isinstance(found, Found)
    assert (found.config, found.us, found.heuristic_us, found.gain, found.timed) == ("b", 5.0, 10.0, 2.0, 7)
    assert found.failed == (("x", "a crash"),)
    assert [c for c, r in asked if r == 1] == ["rule", "b", "d"]
    assert [c for c, r in asked if r == 2] == ["rule", "b", "d"]
    assert halve("x", ["a"], measure) == "a crash"
    kept = halve("b", ["a", "c"], measure)
    assert isinstance(kept, Found)
    assert (kept.config, kept.gain) == ("b", 1.0)


# Pruning
def test_what_compiling_shows_decides_what_is_timed() -> None:
    calls: Any = [("h",), ("same",), ("h",), ("spills",), ("breaks",), ("slow",), ("fast", "join"), "is refused: no"]
    facts: Any = {
        "h": Facts(10.0, 0, "bytes"), "same": Facts(11.0, 0, "bytes"), "spills": Facts(1.0, 8, "issue"), "breaks": Facts(None, 0, "", "does not compile"),
        "slow": Facts(40.0, 0, "issue"), "fast": Facts(4.0, 0, "tensor"), "join": Facts(1.0, 0, "bytes"),
    }  # fmt: skip
    found = judged(list("habcdefg"), calls, facts)
    assert [v.dropped for v in found] == [
        "", "", "launches what h does", "spills 8 bytes of registers, the heuristic 0", "does not compile",
        "predicted over 2 times slower than the best", "", "is refused: no",
    ]  # fmt: skip
    assert [v.us for v in found] == [12.0, 13.0, 12.0, 3.0, None, 42.0, 9.0, None]
    assert regret(found) == pytest.approx(12 / 9 - 1)


# The journal
def test_a_journal_drops_a_torn_line_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "j"
    notes = Journal(path, HEAD)
    notes.put("t", "a", 0, 1.5)
    notes.put("t", "b", 0, "it crashed")
    notes.close()
    path.write_bytes(path.read_bytes() + b'{"target": "t", "conf')
    again = Journal(path, HEAD)
    assert (again.get("t", "a", 0), again.get("t", "b", 0), again.get("t", "a", 1)) == (1.5, "it crashed", None)
    again.put("t", "a", 1, 2.5)
    again.close()
    third = Journal(path, HEAD)
    third.close()
    assert third.get("t", "a", 1) == 2.5
    with pytest.raises(JournalError, match=r"notes of another run .gpu 'Some GPU', not 'Other'.; remove the file"):
        Journal(path, {**HEAD, "gpu": "Other"})
    path.write_text("what?\n")
    with pytest.raises(JournalError, match="its head is damaged"):
        Journal(path, HEAD)
    (tmp_path / "folder").mkdir()
    with pytest.raises(FullDiskError, match="folder: cannot be written: Is a directory"):
        Journal(tmp_path / "folder", HEAD)


def test_a_damaged_line_costs_itself_alone(tmp_path: Path) -> None:
    path = tmp_path / "j"
    notes = Journal(path, HEAD)
    for config in "abc":
        notes.put("t", config, 0, 1.5)
    notes.close()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], b'\xff\x00 {"target"\n', b"[]\n", lines[3]]))
    again = Journal(path, HEAD)
    again.put("t", "b", 0, 2.5)
    again.close()
    assert again.damaged == 2
    third = Journal(path, HEAD)
    third.close()
    assert [third.get("t", c, 0) for c in "abc"] == [1.5, 2.5, 1.5]


def test_a_result_of_other_code_is_none(tmp_path: Path) -> None:
    notes = Journal(tmp_path / "j", HEAD)
    notes.put("t", "a", 0, 1.5, "of yesterday")
    notes.close()
    again = Journal(tmp_path / "j", HEAD)
    again.close()
    assert (again.get("t", "a", 0, "of yesterday"), again.get("t", "a", 0, "of today")) == (1.5, None)


def test_two_runs_on_one_file(tmp_path: Path) -> None:
    """The second is refused while the first lives, and nothing of the first's is touched; a kill frees the file."""
    code = (
        "import time\nfrom pathlib import Path\nfrom tritensor.ops.tuning.search.journal import Journal\n"
        f"notes = Journal(Path({str(tmp_path / 'j')!r}), {HEAD!r})\nnotes.put('t', 'a', 0, 1.5)\nprint('held', flush=True)\ntime.sleep(60)"
    )
    first = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE)
    assert first.stdout is not None
    assert first.stdout.readline() == b"held\n"
    before = (tmp_path / "j").read_bytes()
    with pytest.raises(
        JournalError, match="another `tritensor tune` is writing there; wait for its end, or give this one a file of its own"
    ):
        Journal(tmp_path / "j", HEAD)
    assert (tmp_path / "j").read_bytes() == before
    first.kill()
    first.communicate()
    again = Journal(tmp_path / "j", HEAD)
    again.close()
    assert again.get("t", "a", 0) == 1.5


def test_a_full_disk_names_the_file_and_what_is_free(tmp_path: Path) -> None:
    notes = Journal(tmp_path / "j", HEAD)
    notes.put("t", "a", 0, 1.5)
    notes._file.close()
    notes._file = open("/dev/full", "wb", buffering=0)  # noqa: SIM115
    with pytest.raises(
        FullDiskError, match=r"j: cannot be written: No space left on device; .* MB are free there. What was measured before is kept"
    ):
        notes.put("t", "b", 0, 2.5)
    notes.close()
    again = Journal(tmp_path / "j", HEAD)
    again.close()
    assert again.found == {("t", "a", 0, ""): 1.5}


# Mistakes
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--op", "softmx", "--dry-run"], "no op is called 'softmx'; did you mean softmax"),
        (["--op", "reshape", "--dry-run"], "nothing to tune: no kernel of reshape takes a config at a timed size; --shapes names calls"),
        (["--op", "softmax", "--dry-run", "--dtype", "float31"], "'float31' is not an element type"),
        (["--op", "softmax", "--dry-run", "--arch", "91"], "--arch: unknown architecture '91'"),
        (["--op", "softmax", "--dry-run", "--out", "x"], "a prediction is no measurement"),
        (["--op", "softmax", "--budget", "0"], "--budget 0: minutes, more than 0"),
        (["--op", "softmax", "--jobs", "0"], "--jobs 0: at least 1"),
        (["--op", "softmax", "--kernel", "a.py:k"], "--kernel and --op exclude each other"),
        (["--kernel", "nothing.py:k", "--dry-run"], "nothing.py: no such file"),
        (["--kernel", "k", "--dry-run"], "give a file and a kernel in it"),
        (["--shapes", "nothing.json", "--dry-run"], "--shapes nothing.json: cannot be read: No such file or directory"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else "",
)
def test_mistakes_in_one_line(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    select_ops(
        ["softmax", "reshape"]
    )  # loaded as this process runs kernels: those loaded below, without the variable, would serve no other test
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    monkeypatch.setattr(tune.active, "use", lambda runtime: None)
    assert command_line.main(["tune", *arguments]) == 2
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("tritensor tune:")]
    assert len(told) == 1
    assert said in told[0]


def test_an_interpreter_has_no_speed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert command_line.main(["tune", "--dry-run"]) == 2
    assert "TRITON_INTERPRET is set" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is no JSON"),
        ('[{"op": "add"}]', "row 0 is"),
        ('[{"op": "add", "inputs": [[2]], "dim": 1}]', "row 0 has dim"),
        ('[{"op": "add", "inputs": [[-1]]}]', "a shape is whole numbers"),
    ],
)
def test_shapes_that_cannot_be_read(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "shapes.json"
    path.write_text(text)
    with pytest.raises(tune.ShapesError, match=said):
        tune.read_shapes(path)


def test_without_a_gpu() -> None:
    done = run("--op", "softmax", CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("tritensor tune: no GPU to time on (")
    assert "TRITON_INTERPRET" not in line
    assert line.endswith("--dry-run ranks configs by prediction without one")


def test_grids() -> None:
    assert _number("cdiv(1000, BLOCK) * 2 + 1", {"BLOCK": 128}) == 17
    for text in ("BLOCKS", "__import__('os')", "1 / 2", "cdiv(1)"):
        with pytest.raises(ValueError, match="write numbers, BLOCK"):
            _number(text, {"BLOCK": 128})


# An op of another package, and one's own kernel
SCALED = '''
"""An op whose block is tuned."""
import numpy as np
import triton
import triton.language as tl
import tritensor as tt
from tritensor.ops.array import empty
from tritensor.cuda.launch import launch
from tritensor.ops.table import Sample, Spec, Work

@triton.jit
def _twice(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)

def twice(x):
    return 2 * x

def _forward(x):
    y = empty(x.shape, x.dtype, x.device)
    block = tt.tuning.config_of("twice_of_mine", (x.size, x.dtype), 256)
    launch(_twice, (-(-x.size // block),), x, y, x.size, BLOCK=block)
    return y

def configs(key):
    CONFIGS

tt.op("twice_of_mine", twice, shape=lambda x: Spec(x.shape, x.dtype), samples=lambda rng: [Sample(rng.standard_normal(300))],
      sizes=lambda rng: [Sample(rng.standard_normal(5000))], forward=_forward, differentiable=False, configs=configs,
      work=lambda x: Work(x.size, 2 * x.nbytes))
'''


def op_file(folder: Path, configs: str) -> str:
    path = folder / "ops_of_mine.py"
    path.write_text(SCALED.replace("CONFIGS", configs))
    return str(path)


def test_an_op_of_another_package_is_ranked(tmp_path: Path) -> None:
    done = run("--op", op_file(tmp_path, "return [64, 128, 512]"), "--dry-run", "--dtype", "float32", "--jobs", "1")
    assert done.returncode == 0, done.stderr
    assert "twice_of_mine | forward | twice_of_mine | float32 | 8192: heuristic is" in done.stdout
    assert all(f"limited by bytes  {n}" in done.stdout for n in (64, 128, 256, 512))
    assert "regret of the heuristic, predicted for sm_90, over 1 targets: median" in done.stdout


@pytest.mark.parametrize(
    ("configs", "said"),
    [("raise KeyError(key)", "the configs of 'twice_of_mine' for the key (5000, dtype('float32')) cannot be had: KeyError"), ("return ['a']", "hold 'a' for the key")],
)  # fmt: skip
def test_a_space_that_raises(configs: str, said: str, tmp_path: Path) -> None:
    done = run("--op", op_file(tmp_path, configs), "--dry-run", "--dtype", "float32")
    assert done.returncode == 2
    told = [line for line in done.stderr.splitlines() if line.startswith("tritensor tune:")]
    assert len(told) == 1
    assert said in told[0]


KERNEL = '''
"""A kernel with configs."""
import triton
import triton.language as tl

@triton.autotune(configs=[triton.Config({"BLOCK": b}, num_warps=w) for b in (128, 1024) for w in (2, 4)], key=["n"])
@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)
'''


def test_a_kernel_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(KERNEL)
    shapes = tmp_path / "calls.json"
    array = {"shape": [5000], "dtype": "float32"}
    shapes.write_text(json.dumps([{"args": [array, array, array, 5000], "grid": ["cdiv(5000, BLOCK)"]}]))
    named = f"{tmp_path / 'mine.py'}:add"
    done = run("--kernel", named, "--shapes", str(shapes), "--dry-run", "--jobs", "1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("BLOCK=") == 4
    without = run("--kernel", named, "--dry-run")
    assert without.returncode == 2
    assert "no calls to time it at; give --shapes, or a list in the file" in without.stderr


# On the stub: launches are counted, times are what it says, results are whatever memory holds
def unchecked(pipe: Any) -> None:
    """The worker without its comparison of results: on the stub nothing is computed."""
    workers._compare = lambda *given: None
    workers.serve(pipe)


def arguments(tmp_path: Path, *more: str) -> argparse.Namespace:
    (tmp_path / "shapes.json").write_text('[{"op": "softmax", "inputs": [[200, 100]], "attrs": {"dim": -1}}]')
    parser = argparse.ArgumentParser()
    tune.add_arguments(parser)
    return parser.parse_args(
        ["--shapes", str(tmp_path / "shapes.json"), "--dtype", "float32", "--out", str(tmp_path / "out.json"), "--jobs", "1", *more]
    )


@on_stub(240)
def test_on_the_stub(tmp_path: Path) -> None:
    assert tune._run(arguments(tmp_path), unchecked) == 0
    journal = tmp_path / "out.json.journal"
    rows = [json.loads(line) for line in journal.read_text().splitlines()]
    assert rows[0]["gpu"] == "Stub H100"
    assert {r["target"].split(" | ")[1] for r in rows[1:]} == {"forward", "backward"}
    assert all(r["us"] is not None for r in rows[1:])
    if (tmp_path / "out.json").exists():
        assert tuned.read(tmp_path / "out.json")[0].gpu == "Stub H100"
    before = journal.read_bytes()
    assert tune._run(arguments(tmp_path), unchecked) == 0  # everything is known: nothing is timed
    assert journal.read_bytes() == before


def slow(pipe: Any) -> None:
    """A worker with a clock of its own: the config's fields decide, and each answer takes a moment."""
    while True:
        try:
            asked = pipe.recv()
        except EOFError:
            return
        if asked is None:
            pipe.send((workers.GPU("Fake GPU", 90, 1 << 20), "", False))
        elif isinstance(asked, workers.Job):
            pipe.send((None, "", False))
        else:
            time.sleep(0.1)
            fields = asked[0]
            if fields is not None and fields["warps"] == 1:
                os.kill(os.getpid(), signal.SIGSEGV)
            pipe.send((10.0 if fields is None else 5.0 + fields["warps"], "", False))


def tune_slowly(folder: str, timeout: float = 60.0) -> None:
    sys.exit(tune._run(arguments(Path(folder), "--timeout", str(timeout)), slow))


def slowly(tmp_path: Path) -> subprocess.Popen[bytes]:
    code = f"from tests.tools.test_tune import tune_slowly\nif __name__ == '__main__': tune_slowly({str(tmp_path)!r})"
    script = tmp_path / "script.py"
    script.write_text(code)
    return subprocess.Popen([sys.executable, str(script)], env=environment(), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_a_killed_run_goes_on_where_it_was(tmp_path: Path) -> None:
    journal = tmp_path / "out.json.journal"
    first = slowly(tmp_path)
    end = time.monotonic() + 120
    while time.monotonic() < end and (not journal.exists() or journal.read_bytes().count(b"\n") < 5):
        time.sleep(0.05)
    first.kill()
    first.communicate()
    kept = journal.read_bytes()
    assert kept.count(b"\n") >= 5
    assert not (tmp_path / "out.json").exists()
    second = slowly(tmp_path)
    said, errors = second.communicate(timeout=200)
    assert second.returncode == 0, errors.decode()
    assert journal.read_bytes().startswith(kept[: kept.rfind(b"\n") + 1])
    rows = [json.loads(line) for line in journal.read_text().splitlines()][1:]
    assert len({(r["target"], r["config"], r["round"]) for r in rows}) == len(rows), "nothing is timed twice"
    _, entries = tuned.read(tmp_path / "out.json")
    assert {(p.corner, e.config["warps"], e.us, e.gain) for p, e in entries.items()} == {
        ("forward", 2, 7.0, round(10 / 7, 4)),
        ("backward", 2, 7.0, round(10 / 7, 4)),
    }
    crashed = [r["failed"] for r in rows if "warps=1" in r["config"] and "warps=16" not in r["config"]]
    assert crashed
    assert set(crashed) == {"it ended the process (signal 11)"}
    assert b"not usable: softmax" in said
    assert b"regret of the heuristic, measured, over 2 targets: median 42.9 %, worst 42.9 %" in said


def hanging(pipe: Any) -> None:
    """A worker that never answers."""
    pipe.recv()
    time.sleep(60)


def test_a_hang_costs_its_time_out() -> None:
    worker = workers.Worker(1.0, hanging)
    with pytest.raises(RuntimeError, match="no answer within 1 s: the kernel hangs"):
        worker.gpu()
    assert worker._process is None
