"""The plug-in for pytest: a package of somebody else's asks its ops in two lines, on a machine without a GPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.testing.author import OPS, run, written
from tritensor.ops.table import registry
from tritensor.ops.table.op_selection import UnknownOpError
from tritensor.testing import ask

PYTEST = ("-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", "-v", "--tb=short")


def test_a_package_asks_its_ops(tmp_path: Path) -> None:
    done = run(written(tmp_path), *PYTEST)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "tritensor: device cuda is the emulated one" in done.stdout
    items = [f"own_isru-{kind}-{where}" for kind in ("float16", "bfloat16", "float32", "float64") for where in ("cpu", "emulated")]
    assert [i for i in items if f"test_ops[{i}] PASSED" in done.stdout] == items
    assert "8 passed" in done.stdout


def test_what_is_wrong_is_told_with_the_authors_line(tmp_path: Path) -> None:
    done = run(written(tmp_path, OPS.replace("(1.0 + x * x) *", "(1.5 + x * x) *")), *PYTEST, "-k", "float64-cpu or float32-emulated")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 failed, 1 passed" in done.stdout
    assert "own_isru: rule_is_derivative: " in done.stdout
    assert "; see _isru_grad in ops.py:" in done.stdout


def test_kernels_that_were_imported_too_early_are_said_to_be(tmp_path: Path) -> None:
    done = run(written(tmp_path, conftest="import my_package\n"), *PYTEST)
    assert done.returncode == 4
    assert "kernels were imported before device cuda could be emulated; set TRITON_INTERPRET=1" in done.stderr


def items(test: object) -> list[str]:
    return [p.id for mark in test.pytestmark for p in mark.args[1]]  # type: ignore[attr-defined]


def test_what_is_asked_can_be_named_in_every_way(tmp_path: Path) -> None:
    assert items(ask("softmax", dtypes="float32")) == ["softmax-float32-cpu", "softmax-float32-emulated"]
    assert items(ask(["tan?", "argmax"], dtypes=["float32"], devices="cpu")) == ["tanh-float32-cpu", "argmax-float32-cpu"]
    assert items(ask(registry["tanh"], dtypes="float64", devices="cuda")) == ["tanh-float64-emulated"]
    assert "log_softmax-float32-cpu" in items(ask("tritensor.kernels.normalization.softmax", dtypes="float32"))
    with pytest.raises(UnknownOpError, match="no op is called 'softmx'; did you mean softmax"):
        ask("softmx")
    with pytest.raises(UnknownOpError, match=r"numpy \(__init__.py\) registers no op"):
        ask(np.__name__)
