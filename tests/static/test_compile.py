"""Every kernel of the op table compiled for three generations of GPUs, none of them here: it compiles, spills nothing, reads wide."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent

# (op, corner, architecture or 0 for all): why a few spilled bytes are right
SPILLS: dict[tuple[str, str, int], str] = {}

pytestmark = pytest.mark.static


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What tests/static/launches.py found, in a process of its own: this one interprets its kernels."""
    out = tmp_path_factory.mktemp("static") / "kernels.json"
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"} | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "tests.static.launches", str(out)], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(out.read_text())


def offenders(compiled: dict[str, Any], wrong: Callable[[dict[str, Any]], Any]) -> str:
    """One line for each kernel about which `wrong` says something."""
    lines = []
    for k in compiled["kernels"]:
        said = wrong(k)
        if said:
            lines.append(f"{k['op']} {k['corner']} {k['dtype']} sm_{k['arch']}: {said}: {k.get('kernel', '')}")
    return "\n".join(lines)


def test_every_op_can_be_recorded(compiled: dict[str, Any]) -> None:
    assert not compiled["failures"], "\n".join(compiled["failures"])
    assert {k["arch"] for k in compiled["kernels"]} == {80, 90, 100}


def test_every_launch_compiles(compiled: dict[str, Any]) -> None:
    wrong = offenders(compiled, lambda k: k.get("error"))
    assert not wrong, wrong


def test_nothing_spills(compiled: dict[str, Any]) -> None:
    def spills(k: dict[str, Any]) -> str | None:
        if not k.get("spilled") or {(k["op"], k["corner"], k["arch"]), (k["op"], k["corner"], 0)} & SPILLS.keys():
            return None
        return f"spills {k['spilled']} bytes at {k['registers']} registers"

    wrong = offenders(compiled, spills)
    assert not wrong, wrong


def test_shared_memory_fits(compiled: dict[str, Any]) -> None:
    most = {80: 163 * 1024, 90: 227 * 1024, 100: 227 * 1024}  # bytes a block may have
    wrong = offenders(compiled, lambda k: k.get("shared", 0) > most[k["arch"]] and f"needs {k['shared']} bytes of shared memory")
    assert not wrong, wrong


def test_elementwise_accesses_are_wide(compiled: dict[str, Any]) -> None:
    """On an op's timed sizes: 128 bits (or 8 elements, a thread's share of a tile) of the widest element type, as many of the others."""

    def narrow(k: dict[str, Any]) -> str | None:
        if "error" in k or not (k["elementwise"] and k["timed"] and k["loads"] and k["stores"]):
            return None
        smallest, largest = k["pointers"][0], k["pointers"][-1]
        elements = min(16 // largest, 8)
        loads, stores = (max(int(w) for w in k[side]) for side in ("loads", "stores"))
        wide = max(loads, stores) >= 8 * elements * largest and min(loads, stores) >= 8 * elements * smallest
        return None if wide else f"widest load {loads}, widest store {stores} bits"

    wrong = offenders(compiled, narrow)
    assert not wrong, wrong


def test_large_matrix_products_use_tensor_cores(compiled: dict[str, Any]) -> None:
    """bfloat16 on the timed sizes: warp-group instructions on sm_90, tcgen05 on sm_100."""
    found = {arch: set() for arch in (80, 90, 100)}  # type: dict[int, set[str]]
    for k in compiled["kernels"]:
        if k["dtype"] == "bfloat16" and k.get("kernel", "").startswith("_matmul_kernel"):
            found[k["arch"]] |= set(k["tensor"])
    assert "mma.sync" in found[80], found
    assert "wgmma.mma_async" in found[90], found
    assert "tcgen05.mma" in found[100], found
