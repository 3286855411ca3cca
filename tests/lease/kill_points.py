"""Kills a lease again and again, at moments drawn by chance, and goes on with its ledger: `python -m tests.lease.kill_points SEED...`.

A process of its own, which forks the lease: each run costs no import. Prints "whole" when everything was.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.gpu.lease.__main__ import carried_out
from tests.gpu.lease.child import processes
from tests.gpu.lease.ledger import NAME, of_this_gpu
from tests.gpu.lease.perform import Step
from tests.lease.fake_steps import IDENTITY, step, work_in
from tritensor.io.atomic import ANY_ORPHAN, remove_orphans

ITEMS = 10
STEPS = ("a", "b", "c")


def plan(folder: Path, rng: random.Random) -> list[Step]:
    """Three steps, one of which dies by itself at an item."""
    flags = ["--items", ITEMS, "--delay", 0.003, "--executed", folder / "executed"]
    return [step(name, *flags, *(["--kill-at", rng.randrange(ITEMS)] if name == "b" else [])) for name in STEPS]


def lease(folder: Path, steps: list[Step], seconds: float = 60.0) -> int:
    """One run, going on with the ledger that is there; in a process of its own, whose number is returned."""
    pid = os.fork()
    if pid:
        return pid
    os.setsid()
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 1)
        code = 1
        with contextlib.suppress(Exception):
            scratch = Path(tempfile.mkdtemp(dir=folder))
            work = work_in(scratch)
            work.out = folder / "out"
            work.ledger.path = work.out / NAME
            work.kept = {"a.jsonl": "a.jsonl"}
            work.out.mkdir(exist_ok=True)
            remove_orphans(work.out)
            if work.ledger.path.exists():
                work.ledger.go_on(of_this_gpu(work.ledger.path, IDENTITY["gpu"]), STEPS)
            code = carried_out(steps, work, seconds)
    os._exit(code)


def whole(out: Path) -> dict[str, list[str]]:
    """Look at every file; returns the items that the ledger knows, by step."""
    files = [p for p in out.iterdir() if not ANY_ORPHAN.fullmatch(p.name)]
    assert len(list(out.iterdir())) <= 8, list(out.iterdir())
    assert not [p for p in files if p.is_dir() or p.stat().st_size > 16 << 20]
    for path in files:
        text = path.read_text()
        assert text.endswith("\n") or not text, f"{path} is torn"
        if path.suffix == ".jsonl":
            [json.loads(line) for line in text.splitlines() if line]
    if not (out / NAME).exists():
        return {}
    return {name: list(entry["items"]) for name, entry in json.loads((out / NAME).read_text())["steps"].items()}


def killed(folder: Path, rng: random.Random) -> None:
    """Kill runs until one comes to its end; then everything was asked, and nothing twice that a ledger knew."""
    steps = plan(folder, rng)
    executed, known, counted = folder / "executed", set[str](), 0
    for _ in range(rng.choice([1, 2, 3])):
        pid = lease(folder, steps)
        time.sleep(rng.uniform(0.0, 0.9))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        until = time.monotonic() + 20
        while [p for p in processes() if p.state not in "ZX" and _is_of(p.pid, folder)]:
            assert time.monotonic() < until, "a step lives on without its lease"
            time.sleep(0.02)
        _not_again(executed, counted, known)
        counted = len(_lines(executed))
        if (folder / "out").exists():
            known |= {item for items in whole(folder / "out").values() for item in items}
    assert os.waitstatus_to_exitcode(os.waitpid(lease(folder, steps), 0)[1]) == 1, "b failed at one item"
    _not_again(executed, counted, known)
    found = whole(folder / "out")
    assert {name: len(items) for name, items in found.items()} == dict.fromkeys(STEPS, ITEMS), found
    assert not [p for p in (folder / "out").iterdir() if ANY_ORPHAN.fullmatch(p.name)], "a temporary file was left"


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def _not_again(executed: Path, counted: int, known: set[str]) -> None:
    again = known & set(_lines(executed)[counted:])
    assert not again, f"{again} stood in the ledger and was asked again"


def _is_of(pid: int, folder: Path) -> bool:
    with contextlib.suppress(OSError):
        return str(folder).encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


if __name__ == "__main__":
    for seed in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as place:
            killed(Path(place), random.Random(int(seed)))
    print("whole")
