"""`python -m bench compile`: what lazy evaluation makes of formulas and cells written by hand, beside eager, torch, torch.compile and jax.jit.

Without a part named: calls that are known. Every side is a process of its own with one thread, they are called in turn, results are compared first; a time
is the median of the rounds in processor time, the best of them in brackets, of first calls by the clock.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.compile.cases import CASES, FORMULAS, OPS
from bench.compile.sides import COMPILED, EAGER, JIT, LAZY, TORCH, Taken, first, known, libraries
from bench.reports.report import commit, processor, versions

BESIDE = (EAGER, TORCH, COMPILED, JIT)
LIMIT = 0.5  # seconds of a first call that are asked for


class Asked(NamedTuple):
    """A ratio of ours, lazy, to a side that is asked for: of a case, or of the geometric mean of all formulas ("")."""

    case: str
    side: str
    most: float

    def measured(self, found: Mapping[str, Taken]) -> float | None:
        return mean(found, self.side) if not self.case else found[self.case].ratio(self.side) if self.case in found else None

    @property
    def name(self) -> str:
        return f"{self.case or 'geometric mean of the formulas'} / {self.side}"


ASKED = (
    Asked("gelu-tanh, 1M", TORCH, 0.25), Asked("gelu-tanh, 1M", COMPILED, 0.6), Asked("layer norm, 4096 x 768", TORCH, 0.4),
    Asked("cross-entropy, 256 x 10k", TORCH, 0.45), Asked("Adam, 1M", TORCH, 0.35), Asked("rotary, 8 x 12 x 256 x 64", TORCH, 0.4),
    Asked("", COMPILED, 0.7), Asked("", JIT, 0.7), Asked(f"{OPS} sums on 4 x 3, nothing held", EAGER, 0.35), Asked("LSTM, T 32 B 8 H 32", TORCH, 0.45),
)  # fmt: skip


def mean(found: Mapping[str, Taken], side: str) -> float | None:
    """The geometric mean of the formulas' ratios to a side; None unless all are there."""
    ratios = [found[case].ratio(side) if case in found else None for case in FORMULAS]
    return None if None in ratios else statistics.geometric_mean(ratios)  # type: ignore[arg-type]


def lines_of_known(found: Mapping[str, Taken], beside: Sequence[str]) -> list[str]:
    """A line for each case: what it took lazily, and its ratio to each other side."""
    lines = [f"\n{'a known call':<40}{LAZY + ', us':>12}" + "".join(f"{'/ ' + side:>20}" for side in beside)]
    for case, t in found.items():
        text = f"{case:<40}" + (f"{t.medians[LAZY] * 1e6:>12.1f}" if LAZY in t.medians else f"{'-':>12}")
        for side in beside:
            ratio, best = t.ratio(side), t.ratio(side, best=True)
            text += f"{'-' if ratio is None else f'{ratio:.2f} ({best:.2f})':>20}"
        lines += [text, *[f"    {side} FAILED {error}" for side, error in t.failed.items()]]
    means = [mean(found, side) for side in beside]
    if any(m is not None for m in means):
        lines.append(
            f"{f'geometric mean of the {len(FORMULAS)} formulas':<52}"
            + "".join(f"{'-' if m is None else f'{m:.2f}':>13}{'':7}" for m in means)
        )
    return lines


def lines_of_asked(found: Mapping[str, Taken]) -> list[str]:
    """What is asked beside what was measured."""
    rows = [(a, a.measured(found)) for a in ASKED]
    lines = [f"\n{'figure':<56}{'asked':>10}{'measured':>10}"] if any(m is not None for _, m in rows) else []
    return lines + [
        f"{a.name:<56}{f'<= {a.most:g}':>10}{m:>10.2f}  {'reached' if m <= a.most else 'not yet'}" for a, m in rows if m is not None
    ]


def lines_of_first(found: Mapping[str, Mapping[str, Any]], sides: Sequence[str]) -> list[str]:
    """A line for each case: seconds of the first call, and in brackets of that in a second process."""
    lines = [f"\n{f'first call, s; {LAZY}: asked <= {LIMIT:g}':<40}" + "".join(f"{side:>20}" for side in sides)]
    for case, own in found.items():
        told = {side: s if isinstance(s, str) else f"{s[0]:.2f} ({s[1]:.2f})" for side, s in own.items()}
        lines.append(f"{case:<40}" + "".join(f"{'failed' if isinstance(own[side], str) else told[side]:>20}" for side in sides))
        lines += [f"    {side} FAILED {s}" for side, s in own.items() if isinstance(s, str)]
    return lines


def lazy_launches() -> list[Any]:
    """The figures of bench/static/lazy_figures.py, printed."""
    os.environ.pop("TRITON_INTERPRET", None)  # read when a kernel is defined
    from bench.static import figures_table, lazy_figures

    found = list(lazy_figures.figures())
    print("\n".join(["", *figures_table.lines(found, [])]), flush=True)
    return found


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m bench compile", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--known", action="store_true", help="calls that are known (what is measured where no part is named)")
    made.add_argument(
        "--first", action="store_true", help="the first call of each in a process of its own, and in a second one; minutes with torch"
    )
    made.add_argument(
        "--launches", action="store_true", help="launches and bytes on a GPU that is not there, as in `bench static --figures`"
    )
    made.add_argument(
        "--peer", type=lambda text: text.split(","), default=[], metavar="torch,jax", help="beside ours; jax=PYTHON: of another environment"
    )
    made.add_argument(
        "--only", type=lambda text: text.split(";"), default=[], metavar="NAME;...", help="cases whose name contains one of these"
    )
    made.add_argument("--rounds", type=int, default=9, help="rounds in turn (default 9)")
    made.add_argument("--seconds", type=float, default=0.03, help="of a case in a round (default 0.03)")
    made.add_argument("--json", type=Path, metavar="FILE", help="a file for all figures")
    return made


def main(arguments: Sequence[str]) -> int:
    """Print the tables; the exit code is 1 where something failed in ours."""
    given = parser().parse_args(arguments)
    of, missing = libraries(given.peer)
    print("\n".join(missing))
    cases = [case for case in CASES if not given.only or any(part in case for part in given.only)]
    made: dict[str, Any] = {"cpu": processor(), "commit": commit(), "versions": versions(), "missing": missing}
    failed = False
    if given.known or not (given.first or given.launches):
        found = known(of, cases, given.rounds, given.seconds)
        beside = [side for side in BESIDE if side in {library.name for library in of}]
        print("\n".join([*lines_of_known(found, beside), *lines_of_asked(found)]), flush=True)
        made["known"] = {case: t._asdict() | {"ratios": {side: t.ratio(side) for side in beside}} for case, t in found.items()}
        made["geometric means"] = {side: mean(found, side) for side in beside}
        made["asked"] = [{"figure": a.name, "asked": a.most, "measured": a.measured(found)} for a in ASKED]
        failed = any({EAGER, LAZY} & t.failed.keys() for t in found.values())
    if given.first:
        compilers = [library for library in of if library.name not in (EAGER, TORCH)]
        made["first"] = first(compilers, cases)
        print("\n".join(lines_of_first(made["first"], [library.name for library in compilers])), flush=True)
        failed = failed or any(isinstance(own[LAZY], str) for own in made["first"].values())
    if given.launches:
        made["launches"] = {f.name: [f.value, f.asked] for f in lazy_launches()}
    if given.json:
        given.json.write_text(json.dumps(made, indent=1) + "\n")
    return int(failed)
