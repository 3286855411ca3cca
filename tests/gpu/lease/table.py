"""The last table: what each step came to, the first failures by name, what to do next; so short that the end of an output holds all of it."""

from __future__ import annotations

from collections.abc import Sequence

from tests.gpu.lease.ledger import NAME, Ledger
from tests.gpu.lease.perform import Step

LINES = 60
COLUMNS = 160


def table(ledger: Ledger, steps: Sequence[Step], seconds: float, notes: Sequence[str] = ()) -> str:
    """The table of a run that took so long; `notes` come last."""
    i = ledger.identity
    tree = str(i.get("commit") or "tree " + str(i.get("tree")))[:24]
    head = [
        f"lease: {i.get('gpu') or 'no GPU'}, driver {i.get('driver') or '-'}, {tree}, {seconds:.0f} s",
        f"Triton {i.get('triton')}, Python {i.get('python')}, numpy {i.get('numpy')}, torch {i.get('torch') or 'not installed'}; {i.get('pack', '')}",
        "",
        f"{'step':<16}{'outcome':<12}{'s':>6}  figures",
    ]
    lines = [_line(step.name, ledger) for step in steps]
    older = [f"older: {_older(o)}" for o in ledger.older[-2:]]
    failures = [
        f"{step.name}: {error}"
        for step in steps
        for error in (ledger.entry(step.name).errors if ledger.entry(step.name).outcome != "passed" else [])
    ]
    room = LINES - len(head) - len(lines) - len(older) - len(notes) - 4
    shown = fairly(failures, room)
    more = sum(ledger.entry(step.name).failed for step in steps if ledger.entry(step.name).outcome != "passed") - len(shown)
    if more > 0:
        shown.append(f"... and {more} more: {NAME} names all")
    text = [*head, *lines, *older, "", *(["first failures:", *shown, ""] if failures else ["no failures", ""]), *notes]
    return "\n".join(line[:COLUMNS].rstrip() for line in text[:LINES])


def fairly(failures: Sequence[str], room: int) -> list[str]:
    """As many failures as there is room for, of every step some."""
    if len(failures) <= room:
        return list(failures)
    by_step: dict[str, list[str]] = {}
    for line in failures:
        by_step.setdefault(line.partition(":")[0], []).append(line)
    share = dict.fromkeys(by_step, 0)
    while sum(share.values()) < room:
        for step in by_step:
            if share[step] < len(by_step[step]) and sum(share.values()) < room:
                share[step] += 1
    return [line for step, lines in by_step.items() for line in lines[: share[step]]]


def _line(name: str, ledger: Ledger) -> str:
    entry = ledger.entry(name)
    outcome = "older tree" if entry.older else entry.outcome or "not asked"
    said = "; ".join(filter(None, [f"of an older tree, {entry.older}" if entry.older else "", entry.figures, entry.why]))
    return f"{name:<16}{outcome:<12}{entry.seconds:>6.0f}  {said}"


def _older(known: dict[str, object]) -> str:
    steps, identity = known["steps"], known["identity"]
    assert isinstance(steps, dict)
    assert isinstance(identity, dict)
    return f"{str(identity.get('commit') or identity.get('tree'))[:12]}: " + ", ".join(f"{n} {v[0]}" for n, v in steps.items() if v[0])
