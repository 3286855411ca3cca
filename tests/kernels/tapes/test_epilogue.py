"""Tapes as epilogues of products: one launch gives the bits of the product's and of each step's own, in every kernel, type and layout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.kernels.planting import planted
from tests.kernels.tapes.chains import Chain, bits, on_device
from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.kernels.elementwise import arithmetic, comparison, selection
from tritensor.kernels.parts import reduction
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.elementwise import unchanged
from tritensor.kernels.parts.formulas import activations
from tritensor.kernels.parts.gemm import gemm, run_product
from tritensor.kernels.parts.launch_rules import Tiles, forced
from tritensor.kernels.parts.products import epilogue, rules
from tritensor.kernels.parts.products.rules import DescribedTiles
from tritensor.kernels.parts.tapes import separate_steps
from tritensor.kernels.parts.tapes.tape import Tape
from tritensor.kernels.products import linear, matmul
from tritensor.ops.array import CudaArray
from tritensor.ops.tuning import config_choice

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = [np.dtype(np.float32), BFLOAT16, np.dtype(np.float16), np.dtype(np.float64)]
ADD, SUB, MUL = arithmetic._add, arithmetic._sub, arithmetic._mul
Group = Callable[[Chain], Sequence[int]]


def drawn(shape: Sequence[int], dtype: Any, seed: int = 0) -> CudaArray:
    values = np.random.default_rng((*shape, seed)).standard_normal(shape)
    return on_device((4 * values if np.dtype(dtype).kind in "iu" else values).astype(dtype))


def check(
    a: CudaArray, b: CudaArray, bias: CudaArray | None, group: Group, others: Sequence[CudaArray] = (), numbers: Sequence[float] = (),
    shape: tuple[int, ...] | None = None,
) -> list[str]:  # fmt: skip
    """Run a group that begins with a product in the product's launches, and hold each result against eager's, bit for bit; the kernels that were asked for.

    shape: of the results, left out the product's.
    """
    c = (*a.shape[:-1], b.shape[-1])
    shape = shape or c
    z = allocate(shape, a.dtype, a)
    gemm(a, b, z.reshape(c), bias)
    chain = Chain([z, *others], [(value, a.dtype) for value in numbers])
    stores = group(chain)
    outs = [allocate(shape, chain.values[k].dtype, z) for k in stores]
    with config_choice.noted() as asked:
        run_product(a, b, bias, chain.tape(*stores), others, chain.numbers, outs)
    for y, k in zip(outs, stores, strict=True):
        np.testing.assert_array_equal(bits(y), bits(chain.values[k], shape))
    return [one.kernel for one in asked]


def gated(chain: Chain) -> Sequence[int]:
    """z, an array like it, one per row, one per column, one element; two numbers: silu(z + x) * row - column, its square beside it, and z."""
    summed = chain.step(ADD, 0, 1)
    active = chain.step(activations.silu, summed)
    scaled = chain.step(MUL, active, 2)
    shifted = chain.step(SUB, scaled, 3)
    square = chain.step(MUL, shifted, shifted)
    last = chain.step(MUL, chain.step(ADD, shifted, 5), chain.step(MUL, 4, 6, dtype=chain.values[4].dtype))
    return last, square, 0, summed


DESCRIBED = [
    DescribedTiles(64, 64, 16, 1, 4, 2, 3, 4, 1, True),
    DescribedTiles(64, 64, 16, 3, 4, 2, 8, 2, 0, False),
    DescribedTiles(64, 32, 16, 1, 4, 2, 2, 1, 2, False),
]


def operands(shape: tuple[int, ...], dtype: Any) -> list[CudaArray]:
    """Like a result of this shape, one per row, one per column, one element."""
    return [drawn(s, dtype, k) for k, s in enumerate((shape, (*shape[:-1], 1), shape[-1:], ()))]


@pytest.mark.parametrize("n", [152, 149])
@pytest.mark.parametrize("tiles", DESCRIBED)
@pytest.mark.parametrize("dtype", [BFLOAT16, np.dtype(np.float16)], ids=str)
def test_by_descriptors(dtype: np.dtype, tiles: DescribedTiles, n: int) -> None:
    """In pieces, split, more programs than tiles and fewer; rows of 152 elements, which are described, and of 149, which are not."""
    m, k = 64 * 4 + 16, 16 * 4 + 8
    with forced(matmul_described=tiles, sum_parts=64):
        asked = check(drawn((m, k), dtype), drawn((k, n), dtype), drawn((n,), dtype), gated, operands((m, n), dtype), (0.3, -1.5))
    assert n != 152 or asked == ["matmul_described", *["sum_parts"] * (tiles.split > 1)]


@pytest.mark.parametrize("split", [1, 3])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_by_pointers(dtype: np.dtype, split: int) -> None:
    m, n, k = 16 * 5 + 5, 16 * 2 + 3, 16 * 4 + 3
    with forced(matmul=Tiles(16, 16, 16, split, 4, 2), matmul_described=DescribedTiles(64, 16, 16, split, 4, 2), sum_parts=64):
        check(drawn((m, k), dtype), drawn((k, n), dtype), drawn((n,), dtype), gated, operands((m, n), dtype), (0.3, -1.5))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("sizes", [(1, 1, 1), (1, 7, 900), (200, 1, 3), (130, 257, 33), (8, 768, 2048), (3, 5, 0)], ids=str)
def test_as_the_rules_cut_it(sizes: tuple[int, int, int], dtype: np.dtype) -> None:
    m, n, k = sizes
    check(drawn((m, k), dtype), drawn((k, n), dtype), None, gated, operands((m, n), dtype), (0.3, -1.5))


def laid(shape: tuple[int, ...], form: str) -> CudaArray:
    """An array of float32 that broadcasts to a shape, whose memory is laid as `form` says."""
    if form == "transposed":
        return drawn(shape[::-1], np.float32, 1).transpose(tuple(range(len(shape)))[::-1])
    if form == "rows of a wider one":
        return drawn((*shape[:-1], 2 * shape[-1] + 8), np.float32, 2)[..., 8 : 8 + shape[-1]]
    if form == "every other column":
        return drawn((*shape[:-1], 2 * shape[-1]), np.float32, 3)[..., ::2]
    if form == "backward":
        return drawn(shape, np.float32, 4)[..., ::-1, ::-1]
    if form == "one for the outer dimension":
        return drawn((*shape[:1], *[1] * (len(shape) - 1)), np.float32, 5)
    if form == "one for inner rows":
        return drawn((shape[-2], 1), np.float32, 6)
    if form == "one matrix for all":
        return drawn(shape[-2:], np.float32, 7)
    if form == "columns and the outer dimension":
        return drawn((shape[0], *[1] * (len(shape) - 2), shape[-1]), np.float32, 8)
    return drawn((*shape[:-1], 3), np.float32, 9)[..., 1:2]  # every third of memory, one per row


FORMS = (
    "transposed", "rows of a wider one", "every other column", "backward", "one for the outer dimension", "one for inner rows", "one matrix for all",
    "columns and the outer dimension", "rows apart",
)  # fmt: skip


def one_each(chain: Chain) -> Sequence[int]:
    """z times its first operand, the next ones added."""
    last = chain.step(MUL, 0, 1)
    for k in range(2, len(chain.inputs)):
        last = chain.step(ADD, last, k)
    return (last,)


@pytest.mark.parametrize("split", [1, 2])
@pytest.mark.parametrize("form", FORMS)
def test_layouts(form: str, split: int) -> None:
    """Of operands, alone and beside one that varies otherwise: of a batch, and of rows that were several dimensions."""
    batch, m, n, k = 3, 20, 24, 70
    a, b = drawn((batch, m, k), np.float32), drawn((batch, k, n), np.float32)
    flat, weight, shape = drawn((batch * m, k), np.float32), drawn((k, n), np.float32), (batch, m, n)
    with forced(matmul=Tiles(16, 16, 16, split, 4, 2), sum_parts=64):
        for others in (
            [laid(shape, form)],
            [laid(shape, form), laid(shape, "one for inner rows"), laid(shape, "one for the outer dimension")],
        ):
            check(a, b, None, one_each, others)
            check(flat, weight, None, one_each, others, shape=shape)


def test_a_batch_by_descriptors() -> None:
    shape = (2, 72, 40)
    a, b = drawn((2, 72, 24), BFLOAT16), drawn((2, 24, 40), BFLOAT16)
    mask = drawn((2, 1, 40), BFLOAT16, 4)
    with forced(matmul_described=DescribedTiles(64, 32, 16, 1, 4, 2, 2, 2)):
        assert check(a, b, None, one_each, [mask, drawn((72, 1), BFLOAT16, 5), drawn(shape, BFLOAT16, 6)]) == ["matmul_described"]


def test_a_product_of_one_column_or_row() -> None:
    a, v, other = drawn((50, 30), np.float32), drawn((30, 1), np.float32), drawn((50,), np.float32, 3)
    check(a, v, None, one_each, [other], shape=(50,))
    check(v.transpose((1, 0)), a.transpose((1, 0)), None, one_each, [other], shape=(50,))


@pytest.mark.parametrize("dtype", [np.dtype(np.float32), BFLOAT16], ids=str)
def test_results_of_other_types(dtype: np.dtype) -> None:
    """A product in 16 bits widened, compared, chosen among; whole numbers."""

    def chosen(chain: Chain) -> Sequence[int]:
        wide = chain.step(unchanged, 0, dtype=np.float32)
        less = chain.step(comparison._lt, 0, 1, dtype=bool)
        return wide, less, chain.step(selection._where, less, 0, 1), chain.step(unchanged, 0, dtype=np.int32)

    def first(place: int) -> Group:
        return lambda chain: (chosen(chain)[place],)

    a, b, other = drawn((72, 40), dtype), drawn((40, 136), dtype), drawn((72, 136), dtype, 3)
    check(a, b, None, chosen, [other])
    for place in range(4):
        check(a, b, None, first(place), [other])


@pytest.mark.parametrize("dtype", [np.dtype(np.int8), np.dtype(np.int64)], ids=str)
def test_whole_numbers(dtype: np.dtype) -> None:
    a, b, other = drawn((40, 35), dtype), drawn((35, 20), dtype), drawn((20,), dtype)
    check(a, b, None, one_each, [other, drawn((40, 1), dtype)])


def test_nothing_to_multiply() -> None:
    check(drawn((0, 4), np.float32), drawn((4, 5), np.float32), None, one_each, [drawn((5,), np.float32)])


def ops_alone(z: CudaArray, others: Sequence[CudaArray]) -> tuple[Chain, int]:
    """What a tape is held against: the op's own result, and eager's steps."""
    chain = Chain([z, *others])
    (last,) = one_each(chain)
    return chain, last


@pytest.mark.parametrize(
    ("left", "right"), [((4,), (4,)), ((4,), (4, 3)), ((3, 4), (4,)), ((2, 5, 4), (4, 3)), ((2, 5, 4), (4,)), ((4,), (2, 4, 3)), ((2, 1, 5, 4), (3, 4, 2))]
)  # fmt: skip
def test_of_every_matmul(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    a, b = drawn(left, np.float32), drawn(right, np.float32)
    z = matmul.forward(a, b)
    others = [drawn(z.shape[-1:], np.float32), drawn((*z.shape[:1], *[1] * (z.ndim - 1)), np.float32), drawn(z.shape, np.float32, 2)]
    chain, last = ops_alone(z, others)
    y = allocate(z.shape, z.dtype, z)
    matmul.run_with_tape(a, b, chain.tape(last), others, (), [y])
    np.testing.assert_array_equal(bits(y), bits(chain.values[last]))


@pytest.mark.parametrize("lead", [(), (7,), (2, 3, 5)])
def test_of_every_linear(lead: tuple[int, ...]) -> None:
    x, weight, bias = drawn((*lead, 12), BFLOAT16), drawn((24, 12), BFLOAT16), drawn((24,), BFLOAT16)
    others = [drawn((*lead[-1:], 1), BFLOAT16), drawn((*lead, 24), BFLOAT16, 2)]
    chain, last = ops_alone(linear.forward(x, weight, bias), others)
    y = allocate((*lead, 24), x.dtype, x)
    linear.run_with_tape(x, weight, bias, chain.tape(last), others, (), [y])
    np.testing.assert_array_equal(bits(y), bits(chain.values[last]))


def test_a_long_tape() -> None:
    def long(chain: Chain) -> Sequence[int]:
        last = 0
        for k in range(30):
            last = chain.step((MUL, ADD, activations.sigmoid, SUB)[k % 4], *((last,) if k % 4 == 2 else (last, 1 + k % 3)))
        return (last,)

    others = [drawn(s, BFLOAT16, k) for k, s in enumerate(((72, 40), (72, 1), (40,)))]
    check(drawn((72, 24), BFLOAT16), drawn((24, 40), BFLOAT16), drawn((40,), BFLOAT16), long, others)


def test_tiles_beside_an_epilogue_cut_k_as_before() -> None:
    wide = Tiles(128, 256, 64, 3, 8, 3)
    assert rules.beside_an_epilogue(wide, BFLOAT16) == Tiles(128, 128, 64, 3, 8, 3)
    assert rules.beside_an_epilogue(wide, np.dtype(np.float32)) == wide


def test_what_a_product_does_not_take() -> None:
    a, b, f32 = drawn((6, 4), np.float32), drawn((4, 5), np.float32), np.dtype(np.float32)
    chain = Chain([drawn((6, 5), np.float32)])
    tape, out = chain.tape(chain.step(MUL, 0, 0)), allocate((6, 5), f32, a)
    with pytest.raises(ShapeError, match=r"product: results .*\(5, 6\).* of shape \(6, 5\)"):
        run_product(a, b, None, tape, (), (), [out.transpose((1, 0))])
    with pytest.raises(ShapeError, match="C order"):
        run_product(a, b, None, tape, (), (), [allocate((6, 10), f32, a)[:, ::2]])
    functions = reduction.ReductionFunctions(reduction.value, reduction.add, None, reduction.zero)
    chain.fold(functions, 0, states=(f32,))
    with pytest.raises(ArgumentError, match="folds rows"):
        run_product(a, b, None, chain.tape(1), (), (), [out])
    with pytest.raises(ShapeError, match=r"operand 1 is \(7, 5\), which does not broadcast to the results' \(6, 5\)"):
        run_product(a, b, None, Tape((f32, f32), (), tape.steps, (2,)), [drawn((7, 5), np.float32)], (), [out])


FAULTS = {
    "the product is not rounded": ("between", "if STEPS[8] >> S & 1:", "if STEPS[8] >> S & 1 and S > 0:"),
    "an operand of another row": ("_operand", "x += left * strides[len(sizes) - 1]", "x += (left ^ 1) * strides[len(sizes) - 1]"),
    "an operand of another column": ("_operand", "x += at[4] if KIND & 2", "x += at[4] * 0 if KIND & 2"),
    "a result where another lies": ("_store_beside", "STEPS[3][o + 1] == PLACE", "STEPS[3][o] == PLACE"),
}


def activated(chain: Chain) -> Sequence[int]:
    return (chain.step(activations.silu, 0),)


@pytest.mark.parametrize("fault", list(FAULTS))
def test_a_fault_is_seen(fault: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    name, *change = FAULTS[fault]
    home, group = (separate_steps, activated) if name == "between" else (epilogue, gated)
    monkeypatch.setattr(epilogue, name, planted(home, name, *change, tmp_path))
    with forced(matmul_described=DescribedTiles(64, 16, 16, 1, 4, 2)), pytest.raises(AssertionError):
        check(drawn((80, 24), BFLOAT16), drawn((24, 40), BFLOAT16), None, group, operands((80, 40), BFLOAT16), (0.3, -1.5))
