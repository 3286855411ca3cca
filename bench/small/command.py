"""`python -m bench small`: what the host costs in programs of many small ops, ours beside torch, numpy and jax, in processor time.

Without a part named: actions, sequence and workloads. Every library is a process of its own, they are called in turn, and a time is the least of the rounds.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.reports.report import commit, processor, versions
from bench.small.actions import ACTIONS, AROUND, SEQUENCE, statement
from bench.small.sides import FLOOR, JAX, OURS, TORCH, Found, Library, in_turn, libraries, opened, summary

WORKLOADS = {p.stem: p for p in sorted(Path(__file__).with_name("workloads").glob("*.py")) if p.stem != "__init__"}
ALONE, TOGETHER = f"{len(SEQUENCE)} statements, each in a loop of its own", "the same in sequence"


class Part:
    """A table as it is printed: a line for each thing that is timed, then the means. `unit` and `scale` are of its times."""

    def __init__(self, what: str, of: Sequence[Library], unit: str = "us", scale: float = 1e6) -> None:
        self.what, self.unit, self.scale = what, unit, scale
        names = [library.name for library in of]
        self.ours = [library.name for library in of if library.path]
        self.peer, self.arrays = TORCH in names, [n for n in (FLOOR, JAX) if n in names]
        self.found: dict[str, Found] = {}
        head = f"\n{what:<52}{OURS:>13}" + f"{TORCH:>13}{'':>16}" * self.peer
        head += "".join(f"{name:>16}" + f"{'':>16}" * self.peer for name in self.ours[1:])
        print(head + "".join(f"{name:>13}" for name in self.arrays), flush=True)

    def add(self, found: Mapping[str, Found]) -> None:
        """Print a line for each label, and one for each side that failed. The line of ours and torch's is that of bench/cpu/timing.py."""
        self.found |= found
        for label, (seconds, ratios, failed) in found.items():
            told = {name: f"{took * self.scale:.2f} {self.unit}" for name, took in seconds.items()}
            beside = {name: f"{ratio:.2f} x torch" for name, ratio in ratios.items()}
            text = f"{label:<52}{told.get(OURS, '-'):>13}" + f"{told.get(TORCH, '-'):>13}{beside.get(OURS, ''):>16}" * self.peer
            text += "".join(f"{told.get(name, '-'):>16}" + f"{beside.get(name, ''):>16}" * self.peer for name in self.ours[1:])
            print(text + "".join(f"{told.get(name, ''):>13}" for name in self.arrays), flush=True)
            for name, error in failed.items():
                print(f"    {name} FAILED {error}", flush=True)

    def end(self, worse: Sequence[float] = (), named: float | None = None) -> None:
        """The geometric mean of each of ours, how many are above the bounds, and those above `named` by name."""
        for name in self.ours if self.peer else []:
            ratios = {label: found.ratios[name] for label, found in self.found.items() if name in found.ratios}
            if not ratios:
                continue
            of = f"geometric mean of the {self.what}" + (f", {name}" if name != OURS else "")
            print(f"{of:<52}{statistics.geometric_mean(ratios.values()):>34.2f} x torch")
            counts = ", ".join(f"{sum(r > bound for r in ratios.values())} above {bound:g}" for bound in worse)
            print(f"    of {len(ratios)}{': ' * bool(counts)}{counts}")
            for label, ratio in sorted(ratios.items(), key=lambda item: -item[1]):
                if named is not None and ratio > named:
                    print(f"    {ratio:.2f}  {label}")


def named_by(only: Sequence[str], name: str) -> bool:
    """Whether a name contains one of those asked for; all do where none is."""
    return not only or any(part in name for part in only)


def actions(given: argparse.Namespace) -> Part:
    """Every action alone in a loop."""
    asked = {action.name: action.questions() for action in ACTIONS if named_by(given.only, action.name)}
    part = Part("actions", of := libraries(given.peer, given.tree, arrays=True))
    with opened(of) as sides:
        part.add(in_turn(sides, asked, given.rounds, given.seconds))
    part.end(worse=(1.2, 2.0))
    return part


def sequence_lines(of: Sequence[Library], rounds: int, seconds: float) -> dict[str, Found]:
    """SEQUENCE: a loop for each of its statements, summed, and one loop over all of them."""
    asked = {body: {"torch": statement(body, AROUND, *SEQUENCE)} for body in [*SEQUENCE, "\n".join(SEQUENCE)]}
    with opened(of) as sides:
        *alone, together = in_turn(sides, asked, rounds, seconds).values()
    failed = {name: error for found in alone for name, error in found.failed.items()}
    return {
        ALONE: summary({name: [sum(f.seconds[name] for f in alone)] for name in alone[0].seconds if name not in failed}, failed),
        TOGETHER: together,
    }


def sequence(given: argparse.Namespace) -> Part:
    """Statements one after another beside the same alone."""
    part = Part("sequence", of := libraries(given.peer, given.tree))
    part.add(sequence_lines(of, given.rounds, given.seconds))
    return part


def workloads(given: argparse.Namespace) -> Part:
    """A step of every workload."""
    asked = {name: {"torch": {"how": "workload", "file": str(file)}} for name, file in WORKLOADS.items() if named_by(given.only, name)}
    part = Part("workloads", of := libraries(given.peer, given.tree), "ms", 1e3)
    with opened(of) as sides:
        part.add(in_turn(sides, asked, given.rounds, 5 * given.seconds))
    part.end(worse=(1.0, 1.2, 2.0))
    return part


PARTS: dict[str, Callable[[argparse.Namespace], Part]] = {"actions": actions, "sequence": sequence, "workloads": workloads}
USUAL = ("actions", "sequence", "workloads")


def report(parts: Mapping[str, Part]) -> dict[str, Any]:
    """All figures: seconds of each side, ratios to torch, errors; and of what they are."""
    found = {name: {label: f._asdict() for label, f in part.found.items()} for name, part in parts.items()}
    return {"cpu": processor(), "commit": commit(), "versions": versions(), **found}


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m bench small", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, run in PARTS.items():
        made.add_argument(f"--{name}", action="append_const", const=name, dest="parts", help=run.__doc__)
    made.add_argument("--peer", action="store_true", help="torch beside ours")
    made.add_argument(
        "--tree", action="append", default=[], metavar="NAME=PATH", help="another checkout of ours beside; may be given several times"
    )
    made.add_argument("--only", type=lambda text: text.split(","), default=[], metavar="NAME,...", help="what contains one of these")
    made.add_argument("--rounds", type=int, default=9, help="alternating rounds (default 9)")
    made.add_argument(
        "--seconds", type=float, default=0.01, help="of a round of an action; workloads take ten times as long (default 0.01)"
    )
    made.add_argument("--json", type=Path, metavar="FILE", help="a file for all figures")
    return made


def main(arguments: Sequence[str]) -> int:
    """Print the tables; the exit code is 1 where something failed in ours."""
    given = parser().parse_args(arguments)
    parts = {name: PARTS[name](given) for name in PARTS if name in (given.parts or USUAL)}
    if given.json:
        given.json.write_text(json.dumps(report(parts), indent=1) + "\n")
    return int(any(OURS in found.failed for part in parts.values() for found in part.found.values()))
