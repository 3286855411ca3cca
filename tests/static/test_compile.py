"""Every kernel of the op table compiled for three generations of GPUs, none of them here: it compiles, spills nothing, reads wide,
and is no worse than the committed table says."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.static import command as static
from bench.static import table as static_table
from tritensor.ops.table import registry

ROOT = Path(__file__).resolve().parent.parent.parent

VIEWS = {
    "copy",
    "add",
    "sum",
    "cat",
    "stack",
    "constant_pad",
    "pad_view",
    "pad_diagonal",
}  # their gradients are views of the incoming one: no kernel

pytestmark = pytest.mark.static


def alone(*command: str) -> subprocess.CompletedProcess[str]:
    """A module in a process of its own: this one interprets its kernels."""
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"} | {"PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, "-m", *command], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="session", params=["changed", pytest.param("all", marks=pytest.mark.full)])
def compiled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What `python -m bench static --quick` found, of what changed since the committed table or of all; its exit code is asked for by the
    tests one reason at a time."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base  # workers of one session: the first compiles, the others wait
    out = shared / f"static-kernels-{request.param}.json"
    with (shared / f"static-kernels-{request.param}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not out.exists():
            done = alone("bench", "static", "--quick", *(["--changed"] if request.param == "changed" else []), "--out", str(out))
            assert out.exists(), done.stderr
    return json.loads(out.read_text())


def offenders(compiled: dict[str, Any], wrong: Callable[[dict[str, Any]], Any]) -> str:
    """One line for each kernel about which `wrong` says something."""
    said = [(k, wrong(k)) for k in compiled["kernels"]]
    return "\n".join(f"{k['key']} sm_{k['arch']}: {what}: {k.get('kernel', '')}" for k, what in said if what)


def test_every_op_can_be_recorded(compiled: dict[str, Any]) -> None:
    assert not compiled["failures"], "\n".join(compiled["failures"])


def test_every_op_and_type_is_compiled(compiled: dict[str, Any]) -> None:
    """Each op that has kernels: forward, and backward where it has one, on all architectures (elementwise: on sm_90 and another); every type it
    takes on one, but that float16 is computed as bfloat16 is."""
    found = {(k["op"], k["corner"], k["arch"]) for k in compiled["kernels"]}
    typed = {(k["op"], k["dtype"]) for k in compiled["kernels"]}
    for op in registry.values():
        if op.forward is None:
            continue
        assert ((op.name, "backward", 90) in found) == (op.backward is not None and op.name not in VIEWS), f"{op.name} backward"
        for corner in ("forward", "backward") if (op.name, "backward", 90) in found else ("forward",):
            missing = [arch for arch in (80, 90, 100) if (op.name, corner, arch) not in found]
            assert len(missing) <= op.broadcasts, f"{op.name} {corner}: nothing compiled for {missing}"
            assert 90 not in missing, f"{op.name} {corner}: nothing compiled for sm_90"
        varies = any(getattr(x, "dtype", None) == "float64" for s in _samples(op) for x in s.inputs)
        lost = {t for t in (op.dtypes if varies else op.dtypes[:1]) if (op.name, t) not in typed}
        assert lost <= ({"float16"} if (op.name, "bfloat16") in typed else set()), f"{op.name}: nothing compiled in {lost}"


def _samples(op: Any) -> Any:
    import numpy as np

    return op.samples(np.random.default_rng(0))


def test_every_launch_compiles(compiled: dict[str, Any]) -> None:
    wrong = offenders(compiled, lambda k: k.get("error"))
    assert not wrong, wrong


def test_nothing_spills_runs_nowhere_or_reads_narrow(compiled: dict[str, Any]) -> None:
    wrong = offenders(compiled, lambda k: "" if "error" in k else "; ".join(static.faults(k)))
    assert not wrong, wrong


def test_large_matrix_products_use_tensor_cores(compiled: dict[str, Any]) -> None:
    """bfloat16 on the timed sizes: warp-group instructions on sm_90, tcgen05 on sm_100."""
    found: dict[int, set[str]] = {80: set(), 90: set(), 100: set()}
    for k in compiled["kernels"]:
        if k["dtype"] == "bfloat16" and k.get("kernel", "").startswith(("_matmul_kernel", "_described_matmul_kernel")):
            found[k["arch"]] |= static_table.parse(k["uses"]).special.keys()
    assert "mma" in found[80], found
    assert "wgmma" in found[90], found
    assert "tcgen05" in found[100], found


def test_no_kernel_is_worse_than_the_committed_table(compiled: dict[str, Any]) -> None:
    path = static_table.path_for(compiled["triton"])
    assert path.exists(), f"{path.name} is missing; make it: python -m bench static --update"
    kernels = compiled["kernels"]
    found = static_table.compare(static_table.load(path), static.rows_of(kernels), [k["key"] for k in kernels])
    _, worse = static.verdict(found, kernels, filtered=False)
    assert not worse, "\n".join([*worse, "to accept: python -m bench static --update, and commit the table"])


def test_planted_kernels_are_seen() -> None:
    """Each pair of tests/static/planted.py, compiled: what got worse is called worse, and nothing else."""
    done = alone("tests.static.planted")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    planted = found["planted"]
    assert planted["same"]["worse"] == planted["same"]["faults"] == []
    assert any("widest load 4 bytes, was 16" in line for line in planted["narrow"]["worse"]), planted["narrow"]
    assert any(line.startswith("spills ") and line.endswith(", was 0") for line in planted["spill"]["worse"]), planted["spill"]
    assert any("SPILLS" in line for line in planted["spill"]["faults"]), planted["spill"]
    assert any("no wgmma any more" in line for line in planted["tensor"]["worse"]), planted["tensor"]
    assert any("does not compile any more" in line and "incompatible" in line for line in planted["broken"]["worse"]), planted["broken"]
    assert "_broken_kernel" in planted["broken"]["faults"][0], planted["broken"]
    assert found["type"]["right"] == []
    assert any("none of the call's pointers is to bfloat16" in line for line in found["type"]["wrong"]), found["type"]
    assert any("loads in the loop" in line and "4 below 16 bytes, was 0" in line for line in planted["scalar"]["worse"]), planted["scalar"]
    assert any(line.startswith("loop of ") for line in planted["work"]["worse"]), planted["work"]
    assert any("more bytes below 16 at a time" in line for line in planted["halves"]["worse"]), planted["halves"]
    assert all(found["decoded"]), found["decoded"]
    assert found["asserts"] == [True, False]
    first, dead, last = found["crash"]
    assert "died" in dead
    assert "error" not in first + last, "a compiler that dies costs its own kernel alone"


def test_the_command_fails_on_a_regression_and_update_accepts_it(tmp_path: Path) -> None:
    table, out = tmp_path / "table.json", str(tmp_path / "out.json")
    command = ["bench", "static", "--op", "add", "--dtype", "float32", "--arch", "90", "--out", out, "--table", str(table)]
    made = alone(*command, "--update")
    assert made.returncode == 0, made.stdout + made.stderr
    rows = static_table.load(table)
    key = "add forward float32 size0 _kernel"
    better = {90: static_table.parse("8r 32/32 16x4 wgmma:2")}
    static_table.save(
        table,
        {**rows, key: better, "add forward float32 size77 _kernel": better, "mul forward float32 size0 _kernel": better},
        "3.9.0",
        None,
    )
    failed = alone(*command)
    assert failed.returncode == 1, failed.stdout
    assert f"{key} sm_90: no wgmma any more, had 2" in failed.stdout
    assert "1 of the table are launched no more (add forward float32 size77 _kernel)" in failed.stdout
    assert "python -m bench static --update" in failed.stdout
    assert alone(*command, "--update").returncode == 0
    accepted = alone(*command)
    assert accepted.returncode == 0, accepted.stdout
    assert static_table.load(table) == {**rows, "mul forward float32 size0 _kernel": better}, "a filtered update leaves the rest alone"
