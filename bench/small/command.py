"""`python -m bench small`: what the host costs in programs of many small ops, ours beside torch, numpy and jax, in processor time.

Without a part named: actions, sequence, workloads and start. Every library is a process of its own, they are called in turn, and a time is the least of
the rounds.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from bench.reports.report import commit, processor, versions
from bench.small import programs, sequence
from bench.small.actions import ACTIONS
from bench.small.sides import OURS, Found, in_turn, libraries, opened
from bench.small.table import Table

WORKLOADS = {p.stem: p for p in sorted(Path(__file__).with_name("workloads").glob("*.py")) if p.stem != "__init__"}
Value = TypeVar("Value")


def asked_for(given: argparse.Namespace, names: Mapping[str, Value]) -> dict[str, Value]:
    """Those whose name contains one of --only; all where there is none."""
    return {name: value for name, value in names.items() if not given.only or any(part in name for part in given.only)}


def of_actions(given: argparse.Namespace) -> Iterable[Table]:
    """Every action alone in a loop."""
    asked = asked_for(given, {action.name: action.questions() for action in ACTIONS})
    table = Table("actions", of := libraries(given.peer, given.tree, arrays=True))
    with opened(of) as sides:
        table.add(in_turn(sides, asked, given.rounds, given.seconds))
    table.end(worse=(1.2, 2.0))
    return [table]


def of_sequence(given: argparse.Namespace) -> Iterable[Table]:
    """Statements one after another, beside the same alone."""
    table = Table("sequence", of := libraries(given.peer, given.tree))
    table.add(sequence.lines(of, given.rounds, given.seconds))
    return [table]


def of_workloads(given: argparse.Namespace) -> Iterable[Table]:
    """A step of every workload."""
    asked = {name: {"torch": {"how": "workload", "file": str(file)}} for name, file in asked_for(given, WORKLOADS).items()}
    table = Table("workloads", of := libraries(given.peer, given.tree), "ms", 1e3)
    with opened(of) as sides:
        table.add(in_turn(sides, asked, given.rounds, 5 * given.seconds))
    table.end(worse=(1.0, 1.2, 2.0))
    return [table]


def of_programs(given: argparse.Namespace) -> Iterable[Table]:
    """The programs of tests/programs, in steady state."""
    table = Table("programs", of := libraries(given.peer, given.tree), "ms", 1e3)
    for name, file in asked_for(given, programs.PROGRAMS).items():
        table.add({name: programs.steady(of, file, given.rounds, 5 * given.seconds)})
    table.end(worse=(1.0, 1.8), named=1.8)
    return [table]


def of_first(given: argparse.Namespace) -> Iterable[Table]:
    """The first run of each program in a process of its own, with the import and without it; a quarter of the rounds."""
    table = Table("first runs, import counted", of := libraries(given.peer, given.tree), "ms", 1e3)
    rest: dict[str, Found] = {}
    for name, file in asked_for(given, programs.PROGRAMS).items():
        whole, rest[name] = programs.first(of, file, max(1, given.rounds // 4))
        table.add({name: whole})
    table.end(worse=(1.0,))
    after = Table("first runs, from after the import", of, "ms", 1e3)
    after.add(rest)
    after.end(worse=(1.0, 3.0), named=3.0)
    return [table, after]


def of_start(given: argparse.Namespace) -> Iterable[Table]:
    """A process that imports the library and asks for an op and its gradient."""
    table = Table("start", of := libraries(given.peer, given.tree), "ms", 1e3)
    found, base = programs.start(of, given.rounds)
    table.add({"import, and an op with its gradient": found})
    for name in table.ours:
        if name in found.seconds:
            print(f"    {name}: {found.seconds[name] / base:.2f} of `{programs.BASE}`, {base * 1e3:.0f} ms")
    table.found[programs.BASE] = Found({programs.BASE: base}, {}, {})
    return [table]


PARTS: dict[str, Callable[[argparse.Namespace], Iterable[Table]]] = {
    "actions": of_actions, "sequence": of_sequence, "workloads": of_workloads, "start": of_start, "programs": of_programs, "first": of_first,
}  # fmt: skip
USUAL = ("actions", "sequence", "workloads", "start")


def report(tables: Iterable[Table]) -> dict[str, Any]:
    """All figures: seconds of each side, ratios to torch, errors; and of what they are."""
    found = {table.what: {label: f._asdict() for label, f in table.found.items()} for table in tables}
    return {"cpu": processor(), "commit": commit(), "versions": versions(), **found}


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m bench small", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, run in PARTS.items():
        made.add_argument(f"--{name}", action="append_const", const=name, dest="parts", help=run.__doc__)
    made.add_argument("--peer", action="store_true", help="torch beside ours")
    made.add_argument("--tree", action="append", default=[], metavar="NAME=PATH", help="another checkout of ours beside; may be repeated")
    made.add_argument("--only", type=lambda text: text.split(","), default=[], metavar="NAME,...", help="what contains one of these")
    made.add_argument("--rounds", type=int, default=9, help="alternating rounds (default 9)")
    made.add_argument(
        "--seconds", type=float, default=0.01, help="of an action in a round (default 0.01); workloads and programs: five times"
    )
    made.add_argument("--json", type=Path, metavar="FILE", help="a file for all figures")
    return made


def main(arguments: Sequence[str]) -> int:
    """Print the tables; the exit code is 1 where something failed in ours."""
    given = parser().parse_args(arguments)
    tables = [table for name in PARTS if name in (given.parts or USUAL) for table in PARTS[name](given)]
    if given.json:
        given.json.write_text(json.dumps(report(tables), indent=1) + "\n")
    return int(any(OURS in found.failed for table in tables for found in table.found.values()))
