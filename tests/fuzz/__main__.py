"""The fuzzer's command: python -m tests.fuzz [--seconds S] [--programs N] [--seed N] [--peer] [--only KIND...]"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="run for so long")
    parser.add_argument("--programs", type=int, help="run so many of every kind instead: the same programs on every machine")
    parser.add_argument("--seed", default="0", help="of the first program; SEED.NUMBER runs that one alone, as failures print it")
    parser.add_argument("--peer", action="store_true", help="judge beside torch, which must be installed")
    parser.add_argument("--only", nargs="+", help="kinds")
    parser.add_argument("--open", help="a file of patterns, one a line, of findings that are being mended")
    parser.add_argument("--as-drawn", action="store_true", help="do not shrink")
    given = parser.parse_args()
    os.environ.setdefault("TRITON_INTERPRET", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from tests.fuzz.driving import Fuzzer
    from tests.fuzz.findings import read_open
    from tests.fuzz.guarding import guarded, in_turn
    from tests.fuzz.kinds import KINDS

    unknown = set(given.only or ()) - set(KINDS)
    if unknown:
        parser.error(f"--only: no kind {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    torch = None
    if given.peer:
        import torch

        torch.set_num_threads(1)
    fuzzer = Fuzzer(torch, read_open(given.open), not given.as_drawn)
    fuzzer.on_new = lambda group: print(group, flush=True)
    names = given.only or list(KINDS)
    with contextlib.suppress(KeyboardInterrupt):
        if "." in given.seed:
            guarded(fuzzer, [(name, given.seed) for name in names])
        elif given.programs is not None:
            guarded(fuzzer, [(name, f"{given.seed}.{number}") for name in names for number in range(given.programs)])
        else:
            guarded(fuzzer, in_turn(names, int(given.seed)), given.seconds)
    for group in fuzzer.report.groups.values():
        if group.count > 1:
            print(f"{group.kind}: {group.finding}: {group.count} times")
    print(fuzzer.report.table())
    return 1 if fuzzer.report.groups else 0


if __name__ == "__main__":
    sys.exit(main())
