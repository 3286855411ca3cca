"""The plan: steps in the order of their worth, each with a budget of its own, what is left over given to those that are not finished."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.gpu.lease.ledger import Ledger
from tests.gpu.lease.perform import Step


def in_order(steps: Sequence[Step], ledger: Ledger) -> list[Step]:
    """What is to be done: figures that are there, of an older tree, come last."""
    todo = [s for s in steps if not ledger.entry(s.name).done]
    return sorted(todo, key=lambda s: bool(ledger.entry(s.name).older))


def carry_out(
    steps: Sequence[Step],
    ledger: Ledger,
    left: Callable[[], float],
    perform: Callable[[Step, float, bool], None],
    say: Callable[[str], None],
) -> None:
    """Do the steps: `perform(step, seconds, limited)` gives each its time, `left()` says how much the run has.

    First each gets what it asks for, or all that is left. Then those that are not finished share the rest, again in the order of their worth.
    What would not fit is said to be left for the next run.
    """
    for first in (True, False):
        for step in in_order(steps, ledger):
            entry, room = ledger.entry(step.name), left()
            if not first and entry.outcome != "unfinished":
                continue
            if room < step.least:
                if first and entry.outcome != "unfinished" and not entry.older:
                    ledger.note(
                        step.name, outcome="left", why=f"needs {step.least:.0f} s and {max(room, 0.0):.0f} s were left: for the next run"
                    )
                continue
            seconds = min(room, step.most) if first else room
            say(f"{step.name}: begun, at most {seconds:.0f} s of {room:.0f} s")
            perform(step, seconds, seconds < step.most or not first)
            done = ledger.entry(step.name)
            say(f"{step.name}: {done.outcome}{', ' if done.figures or done.why else ''}{done.figures or done.why}")
