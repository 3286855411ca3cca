"""Registration's checks: all that can be wrong with an op record, in words that teach."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

from tritensor.ground import dtypes
from tritensor.ground.strides import RULES
from tritensor.ops.table.formula_checks import as_tuple
from tritensor.ops.table.signature import EMPTY, list_parameters

_DTYPES = {d.name for d in dtypes.ALL}
FORMS = ("function", "method", "inplace", "out")  # public ones


def _kernel_problems(record: Any) -> list[str]:
    """Complaints about what runs on a GPU: kernels, one function for every device, or the host."""
    problems: list[str] = []
    if record.forward is None and not record.view and not record.host:
        problems.append(
            "forward is missing: give the function that launches its Triton kernel, view=True if it moves no data, or host=True if no kernel "
            "would pay"
        )
    if record.reports and record.forward is None:
        problems.append("reports says that forward's kernel reports bad values, and there is no forward")
    if record.view and (record.forward or record.backward):
        problems.append("a view has no kernels: its reference serves every device and its rule is its backward")
    if record.view and record.public > 1:
        problems.append("a view op gives one view; make several of several calls")
    return problems


def corner_problems(label: str, corner: Any) -> list[str]:
    """Complaints about what a corner is in place of a function (a gradient may be a tuple of functions)."""
    problems: list[str] = []
    for f in corner if isinstance(corner, tuple) and label != "forward" else (corner,):
        if f is not None and hasattr(f, "fn") and hasattr(f, "arg_names"):  # @triton.jit
            problems.append(
                f"{label} is the kernel {f.fn.__name__}; give the function that allocates its results and launches it, and returns them"
            )
        elif f is not None and not callable(f):
            problems.append(f"{label} is {f!r}; it must be a function" + ", or a tuple with one for each input" * (label != "forward"))
    return problems


def _ambiguous_names(record: Any) -> list[str]:
    """Names in a gradient that mean two things, of which it would get one without a word."""
    problems: list[str] = []
    corners = [c for c in (record.rule, record.backward, record.cpu_backward) if c is not None]
    named = {n for corner in corners for names in corner.names for n in names}
    for n in (*record.inputs, *record.attrs):
        if n in named and (n == "needs" or n in record.outputs):
            what = "input" if n in record.inputs else "attribute"
            other = "the flags of what is needed" if n == "needs" else "an output; rename one of them, the output with outputs=(...)"
            problems.append(f"a gradient names {n!r}, which is an {what} and {other}")
    return problems


def find_problems(record: Any, differentiable: bool) -> list[str]:
    """Whatever makes an Op record unfinished or contradictory, a line each."""
    problems = _kernel_problems(record) + _ambiguous_names(record)
    casts = record.autocast.values() if isinstance(record.autocast, dict) else [record.autocast]
    if not all(c in (None, "lower", "float32", "widest") for c in casts):
        problems.append(
            f"autocast is {record.autocast!r}; give 'lower', 'float32', 'widest' or None, or one of them for 'cpu' and one for 'cuda'"
        )
    if record.mutates:
        for m in record.mutates:
            if m not in record.inputs:
                problems.append(f"mutates names {m!r}, which is no input ({', '.join(record.inputs)})")
        if record.rule:
            problems.append("an op that mutates its inputs has no rule; write it as an op that returns new arrays")
    # silence is no answer: a gradient that was forgotten would be found by users
    elif differentiable and record.rule is None:
        problems.append("rule is missing: give the gradient in tritensor's own ops, or say differentiable=False")
    if not differentiable and record.rule is not None:
        problems.append("it has a rule and says differentiable=False; keep one")
    if record.host and (record.view or record.mutates or record.backward or record.forward):
        problems.append("host says that there is no kernel; give neither forward nor backward, and neither view nor mutates")
    if record.rule is not None and record.backward is None and not record.view and not record.host:
        problems.append(
            "backward is missing: a differentiable op pairs its forward kernel with a backward kernel; give the function that launches it, "
            "or differentiable=False without a rule"
        )
    if record.rule is None and (record.backward or record.cpu_backward):
        problems.append("a backward without a rule cannot be differentiated again; add rule")
    if record.promote not in (None, "same", "float"):
        problems.append(f"promote is {record.promote!r}; it is None, 'same' or 'float'")
    if record.layout not in RULES:
        problems.append(f"layout is {record.layout!r}; it is one of {', '.join(map(repr, RULES))}")
    for r in record.residuals:
        if r not in record.outputs:
            problems.append(f"residual {r!r} is not among the outputs {record.outputs}")
    if record.residuals and record.outputs[-len(record.residuals) :] != record.residuals:
        problems.append("residuals come last among the outputs")
    allowed = {*record.inputs, *record.outputs, *record.attrs, "needs"}
    allowed |= {f"{i}_shape" for i in record.inputs} | {f"{i}_dtype" for i in record.inputs}
    for label in ("rule", "backward", "cpu_backward"):
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
                # a rule is differentiated again, and a residual has no way into the graph
                elif n in record.residuals and label == "rule":
                    problems.append(
                        f"{label} names the residual {n!r}: its dependence on the inputs would be lost at second order; recompute it from the inputs"
                    )
    for n in record.dtypes:
        if n not in _DTYPES:
            problems.append(f"dtypes holds {n!r}; give names such as 'float32'")
    _check_fields(record, problems)
    return problems


def find_borrowed(record: Any, given: str | Sequence[str] | None, problems: list[str]) -> tuple[int, ...]:
    """The places of what `borrows` names: those of inputs, ~places of outputs that a caller sees; appends what stands against one to `problems`."""
    places = {n: i for i, n in enumerate(record.inputs[: len(record.inputs) - record.variadic])}
    places |= {n: ~i for i, n in enumerate(record.outputs[: record.public])}
    names = as_tuple(given) if given is not None else tuple(places) if record.host and record.rule is not None else ()
    for n in names:
        if n not in places:
            problems.append(f"borrows names {n!r}, which is no input and no output that a caller sees; there are {', '.join(places)}")
    return tuple(places[n] for n in names if n in places)


def list_forms(record: Any, asked: Any, problems: list[str]) -> tuple[str, ...]:
    """The public forms that `public=` asks for, in the order of FORMS; appends what stands against one to `problems`."""
    whole = not record.view and not record.mutates and bool(record.inputs)  # it gives new arrays of those it is given
    possible = {
        "function": True,
        "method": bool(record.inputs),
        "inplace": whole and record.public == 1,
        "out": whole,
    }
    # a form made of the record would ask users for numbers that a generator has to give
    draws = "seed" in record.attrs and "offset" in record.attrs
    if asked is True:
        found = tuple(f for f in FORMS if possible[f] and (f != "inplace" or record.broadcasts))
    else:
        given = (asked,) if isinstance(asked, str) else tuple(asked or ())
        for f in given:
            if f not in FORMS:
                problems.append(f"public has {f!r}; it is True, or some of {', '.join(map(repr, FORMS))}")
            elif not possible[f]:
                problems.append(f"public has {f!r}, which an op {_describe_kind(record)} cannot have; leave it out")
        found = tuple(f for f in FORMS if f in given)
        if found and not {"function", "method", "inplace"} & set(found):
            problems.append("public is 'out' alone, which is an argument of the function and the method; add one of them")
    if found and draws:
        problems.append("public: its seed and offset come from a generator, so write the function that draws them and calls ops.<name>")
    return found


def _describe_kind(record: Any) -> str:
    """The trait of an op that rules out a public form."""
    if record.view:
        return "that gives a view"
    if record.mutates:
        return "that overwrites its inputs"
    return "without inputs" if not record.inputs else f"of {record.public} outputs"


def _check_fields(record: Any, problems: list[str]) -> None:
    """Check the fields that tests and benchmarks need, and that its functions take what `reference` takes."""
    for label in ("shape", "samples", "forward", "sizes", "work", "configs"):
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
    said, more = record.condition[:2], record.condition[2:]
    if len(said) != 2 or more not in ((), ("stored",)) or not all(c in ("element", "absolute", "measured") or callable(c) for c in said):
        problems.append(
            f"condition is {record.condition!r}; it is 'element', 'absolute', 'measured', a function, or two of them in a tuple, with 'stored' behind or not"
        )
    for label in ("shape", "forward"):
        f = getattr(record, label)
        if getattr(f, "__code__", None) is None:  # a builtin or an object: called as it is
            continue
        taken = [d for d in list_parameters(f) if d[0] != "out"]
        kinds = {kind for _, kind, _ in taken}
        given = {name for name, kind, _ in taken if kind == "keyword"}
        if "rest" not in kinds and given != set(record.attrs):
            problems.append(f"{label} takes the attributes {sorted(given)}, reference {sorted(record.attrs)}; give both the same, after *")
        for name, kind, default in taken:
            ours = record.attrs.get(name, EMPTY)
            if kind == "keyword" and EMPTY not in (default, ours) and default != ours:
                problems.append(f"{label} takes {name}={default!r} when it is left out, reference {ours!r}; give both the same")
        count = sum(kind == "positional" for _, kind, _ in taken)
        if "variadic" not in kinds and (record.variadic or count != len(record.inputs)):
            problems.append(
                f"{label} takes {count} arrays, reference {'any number' if record.variadic else len(record.inputs)}; give both the same"
            )
