"""`python -m bench imports`: what importing tritensor costs beside numpy and Triton (and torch, where it is installed), and what 300 more ops in the table add."""

from __future__ import annotations

import importlib.util
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROCESSES = 9
_OP = '''"""A dummy op."""

import numpy as np
import triton

from tritensor.kernels.parts.elementwise import elementwise


@triton.jit
def _same(x):
    return x


@triton.jit
def _one(g):
    return g


elementwise("dummy_{k}", _same, _one, np.positive)
'''


def more_ops(folder: Path, count: int) -> Path:
    """A copy of the package in a folder, with `count` more ops, a file each, and their index. Returns where to import it from."""
    tree = folder / "tree"
    for name in ("tritensor", "kernels", "autograd", "nn", "optim"):
        shutil.copytree(ROOT / name, tree / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    dummies = tree / "kernels" / "dummies"
    dummies.mkdir()
    (dummies / "__init__.py").write_text('"""Dummy ops."""\n')
    for k in range(count):
        (dummies / f"dummy_{k}.py").write_text(_OP.replace("{k}", str(k)))
    run([sys.executable, "-m", "tritensor.tools.op_index"], tree)
    return tree


def run(command: list[str], tree: Path = ROOT) -> float:
    """The milliseconds that a program says it took; 0 for one that says nothing. Byte code is cached, as it is for users."""
    env = {k: v for k, v in os.environ.items() if k not in ("TRITON_INTERPRET", "PYTHONDONTWRITEBYTECODE")}
    done = subprocess.run(command, env=env | {"PYTHONPATH": str(tree)}, cwd=tree, capture_output=True, text=True, check=True)
    return float(done.stdout or 0)


def timed(statement: str) -> list[str]:
    """A program that prints how long a statement takes it."""
    return [sys.executable, "-c", f"import time; t = time.perf_counter(); {statement}; print(1000 * (time.perf_counter() - t))"]


def main() -> None:
    """Print medians of alternating processes."""
    with tempfile.TemporaryDirectory() as folder:
        large = more_ops(Path(folder), 300)
        step = (
            "m = t_.nn.Sequential(t_.nn.Linear(8, 16), t_.nn.ReLU(), t_.nn.Linear(16, 4)); o = t_.optim.SGD(m.parameters(), 0.1); "
            "t_.nn.functional.cross_entropy(m(t_.randn(32, 8)), t_.randint(0, 4, (32,))).backward(); o.step()"
        )
        programs = {
            "import numpy, triton": (timed("import numpy, triton"), ROOT),
            "import tritensor": (timed("import tritensor"), ROOT),
            "import tritensor, 300 more ops": (timed("import tritensor"), large),
            "import tritensor, and an op with its gradient": (
                timed("import tritensor as tt; (tt.ones(3, requires_grad=True) * 2).sum().backward()"),
                ROOT,
            ),
            "import tritensor, and a training step": (timed(f"import tritensor as t_; {step}"), ROOT),
        }
        if importlib.util.find_spec("torch") is not None:
            programs["import torch"] = (timed("import torch"), ROOT)
            programs["import torch, and a training step"] = (timed(f"import torch as t_; {step}"), ROOT)
        times: dict[str, list[float]] = {name: [] for name in programs}
        for k in range(PROCESSES + 1):
            for name, (command, tree) in programs.items():
                took = run(command, tree)
                if k:  # the first writes byte code
                    times[name].append(took)
    base = statistics.median(times["import numpy, triton"])
    for name, found in times.items():
        middle = statistics.median(found)
        print(f"{name:48} {middle:7.1f} ms   {middle / base:5.2f} x")


if __name__ == "__main__":
    main()
