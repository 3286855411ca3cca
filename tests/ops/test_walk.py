"""Walks the op table: every op, in every type it claims, on every device, is asked the five questions."""

from __future__ import annotations

import pytest

import tritensor.kernels  # noqa: F401  (fills the table)
from tritensor.device import device
from tritensor.table import Op, Sample, registry
from tritensor.testing.questions.ask import ask
from tritensor.testing.questions.cases import Case, cases, samples, types, variants

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


WHOLE = (
    2  # samples of an op that the quick suite asks in every layout on the emulated device; of a later one it asks two, another with each
)


def quick(op: Op, index: int, sample: Sample, dtype: str) -> list[str]:
    """Layouts that the quick suite asks of a sample."""
    every = variants(op, sample, dtype)
    if index < WHOLE:
        return every
    return [every[index % len(every)]] if len(every) < 3 else [every[0], every[1 + index % (len(every) - 1)]]


def slow(op: Op, index: int, sample: Sample, dtype: str) -> list[str]:
    """The other layouts."""
    asked = quick(op, index, sample, dtype)
    return [layout for layout in variants(op, sample, dtype) if layout not in asked]


def findings(found: list[Case]) -> str:
    lines = [line for case in found for line in ask(case)]
    return f"{len(lines)} findings\n" + "\n".join(lines[:40]) if lines else ""


@pytest.mark.parametrize(("op", "dtype", "on"), walk("cpu") + walk("emulated"))
def test_five_questions(op: Op, dtype: str, on: str) -> None:
    said = findings(cases(op, dtype, DEVICES[on], quick if on == "emulated" else None))
    assert not said, said


@pytest.mark.slow
@pytest.mark.parametrize(("op", "dtype"), [
    pytest.param(op, t, id=f"{op.name}/{t}")
    for op in registry.values() for t in types(op) if any(slow(op, i, s, t) for i, s in enumerate(samples(op)))
])  # fmt: skip
def test_every_layout_of_every_sample(op: Op, dtype: str) -> None:
    said = findings(cases(op, dtype, DEVICES["emulated"], slow))
    assert not said, said


@pytest.mark.parametrize("op", [pytest.param(op, id=name) for name, op in registry.items()])
def test_samples_say_something(op: Op) -> None:
    found = samples(op)
    assert found, f"{op.name}: no samples"
    if op.rule is not None:
        assert any(s.smooth for s in found), f"{op.name}: it has a gradient, and no sample is smooth"
    for s in found:
        size = sum(getattr(x, "size", 0) for x in s.inputs)
        assert size <= 200_000, f"{op.name}: {s} holds {size} elements; samples are small"
