"""check and findings: ops named in every way, findings told once with a count, bad arguments refused, nothing loaded that is not asked for."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tritensor.ground.errors import ArgumentError, DeviceError, DTypeError
from tritensor.ops.replay import Corner
from tritensor.ops.table import registry
from tritensor.ops.table.op_selection import UnknownOpError
from tritensor.testing import check, findings
from tritensor.testing.questions.question import Finding
from tritensor.testing.report import Report, kind

ROOT = Path(__file__).resolve().parents[2]


def test_ops_that_hold() -> None:
    assert check(["tanh", registry["argmax"]], dtypes=["float32"]) is None
    assert check("softmax", dtypes="float64", devices="cpu", layouts=["plain", "sliced"]) is None


def test_a_finding_is_told_once_with_a_count() -> None:
    wrong = replace(registry["tanh"], forward=Corner(lambda x, out=None: registry["sin"].forward(x, out=out)), keep_cache={})
    report = findings(wrong, dtypes="float32", devices="cuda", layouts=["plain"])
    assert len(report.findings) > 12
    assert len(report.lines()) < len(report.findings) / 3
    with pytest.raises(
        AssertionError,
        match=r"tanh: forward, user_calls: 5 of 6 cases, first tanh/0/float32/plain/cuda: y: got .*; stored by _kernel, program",
    ):
        check(wrong, dtypes="float32", devices="emulated", layouts=["plain"])


@pytest.mark.parametrize(("one", "other", "same"), [
    ("y: 3 of 15 elements differ; at [0, 2] got nan, expected 2.5e-07 (allowed 4e-06 relative)", "y: 1 of 7 elements differ; at [4] got -inf, expected 2 (allowed 1 relative)", True),
    ("dtype float32, expected float16", "dtype float64, expected bfloat16", True),
    ("y: got 1; stored by k, program (0, 0, 0), a.py:3: tl.store(y)", "y: got 1; stored by k, program (7, 0, 0), a.py:3: tl.store(y)", True),
    ("y: got 1; stored by k, program (0, 0, 0), a.py:3: tl.store(y)", "y: got 1; stored by k, program (0, 0, 0), a.py:4: tl.store(y)", False),
    ("y: got 1", "gradient of x: got 1", False),
])  # fmt: skip
def test_what_is_of_one_kind(one: str, other: str, same: bool) -> None:
    assert (kind(Finding("op", "op/0", "forward", one)) == kind(Finding("op", "op/1", "forward", other))) is same


def test_a_report_counts_cases() -> None:
    report = Report()
    for case in range(4):
        report.add("op", f"op/{case}", [Finding("op", f"op/{case}", "forward", f"y: got {case}")] if case else [])
    assert report.lines() == ["op: forward: 3 of 4 cases, first op/1: y: got 1"]


def test_samples_that_say_nothing_are_a_finding() -> None:
    op = registry["tanh"]
    assert "tanh: samples: there are none" in findings(replace(op, samples=lambda rng: []), devices="cpu").lines()[0]
    large = replace(op, samples=lambda rng: [type(s)(np.zeros(300_000)) for s in op.samples(rng)[:1]], dtypes=("float32",))
    assert any("holds 300000 elements" in line for line in findings(large, devices="cpu").lines())


def test_what_cannot_be_asked_is_refused() -> None:
    with pytest.raises(UnknownOpError, match="no op is called 'tahn'; did you mean"):
        check("tahn")
    with pytest.raises(DTypeError, match="tanh does not claim int32; its record says"):
        check("tanh", dtypes="int32")
    with pytest.raises(DeviceError, match="device 'tpu' is none of cpu, emulated, gpu and cuda"):
        check("tanh", devices="tpu")
    with pytest.raises(ArgumentError, match="layout 'diagonal' is none of plain, transposed"):
        check("tanh", layouts=["diagonal"])


def test_comparing_tensors_loads_no_question() -> None:
    code = (
        "import sys, tritensor as tt; from tritensor.testing import assert_close, make_tensor; "
        "assert_close(tt.ones(3), tt.ones(3)); "
        "bad = [m for m in sys.modules if m.startswith(('tritensor.testing.questions', 'pytest', 'tritensor.testing.op_check'))]; "
        "assert not bad, bad; assert callable(tt.testing.check)"
    )
    env = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"} | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
