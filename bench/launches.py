"""Every kernel launch of the op table, recorded without a device: forward and backward of every op, in every type it takes."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

import tritensor  # noqa: F401  (registers the ops)
from tests.harness import corners
from tritensor import dtypes
from tritensor.array import CudaArray, empty
from tritensor.cuda import runtime
from tritensor.cuda.arguments import Specialization
from tritensor.cuda.recording import RecordingRuntime
from tritensor.device import device
from tritensor.errors import GradError
from tritensor.rehearsal import Shapes
from tritensor.table import Op, Sample, registry

GPU = device("cuda", 0)


@dataclass(frozen=True)
class Launch:
    """A launch: the op, corner and type that make it, and the first of the op's timed sizes ("size0") or samples ("sample3") that does."""

    op: str
    corner: str
    dtype: str
    call: str
    number: int  # the corner's 1st, 2nd ... launch of this kernel in this call
    spec: Specialization

    @property
    def key(self) -> str:
        """What the committed table calls it. It holds no constants, so that a changed tile is compared with the tile before."""
        kernel = self.spec.kernel.__name__
        return f"{self.op} {self.corner} {self.dtype} {self.call} {kernel}" + (f"#{self.number}" if self.number > 1 else "")

    @property
    def timed(self) -> bool:
        return self.call.startswith("size")


def _calls(op: Op) -> list[tuple[str, Sample]]:
    """The op's timed sizes, then its samples, each with its name."""
    timed = op.sizes(Shapes()) if op.sizes is not None else ()  # type: ignore[arg-type]
    samples = op.samples(np.random.default_rng(zlib.crc32(op.name.encode())))
    return [(f"size{i}", s) for i, s in enumerate(timed)] + [(f"sample{i}", s) for i, s in enumerate(samples)]


def _types(op: Op, calls: list[tuple[str, Sample]]) -> tuple[str, ...]:
    """The types to record: one alone where no input's type could change."""
    varies = any(getattr(x, "dtype", None) == np.float64 for _, s in calls for x in s.inputs)
    return op.dtypes if varies else op.dtypes[:1]


def _inputs(op: Op, sample: Sample, dtype: str) -> tuple[Any, ...]:
    """A sample's inputs on the recorded device, without values: float64 becomes the type under test, then all are promoted as dispatch does."""
    wanted = dtypes.as_dtype(dtype).numpy
    given = [np.asarray(x) if isinstance(x, np.generic) else x for x in sample.inputs]
    found = [wanted if x.dtype == np.float64 else x.dtype for x in given if isinstance(x, np.ndarray)]
    common = None
    if op.promote is not None and found:
        common = reduce(dtypes.promote, found)
        for x in given:
            if isinstance(x, bool | int | float):
                common = dtypes.promote_scalar(common, x)
        if op.promote == "float" and dtypes.of(common).kind not in ("float", "complex"):
            common = dtypes.default_float().numpy
    kinds = iter(found)
    return tuple(empty(x.shape, common or next(kinds), GPU) if isinstance(x, np.ndarray) else x for x in given)


def _corners(op: Op, sample: Sample, dtype: str) -> Iterator[str]:
    """Run forward and backward; what stands between two names that it yields is that corner's doing."""
    inputs = _inputs(op, sample, dtype)
    attrs = {**sample.attrs, **({"device": GPU} if "device" in op.attrs else {})}
    assert op.forward is not None
    out = op.forward(*inputs, **attrs)
    yield "forward"
    needs = tuple(isinstance(x, CudaArray) and dtypes.is_float(x.dtype) for x in inputs)
    if op.backward is None or not any(needs):
        return
    outputs = out if isinstance(out, tuple) else (out,)
    grads = tuple(empty(y.shape, y.dtype, GPU) for y in outputs[: op.public])
    g = grads[0] if op.public == 1 else grads
    try:
        corners.call(op, op.backward, g, inputs, outputs, attrs, needs)
    except GradError:  # an input that refuses a gradient (class weights): ask for the first one's alone
        corners.call(op, op.backward, g, inputs, outputs, attrs, (needs[0], *(False for _ in needs[1:])))
    yield "backward"


def collect(names: Collection[str] = (), types: Collection[str] = ()) -> tuple[list[Launch], list[str]]:
    """All launches of the table that differ in op, corner, type or what is compiled, and one line for each call that cannot be recorded.

    `names` and `types` choose ops and types (all of them where empty). Needs a process without TRITON_INTERPRET; afterwards device cuda
    is the recording one.
    """
    recorder = RecordingRuntime()
    runtime.use(recorder)
    found: dict[tuple[str, str, str, Specialization], Launch] = {}
    failures = []
    for op in registry.values():
        if op.forward is None or (names and op.name not in names):
            continue
        calls = _calls(op)
        for dtype in _types(op, calls):
            if types and dtype not in types:
                continue
            for call, sample in calls:
                recorder.launches.clear()
                try:
                    for corner in _corners(op, sample, dtype):
                        _keep(found, recorder.launches, op.name, corner, dtype, call)
                        recorder.launches.clear()
                except Exception as error:  # reported with the rest: one bad op must not hide the others
                    failures.append(f"{op.name} {dtype} {call} {sample!r}: {type(error).__name__}: {error}")
    return list(found.values()), failures


def _keep(found: dict[Any, Launch], specs: Collection[Specialization], op: str, corner: str, dtype: str, call: str) -> None:
    """Add the launches of one corner's call that this op has not made in this type before."""
    numbers: dict[str, int] = {}
    for spec in specs:
        name = spec.kernel.__name__
        numbers[name] = numbers.get(name, 0) + 1
        found.setdefault((op, corner, dtype, spec), Launch(op, corner, dtype, call, numbers[name], spec))


def element_sizes(types: Any) -> list[int]:
    """Bytes of the elements that a launch's pointers point to, each size once, smallest first."""

    def walk(given: Any) -> Iterator[int]:
        for t in given:
            if isinstance(t, tuple):
                yield from walk(t)
            else:
                yield from (d.itemsize for d in dtypes.ALL if f"*{d.triton}" == t.removesuffix(":16"))

    return sorted(set(walk(types)))


FULL = 90  # of the launches checked by `quick`: all on this architecture, one of each (op, corner) on the others


def quick(launches: list[Launch], archs: Collection[int]) -> list[tuple[int, int]]:
    """The (place in `launches`, architecture) pairs that a change is checked with; the same in every process.

    sm_90: every launch on a timed size, and of those on samples each that is the first of its (op, corner, type, kernel), or that
    shows a kernel with a new combination of constants and divisibility, whichever op and functions it was made for. The other
    architectures: one launch of each kernel in each (op, corner), in bfloat16 and on a timed size where there is one.
    """
    firsts: set[Any] = set()
    forms: set[Any] = set()
    few: dict[Any, int] = {}
    full = []
    for i, one in enumerate(launches):
        spec = one.spec
        first = (one.op, one.corner, one.dtype, spec.kernel)
        form = (spec.kernel, _plain(spec), _marks(spec.types), spec.num_warps, spec.num_stages)
        if one.timed or first not in firsts or form not in forms:
            full.append(i)
        firsts.add(first)
        forms.add(form)
        kept = few.setdefault((one.op, one.corner, spec.kernel), i)
        if (one.dtype == "bfloat16", one.timed) > (launches[kept].dtype == "bfloat16", launches[kept].timed):
            few[one.op, one.corner, spec.kernel] = i
    return [(i, arch) for arch in archs for i in (full if arch == FULL else sorted(few.values()))]


def _plain(spec: Specialization) -> tuple[str, ...]:
    """The constants of a launch that are not functions."""

    def is_function(value: Any) -> bool:
        return any(map(is_function, value)) if isinstance(value, tuple) else hasattr(value, "__qualname__")

    return tuple(str(v) for _, v in spec.constants if not is_function(v))


def _marks(types: Any) -> Any:
    """Types without what they point to: tuples, integers and divisibility remain."""
    if isinstance(types, tuple):
        return tuple(map(_marks, types))
    return ("*:16" if types.endswith(":16") else "*") if types[0] == "*" else types
