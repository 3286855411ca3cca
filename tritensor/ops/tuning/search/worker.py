"""The process that runs configs on the GPU, and the parent's hold on it: a config that crashes or hangs ends this process and no other."""

from __future__ import annotations

import multiprocessing
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tritensor.cuda import get_device_properties, synchronize
from tritensor.ground import dtypes
from tritensor.ground.device import gpu
from tritensor.ground.errors import ArgumentError, LaunchError, OutOfMemoryError
from tritensor.ops.array import CudaArray, to_host
from tritensor.ops.table import Sample, registry
from tritensor.ops.table.op_selection import register_file
from tritensor.ops.tuning.config_choice import forced_at
from tritensor.ops.tuning.gpu_calls import attributes, corners, filled, typed
from tritensor.ops.tuning.search.kernel_file import KernelJob, prepared
from tritensor.ops.tuning.search.targets import calls_of
from tritensor.ops.tuning.search.timer import copies, microseconds
from tritensor.ops.tuning.tuned import Place, config_from

TOLERANCE = 64  # roundings of the type by which two configs may differ: sums in another order, not other sums


class Job(NamedTuple):
    """A target as a process that has nothing loaded can find it: files whose ops are registered first, the entry, the call, rows of --shapes."""

    files: tuple[str, ...]
    place: Place
    dtype: str
    number: int
    shapes: dict[str, list[Any]] | None


class GPU(NamedTuple):
    """What the worker says of the device it works on."""

    name: str
    capability: int
    cache: int


class _Bench:
    """One target made ready: calls on data of their own, and the heuristic's results to compare with."""

    expected: list[np.ndarray]
    dtype: str
    size = 1.0  # of what goes in, for what rounding may do

    def time(self, fields: Any, seconds: float) -> float:
        """Microseconds of the corner with a config (None: the heuristic). Raises ValueError where its results are others."""
        raise NotImplementedError

    def compare(self, found: Sequence[np.ndarray]) -> None:
        """Raise ValueError where results are others than the heuristic's."""
        for got, expected in zip(found, self.expected, strict=True):
            _compare(got, expected, TOLERANCE * _EPS.get(self.dtype, 2.0**-23), self.size)


class _OpBench(_Bench):
    """A corner of an op."""

    def __init__(self, job: Job) -> None:
        for file in job.files:
            register_file(Path(file))
        op = registry[job.place.op]
        # by the place: the process that replaces a dead one must draw the same data
        rng = np.random.default_rng(zlib.crc32(str(job.place).encode()))
        sample = calls_of(op, job.shapes, rng)[job.number]
        self.place, self.dtype, self.mutates = job.place, job.dtype, bool(op.mutates)
        specs = typed(op, sample.inputs, job.dtype)
        nbytes = sum(int(np.prod(s.shape)) * s.dtype.itemsize for s in specs if hasattr(s, "dtype"))
        self.runs: list[Callable[[], Any]] = []
        for _ in range(copies(nbytes, get_device_properties(0).l2_cache_size)):
            self._add(op, sample, specs)
        self.expected = self._results()
        self.size = max(
            (float(np.sqrt((x * x).sum())) for x in map(_values, filled(sample.inputs, specs, gpu(0))) if x is not None), default=1.0
        )

    def _add(self, op: Any, sample: Sample, specs: tuple[Any, ...]) -> None:
        on = gpu(0)
        for corner, run in corners(op, filled(sample.inputs, specs, on), attributes(op, sample, on)):
            if corner == self.place.corner:
                self.runs.append(run)

    def _results(self) -> list[np.ndarray]:
        out = None if self.mutates else self.runs[0]()
        return [v for v in map(_values, out if isinstance(out, tuple) else (out,)) if v is not None]

    def time(self, fields: Any, seconds: float) -> float:
        def chosen(key: tuple[Any, ...], default: Any) -> Any:
            return default if fields is None else config_from(fields, default, self.place.kernel, key)

        with forced_at({self.place: chosen}):
            # first: a wrong result is no config, however fast
            self.compare(self._results())
            us = microseconds(self.runs, seconds)
        synchronize()
        return us


class _KernelBench(_Bench):
    """A call of a kernel of a file."""

    def __init__(self, job: KernelJob) -> None:
        self.dtype, self._heuristic = job.place.dtype, job.heuristic
        self._calls, self._values = prepared(job)
        self._calls[0](self._heuristic)
        self.expected = self._values()
        self.size = max((float(np.sqrt((x * x).sum())) for x in self.expected), default=1.0)

    def time(self, fields: Any, seconds: float) -> float:
        config = self._heuristic if fields is None else fields
        self._calls[0](config)
        if fields is None:  # a kernel that reads what it writes has other results at each call: what the first config now gives counts
            self.expected = self._values()
        self.compare(self._values())
        us = microseconds([partial(call, config) for call in self._calls], seconds)
        synchronize()
        return us


def _compare(got: np.ndarray, expected: np.ndarray, roundings: float, size: float) -> None:
    finite = np.isfinite(expected)
    # relative to the largest and to what went in: cancellation leaves small results with large roundings
    allowed = roundings * (float(np.abs(np.where(finite, expected, 0.0)).max(initial=0.0)) + size)
    apart = float(np.abs(np.where(np.isfinite(got), got, 0.0) - np.where(finite, expected, 0.0)).max(initial=0.0))
    if not np.array_equal(np.isfinite(got), finite) or apart > allowed:
        raise ValueError(f"its results differ from the heuristic's by up to {apart:.3g}, where {allowed:.3g} is what rounding may do")


_EPS = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}


def _values(x: Any) -> np.ndarray | None:
    """A device array's values in float64; None for what has none to compare."""
    if not isinstance(x, CudaArray) or dtypes.of(x.dtype).kind not in ("float", "int", "uint", "bool"):
        return None
    return np.asarray(to_host(x)).astype(np.float64)


def serve(pipe: Any) -> None:
    """Answer what comes: a Job is made ready, (fields, seconds) is timed. An answer is (value, "", False) or (None, why, whether it is the last).

    After an error of the device the process ends, since a GPU's context that met one gives no true answer any more.
    """
    bench: _Bench | None = None
    while True:
        try:
            asked = pipe.recv()
        except (EOFError, KeyboardInterrupt):
            return
        try:
            if asked is None:
                has = get_device_properties(0)
                pipe.send((GPU(has.name, 10 * has.capability[0] + has.capability[1], has.l2_cache_size), "", False))
            elif isinstance(asked, (Job, KernelJob)):
                bench = None  # its memory is another's
                bench = _OpBench(asked) if isinstance(asked, Job) else _KernelBench(asked)
                pipe.send((None, "", False))
            else:
                assert bench is not None
                pipe.send((bench.time(*asked), "", False))
        except (ArgumentError, LaunchError, OutOfMemoryError, ValueError) as error:
            pipe.send((None, f"{type(error).__name__}: {error}", False))
        except Exception as error:  # of the device: told, and then this process is of no use
            pipe.send((None, f"{type(error).__name__}: {error}", True))
            return


class Worker:
    """A process of `serve`, started when it is needed and anew after it died. `seconds`: how long an answer may take."""

    def __init__(self, seconds: float = 60.0, work: Callable[[Any], None] = serve) -> None:
        self.seconds, self._work = seconds, work
        self._process: Any = None
        self._pipe: Any = None
        self._job: Job | KernelJob | None = None
        self._ready: Job | KernelJob | None = None

    def gpu(self) -> GPU:
        """The device. Raises RuntimeError in the device's words."""
        return self._answer(None)  # type: ignore[no-any-return]

    def take(self, job: Job | KernelJob) -> None:
        """What the next times are of."""
        self._job = job

    def time(self, fields: Any, seconds: float) -> float | str:
        """Microseconds, or why there are none: the config failed, ended the process, or took too long."""
        try:
            # made ready once for a target, and again in a process that replaces a dead one
            if self._ready is not self._job or self._process is None:
                self._ready = None
                self._answer(self._job)
                self._ready = self._job
            return float(self._answer((fields, seconds)))
        except RuntimeError as error:
            return str(error)

    def _answer(self, asked: Any) -> Any:
        if self._process is None:
            spawn = multiprocessing.get_context("spawn")  # a driver does not live through a fork
            self._pipe, theirs = spawn.Pipe()
            self._process = spawn.Process(target=self._work, args=(theirs,), daemon=True)
            self._process.start()
            theirs.close()
        try:
            self._pipe.send(asked)
            if not self._pipe.poll(self.seconds):
                self.close()
                raise RuntimeError(f"no answer within {self.seconds:.0f} s: the kernel hangs, or the compiler does")
            value, why, last = self._pipe.recv()
        except (EOFError, ConnectionError):
            self._process.join(10)
            code = self._process.exitcode
            self.close()
            raise RuntimeError(
                f"it ended the process ({f'signal {-code}' if code is not None and code < 0 else f'exit code {code}'})"
            ) from None
        if last:
            self.close()
        if why:
            raise RuntimeError(why)
        return value

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
        self._process = self._ready = None


def files_of(words: Sequence[str]) -> tuple[str, ...]:
    """The files of ops among words of a command line."""
    return tuple(str(Path(w).resolve()) for word in words for w in word.split(",") if w.endswith(".py"))
