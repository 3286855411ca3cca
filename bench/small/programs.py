"""Whole programs, those of tests/programs: in steady state, and as a process runs them for the first time."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.small.sides import ROOT, FailedError, Found, Library, Side, environment, in_turn, opened, summary

FOLDER = ROOT / "tests" / "programs"
PROGRAMS = {p.relative_to(FOLDER).with_suffix("").as_posix(): p for p in sorted(FOLDER.glob("*/*.py")) if p.stem != "__init__"}
BASE, START = "import numpy, triton", "import {} as t; x = t.ones(2, requires_grad=True); (x * 2).sum().backward()"


def steady(of: Sequence[Library], file: Path, rounds: int, seconds: float) -> Found:
    """A run of a program after its first, in a process that runs nothing else."""
    with opened(of) as sides:
        return in_turn(sides, {"": {"torch": {"how": "program", "file": str(file)}}}, rounds, seconds)[""]


def first(of: Sequence[Library], file: Path, rounds: int) -> tuple[Found, Found]:
    """The first run of a program in a process of its own: all that the process has worked, and from after `import torch` to the end."""
    whole: dict[str, list[float]] = {library.name: [] for library in of}
    run: dict[str, list[float]] = {library.name: [] for library in of}
    failed: dict[str, str] = {}
    for _ in range(rounds):
        for library in of:
            with Side(library) as side:
                try:
                    side.ask(build="", how="program", file=str(file))
                    answer = side.ask(run="", calls=1)
                except FailedError as error:
                    failed[library.name] = str(error)
                else:
                    whole[library.name].append(answer["process"])
                    run[library.name].append(answer["seconds"])
    return summary(whole, failed), summary(run, failed)


def start(of: Sequence[Library], rounds: int) -> tuple[Found, float]:
    """A process that imports a library and asks for an op and its gradient, and the seconds of one that imports numpy and Triton."""
    codes = {library.name: (START.format("tritensor" if library.path else "torch"), library.path) for library in of}
    times: dict[str, list[float]] = {name: [] for name in (*codes, BASE)}
    failed: dict[str, str] = {}
    for _ in range(rounds):
        for name, (code, path) in (codes | {BASE: (BASE, None)}).items():
            command = [sys.executable, "-P", "-c", f"{code}; import time; print(time.process_time())"]
            done = subprocess.run(command, env=environment(path), capture_output=True, text=True, check=False)
            if done.returncode:
                failed[name] = done.stderr.splitlines()[-1]
            else:
                times[name].append(float(done.stdout))
    base = min(times.pop(BASE), default=float("nan"))
    return summary(times, failed), base
