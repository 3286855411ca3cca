"""Walks the op table: every op that takes complex numbers is asked for its gradient, and that gradient's gradient."""

from __future__ import annotations

import pytest

import tritensor.kernels  # noqa: F401  (fills the table)
from tritensor.ops.table import Op, registry
from tritensor.testing.questions.complex_numbers import complex_samples, gradient_findings

TAKING = [pytest.param(op, id=name) for name, op in registry.items() if complex_samples(op)]


@pytest.mark.parametrize("op", TAKING)
def test_gradients_by_complex_numbers(op: Op) -> None:
    findings = [f"{s!r}: {line}" for s in complex_samples(op) for line in gradient_findings(op, s)]
    assert not findings, "\n".join(findings[:20])
