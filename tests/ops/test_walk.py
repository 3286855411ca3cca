"""Walks the op table: every op, in every type it claims, on every device, is asked the five questions."""

from __future__ import annotations

import pytest

import tritensor.kernels  # noqa: F401  (fills the table)
from tests.harness.cases import cases, samples, types
from tests.harness.questions import ask
from tritensor.device import device
from tritensor.table import Op, registry

DEVICES = {"cpu": device("cpu"), "emulated": device("cuda", 0)}  # on the GPU: tests/gpu/test_walk.py


def walk(on: str) -> list[object]:
    """On the emulated device float16 is asked by the slow tests where bfloat16 is asked by the quick ones: kernels widen both in the same places."""
    return [
        pytest.param(
            op,
            dtype,
            on,
            id=f"{op.name}/{dtype}/{on}",
            marks=[pytest.mark.slow] if on == "emulated" and dtype == "float16" and "bfloat16" in types(op) else [],
        )
        for op in registry.values()
        for dtype in types(op)
    ]


@pytest.mark.parametrize(("op", "dtype", "on"), walk("cpu") + walk("emulated"))
def test_five_questions(op: Op, dtype: str, on: str) -> None:
    findings = [line for case in cases(op, dtype, DEVICES[on]) for line in ask(case)]
    assert not findings, f"{len(findings)} findings\n" + "\n".join(findings[:40])


@pytest.mark.parametrize("op", [pytest.param(op, id=name) for name, op in registry.items()])
def test_samples_say_something(op: Op) -> None:
    found = samples(op)
    assert found, f"{op.name}: no samples"
    if op.rule is not None:
        assert any(s.smooth for s in found), f"{op.name}: it has a gradient, and no sample is smooth"
    for s in found:
        size = sum(getattr(x, "size", 0) for x in s.inputs)
        assert size <= 200_000, f"{op.name}: {s} holds {size} elements; samples are small"
