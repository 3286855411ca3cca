"""Every op, in every type it claims and every layout, is asked on the GPU what the walk asks elsewhere: the kernels against numpy."""

from __future__ import annotations

import pytest

import tritensor.kernels  # noqa: F401  (fills the table)
from tritensor.ground.device import device
from tritensor.ops.table import Op, registry
from tritensor.testing.questions.ask import ask
from tritensor.testing.questions.cases import cases, types

pytestmark = pytest.mark.gpu
GPU = device("cuda", 0)


def test_every_kernel_compiles(compiled: str) -> None:
    assert not compiled, compiled


@pytest.mark.parametrize(
    ("op", "dtype"), [pytest.param(op, dtype, id=f"{op.name}/{dtype}") for op in registry.values() for dtype in types(op)]
)
@pytest.mark.usefixtures("compiled")
def test_five_questions(op: Op, dtype: str) -> None:
    findings = [line for case in cases(op, dtype, GPU) for line in ask(case)]
    assert not findings, f"{len(findings)} findings\n" + "\n".join(findings[:40])
