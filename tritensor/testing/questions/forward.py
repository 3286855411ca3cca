"""Questions 1, 2 and 6: the shape rule against numpy's result, and the forward kernel and the CPU's own way against the reference."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tritensor.cuda.emulator.dry_launches import without_values
from tritensor.ground import dtypes
from tritensor.ops.array import CudaArray, device_of, same_memory, to_host
from tritensor.ops.table import Spec
from tritensor.testing.lines.stores import byte_stored_by, stored_by
from tritensor.testing.questions.cases import Case, outputs
from tritensor.testing.questions.conditioning import outputs_allowed
from tritensor.testing.questions.layouts import Placed, find_gaps, place
from tritensor.testing.questions.question import question
from tritensor.testing.questions.tolerance import TABLE, mismatch, tolerance


# 1
@question
def shape_rule(case: Case) -> list[str]:
    """The shape rule says what numpy's result has, also from shapes and types alone."""
    op = case.op
    bare = tuple(Spec(x.shape, x.dtype) if isinstance(x, np.ndarray) else x for x in case.values)
    found = []
    for inputs in (case.values, bare):
        said = op.shape(*inputs, **case.attrs())
        if op.mutates:
            continue
        said = (said,) if isinstance(said, Spec) else said
        if not isinstance(said, tuple | list) or not all(isinstance(s, Spec) for s in said):
            return [f"the rule returns {said!r}; it returns tritensor.Spec(shape, dtype), a tuple of them for several outputs"]
        have = [(x.shape, x.dtype) for x in case.expected]
        if [(tuple(s.shape), np.dtype(s.dtype)) for s in said] != have:
            found.append(
                f"the rule says {[(tuple(s.shape), str(s.dtype)) for s in said]}, numpy's result has {[(s, str(d)) for s, d in have]}"
            )
            break
    if len(case.expected) != len(op.outputs) and not op.mutates:
        found.append(f"reference returned {len(case.expected)} arrays for outputs {op.outputs}")
    return found


# 2
@question
def forward(case: Case) -> list[str]:
    """The kernel computes what the reference does."""
    op = case.op
    return _is_reference(case, op.cpu if op.view else op.forward or op.host, case.wanted, True)


# 6; of gradients see backward_is_rule
@question
def cpu_is_reference(case: Case) -> list[str]:
    """What the CPU runs computes, in this type and layout, what the reference does in float64."""
    return _is_reference(case, case.op.cpu, case.truth, False)


def _is_reference(case: Case, function: Any, want: tuple[np.ndarray, ...], exact_types: bool) -> list[str]:
    op, given = case.op, case.placed()
    got = outputs(op, function, arrays(given), case.attrs())
    found = compare(case, got, want, [op.mutates or op.outputs][0], exact_types)
    written = {op.inputs.index(m) for m in op.mutates}  # those may change, and the memory between their elements may not
    found += untouched(given, op.inputs, written)
    if not op.mutates:
        found += _aliases(case, got, given)
        if not op.view and case.layout == "plain":
            found += without_values(functools.partial(_kept, case, function))
    if op.into:
        found += _into(case, function, want, exact_types)
    return found


def arrays(given: list[Any]) -> tuple[Any, ...]:
    return tuple(x.array if isinstance(x, Placed) else x for x in given)


def compare(case: Case, got: tuple[Any, ...], want: tuple[np.ndarray, ...], names: tuple[str, ...], exact_types: bool) -> list[str]:
    """Findings on each output; against float64 truth (`exact_types` False) a type's own tolerance is the least allowed."""
    if len(got) != len(want):
        return [f"{len(got)} outputs, expected {len(want)}"]
    found = []
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        if device_of(g) != case.on:
            found.append(f"output {i} is on {device_of(g)}")
        host = to_host(g)
        relative = tolerance(case.op, host.dtype)
        if not exact_types:
            relative = max(relative, TABLE.get(dtypes.of(host.dtype).name, 0.0))
        wrong = mismatch(host, w, relative, dtype=exact_types, extra=functools.partial(_extra, case, i))
        if wrong:
            by = stored_by(g, wrong.at) if case.op.host is None else ""
            found.append(f"{names[i] if i < len(names) else i}: {wrong}{by}")
    return found


def _extra(case: Case, i: int) -> np.ndarray | None:
    return outputs_allowed(case)[i]


def untouched(given: list[Any], names: tuple[str, ...], allowed: set[int] | frozenset[int] = frozenset()) -> list[str]:
    """Findings on inputs whose bytes changed, the gaps between their elements included."""
    found = []
    for i, x in enumerate(given):
        if not isinstance(x, Placed):
            continue
        now = to_host(x.base).reshape(-1).view(np.uint8)
        if i in allowed:
            gaps = find_gaps(x)
            if not np.array_equal(now[gaps], x.before[gaps]):
                found.append(f"memory beside {names[min(i, len(names) - 1)]} was written{_name_author(x, gaps & (now != x.before))}")
        elif not np.array_equal(now, x.before):
            found.append(f"input {names[min(i, len(names) - 1)]} was modified{_name_author(x, now != x.before)}")
    return found


def _name_author(x: Placed, changed: np.ndarray) -> str:
    """Who stored to the first of the bytes that changed, where that is known."""
    return byte_stored_by(x.base, int(np.argmax(changed))) if isinstance(x.base, CudaArray) else ""


def _aliases(case: Case, got: tuple[Any, ...], given: list[Any]) -> list[str]:
    """Findings on results that share memory with an input (a view must, everything else must not)."""
    bases = [x.base for x in given if isinstance(x, Placed)]
    found = []
    for name, g in zip(case.op.outputs, got, strict=False):
        shares = any(same_memory(g, b) for b in bases)
        if shares and not case.op.view:
            found.append(f"{name} shares memory with an input")
        if case.op.view and not shares and g.size:
            found.append(f"{name} is a copy, the op says it is a view")
    return found


def _kept(case: Case, function: Any) -> list[str]:
    """Findings on results whose memory the next call writes to, while a caller still holds them. The corner itself is run: a replay allocates."""
    bare = getattr(function, "function", function)
    first, second = (outputs(case.op, bare, arrays(case.placed()), case.attrs()) for _ in range(2))
    return [
        f"{name} of a second call shares memory with that of the first, which it overwrites; allocate it anew in each call"
        for name, a, b in zip(case.op.outputs, first, second, strict=False)
        if a.size and same_memory(a, b)
    ]


def _into(case: Case, function: Any, want: tuple[np.ndarray, ...], exact_types: bool) -> list[str]:
    """Findings with `out=`, contiguous and strided."""
    found = []
    for layout in ("plain", "sliced"):
        filler = np.zeros(want[0].shape, case.expected[0].dtype)
        out = place(filler, layout, case.on)
        got = function(*arrays(case.placed()), **case.attrs(), out=out.array)
        if got is not out.array:  # callers look at the array that they gave
            found.append(f"out= ({layout}) was given and another array returned")
        wrong = compare(case, (out.array,), want, (f"out= ({layout})",), exact_types)
        found += wrong + untouched([out], ("out",), {0})
    return found
