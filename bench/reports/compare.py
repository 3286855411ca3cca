"""Comparison of two reports, what became slower and what faster: `python -m bench compare before.json after.json`.

Rows are matched by op, corner, type and input. A row has changed where its time moved by more than the threshold and by more than both medians'
spread together (the root of the sum of squares of their quartile distances over the median), so that a noisy row needs a larger step. A row that was
timed before and failed in the second report counts as a regression. Exit code: 1 when something regressed, 2 when the two cannot be compared.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.reports.report import device_of, read_report

METRICS = {"ms": "spread", "eager_ms": "eager_spread", "host_us": ""}  # a time, and the field with its spread
TRAINING = ("graph_ms", "eager_ms")


class Change(NamedTuple):
    """A row in both reports: its times in `unit`, the second over the first, and how far that may be from 1 without meaning anything."""

    name: str
    before: float
    after: float
    unit: str
    limit: float

    @property
    def ratio(self) -> float:
        return self.after / self.before

    @property
    def slower(self) -> bool:
        return self.ratio > 1 + self.limit

    @property
    def faster(self) -> bool:
        return self.ratio < 1 / (1 + self.limit)

    def line(self) -> str:
        """The row in words: by how much, from and to, and what would have been noise."""
        return f"{self.ratio:>7.3f} x  {self.before:>11.5g} -> {self.after:<11.5g} {self.unit}  (+-{100 * self.limit:.0f} %)  {self.name}"


class Comparison(NamedTuple):
    """All rows that both have, and the names of the others: those that failed now (and why), and those in one report alone."""

    changes: list[Change]
    broken: dict[str, str]
    gone: list[str]
    new: list[str]

    @property
    def slower(self) -> list[Change]:
        return sorted((c for c in self.changes if c.slower), key=lambda c: -c.ratio)

    @property
    def faster(self) -> list[Change]:
        return sorted((c for c in self.changes if c.faster), key=lambda c: c.ratio)


def refused(before: dict[str, Any], after: dict[str, Any]) -> str:
    """Why two reports cannot be compared; "" where they can."""
    if before["schema"] != after["schema"]:
        return f"reports of schema {before['schema']} and {after['schema']}, whose fields differ"
    if device_of(before) != device_of(after):
        return f"reports of {device_of(before)} and of {device_of(after)}: their times say nothing of a change"
    return ""


def notes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What else differs between two reports and may be the reason of a change, a line each."""
    old, new = before.get("versions", {}), after.get("versions", {})
    found = [f"{name}: {old.get(name, '?')} -> {new.get(name, '?')}" for name in sorted(old | new) if old.get(name) != new.get(name)]
    if before.get("mode") != after.get("mode"):
        found.append(f"mode: {before.get('mode')} -> {after.get('mode')}")
    for which, report in (("first", before), ("second", after)):
        clocks = report.get("clocks", {})
        throttled = sorted({t for when in ("before", "after") for t in clocks.get(when, {}).get("throttled", ())})
        found += [f"throttled in the {which}: {', '.join(throttled)}"] if throttled else []
    return found


def key_of(row: dict[str, Any]) -> str:
    """What rows are matched by."""
    return f"{row['op']} {row['corner']} {row['dtype']} {row['shape']}"


def compared(before: dict[str, Any], after: dict[str, Any], metric: str = "ms", threshold: float = 0.05) -> Comparison:
    """Rows and training steps of two reports against each other."""
    old, new = dict(_timed(before, metric)), dict(_timed(after, metric))
    failed = {
        " ".join(key.split("/", 3)): why for key, why in after.get("failed", {}).items()
    }  # keys have slashes, three of them outside the input
    changes = []
    for name in old.keys() & new.keys():
        (a, a_spread, unit), (b, b_spread, _) = old[name], new[name]
        changes.append(Change(name, a, b, unit, max(threshold, math.hypot(a_spread, b_spread))))
    gone = sorted(old.keys() - new.keys())
    broken = {n: failed[n] for n in gone if n in failed}
    return Comparison(changes, broken, [n for n in gone if n not in failed], sorted(new.keys() - old.keys()))


def _timed(report: dict[str, Any], metric: str) -> Iterator[tuple[str, tuple[float, float, str]]]:
    """(name, (time, spread, unit)) of the rows, then of training steps."""
    unit = metric.split("_")[-1]
    for row in report["rows"].values():
        if row.get(metric):
            yield key_of(row), (row[metric], row.get(METRICS[metric], 0.0), unit)
    for name, row in report.get("training", {}).items():
        for field in (metric,) if metric == "host_us" else TRAINING:
            if row.get(field):
                yield f"training: {name}, {field}", (row[field], 0.0, unit)


def told(found: Comparison, threshold: float) -> list[str]:
    """The comparison in lines, what became slower last, where a reader's eye is."""
    out = []
    for title, names in (("only in the first report", found.gone), ("only in the second report", found.new)):
        out += [f"{len(names)} rows {title}: {', '.join(names[:5])}{', ...' if len(names) > 5 else ''}"] if names else []
    for title, changes in (("faster", found.faster), ("SLOWER", found.slower)):
        out += [f"{title}:", *(c.line() for c in changes)] if changes else []
    out += [f"FAILED in the second report: {name}: {why.splitlines()[0]}" for name, why in found.broken.items()]
    same = len(found.changes) - len(found.faster) - len(found.slower)
    counts = f"{len(found.slower)} slower, {len(found.faster)} faster, {same} within {100 * threshold:g} % or their spread"
    return [*out, f"{len(found.changes)} rows compared: {counts}" + (f", {len(found.broken)} failed" if found.broken else "")]


def main(argv: Sequence[str] | None = None) -> int:
    """Print the comparison; 1 when something regressed, 2 when the reports cannot be compared."""
    parser = argparse.ArgumentParser(
        prog="python -m bench compare", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", type=Path, help="a report of `python -m bench gpu` or `bench ops --out`")
    parser.add_argument("after", type=Path, help="a later one of the same device")
    metrics = "ms: replayed from a graph (default); eager_ms: called one after another; host_us: the host alone"
    parser.add_argument("--metric", choices=METRICS, default="ms", help=metrics)
    parser.add_argument("--threshold", type=float, default=0.05, help="the least change that counts (default 0.05: five per cent)")
    parser.add_argument("--force", action="store_true", help="compare reports of different devices or schemas nevertheless")
    given = parser.parse_args(argv)
    before, after = (read_report(path, "bench compare") for path in (given.before, given.after))
    if why := refused(before, after):
        if not given.force:
            print(f"bench compare: {why}; --force compares them nevertheless", file=sys.stderr)
            return 2
        print(f"forced: {why}")
    found = compared(before, after, given.metric, given.threshold)
    if not found.changes and not found.broken:
        print(f"bench compare: the reports have no row with {given.metric} in common", file=sys.stderr)
        return 2
    print("\n".join(notes(before, after) + told(found, given.threshold)))
    return 1 if found.slower or found.broken else 0


if __name__ == "__main__":
    sys.exit(main())
