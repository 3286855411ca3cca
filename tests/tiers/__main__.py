"""`python -m tests.tiers [auto|quick|standard] [--show] [arguments of pytest]`: what `make test` runs.

auto  in a tree that differs from its branch what the changes touch, at the standard tier's strength; the standard tier whole where it is not
      known what they reach; in a tree that differs in nothing the quick tier
--show  says what would run, and why, and runs nothing

Arguments that name tests run these, of the tier that is named or the standard one; -m among them is pytest's own affair.
"""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

from tests.tiers import TIERS
from tests.tiers.changes import changed
from tests.tiers.ops import ROOT, WALKS
from tests.tiers.touched import ALWAYS, Touched, touched


class Choice(NamedTuple):
    """What runs: a tier, or of the standard one some tests; of walks the items of some ops; a line that says so, and one for each file."""

    tier: str
    says: str
    tests: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()

    def arguments(self) -> list[str]:
        ops = ["--ops", ",".join(self.ops)] if self.ops else []
        rest = ["--tell", f"{self.says}; make test TIER=standard asks the rest, make test-all also the full tier"] if self.tests else []
        return ["-m", TIERS[self.tier], *ops, *rest, *self.tests]


def chosen(files: list[str] | None) -> Choice:
    """What the files that differ ask."""
    if files is None:
        return Choice("quick", "git does not say what has changed here: the quick tier")
    if not files:
        return Choice("quick", "nothing has changed since the branch: the quick tier")
    found = {name: touched(name) for name in files}
    lines = tuple(f"  {name}: {_told(t)}" for name, t in found.items())
    far = [name for name, t in found.items() if t.everything]
    if far:
        return Choice("standard", f"changed files: {len(files)}, of which {far[0]} may reach anything: the standard tier", lines=lines)
    tests = outermost({*ALWAYS, *(test for t in found.values() for test in t.tests)})
    ops = tuple(dict.fromkeys(op for t in found.values() for op in t.ops))
    whole = [name for name, t in found.items() if not t.ops and any(map(_walks, t.tests))]  # asks a walk of every op
    says = f"changed files: {len(files)}; {len(tests)} test files and rooms ask what they touch"
    return Choice("standard", says, tuple(tests), () if whole else ops, lines)


def _told(t: Touched) -> str:
    return t.why + (
        ": the standard tier" if t.everything else f": {' '.join(t.tests[:4])}{' ...' if len(t.tests) > 4 else ''}" if t.tests else ""
    )


def _walks(test: str) -> bool:
    return any(w == test or w.startswith(f"{test}/") or test.startswith(f"{w}/") for w in WALKS)


def outermost(tests: set[str]) -> list[str]:
    """Without the files that stand in a room which is asked whole, and without what is not there."""
    rooms = [t for t in tests if not t.endswith(".py")]
    return sorted(t for t in tests if not any(t.startswith(f"{room}/") for room in rooms) and (ROOT / t).exists())


def main(given: list[str]) -> int:
    tier = given.pop(0) if given and given[0] in ("auto", *TIERS) else "auto"
    show = "--show" in given
    given = [g for g in given if g != "--show"]
    if "-m" in given:
        return asked(given)
    if any(g.startswith("tests") for g in given):
        tier = "standard" if tier == "auto" else tier
    choice = chosen(changed(ROOT)) if tier == "auto" else Choice(tier, f"the {tier} tier")
    print("\n".join([choice.says, *choice.lines]), flush=True)
    if show:
        print("pytest", *choice.arguments(), *given)
        return 0
    return asked([*choice.arguments(), *given])


def asked(arguments: list[str]) -> int:
    """pytest in place of this process."""
    os.execv(sys.executable, [sys.executable, "-m", "pytest", *arguments])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
