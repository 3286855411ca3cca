"""Tapes compiled for three generations of GPUs: nothing spills, accesses are wide, and no step is contracted with another, which no emulator shows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
ARCHS = (80, 90, 100)
pytestmark = pytest.mark.static


@pytest.fixture(scope="module")
def kernels() -> dict[tuple[str, str, int], dict[str, Any]]:
    """What stands in each tape's machine code, by its name, type and architecture."""
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"} | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "ignore", "-m", "tests.static.tapes"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return {(k["name"], k["dtype"], k["arch"]): k for k in found}


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_a_product_reads_and_writes_as_before(kernels: dict[tuple[str, str, int], dict[str, Any]], dtype: str, arch: int) -> None:
    """Beside an epilogue: what is like the product in 128 bits, else no width that the bias has not, but of a value of each row; the loop as it was."""
    of = {name: found for (name, kind, on), found in kernels.items() if beside_a_product(name) and (kind, on) == (dtype, arch)}
    plain, alone = of.pop("product"), of["product, gelu of nine"]
    assert len(of) == 5
    for name, found in of.items():
        assert set(found["stores"]) <= {"128"}, name
        assert set(found["loads"]) <= {"128", *plain["loads"], *(["16", "32"] if "row" in name else [])}, name
        assert found["tensor"].keys() == plain["tensor"].keys(), name
        assert found["loop"] <= plain["loop"], name
    own = of["product, residual"]["loads"]["128"] - alone["loads"].get("128", 0)
    assert own in (8, 16)  # of a thread's 64 or 128 elements
    assert own == of["product, gate"]["loads"]["128"] - alone["loads"].get("128", 0)


def multiply_adds(kernel: dict[str, Any], kind: str) -> int:
    """Those of a kernel, of pairs two."""
    codes = kernel["codes"]
    return int(codes.get("DFMA", 0) if kind == "float64" else codes.get("FFMA", 0) + 2 * codes.get("FFMA2", 0))


def beside_a_product(name: str) -> bool:
    """Whether a tape is a product's epilogue, or the product without one."""
    return name == "product" or name.startswith("product, ")


def test_nothing_spills(kernels: dict[tuple[str, str, int], dict[str, Any]]) -> None:
    assert not [k for k, found in kernels.items() if found["spilled"]]
    assert not [k for k, found in kernels.items() if found["registers"] > 128 and not beside_a_product(k[0])]


def test_accesses_are_wide(kernels: dict[tuple[str, str, int], dict[str, Any]]) -> None:
    """128 bits each, but for what a row has one of: a result, written once."""
    for key, found in kernels.items():
        if beside_a_product(key[0]):
            continue
        narrow = {w: n for w, n in {**found["loads"], **found["stores"]}.items() if w != "128"}
        if ": " in key[0]:
            peeled = key[0].endswith(("4095", "50257"))  # rows that begin between boundaries
            assert "128" in found["loads"] if peeled else set(found["loads"]) == {"128"}, key
            assert "128" in found["stores"] or "cross entropy" in key[0], key
        else:
            assert not narrow, key


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", ["product and sum", "product and difference"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_product_and_a_sum_round_apart(kernels: dict[tuple[str, str, int], dict[str, Any]], dtype: str, name: str, arch: int) -> None:
    found = kernels[name, dtype, arch]
    assert multiply_adds(found, dtype) == 0
    assert not [code for code in found["ptx"] if code.startswith("fma")]


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", ["product and sum", "product and difference"])
def test_and_so_they_do_in_16_bits(kernels: dict[tuple[str, str, int], dict[str, Any]], name: str, arch: int) -> None:
    """Each of both ways, whole tiles and edges, has eight elements: four pairs of each operation, where one contracted would be four in all."""
    (operation,) = {"product and sum": ["add"], "product and difference": ["sub"]}[name]
    assert kernels[name, "float16", arch]["ptx"] == {"mul.rn.f16x2": 8, f"{operation}.rn.f16x2": 8}
    assert kernels[name, "bfloat16", arch]["ptx"] == {"fma.rn.bf16x2": 16}


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float64"])
def test_formulas_keep_their_own_multiply_adds_and_get_no_more(
    kernels: dict[tuple[str, str, int], dict[str, Any]], dtype: str, arch: int
) -> None:
    def of(name: str) -> int:
        return multiply_adds(kernels[name, dtype, arch], dtype)

    assert of("composed twice") == of("silu") + of("gelu")
    assert of("gelu of nine") == of("tanh") > 0


def test_roundings_cost_little(kernels: dict[tuple[str, str, int], dict[str, Any]]) -> None:
    """Instructions of the longest way on sm_90: nine kernels have about 500."""
    assert kernels["gelu of nine", "float32", 90]["longest"] <= 230
    assert kernels["gelu of nine", "bfloat16", 90]["longest"] <= 240
    assert kernels["layer norm: 16384 x 768", "bfloat16", 90]["longest"] <= 400
