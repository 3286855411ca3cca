"""Judges of views, writes and gradients: a model of shared memory, the rules beside the kernels, finite differences, another order."""

from __future__ import annotations

import re

import tritensor
from tests.fuzz.findings import Finding
from tests.fuzz.judging import Comparison
from tests.fuzz.program import Program, facts
from tests.fuzz.running import Trace, in_wide, readable, run
from tests.fuzz.shadow import library

# What differentiation does not see through and differences do, and gradients that are there before the last statement.
CUTS = re.compile(
    r"backward|detach|\.data|no_grad|inference|hook|set_grad|requires_grad_|autograd|tolist|nn\.init|unique|out=|retain|by_freq"
)
SMOOTH_STEPS = (1e-6, -1e-6, 3e-6, -3e-6)


def shadowed(program: Program) -> Finding | None:
    """The model of shared memory gives the same values, as far as it knows the statements."""
    model = run(program, library())
    ours = run(program, tritensor)
    known = next((s.index for s in model.steps if s.error is not None), len(model.steps))
    if known < 2:
        return None
    cut = [Trace(t.steps[:known], t.scope) for t in (ours, model)]
    if any(s.error is not None for s in cut[0].steps):
        return None  # the model takes writes that autograd refuses
    found = Comparison("model", ("tritensor", "shared memory"), strict=False).first(program, *cut)
    return found if found and found.nature in ("values", "shape") else None


def by_rules(program: Program) -> Finding | None:
    """backward() by kernels and by rules (create_graph=True) gives the same gradients."""
    last = program.statements[-1]
    if not last.endswith(".backward()"):
        return None
    other = Program((*program.statements[:-1], last.replace(".backward()", ".backward(create_graph=True)")))
    found = Comparison("rules", ("backward()", "create_graph=True"), strict=False, truth=lambda: in_wide(program, tritensor)).first(
        program, run(program, tritensor), run(other, tritensor)
    )
    return found if found and (found.nature.endswith("of grad") or "raises" in found.nature) else None


def in_another_order(program: Program) -> Finding | None:
    """Statements that read nothing of one another may change places."""
    lines = list(program.statements)
    for k in range(len(lines) - 1):
        one, other = facts(lines[k]), facts(lines[k + 1])
        if _named(lines[k]) and _named(lines[k + 1]) and not one.sets & (other.reads | other.sets) and not other.sets & one.reads:
            lines[k], lines[k + 1] = lines[k + 1], lines[k]
    if tuple(lines) == program.statements or not all(_named(s) for s in lines[:2]):
        return None
    ours, turned = run(program, tritensor), run(Program(tuple(lines)), tritensor)
    step = Trace([ours.steps[-1]], {}), Trace([turned.steps[-1]], {})
    if ours.steps[-1].error or turned.steps[-1].error:
        return None
    return Comparison("order", ("as written", "in another order"), strict=False).first(
        Program(program.statements[-1:]), *(_alone(t) for t in step)
    )


def _alone(trace: Trace) -> Trace:
    trace.steps[0].index = 0
    return trace


def _named(code: str) -> bool:
    """Whether a statement does nothing but name a value, and not of what a write may change: the model of `v3 = ...` without a trailing underscore call."""
    return bool(facts(code).sets) and not re.search(r"_\(|out=|backward|grad\(|rand|with |unique", code)


def differences(program: Program) -> Finding | None:
    """Gradients by backward() beside central differences, in float64. The last statement is `(...).sum().backward()`, and its sum is what is differentiated."""
    last = program.statements[-1]
    if "backward(" not in last or CUTS.search("\n".join(program.statements[:-1])):
        return None
    total = "total = " + last.rpartition(".backward(")[0]
    whole = run(program.in_float64(), tritensor, watch=False)
    if any(s.error or s.skipped for s in whole.steps):
        return None
    tensors = {n: x for n, x in whole.scope.items() if isinstance(x, tritensor.Tensor) and readable(x)}
    leaves = {n: x for n, x in tensors.items() if x.is_leaf and x.grad is not None and x.dtype == tritensor.float64}
    for name, leaf in {id(x): (n, x) for n, x in reversed(leaves.items())}.values():  # of a tensor's names the first
        made = max((k for k, s in enumerate(program.statements) if name in facts(s).sets), default=None)
        if made is None:
            continue
        for place in range(min(leaf.numel(), 3)):
            if not abs(leaf.detach().reshape(-1)[place].item()) < 100:
                continue  # a step of 1e-6 is lost in it
            values = [_total(program, made, name, place, by, total) for by in SMOOTH_STEPS]
            if None in values:
                return None
            near, wide = (values[0] - values[1]) / 2e-6, (values[2] - values[3]) / 6e-6
            one_sided = abs((values[0] + values[1]) - (values[2] + values[3])) / 1e-6
            found = float(leaf.grad.reshape(-1)[place].item())
            smooth = abs(near - wide) < 1e-4 * (1 + abs(near)) and one_sided < 1e-3 * (1 + abs(near))
            if smooth and abs(near - found) > 2e-3 * (1 + abs(near)):
                answers = (f"backward: {found}", f"differences: {near}")
                return Finding("differences", "another gradient", facts(program.statements[-2]).op, f"of {name}, element {place}", answers)
    return None


def _total(program: Program, made: int, name: str, place: int, by: float, total: str) -> float | None:
    """The sum that is differentiated, with one element of a leaf moved."""
    moved = f"with tt.no_grad(): {name}.view(-1)[{place}] += {by!r}" if place or by else ""
    lines = program.in_float64().statements
    trace = run(Program((*lines[: made + 1], moved, *lines[made + 1 : -1], total)), tritensor, watch=False)
    if any(s.error or s.skipped for s in trace.steps) or not isinstance(trace.scope.get("total"), tritensor.Tensor):
        return None
    value = float(trace.scope["total"].detach().item())
    return value if abs(value) < 1e6 else None  # else a step of 1e-6 is lost in it
