"""Questions dealt to worker processes on a GPU: one that a kernel kills or hangs costs the question it was at, and is started again.

A worker is any command that takes `--answers FD`, reads a question a line from standard input, and writes a line of JSON for each to that file
descriptor. What it prints is kept apart from its answers: a kernel's or a test's words are no answers.
"""

from __future__ import annotations

import collections
import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
DEAD = 3  # a worker's exit code when the device no longer answers it
LEFT = 4  # a command's exit code when its time was up before its questions were, and nothing was wrong until then
MOST_UNBORN = 5  # workers that end before their first answer, one after another: none will start
KEPT = 3000  # of a worker's words, the last characters


class Answer(NamedTuple):
    """How a question ended: "passed", "failed", "skipped", "died" or "hung", and what was found."""

    outcome: str
    findings: list[str]
    more: dict[str, Any]


def row(item: str, answer: Answer, seconds: float) -> dict[str, Any]:
    """A line of a report: what every command of the lease writes of each of its items."""
    return {"item": item, "outcome": answer.outcome, "seconds": round(seconds, 2), "findings": answer.findings, **answer.more}


def write(report: IO[str] | None, line: dict[str, Any]) -> None:
    """Add a line to a report, at once."""
    if report is not None:
        print(json.dumps(line), file=report, flush=True)


class Worker:
    """A worker process, the threads that read its answers and its words."""

    def __init__(self, command: Sequence[str], patience: float) -> None:
        self._patience = patience
        self.answered = 0
        answers, theirs = os.pipe()
        self.process = subprocess.Popen(
            [*command, "--answers", str(theirs)], cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, pass_fds=[theirs],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        )  # fmt: skip
        os.close(theirs)
        self._answers: queue.Queue[str | None] = queue.Queue()
        self._words: collections.deque[str] = collections.deque(maxlen=KEPT)
        self._readers = [
            threading.Thread(target=self._listen, args=(os.fdopen(answers, errors="replace"),), daemon=True),
            threading.Thread(target=self._overhear, args=(self.process.stdout,), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def _listen(self, stream: IO[str]) -> None:
        with stream:
            for line in stream:
                self._answers.put(line)
        self._answers.put(None)

    def _overhear(self, stream: IO[str]) -> None:
        with stream:
            while words := stream.buffer.read1(1 << 12):  # type: ignore[attr-defined]
                self._words.extend(words.decode(errors="replace"))

    def said(self) -> str:
        """The last that it printed."""
        self._readers[1].join(1)
        return "".join(self._words).strip()

    def next(self) -> Any:
        """Its next answer. Raises EOFError when it is gone, queue.Empty when it says nothing for as long as is waited."""
        line = self._answers.get(timeout=self._patience)
        if line is None:
            self._answers.put(None)  # whoever asks again gets the same
            raise EOFError
        return json.loads(line)

    def ask(self, question: str) -> Answer:
        """One question's answer; of a worker that dies or hangs, that is the answer."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(question + "\n")
            self.process.stdin.flush()
            found = self.next()
            self.answered += 1
            return Answer(found.pop("outcome"), found.pop("findings"), found)
        except queue.Empty:
            self.process.kill()
            return Answer("hung", [f"no answer in {self._patience:.0f} s: {self.said()[-500:]}"], {})
        except (EOFError, BrokenPipeError):
            return Answer("died", [f"the process died with {self.process.wait()}: {self.said()[-1500:]}"], {})

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def ends_within(self, seconds: float) -> bool:
        """Whether the process ends by itself in that time."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        return not self.alive

    def close(self) -> None:
        """Let the process end, and what was written to it and read from it."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # of one that is dead
            self.process.stdin.close()
        try:
            self.process.wait(self._patience)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for reader in self._readers:
            reader.join(5)


def answer(stream: IO[str], found: Sequence[str], **more: Any) -> None:
    """A worker's answer to the question that it was at; nothing found is a pass."""
    write(stream, {"outcome": more.pop("outcome", "failed" if found else "passed"), "findings": list(found), **more})


def device_lives() -> bool:
    """Whether the device still answers: an illegal access ends a process's context for good, and the next worker has a fresh one."""
    from tritensor import cuda

    try:
        cuda.synchronize()
    except Exception:  # whatever it raises: nothing can be asked here any more
        return False
    return True


class Dealt(NamedTuple):
    """How many questions had findings, and which were not asked because the time was up or workers would not start."""

    bad: int
    left: list[str]


def deal(
    todo: Sequence[str], make: Callable[[], Worker], processes: int, report: IO[str] | None = None, seconds: float | None = None
) -> Dealt:
    """Deal the questions to workers and write each one's row. `seconds`: no question is begun later than that."""
    end = float("inf") if seconds is None else time.monotonic() + seconds
    waiting = collections.deque(todo)
    lock, bad = threading.Lock(), []
    unborn = [0]  # workers in a row that ended before their first answer

    def take() -> str | None:
        with lock:
            return waiting.popleft() if waiting and time.monotonic() < end and unborn[0] < MOST_UNBORN else None

    def serve() -> None:
        worker: Worker | None = None
        while (question := take()) is not None:
            worker = worker or make()
            start = time.monotonic()
            found = worker.ask(question)
            with lock:
                unborn[0] = 0 if worker.answered else unborn[0] + 1
                if found.outcome not in ("passed", "skipped"):
                    bad.append(question)
                write(report, row(question, found, time.monotonic() - start))
            if found.findings:
                worker.ends_within(0.2)  # one whose device is gone needs a moment
            if not worker.alive:
                worker.close()
                worker = None
        if worker is not None:
            worker.close()

    threads = [threading.Thread(target=serve) for _ in range(max(1, min(processes, len(todo))))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return Dealt(len(bad), list(waiting))


def add_arguments(parser: Any) -> None:
    """The options of every command that deals questions."""
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="workers (default: one per core)")
    parser.add_argument("--report", type=Path, help="a file that a line of JSON is added to for each item")
    parser.add_argument("--done", type=Path, help="a file of items, a line each, that are not asked again")
    parser.add_argument("--seconds", type=float, help="begin no item later than this; what is left is counted, and the exit code is 4")
    parser.add_argument("--work", action="store_true", help="be a worker")
    parser.add_argument("--answers", type=int, default=1, metavar="FD", help="with --work: where answers are written")


def remaining(todo: Sequence[str], done: Path | None) -> list[str]:
    """The items that a --done file does not name."""
    names = set(done.read_text().splitlines()) if done is not None else set()
    return [item for item in todo if item not in names]


@contextlib.contextmanager
def reporting(path: Path | None) -> Any:
    """The report to add to, None where none is asked for."""
    if path is None:
        yield None
    else:
        with path.open("a") as file:
            if file.tell():
                print(file=file, flush=True)  # a process that was killed before may have left a torn line
            yield file


def ended(found: Dealt, what: str, asked: int, start: float, report: IO[str] | None = None) -> int:
    """Say how it went, and in the report how many are left; the exit code."""
    write(report, {"left": len(found.left)})
    left = f", {len(found.left)} left" if found.left else ""
    print(f"{asked - len(found.left)} {what} in {time.monotonic() - start:.0f} s, {found.bad} with findings{left}", flush=True)
    return 1 if found.bad else LEFT if found.left else 0


def python(module: str, *flags: str) -> list[str]:
    """The command of a module of this checkout."""
    return [sys.executable, "-m", module, *flags]
