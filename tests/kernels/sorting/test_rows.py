"""Sorts of rows longer than a tile, in every type: the radix sort, and the first k in rounds; small tiles stand for large ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor.kernels  # noqa: F401  (fills the table)
from tritensor.ground import dtypes
from tritensor.ground.device import device
from tritensor.kernels.parts.launch_rules import forced
from tritensor.kernels.sorting import cpu_order
from tritensor.kernels.sorting.rows import SortTile, tile_for
from tritensor.kernels.sorting.sort import TYPES
from tritensor.ops.array import from_host, to_host
from tritensor.ops.table import registry

GPU = device("cuda", 0)


def rows(name: str, *shape: int) -> np.ndarray:
    """Values of a type with many ties, its extremes among them; of floats NaN and both zeros, too."""
    rng, kind = np.random.default_rng(7), dtypes.as_dtype(name)
    if kind.kind == "bool":
        return rng.integers(0, 2, shape).astype(np.bool_)
    x = rng.integers(-6 if kind.is_signed else 0, 7, shape).astype(kind.numpy)
    flat = x.reshape(-1)
    if kind.kind == "float":
        flat[3::17], flat[5::19], flat[7::23], flat[1::29] = np.nan, np.inf, -0.0, -np.inf
        flat[11::31] = -np.array(np.nan, kind.numpy)
    else:
        flat[3::17], flat[5::19] = np.iinfo(kind.numpy).max, np.iinfo(kind.numpy).min
    return x


def ordered(x: np.ndarray, dim: int, descending: bool) -> np.ndarray:
    """The places in order by Python's own stable sort: NaN above all, -0.0 equal to 0.0."""

    def places(row: np.ndarray) -> list[int]:
        wide = [float(v) if x.dtype.kind in "fV" else int(v) for v in row]
        keys = [(v != v, 0 if v != v else v) for v in wide]
        flipped = [(not a, -b) for a, b in keys] if descending else keys
        return sorted(range(len(row)), key=lambda i: flipped[i])

    return np.apply_along_axis(places, dim, x)


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays hold the same bits."""
    return np.array_equal(a.reshape(-1).view(np.uint8), b.reshape(-1).view(np.uint8))


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("name", TYPES)
def test_places_on_the_cpu(name: str, descending: bool) -> None:
    x = rows(name, 3, 90)
    values, places = registry["sort"].cpu(x, dim=1, descending=descending)
    want = ordered(x, 1, descending)
    assert np.array_equal(places, want)
    assert same(values, np.take_along_axis(x, want, 1))
    for k in (1, 5, 80):
        assert np.array_equal(cpu_order.first_columns(x, k, descending), want[:, :k])
        assert np.array_equal(cpu_order.first_columns(x[:1], k, descending), want[:1, :k])


@pytest.mark.parametrize("name", TYPES)
def test_long_rows_go_by_radix(name: str) -> None:
    x = rows(name, 2, 40)
    with forced(sort=SortTile(1, 16)):
        values, places = registry["sort"].forward(from_host(x, GPU), dim=1, descending=True)
    want = ordered(x, 1, True)
    assert np.array_equal(to_host(places), want)
    assert same(to_host(values), np.take_along_axis(x, want, 1))


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_long_rows_along_every_dim(dim: int) -> None:
    shape = [2, 2, 2]
    shape[dim] = 20
    x = rows("int8", *shape)
    with forced(sort=SortTile(1, 16)):
        values, places = registry["sort"].forward(from_host(x, GPU), dim=dim, descending=False)
    want = ordered(x, dim, False)
    assert np.array_equal(to_host(places), want)
    assert same(to_host(values), np.take_along_axis(x, want, dim))


@pytest.mark.parametrize(
    ("name", "largest"), [("float32", True), ("float64", False), ("uint8", False), ("int64", True), ("bfloat16", True)]
)
def test_the_first_few_in_rounds(name: str, largest: bool) -> None:
    x = rows(name, 2, 70)
    want = ordered(x, 1, largest)
    for k in (1, 8, 9):  # 9 is more than half a tile: all are sorted
        with forced(sort=SortTile(4, 16)):
            values, places = registry["topk"].forward(from_host(x, GPU), k=k, dim=1, largest=largest)
        assert np.array_equal(to_host(places), want[:, :k])
        assert same(to_host(values), np.take_along_axis(x, want[:, :k], 1))


def test_tiles() -> None:
    assert tile_for(1, 1000, 4) == SortTile(1, 1024)
    assert tile_for(1, 1 << 20, 4) == SortTile(1, 1024)
    assert tile_for(5, 1 << 20, 8) == SortTile(1, 512)
    assert tile_for(1000, 1, 2) == SortTile(256, 2)
    assert tile_for(3, 30, 2) == SortTile(4, 32)


# On the CPU
def test_wide_keys_with_few_and_with_many_ties() -> None:
    rng = np.random.default_rng(3)
    wide = rng.integers(-(2**62), 2**62, (2, 3000))
    for x in (
        wide,
        wide.astype(np.uint64),
        rng.integers(0, 9, (2, 3000)) * 2**58,
        rng.standard_normal((2, 3000)),
        np.round(rng.standard_normal((2, 3000))),
    ):
        for descending in (False, True):
            found = cpu_order.stable_order(x, descending)
            key = ~x if descending and x.dtype.kind in "iu" else -x if descending else x
            assert np.array_equal(found, np.argsort(key, axis=1, kind="stable"))
            for k in (1, 40):
                assert np.array_equal(cpu_order.first_columns(x, k, descending), found[:, :k])
            assert np.array_equal(cpu_order.column_of_rank(x, 1500), np.argsort(x, axis=1, kind="stable")[:, 1500])


def test_keys_of_the_whole_range() -> None:
    x = np.array([[2**63 - 1, -(2**63), 0, -1, 2**63 - 1, -(2**63)]])
    assert cpu_order.stable_order(x, False).tolist() == [[1, 5, 3, 2, 0, 4]]
    assert cpu_order.stable_order(x, True).tolist() == [[0, 4, 2, 3, 1, 5]]


def test_ranks_of_rows_with_different_numbers_of_nan() -> None:
    x: Any = rows("float32", 6, 70)
    x[2] = np.nan
    for rank in (-1, -2):
        found = registry["rank_place"].cpu(x, dim=1, rank=rank)[:, 0]
        for row, at in zip(x, found, strict=True):
            order, nan = ordered(row[None], 1, False)[0], int(np.isnan(row).sum())
            want = order[70 - nan] if rank == -1 and nan else order[max(70 - nan - 1, 0) // 2]
            assert at == want


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("k", [7, 170])
@pytest.mark.parametrize("name", ["float32", "int64", "uint8"])
def test_the_first_few_among_many_equals(name: str, k: int, descending: bool) -> None:
    """Of some rows more elements equal the last of the first few than there is room for."""
    x = rows(name, 5, 1500)
    np.testing.assert_array_equal(cpu_order.first_columns(x, k, descending), ordered(x, 1, descending)[:, :k])
