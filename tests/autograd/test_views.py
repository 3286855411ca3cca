"""Views and in-place writes: which views may be written, how a change of shape reaches the graph, memory that overlaps, and the cost."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

import tritensor as tt
from tritensor.autograd import grad


def square() -> tt.Tensor:
    return tt.arange(4, dtype=tt.float64).reshape(2, 2).clone().requires_grad_()


# -- views that may not be written in the graph
def test_a_view_made_under_no_grad() -> None:
    w = tt.ones(2, dtype=tt.float64, requires_grad=True)
    base = tt.zeros(2, 2, dtype=tt.float64)
    with tt.no_grad():
        view = base[0]
        inner = view[:1]
    view.add_(1)  # nothing here is in the graph
    for v in (view, inner, view[1:]):
        with pytest.raises(RuntimeError, match="no_grad"):
            v.add_(w[:1])
    assert base.tolist() == [[1.0, 1.0], [0.0, 0.0]]
    base.mul_(w)
    assert view.requires_grad
    with tt.no_grad():
        assert (view + 1).tolist() == [2.0, 2.0]
        view.add_(1)
    with pytest.raises(RuntimeError, match="no_grad"):
        view + 1
    with pytest.raises(RuntimeError, match="no_grad"):
        view.mul_(2)


@pytest.mark.parametrize("parts", [lambda x: x.unbind(0), lambda x: x.split(1), lambda x: x.chunk(2), list, lambda x: x.split([1, 1])])
def test_one_of_several_views(parts: Callable[[tt.Tensor], list[tt.Tensor]]) -> None:
    base = square() * 1
    first = parts(base)[0]
    assert (first * 2).requires_grad
    with pytest.raises(RuntimeError, match="several"):
        first.mul_(2)
    with pytest.raises(RuntimeError, match="several"):
        first[..., :1].zero_()
    with tt.no_grad():
        first.mul_(2)
    base.mul_(2)
    with pytest.raises(RuntimeError, match="several"):
        first + 1
    constants = parts(tt.zeros(2, 2))
    constants[0].add_(1)
    with pytest.raises(RuntimeError, match="several"):
        constants[1].add_(tt.ones(2, requires_grad=True))


def test_equal_slices_may_be_written() -> None:
    x = square()
    base = x * 1
    for part in base.tensor_split(2):
        part.mul_(3)
    base.sum().backward()
    assert x.grad.tolist() == [[3.0, 3.0], [3.0, 3.0]]


def test_chunks_of_nothing_are_views() -> None:
    x = tt.zeros(0, 2)
    parts = x.chunk(3)
    assert [tuple(p.shape) for p in parts] == [(0, 2)] * 3
    assert all(p._base is x for p in parts)


def test_a_view_is_not_detached_in_place() -> None:
    x = square()
    y = x * 1
    with pytest.raises(RuntimeError, match="detach"):
        y[0].detach_()
    view = y[0]
    assert not y.detach_().requires_grad
    assert view.requires_grad


# -- the shape changed in place
@pytest.mark.parametrize("change", [lambda x: x.t_(), lambda x: x.transpose_(0, 1), lambda x: x.swapaxes_(0, 1), lambda x: x.unsqueeze_(0)])
def test_a_saved_tensor_that_changes_its_shape_is_refused(change: Callable[[tt.Tensor], tt.Tensor]) -> None:
    for x in (tt.arange(4, dtype=tt.float64).reshape(2, 2).clone(), square() * 1):
        w = tt.ones(2, 2, dtype=tt.float64, requires_grad=True)
        y = x * w
        change(x)
        assert x._version == 1
        with pytest.raises(RuntimeError, match="overwrote in place"):
            y.sum().backward()
    y = square().exp()
    change(y)
    with pytest.raises(RuntimeError, match="its output"):
        y.sum().backward()


def test_the_graph_follows_a_changed_shape() -> None:
    weights = tt.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=tt.float64)
    x = square()
    y = x * 1
    y.retain_grad()
    y.t_()
    (y * weights).sum().backward()
    assert x.grad.tolist() == [[1.0, 3.0], [2.0, 4.0]]
    assert y.grad.tolist() == weights.tolist()
    assert y.unsqueeze_(1).squeeze_(1).shape == (2, 2)


def test_views_of_a_tensor_that_changed_its_shape() -> None:
    weights = tt.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=tt.float64)
    x = square()
    y = x * 1
    row = y[0]
    y.t_()
    row.mul_(10)
    assert y.tolist() == [[0.0, 2.0], [10.0, 3.0]]
    (y * weights).sum().backward()
    assert x.grad.tolist() == [[10.0, 30.0], [2.0, 4.0]]
    x.grad = None
    y = x * 1
    row = y[0]
    y.unsqueeze_(1)
    y.mul_(3)
    (row * weights[0]).sum().backward()
    assert x.grad.tolist() == [[3.0, 6.0], [0.0, 0.0]]


def test_a_view_that_changes_its_shape() -> None:
    weights = tt.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=tt.float64)
    x = tt.arange(4, dtype=tt.float64).requires_grad_()
    y = x.clone()
    view = y.view(2, 2)
    view.t_()
    y.mul_(2)
    (view * weights).sum().backward()
    assert x.grad.tolist() == [2.0, 6.0, 4.0, 8.0]


def test_a_leaf_and_its_views_keep_their_shape() -> None:
    x = square()
    with pytest.raises(RuntimeError, match="leaf"):
        x.t_()
    with pytest.raises(RuntimeError, match="view of a leaf"):
        x[:].t_()
    with tt.no_grad():
        x.t_()
    assert x.is_leaf
    (x * tt.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=tt.float64)).sum().backward()
    assert x.grad.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert x.tolist() == [[0.0, 2.0], [1.0, 3.0]]


def test_a_view_of_a_leaf_that_is_itself_a_view_is_not_written() -> None:
    leaf = tt.ones(4)[:2].requires_grad_()
    with pytest.raises(RuntimeError, match="view of a leaf"):
        leaf[:1].add_(1)
    assert leaf.tolist() == [1.0, 1.0]


def test_a_leaf_that_changes_its_shape_after_use() -> None:
    x = tt.zeros(2, 3, requires_grad=True)
    y = x + 1
    with tt.no_grad():
        x.t_()
    with pytest.raises(RuntimeError, match="changed its shape"):
        y.sum().backward()
    with pytest.raises(RuntimeError, match="changed its shape"):
        (tt.zeros(2, 3) + y + (x + 1).t() * 0 + (x * 1).t()).sum().backward()
    assert x.grad is None


def test_under_no_grad_a_changed_shape_stays_in_the_graph() -> None:
    x = square()
    y = x * 1
    with tt.no_grad():
        y.t_()
    (y * tt.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=tt.float64)).sum().backward()
    assert x.grad.tolist() == [[1.0, 3.0], [2.0, 4.0]]


# -- memory that several elements share
OVERLAPPING: list[Callable[[], tt.Tensor]] = [
    lambda: tt.zeros(3, 1).expand(3, 3),
    lambda: tt.zeros(5).as_strided((3, 3), (1, 1)),
    lambda: tt.zeros(5).unfold(0, 3, 1),
    lambda: tt.zeros(9).as_strided((2, 3), (4, 2)),
]


@pytest.mark.parametrize("make", OVERLAPPING)
@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.add_(1),
        lambda x: x.copy_(tt.ones(x.shape)),
        lambda x: x.uniform_(),
        lambda x: tt.add(tt.ones(x.shape), 1, out=x),
    ],
)
def test_a_write_to_shared_cells_is_refused(make: Callable[[], tt.Tensor], write: Callable[[tt.Tensor], object]) -> None:
    x = make()
    with pytest.raises(RuntimeError, match=r"share one cell.*clone"):
        write(x)
    assert not x.any()


def test_strides_that_interleave_share_nothing() -> None:
    base = tt.zeros(9)
    base.as_strided((2, 3), (3, 2)).add_(1)  # cells 0 2 4 3 5 7
    assert base.tolist() == [1.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 0.0]
    base.zero_()
    base[::2][1:].add_(1)
    tt.zeros(2, 0, 3).expand(2, 0, 3).add_(1)
    assert base.sum().item() == 4.0


@pytest.mark.parametrize("on", ["cpu", "cuda"])
def test_one_value_for_all_cells_may_be_written(on: str) -> None:
    x = tt.ones(3, 1, device=on, requires_grad=True)
    y = x * 1
    y.expand(3, 4).fill_(2.0)
    assert y.tolist() == [[2.0]] * 3
    y.expand(3, 4).zero_()
    y.sum().backward()
    assert y.tolist() == x.grad.tolist() == [[0.0]] * 3


# -- many views
def _time_of_writes(n: int) -> float:
    """Of this process alone: what else runs beside it counts nothing."""
    x = tt.ones(n, 2, dtype=tt.float64, requires_grad=True)
    y = x * 1
    views = [y[i] for i in range(n)]
    start = time.process_time()
    for view in views:
        view.mul_(2)
    took = time.process_time() - start
    if n <= 300:
        y.sum().backward()
        assert x.grad.tolist() == [[2.0, 2.0]] * n
    return took


def test_writes_through_many_live_views_cost_linear() -> None:
    _time_of_writes(10)
    ratios = [_time_of_writes(1200) / _time_of_writes(300) for _ in range(3)]
    assert min(ratios) < 9, ratios  # 4 is linear, 16 is quadratic


def test_dead_views_are_forgotten() -> None:
    x = tt.ones(4, requires_grad=True)
    y = x * 1
    for _ in range(1000):
        y[:2].mul_(1)
    views = y._extra.views
    assert len(views.fresh) + len(views.stale) < 200


def test_a_view_finds_the_graph_of_the_last_write_only() -> None:
    x = tt.ones(2, dtype=tt.float64, requires_grad=True)
    y = x * 1
    view = y[:1]
    first = view * 1
    for factor in (2, 3, 5):
        y.mul_(factor)
    assert grad(first.sum(), x, retain_graph=True)[0].tolist() == [1.0, 0.0]
    assert grad(view.sum(), x)[0].tolist() == [30.0, 0.0]
    assert type(view) is type(y)


def test_a_value_that_does_not_fit_is_refused() -> None:
    x = tt.zeros(2, 3)
    for write in (lambda: x.add_(tt.ones(1, 2, 3)), lambda: x.copy_(tt.ones(1, 2, 3)), lambda: x.fill_(tt.ones(3))):
        with pytest.raises(RuntimeError, match="shape"):
            write()
    x[:] = tt.ones(1, 2, 3)
    assert x.fill_(tt.tensor(2.0)).sum().item() == 12.0


def test_a_resized_out_stays_a_view_where_its_base_reaches() -> None:
    x = tt.ones(4, requires_grad=True)
    base = tt.zeros(4)
    out, beyond = base[:2], base[2:]
    with pytest.warns(UserWarning, match="resized"):
        tt.add(tt.ones(3), 1, out=out)
    with pytest.warns(UserWarning, match="resized"):
        tt.add(tt.ones(3), 2, out=beyond)
    assert base.tolist() == [2.0, 2.0, 3.0, 3.0]
    base.mul_(x)
    (out * 5).sum().backward()
    assert x.grad.tolist() == [10.0, 10.0, 15.0, 0.0]
    assert out._base is base
    with pytest.raises(tt.GradError, match="reaches beyond what its base has been since one of them was resized"):
        _ = beyond.grad_fn


def test_a_view_of_a_written_base_may_be_asked_for_gradients() -> None:
    w = tt.ones(3, requires_grad=True)
    base = tt.zeros(2, 3)
    view = base[1]
    base[1] = w * 2
    assert view.requires_grad_() is view
    assert view.requires_grad
    (view * 3).sum().backward()
    assert w.grad.tolist() == [6.0, 6.0, 6.0]


@pytest.mark.parametrize("place", ["_tracked", "_node"])
def test_a_stale_view_takes_its_place_before_it_is_given_another(place: str) -> None:
    """Its base was written: whatever is set on it, it knows the base's node of now first."""
    x = tt.ones(4, 3, requires_grad=True) * 1
    view = x[1:]
    x.mul_(2)
    assert type(view) is not tt.Tensor, "it waits to be asked"
    setattr(view, place, getattr(x, place))
    assert type(view) is tt.Tensor
    assert getattr(view, place) is getattr(x, place)
    assert view._node is (x._node if place == "_node" else view.grad_fn)
    assert view.grad_fn is not None


@pytest.mark.parametrize("make", [lambda x: x[1:], lambda x: x.t(), lambda x: x.as_strided((2,), (1,)), lambda x: x.unfold(0, 2, 1)])
def test_views_that_are_gone_are_forgotten(make: Callable[[tt.Tensor], tt.Tensor]) -> None:
    """A base that thousands of views were made of holds places for the living, and for no more dead than it swept last."""
    base = tt.ones(4, 3, requires_grad=True) * 1
    living = [make(base) for _ in range(40)]
    for _ in range(3000):
        make(base)
    assert len(base._extra.views.fresh) <= 128
    base.mul_(2)
    assert all(view.grad_fn is not None for view in living)
    for _ in range(300):
        make(base)
        base.mul_(1)
    assert len(base._extra.views.stale) <= 200
