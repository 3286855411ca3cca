"""Products by tensor descriptors: every layout in small tiles, every tile that the rule picks, row sums, batches, and what goes another way."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.kernels.planting import planted
from tritensor.cuda.emulator.sanitizer import SanitizerError
from tritensor.ground.device import device
from tritensor.ground.errors import ArgumentError
from tritensor.kernels.parts.gemm import gemm
from tritensor.kernels.parts.launch_rules import forced
from tritensor.kernels.parts.products import tma_operands
from tritensor.kernels.parts.products.rules import MOST_SHARED, DescribedTiles, described_tiles, efficiency, product_tiles, shared_bytes
from tritensor.kernels.products import linear
from tritensor.ops import replay
from tritensor.ops.array import CudaArray, empty, from_host, to_host
from tritensor.ops.tuning import config_choice
from tritensor.ops.tuning.query import force
from tritensor.ops.tuning.tunables import known
from tritensor.ops.tuning.variants import forget, noted

GPU = device("cuda", 0)
BF16 = np.dtype(ml_dtypes.bfloat16)
PROCESSORS = (108, 132, 148)
SMALL = DescribedTiles(64, 16, 16, 1, 4, 2)


def swapped(x: Any) -> Any:
    return x.swapaxes(-1, -2) if isinstance(x, np.ndarray) else x.transpose((*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def operands(m: int, n: int, k: int, form: str, batch: tuple[int, ...], dtype: Any) -> tuple[np.ndarray, np.ndarray, CudaArray, CudaArray]:
    """a and b as numpy has them and on the device; a letter t: stored transposed."""
    found: list[Any] = []
    for shape, letter in (((*batch, m, k), form[0]), ((*batch, k, n), form[1])):
        x = np.random.default_rng((m, n, k, len(found))).standard_normal(shape).astype(dtype)
        stored = np.ascontiguousarray(swapped(x)) if letter == "t" else x
        found += [x, swapped(from_host(stored, GPU)) if letter == "t" else from_host(x, GPU)]
    return found[0], found[2], found[1], found[3]


def product(
    m: int, n: int, k: int, form: str = "nn", *, batch: tuple[int, ...] = (), dtype: Any = BF16, bias: bool = False, sums: bool = False
) -> tuple[str, list[str]]:
    """What is wrong with a product, against one rounding of the exact result and of the sums, and the kernels that were asked for."""
    a, b, on_a, on_b = operands(m, n, k, form, batch, dtype)
    added = np.random.default_rng(1).standard_normal(n).astype(dtype) if bias else np.zeros(n, dtype)
    c, rows = empty((*batch, m, n), dtype, GPU), empty((m,), dtype, GPU) if sums else None
    with config_choice.noted() as asked:
        gemm(on_a, on_b, c, from_host(added, GPU) if bias else None, sums=rows)  # type: ignore[arg-type]
    wide = np.float64
    eps, unit = float(ml_dtypes.finfo(np.dtype(dtype)).eps), np.finfo(np.float32).eps
    pairs = [
        (
            c,
            a.astype(wide) @ b.astype(wide) + added.astype(wide),
            np.abs(a).astype(wide) @ np.abs(b).astype(wide) + np.abs(added).astype(wide),
        )
    ]
    if rows is not None:
        pairs.append((rows, a.astype(wide).sum(-1), np.abs(a.astype(wide)).sum(-1)))
    bad = [int((~(np.abs(to_host(got).astype(wide) - exact) <= 8 * unit * size + eps * np.abs(exact))).sum()) for got, exact, size in pairs]  # type: ignore[arg-type]
    return (f"{bad} elements differ" if any(bad) else ""), [one.kernel for one in asked]


@pytest.mark.crossed
@pytest.mark.parametrize("form", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize(("split", "group", "parts", "resident", "flatten"), [(1, 3, 1, 1, True), (3, 8, 2, 0, False), (2, 2, 4, 2, False)])
def test_small_tiles(form: str, split: int, group: int, parts: int, resident: int, flatten: bool) -> None:
    """9 rows of tiles and 3 columns of them, ragged, in groups, split, in pieces; more programs than tiles and fewer."""
    with forced(matmul_described=DescribedTiles(64, 64, 16, split, 4, 2, group, parts, resident, flatten), sum_parts=64):
        assert product(64 * 8 + 16, 64 * 2 + 24, 16 * 4 + 8, form, bias=True) == ("", ["matmul_described", *["sum_parts"] * (split > 1)])


@pytest.mark.parametrize("split", [1, 3])
@pytest.mark.parametrize("form", ["nn", "tn"])
def test_row_sums_come_along(form: str, split: int) -> None:
    with forced(matmul_described=SMALL._replace(split=split)):
        assert product(64 * 3 + 8, 40, 72, form, sums=True) == ("", ["matmul_described", *["sum_parts"] * (split > 1)])


@pytest.mark.parametrize("split", [1, 2])
@pytest.mark.parametrize("form", ["nn", "nt", "tn"])
def test_batches(form: str, split: int) -> None:
    with forced(matmul_described=SMALL._replace(split=split)):
        assert product(72, 24, 40, form, batch=(3,))[0] == ""
        assert product(72, 24, 40, form, batch=(2, 3), dtype=np.dtype(np.float16))[0] == ""  # dense, so one dimension


def test_one_matrix_for_the_whole_batch() -> None:
    _, b, _, on_b = operands(72, 24, 40, "nn", (), BF16)
    many = np.random.default_rng(2).standard_normal((3, 72, 40)).astype(BF16)
    c = empty((3, 72, 24), BF16, GPU)
    with config_choice.noted() as asked:
        gemm(from_host(many, GPU), on_b.expand((3, 40, 24)), c)  # type: ignore[arg-type]
    assert [one.kernel for one in asked] == ["matmul_described"]
    np.testing.assert_allclose(to_host(c).astype(np.float64), many.astype(np.float64) @ b.astype(np.float64), rtol=2**-8, atol=2**-8)  # type: ignore[arg-type]


def test_rows_that_16_bytes_do_not_divide_are_stored_by_addresses() -> None:
    """The columns of a language model's last layer: 50257 words."""
    forget()
    with forced(matmul_described=SMALL._replace(parts=1)):
        assert product(72, 57, 40, "nt", bias=True) == ("", ["matmul_described"])
    assert [(variant, n) for (_, variant, _), n in noted()] == [("stores by addresses", 1)]


@pytest.mark.parametrize(("shape", "form", "why"), [((16, 24, 33), "nn", "rows and columns"), ((17, 24, 32), "tn", "rows and columns")])
def test_what_cannot_be_described_goes_by_pointers(shape: tuple[int, int, int], form: str, why: str) -> None:
    forget()
    assert product(*shape, form) == ("", ["matmul"])
    ((_, variant, reason), n), *more = noted()
    assert (variant, n, more) == ("pointers", 1, [])
    assert why in reason


@pytest.mark.parametrize("form", ["nn", "nt", "tn", "tt"])
def test_large_operands_are_copied_into_rows_that_can_be_described(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tma_operands, "WORTH_PADDING", 1)
    replay.forget()
    assert product(57, 41, 35, form, bias=True) == ("", ["elementwise", "elementwise", "matmul_described"])
    assert product(57, 41, 35, form, sums=True)[0] == ""


def test_the_gradient_of_a_language_models_last_layer_is_copied_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tma_operands, "WORTH_PADDING", 1)
    replay.forget()
    x, w, b = (np.random.default_rng(i).standard_normal(s).astype(BF16) for i, s in enumerate([(72, 40), (57, 40), (57,)]))
    g = np.random.default_rng(4).standard_normal((72, 57)).astype(BF16)
    with config_choice.noted() as asked:
        found = linear.backward(*(from_host(v, GPU) for v in (g, x, w)), (True, True, True))  # type: ignore[arg-type]
    assert [one.kernel for one in asked] == ["elementwise", "matmul_described", "matmul_described"]
    wide = np.float64
    for got, exact in zip(found, (g.astype(wide) @ w.astype(wide), g.T.astype(wide) @ x.astype(wide), g.astype(wide).sum(0)), strict=True):
        np.testing.assert_allclose(to_host(got).astype(wide), exact, rtol=2**-8, atol=2**-6)
    assert b.shape == found[2].shape
    replay.forget()


def test_a_batch_that_does_not_collapse_goes_by_pointers() -> None:
    a = np.random.default_rng(3).standard_normal((3, 2, 16, 8)).astype(BF16)
    b = np.random.default_rng(4).standard_normal((2, 3, 8, 16)).astype(BF16)
    c = empty((2, 3, 16, 16), BF16, GPU)
    with config_choice.noted() as asked:
        gemm(from_host(a, GPU).transpose((1, 0, 2, 3)), from_host(b, GPU), c)  # type: ignore[union-attr,arg-type]
    assert [one.kernel for one in asked] == ["matmul"]
    exact = a.transpose(1, 0, 2, 3).astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(to_host(c).astype(np.float64), exact, rtol=2**-8, atol=2**-6)  # type: ignore[arg-type]


@pytest.mark.parametrize(("n", "kernel"), [(1, "matmul_described"), (2, "matmul")])
def test_a_bias_with_gaps_goes_by_pointers_unless_it_is_one_number(n: int, kernel: str) -> None:
    a, b, on_a, on_b = operands(64, n, 32, "nt", (), BF16)
    bias = np.arange(2, 2 + 2 * n).astype(BF16)
    c = empty((64, n), BF16, GPU)
    with forced(matmul_described=SMALL), config_choice.noted() as asked:
        gemm(on_a, on_b, c, from_host(bias, GPU)[::2])  # type: ignore[arg-type,index]
    assert [one.kernel for one in asked] == [kernel]
    exact = a.astype(np.float64) @ b.astype(np.float64) + bias[::2].astype(np.float64)
    np.testing.assert_allclose(to_host(c).astype(np.float64), exact, rtol=2**-7, atol=2**-5)  # type: ignore[arg-type]


def test_an_operand_that_begins_off_16_bytes_goes_by_pointers() -> None:
    x = from_host(np.random.default_rng(5).standard_normal((32, 40)).astype(BF16), GPU)
    assert isinstance(tma_operands.operand(x[:, 8:], 1, 0), tma_operands.Operand)  # type: ignore[index]
    assert "address" in str(tma_operands.operand(x[:, 1:33], 1, 0))  # type: ignore[index]


def picked() -> list[tuple[DescribedTiles, bool]]:
    """Every config that the rule picks for any shape, once for each tile, and whether it is for a result that is described."""
    lengths = (8, 24, 48, 72, 136, 264, 520, 2048, 16384)
    found = {}
    for m, n, k in itertools.product(lengths, lengths, (16, 24, 48, 64, 304, 5000)):
        for batch, count, wide in ((1, 108, True), (1, 132, True), (300, 132, True), (1, 132, False)):
            t = described_tiles(m, n, k, batch, count, described=wide)
            assert known["matmul_described"].problem(t, None) == ""
            assert shared_bytes(t, 4 if t.split > 1 else 2) <= MOST_SHARED
            found[t[:3], t.parts, t.flatten, wide] = t, wide
    return list(found.values())


def test_every_tile_that_the_rule_picks() -> None:
    for i, (t, wide) in enumerate(picked()):
        t = t._replace(split=1 + i % 2, group=2)
        with forced(matmul_described=t):
            n = t.block_n + (8 if wide else 5)
            assert product(t.block_m + 8, n, t.split * t.block_k + 8, ("nn" if wide else "nt", "nt", "tn" if wide else "nt")[i % 3]) == (
                "",
                ["matmul_described", *["sum_parts"] * (t.split > 1)],
            ), t


ROWS, WIDTHS = 16384, (768, 2304, 3072, 50257)
SHAPES = [(4096, 4096, 4096), (8192, 8192, 8192)]
for wide, narrow in itertools.product(
    WIDTHS, (768, 3072)
):  # GPT-2 small, a batch of 16 x 1024: a layer, its input's and its weight's gradient
    SHAPES += [(ROWS, wide, narrow), (ROWS, narrow, wide), (wide, narrow, ROWS)]


@pytest.mark.parametrize("count", PROCESSORS)
def test_the_multiprocessors_are_busy_at_the_shapes_of_models(count: int) -> None:
    for m, n, k in SHAPES:
        assert efficiency(described_tiles(m, n, k, 1, count), m, n, 1, count) >= 0.85, (m, n, k)
        for dtype in (BF16, np.dtype(np.float32)):
            assert efficiency(product_tiles(m, n, k, 1, dtype, True, count), m, n, 1, count) >= 0.85, (m, n, k, dtype)


def test_few_rows_split_k_until_the_multiprocessors_have_work() -> None:
    for m, n, k in ((16, 4096, 4096), (64, 64, 65536)):
        t = described_tiles(m, n, k, 1, 132)
        assert t.split > 1
        assert -(-m // t.block_m) * -(-n // t.block_n) * t.split >= 0.9 * 132
        assert described_tiles(m, n, k, 1, 132, whole=True).split == 1


def test_configs_that_cannot_run_are_refused() -> None:
    for wrong, said in (
        (SMALL._replace(block_n=512), "256"),
        (SMALL._replace(parts=2), "parts"),
        (SMALL._replace(block_m=48), "power of two"),
    ):
        with pytest.raises(ArgumentError, match=said), force("matmul_described", wrong):
            pass


WRONG = {
    "the last group taken for whole": ("rows_in_group = min(tiles_m - group * GROUP, GROUP)", "rows_in_group = GROUP"),
    "the part's start forgotten": ("start = outer // batches * k_part if SPLIT else 0", "start = 0 * k_part"),
    "batches and parts confused": ("batch = outer % batches", "batch = outer // batches"),
    "a part longer than it is": ("tl.cdiv(min(k_part, k - start), BLOCK_K)", "tl.cdiv(k - start, BLOCK_K)"),
    "a tile left out": ("tl.range(tl.program_id(0), tiles, programs", "tl.range(tl.program_id(0), tiles - 1, programs"),
}


@pytest.mark.parametrize("fault", list(WRONG))
def test_a_wrong_walk_is_a_wrong_number(fault: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    from tritensor.kernels.parts.products import descriptor_kernel

    name = "_described_matmul_kernel" if "group" not in fault else "_place"
    copy = planted(descriptor_kernel, "_described_matmul_kernel" if name != "_place" else "_place", *WRONG[fault], tmp_path)
    monkeypatch.setattr(*((tma_operands, name, copy) if name != "_place" else (descriptor_kernel, name, copy)))
    with forced(matmul_described=SMALL._replace(split=2, group=2)):
        try:
            found = product(64 * 4 + 8, 40, 80, batch=(2,))[0]
        except SanitizerError as error:
            found = str(error)
    assert found, fault
