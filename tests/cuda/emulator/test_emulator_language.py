"""Kernels of the kinds that public Triton code holds give numpy's answers on the emulated device, and compile for sm_90."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import triton
import triton.language as tl

from tests.cuda.emulator import language_kernels  # noqa: F401  # registers its own
from tests.cuda.emulator.cases import CASES, Case
from tritensor.cuda.emulator.sanitizer import SanitizerError
from tritensor.cuda.launch import launch
from tritensor.ground.device import device
from tritensor.ops.array import from_host, to_host

GPU = device("cuda", 0)
ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.kernel.fn.__name__)
def test_what_the_compiler_takes_is_computed(case: Case) -> None:
    args = [from_host(x, GPU) if isinstance(x, np.ndarray) else x for x in case.args]
    launch(case.kernel, case.grid, *args, **case.constants)
    arrays = [to_host(a) for a, x in zip(args, case.args, strict=True) if isinstance(x, np.ndarray)]
    for got, want in zip(arrays[-len(case.want) :], case.want, strict=True):
        eps = 1e-12 if got.dtype == np.float64 else 1e-5
        np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=eps, atol=eps)


@pytest.mark.static
def test_the_compiler_takes_them() -> None:
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"} | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.cuda.emulator.language_kernels"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(len(CASES))]


@triton.jit
def forgets_to_unlock(lock, y):
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(y, tl.load(y) + 1.0)


@triton.jit
def writes_after_unlocking(lock, y):
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.atomic_xchg(lock, 0)
    tl.store(y, tl.load(y) + 1.0)


@triton.jit
def one_of_two_locks(lock, y):
    if tl.program_id(0) == 0:
        while tl.atomic_cas(lock, 0, 1) == 1:
            pass
    tl.store(y, 1.0 + tl.program_id(0))
    tl.atomic_xchg(lock, 0)


@triton.jit
def pointers_past_the_end(x, y, z, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(z + i, tl.load(tl.where(i % 2 == 0, x + i, y + 1000 + i)))


@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        (forgets_to_unlock, "waits for ever: 2000 compare-and-swaps"),
        (writes_after_unlocking, r"stores to y\[0\], which program \(\d+, \d+, \d+\) of this launch stored to as well"),
        (one_of_two_locks, r"stores to y\[0\], which"),
    ],
)
def test_a_lock_that_guards_nothing_is_found(kernel, said: str) -> None:
    with pytest.raises(SanitizerError, match=said):
        launch(kernel, (3,), from_host(np.zeros(1, np.int32), GPU), from_host(np.zeros(1, np.float32), GPU))


def test_each_of_several_tensors_has_its_end() -> None:
    x, y, z = (from_host(np.zeros(8, np.float32), GPU) for _ in range(3))
    with pytest.raises(SanitizerError, match="which is in no live tensor"):
        launch(pointers_past_the_end, (1,), x, y, z, N=8)
