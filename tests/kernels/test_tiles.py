"""The gate for tiled kernels: many small tiles, ragged edges, groups, splits, and every tile that the launch rules can pick for any shape."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tritensor.kernels  # noqa: F401  (fills the table)
from tests.kernels.planting import planted
from tritensor.cuda.emulator.sanitizer import SanitizerError
from tritensor.ground.device import device
from tritensor.kernels.convolution.gpu import gathered, kernel_choice
from tritensor.kernels.normalization import row_gradients
from tritensor.kernels.normalization.row_gradients import RowWalk, row_walk
from tritensor.kernels.parts import axes, gemm
from tritensor.kernels.parts.axes import Blocks
from tritensor.kernels.parts.configs.spaces import tiles_space
from tritensor.kernels.parts.indices.radix_sort import sort_keys
from tritensor.kernels.parts.launch_rules import Tiles, config_of, forced, gemm_tiles
from tritensor.kernels.parts.products.rules import product_tiles
from tritensor.kernels.parts.rows.row_tiles import RowTiles, row_tiles
from tritensor.kernels.products import matmul
from tritensor.kernels.shaping.cat_kernel import SideTile
from tritensor.ops.array import from_host, to_host
from tritensor.ops.table import Sample, registry
from tritensor.testing.questions.backward import backward_is_rule
from tritensor.testing.questions.cases import Case
from tritensor.testing.questions.forward import forward

GPU = device("cuda", 0)
BF16 = np.dtype(ml_dtypes.bfloat16)


def findings(name: str, sample: Sample, dtype: str = "float32", layout: str = "plain") -> list[str]:
    """What forward and backward of one call on the emulated device disagree in with numpy."""
    case = Case(registry[name], 0, sample, dtype, layout, GPU)
    return forward(case) + backward_is_rule(case)


def product(m: int, n: int, k: int, *, dtype: Any = np.float32, batch: tuple[int, ...] = (), transposed: bool = False) -> str:
    """What is wrong with a product on the device, against 8 eps (|a| @ |b|) and one rounding of the result; '' where nothing is."""
    rng = np.random.default_rng((m, n, k))
    a = rng.standard_normal((*batch, m, k)).astype(dtype)
    b = rng.standard_normal((*batch, n, k) if transposed else (k, n)).astype(dtype)
    b = b.swapaxes(-1, -2) if transposed else b
    got = to_host(matmul.forward(from_host(a, GPU), from_host(b, GPU)))
    wide = np.float64
    exact, size = a.astype(wide) @ b.astype(wide), np.abs(a.astype(wide)) @ np.abs(b.astype(wide))
    eps = np.finfo(np.float64 if got.dtype == np.float64 else np.float32).eps
    allowed = 8 * eps * size + float(ml_dtypes.finfo(got.dtype).eps) * np.abs(exact)
    bad = ~(np.abs(got.astype(wide) - exact) <= allowed)
    return f"{int(bad.sum())} of {bad.size} elements differ" if bad.any() else ""


# One hook
def test_a_forced_config_is_what_a_launch_takes_and_goes_again() -> None:
    rule = gemm_tiles(64, 64, 64, 1, np.dtype(np.float32))
    with forced(matmul=Tiles(16, 16, 16, 1, 4, 2)):
        assert config_of("matmul", (), rule) == Tiles(16, 16, 16, 1, 4, 2)
        with forced(matmul=lambda key, default: default._replace(group=3), reduction=Blocks(1, 2)):
            assert config_of("matmul", (), rule) == rule._replace(group=3)
            assert config_of("reduction", (), Blocks(4, 4)) == Blocks(1, 2)
        assert config_of("matmul", (), rule).block_m == 16
        assert config_of("reduction", (), Blocks(4, 4)) == Blocks(4, 4)
    assert config_of("matmul", (), rule) is rule


def test_every_tiled_launch_asks_the_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_choice, "PAYS", 0)  # small images, too, have their channels copied innermost
    asked: set[str] = set()

    def noting(name: str) -> Callable[[Any, Any], Any]:
        def chosen(key: Any, default: Any) -> Any:
            asked.add(name)
            return default

        return chosen

    with forced(**{n: noting(n) for n in CONFIGS}):
        for name, sample in CALLS:
            assert not findings(name, sample), name
    assert asked == set(CONFIGS)


def test_a_reduction_in_two_launches_asks_twice() -> None:
    """First for the parts, then for what joins them."""
    asked: list[str] = []

    def noting(name: str, blocks: Blocks) -> Callable[[Any, Any], Any]:
        def chosen(key: Any, default: Any) -> Any:
            asked.append(name)
            return blocks

        return chosen

    x = from_host(np.arange(90, dtype=np.float32), GPU)
    with forced(reduction=noting("reduction", Blocks(1, 16, 3)), reduction_join=noting("reduction_join", Blocks(1, 16))):
        assert to_host(registry["sum"].forward(x, dim=None, keepdim=False)) == 4005.0  # type: ignore[misc]
    assert asked == ["reduction", "reduction_join"]


# Products: 9 to 12 rows of tiles, at least 3 columns, in groups, split, ragged
@pytest.mark.parametrize("group", [1, 3, 8])
@pytest.mark.parametrize("rows", [9, 12])
def test_grouped_tiles(rows: int, group: int) -> None:
    with forced(matmul=Tiles(16, 16, 16, 1, 4, 2, group)):
        assert product(16 * rows - 5, 16 * 3 - 7, 35) == ""
        assert product(16 * rows, 16 * 3, 32, transposed=True) == ""


@pytest.mark.parametrize(("split", "group"), [(2, 2), (3, 8)])
def test_split_and_grouped_tiles(split: int, group: int) -> None:
    with forced(matmul=Tiles(16, 16, 16, split, 4, 2, group), sum_parts=64):
        assert product(16 * 9 + 3, 16 * 2 + 5, 16 * 4 + 9) == ""
        assert product(16 * 4 + 1, 40, 70, batch=(2,), transposed=True) == ""


@pytest.mark.parametrize(("dtype", "split"), [("bfloat16", 1), ("float32", 2)])
def test_linear_in_small_tiles(dtype: str, split: int) -> None:
    x = np.random.default_rng(1).standard_normal
    with forced(matmul=Tiles(16, 16, 16, split, 4, 2, 4), sum_parts=64):
        assert not findings("linear", Sample(x((16 * 8 + 2, 37)), x((16 * 2 + 9, 37)), x(41)), dtype)


WRONG_ORDERS = {
    "the last group taken for whole": ("rows_in_group = min(tiles_m - group * GROUP, GROUP)", "rows_in_group = GROUP"),
    "columns by rows": ("tile_n = (tile % (GROUP * tiles_n)) // rows_in_group", "tile_n = (tile % (GROUP * tiles_n)) // GROUP"),
    "the group's start forgotten": (
        "tile_m = group * GROUP + (tile % (GROUP * tiles_n)) % rows_in_group",
        "tile_m = (tile % (GROUP * tiles_n)) % rows_in_group",
    ),
    "groups of the wrong length": ("group = tile // (GROUP * tiles_n)", "group = tile // (GROUP * tiles_m)"),
    "the part's start forgotten": ("start = part * k_part", "start = 0 * k_part"),
    "batches and parts confused": ("batch = outer % batches", "batch = outer // batches"),
    "a step too many": ("stop = min(start + k_part, k)", "stop = min(start + k_part + BLOCK_K, k)"),
}


@pytest.mark.parametrize("fault", list(WRONG_ORDERS))
def test_a_wrong_order_of_tiles_is_a_wrong_number(fault: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(gemm, "_matmul_kernel", planted(gemm, "_matmul_kernel", *WRONG_ORDERS[fault], tmp_path))
    with forced(matmul=Tiles(16, 16, 16, 2, 4, 2, 8)):
        found = _caught(lambda: product(16 * 9 + 3, 16 * 2 + 5, 16 * 4 + 9, batch=(2,), transposed=True))
    assert found, fault


def test_the_planted_copy_itself_is_sound(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(gemm, "_matmul_kernel", planted(gemm, "_matmul_kernel", "part * k_part", "k_part * part", tmp_path))
    with forced(matmul=Tiles(16, 16, 16, 2, 4, 2, 8)):
        assert product(16 * 9 + 3, 16 * 2 + 5, 16 * 4 + 9, batch=(2,), transposed=True) == ""


def _caught(run: Callable[[], str]) -> str:
    """What is found; that the emulated device refuses a launch (two programs store to one cell) is a finding."""
    try:
        return run()
    except SanitizerError as e:
        return str(e)


# Every tile that the rules can pick
def picked(dtype: Any, gathered: bool) -> list[Tiles]:
    """One config for each tile that the rules of products (gathered: of convolutions) pick for any shape, every second one with k split."""
    lengths = (1, 17, 33, 64, 100, 128, 200, 256, 600, 2048, 8192)
    found = {}
    for m, n, k in itertools.product(lengths, lengths, (1, 17, 48, 64, 300, 5000)):
        for batch, aligned in ((1, True), (1, False), (300, True), (300, False)):
            key = (m, n, k, batch, np.dtype(dtype), aligned)
            for t in [gemm_tiles(*key, gathered), *([] if gathered else [product_tiles(*key, count) for count in (108, 132)])]:
                found[t[:3]] = t
    return [t._replace(split=1 + i % 2, group=2) for i, t in enumerate(found.values())]


@pytest.mark.parametrize("dtype", [BF16, np.dtype(np.float32), np.dtype(np.float64)], ids=str)
def test_every_tile_of_a_product(dtype: np.dtype) -> None:
    for t in picked(dtype, False):
        with forced(matmul=t):
            assert product(t.block_m + 3, t.block_n + 5, t.split * t.block_k + 3, dtype=dtype) == "", t


CONV: dict[str, Any] = {"stride": (1, 1), "padding": (1, 0), "dilation": (1, 1), "groups": 1}


def convolutions(x: np.ndarray, w: np.ndarray, **attrs: Any) -> list[tuple[str, Sample]]:
    """A convolution and, as the ops that they are, its two gradients."""
    attrs = CONV | attrs
    y = registry["conv2d"].cpu(x, w, **attrs)
    g = np.random.default_rng(9).standard_normal(y.shape)
    bias = np.random.default_rng(8).standard_normal(w.shape[0])
    return [
        ("conv2d", Sample(x, w, bias, **attrs)),
        ("conv2d_input", Sample(g, w, size=x.shape[2:], **attrs)),
        ("conv2d_weight", Sample(x, g, kernel_size=w.shape[2:], **attrs)),
    ]


def wrong(calls: list[tuple[str, Sample]], dtype: str) -> list[str]:
    return [line for name, sample in calls for line in forward(Case(registry[name], 0, sample, dtype, "plain", GPU))]


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_every_tile_of_a_convolution(dtype: str) -> None:
    rng = np.random.default_rng(2)
    calls = convolutions(rng.standard_normal((2, 3, 6, 5)), rng.standard_normal((5, 3, 2, 2)))
    for t in picked(BF16 if dtype == "bfloat16" else np.float32, True):
        with forced(conv2d=t, conv2d_weight=t):
            assert not wrong(calls, dtype), t


# Convolutions in small tiles: 9 rows of tiles and 3 columns, both gradients, channels first and last
@pytest.mark.parametrize(("last", "split"), [(False, 1), (False, 2), (True, 2)])
def test_convolution_in_small_tiles(last: bool, split: int) -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((1, 7, 6, 4)).transpose(0, 3, 1, 2) if last else rng.standard_normal((1, 4, 7, 6))
    tiles = Tiles(16, 16, 16, split, 4, 2)
    with forced(conv2d=tiles, conv2d_weight=tiles, sum_parts=64):
        assert not wrong(convolutions(x, rng.standard_normal((16 * 8 + 5, 4, 3, 2))), "float32")


def test_convolution_of_groups_in_small_tiles() -> None:
    rng = np.random.default_rng(4)
    tiles = Tiles(16, 16, 16, 2, 4, 2)
    calls = convolutions(
        rng.standard_normal((2, 4, 9, 8)), rng.standard_normal((38, 2, 3, 3)), stride=(2, 1), padding=(1, 1), dilation=(1, 2), groups=2
    )
    with forced(conv2d=tiles, conv2d_weight=tiles, sum_parts=64):
        assert not wrong(calls, "float32")


CONVOLUTION_FAULTS = {
    "rows by columns": ("rows = tile % tiles_m * BLOCK_M", "rows = tile % tiles_n * BLOCK_M"),
    "pixels of the wrong tile": ("pixel = tile // tiles_m * BLOCK_N", "pixel = tile // tiles_n * BLOCK_N"),
    "the part's start forgotten": ("start = part * k_part", "start = 0 * k_part"),
}


@pytest.mark.parametrize("fault", list(CONVOLUTION_FAULTS))
def test_a_wrong_tile_of_a_convolution_is_found(fault: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    name = "_correlate_kernel"
    monkeypatch.setattr(gathered, name, planted(gathered, name, *CONVOLUTION_FAULTS[fault], tmp_path))
    rng = np.random.default_rng(3)
    sample = Sample(
        rng.standard_normal((1, 4, 7, 6)), rng.standard_normal((90, 4, 3, 3)), stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1
    )
    case = Case(registry["conv2d"], 0, sample, "float32", "plain", GPU)
    with forced(conv2d=Tiles(16, 16, 16, 2, 4, 2)):
        assert forward(case)


# Rows: whole in one tile or walked, several rows to a tile, ragged
def rows_of(*sizes: int) -> np.ndarray:
    return np.random.default_rng(sizes).standard_normal(sizes)


_PLAIN: dict[str, Any] = {"ignore_index": -100, "label_smoothing": 0.1, "reduction": "mean"}
ROW_CALLS = [
    ("softmax", Sample(rows_of(11, 37), dim=1)),
    ("softmax", Sample(rows_of(2, 37, 11), dim=1)),
    ("log_softmax", Sample(rows_of(11, 37), dim=1)),
    ("log_softmax", Sample(rows_of(37, 11), dim=0)),
    ("layer_norm", Sample(rows_of(11, 37), rows_of(37), rows_of(37), eps=1e-5, axes=1)),
    ("rms_norm", Sample(rows_of(11, 37), rows_of(37), eps=1e-5, axes=1)),
    ("layer_norm", Sample(rows_of(43, 71), rows_of(71), rows_of(71), eps=1e-5, axes=1)),
    ("rms_norm", Sample(rows_of(5, 3, 23), rows_of(3, 23), eps=1e-5, axes=2)),
    ("softmax", Sample(rows_of(43, 71), dim=1)),
    ("log_softmax", Sample(rows_of(5, 5, 66), dim=2)),
    ("cross_entropy", Sample(rows_of(11, 37), np.arange(11) * 3, None, **_PLAIN)),
    ("cross_entropy", Sample(rows_of(21, 71), np.arange(21) * 3, np.abs(rows_of(71)), **_PLAIN)),
    ("cross_entropy", Sample(rows_of(11, 67), np.arange(11), None, **_PLAIN | {"label_smoothing": 0.0})),
    ("cross_entropy", Sample(rows_of(11, 37), np.abs(rows_of(11, 37)), np.abs(rows_of(37)), **_PLAIN)),
    ("cumsum", Sample(rows_of(11, 37), dim=1, reverse=False)),
    ("cumsum", Sample(rows_of(37, 11), dim=0, reverse=True)),
]


SMALL_ROWS = [(1, 16, False), (4, 8, False), (8, 128, True)]
TYPES = ("bfloat16", "float32", "float64")


@pytest.mark.crossed
@pytest.mark.parametrize("turn", range(3))
@pytest.mark.parametrize("call", range(len(ROW_CALLS)), ids=lambda i: f"{ROW_CALLS[i][0]}{i}")
def test_rows_in_small_tiles(call: int, turn: int) -> None:
    """Every call in each tile and in each type, and over the calls each type in each tile."""
    (name, sample), (high, wide, whole), dtype = ROW_CALLS[call], SMALL_ROWS[turn], TYPES[(call + turn) % 3]

    def tile(key: Any, default: RowTiles) -> RowTiles:
        return default._replace(BM=high, BN=wide, whole=whole)

    walk = RowWalk(high, 128, 4, 2, 3)
    with forced(softmax=tile, layer_norm=tile, cross_entropy=tile, cumsum=tile, layer_norm_gradients=walk, layer_norm_join=Blocks(2, 16)):
        assert not findings(name, sample, dtype)


@pytest.mark.parametrize("call", [i for i, (name, _) in enumerate(ROW_CALLS) if name.endswith("_norm")])
def test_gradients_of_rows_that_are_walked(call: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows too long for one pass: dx in tiles, the partial sums of weight and bias in columns; each op in both types."""
    (name, sample), dtype = ROW_CALLS[call], ("bfloat16", "float64")[call // 2 % 2]
    monkeypatch.setattr(row_gradients, "LONGEST", 16)

    def tile(key: Any, default: RowTiles) -> RowTiles:
        return default._replace(BM=4, BN=8, whole=False)

    with forced(layer_norm=tile, layer_norm_weight=Blocks(4, 16, 3), layer_norm_join=Blocks(2, 16)):
        assert not findings(name, sample, dtype)


def test_every_walk_of_rows() -> None:
    """Each (BM, BN, parts) that the rule picks for any shape of 1 to 1,100 rows, on ragged rows, more of them than one sweep."""
    lengths = (1, 20, 40, 100, 200, 500, 1000, 2000, 4000, 8000)
    walks = {
        w[:2]: w for rows, n in itertools.product((1, 3, 300, 3000, 100_000), lengths) if (w := row_walk(rows, n, np.dtype(np.float32)))
    }
    for w in walks.values():
        rows, n = 2 * w.BM + 1, max(w.BN - 1, 1)
        with forced(layer_norm_gradients=w._replace(parts=2)):
            sample = Sample(rows_of(rows, n), rows_of(n), rows_of(n), eps=1e-5, axes=1)
            assert not backward_is_rule(Case(registry["layer_norm"], 0, sample, "float32", "plain", GPU)), w


def test_every_tile_of_rows() -> None:
    """Each (BM, BN, whole) that the rule picks for any shape, on a few ragged rows."""
    lengths = (1, 2, 3, 10, 40, 200, 1000, 5000, 17000, 70000)
    grids = {}
    for rows, n, size in itertools.product((1, 3, 60, 300, 3000, 100_000), lengths, (2, 4, 8)):
        for shape, dim in (((rows, n), 1), ((n, rows), 0)):
            g = row_tiles(shape, dim, size)
            assert g.warps in (1, 2, 4, 8, 16), "a launch takes a power of two"
            grids[g.BM, g.BN, g.whole] = g
    for g in grids.values():
        columns = max(g.BN - 1, 1) if g.whole else g.BN + 3
        rows = min(g.BM + 1, max(60_000 // columns, 1))
        with forced(softmax=lambda key, default, g=g: default._replace(BM=g.BM, BN=g.BN, whole=g.whole)):
            case = Case(registry["softmax"], 0, Sample(rows_of(rows, columns), dim=1), "float32", "plain", GPU)
            assert not forward(case), g


# Reductions: rows of a tile, several tiles in sequence, rows shared among programs
@pytest.mark.parametrize(("high", "wide", "splits"), [(4, 8, 3), (16, 4, 2)])
@pytest.mark.parametrize("name", ["sum", "mean", "var", "amax", "argmax"])
def test_reductions_in_small_tiles(name: str, high: int, wide: int, splits: int) -> None:
    attrs: dict[str, Any] = {"keepdim": False, **({"correction": 1} if name == "var" else {})}
    both = Blocks(high, wide, splits)
    with forced(reduction=both, reduction_join=Blocks(high, 2, 1), spread=both):
        for shape, dim in (((11, 37), 1), ((37, 11), 0)):
            assert not findings(name, Sample(rows_of(*shape), dim=dim if name == "argmax" else (dim,), **attrs))


def test_every_tile_of_a_reduction() -> None:
    tiles = {
        axes.blocks(rows, inner, along, size)
        for rows, inner, along, size in itertools.product(
            (1, 2, 5, 30, 200, 1500, 9000), (1, 3, 20, 130, 700, 5000), (True, False), (4, 8, 12)
        )
    }
    for i, (high, wide) in enumerate(sorted(tiles)):
        with forced(reduction=Blocks(high, wide, 1 + i % 2)):
            x = rows_of(high + 1, wide + 3).astype(np.float32)
            y = to_host(registry["sum"].forward(from_host(x, GPU), dim=(1,), keepdim=False))  # type: ignore[misc]
            exact = x.astype(np.float64)
            assert (np.abs(y - exact.sum(1)) <= 8 * np.finfo(np.float32).eps * np.abs(exact).sum(1)).all(), (high, wide)


# Arrays side by side
WIDTHS = [(3, 5), (1, 0, 7), (4, 4, 4, 4), (1,) * 8, (1,) * 9, (2, 33)]
SIDES = [(1, 1), (2, 4), (4, 16), (16, 2)]


@pytest.mark.crossed
@pytest.mark.parametrize("turn", range(2))
@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("case", range(len(WIDTHS)), ids=lambda i: str(WIDTHS[i]))
def test_arrays_side_by_side(case: int, dim: int, turn: int) -> None:
    """All widths along all dims, each in two of the four tiles, over all of them in each."""
    widths, tile = WIDTHS[case], SIDES[(case + dim + 2 * turn) % 4]
    parts = [rows_of(*[n if d == dim else 2 + d for d in range(3)]) for n in widths]
    with forced(side_by_side=SideTile(*tile)):
        assert not findings("cat", Sample(*parts, dim=dim))
        if len(set(widths)) == 1:
            assert not findings("stack", Sample(*parts, dim=dim))


# Sorting and its scan
@pytest.mark.parametrize(("block", "scanned"), [(16, 4), (32, 8), (64, 16)])
def test_radix_sort_in_small_blocks(block: int, scanned: int) -> None:
    keys = np.random.default_rng(5).integers(0, 700, 333)
    with forced(radix_sort=block, radix_scan=scanned, radix_sort_few=1):  # so many blocks are not few
        found, order = sort_keys(from_host(keys, GPU), 10)
    assert np.array_equal(to_host(found), np.sort(keys))
    assert np.array_equal(to_host(order), np.argsort(keys, kind="stable"))


@pytest.mark.crossed
@pytest.mark.parametrize("block", [8, 32, 128])
@pytest.mark.parametrize(("shape", "bits"), [((333,), 10), ((3, 70), 16), ((1,), 5), ((200,), 8), ((2, 129), 17)])
def test_radix_sort_of_few_keys(shape: tuple[int, ...], bits: int, block: int) -> None:
    keys = np.random.default_rng(5).integers(0, 1 << bits, shape)
    with forced(radix_sort_few=block):
        found, order = sort_keys(from_host(keys, GPU), bits)
    assert np.array_equal(to_host(found), np.sort(keys, -1))
    assert np.array_equal(to_host(order), np.argsort(keys, -1, kind="stable"))


CONFIGS = (
    "matmul", "sum_parts", "conv2d", "conv2d_weight", "conv2d_depthwise", "conv2d_blocks", "conv2d_weight_blocks",
    "softmax", "layer_norm", "layer_norm_gradients", "layer_norm_weight",
    "layer_norm_join", "cross_entropy", "cumsum", "cumprod", "logcumsumexp", "cummax", "linear_scan", "scan_parts", "reduction", "reduction_join", "spread",
    "radix_sort", "radix_scan", "radix_sort_few", "flash_forward", "flash_dq", "flash_dkv", "side_by_side",
)  # fmt: skip
CALLS = [
    ("matmul", Sample(rows_of(3, 600), rows_of(600, 4))),
    ("conv2d", Sample(rows_of(1, 2, 4, 5), rows_of(3, 2, 2, 2), stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1)),
    ("conv2d", Sample(rows_of(1, 2, 4, 5), rows_of(2, 1, 2, 2), stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=2)),
    ("conv2d", Sample(rows_of(1, 16, 4, 5), rows_of(16, 16, 2, 1), stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1)),
    ROW_CALLS[0], ROW_CALLS[4], ROW_CALLS[10], ROW_CALLS[14],
    ("layer_norm", Sample(rows_of(2, 8200), rows_of(8200), None, eps=1e-5, axes=1)),
    ("mean", Sample(rows_of(1, 9000), dim=(1,), keepdim=False)),
    *[(name, Sample(rows_of(3, 5), dim=1)) for name in ("cumprod", "logcumsumexp", "cummax")],
    ("linear_scan", Sample(rows_of(3, 5), rows_of(3, 5), dim=1)),
    ("embedding", Sample(rows_of(7, 3), np.array([1, 0, 6, 1]), padding_idx=None)),
    ("cat", Sample(rows_of(3, 5), rows_of(3, 2), dim=1)),
    ("flash_attention", Sample(rows_of(3, 5), rows_of(4, 5), rows_of(4, 3), None, scale=0.5, causal=False, p=0.0, seed=0, offset=0)),
]  # fmt: skip


def test_a_product_that_is_not_to_be_split_fills_the_multiprocessors_with_tiles() -> None:
    """The step of a recurrent network, 64 rows by a weight of 1024 x 4096, in one launch; with 16 bits its rows stay together, for wgmma."""
    for m, n, k in ((64, 1024, 4096), (64, 4096, 1024), (64, 1024, 1024)):
        key = (m, n, k, 1, np.dtype(np.float32), True)
        tiles = gemm_tiles(*key, whole=True)
        assert tiles.split == 1
        assert -(-m // tiles.block_m) * -(-n // tiles.block_n) == 128
        assert all(t.split == 1 for t in tiles_space((*key, "whole"), tiles))
        narrow = gemm_tiles(m, n, k, 1, np.dtype(np.float16), whole=True)
        assert narrow.block_m == 64
        assert n // narrow.block_n == {1024: 64, 4096: 128}[n]
