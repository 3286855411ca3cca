"""Sides of `bench compile`: ours eager and lazy, torch's and jax's where they are installed, rounds in turn, results compared before a time counts."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.compile.cases import CASES
from bench.small.sides import ROOT, FailedError, Library, Side, opened, rounds_in_turn

FILE = str(Path(__file__).with_name("cases.py"))
EAGER, LAZY, TORCH, COMPILED, JIT = "tritensor", "lazy", "torch", "torch.compile", "jax.jit"
SEED = "100 sums on 4 x 3"  # has been compiled before a first call is timed: what an installation does once is not counted
COMPILERS = (COMPILED, JIT)  # which are given functions
PEERS = {"torch": (TORCH, COMPILED), "jax": (JIT,)}
CLOSE = 2e-5  # of the largest value: float32, sums in another order, another tanh


def libraries(peers: Iterable[str]) -> tuple[list[Library], list[str]]:
    """Ours and the peers that are installed, and of the others a line each. A peer is NAME, or NAME=PYTHON of another environment.

    Raises SystemExit for a name that is no peer's.
    """
    found, missing = [Library(EAGER, EAGER, ROOT), Library(LAZY, LAZY, ROOT)], []
    for text in peers:
        name, _, python = text.partition("=")
        if name not in PEERS:
            raise SystemExit(
                f"bench compile: --peer {text}: the peers are {', '.join(PEERS)}, each alone or as NAME=PYTHON of another environment"
            )
        python = python or sys.executable
        asked = [python, "-c", f"import importlib.util, sys; sys.exit(importlib.util.find_spec('{name}') is None)"]
        if subprocess.run(asked, check=False).returncode:
            missing.append(f"{name} is not installed for {python}: left out. Name a Python that has it: --peer {name}=PATH/bin/python")
        else:
            found += [Library(side, side, None, python) for side in PEERS[name]]
    return found, missing


class Taken(NamedTuple):
    """What one call of a case took, in processor seconds: the median and the least of the rounds of each side that gave the right result; errors."""

    medians: dict[str, float]
    bests: dict[str, float]
    failed: dict[str, str]

    def ratio(self, side: str, best: bool = False) -> float | None:
        """Ours, lazy, to a side, by the medians or by the bests; None where one of them has no time."""
        seconds = self.bests if best else self.medians
        return seconds[LAZY] / seconds[side] if {LAZY, side} <= seconds.keys() else None


def question(side: str, case: str, keep: str = "") -> dict[str, str]:
    """What a child is to build."""
    return {"how": "workload", "file": FILE, "side": side, "case": case, "keep": keep}


def known(of: Sequence[Library], cases: Iterable[str], rounds: int, seconds: float) -> dict[str, Taken]:
    """{case: what a call took once it is known}."""
    with tempfile.TemporaryDirectory() as folder, opened(of) as sides:
        files = {
            case: {s.name: str(Path(folder) / f"{k} {s.name}.npz") for s in of if not (CASES[case].cursor and s.name in COMPILERS)}
            for k, case in enumerate(cases)
        }
        asked = {case: {side: question(side, case, keep) for side, keep in own.items()} for case, own in files.items()}
        times, failed = rounds_in_turn(sides, asked, rounds, seconds)
        for case, own in files.items():
            for side, keep in own.items():
                if side not in failed[case] and (why := difference(own[EAGER], keep)):
                    failed[case][side] = why
    return {case: taken(times[case], failed[case]) for case in files}


def taken(times: Mapping[str, Sequence[float]], failed: Mapping[str, str]) -> Taken:
    """Of the rounds of each side that has not failed."""
    good = {side: found for side, found in times.items() if found and side not in failed}
    return Taken({s: statistics.median(t) for s, t in good.items()}, {s: min(t) for s, t in good.items()}, dict(failed))


def difference(expected: str, found: str) -> str:
    """How the results in one file differ from those of eager tritensor in another; "" where they do not."""
    if not Path(expected).exists():
        return f"there is no result of {EAGER} to compare with"
    with np.load(expected) as a, np.load(found) as b:
        if a.files != b.files:
            return f"gives {len(b.files)} results, {EAGER} {len(a.files)}"
        for name in a.files:
            x, y = a[name], b[name]
            if x.shape != y.shape or x.dtype != y.dtype:
                return f"gives {y.dtype} {y.shape}, {EAGER} {x.dtype} {x.shape}"
            off = float(np.abs(x.astype(np.float64) - y).max(initial=0.0))
            if not off <= CLOSE * max(1.0, float(np.abs(x).max(initial=0.0))):
                return f"differs from {EAGER} by {off:.2g}"
    return ""


def first(of: Sequence[Library], cases: Iterable[str]) -> dict[str, dict[str, Any]]:
    """{case: {side: [seconds of its first call in a fresh process, the same in a second process], or the error}}, by the clock.

    What compilers keep is empty but for another program's, so that what an installation does once is not counted; import and inputs are left out.
    """
    found: dict[str, dict[str, Any]] = {case: {} for case in cases}
    for library in of:
        with tempfile.TemporaryDirectory() as folder:
            _first_call(library, SEED, f"{folder}/seed")
            for k, case in enumerate(found):
                cache = shutil.copytree(f"{folder}/seed", f"{folder}/{k}")
                try:
                    found[case][library.name] = [_first_call(library, case, cache) for _ in range(2)]
                except FailedError as error:
                    found[case][library.name] = str(error)
    return found


def _first_call(library: Library, case: str, cache: str) -> float:
    os.makedirs(cache, exist_ok=True)
    with Side(library, cache) as side:
        side.ask(build=case, **question(library.name, case))
        return float(side.ask(run=case, calls=1)["wall"])
