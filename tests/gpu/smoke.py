"""The first minute on a GPU: every op once, forward and backward, beside numpy: `python -m tests.gpu.smoke [--wide] [--op softmax ...]`.

Each op runs in float32 and bfloat16 at a shape of several tiles (`--wide`: on all its samples as well). The ops are dealt to worker
processes. One that a kernel kills or hangs is started again behind that op, so that a single bad kernel costs one finding, and not the
run.
"""

from __future__ import annotations

import argparse
import collections
import os
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import IO

if __name__ == "__main__" and os.environ.get("TRITENSOR_GPU_TESTS") != "emulated":
    os.environ.pop("TRITON_INTERPRET", None)  # read when a kernel is defined

import numpy as np

import tritensor.kernels  # noqa: F401  (fills the table)
from bench.gpu.sizes import shapes
from tests.gpu import workers
from tests.gpu.tile_shapes import tile_samples
from tritensor.ground.device import device
from tritensor.ops.table import Op, Sample, registry
from tritensor.testing.questions.backward import backward_is_rule
from tritensor.testing.questions.cases import Case, cases, samples, types
from tritensor.testing.questions.forward import forward

GPU = device("cuda", 0)
SIDE = 256  # of the matrices that ops without sizes of their own get
MOST = 2 << 20  # elements of all inputs of a call: the reference, in float64, has its second, too
HANG = 60.0  # seconds without a word after which a worker is taken for hung


def smoke_cases(op: Op, dtype: str, wide: bool) -> list[Case]:
    """The largest of an op's timed sizes that numpy does in a moment, else its longest sample; calls that fill the tiles of tensor cores where
    it multiplies matrices; `wide`: all samples, too, one of them strided."""
    sized = [in_float64(s.sample) for s in shapes(op, dtype, SIDE)]
    fitting = sorted((s for s in sized if _elements(s) <= MOST), key=_elements) or sorted(samples(op), key=_elements)
    found = [Case(op, 1000 + i, sample, dtype, "plain", GPU) for i, sample in enumerate([fitting[-1], *tile_samples(op, dtype)])]
    if wide:
        found += cases(op, dtype, GPU, lambda op, i, sample, dtype: ["plain"] if i or sample.in_c_order else ["plain", "sliced"])
    return [c for c in found if not any(x.dtype.kind == "c" for x in (*_arrays(c), *c.expected))]


def in_float64(sample: Sample) -> Sample:
    """A sample of timed sizes, drawn in float32, as the samples of a record are: what is float64 is cast to the type under test."""
    wider = (x.astype(np.float64) if isinstance(x, np.ndarray) and x.dtype == np.float32 else x for x in sample.inputs)
    return Sample(*wider, smooth=sample.smooth, in_c_order=sample.in_c_order, **sample.attrs)


def _elements(sample: Sample) -> int:
    return sum(x.size for x in sample.inputs if isinstance(x, np.ndarray))


def _arrays(case: Case) -> list[np.ndarray]:
    return [x for x in case.values if isinstance(x, np.ndarray)]


def jobs(names: Sequence[str] = ()) -> list[tuple[str, str]]:
    """(op, type): every op that launches kernels, in float32 and bfloat16, or in the first of its types."""
    chosen = [op for name, op in registry.items() if op.forward is not None and (not names or name in names)]
    return [(op.name, t) for op in chosen for t in [t for t in ("float32", "bfloat16") if t in types(op)] or types(op)[:1]]


def ask(name: str, dtype: str, wide: bool) -> list[str]:
    """What differs from numpy, forward and backward; what a call raises is a finding, too."""
    found: list[str] = []
    for case in smoke_cases(registry[name], dtype, wide):
        for question in (forward, backward_is_rule):
            try:
                found += question(case)
            except Exception as error:  # a finding as any other: the ops behind it are asked all the same
                at = traceback.extract_tb(error.__traceback__)[-1]
                found.append(f"{case!r}: {type(error).__name__}: {error} ({Path(at.filename).name}:{at.lineno})")
    return found


# A worker: reads "op/type" lines
def work(wide: bool, answers: int) -> int:
    """Answer until standard input ends, or the device is gone."""
    from tritensor.cuda.compiler import compile_log

    with os.fdopen(answers, "w") as stream:
        for line in sys.stdin:
            name, _, dtype = line.strip().partition("/")
            before = len(compile_log.entries())
            found = ask(name, dtype, wide)
            kernels = collections.Counter(e.source for e in compile_log.entries()[before:])
            workers.answer(stream, found, kernels=kernels)
            if not workers.device_lives():
                return workers.DEAD
    return 0


def run(todo: Sequence[str], wide: bool, processes: int, report: IO[str] | None, seconds: float | None = None) -> workers.Dealt:
    """Deal the jobs to workers and write each one's findings."""
    command = workers.python("tests.gpu.smoke", "--work", *(["--wide"] if wide else []))
    return workers.deal(todo, lambda: workers.Worker(command, HANG), processes, report, seconds)


def main(argv: Sequence[str] | None = None) -> int:
    """Ask, and print what differs; the exit code is 1 when something does."""
    parser = argparse.ArgumentParser(prog="python -m tests.gpu.smoke", description=__doc__)
    parser.add_argument("--op", nargs="*", default=[], help="ops to ask; all when none is given")
    parser.add_argument("--wide", action="store_true", help="all samples of an op, too")
    workers.add_arguments(parser)
    given = parser.parse_args(argv)
    if given.work:
        return work(given.wide, given.answers)
    todo = workers.remaining([f"{name}/{dtype}" for name, dtype in jobs(given.op)], given.done)
    start = time.monotonic()
    with workers.reporting(given.report) as report:
        found = run(todo, given.wide, given.processes, report, given.seconds)
        return workers.ended(found, "ops and types", len(todo), start, report)


if __name__ == "__main__":
    sys.exit(main())
