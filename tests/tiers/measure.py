"""`python -m tests.tiers.measure [tests/onnx ...]`: processor seconds of each item of the standard tier, noted by test function in measured.json.

A room at a time in a process of its own. What a test's children compute is counted, and what theirs do. Needs Linux.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.tiers import TIERS
from tests.tiers.marks import MEASURED

NOTED = 0.3  # seconds; a function that takes less in all its items is asked whole in every tier
NOTE = "TRITENSOR_ITEM_SECONDS"  # the file that the process of a room writes to


TICK = os.sysconf("SC_CLK_TCK")


def spent() -> float:
    """Processor seconds of this process, of those that it has started, and of theirs; also of those that go on."""
    return sum(os.times()[:4]) + sum(map(_of_child, _children(os.getpid())))


def _children(process: int) -> list[int]:
    with contextlib.suppress(OSError):  # it has just ended
        return [int(n) for task in Path(f"/proc/{process}/task").iterdir() for n in (task / "children").read_text().split()]
    return []


def _of_child(process: int) -> float:
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / TICK + sum(map(_of_child, _children(process)))  # its own, and that of whom it has waited for
    return 0.0


class Clock:
    """A plug-in that notes what each item takes."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        before = spent()
        result = yield
        self.seconds[item.nodeid] = max(spent() - before, 0.0)
        return result


def by_function(seconds: dict[str, float]) -> dict[str, list[float]]:
    """{test function: [items, seconds]} of those worth noting."""
    found: dict[str, list[float]] = defaultdict(lambda: [0, 0.0])
    for name, taken in seconds.items():
        row = found[name.partition("[")[0]]
        row[0], row[1] = row[0] + 1, row[1] + taken
    return {name: [items, round(taken, 2)] for name, (items, taken) in sorted(found.items()) if taken >= NOTED}


def main(asked: list[str]) -> int:
    if NOTE in os.environ:
        clock = Clock()
        code = pytest.main(["-q", "-n", "0", "-p", "no:cacheprovider", "-m", TIERS["standard"], *asked], plugins=[clock])
        Path(os.environ[NOTE]).write_text(json.dumps(clock.seconds))
        return int(code)
    root = MEASURED.parents[2]
    rooms = asked or [
        p.relative_to(root).as_posix() for p in sorted((root / "tests").iterdir()) if p.is_dir() or p.name.startswith("test_")
    ]
    known = json.loads(MEASURED.read_text()) if MEASURED.exists() else {}
    for room in rooms:
        note = MEASURED.with_suffix(".part")
        done = subprocess.run(
            [sys.executable, "-m", "tests.tiers.measure", room], env=os.environ | {NOTE: str(note)}, cwd=root, check=False
        )
        if done.returncode not in (0, 5):  # 5: nothing there
            print(f"{room}: tests fail there, nothing is noted of it")
        else:
            known = {n: row for n, row in known.items() if not n.startswith((f"{room}/", f"{room}::"))} | by_function(
                json.loads(note.read_text())
            )
        note.unlink(missing_ok=True)
    MEASURED.write_text("{\n" + ",\n".join(f'"{n}": {json.dumps(row)}' for n, row in sorted(known.items())) + "\n}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
