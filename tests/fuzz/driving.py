"""Drawing, judging, shrinking and grouping: one program after another, each from a seed of its own."""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Callable
from typing import Any

from tests.fuzz.findings import Finding, Group, Report
from tests.fuzz.judges import Judge
from tests.fuzz.kinds import KINDS, Kind
from tests.fuzz.known import KNOWN
from tests.fuzz.program import Program
from tests.fuzz.shrinking import shrink


class Fuzzer:
    """Runs programs of some kinds. `peer` is the module torch or None; `listed` are patterns of findings that have a reason."""

    def __init__(self, peer: Any = None, listed: list[tuple[re.Pattern[str], str]] | None = None, shrinking: bool = True) -> None:
        self.peer, self.shrinking = peer, shrinking
        self.listed = [*KNOWN, *(listed or [])]
        self.report = Report()
        self.on_new: Callable[[Group], None] | None = None

    def one(self, kind: Kind, seed: str) -> None:
        """Draw the program of a seed, ask every judge, keep the first finding."""
        self.report.programs[kind.name] = self.report.programs.get(kind.name, 0) + 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = kind.draw(random.Random(f"{kind.name} {seed}"))
            for judge in kind.judges(self.peer):
                found = judge(program)
                if found is not None and self._keep(kind, seed, program, judge, found):
                    return

    def _reason(self, found: Finding, program: Program) -> str | None:
        said = " | ".join((str(found), *found.answers, *program.statements))
        return next((reason for pattern, reason in self.listed if pattern.search(said)), None)

    def _keep(self, kind: Kind, seed: str, program: Program, judge: Judge, found: Finding) -> bool:
        """Note a finding; False where a reason explains it, and the other judges are to be asked."""
        reason = self._reason(found, program)
        if reason is not None:
            self.report.listed[reason] = self.report.listed.get(reason, 0) + 1
            return False
        key = (kind.name, *found.key)
        if key in self.report.groups:
            self.report.groups[key].count += 1
            return True
        if self.shrinking:

            def fails(smaller: Program) -> bool:
                again = judge(smaller) if smaller.statements else None
                return again is not None and again.key == found.key and self._reason(again, smaller) is None

            program = shrink(program, fails)
            found = judge(program) or found
        self.report.groups[key] = Group(kind.name, found, program, seed)
        if self.on_new:
            self.on_new(self.report.groups[key])
        return True

    def programs(self, names: list[str], seed: int, count: int) -> Report:
        """`count` programs of every kind, the same on every machine."""
        for name in names:
            for number in range(count):
                self.one(KINDS[name], f"{seed}.{number}")
        return self.report
