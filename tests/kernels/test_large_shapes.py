"""Shapes of tens of millions of elements along one dimension: what every launch asks for is what a GPU can give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.kernels.test_specialization import AVG, CONV, MAX, f, i, run
from tests.stub.child import on_stub
from tritensor.cuda.runtime import active
from tritensor.cuda.virtual.recording_runtime import RecordingRuntime
from tritensor.ops.table import registry

MANY = 20_000_000
REDUCTIONS = ("sum", "mean", "var", "prod", "max_dim", "argmax", "softmax", "log_softmax", "cumsum")
CALLS: dict[str, Any] = {
    "index_get, wide rows": lambda: ("index_get", (f(2, MANY), i(3)), {"dims": (0,), "front": False}),
    "index_get, many rows": lambda: ("index_get", (f(MANY, 2), i(MANY)), {"dims": (0,), "front": False}),
    "embedding": lambda: ("embedding", (f(2, MANY), i(3)), {"padding_idx": None}),
    "layer_norm, wide": lambda: ("layer_norm", (f(2, MANY), f(MANY), f(MANY)), {"eps": 1e-5, "axes": 1}),
    "layer_norm, many": lambda: ("layer_norm", (f(MANY, 2), f(2), f(2)), {"eps": 1e-5, "axes": 1}),
    "matmul, tall": lambda: ("matmul", (f(MANY, 8), f(8, 8)), {}),
    "matmul, wide": lambda: ("matmul", (f(8, 8), f(8, MANY)), {}),
    "matmul, deep": lambda: ("matmul", (f(8, MANY), f(MANY, 8)), {}),
    "matmul, batches": lambda: ("matmul", (f(MANY, 2, 2), f(MANY, 2, 2)), {}),
    "conv2d, batch": lambda: ("conv2d", (f(MANY // 16, 1, 4, 4), f(2, 1, 3, 3)), CONV),
    "conv2d, image": lambda: ("conv2d", (f(1, 1, 4096, 8192), f(2, 1, 3, 3)), CONV),
    "max_pool2d": lambda: ("max_pool2d", (f(MANY // 16, 1, 4, 4),), MAX),
    "avg_pool2d": lambda: ("avg_pool2d", (f(1, MANY // 16, 4, 4),), AVG),
    "cross_entropy": lambda: ("cross_entropy", (f(MANY, 2), i(MANY), None), {"reduction": "mean"}),
    "gather": lambda: ("gather", (f(MANY, 2), i(MANY, 2)), {"dim": 0}),
    "scatter_add": lambda: ("scatter_add", (f(2, MANY), i(2, MANY), f(2, MANY)), {"dim": 1}),
    "tril": lambda: ("tril", (f(2, MANY),), {"diagonal": 0}),
    "tril, many": lambda: ("tril", (f(MANY, 2),), {"diagonal": 0}),
    "add, transposed": lambda: ("add", (f(MANY, 2).transpose((1, 0)), f(2, MANY)), {}),
    "add, rows": lambda: ("add", (f(MANY, 2), f(2)), {}),
}


def launches(call: Callable[[], tuple[str, tuple[Any, ...], dict[str, Any]]]) -> int:
    """Runs one call forward and backward on a device that records; `launch` refuses a grid that no GPU takes."""
    recorder = RecordingRuntime()
    active.use(recorder)
    op, inputs, attrs = call()
    run(registry[op], inputs, attrs)
    return len(recorder.launches)


@pytest.mark.parametrize("name", CALLS)
@on_stub()
def test_every_grid_is_one_that_a_gpu_takes(name: str) -> None:
    assert launches(CALLS[name]) > 0


@pytest.mark.parametrize(("shape", "dim"), [((2, MANY), 1), ((MANY, 2), 1), ((2, MANY), 0), ((MANY, 2), 0)])
@on_stub()
def test_along_and_across_a_long_dimension(shape: tuple[int, ...], dim: int) -> None:
    for name in REDUCTIONS:
        given = {"dim": (dim,) if name in ("sum", "mean", "var") else dim, "keepdim": False, "reverse": False}
        attrs = {k: v for k, v in given.items() if k in registry[name].attrs}
        assert launches(lambda name=name, attrs=attrs: (name, (f(*shape),), attrs)) > 0, name  # type: ignore[misc]
