"""`bench static --compare`: what its words on the command line mean, and configs of kernels and ops side by side."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.static import kernel_arguments
from bench.static.kernel_arguments import Refused, Unknown, check_names, grid_of, pieces
from bench.static.op_configs import variations
from tests.static.test_compile import ROOT, alone
from tritensor.cuda.compiler.kernel_report import Report
from tritensor.cuda.compiler.prediction import Forecast, Prediction, fastest
from tritensor.cuda.runtime import active
from tritensor.cuda.virtual.recording_runtime import RecordingRuntime
from tritensor.kernels.parts.configs.spaces import tiles_space
from tritensor.kernels.parts.launch_rules import Tiles
from tritensor.ops.tuning.config_choice import Choice
from tritensor.ops.tuning.tunables import Tunable, known

FILE = "tests/static/kernels_to_compare.py"


@pytest.fixture
def recording() -> Any:
    before = active.use(RecordingRuntime())  # type: ignore[arg-type]
    yield
    active.use(before)


# Words
def test_a_config_is_read() -> None:
    assert kernel_arguments.config("BLOCK=1024, num_warps=4,ACT='a,b',FAST=True,NAME=relu,SHAPE=(2,3)") == {
        "BLOCK": 1024, "num_warps": 4, "ACT": "a,b", "FAST": True, "NAME": "relu", "SHAPE": (2, 3),
    }  # fmt: skip


def test_arguments_are_read(recording: Any) -> None:
    found = kernel_arguments.arguments("x=*bf16:16[4096,64],y=*fp32:1[3],n=4096,m=i32:16,k=i64,s=0.5,big=i64=7,no=None,i=i32=5")
    assert (found["x"].shape, found["x"].dtype.name, found["x"].data_ptr() % 16) == ((4096, 64), "bfloat16", 0)
    assert found["y"].data_ptr() % 16 == 4
    assert (found["n"], found["s"], found["no"], found["i"]) == (4096, 0.5, None, 5)
    assert found["m"] == Unknown("i32", True)
    assert found["k"] == Unknown("i64", False)
    assert isinstance(found["big"], np.int64)
    assert found["big"] == 7


WRONG = [
    ("x=bf16[3]", "x=bf16[3] is none of: an array x=*bf16[4096,4096]"),
    ("x=*bf16", "an array is written *type[shape]"),
    ("x=*bf17[3]", "no type is called 'bf17' (did you mean bf16?)"),
    ("x", "'x' is no name=value"),
    ("n=i32=two", "'two' is no i32"),
    ("n=1,n=2", "n is given twice"),
]


@pytest.mark.parametrize(("text", "said"), WRONG, ids=[w[0] for w in WRONG])
def test_wrong_arguments_are_named(recording: Any, text: str, said: str) -> None:
    with pytest.raises(Refused, match="--args") as error:
        kernel_arguments.arguments(text)
    assert said in str(error.value)


def test_wrong_configs_are_named() -> None:
    with pytest.raises(Refused, match="'BLOCK' is no name=value; write --config BLOCK=1024"):
        kernel_arguments.config("BLOCK")
    with pytest.raises(Refused, match="num_warps is 'many'; a whole number"):
        kernel_arguments.config("num_warps=many")
    with pytest.raises(Refused, match=r"_k has no parameter BLOK \(did you mean BLOCK\?\); it has x, BLOCK"):
        check_names({"BLOK": 3}, ["x", "BLOCK"], "_k")
    check_names({"BLOCK": 3, "maxnreg": 64}, ["x", "BLOCK"], "_k")


def test_pieces_keep_what_stands_in_brackets() -> None:
    assert pieces("a=*bf16[2,3], b=(1,2),c='x,y',") == ["a=*bf16[2,3]", "b=(1,2)", "c='x,y'"]


def test_a_grid_is_calculated() -> None:
    assert grid_of("4096", {}) == (4096,)
    assert grid_of("cdiv(n, BLOCK), max(m, 2)", {"n": 1000, "BLOCK": 256, "m": 1}) == (4, 2)
    with pytest.raises(Refused, match="names with known values are n, and cdiv"):
        grid_of("m", {"n": 3, "x": None})
    with pytest.raises(Refused, match="one to three whole numbers"):
        grid_of("n / 2", {"n": 3})


# Choice
def test_variations_are_the_configs_that_a_kernel_declares_by_what_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        known, "matmul", Tunable("matmul", Tiles, tiles_space)
    )  # as its file does, which is not loaded: no kernel here is interpreted
    rule, key = Tiles(16, 64, 32, 1, 4, 2), (512, 512, 512, 1, np.dtype(np.float16), True)
    found = variations(Choice("matmul", "forward", "matmul", "float16", "", key, rule, rule, "heuristic"))
    assert {"stages": 3} in found
    assert {"block_k": 64} in found
    assert all(changes and set(changes) <= set(Tiles._fields) for changes in found)
    assert len(found) == len({tuple(c.items()) for c in found}) <= 12


def forecast(us: float, spilled: int = 0, work: float = 10.0, failure: str = "") -> tuple[Forecast, ...]:
    made = Report("k", 90, 32, 0, spilled, 0, 4, 0)
    return (Forecast(made, Prediction(1.0, 1.0, work, 0.0, us, "bytes", us, 0.0, 1, ()), failure),)


def test_the_fastest_config() -> None:
    assert fastest([forecast(10.0), forecast(9.0), forecast(11.0)]) == 1
    assert fastest([forecast(10.0, spilled=64), forecast(10.05)]) == 1, "times are equal, and registers in memory are not"
    assert fastest([forecast(10.0, work=50.0), forecast(10.0, work=10.0)]) == 1, "room below the limit"
    assert fastest([forecast(10.0), forecast(10.0)]) == 0
    assert fastest([forecast(5.0, failure="cannot run"), forecast(10.0), ()]) == 1
    assert fastest([(), forecast(5.0, failure="cannot run")]) is None
    assert fastest([]) is None


# The command
def compared(tmp_path: Path, *words: str) -> tuple[str, dict[str, Any]]:
    """What the command prints, and its JSON."""
    file = tmp_path / "found.json"
    done = alone("bench", "static", "--compare", *words, "--json", str(file))
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads(file.read_text())


def test_an_autotuned_kernel_with_an_example(tmp_path: Path) -> None:
    said, found = compared(tmp_path, f"{FILE}:_square")
    small, large = found["groups"][0]["configs"]
    assert (small["config"]["BLOCK"], large["config"]["BLOCK"]) == (512, 2048)
    assert small["launches"][0]["grid"] == [32768]
    assert large["launches"][0]["grid"] == [8192], "the grid is calculated for each config"
    assert large["best"]
    assert not small["best"]
    assert small["microseconds"] == pytest.approx(2 * 2 * 2**24 / 4.8e12 * 1e6, rel=0.01)
    assert "EVEN=True" in large["launches"][0]["report"]["kernel"], "what @triton.heuristics says"
    assert "* BLOCK=2048" in said
    assert "sm_90 (H200)" in said
    assert len(found["groups"]) == 1, "_rows is another kernel"


def test_a_kernel_with_arguments_and_a_config_that_fails(tmp_path: Path) -> None:
    words = ("--args", "x=*bf16[4096,8192],y=*fp32[4096],n=8192", "--grid", "4096", "--arch", "80", "100")
    said, found = compared(tmp_path, f"{FILE}:_rows", *words, "--config", "BLOCK=1024", "--config", "BLOCK=1000,num_warps=2")
    assert [g["arch"] for g in found["groups"]] == [80, 100]
    good, bad = found["groups"][0]["configs"]
    assert good["launches"][0]["prediction"]["limit"] == "bytes"
    assert good["microseconds"] == pytest.approx(4096 * 8192 * 2 / 2.039e12 * 1e6, rel=0.01)
    assert "power of 2" in bad["failure"]
    assert "  BLOCK=1000 num_warps=2  ValueError: Shape element 0 must be a power of 2" in said


def test_without_a_grid_there_is_no_time(tmp_path: Path) -> None:
    said, found = compared(tmp_path, f"{FILE}:_rows", "--args", "x=*bf16[4096,8192],y=*fp32[4096],n=i32:16", "--config", "BLOCK=1024")
    (only,) = found["groups"][0]["configs"]
    assert (only["microseconds"], only["best"]) == (None, False)
    assert only["launches"][0]["report"]["registers"] > 0
    assert "no time without a grid" in said


def test_an_example_that_takes_the_config(tmp_path: Path) -> None:
    configs = ("--config", "BLOCK=512", "--config", "BLOCK=2048,num_warps=8")
    _, found = compared(tmp_path, "tests/static/kernels_launched.py:_increment", *configs)
    one, two = found["groups"][0]["configs"]
    assert (one["launches"][0]["grid"], two["launches"][0]["grid"]) == ([2048], [512])
    assert "BLOCK=2048" in two["launches"][0]["report"]["kernel"]
    assert two["launches"][0]["report"]["warps"] == 8


def test_an_op(tmp_path: Path) -> None:
    said, found = compared(tmp_path, "softmax", "--size", "1", "--corner", "both", "--config", "warps=4", "--config", "BM=4,warps=16")
    forward, backward = found["groups"]
    assert forward["name"].startswith("softmax forward, size1: bfloat16[8192,4096]")
    assert backward["name"].startswith("softmax backward")
    assert [c["launches"][0]["report"]["warps"] for c in forward["configs"]] == [4, 16]
    assert sum(c["best"] for c in forward["configs"]) == 1
    assert "the rule says BM=1 warps=4" in said


def test_dumps_are_written(tmp_path: Path) -> None:
    words = (f"{FILE}:_square", "--config", "BLOCK=1024", "--dump")
    said, _ = compared(tmp_path, *words, "ptx")
    assert ".visible .entry _square" in said
    compared(tmp_path, *words, "sass", "--out", str(tmp_path / "code"))
    (file,) = (tmp_path / "code").iterdir()
    assert "STG" in file.read_text()


REFUSED = [
    (["--compare", "softmx"], "no op is called 'softmx'; did you mean softmax"),
    (["--compare", "no_such.py:_k"], "no such file as no_such.py"),
    (["--compare", f"{FILE}:_sqare"], "has no kernel _sqare (did you mean _square?); its kernels are _square, _rows"),
    (["--compare", f"{FILE}:_square", "--config", "BLOK=3"], "_square has no parameter BLOK (did you mean BLOCK?)"),
    (["--compare", f"{FILE}:_rows", "--args", "x=*bf16[3],y=*fp32[4],n=5"], "no value for BLOCK of _rows; give --config BLOCK=..."),
    (["--compare", f"{FILE}:_rows", "--args", "z=3"], "_rows has no parameter z; it takes x, y, n, BLOCK"),
    (["--compare", "softmax", "--config", "WARP=3"], "no config of softmax has WARP"),
    (["--compare", "softmax", "--size", "9"], "softmax has 4 timed sizes, 0 to 3"),
    (["--compare", "softmax", "--args", "x=3"], "--args is for a kernel of a file"),
    (["--compare", "reshape"], "reshape is a view: it launches nothing"),
    (["--config", "BLOCK=3"], "--config belongs to --compare"),
    (["--op", "softmx"], "no op is called 'softmx'"),
]


def test_what_cannot_be_done_is_refused_in_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process: nothing is compiled before it is refused."""
    from bench.static import command as static

    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    monkeypatch.chdir(ROOT)
    before = active.use(None)
    try:
        for words, said in REFUSED:
            with pytest.raises(SystemExit) as end:
                static.main(words)
            lines = capsys.readouterr().err.strip().splitlines()
            assert end.value.code == 2, words
            assert len(lines) == 1, lines
            assert lines[0].startswith("bench static: ")
            assert said in lines[0], lines
    finally:
        active.use(before)


def test_no_config_that_runs_is_an_error() -> None:
    done = alone(
        "bench", "static", "--compare", f"{FILE}:_rows", "--args", "x=*bf16[8],y=*fp32[4],n=5", "--grid", "1", "--config", "BLOCK=3"
    )
    assert done.returncode == 1
    assert "power of 2" in done.stdout


PLUGIN = '''"""An op of another package."""

import numpy as np
import triton

from tritensor.kernels.parts.cpu.blocks import blocked
from tritensor.kernels.parts.elementwise import elementwise
from tritensor.kernels.parts.pointwise_samples import Domain


@triton.jit
def _cube(x):
    return x * x * x


@triton.jit
def _cube_grad(g, x):
    return 3.0 * g * x * x


def _block(x: np.ndarray, out: np.ndarray) -> None:
    np.multiply(x, x, out=out)
    out *= x


elementwise("planted_cube", _cube, _cube_grad, blocked(_block), kinds=("float",), domain=Domain(-3.0, 3.0))
'''


def test_ops_of_installed_packages_are_recorded_and_compared(tmp_path: Path) -> None:
    """A package with an entry point: its op is found by pattern and by name."""
    (tmp_path / "cube_ops.py").write_text(PLUGIN)
    installed = tmp_path / "cube_ops-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: cube-ops\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text("[tritensor.ops]\ncube = cube_ops\n")
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"} | {"PYTHONPATH": f"{ROOT}:{tmp_path}"}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "bench", "static", *words]
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)

    out = tmp_path / "out.json"
    done = run("--op", "planted_cub*", "--dtype", "float32", "--arch", "90", "--out", str(out))
    assert done.returncode == 0, done.stdout + done.stderr
    assert {(k["op"], k["corner"]) for k in json.loads(out.read_text())["kernels"]} == {
        ("planted_cube", "forward"),
        ("planted_cube", "backward"),
    }
    done = run("--compare", "planted_cube", "--config", "num_warps=8")
    assert done.returncode == 0, done.stderr
    assert "planted_cube forward" in done.stdout
