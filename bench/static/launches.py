"""Every kernel launch of the op table, recorded without a device: forward and backward of every op, in every type it takes."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import tritensor  # noqa: F401  (registers the ops)
from tritensor.cuda.compiler.arguments import Specialization
from tritensor.cuda.runtime import active
from tritensor.cuda.virtual.recording_runtime import RecordingRuntime
from tritensor.ground import dtypes
from tritensor.ground.device import device
from tritensor.ground.errors import GradError
from tritensor.ops.array import CudaArray, empty
from tritensor.ops.table import Op, Sample, Spec, registry
from tritensor.ops.table.op_selection import select_ops
from tritensor.testing.questions import corners
from tritensor.tools.dry_run import Shapes

GPU = device("cuda", 0)
RECORDED = (80, 90)  # architectures that ops are asked what they launch on; a later one launches what the last of them before it does
ON_BITS = ("nextafter",)  # ops whose kernels are given the bits of floats, as whole numbers of their width


@dataclass(frozen=True)
class Launch:
    """A launch: the op, corner and type that make it, and the first of the op's timed sizes ("size0") or samples ("sample3") that does."""

    op: str
    corner: str
    dtype: str
    call: str
    number: int  # the corner's 1st, 2nd ... launch of this kernel in this call
    spec: Specialization
    typed: bool = True  # whether a pointer of the corner's kernels has the type; asked of timed sizes alone, samples may choose their types
    on: tuple[int, ...] = RECORDED  # those of them that launch it

    @property
    def key(self) -> str:
        """What the committed table calls it. It holds no constants, so that a changed tile is compared with the tile before."""
        kernel = self.spec.kernel.__name__
        return f"{self.op} {self.corner} {self.dtype} {self.call} {kernel}" + (f"#{self.number}" if self.number > 1 else "")

    def runs(self, arch: int) -> bool:
        """Whether a GPU of compute capability `arch` launches it."""
        return max(a for a in RECORDED if a <= arch) in self.on

    @property
    def timed(self) -> bool:
        return self.call.startswith("size")


def calls_of(op: Op) -> list[tuple[str, Sample]]:
    """The op's timed sizes, then its samples, each with its name."""
    timed = op.sizes(Shapes()) if op.sizes is not None else ()  # type: ignore[arg-type]
    samples = op.samples(np.random.default_rng(zlib.crc32(op.name.encode())))
    return [(f"size{i}", s) for i, s in enumerate(timed)] + [(f"sample{i}", s) for i, s in enumerate(samples)]


def _types(op: Op, calls: list[tuple[str, Sample]]) -> tuple[str, ...]:
    """The types to record: one alone where no input's type could change."""
    varies = any(getattr(x, "dtype", None) == np.float64 for _, s in calls for x in s.inputs)
    return op.dtypes if varies else op.dtypes[:1]


def inputs_of(op: Op, sample: Sample, dtype: str) -> tuple[Any, ...]:
    """A sample's inputs on the recorded device, without values: float64 becomes the type under test, then all are promoted as dispatch does."""
    wanted = dtypes.as_dtype(dtype).numpy
    given = [np.asarray(x) if isinstance(x, np.generic) else x for x in sample.inputs]
    specs = [Spec(x.shape, wanted if x.dtype == np.float64 else x.dtype) if isinstance(x, np.ndarray) else x for x in given]
    common = None
    if op.promote is not None and any(isinstance(x, Spec) for x in specs):
        common = dtypes.result_type(specs)
        if op.promote == "float" and dtypes.of(common).kind not in ("float", "complex"):
            common = dtypes.default_float().numpy
    return tuple(empty(x.shape, common or x.dtype, GPU) if isinstance(x, Spec) else x for x in specs)


def corners_of(op: Op, sample: Sample, dtype: str) -> Iterator[str]:
    """Run forward and backward; what stands between two names that it yields is that corner's doing."""
    inputs = inputs_of(op, sample, dtype)
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

    `names` and `types` choose ops and types (all of them where empty), ops as words of a command line do (tritensor/ops/table/op_selection.py): those of
    plug-ins and of files, too. Needs a process without TRITON_INTERPRET; afterwards device cuda is the recording one.
    """
    found: dict[tuple[str, str, str, Specialization], Launch] = {}
    failures: dict[str, None] = {}
    for arch in RECORDED:
        recorder = RecordingRuntime((arch // 10, arch % 10))
        active.use(recorder)  # type: ignore[arg-type]
        for op in select_ops(names):
            calls = calls_of(op) if op.forward is not None else []
            kinds = _types(op, calls)
            for dtype, (call, sample) in itertools.product([k for k in kinds if not types or k in types], calls):
                recorder.launches.clear()
                try:
                    for corner in corners_of(op, sample, dtype):
                        typed = kinds != op.dtypes or call.startswith("sample") or _has_type(recorder.launches, op, dtype)
                        _keep(found, recorder.launches, op.name, corner, dtype, call, typed, arch)
                        recorder.launches.clear()
                except Exception as error:  # reported with the rest: one bad op must not hide the others
                    failures[f"{op.name} {dtype} {call} {sample!r}: {type(error).__name__}: {error}"] = None
    return list(found.values()), list(failures)


def _has_type(specs: Collection[Specialization], op: Op, dtype: str) -> bool:
    """Whether a pointer of these launches has a type, or the one that the op computes in instead: integers become floats in a division."""
    wanted = {dtypes.as_dtype(dtype)}
    if op.name in ON_BITS:
        wanted.add(dtypes.as_dtype(f"int{8 * dtypes.as_dtype(dtype).itemsize}"))
    if op.promote == "float" and not any(d.kind in ("float", "complex") for d in wanted):
        wanted = {dtypes.default_float()}
    return not specs or not wanted.isdisjoint(d for spec in specs for d in _pointed(spec.types))


def _keep(
    found: dict[Any, Launch], specs: Collection[Specialization], op: str, corner: str, dtype: str, call: str, typed: bool, arch: int
) -> None:  # fmt: skip
    """Add the launches of one corner's call that this op has not made in this type before; of others, that this architecture makes them too."""
    numbers: dict[str, int] = {}
    for spec in specs:
        name = spec.kernel.__name__
        numbers[name] = numbers.get(name, 0) + 1
        one = found.get((op, corner, dtype, spec))
        if one is None:
            found[op, corner, dtype, spec] = Launch(op, corner, dtype, call, numbers[name], spec, typed, (arch,))
        elif arch not in one.on:
            found[op, corner, dtype, spec] = replace(one, on=(*one.on, arch))


def _pointed(types: Any) -> Iterator[dtypes.DType]:
    """The types that a launch's pointers and tensor descriptors point to."""
    for t in types:
        if isinstance(t, tuple):
            yield from _pointed(t)
        else:
            written = t.removesuffix(":16").removeprefix("tensordesc<").partition("[")[0]
            yield from (d for d in dtypes.ALL if written == (f"*{d.triton}" if t[0] == "*" else d.triton if "[" in t else None))


def element_sizes(types: Any) -> list[int]:
    """Bytes of the elements that a launch's pointers point to, each size once, smallest first."""
    return sorted({d.itemsize for d in _pointed(types)})


FULL = 90  # of the launches checked by `quick`: most on this architecture, one of each (op, corner) on another
# kernels with instructions for float16 of its own
MULTIPLY = ("_matmul_kernel", "_described_matmul_kernel", "_correlate_kernel", "_weight_kernel")


def quick(launches: list[Launch], archs: Collection[int]) -> list[tuple[int, int]]:
    """The (place in `launches`, architecture) pairs that a change is checked with; the same in every process.

    sm_90: every launch on a timed size, and of those on samples each that is the first of its (op, corner, type, kernel), or that
    shows a kernel with a new combination of flags, tile and divisibility, whichever op and functions it was made for; but for
    what `_told_by_another` says. The other architectures: one launch of each kernel in each (op, corner), in bfloat16 and on a timed size
    where there is one; of elementwise ops, which share a kernel, one half on one of them and one on the other.
    """
    firsts: set[Any] = set()
    forms: set[Any] = set()
    few: dict[int, dict[Any, int]] = {arch: {} for arch in archs}
    full = []
    for i, one in enumerate(launches):
        spec = one.spec
        if one.runs(FULL) and not _told_by_another(one):
            first = (one.op, one.corner, one.dtype, spec.kernel)
            form = (spec.kernel, _flags(tuple(v for _, v in spec.constants)), _marks(spec.types), spec.num_warps, spec.num_stages)
            if one.timed or first not in firsts or form not in forms:
                full.append(i)
            firsts.add(first)
            forms.add(form)
        for arch in archs:
            if not one.runs(arch):
                continue
            kept = few[arch].setdefault((one.op, one.corner, spec.kernel), i)
            if (one.dtype == "bfloat16", one.timed) > (launches[kept].dtype == "bfloat16", launches[kept].timed):
                few[arch][one.op, one.corner, spec.kernel] = i
    others = [arch for arch in archs if arch != FULL]

    def is_for(one: Launch, arch: int) -> bool:
        return not registry[one.op].broadcasts or others[zlib.crc32(one.op.encode()) % len(others)] == arch

    return [
        (i, arch)
        for arch in archs
        for i in (full if arch == FULL else sorted(few[arch].values()))
        if arch == FULL or is_for(launches[i], arch)
    ]


def _told_by_another(one: Launch) -> bool:
    """Whether another launch tells all that this one would on sm_90.

    float16 is widened to float32 as bfloat16 is, in tiles of the same size, unless matrices are multiplied. Elementwise, where one kernel
    holds formulas of float32, bfloat16 is left to the other architectures, and in float64, of which formulas are long, the first timed size is enough.
    """
    op = registry[one.op]
    if one.dtype == "float16":
        return "bfloat16" in op.dtypes and one.spec.kernel.__name__ not in MULTIPLY
    if not op.broadcasts:
        return False
    return (one.dtype == "bfloat16" and "float32" in op.dtypes) or (one.dtype == "float64" and one.timed and one.call != "size0")


def _flags(value: Any) -> Any:
    """A launch's constants: whole numbers and names as they are; functions, types and values that are calculated with by their class alone."""
    if isinstance(value, tuple):
        return tuple(map(_flags, value))
    return value if value is None or isinstance(value, (bool, int, str)) else type(value).__name__


def _marks(types: Any) -> Any:
    """Types without what they point to: tuples, integers and divisibility remain."""
    if isinstance(types, tuple):
        return tuple(map(_marks, types))
    return ("*:16" if types.endswith(":16") else "*") if types[0] == "*" else types
