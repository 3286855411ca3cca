"""Row tapes: formulas and folds of rows in one launch, beside eager's chain of launches: rows in registers, rows that are walked, every layout and type.

Numbers are small whole ones where sums are compared bit for bit: those are exact in whatever order they are taken.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.tapes.chains import Chain, bits, on_device
from tritensor.ground.errors import ShapeError
from tritensor.kernels.elementwise import arithmetic, comparison, selection
from tritensor.kernels.parts import maths, reduction
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.elementwise import unchanged
from tritensor.kernels.parts.formulas import activations
from tritensor.kernels.parts.rows import row_tapes as rows
from tritensor.kernels.parts.rows import row_walks
from tritensor.kernels.parts.tapes.moments import merged, walked
from tritensor.kernels.reductions import extrema, sums
from tritensor.ops.array import CudaArray, to_host

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = [np.dtype(np.float32), BFLOAT16, np.dtype(np.float16), np.dtype(np.float64)]
ADD, SUB, MUL = arithmetic._add, arithmetic._sub, arithmetic._mul
SUM = reduction.ReductionFunctions(reduction.value, reduction.add, None, reduction.zero)
MEAN = reduction.ReductionFunctions(reduction.value, reduction.add, maths.div, reduction.zero)
AMAX = reduction.ReductionFunctions(reduction.value, extrema._larger, None, lambda states: (float("-inf"),))
ARGMAX = reduction.ReductionFunctions(
    extrema._with_index, extrema._first_larger, extrema._value_and_index, lambda states: (float("-inf"), 2**31 - 1)
)
VARIANCE = reduction.ReductionFunctions(sums._moments, merged, sums._variance, reduction.zero, walked)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture(params=["held", "walked"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Rows kept in registers, and the same ones walked in tiles of 64 columns, three to a chain."""
    if request.param == "walked":
        monkeypatch.setattr(rows, "tile_of", lambda *_: rows.Rows(2, 64, False, 4))
        monkeypatch.setattr(rows, "CHAIN", 3)
    return str(request.param)


def kept(dtype: np.dtype) -> type:
    """The type that sums of a type are kept in."""
    return np.float64 if dtype == np.float64 else np.float32


def run(chain: Chain, *stores: int, outs: list[CudaArray] | None = None) -> list[CudaArray]:
    """Run the tape of a chain, and hold each result against eager's, bit for bit."""
    shape = np.broadcast_shapes(*[x.shape for x in chain.inputs])
    outs = outs or [allocate(chain.values[k].shape, chain.values[k].dtype, chain.inputs[0]) for k in stores]
    rows.run_rows(chain.tape(*stores), chain.inputs, chain.numbers, outs, *shape)
    for y, k in zip(outs, stores, strict=True):
        np.testing.assert_array_equal(bits(y), bits(chain.values[k]))
    return outs


def whole(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any, high: int = 5) -> CudaArray:
    """Whole numbers of a type, from -high to high."""
    return on_device(rng.integers(-high, high + 1, shape).astype(dtype))


def layer_norm(x: CudaArray, weight: CudaArray, bias: CudaArray) -> tuple[Chain, int, int]:
    """Its results, and its mean."""
    c = Chain([x, weight, bias], [(1e-5, x.dtype), (x.shape[1], np.dtype(np.float64))])
    mean = c.fold(MEAN, 0, states=[kept(x.dtype)], scalars=[4])
    centred = c.step(SUB, 0, mean)
    variance = c.fold(MEAN, c.step(MUL, centred, centred), states=[kept(x.dtype)], scalars=[4])
    scale = c.step(maths.rsqrt, c.step(ADD, variance, 3))
    return c, c.step(ADD, c.step(MUL, c.step(MUL, centred, scale), 1), 2), mean


@pytest.mark.parametrize("shape", [(5, 64), (3, 130), (1, 256), (7, 512), (4, 1), (19, 333)])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_layer_norm_has_eager_s_bits(dtype: np.dtype, shape: tuple[int, int], way: str, rng: np.random.Generator) -> None:
    """Of rows whose mean is a whole number, so that the squares' sums are exact, too."""
    x = rng.integers(-4, 5, shape)
    x[:, 0] -= x.sum(1) % shape[1]
    weight, bias = (on_device(rng.standard_normal((1, shape[1])).astype(dtype)) for _ in range(2))
    chain, last, mean = layer_norm(on_device(x.astype(dtype)), weight, bias)
    run(chain, last, mean)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_softmax_of_any_numbers(dtype: np.dtype, way: str, rng: np.random.Generator) -> None:
    """Sums of exponentials in another order than eager's: within the rounding of the type."""
    x = on_device(rng.standard_normal((6, 300)).astype(dtype))
    c = Chain([x])
    power = c.step(activations.sigmoid, c.step(SUB, 0, c.fold(AMAX, 0, states=[kept(dtype)])))
    last = c.step(maths.div, power, c.fold(SUM, power, states=[kept(dtype)]))
    y = allocate(x.shape, dtype, x)
    rows.run_rows(c.tape(last), c.inputs, (), [y], 6, 300)
    got, want = (to_host(v).astype(np.float64) for v in (y, c.values[last]))
    np.testing.assert_allclose(got, want, rtol=2 * float(ml_dtypes.finfo(dtype).eps), atol=0)
    assert (got == want).mean() > (0.98 if dtype.itemsize == 2 else 0)


def test_the_first_of_equals_is_found(way: str, rng: np.random.Generator) -> None:
    x = whole(rng, (9, 333), np.float32, 3)
    c = Chain([x])
    top = c.fold(ARGMAX, c.step(MUL, 0, 0), states=[np.float32, np.int32], dtypes=[np.float32, np.int64])
    run(c, top, top + 1)


def test_a_variance_is_merged(way: str, rng: np.random.Generator) -> None:
    x = on_device((1000 + rng.standard_normal((5, 500))).astype(np.float32))
    c = Chain([x, x[:, :1]], [(499, np.dtype(np.float64))])
    fold = c.fold(VARIANCE, 0, 1, states=[np.float32] * 3, scalars=[2])
    y = allocate((5, 1), np.dtype(np.float32), x)
    rows.run_rows(c.tape(fold), c.inputs, c.numbers, [y], 5, 500)
    np.testing.assert_allclose(bits(y).view(np.float32), bits(c.values[fold]).view(np.float32), rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, bool], ids=lambda d: np.dtype(d).name)
def test_whole_numbers_are_summed_in_64_bits(dtype: Any, way: str, rng: np.random.Generator) -> None:
    x = on_device(rng.integers(0, 2 if dtype is bool else 100, (4, 200)).astype(dtype))
    c = Chain([x])
    total = c.fold(SUM, 0, states=[np.int64], dtypes=[np.int64])
    less = c.step(comparison._lt, c.step(unchanged, 0, dtype=np.int64), total, dtype=bool)
    run(c, total, less, c.fold(SUM, less, states=[np.int64], dtypes=[np.int64]))


@pytest.mark.parametrize(
    ("dtype", "n", "vector"), [(np.float32, 333, 4), (BFLOAT16, 333, 8), (BFLOAT16, 63, 1), (np.float64, 333, 2), (np.float64, 336, 1)]
)
def test_rows_that_begin_between_boundaries_are_peeled(
    dtype: Any, n: int, vector: int, way: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = whole(rng, (37, n), dtype, 3)
    c = Chain([x, whole(rng, (1, n), dtype), whole(rng, (37, 1), dtype)])
    product = c.step(MUL, c.step(SUB, 0, 2), 1)
    top = c.fold(ARGMAX, product, states=[kept(np.dtype(dtype)), np.int32], dtypes=[dtype, np.int64])
    told, launch = [], rows.launch
    monkeypatch.setattr(rows, "launch", lambda *args, **named: told.append(named["VECTOR"]) or launch(*args, **named))
    run(c, top, top + 1, product, c.step(SUB, product, top))
    assert told == [vector]


LAYOUTS: dict[str, Callable[[CudaArray], CudaArray]] = {
    "C": lambda x: x,
    "every other": lambda x: on_device(np.arange(4 * x.size).reshape(2 * x.shape[0], 2 * x.shape[1]) % 7.0)[::2, 1::2],
    "backward": lambda x: x[::-1, ::-1],
    "transposed": lambda x: on_device(np.ascontiguousarray(np.arange(x.size).reshape(x.shape[::-1]) % 5.0)).transpose((1, 0)),
    "wide rows": lambda x: on_device(np.arange(x.shape[0] * (x.shape[1] + 3)).reshape(x.shape[0], -1) % 5.0)[:, : x.shape[1]],
    "per row": lambda x: x[:, :1],
    "per row, expanded": lambda x: x[:, 3:4].expand(x.shape),
    "per column": lambda x: x[2:3],
    "one": lambda x: x[1:2, 1:2],
}


@pytest.mark.parametrize("shape", [(37, 90), (6, 128), (5, 91)])
@pytest.mark.parametrize("second", LAYOUTS)
@pytest.mark.parametrize("first", ["C", "transposed", "wide rows", "per row"])
def test_layouts(first: str, second: str, shape: tuple[int, int], way: str, rng: np.random.Generator) -> None:
    x = whole(rng, shape, np.float64)
    c = Chain([LAYOUTS[first](x), LAYOUTS[second](x), x])
    product = c.step(MUL, 0, 1)
    total = c.fold(SUM, product, states=[np.float64])
    last = c.step(SUB, c.step(MUL, product, total), 2)
    target, column = on_device(np.zeros((shape[0], 2 * shape[1]))), on_device(np.zeros((shape[0], 3)))
    run(c, last, total, outs=[target[:, ::2], column[:, 1:2]])
    assert not bits(target[:, 1::2]).any()
    assert not bits(column[:, ::2]).any()
    run(c, total)  # nothing that varies along columns
    turned = on_device(np.zeros(shape[::-1])).transpose((1, 0))
    run(c, last, outs=[turned])


def test_results_that_rows_share(way: str, rng: np.random.Generator) -> None:
    x, w = whole(rng, (9, 70), np.float32), whole(rng, (1, 70), np.float32)
    c = Chain([x, w, w[:, :1]])
    squares = c.step(MUL, 1, 1)
    one = c.step(ADD, 2, 2)
    run(c, squares, one, c.fold(SUM, c.step(MUL, 0, squares), states=[np.float32]))


@pytest.mark.parametrize("shape", [(0, 5), (3, 0), (1, 1), (1, 7), (130, 2)])
def test_shapes(shape: tuple[int, int], rng: np.random.Generator) -> None:
    c = Chain([whole(rng, shape, np.float32)])
    total = c.fold(SUM, 0, states=[np.float32])
    run(c, total, c.step(SUB, 0, total))


def test_rows_of_many_columns_are_walked(rng: np.random.Generator) -> None:
    """Without a word about tiles, and with what only a row takes between the walks."""
    x = whole(rng, (2, 20000), np.float32, 2)
    weight, bias = (whole(rng, (1, 20000), np.float32, 2) for _ in range(2))
    chain, last, mean = layer_norm(x, weight, bias)
    tape = chain.tape(last, mean)
    assert not rows.tile_of(2, 20000, row_walks.words_of(tape, (True,) * 3)).whole
    run(chain, mean)
    walks = row_walks.walks_of(tape, (True,) * 3)
    _, centred, squares, _, shifted, root, scaled, weighted, last_ = (1 << k for k in range(9))
    assert walks.walks == (
        (0b001, 0, (0,), (0,), 0),
        (0b001, centred | squares, (3,), (0,), shifted | root),
        (0b111, centred | scaled | weighted | last_, (), (), 0),
    )


@pytest.mark.parametrize(
    ("rows_", "n", "words", "whole_", "warps"),
    [(16384, 768, 4, True, 4), (4096, 16384, 4, True, 16), (4096, 16384, 5, False, 8), (4, 100, 3, True, 4), (1, 20000, 1, False, 16)],
)
def test_tiles_fit_the_registers(rows_: int, n: int, words: int, whole_: bool, warps: int) -> None:
    on = rows.tile_of(rows_, n, words)
    assert (on.whole, on.warps) == (whole_, warps)
    assert on.BM * on.BN * words <= 128 * 32 * on.warps


def test_arrays_of_other_shapes_are_refused(rng: np.random.Generator) -> None:
    c = Chain([whole(rng, (4, 6), np.float32)])
    total = c.fold(SUM, 0, states=[np.float32])
    out = allocate((4,), np.dtype(np.float32), c.inputs[0])
    with pytest.raises(ShapeError, match=r"result 0 is \(4,\); of 4 rows of 6 it is \(4, 6\), \(4, 1\), \(1, 6\) or \(1, 1\)"):
        rows.run_rows(c.tape(total), c.inputs, (), [out], 4, 6)


# --- random tapes
@given(st.data())
@settings(max_examples=60, deadline=None, derandomize=True)
def test_random_row_tapes_are_chains_of_launches(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    kind = data.draw(st.sampled_from(FLOATS))
    shape = data.draw(st.sampled_from([(3, 5), (2, 70), (5, 64)]))
    c = Chain([whole(rng, s, kind, 2) for s in (shape, (shape[0], 1), (1, shape[1]), shape)], [(2.0, kind)])
    values = [0, 1, 2, 3]
    for _ in range(data.draw(st.integers(1, 8))):
        a, b = (data.draw(st.sampled_from([*values, *([4] if k else [])])) for k in range(2))
        match data.draw(st.sampled_from(["binary", "where", "sum", "amax", "relu"])):
            case "binary":
                made = c.step(data.draw(st.sampled_from([ADD, SUB, MUL])), a, b, dtype=kind)
            case "where":
                made = c.step(selection._where, c.step(comparison._lt, a, b, dtype=bool), b, a, dtype=kind)
            case "sum":  # of values that cannot grow beyond what sums of them are exact in
                small = c.step(selection._between, a, 4, 4)
                made = c.fold(SUM, small, states=[kept(kind)])
            case "amax":
                made = c.fold(AMAX, a, states=[kept(kind)])
            case _:
                made = c.step(activations.relu, a)
        values.append(made)
    stores = data.draw(st.lists(st.sampled_from(values[4:]), min_size=1, max_size=4, unique=True))
    if data.draw(st.booleans()):
        run(c, *stores)
    else:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rows, "tile_of", lambda *_: rows.Rows(2, 16, False, 4))
            run(c, *stores)
