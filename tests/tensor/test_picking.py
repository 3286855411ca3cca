"""Picking and putting along a dim: negative places, sources that multiply, masks wider than what they fill."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as tt

DEVICES = ["cpu", "cuda"]


@pytest.mark.parametrize("on", DEVICES)
def test_take_along_dim_counts_from_the_end(on: str) -> None:
    x = tt.arange(9.0, device=on).view(3, 3)
    assert x.take_along_dim(tt.tensor([[-1, 0, 1]], device=on), 0).tolist() == [[6, 1, 5]]
    assert x.take_along_dim(tt.tensor([[-1], [0], [-3]], device=on), 1).tolist() == [[2], [3], [6]]
    y = tt.arange(9.0, device=on).view(3, 3).requires_grad_()
    y.take_along_dim(tt.tensor([[-1, -1, 1]], device=on), 0).sum().backward()
    assert y.grad.tolist() == [[0, 0, 0], [0, 0, 1], [1, 1, 0]]


def test_places_out_of_range_are_refused() -> None:
    x = tt.arange(9.0).view(3, 3)
    for places, dim in (([[-4, 0, 1]], 0), ([[3, 0, 1]], 0), ([[-1]], None)):
        with pytest.raises(IndexError, match="out of range"):
            x.take_along_dim(tt.tensor(places), dim)
    with pytest.raises(IndexError, match="index -1 at position 0"):
        tt.arange(3).gather(0, tt.tensor([-1]))


@pytest.mark.parametrize("on", DEVICES)
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_scatter_that_multiplies_and_adds(dtype: str, on: str) -> None:
    kind = getattr(tt, dtype)
    x, index = tt.full((3,), 2, dtype=kind, device=on), tt.tensor([0, 0, 1], device=on)
    source = tt.tensor([6, 2, 3], dtype=kind, device=on)
    assert x.scatter(0, index, source, reduce="multiply").tolist() == [24, 6, 2]
    assert x.scatter(0, index, source, reduce="add").tolist() == [10, 5, 2]
    assert x.scatter(0, index, value=3, reduce="multiply").tolist() == [18, 6, 2]
    wide = tt.full((2, 3), 2, dtype=kind, device=on)
    at, part = tt.tensor([[0, 0], [1, 2]], device=on), tt.tensor([[6, 2, 9], [3, 4, 9]], dtype=kind, device=on)
    assert wide.scatter_(1, at, part, reduce="multiply").tolist() == [[24, 2, 2], [2, 6, 8]]
    with pytest.raises(ValueError, match="reduce is 'mean'"):
        x.scatter(0, index, source, reduce="mean")


def test_gradients_of_a_scatter_that_multiplies() -> None:
    x = tt.tensor([2.0, 3.0, 4.0], dtype=tt.float64, requires_grad=True)
    s = tt.tensor([5.0, 0.0, 7.0], dtype=tt.float64, requires_grad=True)
    y = x.scatter(0, tt.tensor([0, 0, 1]), s, reduce="multiply")
    assert y.tolist() == [0, 21, 4]
    gx, gs = tt.autograd.grad(y.sum(), (x, s))
    assert gx.tolist() == [0, 7, 1]
    assert gs.tolist() == [0, 10, 3]


@pytest.mark.parametrize("on", DEVICES)
def test_an_empty_index_of_any_shape(on: str) -> None:
    x, none = tt.ones(3, 3, device=on), tt.zeros(0, dtype=tt.int64, device=on)
    assert x.gather(0, none).shape == (0,)
    assert x.gather(1, none.view(0, 4)).shape == (0, 4)
    assert (x.scatter(0, none, 5) == x).all()
    assert (x.scatter_add(0, none, tt.zeros(0, device=on)) == x).all()
    with pytest.raises(RuntimeError, match="number of dimensions"):
        x.gather(0, tt.zeros(2, dtype=tt.int64, device=on))


@pytest.mark.parametrize("on", DEVICES)
@pytest.mark.parametrize(
    ("x", "mask", "want"),
    [
        (np.zeros(3), [[True, False, True], [True, True, False]], [[0, 0, 1], [2, 3, 0]]),
        (np.zeros((2, 1)), [True, False, True], [[0, 0, 1], [2, 0, 3]]),
        (np.asarray(7.0), [True, False, True], [0, 7, 1]),
        (np.zeros((2, 2)), True, [[0, 1], [2, 3]]),
    ],
)
def test_masked_scatter_stretches_both_ways(x: Any, mask: Any, want: Any, on: str) -> None:
    source = tt.arange(6.0, device=on, dtype=tt.float64)
    got = tt.tensor(x, device=on).masked_scatter(tt.tensor(mask, device=on), source)
    assert got.tolist() == want


def test_masked_scatter_in_place_keeps_its_shape() -> None:
    with pytest.raises(RuntimeError, match="does not fit"):
        tt.zeros(3).masked_scatter_(tt.ones(2, 3, dtype=tt.bool), tt.arange(6.0))
    assert tt.zeros(2, 2).masked_scatter_(tt.tensor([True, False]), tt.arange(6.0)).tolist() == [[0, 0], [1, 0]]


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.int8])
def test_tensors_beside_whole_slices_pick_and_give_gradients_as_numpys_do(kind: type) -> None:
    rng, whole = np.random.default_rng(3), slice(None)
    values = rng.standard_normal((3, 4, 5)).astype(np.float32)
    i, j = np.array([2, 0, -1, 2], kind), np.array([[-3], [1]], kind)
    for index in [
        (i,),
        (whole, i),
        (whole, i, whole),
        (whole, whole, i),
        (whole, i, j),
        (i, j),
        (i, whole, j),
        (j,),
        (whole, j),
        (whole, whole, j),
        (i, slice(1, 3)),
    ]:
        x = tt.from_numpy(values.copy()).requires_grad_()
        y = x[tuple(tt.from_numpy(n) if isinstance(n, np.ndarray) else n for n in index)]
        assert np.array_equal(y.detach().numpy(), values[index]), index
        g = rng.standard_normal(y.shape).astype(np.float32)
        expected = np.zeros(values.shape)
        np.add.at(expected, index, g)
        y.backward(tt.from_numpy(g))
        assert np.allclose(x.grad.numpy(), expected, atol=1e-6), index
    with pytest.raises(IndexError, match="index 4 at position 1 is out of range for dim 1 of size 4"):
        tt.from_numpy(values)[:, tt.tensor([0, 4])]
