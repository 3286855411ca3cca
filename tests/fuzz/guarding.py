"""Programs in a child process: one that takes its process down is told by its seed, and the next one runs in another child."""

from __future__ import annotations

import itertools
import os
import pickle
import random
import signal
import time
import traceback
from collections.abc import Iterable, Iterator
from typing import Any

from tests.fuzz.driving import Fuzzer
from tests.fuzz.findings import Finding, Group
from tests.fuzz.kinds import KINDS

Turn = tuple[str, str]  # a kind and a seed


def in_turn(names: list[str], seed: int) -> Iterator[Turn]:
    """Seeds of all kinds for ever, of each as many as its weight says before the next one's."""
    for number in itertools.count():
        for name in names:
            weight = KINDS[name].weight
            for k in range(weight):
                yield name, f"{seed}.{number * weight + k}"


def guarded(fuzzer: Fuzzer, turns: Iterable[Turn], seconds: float = float("inf")) -> None:
    """Run the programs of `turns`, until the time is over, into the fuzzer's report.

    The child sends every turn before it begins it, and the report where a program has found or explained something.
    """
    end = time.monotonic() + seconds
    left = iter(turns)
    while True:
        left, theirs = itertools.tee(left)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            _run(fuzzer, theirs, end, writing)
        os.close(writing)
        del theirs
        turn = None
        with os.fdopen(reading, "rb") as messages:
            for said in _messages(messages):
                if not isinstance(said, tuple):
                    fuzzer.report = said
                    continue
                turn = said
                next(left)
                fuzzer.report.programs[turn[0]] = fuzzer.report.programs.get(turn[0], 0) + 1
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code == 0:
            return
        if turn is None:
            raise SystemExit(f"the child ended with {code} before its first program, see above")
        if code > 0:
            _keep(fuzzer, turn, Finding("fuzzer", "raises", "judge", "an error of a judge's own, printed above"))
        elif fuzzer.peer is not None and not _dies(turn):
            reason = "PyTorch takes the process down"
            fuzzer.report.listed[reason] = fuzzer.report.listed.get(reason, 0) + 1
        else:
            _keep(fuzzer, turn, Finding("process", f"ends by {signal.Signals(-code).name}", "program", "the whole process"))


def _messages(stream: Any) -> Iterator[Any]:
    while True:
        try:
            yield pickle.load(stream)
        except (EOFError, pickle.UnpicklingError):  # the end, or a message that the child's death cut
            return


def _run(fuzzer: Fuzzer, turns: Iterator[Turn], end: float, out: int) -> None:
    """The child: never returns."""
    code = 1
    try:
        for name, seed in turns:
            if time.monotonic() > end:
                break
            os.write(out, pickle.dumps((name, seed)))
            found = sum(g.count for g in fuzzer.report.groups.values()) + sum(fuzzer.report.listed.values())
            fuzzer.one(KINDS[name], seed)
            if found != sum(g.count for g in fuzzer.report.groups.values()) + sum(fuzzer.report.listed.values()):
                with os.fdopen(os.dup(out), "wb") as whole:
                    pickle.dump(fuzzer.report, whole)
        code = 0
    except KeyboardInterrupt:
        code = 0
    except Exception:
        traceback.print_exc()
    finally:
        os._exit(code)


def _dies(turn: Turn) -> bool:
    """Whether a program takes its process down without PyTorch, too."""
    name, seed = turn
    child = os.fork()
    if child == 0:
        try:
            Fuzzer(None, shrinking=False).one(KINDS[name], seed)
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) < 0


def _keep(fuzzer: Fuzzer, turn: Turn, found: Finding) -> None:
    name, seed = turn
    program = KINDS[name].draw(random.Random(f"{name} {seed}"))
    group = fuzzer.report.groups.setdefault((name, *found.key), Group(name, found, program, seed, 0))
    group.count += 1
    if group.count == 1 and fuzzer.on_new:
        fuzzer.on_new(group)
