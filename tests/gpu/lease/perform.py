"""One step: its process is started, listened to, ended in time, and started again behind what killed it; what it leaves is kept."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from tests.gpu.lease.child import Child
from tests.gpu.lease.ledger import Ledger, first_line
from tests.gpu.workers import LEFT
from tritensor.io.atomic import atomic_write

MOST_BYTES = 15 << 20  # of a file that is kept
OVER = (0, 1, 2, LEFT)  # exit codes of one that ended by itself: all well, something failed, refused, time up
MOST_ERRORS = 50  # that a step's line holds; its items hold all
MOST_STARTS = 20  # of one step
WRAP_UP = 5.0  # seconds before its end at which a step begins nothing new


@dataclasses.dataclass
class Work:
    """Where a run works, and since when. `kept`: files of the scratch folder that go out, by their names there and outside; `log`: each step's last words."""

    scratch: Path
    out: Path
    ledger: Ledger
    environment: Mapping[str, str]
    slug: str = ""
    ops: tuple[str, ...] = ()
    processes: int = os.cpu_count() or 1
    kept: dict[str, str] = dataclasses.field(default_factory=dict)
    log: dict[str, str] = dataclasses.field(default_factory=dict)
    started: float = dataclasses.field(default_factory=time.monotonic)

    def keep(self) -> None:
        """Take out what changed among the kept files."""
        for inside, outside in self.kept.items():
            source, target = self.scratch / inside, self.out / outside
            with contextlib.suppress(FileNotFoundError):
                found = source.stat()
                if target.exists() and target.stat().st_mtime_ns == found.st_mtime_ns:
                    continue
                if found.st_size <= MOST_BYTES:
                    data = source.read_bytes()
                    write(
                        target, data[: data.rfind(b"\n") + 1] if source.suffix == ".journal" else data
                    )  # a journal's last line may be half written
                    os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))

    def write_log(self) -> None:
        """The last words of every step."""
        text = "".join(f"== {name}\n{words}\n" for name, words in self.log.items())
        write(self.out / "log.txt", text.encode()[-MOST_BYTES:])


def write(path: Path, data: bytes) -> None:
    """Put a file in its place, whole."""
    with atomic_write(path) as file:
        file.write(data)


class Told(NamedTuple):
    """What a step says when it has ended: its figures in a line, what failed, and how much is left (None: its items tell)."""

    figures: str = ""
    errors: tuple[str, ...] = ()
    left: int | None = None


class Step(NamedTuple):
    """A step of the plan.

    `kind`: a "proof" passes or fails, "figures" are measured. `least`: seconds under which it is not begun, `most`: those it gets at first.
    `command`: what to start for so many seconds, or a line that says why there is nothing to start. `patience`: seconds without a sign of life.
    `again`: one that dies is started again, for what is left.
    """

    name: str
    kind: str
    least: float
    most: float
    command: Callable[[Work, float], list[str] | str]
    told: Callable[[Work, str, list[dict[str, Any]]], Told] = lambda work, words, rows: Told()
    patience: float = 120.0
    again: bool = True


class Watched(Protocol):
    """Who ends a step when the lease is gone."""

    def watch(self, pid: int) -> None: ...


class _Rows:
    """The lines that a step adds to its report, as they come."""

    def __init__(self, path: Path) -> None:
        self._path, self._at, self._rest = path, 0, b""
        self.all: list[dict[str, Any]] = []
        self.begun, self.left = "", None  # type: tuple[str, int | None]  # type: ignore[assignment]

    def new(self) -> list[dict[str, Any]]:
        """Those since the last time; a line that is not yet whole waits."""
        with contextlib.suppress(FileNotFoundError), self._path.open("rb") as file:
            file.seek(self._at)
            piece = file.read()
            self._at += len(piece)
            *whole, self._rest = (self._rest + piece).split(b"\n")
            found = [row for row in map(_parsed, whole) if row]
            self.all += found
            return found
        return []


def _parsed(line: bytes) -> dict[str, Any]:
    """A report's line; {} for one that a killed process left torn: its item is asked again."""
    try:
        return json.loads(line) if line else {}
    except ValueError:
        return {}


def perform(step: Step, seconds: float, limited: bool, work: Work, guard: Watched) -> None:
    """Give a step so many seconds, and note in the ledger how it went. `limited`: it gets less than it would at another time."""
    start = time.monotonic()
    until = start + seconds
    (work.scratch / f"{step.name}.jsonl").unlink(missing_ok=True)
    rows = _Rows(work.scratch / f"{step.name}.jsonl")
    entry = work.ledger.entry(step.name)
    fresh = {"seconds": 0.0, "figures": "", "errors": [], "failed": 0} if entry.older else {}
    earlier = 0.0 if entry.older else entry.seconds
    for _ in range(MOST_STARTS):
        (work.scratch / f"{step.name}.done").write_text("\n".join(work.ledger.entry(step.name).items))
        command = step.command(work, until - time.monotonic() - WRAP_UP)
        if isinstance(command, str):
            work.ledger.note(step.name, outcome="left", why=command)
            return
        work.ledger.note(step.name, outcome="unfinished", older="", why="", **fresh)
        before = _account(work.scratch)
        end = _started(step, command, until, work, rows, guard)
        lost = end.how == "silent" or (end.how == "exited" and end.code not in OVER)
        if lost and rows.begun:
            work.ledger.item(
                step.name, {"item": rows.begun, "outcome": "hung" if end.how == "silent" else "died", "findings": [end.said(step)]}
            )
            rows.begun = ""
        if not lost or not step.again or until - time.monotonic() < step.least or _account(work.scratch) == before:
            break
    _judge(step, work, rows, end, limited, earlier + time.monotonic() - start)


class _End(NamedTuple):
    """How a process ended: by itself ("exited"), because its "time" was up or it was "silent"; its exit code and last words."""

    how: str
    code: int | None
    words: str

    def said(self, step: Step) -> str:
        """What is said of an item that it ended at."""
        return (
            f"no word in {step.patience:.0f} s"
            if self.how == "silent"
            else f"the process died with {self.code}: {self.words.strip()[-300:]}"
        )


def _account(scratch: Path) -> dict[str, int]:
    """What a step has written so far: where that does not change, to start it again would be in vain."""
    return {p.name: p.stat().st_mtime_ns for p in scratch.iterdir() if p.suffix != ".done"}


def _started(step: Step, command: list[str], until: float, work: Work, rows: _Rows, guard: Watched) -> _End:
    """Start a step's process and see it to its end."""
    child = Child(command, work.environment)
    guard.watch(child.process.pid)
    how = "exited"
    try:
        how = _follow(child, step, until, work, rows)
        code = child.code
    finally:
        child.end(2.0 if how == "time" else 0.0)
        guard.watch(0)
    _take(step, work, rows)
    if how == "time":
        for note in work.scratch.glob(".*.at"):  # that a row was timed when the time was up is no fault of the row
            note.unlink()
    work.log[step.name] = (work.log.get(step.name, "") + child.words())[-(1 << 17) :]
    return _End(how, code, child.words())


def _follow(child: Child, step: Step, until: float, work: Work, rows: _Rows) -> str:
    """Wait for the end of a process: "exited", "time" when its time is up, "silent" when it gives no sign of life."""
    looked = 0.0
    while child.code is None:
        now = time.monotonic()
        if _take(step, work, rows):
            child.heard = now
        if now - looked > 1.0:
            looked = now
            work.keep()
        if now >= until:
            return "time"
        if now - child.heard > step.patience:
            return "silent"
        time.sleep(0.05)
    return "exited"


def _take(step: Step, work: Work, rows: _Rows) -> bool:
    """Note the items that came; whether some did."""
    found = rows.new()
    for line in found:
        if "left" in line:
            rows.left = line["left"]
        elif line["outcome"] == "begun":
            rows.begun = line["item"]
        else:
            rows.begun = "" if rows.begun == line["item"] else rows.begun
            work.ledger.item(step.name, line)
    work.ledger.tick()
    return bool(found)


def _judge(step: Step, work: Work, rows: _Rows, end: _End, limited: bool, seconds: float) -> None:
    """The step's outcome, of how its process ended and of what its items say."""
    how, code, words = end
    told = step.told(work, words, rows.all)
    entry = work.ledger.entry(step.name)
    bad = [
        f"{item.rpartition('::')[2]}: {found}" for item, (outcome, _, found) in entry.items.items() if outcome not in ("passed", "skipped")
    ]
    errors = [*bad, *told.errors]
    left = told.left if told.left is not None else rows.left
    if how == "exited" and code in OVER:
        outcome = "unfinished" if left or code == LEFT else "failed" if errors or code else "passed"
    elif how == "exited":
        outcome = "died"
    elif how == "time":
        outcome = "unfinished" if limited or entry.items or rows.all or step.kind == "figures" else "hung"
    else:
        outcome = "hung"
    if outcome in ("died", "hung", "failed") and not errors:
        last = first_line("\n".join(reversed(words.splitlines())))
        errors = [{"died": f"the process ended with {code}: {last}", "hung": f"no end in {seconds:.0f} s: {last}"}.get(outcome, last)]
    why = f"{left} left" if left and outcome == "unfinished" else "its time was up" if outcome == "unfinished" else ""
    work.ledger.note(
        step.name,
        outcome=outcome,
        seconds=round(seconds, 1),
        figures=told.figures or entry.figures,
        errors=[first_line(e) for e in errors[:MOST_ERRORS]],
        failed=len(errors),
        why=why,
    )
    work.keep()
    work.write_log()
