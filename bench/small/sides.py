"""Sides of a comparison: a process for each library, asked in turn for processor times."""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
CHILD = Path(__file__).with_name("child.py")
ESTIMATES = 3  # runs that say how many calls a round is; in one of them ours may learn its plans, which takes as long as thousands of calls
CACHES = ("TRITENSOR_CACHE", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "JAX_COMPILATION_CACHE_DIR")
OURS, TORCH, FLOOR, JAX = "tritensor", "torch", "numpy", "jax"


class FailedError(Exception):
    """What a side could not do, in one line."""


class Library(NamedTuple):
    """A name to print; the kind of its statements, "torch", "numpy" or "jax"; of ours the folder that holds the package; which Python runs it."""

    name: str
    kind: str
    path: Path | None = None
    python: str = sys.executable


def libraries(peer: bool, trees: Sequence[str] = (), arrays: bool = False) -> list[Library]:
    """torch's (where asked for) first, then ours, other trees of ours (NAME=PATH), and with `arrays` numpy and jax where it is installed.

    Raises SystemExit where torch is asked for and not installed, and for a tree that holds no package of ours.
    """
    if peer and importlib.util.find_spec("torch") is None:
        raise SystemExit("bench small: torch is not installed here; leave --peer out, or use an environment that has it")
    ours = [Library(OURS, "torch", ROOT)]
    for text in trees:
        name, _, path = text.partition("=")
        if not (Path(path) / "tritensor" / "__init__.py").exists() or name in (OURS, TORCH, FLOOR, JAX):
            raise SystemExit(f"bench small: --tree {text}: write NAME=PATH, a name of its own and a folder that holds tritensor/")
        ours.append(Library(name, "torch", Path(path).resolve()))
    found = [Library(TORCH, "torch")] * peer + ours
    if arrays:
        found += [Library(FLOOR, "numpy")] + [Library(JAX, "jax")] * (importlib.util.find_spec("jax") is not None)
    return found


def environment(path: Path | None) -> dict[str, str]:
    """What a child finds: its package, BLAS threads as `python -m bench --threads` says, no warnings."""
    threads = os.environ.get("OMP_NUM_THREADS", "1")
    env = {k: v for k, v in os.environ.items() if k not in ("TRITON_INTERPRET", "PYTHONDONTWRITEBYTECODE", "PYTHONPATH")}
    env |= {f"{name}_NUM_THREADS": threads for name in ("OMP", "OPENBLAS", "MKL")} | {"PYTHONWARNINGS": "ignore", "JAX_PLATFORMS": "cpu"}
    if threads == "1":
        env["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    return env if path is None else env | {"PYTHONPATH": str(path)}


class Side:
    """A library's process. A context; it works in a folder of its own, which goes with it. `cache`: where compilers keep what they make (None: as ever)."""

    def __init__(self, library: Library, cache: str | None = None) -> None:
        self.library = library
        kept = {} if cache is None else dict.fromkeys(CACHES, cache)
        self._folder = tempfile.TemporaryDirectory()
        self._said = open(os.path.join(self._folder.name, "stderr"), "w+")  # noqa: SIM115
        run = ["-m", "tritensor.run"] if library.path else []
        self._process = subprocess.Popen(
            [library.python, *run, str(CHILD), library.kind], env=environment(library.path) | kept, cwd=self._folder.name,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said, text=True,
        )  # fmt: skip

    def ask(self, **question: Any) -> dict[str, Any]:
        """The answer of bench/small/child.py. Raises FailedError with the error's line, or the last that an ended process said."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # then there is no answer
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
        text = self._process.stdout.readline()
        if not text:
            self._said.seek(0)
            raise FailedError(f"ended with {self._process.wait()}: {(self._said.read().splitlines() or ['it said nothing'])[-1]}")
        answer = json.loads(text)
        if "error" in answer:
            raise FailedError(answer["error"])
        return answer

    def seconds(self, label: str, calls: int) -> float:
        """Processor seconds that one of so many calls of what was built under a label took."""
        return float(self.ask(run=label, calls=calls)["seconds"])

    def __enter__(self) -> Side:
        return self

    def __exit__(self, *exc: object) -> None:
        with contextlib.suppress(BrokenPipeError):  # it has ended
            self._process.communicate()
        self._said.close()
        self._folder.cleanup()


@contextlib.contextmanager
def opened(of: Iterable[Library]) -> Iterator[list[Side]]:
    """A process for each library."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Side(library)) for library in of]


class Found(NamedTuple):
    """Of each side the least seconds of a call, their ratio to torch's, or the error."""

    seconds: dict[str, float]
    ratios: dict[str, float]
    failed: dict[str, str]


def summary(times: Mapping[str, Sequence[float]], failed: Mapping[str, str]) -> Found:
    """Of the rounds of each side that has not failed: what others do on the machine leaves the least alone."""
    least = {name: min(found) for name, found in times.items() if found and name not in failed}
    peer = least.get(TORCH)
    return Found(least, {name: took / peer for name, took in least.items() if name != TORCH} if peer else {}, dict(failed))


def in_turn(sides: Sequence[Side], asked: Mapping[str, Mapping[str, dict[str, Any]]], rounds: int, seconds: float) -> dict[str, Found]:
    """{label: what it took} of {label: {kind of library: what to build}}; see `rounds_in_turn`."""
    times, failed = rounds_in_turn(sides, asked, rounds, seconds)
    return {label: summary(times[label], failed[label]) for label in asked}


def rounds_in_turn(
    sides: Sequence[Side], asked: Mapping[str, Mapping[str, dict[str, Any]]], rounds: int, seconds: float
) -> tuple[dict[str, dict[str, list[float]]], dict[str, dict[str, str]]]:
    """{label: {side: seconds of a call in each round}}, {label: {side: error}} of {label: {kind of library: what to build}}; a kind that is left out is
    not asked.

    A round calls everything once for about so many seconds, each label's sides one after another, so that the rounds of a label lie far apart and
    what disturbs the machine for a second spoils one of them. The first calls, which may compile and fill caches, are left out.
    """
    times: dict[str, dict[str, list[float]]] = {label: {} for label in asked}
    failed: dict[str, dict[str, str]] = {label: {} for label in asked}
    calls: dict[tuple[str, str], int] = {}

    def prepare(label: str, side: Side) -> None:
        side.ask(build=label, **asked[label][side.library.kind])
        side.seconds(label, 1)
        one, count = float("inf"), 1
        for _ in range(ESTIMATES):
            one = min(one, side.seconds(label, count))
            count = max(1, round(seconds / max(one, 1e-8)))
        calls[label, side.library.name] = count
        times[label][side.library.name] = []

    def time(label: str, side: Side) -> None:
        times[label][side.library.name].append(side.seconds(label, calls[label, side.library.name]))

    for work in (prepare, *[time] * rounds):
        for label, side in itertools.product(asked, sides):
            if side.library.kind in asked[label] and side.library.name not in failed[label]:
                try:
                    work(label, side)
                except FailedError as error:
                    failed[label][side.library.name] = str(error)
    return times, failed
