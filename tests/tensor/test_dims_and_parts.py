"""Dims that are left empty, parts counted by tensors, products over sizes of 1, einsum without letters, and calls with nothing to do."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as tt

DEVICES = ["cpu", "cuda"]


@pytest.mark.parametrize("on", DEVICES)
def test_no_dim_means_all_but_to_any_and_all(on: str) -> None:
    x = tt.arange(6.0, device=on).view(2, 3)
    truth = [[False, True, True], [True, True, True]]
    for empty in ((), []):
        assert x.any(empty).tolist() == x.all(dim=empty).tolist() == x.any(empty, keepdim=True).tolist() == truth
        assert x.sum(empty).item() == 15
        assert x.mean(empty).item() == 2.5
        assert x.amax(empty).item() == 5
        assert x.var(empty).item() == 3.5
        assert x.sum(empty, keepdim=True).shape == (1, 1)
        assert x.flip(empty).tolist() == x.tolist()
    assert x.squeeze(()).shape == (2, 3)
    assert tt.ones(1, 1, 2).squeeze(0, 1).shape == tt.ones(1, 1, 2).squeeze_(-2, 0).shape == (2,)  # several by place
    assert x.any().item() is True
    assert x.all().item() is False


@pytest.mark.parametrize("on", DEVICES)
def test_truth_of_uint8_is_uint8(on: str) -> None:
    x = tt.tensor([[0, 2], [3, 4]], dtype=tt.uint8, device=on)
    for y, want in ((x.any(), 1), (x.all(0), [0, 1]), (x.any(()), [[0, 1], [1, 1]])):
        assert y.dtype == tt.uint8
        assert y.tolist() == want
    assert x.int().any().dtype == tt.bool


@pytest.mark.parametrize("on", DEVICES)
def test_roll_over_all_and_over_dims(on: str) -> None:
    x = tt.arange(6, device=on).view(2, 3)
    for y in (x.roll(1), x.roll((1,)), x.roll(1, ()), x.roll((1,), ())):
        assert y.tolist() == [[5, 0, 1], [2, 3, 4]]
    assert x.roll((1, 1), (0, 1)).tolist() == [[5, 3, 4], [2, 0, 1]]
    assert x.roll((1, 1), (1, 1)).tolist() == [[1, 2, 0], [4, 5, 3]]
    for shifts, dims in (((1, 2), None), ((), ()), ((), None), ((1, 2), (0,))):
        with pytest.raises(RuntimeError, match="one for each"):
            x.roll(shifts, dims)


def test_parts_counted_by_tensors_and_numpy() -> None:
    x = tt.arange(3.0)
    for two in (2, np.int64(2), tt.tensor(2), np.array(2)):
        assert (
            [p.tolist() for p in x.tensor_split(two)]
            == [p.tolist() for p in x.split(two)]
            == [p.tolist() for p in x.chunk(two)]
            == [[0, 1], [2]]
        )
    for places in ((1, 2), [1, 2], tt.tensor([1, 2]), np.array([1, 2])):
        assert [p.tolist() for p in x.tensor_split(places)] == [[0], [1], [2]]
    assert [p.tolist() for p in tt.arange(4.0).view(2, 2).hsplit(tt.tensor(2))] == [[[0], [2]], [[1], [3]]]
    with pytest.raises(RuntimeError, match="0 parts"):
        x.tensor_split(tt.tensor(0))
    with pytest.raises(TypeError):
        x.tensor_split(tt.tensor(2.0))


@pytest.mark.parametrize("on", DEVICES)
def test_tensordot_stretches_sizes_of_one(on: str) -> None:
    a, b = tt.arange(2.0, device=on).view(2, 1), tt.arange(9.0, device=on).view(3, 3)
    assert tt.tensordot(a, b, ([1], [0])).tolist() == tt.tensordot(a, b, 1).tolist() == [[0, 0, 0], [9, 12, 15]]
    assert tt.tensordot(b, a.t(), ([0], [0])).tolist() == [[0, 9], [0, 12], [0, 15]]
    c = tt.arange(6.0, device=on).view(2, 3)
    assert tt.tensordot(c, c, tt.tensor(2)).item() == 55
    assert tt.tensordot(c, c.t(), tt.tensor([[1], [0]])).tolist() == [[5, 14], [14, 50]]
    with pytest.raises(RuntimeError, match=r"sizes \[3\] and \[2\] differ"):
        tt.tensordot(c, c, 1)


def test_gradient_of_tensordot_over_sizes_of_one() -> None:
    a, b = tt.ones(2, 1, requires_grad=True), tt.arange(9.0).view(3, 3).requires_grad_()
    tt.tensordot(a, b, 1).sum().backward()
    assert a.grad.tolist() == [[36], [36]]
    assert b.grad.tolist() == [[2] * 3] * 3


def test_einsum_without_letters() -> None:
    a, b = tt.arange(9.0).view(3, 3), tt.arange(6.0).view(3, 2)
    for got, same in (
        (tt.einsum(a, [0, 1], b, [1, 2], [0, 2]), "ij,jk->ik"), (tt.einsum(a, [0, 1], b, [1, 2]), "ij,jk"),
        (tt.einsum(a, (0, 51), b, (51, 2), (2, 0)), "ij,jk->ki"), (tt.einsum(a, [..., 1], b, [1, 2], [..., 2]), "...j,jk->...k"),
    ):  # fmt: skip
        assert got.tolist() == tt.einsum(same, a, b).tolist()
    assert tt.einsum(a, [0, 0], [0]).tolist() == [0, 4, 8]
    assert tt.einsum(a, [1, 0]).tolist() == a.t().tolist()
    assert tt.einsum(a, [30, 1], a, [1, 2]).tolist() == tt.einsum("ij,jk->ki", a, a).tolist()  # smaller numbers come first
    assert tt.einsum(a, [Ellipsis, 0], [0]).tolist() == [9, 12, 15]
    for bad in (52, -1, "i"):
        with pytest.raises(ValueError, match="is no number from 0 to 51"):
            tt.einsum(a, [0, bad])


@pytest.mark.parametrize("on", ["cpu", "cuda"])
def test_what_needs_no_work(on: str) -> None:
    x = tt.tensor([[1, 2, 3], [4, 5, 6]], device=on)
    assert x.nan_to_num().tolist() == x.tolist()
    assert x.nan_to_num() is not x
    y = x.float()
    assert y.view(tt.float32) is not None
    assert y.view(tt.float32).data_ptr() == y.data_ptr()
    assert x.permute(1, 0).tolist() == x.transpose().tolist() == np.transpose(x.cpu().numpy()).tolist()
    assert [part.tolist() for part in (*x.hsplit(1), *x.vsplit(1))] == [x.tolist()] * 2
    assert tt.inner(x, tt.tensor(2, device=on)).tolist() == (x * 2).tolist()
    assert tt.inner(tt.tensor(2, device=on), x).tolist() == (x * 2).tolist()
    assert tt.einsum("ij,ij->i", (y, y)).tolist() == (y * y).sum(1).tolist()
    assert tt.einsum("ij,ij->i", [y, y]).tolist() == (y * y).sum(1).tolist()
    assert tt.logsumexp(x, 1).dtype == tt.float32
    assert tt.logsumexp(x, 1).tolist() == pytest.approx(np.log(np.exp(np.array([[1, 2, 3], [4, 5, 6]])).sum(1)).tolist())
