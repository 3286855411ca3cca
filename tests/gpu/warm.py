"""Compiles every kernel that the GPU suite launches, in one process per core: `python -m tests.gpu.warm --arch 90 [--op softmax ...]`.

Without it the suite compiles some 17,000 kernels one after another. What is compiled lies in tritensor's cache on disk; a second
run finds it there. Needs no GPU.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

if __name__ == "__main__":
    os.environ.pop("TRITON_INTERPRET", None)  # read when a kernel is defined

import tritensor.kernels  # noqa: F401  (fills the table)
from bench.gpu.compile_ahead import Job, warm
from tests.gpu.calls import calls, repeat
from tritensor.ground.device import device
from tritensor.ops.table import Op, registry
from tritensor.testing.questions.ask import ask
from tritensor.testing.questions.cases import cases, types

GPU = device("cuda", 0)


def walk(op: Op, dtype: str) -> None:
    """Everything that the suite asks of an op in one type; the answers, of a device without memory, mean nothing."""
    for case in cases(op, dtype, GPU):
        ask(case)


def races(op: Op) -> None:
    """What the races test runs."""
    for call in calls(op):
        repeat(call, 1)


def step() -> None:
    """The training steps of the memory and graph tests."""
    from tests.gpu import steps

    for make in (steps.small, steps.lenet):
        make("cuda")()


def jobs(names: Sequence[str] = (), steps: bool = True) -> list[Job]:
    """One job per op and type, the heaviest kind first."""
    chosen = [op for name, op in registry.items() if not names or name in names]
    found: list[Job] = [(op.name, lambda op=op: races(op)) for op in chosen]  # type: ignore[misc]
    found += [(f"{op.name}/{t}", lambda op=op, t=t: walk(op, t)) for op in chosen for t in types(op)]  # type: ignore[misc]
    return [*([("training steps", step)] if steps else []), *found]


def main(argv: list[str] | None = None) -> int:
    """Compile, say what did not; the exit code is 1 when a kernel does not compile."""
    parser = argparse.ArgumentParser(prog="python -m tests.gpu.warm", description=__doc__)
    parser.add_argument("--arch", type=int, default=90, help="compute capability without its dot (default: %(default)s)")
    parser.add_argument("--op", nargs="*", default=[], help="ops to compile; all when none is given")
    parser.add_argument("--steps", action="store_true", help="with --op: the training steps, too")
    parser.add_argument("--processes", type=int, help="worker processes (default: one per core)")
    given = parser.parse_args(argv)
    made = warm(jobs(given.op, given.steps or not given.op), given.arch, given.processes)
    for line in made.failures[:20]:
        print(line)
    print(f"{made.kernels} kernels ready for sm_{given.arch} in {made.seconds:.0f} s, {len(made.failures)} did not compile")
    return 1 if made.failures else 0


if __name__ == "__main__":
    sys.exit(main())
