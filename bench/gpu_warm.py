"""Compiles what `bench gpu` will launch, in one process per core: `python -m bench.gpu_warm --arch 90 [--quick] [--ops a,b]`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

if __name__ == "__main__":
    os.environ.pop("TRITON_INTERPRET", None)  # read when a kernel is defined

from bench.gpu_clock import Ours
from bench.gpu_compile import Job, warm
from bench.gpu_rows import Case, caller, cases, ordered, prepare
from bench.gpu_training import step, works


class Recorded(Ours):
    """tritensor without a GPU: no streams, the launches are written down."""

    def __init__(self) -> None:
        import tritensor as tt

        self.t = tt
        self.device = tt.device("cuda", 0)

    def working(self) -> object:
        import contextlib

        return contextlib.nullcontext()


def _row(case: Case) -> None:
    lib = Recorded()
    function = caller(lib, case)
    assert function is not None
    prepare(lib, case, 0, function).runs[0]()


def jobs(names: list[str] | None, quick: bool) -> list[Job]:
    """A job per row, and one per training step."""
    rows: list[Job] = [(c.key, lambda c=c: _row(c)) for op in ordered(names) for c in cases(op, quick)]  # type: ignore[misc]
    steps: list[Job] = [] if names else [(w.name, lambda w=w: step(Recorded(), w)()) for w in works()]  # type: ignore[misc]
    return steps + rows


def main(argv: Sequence[str] | None = None) -> int:
    """Compile, say what did not; the exit code is 1 when a kernel does not compile."""
    parser = argparse.ArgumentParser(prog="python -m bench.gpu_warm", description=__doc__)
    parser.add_argument("--arch", type=int, default=90)
    parser.add_argument("--ops", default="")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--processes", type=int)
    given = parser.parse_args(argv)
    made = warm(jobs([n for n in given.ops.split(",") if n] or None, given.quick), given.arch, given.processes)
    print("\n".join(made.failures[:20] + made.stumbled[:20]))
    print(f"{made.kernels} kernels ready for sm_{given.arch} in {made.seconds:.0f} s, {len(made.failures)} did not compile")
    return 1 if made.failures else 0


if __name__ == "__main__":
    sys.exit(main())
