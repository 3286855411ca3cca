"""Registration's checks: a function's signature read cheaply, and all that can be wrong with an op record, in words that teach."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from typing import Any

from tritensor import dtypes

_DTYPES = {d.name for d in dtypes.ALL}
EMPTY = inspect.Parameter.empty
_KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: "positional", inspect.Parameter.POSITIONAL_OR_KEYWORD: "positional", inspect.Parameter.KEYWORD_ONLY: "keyword",
    inspect.Parameter.VAR_POSITIONAL: "variadic", inspect.Parameter.VAR_KEYWORD: "rest",
}  # fmt: skip


def declared(function: Callable[..., Any]) -> list[tuple[str, str, Any]]:
    """(name, kind, default or EMPTY) of every parameter; off the code object where that tells all."""
    code = getattr(function, "__code__", None)
    if code is None or hasattr(function, "__signature__") or hasattr(function, "__wrapped__"):
        return [(p.name, _KINDS[p.kind], p.default) for p in inspect.signature(function).parameters.values()]
    n, k = code.co_argcount, code.co_kwonlyargcount
    names, defaults, by_name = code.co_varnames, function.__defaults__ or (), function.__kwdefaults__ or {}  # type: ignore[attr-defined]
    first = n - len(defaults)
    found = [(names[i], "positional", defaults[i - first] if i >= first else EMPTY) for i in range(n)]
    if code.co_flags & inspect.CO_VARARGS:
        found.append((names[n + k], "variadic", EMPTY))
    found += [(name, "keyword", by_name.get(name, EMPTY)) for name in names[n : n + k]]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        found.append((names[n + k + bool(code.co_flags & inspect.CO_VARARGS)], "rest", EMPTY))
    return found


def names_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """Parameter names of a gradient function after its first, the incoming gradient."""
    return tuple(name for name, _, _ in declared(function))[1:]


def read_signature(reference: Callable[..., Any], problems: list[str]) -> tuple[tuple[str, ...], int, bool, dict[str, Any]]:
    """Inputs, how many are required, whether the last is variadic, and attribute defaults, off a reference's signature."""
    inputs, required, variadic, attrs = [], 0, False, {}
    for name, kind, default in declared(reference):
        if name == "out":  # where `into` results go: no part of the op's signature
            continue
        if kind == "variadic":
            inputs.append(name)
            variadic = True
        elif kind == "positional":
            inputs.append(name)
            if default is EMPTY:
                required += 1
            elif default is not None:
                problems.append(
                    f"input {name!r} defaults to {default!r}: an optional array defaults to None; make an attribute keyword-only (after *)"
                )
        elif kind == "keyword":
            attrs[name] = default
        else:
            problems.append(f"reference takes **{name}: spell its attributes out, they are the op's signature")
    return tuple(inputs), required, variadic, attrs


def problems_of(record: Any, differentiable: bool) -> list[str]:
    """Whatever makes an Op record unfinished or contradictory, a line each."""
    problems: list[str] = []
    if record.forward is None and not record.view:
        problems.append("forward is missing: give the function that launches its Triton kernel, or view=True if it moves no data")
    if record.reports and record.forward is None:
        problems.append("reports says that forward's kernel reports bad values, and there is no forward")
    if record.view and (record.forward or record.backward):
        problems.append("a view has no kernels: its reference serves every device and its rule is its backward")
    if record.mutates:
        for m in record.mutates:
            if m not in record.inputs:
                problems.append(f"mutates names {m!r}, which is no input ({', '.join(record.inputs)})")
        if record.rule:
            problems.append("an op that mutates its inputs has no rule; write it as an op that returns new arrays")
    elif differentiable and record.rule is None:
        problems.append("rule is missing: give the gradient in tritensor's own ops, or say differentiable=False")
    if not differentiable and record.rule is not None:
        problems.append("it has a rule and says differentiable=False; keep one")
    if record.rule is not None and record.backward is None and not record.view:
        problems.append("backward is missing: a differentiable op pairs its forward kernel with a backward kernel")
    if record.rule is None and (record.backward or record.reference_backward):
        problems.append("a backward without a rule cannot be differentiated again; add rule")
    if record.promote not in (None, "same", "float"):
        problems.append(f"promote is {record.promote!r}; it is None, 'same' or 'float'")
    for r in record.residuals:
        if r not in record.outputs:
            problems.append(f"residual {r!r} is not among the outputs {record.outputs}")
    if record.residuals and record.outputs[-len(record.residuals) :] != record.residuals:
        problems.append("residuals come last among the outputs")
    allowed = {*record.inputs, *record.outputs, *record.attrs, "needs"}
    allowed |= {f"{i}_shape" for i in record.inputs} | {f"{i}_dtype" for i in record.inputs}
    for label in ("rule", "backward", "reference_backward"):
        corner = getattr(record, label)
        if corner is None:
            continue
        if not corner.joint and len(corner.functions) != len(record.inputs):
            given = f"{label} has {len(corner.functions)} functions for {len(record.inputs)} inputs"
            problems.append(f"{given}; give one per input (None where there is no gradient)")
        for names in corner.names:
            for n in names:
                if n not in allowed:
                    near = difflib.get_close_matches(n, sorted(allowed), 1)
                    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(allowed))}"
                    problems.append(f"{label} names {n!r}, which is no input, output or attribute; {hint}")
                elif n in record.residuals and label == "rule":
                    problems.append(
                        f"{label} names the residual {n!r}: its dependence on the inputs would be lost at second order; recompute it from the inputs"
                    )
    for n in record.dtypes:
        if n not in _DTYPES:
            problems.append(f"dtypes holds {n!r}; give names such as 'float32'")
    _check_fields(record, problems)
    return problems


def _check_fields(record: Any, problems: list[str]) -> None:
    """What the tests and benchmarks need of the record, and that its functions take what `reference` takes."""
    for label in ("shape", "samples", "forward", "sizes", "work"):
        f = getattr(record, label)
        if not (callable(f) or (f is None and label not in ("shape", "samples"))):
            problems.append(f"{label} is {f!r}; it must be a function")
    if record.sizes is not None and record.work is None:
        problems.append("sizes without work: say with work= how many operations and bytes one call is")
    for n, allowance in record.tolerance.items():
        if n not in _DTYPES or not (
            isinstance(allowance, tuple) and len(allowance) == 2 and isinstance(allowance[1], str) and allowance[1]
        ):
            problems.append(f"tolerance has {n!r}: {allowance!r}; it maps a type's name to (relative tolerance, reason)")
    for label in ("shape", "forward"):
        f = getattr(record, label)
        if getattr(f, "__code__", None) is None:  # a builtin or an object: called as it is
            continue
        taken = [d for d in declared(f) if d[0] != "out"]
        kinds = {kind for _, kind, _ in taken}
        given = {name for name, kind, _ in taken if kind == "keyword"}
        if "rest" not in kinds and given != set(record.attrs):
            problems.append(f"{label} takes the attributes {sorted(given)}, reference {sorted(record.attrs)}; give both the same, after *")
        count = sum(kind == "positional" for _, kind, _ in taken)
        if "variadic" not in kinds and (record.variadic or count != len(record.inputs)):
            problems.append(
                f"{label} takes {count} arrays, reference {'any number' if record.variadic else len(record.inputs)}; give both the same"
            )
