"""float8 on both devices: casts bit by bit, elements that move, and the same refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tritensor as tt

TYPES = (tt.float8_e4m3fn, tt.float8_e5m2)
both_types = pytest.mark.parametrize("kind", TYPES)


def all_of(kind: tt.dtype) -> np.ndarray:
    """Every value of a float8 type."""
    return np.arange(256, dtype=np.uint8).view(kind.numpy)


@both_types
def test_every_value_is_read(kind: tt.dtype) -> None:
    x = tt.from_numpy(all_of(kind)).to("cuda")
    wanted = all_of(kind).astype(np.float32)
    for wide in (tt.float32, tt.float64, tt.bfloat16, tt.float16):
        np.testing.assert_array_equal(x.to(wide).float().cpu().numpy(), wanted)


@both_types
def test_casts_round_to_nearest_even_on_both_devices(kind: tt.dtype) -> None:
    rng = np.random.default_rng(0)
    every_half = np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float32)
    nans = np.array([0x7F800001, 0x7FFFFFFF, 0xFF800001], np.uint32).view(np.float32)
    near = np.nextafter(every_half[np.isfinite(every_half)][::7], np.float32(np.inf))
    x = np.concatenate([every_half, nans, near, -near, np.float32([464, 465, 61440, 61439, 2**-9, 2**-10, 3 * 2**-11, 2**-17, 1e30])])
    x = np.concatenate([x, rng.standard_normal(3000).astype(np.float32) * 2.0 ** rng.integers(-20, 20, 3000).astype(np.float32)])
    with np.errstate(all="ignore"):
        held = np.clip(x, -448, 448) if kind is tt.float8_e4m3fn else x
        want = held.astype(kind.numpy).astype(np.float32)
    for on in ("cpu", "cuda"):
        np.testing.assert_array_equal(tt.from_numpy(x).to(on).to(kind).cpu().numpy().astype(np.float32), want)


@both_types
def test_out_of_range_is_infinite_or_where_there_is_no_infinity_the_largest(kind: tt.dtype) -> None:
    top = 448.0 if kind is tt.float8_e4m3fn else float("inf")
    numbers, want = [1e6, -1e6, float("inf"), -float("inf"), float("nan"), 1e39], [top, -top, top, -top, float("nan"), top]
    for on in ("cpu", "cuda"):
        for wide in (tt.float32, tt.float64, tt.bfloat16):
            np.testing.assert_array_equal(tt.tensor(numbers, dtype=wide, device=on).to(kind).float().tolist(), want)
        for given in (numbers, np.array(numbers), np.array(numbers[:5], np.float32)):
            np.testing.assert_array_equal(tt.tensor(given, dtype=kind, device=on).float().tolist(), want[: len(given)])
        np.testing.assert_array_equal(tt.tensor(numbers * 500, device=on).to(kind).float().tolist(), want * 500)
        assert tt.tensor([70000, -70000], device=on).to(kind).float().tolist() == [top, -top]
    assert tt.tensor(np.array([3, 200], np.uint8), dtype=kind).float().tolist() == tt.tensor([3.0, 200.0]).to(kind).float().tolist()


@both_types
@pytest.mark.parametrize("other", [tt.int32, tt.uint8, tt.bool, tt.float64, tt.bfloat16])
def test_casts_of_other_types(kind: tt.dtype, other: tt.dtype) -> None:
    x = tt.tensor([0, 1, 3, 200], dtype=other)
    assert x.to("cuda").to(kind).float().tolist() == x.to(kind).float().tolist()
    assert x.to(kind).to("cuda").to(other).tolist() == x.to(kind).to(other).tolist()


def test_one_float8_becomes_the_other() -> None:
    x = tt.from_numpy(all_of(tt.float8_e4m3fn)).to("cuda").to(tt.float8_e5m2).cpu().numpy()
    np.testing.assert_array_equal(
        x.astype(np.float32), all_of(tt.float8_e4m3fn).astype(np.float32).astype(ml_dtypes.float8_e5m2).astype(np.float32)
    )


MOVES: list[Callable[[Any, str], Any]] = [
    lambda x, on: x[tt.tensor([1, 0, -1], device=on)],
    lambda x, on: x[:, tt.tensor([True, False, True], device=on)],
    lambda x, on: tt.where(tt.tensor([True, False, True], device=on), x, x.flip(0)),
    lambda x, on: tt.where(tt.tensor([True, False, True], device=on), x, 0.5),
    lambda x, on: x.gather(0, tt.tensor([[1, 0, 1]], device=on)),
    lambda x, on: x.index_select(1, tt.tensor([2, 0], device=on)),
    lambda x, on: x.scatter(0, tt.tensor([[1, 0, 1]], device=on), x),
    lambda x, on: x.t().contiguous(),
    lambda x, on: tt.cat([x, x], 1),
    lambda x, on: tt.stack([x, x]),
    lambda x, on: x.flip(1),
    lambda x, on: x.roll(1, 0),
    lambda x, on: x.tril(),
    lambda x, on: tt.nn.functional.embedding(tt.tensor([1, 0, 1], device=on), x),
    lambda x, on: tt.nn.functional.pad(x[None], (2, 1), mode="circular"),
]


@both_types
@pytest.mark.parametrize("move", range(len(MOVES)))
def test_elements_move_as_bytes(kind: tt.dtype, move: int) -> None:
    x = tt.tensor([[1.0, -0.0, 3.0], [-4.0, 448.0, 0.5]]).to(kind)
    want = MOVES[move](x, "cpu")
    got = MOVES[move](x.to("cuda"), "cuda")
    assert got.dtype is want.dtype is kind
    np.testing.assert_array_equal(got.cpu().numpy().view(np.uint8), want.numpy().view(np.uint8))


@both_types
@pytest.mark.parametrize("on", ["cpu", "cuda"])
def test_windows_are_written(kind: tt.dtype, on: str) -> None:
    x = tt.tensor([[1.0, 2.0, 3.0], [-4.0, 448.0, 0.5]], device=on).to(kind)
    x[0] = 1.5
    x[1, tt.tensor([0, 2], device=on)] = x[0, 1:]
    assert x.float().tolist() == [[1.5, 1.5, 1.5], [1.5, 448.0, 1.5]]


@both_types
@pytest.mark.parametrize("on", ["cpu", "cuda"])
def test_arithmetic_is_refused(kind: tt.dtype, on: str) -> None:
    x = tt.ones(3, device=on).to(kind)
    for call in (
        lambda: x + x, lambda: x * 2.0, lambda: -x, lambda: x.exp(), lambda: x.sum(), lambda: x == x, lambda: x @ x,
        lambda: x.scatter_add(0, tt.tensor([0], device=on), x), lambda: x.index_put((tt.tensor([0], device=on),), x[:1], accumulate=True),
    ):  # fmt: skip
        with pytest.raises(tt.DTypeError):
            call()


WINDOWS: dict[str, Any] = {"size": (4, 4), "kernel_size": (2, 2), "stride": (2, 2), "padding": (0, 0)}
LOADED: dict[str, Callable[[tt.Tensor, tt.Tensor], Any]] = {
    "sgd_step": lambda x, _: tt.ops.sgd_step(x, x.clone(), tt.zeros(2, device=x.device)),
    "adam_step": lambda x, _: tt.ops.adam_step(x, x.clone(), x.clone(), x.clone(), tt.ones(7, device=x.device)),
    "sgd_numbers": lambda x, _: tt.ops.sgd_numbers(x[0, 0], lr=0.1),
    "dropout": lambda x, _: tt.ops.dropout(x, p=0.5, seed=0, offset=0),
    "max_pool2d_scatter": lambda x, i: tt.ops.max_pool2d_scatter(x, i, dilation=(1, 1), **WINDOWS),
    "max_pool2d_gather": lambda x, i: tt.ops.max_pool2d_gather(
        x.repeat(1, 1, 2, 2), i, dilation=(1, 1), **{k: v for k, v in WINDOWS.items() if k != "size"}
    ),
    "avg_pool2d_spread": lambda x, _: tt.ops.avg_pool2d_spread(x, ceil_mode=False, count_include_pad=True, **WINDOWS),
}


@pytest.mark.parametrize("on", ["cpu", "cuda"])
@pytest.mark.parametrize("name", LOADED)
@both_types
def test_ops_that_compute_refuse_them_on_both_devices(name: str, on: str, kind: tt.dtype) -> None:
    x = tt.ones(1, 1, 2, 2, device=on)
    index = tt.zeros(1, 1, 2, 2, dtype=tt.int64, device=on)
    LOADED[name](x.clone(), index)
    with pytest.raises(tt.DTypeError, match=rf"{name}: \w.* is {kind.name}; {name} takes .*types; cast it"):
        LOADED[name](x.to(kind), index)


@pytest.mark.parametrize("on", ["cpu", "cuda"])
@pytest.mark.parametrize(("kind", "other"), [(tt.float8_e4m3fn, tt.float8_e5m2), (tt.float8_e5m2, tt.float8_e4m3fn)])
def test_from_one_float8_to_the_other(kind: tt.dtype, other: tt.dtype, on: str) -> None:
    every = np.arange(256, dtype=np.uint8)
    x = tt.tensor(every.view(kind.numpy), device=on)
    want = x.cpu().float().to(other).float().numpy()
    np.testing.assert_array_equal(x.to(other).cpu().float().numpy(), want)


@pytest.mark.parametrize("on", ["cpu", "cuda"])
@pytest.mark.parametrize("kind", [tt.float8_e4m3fn, tt.float8_e5m2])
def test_moved_into_memory_that_is_there(kind: tt.dtype, on: str) -> None:
    x = tt.tensor([[1.0, 2.0], [3.0, -4.0]], device=on).to(kind)
    out = tt.zeros(2, 2, device=on).to(kind)
    out.copy_(x)
    assert out.float().tolist() == [[1.0, 2.0], [3.0, -4.0]]
    out[0] = x[1]
    assert out.float().tolist() == [[3.0, -4.0]] * 2
    out.masked_fill_(tt.tensor([[True, False], [False, True]], device=on), 0.5)
    assert out.float().tolist() == [[0.5, -4.0], [3.0, 0.5]]
