"""check: an op of the table, of a file or a plug-in is asked every question, in its types, on the CPU and on device cuda."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import numpy as np

import tritensor.kernels  # noqa: F401  (fills the table)
from tritensor.ground.device import cpu
from tritensor.ground.dtypes import DType, as_dtype
from tritensor.ground.errors import ArgumentError, DTypeError
from tritensor.ops.replay import Corner
from tritensor.ops.table import Op, Sample
from tritensor.ops.table.op_selection import select_ops
from tritensor.testing.devices import places
from tritensor.testing.questions.ask import questions_for
from tritensor.testing.questions.cases import Case, cases, copy_inputs, outputs, samples, types, variants
from tritensor.testing.questions.complex_numbers import complex_samples, gradient_findings
from tritensor.testing.questions.layouts import SHAPED, STRIDED
from tritensor.testing.questions.question import Finding, answers
from tritensor.testing.report import Report

LARGEST = 200_000  # elements of a sample: what is small is asked often


def check(
    op: str | Op | Sequence[str | Op],
    *,
    dtypes: Iterable[str | DType] | str | DType | None = None,
    devices: Iterable[str] | str | None = None,
    layouts: Iterable[str] | None = None,
    extremes: bool = False,
) -> None:
    """Ask ops every question of CONTRIBUTING.md; return if all holds.

    Args:
        op: a record, a name ("softmax"), a pattern ("conv*"), a file that registers ops ("my_ops.py"), or a sequence of these.
        dtypes: types to ask in, of those that the op claims; all of them when left out. Derivatives are asked in float64.
        devices: "cpu", "cuda" (or, to be sure, "emulated" or "gpu"); the CPU and device cuda when left out.
        layouts: "plain", "transposed", "rotated", "sliced", "reversed", "broadcast", "empty", "zerodim"; all that a sample allows when left out.
        extremes: also put NaN, infinities and 1e4 into the samples, one at a time: the kernel is NaN, infinite and finite where the reference is.

    Raises:
        AssertionError: what does not hold, each kind of finding once: how often, the first case, the line of the kernel.
        UnknownOpError: a name that is no op. DTypeError, DeviceError, ArgumentError: a type, device or layout that there is not.
    """
    __tracebackhide__ = True  # pytest shows the caller's line
    report = findings(op, dtypes=dtypes, devices=devices, layouts=layouts, extremes=extremes)
    if report:
        lines = report.lines()
        raise AssertionError(f"{len(report.findings)} findings, {len(lines)} of them told\n" + "\n".join(lines))


def findings(
    op: str | Op | Sequence[str | Op],
    *,
    dtypes: Iterable[str | DType] | str | DType | None = None,
    devices: Iterable[str] | str | None = None,
    layouts: Iterable[str] | None = None,
    extremes: bool = False,
) -> Report:
    """What `check` would complain of, as a Report: `findings` one by one, `lines()` with each kind once. The same arguments."""
    on, only = places(devices), check_layouts(layouts)
    report = Report()
    for record in records(op):
        for dtype in select_types(record, dtypes):
            for place in on:
                report.merge(ask_op(record, dtype, place, only, extremes))
        report.merge(check_samples(record))
        if "cpu" in on:
            report.merge(check_complex_numbers(record))
    return report


def records(op: str | Op | Sequence[str | Op]) -> list[Op]:
    """The ops that are meant. Raises UnknownOpError."""
    given = [op] if isinstance(op, str | Op) else list(op)
    return [record for one in given for record in ([one] if isinstance(one, Op) else select_ops([one]))]


def select_types(op: Op, dtypes: Iterable[str | DType] | str | DType | None) -> tuple[str, ...]:
    """The types to ask an op in. Raises DTypeError for one that it does not claim."""
    every = types(op)
    if dtypes is None:
        return every
    names = [as_dtype(d).name for d in ([dtypes] if isinstance(dtypes, str | DType) else dtypes)]
    for name in names:
        if name not in op.dtypes:
            raise DTypeError(f"testing: {op.name} does not claim {name}; its record says dtypes={op.dtypes}")
    return tuple(n for n in names if n in every)  # a type that no sample can take is asked once, not refused


def check_layouts(layouts: Iterable[str] | None) -> frozenset[str] | None:
    """The layouts to ask, None for all. Raises ArgumentError for one that is none."""
    if layouts is None:
        return None
    names = frozenset([layouts] if isinstance(layouts, str) else layouts)
    if unknown := sorted(names - {*STRIDED, *SHAPED}):
        raise ArgumentError(f"testing: layout {unknown[0]!r} is none of {', '.join((*STRIDED, *SHAPED))}")
    return names


def ask_op(op: Op, dtype: str, place: str, layouts: frozenset[str] | None = None, extremes: bool = False) -> Report:
    """The questions asked of an op in one type on one device, by its name."""

    def some(record: Op, index: int, sample: Sample, kind: str) -> list[str]:
        return [k for k in variants(record, sample, kind) if layouts is None or k in layouts]

    report = Report()
    for case in cases(op, dtype, places(place)[place], some):
        for question in questions_for(case, extremes):
            report.add(op.name, repr(case), question(case))
    return report


def check_samples(op: Op) -> Report:
    """True where an op's samples can show anything: there are some, the same at each call, one is smooth where there is a gradient, all are small;
    and whether what draws heeds its seed and offset."""
    report, found = Report(), samples(op)
    lines = [] if found else ["there are none; the record's samples= gives calls to ask"]
    if found and op.rule is not None and not any(s.smooth for s in found):
        lines.append("there is a gradient, and no sample is smooth; leave smooth=False out where derivatives exist")
    sizes = [sum(getattr(x, "size", 0) for x in s.inputs) for s in found]
    lines += [f"{s} holds {n} elements; samples hold at most {LARGEST}" for s, n in zip(found, sizes, strict=True) if n > LARGEST]
    lines += [f"{a} is another at the next call; draw from the rng that samples= is given" for a, b in zip(found, samples(op), strict=False)
              if not _are_alike(a, b)][:1]  # fmt: skip
    report.findings += [Finding(op.name, op.name, "samples", line) for line in lines + _find_unheeded(op, found)]
    return report


def _are_alike(a: Sample, b: Sample) -> bool:
    """True where two samples hold the same arrays."""
    return all(
        np.array_equal(x, y, equal_nan=x.dtype.kind in "fc") for x, y in zip(a.inputs, b.inputs, strict=False) if isinstance(x, np.ndarray)
    )


def _find_unheeded(op: Op, found: Sequence[Sample]) -> list[str]:
    """What a reference that draws is told and does not heed: the numbers are the same for another seed, or another offset, in every sample."""
    drawing = [s for s in found if {"seed", "offset"} <= set(s.attrs)]
    if op.mutates or not drawing:  # a counter that is moved in place is heeded by another question
        return []
    lines = []
    for name in ("seed", "offset"):
        changed = [not _has_same_results(op, s, name) for s in drawing]
        if not any(changed):
            lines.append(
                f"another {name} gives the same numbers, in all {len(drawing)} samples: calls that follow one another would draw alike"
            )
    return lines


def _has_same_results(op: Op, sample: Sample, name: str) -> bool:
    """True where a call gives what it gives with another seed, or another offset."""
    case = Case(op, 0, sample, types(op)[0], "plain", cpu)
    attrs = case.attrs(cpu)
    # Far from the sample's own: offsets near by overlap.
    others = outputs(op, op.cpu, tuple(copy_inputs(case.values)), {**attrs, name: (attrs[name] + 12_345) % 2**62})
    return all(np.array_equal(a, b) for a, b in zip(case.expected, others, strict=True))


def find_unrecorded(op: Op) -> list[str]:
    """The corners of an op of which a call was asked and could not be recorded, and why."""
    corners = (op.forward, *(op.backward.functions if op.backward is not None else ()))
    # A bare function is never recorded, and says no reason.
    return [f"{c.name}: {c.unrecorded}" for c in corners if isinstance(c, Corner) and c.unrecorded]


def check_complex_numbers(op: Op) -> Report:
    """The gradients of an op that takes complex numbers, on the CPU."""
    report = Report()
    for case, ask in complex_questions(op):
        report.add(f"{op.name} of complex numbers", case, [Finding(op.name, case, "complex_gradients", line) for line in answers(ask)])
    return report


def complex_questions(op: Op) -> Iterator[tuple[str, Callable[[], list[str]]]]:
    """(case, question) for every sample that an op takes with complex numbers."""
    for i, sample in enumerate(complex_samples(op)):
        yield f"{op.name}/complex {i}/{sample!r}", partial(gradient_findings, op, sample)
