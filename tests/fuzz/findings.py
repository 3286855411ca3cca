"""Findings of a judge: how they are grouped so that one fault prints once, and how they print."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz.program import Program


@dataclass(frozen=True)
class Finding:
    """One failure: its nature (values, strides, raises here, ...), the op of the statement where it showed, and what was seen."""

    judge: str
    nature: str
    op: str
    detail: str
    answers: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str, str]:
        return (self.judge, self.nature, self.op)

    def __str__(self) -> str:
        return f"{self.judge}: {self.op}: {self.nature}: {self.detail}"


@dataclass
class Group:
    """All findings of one key: the first, shrunk, and how many there were."""

    kind: str
    finding: Finding
    program: Program
    seed: str
    count: int = 1

    def __str__(self) -> str:
        lines = [f"## {self.kind}: {self.finding} [{self.count} times, first by --seed {self.seed}]"]
        lines += [f"#    {a}" for a in self.finding.answers]
        return "\n".join([*lines, self.program.script(), ""])


@dataclass
class Report:
    """How many programs of each kind ran, and what failed."""

    programs: dict[str, int] = field(default_factory=dict)
    groups: dict[tuple[str, ...], Group] = field(default_factory=dict)
    listed: dict[str, int] = field(default_factory=dict)  # findings that a reason explains, by the reason

    def table(self) -> str:
        """One row for each kind."""
        rows = [f"{'kind':<16}{'programs':>10}{'failures':>10}{'kinds of failure':>18}"]
        for kind, count in self.programs.items():
            mine = [g for g in self.groups.values() if g.kind == kind]
            rows.append(f"{kind:<16}{count:>10}{sum(g.count for g in mine):>10}{len(mine):>18}")
        rows += [f"{count} passed over: {reason}" for reason, count in self.listed.items()]
        return "\n".join(rows)


def read_open(path: str | None) -> list[tuple[re.Pattern[str], str]]:
    """Lines `pattern # reason` of a file of faults that are being mended, which is no part of the project."""
    if path is None:
        return []
    lines = [line for line in Path(path).read_text().splitlines() if line.strip() and not line.startswith("#")]
    return [(re.compile(line.partition(" # ")[0].strip(), re.DOTALL), f"open: {line.partition(' # ')[2].strip()}") for line in lines]
