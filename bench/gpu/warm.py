"""Compiles what `bench gpu` will launch, in one process per core: `python -m bench.gpu.warm --arch 90 [--quick] [--op a,b]`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

if __name__ == "__main__":
    os.environ.pop("TRITON_INTERPRET", None)  # read when a kernel is defined

from bench.gpu.clock import Ours
from bench.gpu.compile_ahead import Job, warm
from bench.gpu.rows import Case, caller, cases, ordered, prepare
from bench.gpu.training import step, works
from bench.ops_asked import ops_asked
from tritensor.ops.table import Op
from tritensor.ops.table.op_selection import add_option


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


def jobs(ops: list[Op], quick: bool, training: bool) -> list[Job]:
    """A job per row, and one per training step."""
    rows: list[Job] = [(c.key, lambda c=c: _row(c)) for op in ordered(ops) for c in cases(op, quick)]  # type: ignore[misc]
    steps: list[Job] = [] if not training else [(w.name, lambda w=w: step(Recorded(), w)()) for w in works()]  # type: ignore[misc]
    return steps + rows


def main(argv: Sequence[str] | None = None) -> int:
    """Compile, say what did not; the exit code is 1 when a kernel does not compile."""
    parser = argparse.ArgumentParser(prog="python -m bench.gpu.warm", description=__doc__)
    parser.add_argument("--arch", type=int, default=90)
    add_option(parser)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--processes", type=int)
    given = parser.parse_args(argv)
    made = warm(jobs(ops_asked(parser, given.op), given.quick, not given.op), given.arch, given.processes)
    print("\n".join(made.failures[:20] + made.stumbled[:20]))
    print(f"{made.kernels} kernels ready for sm_{given.arch} in {made.seconds:.0f} s, {len(made.failures)} did not compile")
    return 1 if made.failures else 0


if __name__ == "__main__":
    sys.exit(main())
