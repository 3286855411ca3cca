"""docs/ops.md: every op and its square, and every public function that is made of other ops. `python -m tests.pages.ops_page` writes it anew."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import tritensor as tt
from tests.func.walk import has_rule, mapped_ops
from tritensor.kernels.op_index import MODULES
from tritensor.nn import functional as F
from tritensor.ops.table import registry
from tritensor.tensor.public_api.publish import namespaces, public

PAGE = Path(__file__).resolve().parents[2] / "docs" / "ops.md"
KINDS = {"integers": ("uint8", "int8", "int16", "int32", "int64"), "floats": ("float16", "bfloat16", "float32", "float64")}
HEAD = """# Ops

An op is a record with four corners: a forward and a backward kernel in Triton, and the same two in plain mathematics. **forward** and **backward** say
where a kernel of its own runs on a GPU: `kernel`, `view` (no data moves), or by which rule instead; **again** says whether the gradient can be differentiated
(every rule is made of ops, so it can wherever there is one). Types are those that its tests ask: floats are float16, bfloat16, float32 and float64, integers int8 to int64 and uint8. This page is written by
`python -m tests.pages.ops_page`.
"""


def said(name: str, op: Any) -> str:
    """What an op is, in one sentence: of its docstring, or of the public function's where the plain mathematics is numpy's own or says nothing."""
    own = op.doc if not op.module.startswith("numpy") else ""
    places = (public, vars(F), *namespaces.values())
    function = next((place[name] for place in places if name in place), None)
    sentence = first_sentence(own.strip() or inspect.getdoc(function) or "").replace("|", "\\|")
    return re.sub(r"`[^`]*`|\*", lambda m: m[0] if m[0] != "*" else "\\*", sentence)  # (N, C, *size) is no emphasis


def in_a_loop() -> str:
    """The ops that vmap has no rule for."""
    without = sorted(f"`{op.name}`" for op in mapped_ops() if not has_rule(op) and op.name in registry.index)
    return (
        f"Under `vmap` an op runs once over the whole batch; in a loop over the examples, which a warning says, run {', '.join(without)}."
    )


def first_sentence(text: str) -> str:
    """A text up to its first full stop, on one line, without the stop. No stop is one of "..." or behind "et al"."""
    line = " ".join(text.split("\n\n")[0].split())
    return re.split(r"(?<!\.\.)(?<! al)\.(?= |$)", line, maxsplit=1)[0]


def row(name: str, op: Any) -> str:
    """One op's line."""
    forward = "view" if op.view else "kernel" if op.forward is not None else "CPU only"
    if op.rule is None:
        backward, again = "no gradient", ""
    else:
        backward, again = "kernel" if op.backward is not None else "view" if op.view else "rule", "yes"
    inputs = ", ".join(op.inputs) + ("..." if op.variadic else "")
    return f"| `{name}` | {said(name, op)} | {inputs} | {forward} | {backward} | {again} | {types(op.dtypes)} |"


def types(names: Sequence[str]) -> str:
    """Types by kind, where all of a kind are among them, and the others by name."""
    found = list(names)
    for kind, members in KINDS.items():
        if set(members) <= set(found):
            found = [kind, *(n for n in found if n not in members)]
    return ", ".join(found)


def ops() -> list[str]:
    """The table of ops, a heading for each family: the folder of kernels/ whose file registers it."""
    lines: list[str] = []
    families: dict[str, list[str]] = {}
    for file, names in MODULES.items():
        families.setdefault(file.partition(".")[0], []).extend(names.split())
    for family, found in sorted(families.items()):
        lines += [
            f"### {family.replace('_', ' ').capitalize()} ({len(found)})",
            "",
            "| op | what it is | inputs | forward | backward | again | types |",
            "|---|---|---|---|---|---|---|",
        ]
        lines += [row(name, registry[name]) for name in sorted(found)] + [""]
    return lines


def _names(code: CodeType) -> set[str]:
    """The names that a function's code reads, and those of the functions inside it."""
    return set(code.co_names).union(*[_names(c) for c in code.co_consts if isinstance(c, CodeType)])


def composed() -> list[str]:
    """Public functions without an op of their name, and the ops that their own code names."""
    found: dict[str, Any] = {n: f for n, f in public.items() if n not in registry and not isinstance(f, type)}
    found |= {
        f"F.{n}": f
        for n, f in vars(F).items()
        if isinstance(f, FunctionType) and f.__module__.startswith("tritensor.nn") and n not in registry
    }
    lines = []
    for name, f in sorted(found.items()):
        if name.startswith(("_", "F._")):
            continue
        body = inspect.unwrap(f)
        own = "" if body.__name__ == name.removeprefix("F.") else f" (`{body.__name__}` under another name)"
        names = _names(body.__code__)
        used = sorted(names & set(registry)) if "ops" in names else []
        lines.append(f"- `{name}`{own}" + (": " + ", ".join(f"`{u}`" for u in used) if used else ""))
    return lines


def page() -> str:
    """The whole page."""
    assert tt.kernels is not None  # every family's files are found through it
    table, rest = ops(), composed()
    total = f"{len(registry)} ops; {sum(o.rule is not None for o in registry.values())} with a gradient, {sum(o.forward is not None for o in registry.values())} with a kernel of their own."
    return "\n".join(
        [
            HEAD,
            "## By family",
            "",
            total,
            "",
            in_a_loop(),
            "",
            *table,
            f"## Public functions made of other ops ({len(rest)})",
            "",
            *rest,
            "",
        ]
    )


if __name__ == "__main__":
    PAGE.write_text(page())
