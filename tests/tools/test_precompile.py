"""`tritensor precompile`: a pack is filled where there is no GPU, and a program that has it compiles nothing."""

from __future__ import annotations

import contextlib
import io
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.stub.build import environment
from tests.stub.child import on_stub
from tritensor.cuda.compiler import cubin_cache, precompile
from tritensor.cuda.compiler.pack import Pack, decode, write_pack
from tritensor.ground.errors import LaunchError
from tritensor.tools import command_line

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import sys
import tritensor as tt
import tritensor.nn.functional as F
from tritensor import nn, optim
assert tt.cuda.is_available() and tt.cuda.device_count() >= 1
assert sys.argv[1:] == ["--width", "48"], sys.argv
model = nn.Sequential(nn.Linear(32, 48), nn.ReLU(), nn.Linear(48, 10)).to("cuda")
optimizer = optim.SGD(model.parameters(), lr=0.1)
x, y = tt.randn(16, 32, device="cuda"), tt.zeros(16, dtype=tt.int64, device="cuda")
for step in range(4):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    print("step", step, loss.item())
print("sources", sorted({c.source for c in tt.debug.compiles()}), len(tt.debug.compiles()))
model(x[:5]).softmax(1)
tt.cuda.synchronize()
"""


class Said(NamedTuple):
    code: int
    out: str
    err: str


def command(*argv: Any) -> Said:
    """`tritensor ...` in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = command_line.main([str(a) for a in argv])
        except SystemExit as end:  # argparse's own complaints
            code = int(end.code or 0)
    return Said(code, out.getvalue(), err.getvalue())


def ready(tmp_path: Path) -> None:
    """An empty cache. Triton's own is the user's, which saves seconds."""
    os.environ["TRITENSOR_CACHE"] = str(tmp_path / "cache")
    cubin_cache.forget()


def names(path: Path) -> list[str]:
    return sorted(decode(key, blob).name for key, _, blob in Pack(path).rows())


@on_stub(seconds=240)
def test_a_program_with_its_pack_compiles_nothing(tmp_path: Path) -> None:
    ready(tmp_path)
    script, pack = tmp_path / "train.py", tmp_path / "train.ttpack"
    script.write_text(SCRIPT)
    said = command("precompile", "--arch", "sm_90", "--out", pack, "--jobs", 2, "--script", script, "--width", 48)
    assert said.code == 0, said
    count = Pack(pack).count
    assert f"{count} kernels" in said.out
    assert f"TRITENSOR_PACK={pack}" in said.out
    assert "step" not in said.out + said.err, "what the script prints is not shown"
    assert f"sm_90: {count} of {count} kernels" in said.err
    env = environment(TRITENSOR_PACK=pack, TRITENSOR_CACHE=tmp_path / "none", TRITON_CACHE_DIR=tmp_path / "no triton", TRITENSOR_NATIVE=0)
    run = subprocess.run([sys.executable, script, "--width", "48"], env=env, capture_output=True, text=True, check=False, timeout=120)
    assert run.returncode == 0, run.stderr
    assert "sources ['pack']" in run.stdout
    assert not (tmp_path / "none").exists()
    assert not (tmp_path / "no triton").exists()


@on_stub(seconds=240)
def test_steps_stop_the_script_and_the_default_place_is_found_again(tmp_path: Path) -> None:
    ready(tmp_path)
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    said = command("precompile", "--arch", 90, "--steps", 1, "--verbose", "--script", script, "--width", 48)
    assert said.code == 0, said
    (pack,) = (tmp_path / "cache" / "packs").glob("*.ttpack")
    assert pack.name == f"train-triton-{cubin_cache.version()}.ttpack"
    assert not any("softmax" in n for n in names(pack)), "what comes after the last step is not run"
    env = environment(TRITENSOR_CACHE=tmp_path / "cache", TRITON_CACHE_DIR=tmp_path / "no triton")
    run = subprocess.run([sys.executable, script, "--width", "48"], env=env, capture_output=True, text=True, check=False, timeout=120)
    assert "sources ['pack']" in run.stdout, run.stdout + run.stderr


@on_stub(seconds=240)
def test_ops_for_two_architectures_into_one_pack_and_more_into_it(tmp_path: Path) -> None:
    ready(tmp_path)
    pack = tmp_path / "deep" / "ops.ttpack"
    said = command("precompile", "--arch", "sm_80,sm_100", "--op", "relu", "--dtypes", "float32", "--out", pack)
    assert said.code == 0, said
    first = Pack(pack)
    assert first.about["archs"] == [80, 100]
    assert first.count % 2 == 0
    assert "_kernel" in names(pack)
    said = command("precompile", "--arch", "sm_90", "--op", "relu", "--dtypes", "float32", "--out", pack)
    assert said.code == 0, said
    assert f"added to the {first.count} that were there" in said.out
    assert (Pack(pack).count, Pack(pack).about["archs"]) == (first.count * 3 // 2, [80, 90, 100])


@on_stub(seconds=240)
def test_backward_kernels_are_in_the_pack_too(tmp_path: Path) -> None:
    ready(tmp_path)
    pack = tmp_path / "p.ttpack"
    assert command("precompile", "--arch", 90, "--op", "softmax", "--dtypes", "float32", "--out", pack).code == 0
    assert "_backward_kernel" in names(pack), names(pack)


@on_stub()
def test_a_script_that_fails_leaves_what_it_launched(tmp_path: Path) -> None:
    ready(tmp_path)
    script, pack = tmp_path / "bad.py", tmp_path / "bad.ttpack"
    script.write_text("import tritensor as tt\nx = tt.ones(8, device='cuda') * 2\nprint('so far')\nraise ValueError('no such thing')\n")
    said = command("precompile", "--arch", 90, "--out", pack, "--script", script)
    assert said.code == 1
    assert "1 failed" in said.err
    assert f"{script}:4: ValueError: no such thing" in said.err
    assert "it had printed:\n  so far" in said.err
    assert Pack(pack).count == 2


@on_stub()
def test_a_script_that_exits_or_uses_no_gpu(tmp_path: Path) -> None:
    ready(tmp_path)
    script = tmp_path / "s.py"
    script.write_text("import sys\nsys.exit(3)\n")
    said = command("precompile", "--arch", 90, "--out", tmp_path / "p", "--script", script)
    assert said.code == 1
    assert "ended with exit code 3" in said.err
    script.write_text("import tritensor as tt\ntt.ones(3) + 1\n")
    said = command("precompile", "--arch", 90, "--out", tmp_path / "p", "--script", script)
    assert said.code == 1
    assert "nothing was launched on device cuda" in said.err
    assert not (tmp_path / "p").exists()


@on_stub()
def test_graphs_streams_and_events_run_on_the_virtual_gpu(tmp_path: Path) -> None:
    ready(tmp_path)
    script = tmp_path / "s.py"
    script.write_text("""
import tritensor as tt
x = tt.ones(64, device="cuda")
graph = tt.cuda.CUDAGraph()
with tt.cuda.graph(graph):
    y = x * 2
graph.replay()
a, b = tt.cuda.Event(enable_timing=True), tt.cuda.Event(enable_timing=True)
a.record()
with tt.cuda.stream(tt.cuda.Stream()):
    y = y + 1
b.record(); b.synchronize(); a.elapsed_time(b)
assert tt.cuda.get_device_capability() == (8, 6)
assert tt.cuda.get_device_properties(0).shared_memory_per_block_optin == 99 << 10
assert tt.cuda.memory_allocated() == 0
assert y.cpu().sum().item() == 0
""")
    said = command("precompile", "--arch", "sm_86", "--out", tmp_path / "p", "--script", script)
    assert said.code == 0, said


@on_stub()
def test_one_bad_kernel_does_not_cost_the_rest(tmp_path: Path) -> None:
    ready(tmp_path)
    real = cubin_cache.pack_row

    def row(spec: Any, arch: int) -> Any:
        if "_fill" in spec.kernel.__name__:
            raise LaunchError("it does not compile\nfor a reason")
        if ":_sub)" in repr(spec.constants):
            os.kill(os.getpid(), signal.SIGKILL)
        return real(spec, arch)

    precompile.cubin_cache.pack_row = row
    script, pack = tmp_path / "s.py", tmp_path / "p.ttpack"
    script.write_text("import tritensor as tt\nx = tt.ones(8, device='cuda')\nx * 2\nx - x\nx + x\n")
    said = command("precompile", "--arch", 90, "--out", pack, "--jobs", 1, "--script", script)
    assert said.code == 1
    assert "2 failed" in said.err
    assert "it does not compile\n  for a reason" in said.err
    assert "killed by signal 9" in said.err
    assert "--jobs 1" in said.err
    assert Pack(pack).count == 2


def test_a_killed_command_leaves_nobody_behind(tmp_path: Path) -> None:
    env = environment(TRITENSOR_CACHE=tmp_path / "c", TRITON_CACHE_DIR=tmp_path / "t", MARKED_BY_TEST=tmp_path)
    argv: list[Any] = [
        sys.executable,
        "-m",
        "tritensor.tools.command_line",
        "precompile",
        "--arch",
        "90",
        "--op",
        "add,mul,sub,div",
        "--out",
        tmp_path / "p",
    ]
    end = time.monotonic() + 120
    with (tmp_path / "said").open("w") as said:
        running = subprocess.Popen(argv, env=env, stderr=said)
    while " of " not in (tmp_path / "said").read_text():  # until its processes compile
        assert time.monotonic() < end
        time.sleep(0.05)
    assert len(marked(tmp_path)) > 1
    running.kill()
    running.wait()
    while marked(tmp_path):
        assert time.monotonic() < end, f"still there: {marked(tmp_path)}"
        time.sleep(0.1)


def marked(tmp_path: Path) -> list[int]:
    """Live processes whose environment says that this test started them."""
    found = []
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if folder.name.isdigit() and f"MARKED_BY_TEST={tmp_path}".encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
    return found


WRONG = [
    (("--arch", "sm_91"), r"unknown architecture 'sm_91'.*sm_80 \(A100.*sm_90 \(H100"),
    (("--arch", ""), "unknown architecture"),
    (("--arch", "90", "--op", "matmull"), "no op is called 'matmull'; did you mean matmul"),
    (("--arch", "90", "--op", "zzzzzz"), "no op is called 'zzzzzz'; docs/ops.md lists them"),
    (("--arch", "90", "--op", "reshape"), "reshape launches no kernel"),
    (("--arch", "90", "--op", "reshap*"), "reshape launches no kernel"),
    (("--arch", "90", "--op", "nowhere/my_ops.py"), "nowhere/my_ops.py: no such file"),
    (("--arch", "90", "--dtypes", "float33"), "'float33' is not an element type"),
    (("--arch", "90", "--jobs", "0"), "--jobs 0: at least 1"),
    (("--arch", "90", "--steps", "0"), "--steps 0: at least 1"),
    (("--arch", "90", "--script", "/nowhere/train.py"), "/nowhere/train.py: no such file"),
    (("--arch", "90", "--script"), "names no file"),
    (("--arch", "90", "--op", "add", "--script", "x.py"), "exclude each other"),
    (("--op", "add"), "--arch"),
    (("--arch", "90", "--jobs", "many"), "invalid int value"),
]


@on_stub()
@pytest.mark.parametrize(("argv", "says"), WRONG, ids=[" ".join(a) for a, _ in WRONG])
def test_wrong_arguments_are_named(argv: tuple[str, ...], says: str) -> None:
    import re

    said = command("precompile", *argv)
    assert said.code == 2
    assert re.search(says, said.err), said.err


HALF = """
import numpy as np
import triton
import triton.language as tl

import tritensor as tt


@triton.jit
def half_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 0.5, mask=at < n)


def forward(x):
    y = tt.parts.allocation.allocate(x.shape, x.dtype, x)
    tt.launch(half_kernel, (-(-x.size // 128),), tt.parts.copying.to_c_order(x), y, x.size, BLOCK=128)
    return y


tt.op("precompiled_half", lambda x: x / 2, shape=lambda x: tt.Spec(x.shape, x.dtype), forward=forward, rule=lambda g: g * 0.5, backward=forward,
      samples=lambda rng: [tt.Sample(rng.standard_normal(5))])
"""


@on_stub(seconds=240)
def test_the_ops_of_a_file_are_compiled(tmp_path: Path) -> None:
    ready(tmp_path)
    (tmp_path / "half_ops.py").write_text(HALF)
    pack = tmp_path / "p.ttpack"
    said = command("precompile", "--arch", 90, "--op", tmp_path / "half_ops.py", "--dtypes", "float32", "--out", pack)
    assert said.code == 0, said
    assert set(names(pack)) == {"half_kernel"}


@on_stub()
def test_a_package_that_raises_is_told_and_takes_nothing_from_others(tmp_path: Path) -> None:
    import importlib.metadata

    class Broken:
        name, value, dist = "broken", "broken_ops", None

        def load(self) -> None:
            raise ZeroDivisionError("by nought")

    real = importlib.metadata.entry_points  # which Triton asks for its backends
    importlib.metadata.entry_points = lambda **of: [Broken()] if of.get("group") == "tritensor.ops" else real(**of)  # type: ignore[assignment,return-value]
    ready(tmp_path)
    told = "ops: the plug-in 'broken' (tritensor.ops: broken = broken_ops) raises when it is imported: ZeroDivisionError: by nought"
    said = command("precompile", "--arch", 90, "--op", "its_op")  # which may be the broken package's
    assert said.code == 2
    assert said.err.count("\n") == 1
    assert f"tritensor precompile: {told}" in said.err
    with pytest.warns(UserWarning, match=re.escape(told)):
        said = command("precompile", "--arch", 90, "--op", "relu")
    assert said.code == 0


@on_stub()
def test_where_the_pack_cannot_go(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("precious")
    write_pack(tmp_path / "old.ttpack", {"triton": "2.0"}, [])
    for out, says in [
        (tmp_path, "is a folder"),
        (tmp_path / "notes.txt", "no whole pack"),
        (tmp_path / "old.ttpack", "a pack of Triton 2.0 stands there"),
        (tmp_path / "notes.txt" / "p.ttpack", "cannot be written"),
    ]:
        said = command("precompile", "--arch", 90, "--op", "add", "--out", out)
        assert said.code == 2, said
        assert says in said.err
    assert (tmp_path / "notes.txt").read_text() == "precious"
    os.environ["TRITENSOR_CACHE"] = ""
    said = command("precompile", "--arch", 90, "--op", "add")
    assert said.code == 2
    assert "give --out" in said.err


def test_an_interpreting_process_says_so() -> None:
    said = command("precompile", "--arch", 90, "--op", "add")
    assert said.code == 2
    assert "TRITON_INTERPRET is set" in said.err


def test_the_command_has_help_and_a_version() -> None:
    import tritensor

    assert command("--version").out == f"tritensor {tritensor.__version__}\n"
    said = command("precompile", "--help")
    assert said.code == 0
    for word in ("--arch", "--op", "--script", "--out", "--jobs", "--steps"):
        assert word in said.out
    assert command().code == 2
    assert "invalid choice" in command("precompil").err


def test_the_command_is_installed_with_the_package() -> None:
    import importlib
    import tomllib

    target = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]["tritensor"]
    module, _, name = target.partition(":")
    assert getattr(importlib.import_module(module), name) is command_line.main


def test_architectures_are_read() -> None:
    assert precompile.archs("sm_80,sm_90") == [80, 90]
    assert precompile.archs("90, sm_100,90,sm_90a") == [90, 100]


@pytest.mark.slow
def test_a_lenet_step_is_ready_in_a_minute(tmp_path: Path) -> None:
    """Forward, backward and optimizer of the digits example on device cuda, for one architecture, nothing cached, on two cores."""
    env = environment(TRITENSOR_CACHE=tmp_path / "ours", TRITON_CACHE_DIR=tmp_path / "triton")
    argv: list[Any] = [
        sys.executable,
        "-m",
        "tritensor.tools.command_line",
        "precompile",
        "--arch",
        "sm_90",
        "--jobs",
        "2",
        "--steps",
        "1",
        "--out",
        tmp_path / "p",
    ]
    start = time.perf_counter()
    subprocess.run([*argv, "--script", ROOT / "examples/train_digits.py", "--epochs", "1"], env=env, check=True, cwd=tmp_path, timeout=300)
    took = time.perf_counter() - start
    assert Pack(tmp_path / "p").count > 25
    assert took < 60, f"{took:.0f} s"
