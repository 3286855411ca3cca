"""The note on lines of an op that no sample runs."""

from __future__ import annotations

from pathlib import Path

from tests.testing.author import run

COMMAND = ("-m", "tritensor.testing", "my_ops.py")
OPS = '''"""halved: x / 2, in two ways."""

import numpy as np
import triton
import triton.language as tl

import tritensor as tt
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.copying import to_c_order


@triton.jit
def _kernel(x, y, n, LONG: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    if LONG:
        v = v * 0.25
        v = v * 2
    else:
        v = (
            v
            * 0.5
        )
    tl.store(y + i, v, mask=i < n)


def _halved(x):
    if x.ndim > 9:
        raise tt.ShapeError("halved: too many dimensions")
    y = allocate(x.shape, x.dtype, x)
    tt.launch(_kernel, (triton.cdiv(x.size, 16),), to_c_order(x), y, x.size, LONG=x.size > 99, BLOCK=16)
    return y


tt.op("halved", lambda x: x / np.array(2, x.dtype), shape=lambda x: tt.Spec(x.shape, x.dtype), forward=_halved, rule=lambda g: tt.ops.mul(g, 0.5),
      backward=_halved, samples=lambda rng: [tt.Sample(rng.normal(size=n)) for n in SIZES])
'''


def test_a_branch_that_no_sample_takes_is_noted(tmp_path: Path) -> None:
    (tmp_path / "my_ops.py").write_text(OPS + "SIZES = (5, 40)\n")
    done = run(tmp_path, *COMMAND)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("note: no sample runs") == 1
    assert "note: no sample runs my_ops.py:17: v = v * 0.25\n" in done.stdout


def test_of_samples_that_reach_all_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "my_ops.py").write_text(OPS + "SIZES = (5, 140)\n")
    done = run(tmp_path, *COMMAND)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "note" not in done.stdout


def test_a_corner_that_looks_at_values_is_noted(tmp_path: Path) -> None:
    looking = OPS.replace("    y = allocate", "    if to_host(x).size:\n        pass\n    y = allocate", 1)
    (tmp_path / "my_ops.py").write_text(
        looking.replace("import triton\n", "import triton\nfrom tritensor.ops.array import to_host\n", 1) + "SIZES = (5, 140)\n"
    )
    done = run(tmp_path, *COMMAND, "--dtype", "float32", "float64")
    assert "note" not in done.stdout, done.stdout + done.stderr  # not all was asked
    done = run(tmp_path, *COMMAND)
    assert "note: halved forward: it reads device memory from the host; so each call runs its Python" in done.stdout
