"""Reports of questions and their findings: each kind of finding once, with how often it was and the first case of it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tritensor.testing.questions.question import Finding

# What may differ between findings of one kind: numbers, lists of them, and how many elements there are. The line of a kernel may not.
_VARIES = re.compile(r"(\b\w+\.py:\d+)|[-+]?(?:\b\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\bnan\b|\binf\b)|\b(?:b?float|int|uint)\d+\b")
_LISTS = re.compile(r"[\[(](?:#(?:, #)*,?)?[\])]")


def kind(finding: Finding) -> tuple[str, str]:
    """What findings of one kind have in common, whichever question they answer."""
    said = _VARIES.sub(lambda m: m[1] or "#", finding.said)
    return finding.op, _LISTS.sub("#", said).replace("# of # elements differ; at # ", "")  # which an array without dimensions has not


class Report:
    """Findings, and which cases were asked."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.cases: dict[str, dict[str, None]] = {}  # by what they are cases of: an op, its complex numbers

    def add(self, what: str, case: str, found: Iterable[Finding]) -> None:
        """Note the answer to one question of one case."""
        self.cases.setdefault(what, {})[case] = None
        self.findings += found

    def merge(self, other: Report) -> None:
        """Take in what another report holds."""
        self.findings += other.findings
        for what, cases in other.cases.items():
            self.cases.setdefault(what, {}).update(cases)

    def __bool__(self) -> bool:
        return bool(self.findings)

    def lines(self) -> list[str]:
        """A line for each kind of finding, in the order of the first of each: "softmax: forward: 55 of 60 cases, first softmax/0/float32/plain/cuda: ..."."""
        kinds: dict[tuple[str, str], list[Finding]] = {}
        for finding in self.findings:
            kinds.setdefault(kind(finding), []).append(finding)
        asked = {case: len(cases) for cases in self.cases.values() for case in cases}
        lines = []
        for (op, _), found in kinds.items():
            first, cases = found[0], {f.case for f in found}
            questions = ", ".join(dict.fromkeys(f.question for f in found))
            often = f"{len(cases)} of {asked[first.case]} cases, first {first.case}: " if first.case in asked else ""
            lines.append(f"{op}: {questions}: {often}{first.said}")
        return lines
