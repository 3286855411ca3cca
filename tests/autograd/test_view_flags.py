"""Flags of tensors (requires_grad, is_leaf, grad_fn): of views taken outside the graph, of bases that leave it, of empty arguments."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

import tritensor as tt
from tritensor.autograd import grad

VIEWS = {
    "view": lambda x: x.view(-1), "index": lambda x: x[0], "t": lambda x: x.t(), "expand": lambda x: x.expand(2, 2, 3), "unbind": lambda x: x.unbind(0)[1],
    "split": lambda x: x.split(1)[0], "iteration": lambda x: next(iter(x)), "as_strided": lambda x: x.as_strided((2,), (1,)), "narrow": lambda x: x.narrow(0, 0, 1),
    "view of a view": lambda x: x.view(-1)[1:], "as_strided of a view": lambda x: x.view(-1).as_strided((2,), (1,)), "diagonal": lambda x: x.diagonal(),
    "unfold": lambda x: x.unfold(1, 2, 2), "reshape to itself": lambda x: x.reshape(2, 3), "squeeze": lambda x: x.squeeze(), "None": lambda x: x[None], "...": lambda x: x[...],
}  # fmt: skip
EACH_VIEW = pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
BASES = pytest.mark.parametrize("computed", [False, True])


def leaf() -> tt.Tensor:
    return tt.ones(2, 3, dtype=tt.float64, requires_grad=True)


def flags(x: tt.Tensor) -> tuple[bool, bool, bool]:
    return x.requires_grad, x.is_leaf, x.grad_fn is not None


@EACH_VIEW
@BASES
def test_a_view_taken_under_no_grad_requires_grad_as_its_base_does(view: Callable[[tt.Tensor], tt.Tensor], computed: bool) -> None:
    x = leaf()
    base = x * 2 if computed else x
    with tt.no_grad():
        v = view(base)
        inner = v[:1]
        assert not (v * 2).requires_grad
    assert flags(v) == flags(inner) == (True, True, False)
    assert flags(v[:1]) == flags(v * 2) == (True, False, True)
    (v * 2).sum().backward()  # which goes nowhere
    assert v.grad is None
    assert x.grad is None
    with pytest.raises(RuntimeError, match="no_grad"):
        v.mul_(2)
    with pytest.raises(RuntimeError, match="view"):
        v.detach_()
    with tt.no_grad():
        v.detach().zero_()
        assert v.numpy().sum() == 0
    assert v.requires_grad_(False).requires_grad


@EACH_VIEW
def test_a_view_of_what_is_outside_the_graph_is_outside(view: Callable[[tt.Tensor], tt.Tensor]) -> None:
    with tt.no_grad():
        v, whole = view(tt.ones(2, 3)), view(tt.ones(2, 3, dtype=tt.int64))
    assert flags(v) == flags(whole) == (False, True, False)
    for outside in (lambda x: x.detach(), lambda x: x.data, lambda x: x.unsafe_split(1)[0]):
        with tt.no_grad():
            assert flags(view(outside(leaf())) if outside(leaf()).shape == (2, 3) else outside(leaf())) == (False, True, False)


def test_a_view_taken_inside_a_function() -> None:
    seen = []

    class Double(tt.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            v = x.view(-1)
            seen.append(flags(v))
            return (v * 2).view(x.shape)

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = leaf()
    Double.apply(x).sum().backward()
    assert seen == [(True, True, False)]
    assert x.grad.tolist() == [[2.0] * 3] * 2

    class Flat(tt.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view(-1)

        @staticmethod
        def backward(ctx, g):
            return g.view(2, 3) * 5

    y = Flat.apply(x)
    assert flags(y) == (True, False, True)
    assert grad(y.sum(), x)[0].tolist() == [[5.0] * 3] * 2


def test_what_else_is_asked_of_a_view_taken_under_no_grad() -> None:
    x = leaf()
    with tt.no_grad():
        v = x.view(-1)
    assert (v * 2).grad_fn.next_functions == ((None, 0), (None, 0))
    assert grad((v * x.view(-1)).sum(), x)[0].tolist() == [[1.0] * 3] * 2
    with pytest.raises(RuntimeError, match="takes no part"):
        grad(v.sum(), v)
    assert grad(v.sum(), v, allow_unused=True) == (None,)
    with pytest.raises(RuntimeError, match="no graph"):
        v.backward(tt.ones(6, dtype=tt.float64))
    v.retain_grad()
    assert flags(copy.deepcopy(v)) == (True, True, False)
    assert copy.deepcopy(v)._base is None
    assert "requires_grad=True" in repr(v)
    assert tt.nn.Parameter(v).requires_grad
    v.requires_grad_()  # a leaf of its own from now on
    (v * 3).sum().backward()
    assert v.grad.tolist() == [3.0] * 6
    assert x.grad is None


def test_views_follow_a_base_that_is_asked_for_gradients() -> None:
    base = tt.ones(3)
    v, whole = base.view(-1), base.view(3)[1:]
    base.requires_grad_()
    assert flags(v) == flags(whole) == (True, True, False)
    assert flags(v * 2) == (True, False, True)
    base.requires_grad_(False)
    assert flags(v) == flags(whole) == (False, True, False)
    own = base[:2].requires_grad_()
    assert flags(base) == (False, True, False)
    (own * 3).sum().backward()
    assert own.grad.tolist() == [3.0, 3.0]
    base.requires_grad_()
    base.requires_grad_(False)
    assert own.requires_grad


def test_views_of_a_base_that_leaves_the_graph_keep_their_nodes() -> None:
    w = tt.tensor([[1.0, -2.0], [3.0, 4.0]], requires_grad=True)
    base = tt.ones(2, 2) * w
    y, z = base.t(), base.view(-1)
    tt.relu_(y)
    base.detach_()
    assert flags(base) == (False, True, False)
    assert flags(y)[:2] == flags(z)[:2] == (True, False)
    y.sum().backward()
    assert w.grad.tolist() == [[1.0, 0.0], [1.0, 1.0]]
    untouched = (base := w * 2).view(-1)
    base.detach_()
    assert grad(untouched.sum(), w)[0].tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_a_view_of_a_leaf_that_is_a_view_is_not_written() -> None:
    x = tt.arange(6.0).as_strided((2, 3), (3, 1)).requires_grad_()
    for y in (x.view(-1), x[0], x.as_strided((2,), (1,)), x.view(-1)[1:], x):
        with pytest.raises(RuntimeError, match="leaf"):
            y.mul_(2)
    with tt.no_grad():
        x.view(-1).mul_(2)
    assert x.tolist() == [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]


def test_parts_that_may_be_written_each() -> None:
    x = leaf()
    a, b = x.unsafe_chunk(2)
    a.mul_(2)
    (a.sum() + (b * 3).sum()).backward()
    assert x.grad.tolist() == [[2.0] * 3, [3.0] * 3]


EMPTY = {
    "cat": lambda e: tt.cat([tt.ones(2, 3), e]), "cat along 1": lambda e: tt.cat([tt.ones(2, 3), e], 1), "cat of nothing": lambda e: tt.cat([tt.ones(0), e]),
    "hstack": lambda e: tt.hstack([tt.ones(2), e]), "cat of types": lambda e: tt.cat([tt.ones(2, dtype=tt.float64), e]),
    "scatter": lambda e: tt.ones(2, 3).scatter(1, tt.zeros(0).long(), e), "scatter_add_": lambda e: tt.ones(2, 3).scatter_add_(1, tt.zeros(0).long(), e),
    "scatter_reduce_": lambda e: tt.ones(2, 3).scatter_reduce_(1, tt.zeros(0).long(), e, "prod"), "index_add_": lambda e: tt.ones(2).index_add_(0, tt.zeros(0).long(), e),
    "scatter_reduce mean": lambda e: tt.ones(()).scatter_reduce(0, tt.zeros(0).long(), e, "mean"), "put_": lambda e: tt.ones(2).put_(tt.zeros(0).long(), e),
    "setitem": lambda e: (lambda x: (x.__setitem__(slice(0, 0), e), x)[1])(tt.ones(2)), "sum": lambda e: e.sum(), "matmul": lambda e: tt.ones(2, 0) @ e,
}  # fmt: skip


@pytest.mark.parametrize("call", EMPTY.values(), ids=EMPTY)
def test_an_empty_argument_keeps_the_result_in_the_graph(call: Callable[[tt.Tensor], tt.Tensor]) -> None:
    e = tt.ones(0, requires_grad=True)
    y = call(e)
    assert flags(y) == (True, False, True)
    y.sum().backward()
    assert e.grad.shape == (0,)


def test_a_source_of_which_an_empty_index_takes_nothing() -> None:
    x, s = leaf(), leaf()
    for how in ("sum", "prod", "mean", "amax"):
        y = x.scatter_reduce(1, tt.zeros(0).long(), s, how)
        gx, gs = grad(y.sum(), [x, s])
        assert gx.tolist() == [[1.0] * 3] * 2
        assert gs.tolist() == [[0.0] * 3] * 2


def test_a_write_over_a_base_that_has_left_the_graph_takes_its_views_along() -> None:
    w = tt.ones(3, requires_grad=True)
    base = w * 2
    view = base[None]
    view.mul_(3)
    base.detach_()
    assert view.requires_grad  # it has kept its way back
    base.sigmoid_()
    (view * w).sum().backward()
    assert w.grad.tolist() == view[0].tolist()  # nothing comes by that way, which led to what stood there before
    assert flags(view) == (True, False, True)
    (v := view * 2).sum().backward()
    assert flags(v) == (True, False, True)


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize(
    "write", [lambda base, view: base.mul_(2), lambda base, view: view.detach().zero_(), lambda base, view: base.__setitem__(0, 5.0)]
)
def test_a_view_that_was_left_behind_leads_nowhere_once_its_memory_is_written(
    write: Callable[[tt.Tensor, tt.Tensor], Any], recorded: bool
) -> None:
    w = tt.ones(3, requires_grad=True)
    base = w * 2
    view, inner = base[:2], base[:2].view(2, 1)
    base.detach_()
    assert grad(view.sum(), w, retain_graph=True)[0].tolist() == [2.0, 2.0, 0.0]
    view.retain_grad()
    with tt.set_grad_enabled(recorded):
        write(base, view)
    for v in (view, inner):
        assert flags(v) == (True, False, True)
        assert grad(v.sum(), w, allow_unused=True) == (None,)
    view.sum().backward()
    assert view.grad.tolist() == [1.0, 1.0]
    assert w.grad is None
    assert flags(base) == (False, True, False)


def test_a_view_that_was_left_behind_follows_its_base_into_another_graph() -> None:
    w, z = tt.ones(3, requires_grad=True), tt.full((3,), 3.0, requires_grad=True)
    base = w * 2
    view = base[:2]
    base.detach_()
    base.mul_(2)
    base.mul_(z)
    view.sum().backward()
    assert z.grad.tolist() == [4.0, 4.0, 0.0]
    assert w.grad is None

    other = (base := w * 2)[:2]
    base.detach_().mul_(2).requires_grad_()
    (other * 3).sum().backward()
    assert base.grad.tolist() == [3.0, 3.0, 0.0]


def test_a_view_from_outside_of_the_graph_leaves_it_with_its_base() -> None:
    w = tt.ones(3, requires_grad=True)
    base = w * 2
    with tt.no_grad():
        view = base[:2]
    assert flags(view) == (True, True, False)
    base.detach_()
    assert flags(view) == flags(base) == (False, True, False)
    base.mul_(2)
    view.mul_(2)
    assert view.tolist() == [8.0, 8.0]
    assert flags(view) == (False, True, False)
    base.requires_grad_()
    assert flags(view) == (True, True, False)


def test_parts_that_were_left_behind_say_that_they_cannot_be_followed() -> None:
    base = tt.ones(4, requires_grad=True) * 2
    a, _ = base.split(2)
    base.detach_()
    assert a.requires_grad
    base.mul_(2)
    with pytest.raises(tt.GradError, match="is one of several that one call gave"):
        _ = a.grad_fn


def _add_out(base: tt.Tensor, view: tt.Tensor) -> None:
    tt.add(base, base, out=view)


@pytest.mark.parametrize("write", [lambda b, v: v.add_(1), lambda b, v: b.mul_(2), _add_out, lambda b, v: v.fill_(2.0)])
def test_a_view_of_what_became_a_leaf_later_leads_to_it_once_its_memory_is_written(write: Callable[[tt.Tensor, tt.Tensor], object]) -> None:
    """As in PyTorch: it is a leaf that leads nowhere before, and the way through the view is found at the first write, of no_grad as well."""
    base = tt.tensor([1.0, 2.0])
    view = base.expand(2)
    base.requires_grad_()
    assert (view.requires_grad, view.is_leaf) == (True, True)
    (view * 3).sum().backward()
    assert base.grad is None
    with tt.no_grad():
        write(base, view)
    assert (view.requires_grad, view.is_leaf) == (True, False)
    (view * 3).sum().backward()
    assert base.grad.tolist() == [3.0, 3.0]


def test_a_view_of_what_was_a_leaf_for_a_while_stays_outside() -> None:
    base = tt.tensor([1.0, 2.0])
    view = base[:1]
    base.requires_grad_().requires_grad_(False)
    base.add_(1)
    assert not view.requires_grad
    assert view.tolist() == [2.0]
    assert view.requires_grad_().is_leaf
