"""An author's package, written to a folder: one op of a formula, kernels beside it, and its tests in two lines."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OPS = '''"""own_isru: x / sqrt(1 + x^2)."""

import numpy as np
import triton

from tritensor.kernels.parts import maths
from tritensor.kernels.parts.cpu.blocks import blocked
from tritensor.kernels.parts.elementwise import elementwise
from tritensor.kernels.parts.pointwise_samples import Domain


@triton.jit
def _isru(x):
    return maths.div(x, maths.sqrt(1.0 + x * x))


@triton.jit
def _isru_grad(g, x):
    return maths.div(g, (1.0 + x * x) * maths.sqrt(1.0 + x * x))


def _isru_block(x, out):
    np.multiply(x, x, out=out)
    out += 1
    np.sqrt(out, out=out)
    np.divide(x, out, out=out)


elementwise("own_isru", _isru, _isru_grad, blocked(_isru_block), kinds=("float",), domain=Domain(-3.0, 3.0))
'''


def written(folder: Path, ops: str = OPS, conftest: str = "") -> Path:
    """The package in a folder: my_package/ops.py, conftest.py, test_my_ops.py."""
    package = folder / "my_package"
    package.mkdir()
    (package / "__init__.py").write_text("from my_package import ops as ops\n")
    (package / "ops.py").write_text(ops)
    (folder / "conftest.py").write_text(conftest + 'pytest_plugins = ["tritensor.testing.pytest_plugin"]\n')
    (folder / "test_my_ops.py").write_text('import tritensor.testing\n\ntest_ops = tritensor.testing.ask("my_package")\n')
    return folder


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command of Python's in that folder, as its author types it: device cuda is not emulated by the shell."""
    env = {k: v for k, v in os.environ.items() if k not in ("TRITON_INTERPRET", "PYTHONPATH") and not k.startswith("PYTEST")}
    env["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(folder)])
    return subprocess.run([sys.executable, *arguments], cwd=folder, env=env, capture_output=True, text=True, timeout=300)
