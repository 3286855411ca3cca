"""The first minute on a GPU: every op once, forward and backward, beside numpy: `python -m tests.gpu.smoke [--wide] [--op softmax ...]`.

Each op runs in float32 and bfloat16 at a shape of several tiles (`--wide`: on all its samples as well). The ops are dealt to worker
processes. One that a kernel kills or hangs is started again behind that op, so that a single bad kernel costs one finding, and not the
run. `--pack FILE` compiles what it launches where no GPU is, for the machine that has one: there TRITENSOR_PACK=FILE.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

if __name__ == "__main__" and os.environ.get("TRITENSOR_GPU_TESTS") != "emulated":
    os.environ.pop("TRITON_INTERPRET", None)  # read when a kernel is defined

import numpy as np

import tritensor.kernels  # noqa: F401  (fills the table)
from bench.gpu.sizes import shapes
from tritensor import __version__
from tritensor.cuda.compiler import cubin_cache, precompile
from tritensor.cuda.runtime import serving
from tritensor.cuda.virtual.recording_runtime import RecordingRuntime
from tritensor.device import device
from tritensor.table import Op, Sample, registry
from tritensor.testing.questions.backward import backward_is_rule
from tritensor.testing.questions.cases import Case, cases, samples, types
from tritensor.testing.questions.forward import forward

ROOT = Path(__file__).resolve().parents[2]
GPU = device("cuda", 0)
SIDE = 256  # of the matrices that ops without sizes of their own get
MOST = 2 << 20  # elements of all inputs of a call: the reference, in float64, has its second, too
HANG = 60.0  # seconds without a word after which a worker is taken for hung
DEAD = 3  # a worker's exit code when the device no longer answers it


def smoke_cases(op: Op, dtype: str, wide: bool) -> list[Case]:
    """The largest of an op's timed sizes that numpy does in a moment, else its longest sample; `wide`: all samples, too, one of them strided."""
    sized = [in_float64(s.sample) for s in shapes(op, dtype, SIDE)]
    fitting = sorted((s for s in sized if _elements(s) <= MOST), key=_elements) or sorted(samples(op), key=_elements)
    found = [Case(op, 1000, fitting[-1], dtype, "plain", GPU)]
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


# A worker: reads "op type" lines, answers each with a line of JSON
def work(wide: bool) -> int:
    """Answer until standard input ends, or the device is gone."""
    from tritensor import cuda

    for line in sys.stdin:
        name, dtype = line.split()
        found = ask(name, dtype, wide)
        print(json.dumps(found), flush=True)
        try:
            cuda.synchronize()
        except Exception:  # an illegal access ends a context for good; the next worker has a fresh one
            return DEAD
    return 0


class Worker:
    """A worker process and the thread that reads its answers."""

    def __init__(self, wide: bool) -> None:
        flags = ["--work", *(["--wide"] if wide else [])]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.gpu.smoke", *flags], cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        self.answers: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, args=(self.process.stdout,), daemon=True)
        self._reader.start()

    def _read(self, stream: IO[str]) -> None:
        with stream:
            for line in stream:
                self.answers.put(line)
        self.answers.put(None)

    def ask(self, name: str, dtype: str) -> list[str]:
        """One op's findings; of a worker that dies or hangs, that is the finding."""
        assert self.process.stdin is not None
        said: list[str] = []
        try:
            self.process.stdin.write(f"{name} {dtype}\n")
            self.process.stdin.flush()
            while True:
                line = self.answers.get(timeout=HANG)
                if line is None:
                    return [f"{name}/{dtype}: the process died with {self.process.wait()}: {''.join(said)[-1500:]}"]
                if line.startswith("["):
                    return json.loads(line)
                said.append(line)
        except queue.Empty:
            self.process.kill()
            return [f"{name}/{dtype}: no answer in {HANG:.0f} s: {''.join(said)[-500:]}"]
        except BrokenPipeError:
            return [f"{name}/{dtype}: the process is gone, {self.process.wait()}"]

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def close(self) -> None:
        """Let the process end, and what was written to it and read from it."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # of one that is dead
            self.process.stdin.close()
        self.process.wait()
        self._reader.join()


def run(todo: list[tuple[str, str]], wide: bool, processes: int, report: IO[str]) -> int:
    """Deal the jobs to workers and write each one's findings; returns how many jobs had some."""
    waiting: queue.SimpleQueue[tuple[str, str]] = queue.SimpleQueue()
    for job in todo:
        waiting.put(job)
    lock, bad = threading.Lock(), []

    def serve() -> None:
        worker = Worker(wide)
        while not waiting.empty():
            try:
                name, dtype = waiting.get_nowait()
            except queue.Empty:
                break
            start = time.perf_counter()
            found = worker.ask(name, dtype)
            with lock:
                if found:
                    bad.append((name, dtype))
                print(
                    json.dumps({"op": name, "type": dtype, "seconds": round(time.perf_counter() - start, 2), "findings": found}),
                    file=report,
                    flush=True,
                )
            if found:
                time.sleep(0.2)  # a worker whose device is gone needs a moment to end
            if not worker.alive:
                worker.close()
                worker = Worker(wide)
        worker.close()

    threads = [threading.Thread(target=serve) for _ in range(processes)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return len(bad)


def _launched(todo: list[tuple[str, str]], wide: bool, arch: int) -> Iterator[Any]:
    """What the jobs launch, recorded without a device."""
    recorder = RecordingRuntime((arch // 10, arch % 10))
    serving.use(recorder)
    for name, dtype in todo:
        ask(name, dtype, wide)
    yield from recorder.launches


def pack(path: Path, todo: list[tuple[str, str]], wide: bool, arch: int, processes: int) -> int:
    """Compile what the jobs launch into a pack."""
    start = time.perf_counter()
    there = precompile.check_writable(path)
    rows, failures = {}, []
    for _, done in precompile.compile_all(list(_launched(todo, wide, arch)), arch, processes):
        if done.row is None:
            failures.append(done.failure)
        else:
            rows[done.row[0]] = done.row
    size = precompile.save(path, rows, [arch], there, __version__)
    print("\n".join(failures[:20]))
    print(
        f"{path}: {len(rows)} kernels by Triton {cubin_cache.version()}, {size / 1e6:.1f} MB, {time.perf_counter() - start:.0f} s, {len(failures)} failed"
    )
    return 1 if failures else 0


def main(argv: Sequence[str] | None = None) -> int:
    """Ask, and print what differs; the exit code is 1 when something does."""
    parser = argparse.ArgumentParser(prog="python -m tests.gpu.smoke", description=__doc__)
    parser.add_argument("--op", nargs="*", default=[], help="ops to ask; all when none is given")
    parser.add_argument("--wide", action="store_true", help="all samples of an op, too")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--report", type=Path, help="a file for a line of JSON for each op and type")
    parser.add_argument("--pack", type=Path, help="compile into this file, and ask nothing")
    parser.add_argument("--arch", type=int, default=90, help="with --pack: compute capability without its dot (default: %(default)s)")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if given.work:
        return work(given.wide)
    todo = jobs(given.op)
    if given.pack is not None:
        return pack(given.pack, todo, given.wide, given.arch, given.processes)
    start = time.perf_counter()
    with (given.report or Path(os.devnull)).open("w") as report:
        bad = run(todo, given.wide, given.processes, report)
    print(f"{len(todo)} ops and types in {time.perf_counter() - start:.0f} s, {bad} with findings")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
