"""Replay of calls with `out=` and of calls that draw random numbers: what a recording takes beside its arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl

import tritensor as tt
import tritensor.nn.functional as F
from tests.stub import control
from tests.stub.child import on_stub
from tritensor.cuda.launch import launch
from tritensor.ground.device import device
from tritensor.kernels.parts.random_words.philox import draw_origin, kernel_seed
from tritensor.ops.array import CudaArray, empty, from_host, to_host
from tritensor.ops.replay import Corner
from tritensor.ops.table import registry

GPU = device("cuda", 0)


def on_gpu(*values: float) -> CudaArray:
    return from_host(np.array(values, np.float32), GPU)


def counted(function: Callable[..., Any], **how: Any) -> tuple[Corner, list[int]]:
    """A corner of a function, and a list that grows each time its Python runs."""
    runs: list[int] = []

    def run(*args: Any, **attrs: Any) -> Any:
        runs.append(1)
        return function(*args, **attrs)

    return Corner(run, **how), runs


def add(*args: Any, **attrs: Any) -> Any:
    return registry["add"].forward.function(*args, **attrs)  # type: ignore[union-attr]


# out=
def test_an_out_of_its_own_is_replayed() -> None:
    corner, runs = counted(add)
    for shift in (0, 10, 20):
        x, y, out = on_gpu(1 + shift, 2), on_gpu(3, 4), on_gpu(0, 0)
        assert corner(x, y, out=out) is out
        assert to_host(out).tolist() == [4 + shift, 6]
    assert len(runs) == 1


def test_an_input_as_out_is_replayed_and_is_another_recording() -> None:
    corner, runs = counted(add)
    for _ in range(3):
        x, y = on_gpu(1, 2), on_gpu(3, 4)
        assert corner(x, y, out=x) is x
        assert to_host(x).tolist() == [4, 6]
        assert to_host(y).tolist() == [3, 4]
        assert corner(x, y, out=y) is y
        assert to_host(y).tolist() == [7, 10]
        assert to_host(corner(x, y)).tolist() == [11, 16]
    assert len(runs) == 3


def test_an_out_that_overlaps_an_input_is_never_replayed() -> None:
    corner, runs = counted(add)
    for n in range(3):
        memory = on_gpu(1, 2, 3, 4)
        corner(memory[:2], on_gpu(1, 1), out=memory[2:])
        assert to_host(memory).tolist() == [1, 2, 2, 3]
        assert len(runs) == n + 1


def test_outs_of_other_strides_are_other_recordings() -> None:
    corner, runs = counted(add)
    x, y = on_gpu(1, 2), on_gpu(3, 4)
    for _ in range(2):
        wide = on_gpu(0, 0, 0, 0)
        corner(x, y, out=wide[::2])
        assert to_host(wide).tolist() == [4, 0, 6, 0]
        corner(x, y, out=wide[1:3])
        assert to_host(wide).tolist() == [4, 4, 6, 0]
    assert len(runs) == 2


# seed and offset
DRAWS = {
    "rand": lambda n: tt.rand(n, device="cuda"),
    "randn": lambda n: tt.randn(n, device="cuda"),
    "randint": lambda n: tt.randint(0, 1000, (n,), device="cuda"),
    "randperm": lambda n: tt.randperm(n, device="cuda"),
    "dropout": lambda n: F.dropout(tt.ones(n, device="cuda"), 0.5),
}


@pytest.mark.parametrize("name", DRAWS)
def test_replayed_draws_are_those_of_an_unrecorded_run(name: str) -> None:
    def draws() -> list[Any]:
        tt.manual_seed(2**40 + 3)
        found = [DRAWS[name](70).tolist() for _ in range(3)]
        tt.manual_seed(5)
        return [*found, DRAWS[name](70).tolist()]

    from tritensor.ops import replay

    recorded = draws()
    replayed = draws()
    replay.enable(False)
    try:
        assert recorded == replayed == draws()
    finally:
        replay.enable(True)
    assert len({str(d) for d in recorded}) == 4


def test_a_mask_is_drawn_again_in_a_replayed_backward() -> None:
    x = tt.ones(300, device="cuda", requires_grad=True)
    for _ in range(4):
        y = F.dropout(x, 0.25)
        (g,) = tt.autograd.grad(y.sum(), x)
        assert y.tolist() == g.tolist()


@on_stub()
def test_a_draw_is_one_launch_with_its_own_seed_and_offset() -> None:
    x = tt.ones(64, device="cuda")
    for _ in range(2):
        F.dropout(x, 0.5)
    tt.manual_seed(0x1122334455667788)
    tt.rand(4 * 7)
    with control.counted() as calls:
        F.dropout(x, 0.5)
    assert calls == {"cuLaunchKernelEx": 1}
    assert control.launches()[-1].values[3:6] == (0x55667788, 0x11223344, 7)


@triton.jit
def _first_word(y, k0, k1, offset, state, extra):
    k0, k1, offset = draw_origin(k0, k1, offset, state)
    tl.store(y, k0.to(tl.int64) + extra)


def _by_seed(*, seed: int, offset: int) -> CudaArray:
    y = empty((1,), np.dtype(np.int64), GPU)
    launch(_first_word, (1,), y, *kernel_seed(seed, offset), np.int64(0))
    return y


def _by_a_number_made_of_it(*, seed: int, offset: int) -> CudaArray:
    y = empty((1,), np.dtype(np.int64), GPU)
    launch(_first_word, (1,), y, *kernel_seed(seed, offset), np.int64(offset % 100))
    return y


def test_finding_the_seed_launches_and_allocates_nothing() -> None:
    before = tt.cuda.memory_allocated()
    tt.cuda.reset_peak_memory_stats()
    y = tt.rand(1 << 18, device="cuda", dtype=tt.float64)  # the first of its shape
    assert y.shape == (1 << 18,)
    assert tt.cuda.max_memory_allocated() - before == 8 << 18


def _by_looking(*, seed: int, offset: int) -> CudaArray:
    y = _by_seed(seed=seed, offset=offset)
    return y if to_host(y).item() % 2 else _by_seed(seed=seed, offset=offset)


def test_a_draw_that_looks_at_values_is_never_replayed() -> None:
    corner, runs = counted(_by_looking, draws=())
    for seed in (7, 8, 9):
        assert to_host(corner(seed=seed, offset=0)).item() == seed
    assert len(runs) == 4


def test_what_is_computed_from_the_seed_on_the_host_is_never_replayed() -> None:
    corner, runs = counted(_by_a_number_made_of_it, draws=())
    for offset in (3, 4, 5):
        assert to_host(corner(seed=7, offset=offset)).item() == 7 + offset
    assert len(runs) == 4  # twice for the first, to compare
    corner, runs = counted(_by_seed, draws=())
    for seed in (7, 8, 9):
        assert to_host(corner(seed=seed, offset=0)).item() == seed
    assert len(runs) == 2


# ever-new numbers
def uniform(function: Callable[..., Any]) -> tuple[Corner, list[int]]:
    """A corner that promises to hand its numbers on as they are, and its runs."""
    runs: list[int] = []

    def run(*args: Any, **attrs: Any) -> Any:
        runs.append(1)
        return function(*args, **attrs)

    run.uniform = True  # type: ignore[attr-defined]
    return Corner(run), runs


EVER_NEW = [0.1 * k for k in range(-20, 20)] + [-0.0, 1e-45, 3e38, 1e39, -1e300, float("inf"), float("-inf"), float("nan")]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("name", ["mul", "add", "sub", "div", "maximum", "atan2", "lt"])
def test_ever_new_numbers_give_what_an_unrecorded_run_gives(name: str, dtype: str) -> None:
    x = from_host(np.array([0.5, 1.5, 2.0, -3.0], np.float32).astype(tt.tensor(0, dtype=getattr(tt, dtype))._array.dtype), GPU)
    function = registry[name].forward.function  # type: ignore[union-attr]
    assert function.uniform
    corner, runs = uniform(function)
    for number in EVER_NEW:
        for args in ((x, number), (number, x)):
            with np.errstate(all="ignore"):
                want, got = to_host(function(*args)), to_host(corner(*args))
            assert np.array_equal(got, want, equal_nan=True), (args, want)
    assert len(runs) < 2 * len(EVER_NEW)
    settled = len(runs)
    for number in (7.25, -8.5, 1e-10):
        assert np.array_equal(to_host(corner(x, number)), to_host(function(x, number)), equal_nan=True)
    assert len(runs) == settled


def test_ever_new_integers_are_not_taken_for_floats() -> None:
    corner, runs = uniform(registry["mul"].forward.function)  # type: ignore[union-attr]
    whole, floating = from_host(np.arange(4), GPU), on_gpu(1, 2, 3)
    for k in range(60):
        assert to_host(corner(whole, k)).tolist() == [0, k, 2 * k, 3 * k]
        assert to_host(corner(floating, k)).tolist() == [k, 2 * k, 3 * k]
        assert to_host(corner(floating, k + 0.5)).tolist() == [k + 0.5, 2 * k + 1, 3 * k + 1.5]
    assert len(runs) < 180


def test_a_power_has_formulas_of_its_own_for_some_exponents() -> None:
    x = on_gpu(0.5, 1.5, 2.0)
    corner = registry["pow"].forward
    assert corner is not None
    for k in range(40):
        exponent = 0.5 * (k % 8) + 0.001 * k * (k % 2)
        assert to_host(corner(x, exponent)).tolist() == to_host(corner.function(x, exponent)).tolist()


def test_a_corner_that_makes_no_promise_is_run() -> None:
    function = registry["mul"].forward.function  # type: ignore[union-attr]
    corner, runs = counted(lambda x, number: function(x, 1.0 if number > 30 else number))
    for k in range(60):
        assert to_host(corner(on_gpu(1, 2), float(k))).tolist() == ([1, 2] if k > 30 else [k, 2 * k])
    assert len(runs) == 60


def test_a_number_that_is_changed_on_the_way_is_noticed() -> None:
    function = registry["mul"].forward.function  # type: ignore[union-attr]
    corner, runs = uniform(lambda x, number: function(x, number * 2))
    for k in range(40):
        assert to_host(corner(on_gpu(1, 2), float(k))).tolist() == [2 * k, 4 * k]
    assert len(runs) == 41  # once more, dry


def test_ever_new_numbers_in_the_forms_that_users_write() -> None:
    x = tt.tensor([1.0, 2.0], device="cuda", requires_grad=True)
    total, w = tt.zeros(2, device="cuda"), tt.zeros(2, device="cuda")
    want, plain = np.zeros(2, np.float32), np.array([1, 2], np.float32)
    for k in range(50):
        number = 0.37 * k
        y = x * number + number
        (g,) = tt.autograd.grad(y.sum(), x)
        assert g.tolist() == [np.float32(number)] * 2
        assert y.tolist() == (plain * np.float32(number) + np.float32(number)).tolist()
        assert (number - x).tolist() == (np.float32(number) - plain).tolist()
        total.add_(x.detach(), alpha=number)
        want = want + plain * np.float32(number)
        w.fill_(0.0)
        w.add_(number)
        assert w.tolist() == [np.float32(number)] * 2
    assert total.tolist() == want.tolist()


@on_stub()
def test_an_ever_new_number_costs_one_launch_that_holds_it() -> None:
    for dtype, read in ((tt.float32, np.float32), (tt.float64, np.float64)):
        x = tt.ones(64, device="cuda", dtype=dtype)
        for k in range(40):
            x * (0.3 * k)
        with control.counted() as calls:
            x * 123.456
        assert calls == {"cuLaunchKernelEx": 1}
        assert read(123.456) in [
            control.launches()[-1].floating(i) for i, raw in enumerate(control.launches()[-1].raw) if len(raw) in (4, 8)
        ]
