"""Kernels compiled anew for other shapes: an integer is compiled in only where its divisibility decides how wide accesses are."""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pytest

import tritensor.kernels
from tests.stub.child import on_stub
from tritensor.cuda.compiler.arguments import FieldTypes, Plan, Specialization
from tritensor.cuda.runtime import active
from tritensor.cuda.virtual.recording_runtime import RecordingRuntime
from tritensor.ground import dtypes
from tritensor.ground.device import device
from tritensor.ops.array import CudaArray, empty
from tritensor.ops.table import Op, registry
from tritensor.testing.questions import corners

GPU = device("cuda", 0)
SIZES = (1, 3, 15, 16, 17, 31, 32, 48)
Call = tuple[tuple[Any, ...], dict[str, Any]]


def f(*shape: int, dtype: str = "float32") -> Any:
    return empty(shape, np.dtype(dtype), GPU)


def i(*shape: int) -> Any:
    return f(*shape, dtype="int64")


def last(n: int, c: int, h: int, w: int, dtype: str = "float32") -> Any:
    return f(n, h, w, c, dtype=dtype).transpose((0, 3, 1, 2))


POOL: dict[str, Any] = {"kernel_size": (2, 2), "stride": (2, 2), "padding": (0, 0), "ceil_mode": False}
MAX, AVG = POOL | {"dilation": (1, 1)}, POOL | {"count_include_pad": True}
CONV: dict[str, Any] = {"stride": (1, 1), "padding": (1, 1), "dilation": (1, 1), "groups": 1}


class Sweep(NamedTuple):
    """64 calls of an op. `most`: kernels that they may compile, forward and backward; they differ in tiles and in what decides widths.
    `fewer`: specialised on every integer, they would compile more."""

    op: str
    call: Callable[[int, int], Call]
    most: int
    fewer: bool = True


SWEEPS = {
    "max_pool2d, batch": Sweep("max_pool2d", lambda a, b: ((f(a, b, 6, 6),), MAX), 4),
    "max_pool2d, image": Sweep("max_pool2d", lambda a, b: ((f(2, 16, a + 1, b + 1),), MAX), 14),
    "avg_pool2d, batch": Sweep("avg_pool2d", lambda a, b: ((f(a, b, 6, 6),), AVG), 4),
    "avg_pool2d, image": Sweep("avg_pool2d", lambda a, b: ((f(2, 16, a + 1, b + 1),), AVG), 14),
    "conv2d, image": Sweep("conv2d", lambda a, b: ((f(64, 16, a, b), f(16, 16, 3, 3)), CONV), 40),
    "matmul, batch": Sweep("matmul", lambda a, b: ((f(a, b, 64, 64), f(b, 64, 64)), {}), 24),
    "softmax, last dim": Sweep("softmax", lambda a, b: ((f(a, b, 64),), {"dim": 2}), 8, fewer=False),
    "softmax, middle dim": Sweep("softmax", lambda a, b: ((f(a, b, 64),), {"dim": 1}), 20),  # by what divides sizes and strides alike
    "cumsum": Sweep("cumsum", lambda a, b: ((f(a, b, 64),), {"dim": 2, "reverse": False}), 8, fewer=False),
    "cross_entropy": Sweep("cross_entropy", lambda a, b: ((f(a * b, 64), i(a * b), None), {"reduction": "none"}), 8, fewer=False),
    "layer_norm": Sweep("layer_norm", lambda a, b: ((f(a, b, 64), f(64), f(64)), {"eps": 1e-5, "axes": 1}), 20),
    "sum": Sweep("sum", lambda a, b: ((f(a, b, 64),), {"dim": (1,), "keepdim": False}), 17),
    "var": Sweep("var", lambda a, b: ((f(a, b, 64),), {"dim": (0, 2), "keepdim": False}), 45),
    "gather": Sweep("gather", lambda a, b: ((f(64, a), i(64, b)), {"dim": 1}), 13),
    "index_get": Sweep(
        "index_get", lambda a, b: ((f(a, b, 64), i(64), i(64)), {"dims": (0, 1), "front": False}), 11
    ),  # few keys are sorted by another kernel than many
    "embedding": Sweep("embedding", lambda a, b: ((f(a, 64), i(b, 16)), {"padding_idx": None}), 10),
    "tril": Sweep("tril", lambda a, b: ((f(64, a, 64),), {"diagonal": b}), 1),
}


def run(op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> None:
    """One call and its backward, every float input needing a gradient."""
    assert op.forward is not None
    attrs = {**op.attrs, **attrs}
    out = op.forward(*inputs, **attrs)
    if op.backward is None:
        return
    outputs = out if isinstance(out, tuple) else (out,)
    needs = tuple(isinstance(x, CudaArray) and dtypes.of(x.dtype).is_floating_point for x in inputs)
    grads = tuple(empty(y.shape, y.dtype, GPU) for y in outputs[: op.public])
    corners.call(op, op.backward, grads[0] if op.public == 1 else grads, inputs, outputs, attrs, needs)


def specializations(op: str, calls: list[Call], declared: bool = True) -> list[Specialization]:
    """What calls would compile, each once; not `declared`: as if no kernel said what decides nothing."""
    recorder = RecordingRuntime()
    active.use(recorder)
    # a property comes before what a plan has found already
    with contextlib.nullcontext() if declared else mock.patch.object(Plan, "plain", property(lambda plan: frozenset())):
        for inputs, attrs in calls:
            run(registry[op], inputs, attrs)
    return list(recorder.launches)


@pytest.mark.parametrize("name", SWEEPS)
@on_stub()
def test_a_change_of_shapes_compiles_few_kernels(name: str) -> None:
    sweep = SWEEPS[name]
    calls = [sweep.call(a, b) for a in SIZES for b in SIZES]
    found = specializations(sweep.op, calls)
    assert 0 < len(found) <= sweep.most, f"{len(found)} for 64 calls, not {sweep.most}"
    without = specializations(sweep.op, calls, declared=False)
    assert (len(without) > len(found)) is sweep.fewer, f"{len(found)} for 64 calls, {len(without)} with every integer compiled in"


def kernels() -> Iterator[Any]:
    """Every @triton.jit function of the package."""
    from triton.runtime.jit import JITFunction

    for module in pkgutil.walk_packages(tritensor.kernels.__path__, "tritensor.kernels."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, JITFunction):
                yield value


@on_stub()
def test_what_kernels_declare_are_their_parameters() -> None:
    """Triton takes any name; a misspelt one would be compiled in without a word."""
    declaring = 0
    for kernel in kernels():
        names = list(kernel.do_not_specialize)
        declaring += bool(names)
        numbers = {p.name for p in kernel.params if not p.is_constexpr}
        assert set(names) <= numbers, f"{kernel.__name__}: {sorted(set(names) - numbers)} are no run-time parameters of it"
        assert len(set(names)) == len(names), f"{kernel.__name__}: {names} names one twice"
    assert declaring > 20


def wide() -> list[tuple[str, Call]]:
    """Calls whose sizes all divide by 16, so that declarations take something away; every kernel that declares anything is among these."""
    return [
        ("max_pool2d", ((f(8, 16, 32, 32),), MAX)),
        ("max_pool2d", ((last(8, 16, 32, 32),), MAX)),
        ("max_pool2d_gather", ((f(8, 16, 32, 32), i(8, 16, 16, 16)), {k: v for k, v in MAX.items() if k != "ceil_mode"})),
        ("avg_pool2d", ((f(8, 16, 32, 32),), AVG)),
        ("conv2d", ((f(8, 32, 16, 16), f(64, 32, 3, 3)), CONV)),
        ("conv2d", ((last(8, 32, 16, 16), f(64, 32, 3, 3)), CONV)),
        ("conv2d", ((last(8, 64, 16, 16), f(64, 1, 3, 3), f(64)), CONV | {"groups": 64})),  # every channel by itself
        ("conv2d", ((last(8, 64, 64, 64, "bfloat16"), f(64, 64, 3, 3, dtype="bfloat16")), CONV)),
        ("linear", ((f(16, 4096), f(64, 4096), f(64)), {})),
        ("matmul", ((f(16, 16, 128, 64), f(16, 64, 128)), {})),
        ("softmax", ((f(16, 64, 512),), {"dim": 1})),
        ("softmax", ((f(512, 1024, dtype="bfloat16"),), {"dim": 1})),
        ("cumsum", ((f(512, 1024),), {"dim": 1, "reverse": False})),
        ("cross_entropy", ((f(512, 1024), f(512, 1024), f(1024)), {"reduction": "mean"})),
        ("cross_entropy", ((f(512, 1024), i(512), f(1024)), {"reduction": "mean"})),
        ("nll_loss", ((f(512, 1024), i(512), f(1024)), {"reduction": "mean"})),
        ("layer_norm", ((f(4096, 1024), f(1024), f(1024)), {"eps": 1e-5, "axes": 1})),
        ("layer_norm", ((f(256, 16384), f(16384), f(16384)), {"eps": 1e-5, "axes": 1})),  # rows that do not fit one pass
        ("sum", ((f(16, 32, 64, 128),), {"dim": (1, 3), "keepdim": False})),
        ("var", ((f(16, 64, 512),), {"dim": (1,), "keepdim": False})),
        ("gather", ((f(512, 1024), i(512, 256)), {"dim": 1})),
        ("scatter_add", ((f(512, 1024), i(512, 16), f(512, 16)), {"dim": 1})),
        ("index_get", ((f(512, 16, 64), i(256), i(256)), {"dims": (0, 1), "front": False})),
        ("tril", ((f(16, 512, 1024),), {"diagonal": 16})),
        ("adam_numbers", ((f(160, 7), f(160, 1)), {"lr": 0.1, "beta1": 0.9, "beta2": 0.99, "eps": 1e-8})),
        *wide_images(),
        *wide_rows(),
        *wide_sequences(),
    ]


def wide_sequences() -> list[tuple[str, Call]]:
    """Of wide(): attention, recurrent nets, labels of sequences and bags of words."""
    heads = (16, 64, 64)
    return [
        ("attention", ((f(*heads), f(*heads), f(*heads)), {"scale": 0.125})),
        ("flash_attention", ((f(*heads), f(*heads), f(*heads)), {"scale": 0.125, "causal": False, "p": 0.0, "seed": 0, "offset": 0})),
        ("lstm_sequence", ((f(64, 64), f(16, 16), f(16, 16), f(64, 16)), {"batch_sizes": (16, 16, 16, 16)})),
        ("ctc_loss", ((f(32, 16, 32), i(16, 16), i(16), i(16)), {"blank": 0})),
        ("embedding_bag", ((f(512, 64), i(4096), i((1 << 15) + 1), f(4096)), {})),  # a bag is found in 16 halvings
        ("bag_tops", ((f(512, 64), i(4096), i((1 << 15) + 1)), {})),
    ]


def wide_images() -> list[tuple[str, Call]]:
    """Of wide(): maps and windows of images."""
    windows: dict[str, Any] = {"kernel_size": (16, 16), "dilation": (16, 16), "padding": (16, 16), "stride": (16, 16)}
    bilinear = {"mode": "bilinear", "padding_mode": "zeros", "align_corners": False}
    return [
        ("adaptive_max_pool", ((f(16, 16, 256, 256),), {"size": (16, 16)})),
        ("grid_sample", ((f(16, 16, 64, 64), f(16, 64, 64, 2)), bilinear)),
        ("im2col", ((f(16, 16, 480, 480),), windows)),
        ("col2im", ((f(16, 4096, 1024),), windows | {"output_size": (720, 720)})),
        ("resample", ((f(16, 16, 64, 64),), {"size": (128, 128), "mode": "linear", "align_corners": False, "factors": (None, None)})),
        *[
            (
                "resample",
                ((f(16, 16, 64, 64, dtype="uint8"),), {"size": (128, 128), "mode": mode, "align_corners": False, "factors": (None, None)}),
            )
            for mode in ("linear", "cubic-aa")
        ],
        ("edge_pad", ((f(16, 16, 64, 64),), {"sides": ((16, 16), (16, 16)), "mode": "reflect"})),
    ]


def wide_rows() -> list[tuple[str, Call]]:
    """Of wide(): what is done along rows, and positions."""
    rows = f(512, 1024)
    return [
        *[(name, ((rows,), {"dim": 1})) for name in ("cumprod", "cummax", "logcumsumexp")],
        *[(name, ((rows,), {"dim": 0})) for name in ("cumprod", "cummax", "logcumsumexp")],
        *[("sort", ((rows,), {"dim": dim, "descending": False})) for dim in (0, 1)],
        ("sort", ((f(16, 65536),), {"dim": 1, "descending": False})),
        *[("topk", ((x,), {"dim": dim, "k": 16, "largest": True})) for x, dim in ((f(16, 65536), 1), (f(65536, 16), 0))],
        ("rank_place", ((rows,), {"dim": 1, "rank": -1})),
        ("searchsorted", ((rows, f(512, 16)), {})),
        ("run_lengths", ((rows,), {})),
        ("scatter_reduce", ((rows, i(512, 16), f(512, 16)), {"dim": 1, "reduce": "prod"})),
        ("cdist", ((f(16, 128, 64), f(16, 256, 64)), {"p": 1.0})),
        ("linear_scan", ((rows, rows), {"dim": 1})),
        ("linear", ((f(4096, 1024, dtype="bfloat16"), f(1024, 1024, dtype="bfloat16"), f(1024, dtype="bfloat16")), {})),  # by descriptors
        ("overlap_add", ((f(16, 16, 256),), {"step": 16, "length": 8192})),
        ("nonzero_static", ((f(512, 1024),), {"size": 1024})),
    ]


def unmarked(types: Any) -> Any:
    if isinstance(types, FieldTypes):
        return FieldTypes.of(types.fields, tuple(map(unmarked, types)))
    return tuple(map(unmarked, types)) if isinstance(types, tuple) else types.removesuffix(":16")


def with_and_without(op: str, call: Call) -> Iterator[tuple[Specialization, Specialization]]:
    """Each kernel that a call runs and from which a declaration takes something: as if nothing were declared, and as it is."""
    for spec in specializations(op, [call], declared=False):
        plain = set(spec.kernel.do_not_specialize)
        types = [unmarked(t) if name in plain else t for name, t in zip(spec.kernel.arg_names, spec.types, strict=True)]
        less = spec._replace(types=tuple(types))
        if less != spec:
            yield spec, less


@on_stub()
def test_every_declaration_is_among_the_wide_calls() -> None:
    seen = {spec.kernel for op, call in wide() for spec, _ in with_and_without(op, call)}
    missing = {f"{k.__module__}.{k.__name__}" for k in kernels() if k.do_not_specialize and k not in seen}
    assert not missing, f"no call of wide() shows what these declare: {sorted(missing)}"


@pytest.mark.static
@pytest.mark.full
@on_stub(600)
def test_what_is_declared_decides_no_width() -> None:
    """Compiled with and without what a declaration takes away, each kernel has the same accesses, and neither spills."""
    from tritensor.cuda.compiler.kernel_report import report

    wrong = []
    for op, call in wide():
        for spec, less in with_and_without(op, call):
            before, after = report(spec, 90), report(less, 90)
            for what in ("loads", "stores", "bulk", "tensor", "spilled"):
                if getattr(before, what) != getattr(after, what):
                    wrong.append(f"{op}, {what}: {before}\n{after}")
    assert not wrong, "\n\n".join(wrong)
