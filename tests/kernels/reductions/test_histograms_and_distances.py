"""Histograms of many elements, counts on both devices, distances by every road of the CPU."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tritensor as tt

RNG = np.random.default_rng(5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bins", [1, 7, 100])
def test_many_elements(dtype: Any, bins: int) -> None:
    x = RNG.normal(size=40_000).astype(dtype)
    found = tt.histogram(tt.tensor(x), bins)
    edges = found.bin_edges.numpy()
    np.testing.assert_array_equal(found.hist.numpy(), np.histogram(x, edges)[0])
    assert tt.histc(tt.tensor(x), bins).sum().item() == x.size
    given = np.sort(RNG.normal(size=bins + 1)).astype(dtype)
    np.testing.assert_array_equal(tt.histogram(tt.tensor(x), tt.tensor(given)).hist.numpy(), np.histogram(x, given)[0])


@pytest.mark.parametrize("on", ["cpu", "cuda"])
@pytest.mark.parametrize("dtype", [tt.float16, tt.bfloat16, tt.float32])
def test_elements_on_the_edges(on: str, dtype: tt.dtype) -> None:
    x = tt.tensor([-1.0, -0.5, 0.0, 0.25, 0.5, 1.0, 1.5, math.nan, -math.inf], device=on).to(dtype)
    assert tt.histc(x, 4, -1, 1).tolist() == [1, 1, 2, 2]
    assert tt.histogram(x, 4, range=(-1.0, 1.0)).hist.tolist() == [1, 1, 2, 2]
    assert tt.histogram(x, tt.tensor([-1.0, 0.0, 0.25, 2.0], device=on).to(dtype)).hist.tolist() == [2, 1, 4]


@pytest.mark.parametrize("on", ["cpu", "cuda"])
def test_counts_are_the_same_on_both_devices(on: str) -> None:
    keys, weights = RNG.integers(0, 300, size=5000), RNG.normal(size=5000).astype(np.float32)
    x = tt.tensor(keys, device=on)
    np.testing.assert_array_equal(tt.bincount(x, minlength=400).cpu().numpy(), np.bincount(keys, minlength=400))
    found = tt.bincount(x, tt.tensor(weights, device=on)).cpu()
    assert found.dtype == tt.float32
    np.testing.assert_allclose(found.numpy(), np.bincount(keys, weights), rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(tt.bincount(x, tt.tensor(keys, device=on)).cpu().numpy(), np.bincount(keys, keys))


def exact(a: np.ndarray, b: np.ndarray, p: float) -> np.ndarray:
    d = np.abs(a[..., :, None, :].astype(np.float64) - b[..., None, :, :])
    return np.linalg.norm(d, p, axis=-1) if p else np.count_nonzero(d, axis=-1)


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 2.0, 3.0, math.inf])
@pytest.mark.parametrize(("rows", "others", "depth"), [(4, 5, 3), (30, 90, 4), (300, 20, 40), (70, 64, 1)])
def test_distances(p: float, rows: int, others: int, depth: int) -> None:
    a, b = RNG.normal(size=(2, rows, depth)).astype(np.float32) + 10, RNG.normal(size=(2, others, depth)).astype(np.float32) + 10
    b[:, :3] = a[:, :3]
    found = tt.cdist(tt.tensor(a), tt.tensor(b), p, "donot_use_mm_for_euclid_dist").numpy()
    np.testing.assert_allclose(found, exact(a, b, p), rtol=2e-5 if p == 0.5 else 2e-6, atol=1e-6)
    assert (found[:, range(3), range(3)] == 0).all()


@pytest.mark.parametrize("on", ["cpu", "cuda"])
@pytest.mark.parametrize("p", [1.0, 2.0])
def test_distances_of_a_batch_whose_dimensions_are_turned(p: float, on: str) -> None:
    a, b = RNG.normal(size=(2, 3, 4, 5)), RNG.normal(size=(2, 3, 5, 6))
    x, y = tt.tensor(a, device=on).transpose(0, 1), tt.tensor(b, device=on).permute(1, 0, 3, 2)
    np.testing.assert_allclose(tt.cdist(x, y, p).cpu().numpy(), exact(a.swapaxes(0, 1), b.transpose(1, 0, 3, 2), p), rtol=1e-9)


def test_distances_of_rows_that_are_near_keep_their_digits() -> None:
    a = RNG.normal(size=(100, 8)).astype(np.float32)
    b = a * np.float32(1 + 1e-6)
    for x in (a, np.where(a > 2.5, np.float32(np.inf), a)):
        found = tt.cdist(tt.tensor(x), tt.tensor(b), 2.0, "donot_use_mm_for_euclid_dist").numpy()
        np.testing.assert_allclose(found, exact(x, b, 2.0), rtol=2e-6)


@pytest.mark.parametrize("mode", ["use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"])
@pytest.mark.parametrize("p", [1.0, 2.0, 4.0, math.inf])
def test_gradients_of_distances_of_many_rows(p: float, mode: str) -> None:
    a, b = RNG.normal(size=(50, 6)), RNG.normal(size=(80, 6))
    x, z, h = tt.tensor(a).requires_grad_(), tt.tensor(b).requires_grad_(), RNG.normal(size=(50, 80))
    (tt.cdist(x, z, p, mode) * tt.tensor(h)).sum().backward()
    d = a[:, None] - b
    dist = np.linalg.norm(np.abs(d), p, axis=-1)[..., None]
    slope = np.sign(d) * (np.abs(d) == dist if math.isinf(p) else (np.abs(d) / dist) ** (p - 1))
    np.testing.assert_allclose(x.grad.numpy(), (h[..., None] * slope).sum(1), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(z.grad.numpy(), -(h[..., None] * slope).sum(0), rtol=1e-9, atol=1e-11)


def test_distances_of_equal_rows_have_no_slope() -> None:
    x = tt.tensor([[1.0, 2.0], [1.0, 2.0], [0.0, 1.0]]).requires_grad_()
    (g,) = tt.autograd.grad(tt.cdist(x, x).sum(), x)
    assert tt.isfinite(g).all().item()
    (g,) = tt.autograd.grad(tt.pdist(x).sum(), x, create_graph=True)
    np.testing.assert_allclose(g.detach().numpy(), [[0.70710677] * 2, [0.70710677] * 2, [-1.4142135] * 2], rtol=1e-6)


def test_every_way_of_computing_distances_has_a_number_and_a_word() -> None:
    x, y = tt.tensor([[0.0, 0.0], [3.0, 4.0]]), tt.tensor([[0.0, 0.0]])
    words = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")
    for mode in (None, 0, 1, 2, *words):
        assert tt.cdist(x, y, compute_mode=mode).tolist() == [[0.0], [5.0]]
    with pytest.raises(tt.ArgumentError, match="compute_mode 3"):
        tt.cdist(x, y, compute_mode=3)
