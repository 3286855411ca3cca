"""The index of ops: true, and what makes an import as cheap with many ops as with few."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tritensor.kernels
from bench.cpu.imports import more_ops

ROOT = Path(__file__).resolve().parents[2]


def said(code: str, tree: Path = ROOT) -> str:
    """What a program prints that runs in a process of its own."""
    env = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"} | {"PYTHONPATH": str(tree)}
    done = subprocess.run([sys.executable, "-c", code], env=env, cwd=tree, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_index_is_fresh() -> None:
    written = (Path(tritensor.kernels.__file__).parent / "op_index.py").read_text()
    assert said("from tritensor.tools.op_index import text; print(text())") == written.strip(), "run python -m tritensor.tools.op_index"


def test_importing_loads_no_op_and_no_triton() -> None:
    code = "import sys, tritensor; print([m for m in sys.modules if m == 'triton' or m.startswith('tritensor.kernels.')])"
    assert said(code) == "['tritensor.kernels.op_index']"


def test_an_op_loads_its_file_and_what_that_needs() -> None:
    code = "import sys, tritensor as tt; tt.relu(tt.ones(2)); print(*[m for m in sys.modules if m.startswith('tritensor.kernels.')])"
    loaded = said(code).split()
    assert "tritensor.kernels.elementwise.activations" in loaded
    assert not [m for m in loaded if ".convolution" in m or ".losses" in m or ".optimizers" in m]


@pytest.mark.slow
def test_three_hundred_more_ops_are_not_loaded_until_asked_for(tmp_path: Path) -> None:
    tree = more_ops(tmp_path, 300)
    modules = "sorted(m for m in sys.modules if m.startswith('tritensor'))"
    assert said(f"import sys, tritensor; print({modules})", tree) == said(f"import sys, tritensor; print({modules})")
    code = "import tritensor as tt; from tritensor.ops.table import registry; print(tt.ops.dummy_7(tt.ones(2)).tolist(), len(registry))"
    values, _, count = said(code, tree).rpartition(" ")
    assert values == "[1.0, 1.0]"
    assert int(count) == 300 + int(said("from tritensor.ops.table import registry; print(len(registry))"))


def test_an_op_in_a_file_that_the_index_lacks_is_found(tmp_path: Path) -> None:
    tree = more_ops(tmp_path, 2)
    (tree / "kernels" / "op_index.py").write_text((ROOT / "kernels" / "op_index.py").read_text())
    assert said("import tritensor as tt; print(tt.ops.dummy_1(tt.ones(2)).tolist())", tree) == "[1.0, 1.0]"


def test_a_name_of_the_index_is_taken_before_its_file_is_loaded() -> None:
    code = """
import tritensor as tt
try:
    tt.op("tanh", lambda x: x, shape=lambda x: tt.Spec(x.shape, x.dtype), samples=lambda rng: [], view=True, differentiable=False)
except tt.RegistrationError as error:
    print(error)
"""
    assert "the name is taken by tritensor itself (tritensor.kernels.elementwise.transcendental); write replace=True" in said(code)


def test_a_stale_index_is_told_from_a_fresh_one(tmp_path: Path) -> None:
    tree = more_ops(tmp_path, 1)
    path = tree / "kernels" / "op_index.py"
    path.write_text(path.read_text().replace('dummy_0"', 'dummy_1"'))
    with pytest.raises(AssertionError, match="stale"):
        said(
            "import sys; sys.argv = ['x', '--check']; import runpy; runpy.run_module('tritensor.tools.op_index', run_name='__main__')", tree
        )


def test_ops_are_listed_for_completion_and_none_is_loaded() -> None:
    code = "import sys, tritensor as tt; print('softmax' in dir(tt.ops), len(dir(tt.ops)) > 300, 'triton' in sys.modules)"
    assert said(code) == "True True False"
