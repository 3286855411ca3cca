"""One row of `bench gpu`: an op's forward or backward on one input, ours and torch's, against what its bytes and flops need at least."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from bench.gpu.clock import Ours, Run, Timing, measure
from bench.gpu.configs import configs_of
from bench.gpu.peers import counterpart
from bench.gpu.roofline import Roof
from bench.gpu.sizes import SIDE, Shape, label, shapes
from tritensor.ground import dtypes
from tritensor.ops.table import Op, Sample

TYPES = ("float32", "bfloat16")
MOST_SETS = 16  # sets of inputs that are rotated so that none is found in the cache


class Case(NamedTuple):
    """What a row times: an op, forward or backward, in a type, on a sample, which is drawn when it is asked for; the network that makes
    the call, and which of the op's sizes it is."""

    op: Op
    corner: str
    dtype: str
    label: str
    largest: bool
    draw: Callable[[], Sample]
    model: str = ""
    size: int = 0

    @property
    def key(self) -> str:
        """The row's name: the same in every run."""
        return f"{self.op.name}/{self.corner}/{self.dtype}/{self.label}"


def types_of(op: Op) -> tuple[str, ...]:
    return tuple(t for t in TYPES if t in op.dtypes) or op.dtypes[:1]


def cases(op: Op, quick: bool, side: int = SIDE) -> Iterator[Case]:
    """What is timed of an op. Quick: an elementwise op on its largest size in float32 alone."""
    for dtype in types_of(op)[: 1 if quick and op.broadcasts else None]:
        for i, shape in enumerate(shapes(op, dtype, side, dry=True)):
            if not quick or shape.largest:
                draw = functools.partial(drawn, op, dtype, side, i)
                yield from (c._replace(size=i) for c in corners(op, dtype, shape.sample, shape.largest, draw, shape.model))


@functools.lru_cache(maxsize=1)
def _all_drawn(op: Op, dtype: str, side: int) -> list[Shape]:
    return shapes(op, dtype, side)


def drawn(op: Op, dtype: str, side: int, i: int) -> Sample:
    """The i-th sample of an op, with its values; those of one op are kept until another's are asked for."""
    return _all_drawn(op, dtype, side)[i].sample


def corners(
    op: Op, dtype: str, sample: Sample, largest: bool = True, draw: Callable[[], Sample] | None = None, model: str = ""
) -> Iterator[Case]:
    """The forward, and the backward where there is one, on a sample; `draw` gives its values, `sample` those itself without it."""
    draw = draw or (lambda: sample)
    yield Case(op, "forward", dtype, label(sample), largest, draw, model)
    floats = any(isinstance(x, np.ndarray) and x.dtype.kind == "f" for x in sample.inputs) and dtype in ("float32", "bfloat16")
    if op.rule is not None and floats and not op.mutates:
        yield Case(op, "backward", dtype, label(sample), largest, draw, model)


def host_inputs(case: Case) -> list[Any]:
    """The sample's inputs on the host, floating ones as float32, or in the integer or bool type of the row."""
    kind = dtypes.as_dtype(case.dtype).kind
    found = []
    for x in case.draw().inputs:
        if isinstance(x, np.ndarray) and x.dtype.kind == "f":
            if kind == "bool":
                x = np.asarray(x > 0)
            elif kind in ("int", "uint"):
                x = np.asarray(np.clip(np.rint(3 * np.abs(x)), 1, 7)).astype(case.dtype)
            else:
                x = np.require(x, np.float32, "C")
        found.append(x)
    return found


def placed(lib: Ours, case: Case, host: list[Any]) -> list[Any]:
    """The inputs on a library's device, floating ones in the row's type."""
    dtype = getattr(lib.t, case.dtype)
    out = []
    for x in host:
        if isinstance(x, np.ndarray):
            was = x.dtype
            x = lib.t.from_numpy(x).to(lib.device)
            x = x.to(dtype) if was == np.float32 else x
        out.append(x)
    return out


def attributes(lib: Ours, case: Case) -> dict[str, Any]:
    return {**case.draw().attrs, **({"device": lib.device} if "device" in case.op.attrs else {})}


def caller(lib: Ours, case: Case, compiled: bool = False) -> Callable[..., Any] | None:
    """The op in a library as a function of its inputs; None where the library has none."""
    attrs = attributes(lib, case)
    if lib.name == "tritensor":
        function = getattr(lib.t.ops, case.op.name)
        return lambda *xs: function(*xs, **attrs)
    peer = counterpart(case.op.name)
    if peer is None:
        return None
    call = lambda *xs: peer(lib.t, *xs, **attrs)  # noqa: E731
    return lib.t.compile(call, dynamic=False, fullgraph=True) if compiled else call


class Prepared(NamedTuple):
    """Calls to be timed, each with data of its own, and what one must move and compute at least."""

    runs: list[Run]
    bytes: int
    flops: int


def prepare(lib: Ours, case: Case, l2: int, function: Callable[..., Any]) -> Prepared:
    """Place the inputs, as many sets as overflow the second-level cache four times, and close over them."""
    with lib.working():
        host = host_inputs(case)
        first = placed(lib, case, host)
        run, nbytes, flops = _closed(lib, case, function, first)
        sets = max(1, min(math.ceil(4 * l2 / max(nbytes, 1)), MOST_SETS))
        runs = [run]
        for _ in range(sets - 1):
            runs.append(_closed(lib, case, function, [x.clone() if hasattr(x, "clone") else x for x in first])[0])
        return Prepared(runs, nbytes, flops)


def _closed(lib: Ours, case: Case, function: Callable[..., Any], inputs: list[Any]) -> tuple[Run, int, int]:
    """(a call on these inputs, its bytes, its flops)."""
    if case.corner == "forward":

        def forward() -> object:
            with lib.t.no_grad():
                return function(*inputs)

        out = forward()
        return _keeping(forward), *_forward_work(case, inputs, out)
    leaves = [x.requires_grad_() for x in inputs if hasattr(x, "requires_grad_") and _floating(x)]
    out = function(*inputs)
    outs = [y for y in (out if isinstance(out, tuple) else (out,)) if _floating(y)]
    g = [lib.t.ones_like(y) for y in outs]

    def backward() -> object:
        return lib.t.autograd.grad(outs, leaves, g, retain_graph=True, allow_unused=True)

    found = backward()
    return _keeping(backward), *_backward_work(case, inputs, outs, g, found)


def _keeping(run: Run) -> Run:
    """The call, with what it gave last alive until it has given anew: else all sets would write their results into the one block of memory that was
    just freed, which the cache holds."""
    kept: list[object] = [None]

    def call() -> object:
        kept[0] = run()
        return kept[0]

    return call


def _floating(x: Any) -> bool:
    return hasattr(x, "is_floating_point") and x.is_floating_point()


def _size(xs: Any) -> int:
    """Bytes of the tensors among xs; of one that is expanded, those that are there."""
    tensors = [x for x in xs if hasattr(x, "element_size")]
    return sum(x.element_size() * math.prod(n for n, step in zip(x.shape, x.stride(), strict=True) if step) for x in tensors)


def _without_views(found: Any, given: list[Any]) -> list[Any]:
    """The tensors that do not lie in the memory of given ones."""
    held = {x.untyped_storage().data_ptr() for x in given}
    return [x for x in found if hasattr(x, "untyped_storage") and x.untyped_storage().data_ptr() not in held]


def _forward_work(case: Case, inputs: list[Any], out: Any) -> tuple[int, int]:
    """(bytes, flops) of a forward: what the record counts, else the bytes of inputs and outputs."""
    moved = _size(inputs) + _size(out if isinstance(out, tuple) else (out,))
    if case.op.work is None or not hasattr(inputs[0], "_array"):
        return moved, 0
    work = case.op.work(*[getattr(x, "_array", x) for x in inputs], **case.draw().attrs)
    return int(work.bytes), int(work.flops)


def _backward_work(case: Case, inputs: list[Any], outs: list[Any], g: list[Any], found: Any) -> tuple[int, int]:
    """(bytes, flops) of a backward: gradients in and out and what the node keeps; a product's flops once per gradient. Where every gradient is a view
    of the one that came in (a sum's, a concatenation's) nothing moves."""
    needs = tuple(_floating(x) for x in inputs)
    kept_in, kept_out, _ = case.op.keep(needs)
    last = len(kept_in) - 1
    kept = [x for i, x in enumerate(inputs) if last >= 0 and kept_in[min(i, last)]]
    kept += [y for y, k in zip(outs, kept_out, strict=False) if k]
    own = _without_views(found, g)
    moved = _size(g) + _size(own) + _size(kept) if own else 0
    flops = _forward_work(case, inputs, tuple(outs))[1]
    return moved, flops * sum(x is not None for x in found[:2])


def time_ours(lib: Ours, case: Case, roof: Roof, l2: int, seconds: float) -> dict[str, Any]:
    """The row with our figures."""
    function = caller(lib, case)
    assert function is not None
    ready = prepare(lib, case, l2, function)
    config = configs_of(ready.runs[0])  # before the clock starts: it drops what was learnt
    found = measure(lib, ready.runs, seconds)
    least = roof.least_ms(ready.bytes, ready.flops, case.dtype)
    return {
        "op": case.op.name, "corner": case.corner, "dtype": case.dtype, "shape": case.label, "largest": case.largest, "model": case.model,
        "bytes": ready.bytes, "flops": ready.flops, "sets": len(ready.runs), "cold": len(ready.runs) * ready.bytes >= 2 * l2, **rounded("", found),
        "gbs": round(ready.bytes / found.ms / 1e6, 1), "tflops": round(ready.flops / found.ms / 1e9, 3), "roof": round(least / found.ms, 3),
        "config": config,
    }  # fmt: skip


def time_peer(lib: Ours, case: Case, l2: int, seconds: float, compiled: bool = False) -> dict[str, Any]:
    """torch's figures for the same row, eager or compiled; {} where torch has no such op."""
    function = caller(lib, case, compiled)
    if function is None:
        return {}
    return rounded("compile_" if compiled else "torch_", measure(lib, prepare(lib, case, l2, function).runs, seconds))


def rounded(prefix: str, found: Timing) -> dict[str, Any]:
    """A timing as fields of a row."""
    out = {
        f"{prefix}ms": round(found.ms, 5), f"{prefix}spread": round(found.spread, 3), f"{prefix}eager_ms": round(found.eager_ms, 5),
        f"{prefix}eager_spread": round(found.eager_spread, 3), f"{prefix}host_us": round(found.host_us, 2),
    }  # fmt: skip
    return {**out, f"{prefix}note": found.note} if found.note else out


def ordered(ops: list[Op]) -> list[Op]:
    """The ops to time; those that are more than a formula first, for they differ most from torch's."""
    return sorted(ops, key=lambda op: (op.broadcasts, op.sizes is None))
