"""Every kernel launch of the op table, recorded without a device and compiled for GPUs that are not there.

`python -m tests.static.launches out.json [--arch 90 ...] [--op NAME ...]` writes one line of facts per launch and GPU. It needs a
process without TRITON_INTERPRET. What is compiled: forward and backward of every op, on its samples and on its timed sizes, in
float32 and bfloat16 (an op without them: its first type), arrays contiguous. Not every distinct launch: `chosen` says which for
sm_90; sm_80 and sm_100 get one launch of each kernel in each corner, in bfloat16 and on a timed size where there is one.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
import zlib
from dataclasses import asdict
from typing import Any

import numpy as np

import tritensor  # noqa: F401  (registers the ops)
from tests.harness import corners
from tritensor import dtypes
from tritensor.array import CudaArray, empty
from tritensor.cuda import compile as compiler
from tritensor.cuda import runtime
from tritensor.cuda.arguments import Specialization
from tritensor.cuda.recording import RecordingRuntime
from tritensor.device import device
from tritensor.errors import GradError, LaunchError
from tritensor.table import Op, Sample, registry

GPU = device("cuda", 0)
FULL = 90  # the architecture for which all chosen launches are compiled
OTHERS = (80, 100)


class Shapes:
    """Stands in for numpy's generator where only shapes matter: draws constants that take no memory."""

    def __getattr__(self, name: str) -> Any:
        real = np.random.default_rng(0)

        def draw(*args: Any, **kwargs: Any) -> Any:
            shape = kwargs.get("size", args[-1] if args else ())
            shape = (
                shape
                if isinstance(shape, tuple)
                else (shape,)
                if isinstance(shape, int | np.integer) and name in ("standard_normal", "random")
                else shape
            )
            if name in ("standard_normal", "random", "uniform", "normal") and isinstance(shape, tuple):
                return np.broadcast_to(np.float64(0.5), shape)
            if name == "integers" and isinstance(shape, tuple):
                return np.broadcast_to(np.int64(0), shape)
            return getattr(real, name)(*args, **kwargs)

        return draw


class Launch:
    """A recorded launch: what it is, and the first op, corner and type that made it; `timed`: on one of the op's sizes, not its samples."""

    def __init__(self, spec: Specialization, op: str, corner: str, dtype: str, timed: bool) -> None:
        self.spec = spec
        self.op = op
        self.corner = corner
        self.dtype = dtype
        self.timed = timed


def _types(op: Op) -> tuple[str, ...]:
    return tuple(t for t in ("float32", "bfloat16") if t in op.dtypes) or op.dtypes[:1]


def _placed(x: Any, dtype: str) -> Any:
    """An input on the recorded device: a floating sample in the type under test, contiguous, without values."""
    if not isinstance(x, np.ndarray):
        return x
    return empty(x.shape, dtypes.as_dtype(dtype).numpy if x.dtype == np.float64 else x.dtype, GPU)


def _record(op: Op, sample: Sample, dtype: str, recorder: RecordingRuntime, found: dict[Specialization, Launch], timed: bool) -> None:
    """Run an op's kernels on one sample and keep each launch that is new."""

    def keep(corner: str) -> None:
        for spec in recorder.launches:
            found.setdefault(spec, Launch(spec, op.name, corner, dtype, timed))
        recorder.launches.clear()

    inputs = tuple(_placed(x, dtype) for x in sample.inputs)
    attrs = {**sample.attrs, **({"device": GPU} if "device" in op.attrs else {})}
    assert op.forward is not None
    out = op.forward(*inputs, **attrs)
    keep("forward")
    outputs = out if isinstance(out, tuple) else (out,)
    if op.backward is None:
        return
    grads = tuple(empty(y.shape, y.dtype, GPU) for y in outputs[: op.public])
    needs = tuple(isinstance(x, CudaArray) and dtypes.is_float(x.dtype) for x in inputs)
    if not any(needs):
        return
    g = grads[0] if op.public == 1 else grads
    try:
        corners.call(op, op.backward, g, inputs, outputs, attrs, needs)
    except GradError:  # an input that refuses a gradient (class weights): ask for the first one's alone
        corners.call(op, op.backward, g, inputs, outputs, attrs, (needs[0], *(False for _ in needs[1:])))
    keep("backward")


def collect(names: list[str] | None = None) -> tuple[list[Launch], list[str]]:
    """All distinct launches of the table, and what could not be recorded."""
    recorder = RecordingRuntime()
    runtime.use(recorder)
    found: dict[Specialization, Launch] = {}
    failures = []
    for op in registry.values():
        if op.forward is None or (names and op.name not in names):
            continue
        calls = [(s, False) for s in op.samples(np.random.default_rng(zlib.crc32(op.name.encode())))]
        if op.sizes is not None:
            calls += [(s, True) for s in op.sizes(Shapes())]  # type: ignore[arg-type]
        for dtype in _types(op):
            for sample, timed in calls:
                try:
                    _record(op, sample, dtype, recorder, found, timed)
                except Exception as error:  # reported with the rest: one bad op must not hide the others
                    failures.append(f"{op.name} {sample!r} {dtype}: {type(error).__name__}: {error}")
                    recorder.launches.clear()
    return list(found.values()), failures


def _functions(value: Any) -> Any:
    """What is left of a constant when everything but the functions in it is taken away; None where there are none."""
    if isinstance(value, tuple):
        found = tuple(f for f in map(_functions, value) if f is not None)
        return found or None
    return getattr(value, "__qualname__", None)


def _marks(types: Any) -> Any:
    """Types without what they point to: tuples, integers and divisibility remain."""
    return tuple(map(_marks, types)) if isinstance(types, tuple) else ("*" + types[types.find(":") :] if types[0] == "*" else types)


def chosen(launches: list[Launch]) -> list[int]:
    """Which launches to compile: all on timed sizes; of those on samples each that shows a kernel with new functions and element
    types, or a new combination of constants and divisibility, whatever the functions were. (A kernel shared by many ops meets each
    of its shapes with one of them, and each op in one of its shapes.)
    """
    seen: set[Any] = set()
    picked = []
    for i in sorted(range(len(launches)), key=lambda i: not launches[i].timed):
        spec = launches[i].spec
        functions = tuple(_functions(v) for _, v in spec.constants)
        meaning = (spec.kernel, functions, launches[i].dtype, tuple(_pointers(spec.types)), launches[i].corner)
        plain = tuple(str(v) for (_, v), f in zip(spec.constants, functions, strict=True) if f is None)
        form = (spec.kernel, plain, _marks(spec.types), spec.num_warps, spec.num_stages)
        if launches[i].timed or meaning not in seen or form not in seen:
            picked.append(i)
        seen |= {meaning, form}
    return sorted(picked)


def jobs(launches: list[Launch], archs: list[int]) -> list[tuple[int, int]]:
    """(launch, architecture) pairs to compile."""
    picked = chosen(launches)
    seen: dict[Any, int] = {}
    for i in picked:
        key = (launches[i].spec.kernel, launches[i].corner)
        better = launches[i].dtype == "bfloat16" and (launches[i].timed or not launches[seen[key]].timed) if key in seen else True
        if better:
            seen[key] = i
    few = set(seen.values())
    return [(i, a) for a in archs for i in picked if a == FULL or i in few]


def _pointers(types: Any) -> list[int]:
    """Bytes of the elements that a launch's pointers point to."""
    if isinstance(types, tuple):
        return [n for t in types for n in _pointers(t)]
    name = types.removesuffix(":16")
    return [d.itemsize for d in dtypes.ALL if f"*{d.triton}" == name]


_launches: list[Launch] = []


def _compile(job: tuple[int, int]) -> dict[str, Any]:
    launch, arch = _launches[job[0]], job[1]
    facts: dict[str, Any] = {"op": launch.op, "corner": launch.corner, "dtype": launch.dtype, "timed": launch.timed, "arch": arch}
    facts["elementwise"] = registry[launch.op].broadcasts
    facts["pointers"] = sorted(set(_pointers(launch.spec.types)))
    try:
        return facts | asdict(compiler.report(launch.spec, arch))
    except LaunchError as error:
        return facts | {"error": str(error)}


def main() -> None:
    """Collect, compile in one process per core, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out")
    parser.add_argument("--arch", type=int, nargs="*", default=[FULL, *OTHERS])
    parser.add_argument("--op", nargs="*")
    given = parser.parse_args()
    start = time.perf_counter()
    launches, failures = collect(given.op)
    _launches[:] = launches
    todo = jobs(launches, given.arch)
    print(f"{len(launches)} distinct launches, {len(todo)} compilations, {time.perf_counter() - start:.1f} s", file=sys.stderr)
    with multiprocessing.get_context("fork").Pool(os.cpu_count()) as pool:  # forked: kernels and constants need no pickling
        facts = pool.map(_compile, todo, chunksize=4)
    with open(given.out, "w") as file:
        json.dump({"failures": failures, "kernels": facts}, file)
    print(f"{time.perf_counter() - start:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
