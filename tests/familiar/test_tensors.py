"""Tensors in every PyTorch introduction's lines, with only the import changed."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as torch


def test_making_tensors() -> None:
    assert torch.Tensor(5, 3).size() == (5, 3)
    assert torch.empty(5, 3).dtype == torch.float32
    r = torch.rand(5, 3)
    assert r.min().item() >= 0
    assert r.max().item() < 1
    z = torch.zeros(5, 3, dtype=torch.long)
    assert z.dtype == torch.int64
    assert z.sum().item() == 0
    t = torch.tensor([5.5, 3])
    assert t.tolist() == [5.5, 3.0]
    assert t.dtype == torch.float32
    ones = t.new_ones(2, 3, dtype=torch.double)
    assert ones.dtype == torch.float64
    assert ones.shape == (2, 3)
    like = torch.randn_like(ones, dtype=torch.float)
    assert like.shape == ones.shape
    assert like.dtype == torch.float32
    assert torch.eye(3).sum().item() == 3.0
    assert torch.arange(0, 10, 2).tolist() == [0, 2, 4, 6, 8]
    assert torch.linspace(0, 1, 5).tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert torch.full((2, 2), 7.0).tolist() == [[7.0, 7.0], [7.0, 7.0]]


def test_size_is_a_tuple() -> None:
    x = torch.rand(5, 3)
    rows, columns = x.size()
    assert (rows, columns) == (5, 3)
    assert isinstance(x.size(), torch.Size)
    assert isinstance(x.size(), tuple)
    assert x.size(0) == 5
    assert x.size(-1) == 3
    assert x.shape[1] == 3
    assert x.numel() == 15
    assert x.dim() == 2


def test_four_ways_to_add() -> None:
    x, y = torch.rand(5, 3), torch.rand(5, 3)
    want = x.numpy() + y.numpy()
    result = torch.empty(5, 3)
    torch.add(x, y, out=result)
    for got in (x + y, torch.add(x, y), result):
        np.testing.assert_array_equal(got.numpy(), want)
    before = y
    y.add_(x)
    assert before is y
    np.testing.assert_array_equal(y.numpy(), want)


def test_out_of_another_shape_is_resized() -> None:
    out = torch.Tensor(5, 3)
    with pytest.warns(UserWarning, match="resized"):
        torch.add(torch.ones(2), torch.ones(2), out=out)
    assert out.tolist() == [2.0, 2.0]


def test_in_place_names() -> None:
    x, y = torch.ones(2, 2), torch.full((2, 2), 3.0)
    x.copy_(y)
    assert x.tolist() == y.tolist()
    x.t_()
    x.zero_()
    assert x.sum().item() == 0
    x.fill_(2).mul_(3).sub_(1).div_(5)
    assert x.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert torch.zeros(1000).uniform_(2, 3).min().item() >= 2
    assert abs(torch.zeros(1000).normal_(5, 0.1).mean().item() - 5) < 0.1


def test_indexing_like_numpy() -> None:
    x = torch.arange(15.0).view(5, 3)
    assert x[:, 1].tolist() == [1.0, 4.0, 7.0, 10.0, 13.0]
    assert x[1, 2].item() == 5.0
    assert x[-1].tolist() == [12.0, 13.0, 14.0]
    assert x[::2, :2].tolist() == [[0.0, 1.0], [6.0, 7.0], [12.0, 13.0]]
    assert x[x > 11].tolist() == [12.0, 13.0, 14.0]
    x[:, 1] = 0
    assert x[:, 1].sum().item() == 0
    x[torch.tensor([0, 2])] = -1.0
    assert x[0].tolist() == [-1.0] * 3
    assert x[2].tolist() == [-1.0] * 3


def test_view_shares_memory() -> None:
    x = torch.randn(4, 4)
    y, z = x.view(16), x.view(-1, 8)
    assert y.size() == (16,)
    assert z.size() == (2, 8)
    y[0] = 100.0
    assert x[0, 0].item() == 100.0
    assert z[0, 0].item() == 100.0
    assert x.data_ptr() == z.data_ptr()
    with pytest.raises(RuntimeError, match="view"):
        x.t().view(16)
    assert x.t().reshape(16).shape == (16,)


def test_numpy_bridge() -> None:
    a = torch.ones(5)
    b = a.numpy()
    a.add_(1)
    assert b.tolist() == [2.0] * 5
    c = np.ones(5)
    d = torch.from_numpy(c)
    np.add(c, 1, out=c)
    assert d.tolist() == [2.0] * 5
    assert d.dtype == torch.float64
    d[0] = 9.0
    assert c[0] == 9.0
    assert np.asarray(a).sum() == 10.0
    assert torch.as_tensor(c).data_ptr() == d.data_ptr()
    assert torch.tensor(c).data_ptr() != d.data_ptr()


def test_item_and_python_numbers() -> None:
    x = torch.tensor([2.5])
    assert x.item() == 2.5
    assert float(x) == 2.5
    assert int(x) == 2
    assert bool(x)
    assert f"{torch.tensor(1.25).item():.1f}" == "1.2"
    assert f"{torch.tensor(1.25):.2f}" == "1.25"


def test_join_and_part() -> None:
    x = torch.arange(12.0).view(3, 4)
    assert torch.cat((x, x), 0).size() == (6, 4)
    assert torch.cat([x, x, x], dim=1).size() == (3, 12)
    assert torch.stack([x, x]).size() == (2, 3, 4)
    parts = torch.chunk(x, 2, 1)
    assert [p.size() for p in parts] == [(3, 2), (3, 2)]
    assert parts[1].tolist() == [[2.0, 3.0], [6.0, 7.0], [10.0, 11.0]]
    assert [p.size(0) for p in torch.split(torch.arange(7), 3)] == [3, 3, 1]
    assert x.t().size() == (4, 3)
    assert x.transpose(0, 1)[1].tolist() == [1.0, 5.0, 9.0]
    assert x.unsqueeze(0).size() == (1, 3, 4)
    assert x.unsqueeze(0).squeeze().size() == (3, 4)
    assert x.permute(1, 0).size() == (4, 3)
    assert x.expand(2, 3, 4).size() == (2, 3, 4)
    assert x.repeat(2, 1).size() == (6, 4)


def test_reductions() -> None:
    x = torch.tensor([[1.0, 5.0], [4.0, 2.0]])
    assert x.sum().item() == 12.0
    assert x.mean().item() == 3.0
    assert torch.max(x).item() == 5.0
    values, indices = torch.max(x, 1)
    assert values.tolist() == [5.0, 4.0]
    assert indices.tolist() == [1, 0]
    assert x.max(dim=0).indices.tolist() == [1, 0]
    assert x.argmax().item() == 1
    assert x.sum(dim=0).tolist() == [5.0, 7.0]
    assert x.sum(0, keepdim=True).shape == (1, 2)
    assert x.norm().item() == pytest.approx(46**0.5)
    assert x.std().item() == pytest.approx(np.std([1, 5, 4, 2], ddof=1))
    assert x.mm(x).tolist() == [[21.0, 15.0], [12.0, 24.0]]
    assert torch.dot(x[0], x[1]).item() == 14.0
    assert x.mv(x[0]).tolist() == [26.0, 14.0]


def test_moving_between_devices() -> None:
    x = torch.ones(3)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    y = torch.ones_like(x, device=device)
    z = x.to(device) + y
    assert z.to("cpu", torch.double).tolist() == [2.0, 2.0, 2.0]
    assert x.to("cpu") is x
    assert x.cpu() is x


def test_how_it_prints() -> None:
    assert repr(torch.tensor([1.0, 2.0])) == "tensor([1., 2.])"
    assert repr(torch.tensor([1, 2])) == "tensor([1, 2])"
    assert "requires_grad=True" in repr(torch.ones(2, requires_grad=True))
    assert "grad_fn=<AddBackward0>" in repr(torch.ones(2, requires_grad=True) + 2)


def test_same_seed_same_numbers() -> None:
    torch.manual_seed(3)
    a = torch.rand(4)
    torch.manual_seed(3)
    assert torch.rand(4).tolist() == a.tolist()


def test_numbers_in_text() -> None:
    loss = torch.tensor(1.5, requires_grad=True) * 2
    assert f"{loss} {loss:.3f} {torch.tensor(3)} {torch.tensor(True)}" == "3.0 3.000 3 True"
    assert f"{torch.tensor([1.5])}" == "tensor([1.5000])"
    assert torch.numel(torch.ones(2, 3)) == 6
    assert torch.is_floating_point(loss)
    assert round(torch.pi, 5) == 3.14159
    assert torch.ones(3)[torch.newaxis].shape == (1, 3)
    assert -torch.inf < torch.e
    assert torch.nan != torch.nan
