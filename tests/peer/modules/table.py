"""The table of PyTorch's module database: one line for every entry; reading, writing, totals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.peer.modules.walk import Found
from tests.peer.opinfo import table as opinfo

FILE = Path(__file__).with_name("table.json")
# Why an entry is left out or does not pass.
REASONS: dict[str, str] = {}
Line = dict[str, Any]


def line(found: Found) -> Line:
    """What a walk found, as the table has it: counts passed/walked, `failing` as [where, what, samples, the first one's message]."""
    if found.missing:
        return {"state": "missing", "why": found.missing}
    failing = opinfo.failing_groups(found)
    made: Line = {"state": "some" if failing else "all"}
    made |= {k: f"{c.passed}/{c.walked}" for k, c in found.counts.items() if c.walked}
    if found.strides.walked:
        made["strides"] = f"{found.strides.passed}/{found.strides.walked}"
    if found.classes:
        made["other error classes"] = found.classes
    if failing:
        made["failing"] = failing
    return made


def read() -> dict[str, Line]:
    """The committed table."""
    return opinfo.read(FILE)


def write(table: dict[str, Line]) -> None:
    """One entry a line, sorted, so that two branches' tables merge."""
    opinfo.write(table, FILE)


def totals(table: dict[str, Line]) -> str:
    """What the whole table says."""
    states = [v["state"] for v in table.values()]
    parts = [
        f"{states.count('all')} of {len(states)} entries pass everything, {states.count('some')} in part, {states.count('missing')} are not here"
    ]
    columns = ("signature", "built", "start", "forward train", "forward eval", "backward train", "backward eval", "errors", "strides")
    for column in columns:
        pairs = [v[column].split("/") for v in table.values() if column in v]
        parts.append(f"  {column}: {sum(int(p) for p, _ in pairs)} of {sum(int(w) for _, w in pairs)}")
    return "\n".join(parts)
