"""A step that a test starts: items with a delay, and every way in which a process can go wrong. The standard library alone, to start at once."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from pathlib import Path


def fork_away() -> None:
    """A grandchild in a session of its own, whose parent is gone: nobody's child."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(300)
        os._exit(0)
    os.wait()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--report")
    parser.add_argument("--done")
    parser.add_argument("--executed", help="a file that the name of each item that was asked is added to")
    parser.add_argument("--name", default="item")
    parser.add_argument("--items", type=int, default=0)
    parser.add_argument("--delay", type=float, default=0.0)
    parser.add_argument("--kill-at", type=int, default=-1, help="the item at which it dies by SIGSEGV")
    parser.add_argument("--hang-at", type=int, default=-1)
    parser.add_argument("--fail-at", type=int, default=-1)
    parser.add_argument("--deaf", action="store_true", help="SIGINT and SIGTERM do nothing")
    parser.add_argument("--fork", action="store_true", help="leave processes behind, some of them in sessions of their own")
    parser.add_argument("--print", type=int, default=0, help="megabytes to print")
    parser.add_argument("--hang", action="store_true")
    parser.add_argument("--code", type=int, default=0)
    given = parser.parse_args()
    if given.deaf:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        print("deaf", flush=True)
    if given.fork:
        if os.fork() == 0:
            time.sleep(300)
        fork_away()
    for _ in range(given.print):
        sys.stdout.write("x" * (1 << 20))
    sys.stdout.flush()
    items(given)
    while given.hang:
        time.sleep(1)
    return given.code


def items(given: argparse.Namespace) -> None:
    """Ask the items that are not done, and tell of each."""
    done = set(Path(given.done).read_text().splitlines()) if given.done else set()
    for i in range(given.items):
        name = f"{given.name} {i}"
        if name in done:
            continue
        with open(given.report, "a") as report:
            print(json.dumps({"item": name, "outcome": "begun"}), file=report, flush=True)
            if given.executed:
                with open(given.executed, "a") as executed:
                    print(name, file=executed, flush=True)
            time.sleep(given.delay)
            if i == given.kill_at:
                os.kill(os.getpid(), signal.SIGSEGV)
            while i == given.hang_at:
                time.sleep(1)
            outcome = "failed" if i == given.fail_at else "passed"
            found = [f"{name} is wrong"] if i == given.fail_at else []
            print(json.dumps({"item": name, "outcome": outcome, "seconds": given.delay, "findings": found}), file=report, flush=True)


if __name__ == "__main__":
    sys.exit(main())
