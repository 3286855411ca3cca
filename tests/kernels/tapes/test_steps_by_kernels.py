"""Captured steps given to the shared kernels again, on the emulated device: bit for bit what the corner itself computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor.kernels  # noqa: F401  (fills the table)
from tritensor.ground import dtypes
from tritensor.ground.device import gpu
from tritensor.kernels.parts.elementwise import run
from tritensor.kernels.parts.reduction import fold, spread
from tritensor.kernels.parts.tapes.capture import Captured, capture, dry
from tritensor.ops.array import CudaArray, empty, from_host, to_host
from tritensor.ops.replay.steps import Folded, Pointwise
from tritensor.ops.table import registry


class Memory:
    """Real arrays in the places of a capture's."""

    def __init__(self, captured: Captured, args: tuple[Any, ...]) -> None:
        lent = [(t, a) for t, a in zip(captured.args, args, strict=True) if isinstance(t, CudaArray)]
        self.memory = {id(t.storage): (a.storage, a.pointer - t.pointer) for t, a in lent}

    def real(self, x: Any) -> Any:
        if isinstance(x, tuple):
            return tuple([self.real(v) for v in x])
        if not isinstance(x, CudaArray):
            return x
        if id(x.storage) not in self.memory:
            made = empty((x.storage.nbytes,), np.dtype(np.uint8), gpu(0))
            self.memory[id(x.storage)] = made.storage, made.pointer - x.storage.pointer
        storage, delta = self.memory[id(x.storage)]
        made = CudaArray(storage, x.shape, x.dtype, x.strides)
        made.pointer = x.pointer + delta
        return made


def run_again(captured: Captured, args: tuple[Any, ...]) -> Any:
    """What the corner returns, by its steps."""
    memory = Memory(captured, args)
    for step in captured.steps:
        if isinstance(step, Pointwise):
            numbers = [x for x in step.operands if not isinstance(x, CudaArray)]
            kind = np.dtype(np.float64 if step.wide else np.float32) if not numbers or type(numbers[0]) is float else numbers[0].dtype
            run(step.formulas, step.picks, memory.real(step.operands), memory.real(step.outs), kind)
        elif isinstance(step, Folded):
            fold(
                step.functions, memory.real(step.xs), step.dims, memory.real(step.ys), step.states, step.scalars, step.ordered, step.numbers
            )
        else:
            spread(step.formula, memory.real(step.xs), step.dims, memory.real(step.ys), step.scalars, step.ordered)
    return memory.real(captured.results)


def arrays(*shapes: tuple[int, ...], dtype: str = "float32") -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(7)
    return tuple((3 * rng.standard_normal(s)).astype(dtypes.as_dtype(dtype).numpy) for s in shapes)


A = (5, 7)
FORWARD = [
    ("add", arrays(A, (7,)), {}), ("gelu", arrays(A), {"approximate": "none"}), ("gelu", arrays(A, dtype="bfloat16"), {"approximate": "tanh"}),
    ("pow", (*arrays(A, dtype="int64"), 3), {}), ("pow", (*arrays(A, dtype="uint8"), 2), {}), ("sigmoid", arrays(A, dtype="float16"), {}),
    ("cast", arrays(A), {"dtype": np.dtype(np.int32)}), ("where", (arrays(A)[0] > 0, *arrays(A, A)), {}), ("sum", arrays(A), {"dim": (0,), "keepdim": False}),
    ("argmax", arrays(A), {"dim": (1,), "keepdim": False}), ("var", arrays(A), {"dim": (1,), "keepdim": True, "correction": 1}),
    ("cat", arrays(A, (5, 2)), {"dim": 1}), ("constant_pad", arrays(A), {"sides": ((1, 0), (0, 2)), "value": 3}),
]  # fmt: skip
BACKWARD = [
    ("gelu", arrays(A, A, dtype="bfloat16"), {"approximate": "none"}), ("mul", arrays(A, A), {}), ("amax", (*arrays((5, 1), A), arrays(A)[0].max(1, keepdims=True)),
    {"dim": (1,), "keepdim": True}), ("var", arrays((5, 1), A), {"dim": (1,), "keepdim": True, "correction": 1}), ("tanh", arrays(A, A), {}),
]  # fmt: skip


def placed(values: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The values on the device, and arrays like them without memory."""
    real = tuple(from_host(v, gpu(0)) if isinstance(v, np.ndarray) else v for v in values)
    return real, tuple(dry(x.shape, x.dtype, x.strides) if isinstance(x, CudaArray) else x for x in real)


def same(got: Any, want: Any) -> bool:
    a, b = to_host(got), to_host(want)
    return a.dtype == b.dtype and a.shape == b.shape and got.strides == want.strides and a.tobytes() == b.tobytes()


@pytest.mark.parametrize(("name", "values", "attrs"), FORWARD, ids=[f"{n}-{v[0].dtype}" for n, v, _ in FORWARD])
def test_forward(name: str, values: tuple[Any, ...], attrs: dict[str, Any]) -> None:
    corner: Any = registry[name].forward
    real, bare = placed(values)
    captured = capture(corner, bare, attrs)
    assert captured is not None
    assert same(run_again(captured, real), corner(*real, **attrs))


@pytest.mark.parametrize(("name", "values", "attrs"), BACKWARD, ids=[f"{n}-{v[0].dtype}" for n, v, _ in BACKWARD])
def test_backward(name: str, values: tuple[Any, ...], attrs: dict[str, Any]) -> None:
    """`values` are g and then the arrays that the first gradient names, in order."""
    backward: Any = registry[name].backward
    real, bare = placed(values)
    asked = {True: iter(real[1:]), False: iter(bare[1:])}

    def args(there: bool) -> tuple[Any, ...]:
        given = [(True,) if n == "needs" else attrs[n] if n in attrs else next(asked[there]) for n in backward.names[0]]
        return ((real if there else bare)[0], *given)

    called, dried = args(True), args(False)
    captured = capture(backward.functions[0], dried, {})
    assert captured is not None
    got, want = run_again(captured, called), backward.functions[0](*called)
    for a, b in zip(got if isinstance(got, tuple) else (got,), want if isinstance(want, tuple) else (want,), strict=True):
        assert same(a, b)
