"""Quick starts: a small script for each library, whose printed lines are compared between both environments."""

from __future__ import annotations

import re
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from tests.libraries.environments import Environment

FOLDER = Path(__file__).with_name("quick_starts")
SECONDS = 300.0  # of a script that takes 20 on a quiet machine
_PLACE = re.compile(r"(?<![\w.])/(?:[^\s/()]+/)+| at 0x[0-9a-f]+")
_NUMBER = re.compile(r"[-+]?(?:\d+\.\d*(?:e[-+]?\d+)?|\d+e[-+]?\d+|\d+)")


class Ran(NamedTuple):
    """A script's end in one environment: its lines, "" or its last words where it failed, and how long it took."""

    lines: list[str]
    error: str
    seconds: float


def scripts() -> list[str]:
    """All quick starts: language/bert, ..."""
    return sorted(p.relative_to(FOLDER).with_suffix("").as_posix() for p in FOLDER.glob("*/*.py"))


def run(script: str, where: Environment) -> Ran:
    """Run a quick start in a folder of its own; -P: a script may be called as its library is."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = where.run(["-P", "-W", "ignore", str(FOLDER / f"{script}.py")], SECONDS, Path(folder))
        except subprocess.TimeoutExpired:
            return Ran([], f"no end after {SECONDS:.0f} s", SECONDS)
    said = [line for line in done.stderr.splitlines() if line.strip()]
    last = _PLACE.sub("", (said or ["no word"])[-1])  # folders and addresses of this machine say nothing elsewhere
    return Ran(done.stdout.splitlines(), last if done.returncode else "", time.monotonic() - start)


def compare(ours: Ran, theirs: Ran) -> str:
    """What differs, in words; "" where both came to their end and print the same up to 1 in 1000."""
    if theirs.error:
        return f"fails under torch: {theirs.error}" + (f"; and here: {ours.error}" if ours.error else "")
    if ours.error:
        return ours.error
    if not theirs.lines:
        return "prints nothing that could be compared"
    for a, b in zip(ours.lines, theirs.lines, strict=False):
        if differ(a, b):
            return f"{a!r} here, {b!r} under torch"
    if len(ours.lines) != len(theirs.lines):
        return f"{len(ours.lines)} lines here, {len(theirs.lines)} under torch"
    return ""


def differ(ours: str, theirs: str) -> bool:
    """Whether two lines differ in words, or a number by more than 1 in 1000 (of at least 0.01)."""
    if _NUMBER.sub("#", ours) != _NUMBER.sub("#", theirs):
        return True
    pairs = zip(_NUMBER.findall(ours), _NUMBER.findall(theirs), strict=True)
    return any(abs(float(a) - float(b)) > 1e-3 * max(abs(float(b)), 1e-2) for a, b in pairs)
