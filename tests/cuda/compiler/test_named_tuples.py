"""Named tuples as arguments of a kernel: it reads their members by name, on the emulated device and compiled."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import triton
import triton.language as tl

from tests.stub import control
from tests.stub.child import on_stub
from tritensor.cuda.compiler import cubin_cache
from tritensor.cuda.compiler.arguments import LaunchCall, specialize
from tritensor.cuda.launch import launch
from tritensor.ground.device import device
from tritensor.ops.array import CudaArray, empty, from_host, to_host

GPU = device("cuda", 0)
F32 = np.dtype(np.float32)


class Vector(NamedTuple):
    x: Any
    step: Any
    more: Any = None


class Turned(NamedTuple):
    step: Any
    x: Any
    more: Any = None


class Pair(NamedTuple):
    source: Any
    target: Any


class Shape(NamedTuple):
    size: int
    factor: int


class Other(NamedTuple):
    factor: int
    size: int


@triton.jit
def scaled(pair, SHAPE: tl.constexpr):
    i = tl.arange(0, SHAPE.size)
    value = tl.load(pair.source.x + i * pair.source.step) * SHAPE.factor
    if pair.source.more is not None:
        value += pair.source.more
    tl.store(pair.target.x + i * pair[1].step, value)


def on_gpu(x: np.ndarray) -> CudaArray:
    found = from_host(x, GPU)
    assert isinstance(found, CudaArray)
    return found


def test_members_by_name() -> None:
    x, y = on_gpu(np.arange(16, dtype=np.float32)), on_gpu(np.zeros(16, np.float32))
    launch(scaled, (1,), Pair(Vector(x, 2), Turned(1, y)), SHAPE=Shape(8, 3))
    assert to_host(y)[:8].tolist() == [6.0 * i for i in range(8)]
    launch(scaled, (1,), Pair(Turned(1, x, 0.5), Vector(y, 2)), SHAPE=Other(2, 4))
    assert to_host(y)[:8:2].tolist() == [2.0 * i + 0.5 for i in range(4)]


@on_stub()
def test_members_by_name_compiled() -> None:
    x, y = empty((16,), F32, GPU), empty((16,), F32, GPU)
    for pair, shape, want in (
        (Pair(Vector(x, 2), Turned(1, y)), Shape(8, 3), [x.pointer, 2, 1, y.pointer]),
        (Pair(Turned(1, x, 0.5), Vector(y, 2)), Other(3, 8), [1, x.pointer, 0.5, y.pointer, 2]),
    ):
        control.reset()
        launch(scaled, (1,), pair, SHAPE=shape)
        assert control.calls("cuModuleLoadData") == 1
        seen = control.launches()[0]
        assert [seen.floating(i) if isinstance(v, float) else seen.values[i] for i, v in enumerate(want)] == want


@on_stub()
def test_other_fields_are_another_kernel() -> None:
    x = empty((16,), F32, GPU)

    class Same(NamedTuple):  # of another name, which decides nothing
        source: Any
        target: Any

    def key(*args: Any, **constexprs: Any) -> Any:
        return specialize(LaunchCall(scaled, (1,), args, constexprs))[0]

    class Swapped(NamedTuple):
        target: Any
        source: Any

    members = Vector(x, 2), Vector(x, 2)
    found = [key(pair, SHAPE=Shape(4, 4)) for pair in (Pair(*members), Swapped(*members), members)]
    found.append(key(Pair(*members), SHAPE=Other(4, 4)))
    assert len(set(found)) == len({cubin_cache.keys(spec, 90)[0] for spec in found}) == len(found)
    assert key(Same(*members), SHAPE=Shape(4, 4)) == found[0]
