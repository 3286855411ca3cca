"""Walks the op table: every op, in every type it claims, on every device, is asked the six questions."""

from __future__ import annotations

import pytest

import tritensor.kernels  # noqa: F401  (fills the table)
from tests.loops import each
from tritensor.ground.device import device
from tritensor.ops.table import Op, Sample, registry
from tritensor.testing.questions.ask import ask
from tritensor.testing.questions.cases import Case, cases, samples, types, variants

DEVICES = {"cpu": device("cpu"), "emulated": device("cuda", 0)}  # on the GPU: tests/gpu/test_walk.py


FIRST_OF_A_FILE = {op.name for op in {op.module: op for op in reversed(registry.values())}.values()}
# Kernels widen both 16-bit types in the same places, and leave the other two as they are.
TWINS = {"float16": {"bfloat16"}, "float64": {"float32", "bfloat16"}}


def has_twins(op: Op, dtype: str) -> bool:
    """Whether the paths that an op's kernels take in a type are asked in other types already."""
    return dtype in TWINS and TWINS[dtype] <= set(types(op))


def marks(op: Op, dtype: str, on: str) -> list[pytest.MarkDecorator]:
    """On the emulated device a type with twins belongs to the full tier; an op of each file is asked under the oldest Triton too."""
    if on == "emulated" and has_twins(op, dtype):
        return [pytest.mark.slow, pytest.mark.full]
    shown = next((t for t in ("bfloat16", "float32") if t in types(op)), types(op)[0])
    return [pytest.mark.family] if on == "emulated" and op.name in FIRST_OF_A_FILE and dtype == shown else []


def walk(on: str) -> list[object]:
    return [
        pytest.param(op, dtype, on, id=f"{op.name}/{dtype}/{on}", marks=marks(op, dtype, on))
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


def rest(op: Op, index: int, sample: Sample, dtype: str) -> list[str]:
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
@pytest.mark.full
@pytest.mark.parametrize(("op", "dtype"), [
    pytest.param(op, t, id=f"{op.name}/{t}")
    for op in registry.values() for t in types(op) if any(rest(op, i, s, t) for i, s in enumerate(samples(op)))
])  # fmt: skip
def test_every_layout_of_every_sample(op: Op, dtype: str) -> None:
    said = findings(cases(op, dtype, DEVICES["emulated"], rest))
    assert not said, said


@each("op", registry.values(), ids=lambda op: op.name)
def test_samples_say_something(op: Op) -> None:
    found = samples(op)
    assert found, f"{op.name}: no samples"
    if op.rule is not None:
        assert any(s.smooth for s in found), f"{op.name}: it has a gradient, and no sample is smooth"
    for s in found:
        size = sum(getattr(x, "size", 0) for x in s.inputs)
        assert size <= 200_000, f"{op.name}: {s} holds {size} elements; samples are small"
