"""Pointwise tapes: how they are cut, and that one launch gives the bits of a chain of eager's, in every type and layout."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.tapes.chains import Chain, bits, on_device
from tritensor.kernels.elementwise import arithmetic, comparison, selection
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.configs import element_tiles
from tritensor.kernels.parts.elementwise import unchanged
from tritensor.kernels.parts.formulas import activations
from tritensor.kernels.parts.tapes import pointwise, separate_steps
from tritensor.kernels.parts.tapes.pointwise import run_tape
from tritensor.kernels.parts.tapes.tape import Step, Tape
from tritensor.ops.array import CudaArray

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = [np.dtype(np.float32), BFLOAT16, np.dtype(np.float16), np.dtype(np.float64)]
INTEGERS = [np.dtype(k) for k in (np.int8, np.uint8, np.int16, np.int32, np.int64)]
ADD, SUB, MUL = arithmetic._add, arithmetic._sub, arithmetic._mul


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def run(chain: Chain, *stores: int, outs: list[CudaArray] | None = None) -> list[CudaArray]:
    """Run the tape of a chain, and hold each result against eager's, bit for bit."""
    shape = np.broadcast_shapes(*[chain.values[k].shape for k in stores])
    outs = outs or [allocate(shape, chain.values[k].dtype, chain.inputs[0]) for k in stores]
    run_tape(chain.tape(*stores), chain.inputs, chain.numbers, outs)
    for y, k in zip(outs, stores, strict=True):
        np.testing.assert_array_equal(bits(y), bits(chain.values[k], outs[0].shape))
    return outs


def test_adjacent_axes_merge_when_every_array_allows() -> None:
    assert pointwise.collapse((4, 5, 6), [(30, 6, 1), (30, 6, 1)]) == ((120,), ((1,), (1,)))
    assert pointwise.collapse((4, 5, 6), [(30, 6, 1), (0, 6, 1)]) == ((4, 30), ((30, 1), (0, 1)))
    assert pointwise.collapse((4, 1, 6), [(6, 99, 1)]) == ((24,), ((1,),))
    assert pointwise.collapse((5, 4), [(1, 5)]) == ((5, 4), ((1, 5),))
    assert pointwise.collapse((), [()]) == ((1,), ((1,),))
    assert pointwise.collapse((3, 4), [(0, 0)]) == ((12,), ((0,),))


@pytest.mark.parametrize(("rows", "cols"), [(1, 10), (1, 10**6), (64, 3), (384, 576), (7, 1000), (4096, 4096), (2, 17), (10**6, 2)])
@pytest.mark.parametrize("crossed", [False, True])
def test_tiles_are_powers_of_two_and_waste_little(rows: int, cols: int, crossed: bool) -> None:
    tile_rows, tile_cols = pointwise._tile_shape(rows, cols, crossed)
    assert tile_rows & (tile_rows - 1) == 0
    assert tile_cols & (tile_cols - 1) == 0
    assert 1 <= tile_rows * tile_cols <= element_tiles.LARGE
    if not crossed and cols >= 16 and rows > 1:
        assert -(-cols // tile_cols) * tile_cols <= 1.25 * cols or tile_cols == 16


def test_offsets_grow_to_64_bits_only_when_needed() -> None:
    assert not pointwise._plan((1000, 1000), (((1000, 1000), (1000, 1)),)).long_offsets
    assert pointwise._plan((70000, 70000), (((70000, 70000), (70000, 1)),)).long_offsets
    assert pointwise._plan((3, 3), (((3, 3), (1, 2**30)),)).long_offsets


def test_a_transposed_array_is_known_to_be_contiguous_along_rows() -> None:
    plan = pointwise._plan((512, 512), (((512, 512), (512, 1)), ((512, 512), (1, 512))))
    assert plan.last == (1, 3)
    assert plan.tile == (32, 32)
    apart = pointwise._plan((512, 512), (((512, 512), (512, 1)), ((512, 512), (1024, 1))))
    assert apart.tile == pointwise._tile_shape(512, 512, False) != (32, 32)


def gelu(x: CudaArray) -> tuple[Chain, int]:
    """0.5 x (1 + tanh(0.798 (x + 0.0447 x^3))) as nine ops."""
    c = Chain([x], [(0.5, x.dtype), (1.0, x.dtype), (0.7978845608028654, x.dtype), (0.044715, x.dtype)])
    half, one, scale, cubic = range(1, 5)
    cube = c.step(MUL, c.step(MUL, c.step(MUL, cubic, 0), 0), 0)
    t = c.step(activations.hyperbolic_tangent, c.step(MUL, scale, c.step(ADD, 0, cube)))
    return c, c.step(MUL, c.step(MUL, half, 0), c.step(ADD, one, t))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_a_chain_of_nine_has_eager_s_bits(dtype: np.dtype, rng: np.random.Generator) -> None:
    x = on_device((3 * rng.standard_normal((33, 129))).astype(dtype))
    chain, last = gelu(x)
    run(chain, last)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_special_values_go_through(dtype: np.dtype) -> None:
    top = float(ml_dtypes.finfo(dtype).max)
    tiny = float(ml_dtypes.finfo(dtype).smallest_subnormal)
    row = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, top, -top, tiny, -tiny, 3 * tiny], dtype)
    a, b = on_device(row), on_device(np.ascontiguousarray(row[:, None]))
    chain = Chain([a, b])
    product = chain.step(MUL, 0, 1)
    chosen = chain.step(selection._where, chain.step(comparison._lt, 0, 1, dtype=bool), product, 1)
    composed = chain.step(activations.relu, chain.step(activations.silu, chosen))
    run(chain, product, chain.step(SUB, product, 0), composed, chain.step(ADD, composed, product))


@pytest.mark.parametrize("dtype", [*INTEGERS, np.dtype(bool)], ids=str)
def test_whole_numbers_wrap_as_in_eager(dtype: np.dtype, rng: np.random.Generator) -> None:
    high = 2 if dtype.kind == "b" else np.iinfo(dtype).max
    a, b = (on_device(rng.integers(0, high, (65, 70)).astype(dtype)) for _ in range(2))
    chain = Chain([a, b], [(3, dtype)])
    if dtype.kind == "b":
        both = chain.step(comparison._logical_and, 0, 1)
        run(chain, both, chain.step(comparison._logical_or, both, 2))
    else:
        product = chain.step(MUL, 0, 1)
        run(chain, product, chain.step(SUB, chain.step(ADD, product, product), 2))


@pytest.mark.parametrize("to", [*FLOATS, *INTEGERS, np.dtype(bool)], ids=str)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_casts_between_steps_round_as_eager_s(dtype: np.dtype, to: np.dtype, rng: np.random.Generator) -> None:
    x = on_device((50 * rng.standard_normal((40, 41))).astype(dtype))
    chain = Chain([x])
    cast = chain.step(unchanged, chain.step(MUL, 0, 0), dtype=to)
    back = chain.step(unchanged, cast, dtype=dtype)
    run(chain, back, chain.step(ADD, back, 0))


def test_comparisons_choose_between_values_of_another_width(rng: np.random.Generator) -> None:
    x = on_device(rng.standard_normal((20, 300)).astype(np.float32))
    y = on_device(rng.standard_normal((20, 1)))  # float64
    chain = Chain([x, y])
    wide = chain.step(MUL, chain.step(unchanged, 0, dtype=np.float64), 1)
    less = chain.step(comparison._lt, wide, 1, dtype=bool)
    narrow = chain.step(unchanged, wide, dtype=np.float32)
    assert [s.wide for s in chain.steps] == [False, True, True, True]
    run(chain, less, chain.step(selection._where, less, narrow, 0, dtype=np.float32), chain.step(SUB, wide, 1))


LAYOUTS = {
    "C": lambda x: x,
    "transposed": lambda x: on_device(np.ascontiguousarray(np.arange(x.size).reshape(x.shape[::-1]) / 7 - 40)).transpose((1, 0)),
    "every other": lambda x: on_device(np.arange(4.0 * x.size).reshape(2 * x.shape[0], 2 * x.shape[1]) / 9)[::2, 1::2],
    "backward": lambda x: x[::-1, ::-1],
    "row": lambda x: x[:1],
    "column": lambda x: x[:, :1],
    "last row": lambda x: x[-1],
    "number": lambda x: x[3, 4],
}


@pytest.mark.parametrize("shape", [(33, 65), (150, 200)])
@pytest.mark.parametrize("second", LAYOUTS)
@pytest.mark.parametrize("first", ["C", "transposed", "every other", "column"])
def test_layouts(first: str, second: str, shape: tuple[int, int], rng: np.random.Generator) -> None:
    x = on_device(rng.standard_normal(shape))
    a, b = LAYOUTS[first](x), LAYOUTS[second](x)
    chain = Chain([a, b, x])
    product = chain.step(MUL, 0, 1)
    last = chain.step(ADD, product, 2)
    target = on_device(np.zeros((2 * shape[0], 2 * shape[1])))
    run(chain, last, outs=[target[::2, ::2]])
    assert not bits(target[1::2]).any()
    assert not bits(target[::2, 1::2]).any()
    turned = on_device(np.zeros(shape[::-1])).transpose((1, 0))
    run(chain, product, last, outs=[turned, allocate(shape, x.dtype, x)])


@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 0, 2), (1, 1), (2, 1, 3, 1, 5), (5, 4, 3, 2, 2)])
def test_shapes(shape: tuple[int, ...], rng: np.random.Generator) -> None:
    x = on_device(rng.standard_normal(shape).astype(np.float32))
    chain, last = gelu(x)
    run(chain, last)


def test_a_value_may_be_a_result_and_taken_twice(rng: np.random.Generator) -> None:
    x = on_device(rng.standard_normal((50, 50)).astype(BFLOAT16))
    chain = Chain([x])
    square = chain.step(MUL, 0, 0)
    run(chain, square, chain.step(MUL, square, square), chain.step(SUB, square, 0))


def test_one_launch_for_a_tape(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    chain, last = gelu(on_device(rng.standard_normal((9, 9)).astype(np.float32)))
    launches, launch = [], pointwise.launch
    monkeypatch.setattr(pointwise, "launch", lambda *args, **named: launches.append(args[1]) or launch(*args, **named))
    run(chain, last)
    assert launches == [(1,)]


# --- what a kernel is told of steps
F32, BOOL = np.dtype(np.float32), np.dtype(bool)


def test_single_operations_take_their_rounded_twins() -> None:
    tape = Tape(
        (F32,) * 3, (), (Step(MUL, (0, 1), F32, False), Step(arithmetic._mul_b, (3, 2), F32, False), Step(SUB, (4, 3), F32, False)), (5,)
    )
    steps = separate_steps.steps_of(tape)
    assert steps.formulas == (separate_steps._product, separate_steps._product, separate_steps._difference)
    assert steps.picks == ((0, 1), (3, 2), (4, 3))
    assert steps.apart == 0


@pytest.mark.parametrize(("formula", "order"), [(MUL, (0, 1)), (arithmetic.square, (0, 0)), (arithmetic._negated, None), (arithmetic._lerp_a, None),
    (comparison._lt, None), (activations.relu, None), (unchanged, None), (arithmetic._abs_grad, None)])  # fmt: skip
def test_formulas_of_one_operation_are_known(formula: Any, order: tuple[int, int] | None) -> None:
    found = separate_steps._one_operation(formula)
    assert (None if found is None else found[1]) == order


@pytest.mark.parametrize(
    ("first", "dtype", "second", "wide", "apart"),
    [
        (activations.silu, F32, activations.gelu, False, 1),  # a product of the one and a sum of the other might become one
        (activations.silu, F32, ADD, False, 0),  # the sum's own rounding is told
        (MUL, F32, activations.gelu, False, 0),
        (activations.silu, BFLOAT16, activations.gelu, False, 1),
        (comparison._isnan, BOOL, activations.relu, False, 0),
    ],
)
def test_values_between_longer_formulas_are_hidden(first: Any, dtype: np.dtype, second: Any, wide: bool, apart: int) -> None:
    picks = (0, 0) if first is MUL else (0,)
    after = (1, 1) if second is ADD else (1,)
    tape = Tape((dtype,), (), (Step(first, picks, dtype, False), Step(second, after, F32, wide)), (2,))
    assert separate_steps.steps_of(tape).apart == apart


# --- random tapes
UNARY = [activations.relu, activations.sigmoid, activations.silu, activations.hyperbolic_tangent, arithmetic._negated, arithmetic.square]
BINARY = [ADD, SUB, MUL, arithmetic._abs_grad, activations.tanh_grad]
SHAPES = [(3, 5), (1, 5), (3, 1), (5,), ()]


@given(st.data())
@settings(max_examples=60, deadline=None, derandomize=True)
def test_random_tapes_are_chains_of_launches(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    kind = data.draw(st.sampled_from(FLOATS))
    shapes = [(3, 5), *data.draw(st.lists(st.sampled_from(SHAPES), max_size=3))]
    chain = Chain([on_device((2 * rng.standard_normal(s)).astype(kind)) for s in shapes], [(1.5, kind), (-0.25, kind)])
    numbers = range(len(shapes), len(shapes) + 2)
    floats, chosen = list(range(len(shapes))), []
    for _ in range(data.draw(st.integers(1, 12))):
        a = data.draw(st.sampled_from(floats))
        b = data.draw(st.sampled_from([*floats, *numbers]))
        match data.draw(st.sampled_from(["unary", "binary", "reversed", "where", "cast"])):
            case "unary":
                made = chain.step(data.draw(st.sampled_from(UNARY)), a, dtype=kind)
            case "binary":
                made = chain.step(data.draw(st.sampled_from(BINARY)), a, b, dtype=kind)
            case "reversed":
                made = chain.step(data.draw(st.sampled_from([ADD, SUB, MUL])), b, a, dtype=kind)
            case "where":
                made = chain.step(selection._where, chain.step(comparison._lt, a, b, dtype=bool), b, a, dtype=kind)
            case _:
                other = data.draw(st.sampled_from(FLOATS + INTEGERS))
                made = chain.step(unchanged, chain.step(unchanged, a, dtype=other), dtype=kind)
        floats.append(made)
        chosen.append(made)
    full = chain.step(ADD, chosen[-1], 0, dtype=kind)
    also = data.draw(st.sampled_from(chosen))
    run(chain, full, *([also] if also != full else []))
