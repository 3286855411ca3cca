"""`bench static --figures`: the figures of the large kernels beside what is asked of them and what the committed table has."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path

import triton

from bench.static import lazy_figures
from bench.static.figures import Figure, compiled, counted
from bench.static.table import RESULTS, minor


def path_for(version: str) -> Path:
    """The committed figures of a Triton version."""
    return RESULTS / f"figures-triton-{minor(version)}.json"


def load(path: Path) -> list[Figure]:
    """The committed figures; none where there is no file yet."""
    if not path.exists():
        return []
    return [Figure(name, *one) for name, one in json.loads(path.read_text())["figures"].items()]


def save(path: Path, figures: Iterable[Figure], version: str) -> None:
    """Write them, a line for each, so that a diff reads."""
    lines = [f"  {json.dumps(f.name)}: {json.dumps([f.value, f.asked, f.least])}" for f in figures]
    head = {
        "written by": "python -m bench static --figures --update",
        "triton": version,
        "legend": "name: [value, asked (null: nothing), whether it is to be at least that, not at most]",
    }
    above = "".join(f" {json.dumps(k)}: {json.dumps(v)},\n" for k, v in head.items())
    path.write_text("{\n" + above + ' "figures": {\n' + ",\n".join(lines) + "\n }\n}\n")


def regressions(found: Iterable[Figure], before: Iterable[Figure]) -> list[str]:
    """What is worse than the table says, or is not measured any more, in words."""
    now = {f.name: f for f in found}
    said = [f"{f.name}: {now[f.name].value:g}, was {f.value:g}" for f in before if f.name in now and now[f.name].worse_than(f.value)]
    return said + [f"{f.name}: not measured any more" for f in before if f.name not in now]


def lines(found: Iterable[Figure], before: Iterable[Figure]) -> list[str]:
    """A table to read."""
    was = {f.name: f.value for f in before}
    rows = [("figure", "now", "table", "asked", "")]
    for f in found:
        asked = "-" if f.asked is None else f"{'>=' if f.least else '<='} {f.asked:g}"
        mark = {True: "reached", False: "not yet", None: ""}[f.reached()]
        rows.append((f.name, f"{f.value:g}", f"{was[f.name]:g}" if f.name in was else "-", asked, mark))
    widths = [max(len(r[i]) for r in rows) for i in range(5)]
    return [f"{r[0]:<{widths[0]}}  {r[1]:>{widths[1]}}  {r[2]:>{widths[2]}}  {r[3]:>{widths[3]}}  {r[4]}".rstrip() for r in rows]


def main(update: bool, processes: int | None) -> None:
    """Measure, print, write with `update`; exits with 1 where a figure is worse than the table and is not to be written."""
    path = path_for(triton.__version__)
    before = load(path)
    found = [*counted(), *lazy_figures.figures(), *compiled(processes)]
    print("\n".join(lines(found, before)))
    if update:
        save(path, found, triton.__version__)
        print(f"wrote {path}")
        return
    worse = regressions(found, before)
    if not before:
        print(f"there is no {path} to compare with; make it with --update")
    if worse:
        print("\n".join(worse), "to accept them: python -m bench static --figures --update, and commit the file", sep="\n")
        sys.exit(1)
