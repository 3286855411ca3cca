"""What was asked and what was found: each kind of finding once, with how often it was and the first case of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from tritensor.testing.questions.question import Finding

# What may differ between findings of one kind: numbers, lists of them, and how many elements there are. The line of a kernel may not.
_VARIES = re.compile(r"(\b\w+\.py:\d+)|[-+]?(?:\b\d[\w.]*(?:[eE][-+]\d+)?|\bnan\b|\binf\b)|\b(?:b?float|int|uint)\d+\b")
_LISTS = re.compile(r"[\[(]#(?:, #)*,?[\])]")


def kind(finding: Finding) -> tuple[str, str, str]:
    """What findings of one kind have in common."""
    said = _VARIES.sub(lambda m: m[1] or "#", finding.said)
    return finding.op, finding.question, _LISTS.sub("#", said)


class Report:
    """Findings, and how many cases each question was asked of."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.asked: Counter[tuple[str, str]] = Counter()  # by op and question

    def add(self, op: str, question: str, found: Iterable[Finding]) -> None:
        """Note the answer to one question of one case."""
        self.asked[op, question] += 1
        self.findings += found

    def merge(self, other: Report) -> None:
        """Take in what another report holds."""
        self.findings += other.findings
        self.asked += other.asked

    def __bool__(self) -> bool:
        return bool(self.findings)

    def lines(self) -> list[str]:
        """A line for each kind of finding, in the order of the first of each: "softmax: forward: 55 of 60 cases, first softmax/0/float32/plain/cuda: ..."."""
        kinds: dict[tuple[str, str, str], list[Finding]] = {}
        for finding in self.findings:
            kinds.setdefault(kind(finding), []).append(finding)
        lines = []
        for (op, question, _), found in kinds.items():
            cases = len({f.case for f in found})
            lines.append(f"{op}: {question}: {cases} of {self.asked[op, question]} cases, first {found[0].case}: {found[0].said}")
        return lines
