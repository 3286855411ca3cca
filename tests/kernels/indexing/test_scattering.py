"""gather, scatter and scatter_reduce beyond the samples: blocks, rows of a broadcast index, types, ties, zeros in products, second gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tritensor.kernels.parts.indices import flat_positions
from tritensor.kernels.parts.indices.rows_by_key import numpy_fold_rows

DEVICES = ["cpu", "cuda"]
FOLDS = {"sum": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}


@pytest.mark.parametrize("block", [3, 7, 1 << 14])
def test_positions_in_blocks(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flat_positions, "BLOCK", block)
    rng = np.random.default_rng(0)
    cases: list[tuple[tuple[int, ...], tuple[int, ...], int]] = [
        ((5,), (9,), 0), ((4, 5), (4, 7), 1), ((4, 5), (2, 5), 0), ((4, 5), (9, 3), 0), ((4, 5, 3), (4, 2, 3), 1), ((4, 5, 3), (2, 5, 1), 2),
        ((1, 5, 3), (1, 9, 3), 1), ((3, 4), (0, 4), 0), ((3, 4, 0), (2, 4, 0), 1),
    ]  # fmt: skip
    for shape, reach, dim in cases:
        numbers = np.arange(np.prod(shape)).reshape(shape)
        for kind in (np.int64, np.int32, np.uint8):
            index = rng.integers(0, shape[dim], reach).astype(kind)
            got = np.full(reach, -1)
            for part, at in flat_positions.position_blocks("gather", shape, index, dim):
                got[part] = at.reshape(got[part].shape)
            want = numbers[tuple(index if d == dim else g for d, g in enumerate(np.indices(reach)))] if index.size else got
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64, np.uint8])
@pytest.mark.parametrize(
    ("lead", "rows", "width", "n"),
    [
        (1, 5, 1, 300), (3, 5, 1, 300), (1, 50, 4, 300), (1, 50, 12, 300), (700, 9, 1, 60), (3, 40, 7, 60), (1, 400, 40, 300), (2, 3, 40, 300),
        (1, 4000, 3, 50), (5, 4000, 3, 50), (1, 300, 200, 900),
    ],
)  # fmt: skip
def test_rows_folded(lead: int, rows: int, width: int, n: int, kind: type) -> None:
    rng = np.random.default_rng(1)
    whole = np.dtype(kind).kind != "f"
    target = rng.integers(0, 9, (lead, rows, width)).astype(kind) if whole else rng.standard_normal((lead, rows, width)).astype(kind)
    source = rng.integers(0, 5, (lead, n, width)).astype(kind) if whole else rng.uniform(0.5, 1.5, (lead, n, width)).astype(kind)
    keys = rng.integers(0, rows, n)
    for ufunc in FOLDS.values():
        want = target.copy() if whole else target.astype(np.float64)
        for i, k in enumerate(keys):
            want[:, k] = ufunc(want[:, k], source[:, i])
        got = target.copy()
        numpy_fold_rows(ufunc, got, keys, source)
        np.testing.assert_allclose(got, want, rtol=1e-4 if kind is np.float32 else 1e-9, atol=0 if whole else 1e-5)


def _folded(x: np.ndarray, index: np.ndarray, source: np.ndarray, dim: int, reduce: str, include: bool) -> np.ndarray:
    """scatter_reduce, element by element."""
    y, hits = x.copy(), np.zeros(x.shape, np.int64) + include
    for at in np.ndindex(*index.shape):
        to = (*at[:dim], int(index[at]), *at[dim + 1 :])
        y[to] = source[at] if not hits[to] else FOLDS["sum" if reduce == "mean" else reduce](y[to], source[at])
        hits[to] += 1
    if reduce != "mean":
        return y
    return y / np.maximum(hits, 1) if y.dtype.kind == "f" else y // np.maximum(hits, 1)


@pytest.mark.parametrize("on", DEVICES)
@pytest.mark.parametrize("include", [True, False])
@pytest.mark.parametrize("reduce", [*FOLDS, "mean"])
def test_reduced_one_by_one_and_by_rows(reduce: str, include: bool, on: str) -> None:
    """An index that is a broadcast vector takes the road of rows, a copy of it that of elements; index_reduce is the first."""
    rng = np.random.default_rng(2)
    for kind in ("float64", "int32"):
        x = rng.integers(-4, 5, (3, 6, 2)).astype(kind)
        source, vector = rng.integers(-4, 5, (3, 20, 2)).astype(kind), rng.integers(0, 5, 20)
        index = np.broadcast_to(vector[:, None], (3, 20, 2))
        want = _folded(x, index, source, 1, reduce, include)
        a, s, rows = (tt.tensor(v, device=on) for v in (x, source, vector))
        spread = rows[:, None].expand(3, 20, 2)
        for places in (spread, spread.clone(), spread.int()):
            np.testing.assert_allclose(a.scatter_reduce(1, places, s, reduce, include_self=include).cpu().numpy(), want, rtol=1e-12)
        if reduce != "sum":
            np.testing.assert_allclose(a.index_reduce(1, rows, s, reduce, include_self=include).cpu().numpy(), want, rtol=1e-12)
        elif include:
            np.testing.assert_array_equal(a.index_add(1, rows, s).cpu().numpy(), want)
            np.testing.assert_array_equal(a.scatter_add(1, spread, s).cpu().numpy(), want)
        part = a.scatter_reduce(1, spread[:2, :7, :1], s, reduce, include_self=include).cpu().numpy()  # smaller than x and source
        np.testing.assert_allclose(part, _folded(x, index[:2, :7, :1], source, 1, reduce, include), rtol=1e-12)


@pytest.mark.parametrize("on", DEVICES)
def test_rows_gathered_and_written(on: str) -> None:
    rng = np.random.default_rng(3)
    x, source = rng.standard_normal((4, 5, 3)), rng.standard_normal((4, 20, 3))
    vector = rng.integers(0, 5, 20)
    a, s, rows = tt.tensor(x, device=on), tt.tensor(source, device=on), tt.tensor(vector, device=on)
    spread = rows[:, None].expand(4, 20, 3)
    want = x.copy()
    for j, k in enumerate(vector):
        want[:, k] = source[:, j]  # the last one stays
    for places in (spread, spread.clone()):
        assert a.gather(1, places).tolist() == x[:, vector].tolist()
        assert a.scatter(1, places, s).tolist() == want.tolist()
    assert a.index_select(1, rows).tolist() == x[:, vector].tolist()
    assert a.index_copy(1, rows, s).tolist() == want.tolist()
    assert a.transpose(0, 2).index_select(1, rows).tolist() == x.transpose(2, 1, 0)[:, vector].tolist()
    assert a.index_fill(1, rows[:2], -1.0)[:, vector[:2]].tolist() == np.full((4, 2, 3), -1.0).tolist()


@pytest.mark.parametrize("on", DEVICES)
@pytest.mark.parametrize("kind", ["bool", "uint8", "int8", "int64", "float16", "bfloat16", "float32"])
def test_every_type(kind: str, on: str) -> None:
    x, s = tt.tensor([[1, 0, 3]], device=on).to(getattr(tt, kind)), tt.tensor([[0, 2, 1, 1]], device=on).to(getattr(tt, kind))
    at = tt.tensor([[0, 0, 2, 1]], device=on)
    expected = {"prod": [0, 0, 3], "amax": [2, 1, 3], "amin": [0, 0, 1], "sum": [3, 1, 4]}
    for reduce, want in expected.items():
        y = x.scatter_reduce(1, at, s, reduce)
        assert y.dtype == x.dtype
        assert y[0].tolist() == [bool(v) if kind == "bool" else v for v in want], reduce
    if kind != "bool":
        assert x.scatter_reduce(1, at, s, "amax", include_self=False)[0].tolist() == [2, 1, 1]


def test_complex_products_and_sums() -> None:
    x, s = tt.tensor([1 + 1j, 2.0]), tt.tensor([2j, 3.0, 1 - 1j])
    at = tt.tensor([0, 0, 1])
    assert x.scatter_reduce(0, at, s, "prod").tolist() == [(1 + 1j) * 2j * 3, 2 - 2j]
    assert x.scatter_reduce(0, at, s, "mean").tolist() == [pytest.approx((4 + 3j) / 3), 1.5 - 0.5j]
    with pytest.raises(tt.DTypeError, match="scatter_reduce: complex64 is not for 'amax'"):
        x.scatter_reduce(0, at, s, "amax")


@pytest.mark.parametrize("on", DEVICES)
def test_nan_wins(on: str) -> None:
    x = tt.tensor([1.0, float("nan"), 3.0], device=on)
    at, s = tt.tensor([0, 1, 2, 2], device=on), tt.tensor([float("nan"), 5.0, 7.0, 2.0], device=on)
    for reduce, last in (("amax", 7.0), ("amin", 2.0)):
        y = x.scatter_reduce(0, at, s, reduce)
        assert y.isnan().tolist() == [True, True, False]
        assert y[2].item() == last
    t = s.clone().requires_grad_()
    x.scatter_reduce(0, at, t, "amax")[0].backward()
    assert t.grad.tolist() == [1.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("on", DEVICES)
def test_ties_share_evenly(on: str) -> None:
    x = tt.tensor([2.0, 5.0], device=on, requires_grad=True)
    s = tt.tensor([2.0, 2.0, 1.0, 5.0], device=on, requires_grad=True)
    at = tt.tensor([0, 0, 0, 1], device=on)
    x.scatter_reduce(0, at, s, "amax").backward(tt.tensor([6.0, 8.0], device=on))
    assert x.grad.tolist() == [2.0, 4.0]
    assert s.grad.tolist() == [2.0, 2.0, 0.0, 4.0]
    s.grad = None
    x.detach().scatter_reduce(0, at, s, "amax", include_self=False).backward(tt.tensor([6.0, 8.0], device=on))
    assert s.grad.tolist() == [3.0, 3.0, 0.0, 8.0]


@pytest.mark.parametrize("on", DEVICES)
@pytest.mark.parametrize("zeros", [0, 1, 2, 3])
def test_zeros_in_products(zeros: int, on: str) -> None:
    """First and second gradients of a product are products of the other factors, however many of them are 0."""
    values = np.array([2.0, 3.0, 5.0, 7.0])
    values[:zeros] = 0.0
    f = tt.tensor(values, device=on, requires_grad=True)
    y = f[:1].scatter_reduce(0, tt.tensor([0, 0, 0], device=on), f[1:], "prod")

    def others(*left_out: int) -> float:
        return float(np.prod([v for i, v in enumerate(values) if i not in left_out]))

    y.backward(retain_graph=True)
    assert f.grad.tolist() == pytest.approx([others(i) for i in range(4)])
    (g,) = tt.autograd.grad(y.sum(), f, create_graph=True)
    assert g.tolist() == pytest.approx([others(i) for i in range(4)])
    for i in range(4):
        (h,) = tt.autograd.grad(g[i], f, retain_graph=True)
        assert h.tolist() == pytest.approx([0.0 if i == j else others(i, j) for j in range(4)])


@pytest.mark.parametrize("on", DEVICES)
def test_the_fill_counts_an_index_once(on: str) -> None:
    x, v = tt.zeros(2, 3, device=on, requires_grad=True), tt.tensor(4.0, device=on, requires_grad=True)
    y = x.index_fill(1, tt.tensor([0, 0, -3], device=on), v)
    y.sum().backward()
    assert y.tolist() == [[4.0, 0.0, 0.0]] * 2
    assert v.grad.item() == 2.0
    assert x.grad.tolist() == [[0.0, 1.0, 1.0]] * 2


def test_long_sums_are_exact_enough() -> None:
    """A million numbers of one place: one after the other in float32 they would lose three digits."""
    x = tt.rand(1 << 20)
    total = float(x.double().sum())
    at = tt.zeros(1 << 20, dtype=tt.int64)
    for y in (tt.zeros(1).scatter_add(0, at, x), tt.zeros(1).index_add(0, at, x), tt.zeros(1).put(at, x, accumulate=True)):
        assert y.item() == pytest.approx(total, rel=2e-7)
    wide = x.reshape(-1, 16)
    assert tt.zeros(1, 16).index_add(0, at[: 1 << 16], wide).double().sum().item() == pytest.approx(total, rel=1e-6)


def test_out_is_of_the_result_and_its_own() -> None:
    x, at = tt.arange(6.0), tt.tensor([0, 1, 2])
    calls: dict[str, Any] = {
        "gather": lambda out: tt.gather(x, 0, at, out=out),
        "take": lambda out: tt.take(x, at, out=out),
        "index_select": lambda out: tt.index_select(x, 0, at, out=out),
        "masked_select": lambda out: tt.masked_select(x, x < 3, out=out),
    }
    for name, call in calls.items():
        with pytest.raises(tt.DTypeError, match=f"{name}: out is float64, the result float32"):
            call(tt.zeros(3, dtype=tt.float64))
        with pytest.raises(tt.ShapeError, match=f"{name}: out .*shares"):
            call(x[:3])
        with pytest.raises(tt.ShapeError, match=f"{name}: the tensor of shape .* overlaps itself"):
            call(tt.zeros(1).expand(3))
        out = tt.zeros(3)
        assert call(out) is out
        assert out.tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("on", DEVICES)
def test_parts_replaced(on: str) -> None:
    """Copies with one part replaced: x stays, gradients go where values went, a permuted x keeps its strides."""
    x = tt.arange(12.0, device=on).reshape(3, 4).requires_grad_()
    s = tt.tensor([-1.0, -2.0], device=on, requires_grad=True)
    y = x.as_strided_scatter(s, (2,), (5,), 1)
    assert y.tolist() == [[0.0, -1.0, 2.0, 3.0], [4.0, 5.0, -2.0, 7.0], [8.0, 9.0, 10.0, 11.0]]
    (y * tt.arange(12.0, device=on).reshape(3, 4)).sum().backward()
    assert s.grad.tolist() == [1.0, 6.0]
    assert x.grad.tolist() == [[0.0, 0.0, 2.0, 3.0], [4.0, 5.0, 0.0, 7.0], [8.0, 9.0, 10.0, 11.0]]
    t = x.detach().t()
    assert t.as_strided_scatter(s.detach(), (2,), (1,)).stride() == (1, 4)
    assert x.detach()[1:].as_strided_scatter(s.detach(), (2,), (4,), 4)[:, 0].tolist() == [-1.0, -2.0]  # offsets count from x's memory
    gapped = x.detach()[::2].as_strided_scatter(s.detach(), (2,), (8,))
    assert gapped.tolist() == [[-1.0, 1.0, 2.0, 3.0], [-2.0, 9.0, 10.0, 11.0]]
    assert gapped.stride() == (8, 1)
    assert gapped._base is None
    with pytest.raises(tt.ShapeError, match=r"as_strided_scatter: elements of x with strides \(0, 1\) share cells"):
        x.detach()[:1].expand(3, 4).as_strided_scatter(s.detach(), (2,), (1,))
    with pytest.raises(tt.ShapeError, match=r"select_scatter: src \(2,\) for a part of shape \(4,\); both must be the same"):
        x.select_scatter(s, 0, 1)
    assert x.detach().tolist() == np.arange(12.0).reshape(3, 4).tolist()


def test_more_keys_than_a_tile_has() -> None:
    """Both devices agree on runs that end in another tile than they start in, and so do their gradients; twice the same, bit for bit."""
    rng = np.random.default_rng(4)
    x, s, at = rng.uniform(0.9, 1.1, 7), rng.uniform(0.9, 1.1, 300), rng.integers(0, 7, 300)
    for reduce, include in (("sum", True), ("prod", True), ("amin", False)):
        found: dict[str, list[Any]] = {}
        for on in (*DEVICES, "cuda"):
            a, b = (tt.tensor(v, device=on, requires_grad=True) for v in (x, s))
            y = a.scatter_reduce(0, tt.tensor(at, device=on), b, reduce, include_self=include)
            y.backward(tt.arange(1.0, 8.0, dtype=tt.float64, device=on))
            now = [v.tolist() for v in (y.detach(), a.grad, b.grad)]
            if on in found:
                assert now == found[on]
            found[on] = now
        for ours, theirs in zip(found["cuda"], found["cpu"], strict=True):
            assert ours == pytest.approx(theirs, rel=1e-12)


def test_means_of_more_float16_than_float16_counts() -> None:
    x, half, at = tt.zeros(1, dtype=tt.float16), tt.full((70000,), 0.5, dtype=tt.float16), tt.zeros(70000, dtype=tt.int64)
    assert x.scatter_reduce(0, at, half, "mean", include_self=False).tolist() == [0.5]
    assert x.index_reduce(0, at, half, "mean", include_self=False).tolist() == [0.5]
