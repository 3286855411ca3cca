"""Views share memory on both devices, cost no launch, and say why they are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tritensor.cuda.runtime import active

DEVICES = ["cpu", "cuda"]
VIEWS: list[Callable[[Any], Any]] = [
    lambda x: x.view(6, 4),
    lambda x: x.view(-1),
    lambda x: x.t(),
    lambda x: x.T,
    lambda x: x.mT,
    lambda x: x.transpose(0, 1),
    lambda x: x.permute(1, 0),
    lambda x: x.movedim(0, 1),
    lambda x: x.swapaxes(0, 1),
    lambda x: x.unsqueeze(1),
    lambda x: x.unsqueeze(1).squeeze(1),
    lambda x: x.expand(3, 4, 6),
    lambda x: x.narrow(1, 1, 3),
    lambda x: x.select(0, 1),
    lambda x: x.chunk(2, 1)[1],
    lambda x: x.split([1, 3])[1],
    lambda x: x.tensor_split(3)[2],
    lambda x: x.unbind(1)[2],
    lambda x: x.unfold(1, 3, 3),
    lambda x: x.diagonal(1),
    lambda x: x.as_strided((2, 3), (1, 5), 2),
    lambda x: x.flatten(),
    lambda x: x.unflatten(1, (2, 3)),
    lambda x: x[1],
    lambda x: x[::2, ::-1],
    lambda x: x[..., None, 2],
    lambda x: x.view(4, 2, 3)[:, 1].t(),
]


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every kernel that is launched."""
    found: list[Any] = []
    emulated = active.runtime()
    real = emulated.launch

    def launch(call: Any) -> None:
        found.append(call.kernel)
        real(call)

    monkeypatch.setattr(emulated, "launch", launch)
    return found


@pytest.mark.parametrize("on", DEVICES)
@pytest.mark.parametrize("i", range(len(VIEWS)))
def test_shares_memory_without_a_launch(i: int, on: str, launches: list[Any]) -> None:
    x = tt.arange(24.0, device=on).view(4, 6)
    launches.clear()
    y = VIEWS[i](x)
    assert not launches
    np.testing.assert_array_equal(y.cpu().numpy(), VIEWS[i](tt.arange(24.0).view(4, 6)).numpy())
    x.fill_(7.0)
    assert (y == 7).all()
    if i != 11:  # an expanded view has elements in common
        y.zero_()
        assert (x == 0).sum().item() >= 1
        assert (x == 0).sum().item() + (x == 7).sum().item() == 24


@pytest.mark.parametrize("on", DEVICES)
def test_a_refused_view_names_the_strides(on: str) -> None:
    x = tt.zeros(2, 3, device=on).t()
    with pytest.raises(
        RuntimeError, match=r"^view: shape \(3, 2\) with strides \(1, 3\) has no view of shape \(6,\); use reshape, which copies$"
    ):
        x.view(6)
    assert x.reshape(6).shape == (6,)
    with pytest.raises(ValueError, match=r"view: shape \(2, 3\) has 6 elements, shape \(4,\) needs 4"):
        x.t().view(4)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda x: x.view(-1, -1), "one -1"),
        (lambda x: x.view(5, -1), "cannot hold them"),
        (lambda x: x.permute(0, 0), "each of its 2 dimensions once"),
        (lambda x: x.transpose(0, 2), "dim 2 is out of range"),
        (lambda x: x.expand(5, 3), "size 2 cannot become 5"),
        (lambda x: x.squeeze(3), "dim 3 is out of range"),
        (lambda x: x.narrow(1, 2, 2), "start 2, length 2"),
        (lambda x: x.split([1, 3], 1), "do not add up to 3"),
        (lambda x: x.unfold(0, 3, 1), "size 3, step 1"),
        (lambda x: x.as_strided((3, 3), (2, 1)), "read elements 0 to 6 of input's 6"),
        (lambda x: x[:, ::2].detach().as_strided((2,), (1, 1)), "gaps"),
        (lambda x: x.diagonal(0, 1, 1), "both 1"),
        (lambda x: x.flatten(1, 0), "comes after"),
        (lambda x: tt.cat([x, x.t()]), r"tensor 1 is \(3, 2\), tensor 0 is \(2, 3\)"),
        (lambda x: tt.stack([x, x[0]]), r"tensor 1 is \(3,\)"),
        (lambda x: tt.cat([]), "no tensors"),
        (lambda x: x.repeat(2), "a number of 0 or more for each"),
    ],
)
def test_refused(call: Callable[[Any], Any], says: str) -> None:
    with pytest.raises((ValueError, IndexError), match=says):
        call(tt.zeros(2, 3))


def test_view_as_another_type() -> None:
    x = tt.tensor([1.0])
    assert x.view(tt.int32).item() == 0x3F800000
    with pytest.raises(RuntimeError, match=r"float32 of shape .* as float64: the last size"):
        x.view(tt.float64)


def test_in_place_views_of_the_tensor_itself() -> None:
    x = tt.arange(6.0).view(2, 3)
    y = x.clone()
    assert y.t_() is y
    assert y.tolist() == x.t().tolist()
    assert y.unsqueeze_(0).shape == (1, 3, 2)
    assert y.squeeze_().shape == (3, 2)
    assert y.transpose_(0, 1).tolist() == x.tolist()


def test_overlapping_strides_sum_their_gradients() -> None:
    x = tt.arange(5.0, requires_grad=True)
    x.as_strided((3, 3), (1, 1)).sum().backward()
    assert x.grad.tolist() == [1, 2, 3, 2, 1]
    x.grad = None
    x.unfold(0, 3, 1).sum().backward()
    assert x.grad.tolist() == [1, 2, 3, 2, 1]


def test_even_splits() -> None:
    x = tt.arange(24).reshape(2, 3, 4)
    n = x.numpy()
    for ours, theirs in ((x.hsplit(3), np.hsplit(n, 3)), (x.vsplit(2), np.vsplit(n, 2)), (tt.dsplit(x, [1, 3]), np.dsplit(n, [1, 3]))):
        assert [p.tolist() for p in ours] == [p.tolist() for p in theirs]
        assert all(p._base is x._base for p in ours)
    assert [p.shape for p in x.split_with_sizes([1, 3], 2)] == [(2, 3, 1), (2, 3, 3)]
    with pytest.raises(RuntimeError, match="hsplit: 2 equal parts of dim 1 of size 3"):
        x.hsplit(2)


@pytest.mark.quick
@pytest.mark.parametrize("offset", [-2, 3, 7])
def test_a_diagonal_beyond_the_matrix_is_empty(offset: int) -> None:
    for on in ("cpu", "cuda"):
        x = tt.zeros(4, 2, 3, device=on)
        assert x.diagonal(offset, 1, 2).shape == (4, 0)
