"""Walks the op table: every op, in every type it claims, on every device, is asked the six questions."""

from __future__ import annotations

import functools

import numpy as np
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


def tier_of(op: Op, dtype: str) -> str:
    """Which tier asks an op in a type on the emulated device: the full one where the type has twins; quick in more types than one are the first of
    a file's ops, and in 16 bits those of elements, whose formulas may have a form for them."""
    if has_twins(op, dtype):
        return "full"
    first = "float32" if "float32" in types(op) else types(op)[0]
    also = ("bfloat16", "int64", "bool") if op.name in FIRST_OF_A_FILE else ("bfloat16",) if ".elementwise." in op.module else ()
    return "quick" if dtype == first or dtype in also else "standard"


MARKS = {"quick": [], "standard": [pytest.mark.standard], "full": [pytest.mark.slow, pytest.mark.full]}


def marks(op: Op, dtype: str, on: str) -> list[pytest.MarkDecorator]:
    """An item's tier; an op of each file is asked under the oldest Triton too."""
    if on == "cpu":
        return []
    shown = next((t for t in ("bfloat16", "float32") if t in types(op)), types(op)[0])
    return [*MARKS[tier_of(op, dtype)], *([pytest.mark.family] if op.name in FIRST_OF_A_FILE and dtype == shown else [])]


def walk(on: str) -> list[object]:
    return [
        pytest.param(op, dtype, on, id=f"{op.name}/{dtype}/{on}", marks=marks(op, dtype, on))
        for op in registry.values()
        for dtype in types(op)
    ]


# -- which layouts of a sample each tier asks on the emulated device
WHOLE = 2  # samples of an op that the standard tier asks in every layout; of a later one it asks two, another with each


def standard(op: Op, index: int, sample: Sample, dtype: str) -> list[str]:
    every = variants(op, sample, dtype)
    if index < WHOLE:
        return every
    return [every[index % len(every)]] if len(every) < 3 else [every[0], every[1 + index % (len(every) - 1)]]


def quick(op: Op, index: int, sample: Sample, dtype: str) -> list[str]:
    """A sample of each kind as it is, and the first one in a layout with steps."""
    if index not in of_each_kind(op):
        return []
    every = variants(op, sample, dtype)
    return every[:1] if index else [k for k in every if k in ("plain", "sliced")] or every[:1]


@functools.cache
def of_each_kind(op: Op) -> frozenset[int]:
    """The first samples of each kind: another number of inputs or dimensions, other attributes but for their numbers."""
    found: dict[object, int] = {}
    for index, sample in enumerate(samples(op)):
        inputs = tuple((x.ndim, x.dtype.kind) if isinstance(x, np.ndarray) else type(x) for x in sample.inputs)
        attributes = tuple((name, v if isinstance(v, bool | str | None) else type(v)) for name, v in sorted(sample.attrs.items()))
        found.setdefault((inputs, attributes), index)
    return frozenset(found.values())


def after_quick(op: Op, index: int, sample: Sample, dtype: str) -> list[str]:
    """What the standard tier asks beyond the quick one."""
    asked = quick(op, index, sample, dtype)
    return [layout for layout in standard(op, index, sample, dtype) if layout not in asked]


def after_standard(op: Op, index: int, sample: Sample, dtype: str) -> list[str]:
    """What the full tier asks beyond the standard one."""
    asked = [*quick(op, index, sample, dtype), *standard(op, index, sample, dtype)]
    return [layout for layout in variants(op, sample, dtype) if layout not in asked]


LAYOUTS = {"quick": quick, "standard": lambda *case: [*quick(*case), *after_quick(*case)], "full": None}


def findings(found: list[Case]) -> str:
    lines = [line for case in found for line in ask(case)]
    return f"{len(lines)} findings\n" + "\n".join(lines[:40]) if lines else ""


@pytest.mark.quick
@pytest.mark.parametrize(("op", "dtype", "on"), walk("cpu") + walk("emulated"))
def test_five_questions(op: Op, dtype: str, on: str) -> None:
    said = findings(cases(op, dtype, DEVICES[on], quick if on == "emulated" else None))
    assert not said, said


@pytest.mark.standard
@pytest.mark.parametrize(("op", "dtype"), [
    pytest.param(op, t, id=f"{op.name}/{t}", marks=MARKS["full"] if has_twins(op, t) else [])
    for op in registry.values() for t in types(op) if any(after_quick(op, i, s, t) for i, s in enumerate(samples(op)))
])  # fmt: skip
def test_more_samples(op: Op, dtype: str) -> None:
    said = findings(cases(op, dtype, DEVICES["emulated"], after_quick))
    assert not said, said


@pytest.mark.slow
@pytest.mark.full
@pytest.mark.parametrize(("op", "dtype"), [
    pytest.param(op, t, id=f"{op.name}/{t}")
    for op in registry.values() for t in types(op) if any(after_standard(op, i, s, t) for i, s in enumerate(samples(op)))
])  # fmt: skip
def test_every_layout_of_every_sample(op: Op, dtype: str) -> None:
    said = findings(cases(op, dtype, DEVICES["emulated"], after_standard))
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
