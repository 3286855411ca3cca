"""`python -m tests.mutate --count 200 --seed 1 [--only kernels/softmax.py] [--tier quick full] [--jobs 2]`: plant one bug at a time and see whether a test finds it.

Of several tiers a later one, which asks all that the earlier do, is asked what survived them.
The checkout is never touched, and may be edited meanwhile: each job works in a copy of the tree in a temporary folder. A run that takes too long has found its
bug. What survives is printed as a diff; the exit code is 1 where less than --least per cent were found. The same seed on the
same tree plants the same bugs.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import itertools
import json
import os
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("TRITON_INTERPRET", "1")

from tests.mutate.equivalent import reason
from tests.mutate.faults import Fault, faults, parses
from tests.mutate.selection import Stage, stages

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("kernels", "autograd", "tritensor/dispatch", "tritensor/tensor")
LEAST = {"quick": 90.0, "standard": 95.0, "full": 95.0}  # per cent that a tier must find
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "__pycache__", "out", "dist", "*.egg-info", ".*_cache", ".hypothesis", "shared")
OUTSIDE = ("numpy", "ml_dtypes", "triton.language", "triton.runtime.interpreter", "pytest")  # loaded once: no fault is planted there
BELOW_KERNELS = (*OUTSIDE, "tritensor", "tritensor.testing.questions.ask")  # what no fault in kernels/ changes


class Verdict(NamedTuple):
    fault: Fault
    line: int
    diff: str
    killer: str  # the test that found it, "" for a survivor
    seconds: float


class Copy:
    """A copy of the tree, for one job."""

    def __init__(self, folder: Path, tier: str) -> None:
        self.root = folder
        self.tier = tier
        shutil.copytree(ROOT, folder, symlinks=True, ignore=LEFT_OUT)
        self.changes = 0
        self.servers: dict[tuple[str, ...], subprocess.Popen[str]] = {}

    def judged(self, fault: Fault, sound: dict[str, bool], asked: list[Stage] | None = None) -> Verdict:
        """Plant a fault, run the stages (those of its file, where none are given) until one finds it, and take it out again."""
        begin = time.monotonic()
        path = self.root / fault.path
        source = path.read_bytes()
        killer = ""
        for stage in stages(self.root, fault.path, fault.function, self.tier) if asked is None else asked:
            while not killer:
                self._write(path, fault.planted(source))
                killer = self._run(fault, stage)
                self._write(path, source)
                if not killer or "/" not in killer:
                    break
                if killer not in sound:
                    sound[killer] = self._run(fault, stage._replace(what=[killer])) in (
                        "",
                        "import",
                    )  # "import": only the fault names it so
                if not sound[killer]:
                    print(f"{killer} fails without any fault: it counts for nothing", flush=True)
                    kept = [w for w in stage.what if w != killer] if stage.do == "ask" else [*stage.what, "--deselect", killer]
                    stage, killer = stage._replace(what=kept), ""
            if killer:
                break
        line = source[: fault.start].count(b"\n") + 1
        return Verdict(fault, line, fault.diff(source), killer, time.monotonic() - begin)

    def _write(self, path: Path, text: bytes) -> None:
        """Write a file with a time of its own, so that no byte code of another version is taken for it."""
        self.changes += 1
        path.write_bytes(text)
        os.utime(path, (1_000_000_000 + self.changes, 1_000_000_000 + self.changes))

    def _run(self, fault: Fault, stage: Stage) -> str:
        """What finds the fault: a test, a walk, "time", "import" or "crash"; "" where nothing does."""
        server = self._server(BELOW_KERNELS if fault.path.count("/") > 1 and fault.path.startswith("kernels/") else OUTSIDE)
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps({"do": stage.do, "what": stage.what, "limit": stage.limit, "tier": self.tier}) + "\n")
        server.stdin.flush()
        return str(json.loads(server.stdout.readline())["killer"])

    def _server(self, loaded: tuple[str, ...]) -> subprocess.Popen[str]:
        """The process that has loaded these modules from the copy."""
        if loaded not in self.servers:
            environment = os.environ | {"PYTHONPATH": str(self.root), "OPENBLAS_NUM_THREADS": "1", "TRITON_INTERPRET": "1"}
            command = [sys.executable, "-m", "tests.mutate.server", *loaded]
            self.servers[loaded] = subprocess.Popen(
                command, cwd=self.root, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        return self.servers[loaded]

    def close(self) -> None:
        for server in self.servers.values():
            server.communicate()


def chosen(count: int, seed: int, only: list[str]) -> list[Fault]:
    """The faults to plant: a random choice among all, the same for the same seed."""
    files = sorted(
        {
            p.relative_to(ROOT).as_posix()
            for room in only or ROOMS
            for p in ([ROOT / room] if (ROOT / room).is_file() else (ROOT / room).rglob("*.py"))
            if not p.stem.endswith("samples")
        }
    )
    texts = {name: (ROOT / name).read_bytes() for name in files}
    every = [f for name in files for f in faults(name, texts[name])]
    random.Random(seed).shuffle(every)
    good = (f for f in every if parses(f, texts[f.path]) and not reason(f, texts[f.path]))
    return sorted(itertools.islice(good, count))


def judge(found: list[Fault], jobs: int, tier: str) -> list[Verdict]:
    """Every fault's verdict, a line each as they come."""
    sound: dict[str, bool] = {}
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        free: queue.Queue[Copy] = queue.Queue()
        for k in range(jobs):
            free.put(Copy(Path(folder) / f"tree{k}", tier))
        copies = list(free.queue)

        def one(fault: Fault) -> Verdict:
            tree = free.get()
            try:
                verdict = tree.judged(fault, sound)
            finally:
                free.put(tree)
            print(f"{verdict.killer or 'SURVIVED'}  {fault.path}:{verdict.line} {fault.kind} ({verdict.seconds:.0f} s)", flush=True)
            return verdict

        try:
            return list(pool.map(one, found))
        finally:
            for tree in copies:
                tree.close()


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=200, help="how many bugs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--only", action="append", default=[], metavar="PATH", help=f"a file or folder; {', '.join(ROOMS)} when none is given"
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--tier",
        nargs="+",
        choices=LEAST,
        default=["full"],
        help="which tiers' tests are to find them, in turn; full walks ops in every layout",
    )
    parser.add_argument("--least", type=float, help="per cent that must be found: " + ", ".join(f"{v} of {k}" for k, v in LEAST.items()))
    parser.add_argument("--list", action="store_true", help="show the bugs as diffs, and plant none")
    given = parser.parse_args()
    found = chosen(given.count, given.seed, given.only)
    if given.list:
        for fault in found:
            print(f"{fault.kind}\n{fault.diff((ROOT / fault.path).read_bytes())}\n")
        return 0
    enough = True
    left, total = found, max(len(found), 1)
    for tier in given.tier:
        begin = time.monotonic()
        survivors = [v for v in judge(left, given.jobs, tier) if not v.killer]
        left = [v.fault for v in survivors]
        share = 100 * (1 - len(left) / total)
        for v in survivors:
            print(f"\nsurvived: {v.fault.kind}\n{v.diff}")
        seconds = time.monotonic() - begin
        print(
            f"\n{tier}: {len(found) - len(left)} of {len(found)} bugs found ({share:.1f} %), {len(left)} survive, {seconds:.0f} s",
            flush=True,
        )
        enough = enough and share >= (LEAST[tier] if given.least is None else given.least)
    return 0 if enough else 1


if __name__ == "__main__":
    sys.exit(main())
