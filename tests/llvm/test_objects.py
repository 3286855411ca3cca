"""Machine code that takes array objects: numbers as the large form gives them, layouts, what is handed on untouched, and memory that comes and goes."""

from __future__ import annotations

import gc
import subprocess
import sys
import tracemalloc
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tritensor.llvm import compiler, simd_functions
from tritensor.llvm.loops import SHARED, STORED, Loop
from tritensor.llvm.objects import heads
from tritensor.llvm.simd import give_up

pytestmark = pytest.mark.skipif(bool(compiler.refusal()), reason=f"no machine code here: {compiler.refusal()}")
FLOATS = [np.dtype(t) for t in (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)]
HANDED_ON = object()
RNG = np.random.default_rng(7)


def function(formula: Any, names: tuple[str, ...] = (), result: np.dtype | None = None) -> Any:
    """A formula as a function of objects that answers HANDED_ON where Python would have to compute, and its loop."""
    loop = Loop(formula, names)
    made = loop.as_function("formula", lambda *arrays, **named: HANDED_ON, frozenset(STORED), result)
    return (lambda *arrays, **named: made.call(*arrays, **named)), loop


def by_addresses(loop: Loop, *inputs: Any) -> np.ndarray:
    """What the same loop gives for whole arrays in C's order."""
    shape = np.broadcast_shapes(*[x.shape for x in inputs if isinstance(x, np.ndarray)])
    given = [np.ascontiguousarray(np.broadcast_to(x, shape)) if isinstance(x, np.ndarray) else x for x in inputs]
    out = np.empty(shape, given[0].dtype)
    assert loop(given, out)
    return out


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def draw(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


sigmoid, sigmoid_loop = function(lambda x: 1.0 / (1.0 + simd_functions.exp(-x)))
weighed, weighed_loop = function(lambda x, y, a: x * simd_functions.exp(y) + a)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("n", [2, 3, 15, 16, 17, 63, 64, 65, 1000])
def test_numbers_are_those_of_the_large_form(dtype: np.dtype, n: int) -> None:
    x = draw(n, dtype=dtype)
    assert same_bits(sigmoid(x), by_addresses(sigmoid_loop, x))
    large = np.resize(x, 3 * SHARED)
    assert sigmoid(large) is HANDED_ON
    assert same_bits(by_addresses(sigmoid_loop, large)[:n], sigmoid(x))


def views() -> dict[str, np.ndarray]:
    x = draw(6, 10, 9)
    return {
        "whole": x, "none": x[:0], "0-d": np.array(1.5, np.float32), "one": x[:1, :1, :1], "rows": x[1:4], "columns": x[:, :, 2:7], "steps": x[::2, 1::3, ::4],
        "backwards": x[::-1, :, ::-1], "plane": x[:, 3], "column": x[0, :, :1], "repeated": np.broadcast_to(x[0, 0], (6, 10, 9)),
        "repeated inside": np.broadcast_to(x[:, :, :1], (6, 10, 9)), "Fortran's": np.asfortranarray(x[0]), "long rows": draw(7, 900)[:, 3:803],
    }  # fmt: skip


@pytest.mark.parametrize("kind", views())
def test_views(kind: str) -> None:
    x = views()[kind]
    y = sigmoid(x)
    assert same_bits(np.ascontiguousarray(y).reshape(y.shape), 1 * np.array(y))  # an array of its own
    want = (
        by_addresses(sigmoid_loop, np.resize(x, max(x.size, 2)))[: x.size].reshape(x.shape) if x.size < 2 else by_addresses(sigmoid_loop, x)
    )
    np.testing.assert_array_equal(y, want)
    assert y.flags.f_contiguous if kind == "Fortran's" else y.flags.c_contiguous
    assert y.flags.owndata
    assert y.flags.writeable


@pytest.mark.parametrize(
    ("first", "second"),
    [((3, 4), (4,)), ((4,), (3, 4)), ((3, 1), (1, 4)), ((2, 3, 1), (3, 5)), ((), (3, 4)), ((3, 4), (1,)), ((1, 1), (1,)), ((40, 50), (50,)), ((2, 1, 9), (2, 300, 9))],
)  # fmt: skip
def test_broadcasting(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    x, y = draw(*first), draw(*second)
    for a in (0.25, 3):
        made = weighed(x, y, a)
        want = by_addresses(weighed_loop, *[np.array(np.broadcast_to(v, (2, *np.broadcast_shapes(first, second)))) for v in (x, y)], a)[0]
        assert same_bits(made, want)


def test_orders() -> None:
    x, y = draw(5, 7), draw(7, 5)
    assert weighed(x.T, y, 1.0) is HANDED_ON  # of Fortran's order, which the first operand says
    assert weighed(y, x.T, 1.0).flags.c_contiguous
    assert same_bits(weighed(y, x.T, 1.0), weighed(y, x.T.copy(), 1.0))
    assert weighed(x.T, x.T, 1.0).flags.f_contiguous
    images = draw(2, 4, 3, 5).transpose(0, 3, 1, 2)
    assert sigmoid(images) is HANDED_ON
    assert sigmoid(images[:, 1:3]) is HANDED_ON
    assert weighed(draw(2, 5, 4, 3), images, 1.0).flags.c_contiguous


class Subclass(np.ndarray):
    pass


def test_what_is_handed_on() -> None:
    x = draw(4, 4)
    unaligned = np.zeros(4 * 4 + 1, np.uint8)[1:].view(np.float32)
    assert not unaligned.flags.aligned
    for given in (
        x.view(Subclass), x.astype(">f4"), unaligned, x.astype(np.complex64), np.ma.array(x), x.tolist(), 1.5, None, "x", x[0, 0], draw(SHARED),
        np.zeros((1,) * 9, np.float32)[..., ::-1].transpose(range(9)) + np.zeros((2,) * 9, np.float32)[..., ::2],
    ):  # fmt: skip
        made = sigmoid(given)
        assert made is HANDED_ON or (isinstance(given, np.ndarray) and given.ndim == 9)
    assert sigmoid(np.zeros((2,) * 10, np.float32)[..., ::2]) is HANDED_ON  # more dimensions than it reads
    assert sigmoid(x, out=np.empty_like(x)) is HANDED_ON
    assert sigmoid(x, x) is HANDED_ON
    assert sigmoid() is HANDED_ON
    for other in (draw(3), draw(4, 5), x.astype(np.float64)[None], True, 2**70, np.float32(1), 1j, None):
        assert weighed(x, x, other) is HANDED_ON if not isinstance(other, np.ndarray) else True
        assert weighed(x, other, 1.0) is HANDED_ON or other is not None
    assert weighed(x, draw(3), 1.0) is HANDED_ON  # sizes that do not fit: Python says so


def test_numbers_by_name() -> None:
    scaled, loop = function(lambda x, slope, shift: x * slope + shift, ("slope", "shift"))
    x = draw(3, 5)
    assert same_bits(scaled(x, slope=0.5, shift=2), by_addresses(loop, x, 0.5, 2))
    assert same_bits(scaled(x, slope=3, shift=-1.25), by_addresses(loop, x, 3, -1.25))
    assert scaled(x, shift=2, slope=0.5) is HANDED_ON
    assert scaled(x, slope=0.5) is HANDED_ON
    assert scaled(x, 0.5, 2) is HANDED_ON
    assert scaled(x, slope="0.5", shift=2) is HANDED_ON
    # as numpy rounds them
    for number in (0.1, 1e300, -1e-300, 2**60 + 1, 16777217, float("nan")):
        with np.errstate(over="ignore"):
            want = np.asarray(number).astype(np.float32)
        np.testing.assert_array_equal(scaled(np.ones(2, np.float32), slope=number, shift=0)[0], want)


def test_truths_and_hard_numbers() -> None:
    less, _ = function(lambda x, y: x < y, result=np.dtype(np.bool_))
    x, y = draw(5, 3), draw(3)
    made = less(x, y)
    assert made.dtype == np.bool_
    np.testing.assert_array_equal(made, x < y)

    def careful(x: Any) -> Any:
        give_up(x > 100.0)
        return x + 1.0

    added, _ = function(careful)
    np.testing.assert_array_equal(added(x), x + 1)
    np.testing.assert_array_equal(added(x[:, ::2]), x[:, ::2] + 1)
    hard = np.where(np.arange(15).reshape(5, 3) == 7, np.float32(200), x)
    assert added(hard) is HANDED_ON
    assert added(np.concatenate([hard, hard], 1)[:, 1:5]) is HANDED_ON


def test_types_follow_one_another() -> None:
    made, _ = function(lambda x: x * 2.0)
    for dtype in (*FLOATS, *reversed(FLOATS)):
        x = np.arange(5).astype(dtype)
        assert same_bits(made(x), (x.astype(np.float64) * 2).astype(dtype))


def test_nothing_is_kept_and_nothing_let_go() -> None:
    """Results, refusals and the function itself: none leaves an object behind, or takes one that is in use."""
    x, y, none = draw(4, 4), draw(5, 3)[:, ::2], np.zeros((2,) * 10, np.float32)[..., ::2]
    counted = [x, y, none, x.dtype, np.ndarray, None, HANDED_ON, float]
    before = [sys.getrefcount(v) for v in counted]
    for _ in range(1000):
        sigmoid(x), sigmoid(y), sigmoid(none), weighed(x, x, 1.5), weighed(x, x, 7)
    after = [sys.getrefcount(v) for v in counted]
    assert all(abs(a - b) < 50 for a, b in zip(before, after, strict=True)), (before, after)
    gc.collect()
    tracemalloc.start()
    try:
        for _ in range(10):
            made, _ = function(lambda x: x + 3.0)
            made(x), made(x.astype(np.float64))
        gc.collect()
        first = tracemalloc.get_traced_memory()[0]
        for _ in range(20):
            made, _ = function(lambda x: x + 3.0)
            made(x), made(x.astype(np.float64))
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - first < 200_000
    finally:
        tracemalloc.stop()


def test_fields_are_looked_for() -> None:
    at = heads.heads()
    assert at is not None
    assert heads.are_right(at)
    assert not heads.are_right(at._replace(dims=at.strides, strides=at.dims))
    assert not heads.are_right(at._replace(flags=at.dims_count))
    assert not heads.are_right(at._replace(descr=at.data))
    assert not heads.are_right(at._replace(type=0))


_WITHOUT = """
import numpy as np
from tritensor.llvm.objects import heads
behind = heads.heads_behind
heads.heads_behind = lambda base: behind(base)._replace(data=base + 8, descr=base)  # as if a Python laid its objects out otherwise
assert heads.heads() is None
import tritensor as tt
x = tt.tensor(np.linspace(-3, 3, 40, dtype=np.float32), requires_grad=True)
y = tt.sigmoid(x)
y.sum().backward()
print(y.detach().numpy().tobytes().hex(), x.grad.numpy().tobytes().hex())
"""


def test_without_the_fields_all_goes_by_addresses() -> None:
    def printed(program: str) -> str:
        return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    found = printed(_WITHOUT)
    with_them = "\n".join(line for line in _WITHOUT.splitlines() if "heads" not in line)
    assert found == printed(with_them)
    assert len(found) > 600
