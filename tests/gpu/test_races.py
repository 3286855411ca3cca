"""The same inputs give the same bits: each op's forward and backward twenty times, on samples and on sizes that fill the GPU."""

from __future__ import annotations

import pytest

import tritensor.kernels  # noqa: F401  (fills the table)
from tests.gpu.calls import calls, repeat
from tests.gpu.scale import real, scaled
from tritensor.ops.table import Op, registry

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("op", [pytest.param(op, id=name) for name, op in registry.items() if op.forward is not None])
@pytest.mark.usefixtures("compiled")
def test_twenty_runs_give_the_same_bits(op: Op) -> None:
    findings = [line for call in calls(op, sizes=real()) for line in repeat(call, scaled(20, 2))]
    assert not findings, f"{len(findings)} findings\n" + "\n".join(findings[:20])
