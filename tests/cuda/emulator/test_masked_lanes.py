"""Masked-off lanes of a load without `other` on the emulated device: they hold numbers that show, or, where it is asked for, 0 as on NVIDIA's GPUs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import triton
import triton.language as tl

ROOT = Path(__file__).resolve().parents[3]


@triton.jit
def careless_sum(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y, tl.sum(tl.load(x + i, mask=i < n)))


SCRIPT = """
import tritensor as tt
from tests.cuda.emulator.test_masked_lanes import careless_sum
y = tt.zeros(1, device="cuda")
careless_sum[(1,)](tt.ones(5, device="cuda"), y, 5, BLOCK=8)
print(y.item())
"""


@pytest.mark.parametrize(
    ("asked", "said"), [(None, "nan"), ("poison", "nan"), ("zero", "5.0"), ("one", "TRITENSOR_MASKED_LANES=one: it is poison or zero")]
)
def test_masked_lanes(asked: str | None, said: str) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "TRITENSOR_MASKED_LANES"} | {
        "TRITON_INTERPRET": "1",
        "PYTHONPATH": str(ROOT),
    }
    if asked is not None:
        environment["TRITENSOR_MASKED_LANES"] = asked
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert said in (done.stdout + done.stderr).splitlines()[-1]
