"""embedding_bag and bag_tops beyond the samples: numpy alone, ties, NaN, long bags, both orders of derivatives, refusals."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as tt
from tritensor.autograd.gradcheck import gradcheck, gradgradcheck
from tritensor.kernels.indexing import embedding_bag as bags
from tritensor.nn import functional as F
from tritensor.ops.table import ops

rng = np.random.default_rng(0)


@pytest.mark.parametrize("padding", [None, 4])
def test_numpy_alone_gives_the_same(padding: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    weight, index = rng.integers(-3, 4, (30, 20)).astype(np.float64), rng.integers(0, 30, 300)
    weight[7, :3] = np.nan
    edges, scale = np.array([0, 0, 1, 5, 5, 140, 141, 290]), rng.integers(1, 4, 300).astype(np.float64)
    g = rng.integers(-3, 4, (7, 20)).astype(np.float64)

    def results() -> list[np.ndarray]:
        return [
            bags.cpu(weight, index, edges, scale, padding_idx=padding), bags.tops_cpu(weight, index, edges, padding_idx=padding),
            bags.weight_cpu_backward(g, index, edges, scale, weight.shape, padding),
        ]  # fmt: skip

    native = results()
    monkeypatch.setattr(bags, "add_rows", lambda *_: False)
    monkeypatch.setattr(bags, "max_rows", lambda *_: False)
    for mine, theirs in zip(results(), native, strict=True):
        np.testing.assert_array_equal(mine, theirs)  # sums of small whole numbers are exact


@pytest.mark.parametrize("on", ["cpu", "cuda"])
def test_the_first_of_equal_elements_learns(on: str) -> None:
    w = tt.tensor([[1.0, 5.0], [1.0, float("nan")], [0.0, 7.0]], device=on, requires_grad=True)
    at, offsets = tt.tensor([2, 1, 0, 1, 0], device=on), tt.tensor([0, 3, 3], device=on)
    y = F.embedding_bag(at, w, offsets, mode="max")
    assert y.tolist()[:2] == [[1.0, 7.0], [0.0, 0.0]]  # a NaN behind a number is none
    y[:, 0].sum().backward()
    assert w.grad.tolist() == [[0.0, 0.0], [2.0, 0.0], [0.0, 0.0]]
    assert np.isnan(F.embedding_bag(at, w, offsets, mode="max").tolist()[2][1])  # before it, it stays


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_derivatives(mode: str) -> None:
    w, at, offsets = tt.tensor(rng.standard_normal((5, 2)), requires_grad=True), tt.tensor([0, 1, 1, 4, 3]), tt.tensor([0, 2, 2])
    args = [w]
    if mode == "sum":
        args.append(tt.tensor(rng.standard_normal(5), requires_grad=True))

    def call(w: tt.Tensor, scale: tt.Tensor | None = None) -> tt.Tensor:
        return F.embedding_bag(at, w, offsets, mode=mode, per_sample_weights=scale, padding_idx=4)

    gradcheck(call, tuple(args))
    gradgradcheck(call, tuple(args))


def test_weights_that_change_before_the_gradient_is_asked() -> None:
    w = tt.ones(3, 2, requires_grad=True)
    y = F.embedding_bag(tt.tensor([[0, 2]]), w, mode="sum")
    with tt.no_grad():
        w.mul_(2)
    y.sum().backward()
    assert w.grad.tolist() == [[1.0, 1.0], [0.0, 0.0], [1.0, 1.0]]


def test_indices_that_lie_with_gaps() -> None:
    w, at = tt.tensor(rng.standard_normal((6, 3))), tt.tensor([[0, 1], [2, 3], [4, 5]])
    np.testing.assert_allclose(F.embedding_bag(at.t(), w, mode="sum").numpy(), w.numpy()[[[0, 2, 4], [1, 3, 5]]].sum(1))


def test_refusals() -> None:
    w, at, edges = tt.ones(3, 2), tt.tensor([0, 1]), tt.tensor([0, 2])
    for arguments, error, message in (
        ((w, tt.tensor([0, 3]), edges), IndexError, "embedding_bag: index 3 at position 1"),
        ((w, at, tt.tensor([0, 3])), tt.ArgumentError, "edges .* rise from 0 to 2"),
        ((w, at, tt.tensor([1, 0])), tt.ArgumentError, "edges .* rise"),
        ((w, at, edges.int()), tt.DTypeError, "edges are int32"),
        ((w, at, edges.reshape(1, 2)), tt.ShapeError, r"edges \(1, 2\)"),
        ((w, at.reshape(1, 2), edges), tt.ShapeError, "2 dimensions"),
        ((w[0], at, edges), tt.ShapeError, r"weight \(2,\)"),
        ((w.int(), at, edges), tt.DTypeError, "weight is int32"),
        ((w, at, edges, w[0][:1]), tt.ShapeError, r"scale float32\(1,\)"),
    ):
        with pytest.raises(error, match=message):
            ops.embedding_bag(*arguments, padding_idx=None)
    with pytest.raises(IndexError, match="padding_idx 3"):
        ops.embedding_bag(w, at, edges, padding_idx=3)


@pytest.mark.quick
@pytest.mark.parametrize("on", ["cpu", "cuda"])
def test_a_weight_of_what_is_left_out_learns_nothing(on: str) -> None:
    w = tt.tensor(rng.standard_normal((5, 3)), device=on)
    scale = tt.tensor([1.0, 2.0, 3.0, 4.0], dtype=tt.float64, device=on, requires_grad=True)
    at, offsets = tt.tensor([4, 1, 4, 2], device=on), tt.tensor([0, 2], device=on)
    y = F.embedding_bag(at, w, offsets, mode="sum", per_sample_weights=scale, padding_idx=4)
    up = tt.tensor(rng.standard_normal((2, 3)), device=on)
    y.backward(up)
    want = (w[at] * up[tt.tensor([0, 0, 1, 1], device=on)]).sum(1) * tt.tensor([0.0, 1.0, 0.0, 1.0], device=on)
    tt.testing.assert_close(scale.grad, want)
