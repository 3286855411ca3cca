"""Hooks on gradients: their order, their handles, what they may return, and the .grad that retain_grad keeps."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import tritensor as tt
from tritensor.autograd import grad


def leaf(*values: float) -> tt.Tensor:
    return tt.tensor(list(values), dtype=tt.float64, requires_grad=True)


def test_a_handle_removes_its_own_hook_once() -> None:
    x = leaf(1.0)
    calls: list[int] = []

    def hook(g: tt.Tensor) -> None:
        calls.append(1)

    first = x.register_hook(hook)
    x.register_hook(hook)
    first.remove()
    first.remove()
    (x * 2).sum().backward()
    assert calls == [1]


def test_a_hook_that_removes_hooks_while_they_run() -> None:
    x = leaf(1.0)
    calls: list[str] = []

    def first(g: tt.Tensor) -> None:
        calls.append("first")
        for handle in handles:
            handle.remove()

    handles = [x.register_hook(first), x.register_hook(lambda g: calls.append("second"))]
    (x * 2).sum().backward()
    (x * 2).sum().backward()
    assert calls == ["first", "second"]


def test_a_hook_added_while_hooks_run_waits_for_the_next_gradient() -> None:
    x = leaf(1.0)
    calls: list[str] = []
    x.register_hook(lambda g: x.register_hook(lambda g: calls.append("late")) and None)
    (x * 2).sum().backward()
    assert calls == []
    (x * 2).sum().backward()
    assert calls == ["late"]


def test_an_input_listed_twice_calls_its_hook_once() -> None:
    x = leaf(1.0, 2.0)
    calls: list[int] = []
    x.register_hook(lambda g: calls.append(1) or g * 10)
    first, second = grad((x * 3).sum(), [x, x])
    assert calls == [1]
    assert first.tolist() == second.tolist() == [30.0, 30.0]
    first.zero_()
    assert second.tolist() == [30.0, 30.0]


def test_a_gradient_that_a_hook_kept_stays_as_it_was() -> None:
    x = leaf(1.0, 2.0)
    kept: list[tt.Tensor] = []
    x.register_hook(lambda g: kept.append(g))
    for _ in range(2):
        (x * 3).sum().backward()
    x.grad.zero_()
    assert [g.tolist() for g in kept] == [[3.0, 3.0], [3.0, 3.0]]


@pytest.mark.parametrize("wrong", [lambda g: g[:1], lambda g: g.float(), lambda g: 3])
def test_what_a_hook_returns_is_checked(wrong: object) -> None:
    x = leaf(1.0, 2.0)
    x.register_hook(wrong)
    with pytest.raises((RuntimeError, TypeError), match=r"^hook: returned"):
        (x * 2).sum().backward()


# -- nodes
def test_hooks_of_a_node_stand_on_either_side_of_it() -> None:
    x = leaf(1.0, 2.0)
    y = x * 5
    calls: list[tuple[str, object]] = []
    y.grad_fn.register_hook(lambda below, above: calls.append(("after", [g if g is None else g.tolist() for g in (*below, *above)])))
    y.grad_fn.register_prehook(lambda above: (calls.append(("before", above[0].tolist())), tuple(g * 2 for g in above))[1])
    y.register_hook(lambda g: calls.append(("tensor", g.tolist())))
    (y * 3).sum().backward()
    assert calls == [("tensor", [3.0, 3.0]), ("before", [3.0, 3.0]), ("after", [[30.0, 30.0], None, [6.0, 6.0]])]
    assert x.grad.tolist() == [30.0, 30.0]


def test_a_hook_of_a_node_replaces_what_goes_on() -> None:
    x = leaf(1.0, 2.0)
    bias = leaf(0.0)
    y = x + bias
    handle = y.grad_fn.register_hook(lambda below, above: tuple(g * 10 for g in below))
    y.sum().backward(retain_graph=True)
    assert x.grad.tolist() == [10.0, 10.0]
    assert bias.grad.tolist() == [20.0]  # what broadcasting stretched is summed before the hook sees it
    handle.remove()
    (again,) = grad(y.sum(), x)
    assert again.tolist() == [1.0, 1.0]


def test_hooks_of_a_node_are_differentiated() -> None:
    x = leaf(3.0)
    y = x * x
    y.grad_fn.register_prehook(lambda above: (above[0] * x,))
    (first,) = grad(y, x, create_graph=True)  # 2 x * x
    (second,) = grad(first, x)
    assert first.item() == 18.0
    assert second.item() == 12.0


def test_a_hook_of_a_node_that_returns_too_few() -> None:
    x = leaf(3.0)
    y = x * x
    y.grad_fn.register_hook(lambda below, above: below[:1])
    with pytest.raises(RuntimeError, match="1 gradients in place of 2"):
        y.backward()


# -- retain_grad
def test_retain_grad_keeps_what_is_left_after_all_hooks() -> None:
    x = leaf(1.0, 2.0)
    y = x * 1
    y.retain_grad()
    y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: g * 2)
    (y * 5).sum().backward()
    assert y.grad.tolist() == [100.0, 100.0]


def test_retain_grad_follows_a_tensor_that_is_written() -> None:
    x = leaf(1.0, 2.0)
    y = x * 1
    y.retain_grad()
    seen: list[list[float]] = []
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.mul_(3)
    (y * 5).sum().backward()
    assert y.grad.tolist() == [5.0, 5.0]
    assert seen == [[15.0, 15.0]]  # a hook stays with what the tensor was
    assert x.grad.tolist() == [15.0, 15.0]


def test_retain_grad_of_a_base_that_is_written_through_a_view() -> None:
    x = tt.ones(2, 2, dtype=tt.float64, requires_grad=True)
    y = x * 1
    y.retain_grad()
    y[0].mul_(3)
    (y * 5).sum().backward()
    assert y.grad.tolist() == [[5.0, 5.0], [5.0, 5.0]]
    assert x.grad.tolist() == [[15.0, 15.0], [5.0, 5.0]]


def test_retain_grad_of_a_view_whose_base_is_written() -> None:
    x = tt.ones(2, 2, dtype=tt.float64, requires_grad=True)
    y = x * 1
    view = y[0]
    view.retain_grad()
    y.mul_(2)
    (view * view).sum().backward()
    assert view.grad.tolist() == [4.0, 4.0]
    assert view.retains_grad


def test_a_retained_gradient_is_that_of_the_contents_of_now() -> None:
    x = tt.ones(4, requires_grad=True)
    y = x * 2
    view = y[1:3]
    view.retain_grad()
    before = (view + 0).sum() * 3
    y.add_(1)
    (before + (view + 0).sum() * 5).backward()
    assert view.grad.tolist() == [5.0, 5.0]
    assert x.grad.tolist() == [0.0, 16.0, 16.0, 0.0]


def test_retained_gradients_share_no_memory() -> None:
    x = leaf(1.0, 2.0)
    y = x + 1
    z = y + 1
    for t in (y, z):
        t.retain_grad()
    z.sum().backward()
    z.grad.zero_()
    assert y.grad.tolist() == [1.0, 1.0]
    assert x.grad.tolist() == [1.0, 1.0]


def test_retain_grad_with_inputs_counts_once() -> None:
    x = leaf(1.0, 2.0)
    y = x * 1
    y.retain_grad()
    (y * 5).sum().backward(inputs=[y], retain_graph=True)
    assert y.grad.tolist() == [5.0, 5.0]
    assert x.grad is None


def test_retain_grad_holds_no_tensor() -> None:
    gc.disable()
    try:
        x = leaf(1.0)
        y = x * 2
        y.retain_grad()
        y.register_hook(lambda g: None)
        gone = weakref.ref(y)
        z = y * 3
        del y
        assert gone() is None
        z.backward()
        assert x.grad.item() == 6.0
    finally:
        gc.enable()


def test_a_handle_ends_with_its_block() -> None:
    x = leaf(1.0)
    calls: list[int] = []
    with x.register_hook(lambda g: calls.append(1)):
        (x * 1).backward()
    (x * 1).backward()
    assert calls == [1]


@pytest.mark.parametrize("on", ["cpu", "cuda"])
def test_gradients_add_up_over_backwards(on: str) -> None:
    x = tt.ones(3, device=on, requires_grad=True)
    for _ in range(3):
        (x * 2).sum().backward()
    assert x.grad.tolist() == [6.0] * 3


@pytest.mark.parametrize("create_graph", [False, True])
def test_a_hook_of_a_node_may_take_a_gradient_away(create_graph: bool) -> None:
    x, w = tt.ones(2, requires_grad=True), tt.ones(2, requires_grad=True)
    y = x * w
    y.grad_fn.register_hook(lambda below, above: (None, below[1] * 2))
    y.sum().backward(create_graph=create_graph)
    assert x.grad is None
    assert w.grad.tolist() == [2.0, 2.0]
    z = x * w
    z.grad_fn.register_prehook(lambda above: (None,))
    z.grad_fn.register_hook(lambda below, above: None)
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_none_from_a_hook_of_a_tensor_leaves_the_gradient() -> None:
    x = tt.ones(2, requires_grad=True)
    x.register_hook(lambda g: None)
    x.register_hook(lambda g: g * 5)
    x.register_hook(lambda g: None)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [10.0, 10.0]


# -- what a hook sees
def test_tensor_hook_sees_and_replaces() -> None:
    x = leaf(1.0, 2.0)
    seen: list[list[float]] = []
    y = x * 2
    handle = y.register_hook(lambda g: seen.append(g.tolist()))
    y.register_hook(lambda g: g * 10)
    y.sum().backward()
    assert seen == [[1.0, 1.0]]
    assert x.grad.tolist() == [20.0, 20.0]
    handle.remove()
    (x * 2).sum().backward()
    assert len(seen) == 1


def test_leaf_hook() -> None:
    x = leaf(1.0, 2.0)
    x.register_hook(lambda g: g + 1)
    (x * x).sum().backward()
    assert x.grad.tolist() == [3.0, 5.0]
    (g,) = grad((x * x).sum(), x)
    assert g.tolist() == [3.0, 5.0]


def test_hook_under_create_graph() -> None:
    x = leaf(2.0)
    y = x * x
    y.register_hook(lambda g: g * x)  # dy/dx becomes x * 2x
    (first,) = grad(y, x, create_graph=True)
    (second,) = grad(first, x)
    assert first.item() == 8.0
    assert second.item() == 8.0


def test_hook_of_the_wrong_shape() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    y.register_hook(lambda g: g.sum())
    with pytest.raises(RuntimeError, match=r"hook: returned a gradient of shape \(\)"):
        y.sum().backward()
    with pytest.raises(RuntimeError, match="does not require grad"):
        tt.ones(2).register_hook(print)


def test_hook_runs_once_with_the_whole_gradient() -> None:
    x = leaf(1.0)
    y = x * 1
    seen: list[float] = []
    y.register_hook(lambda g: seen.append(g.item()))
    (y * 2 + y * 3).sum().backward()
    assert seen == [5.0]


def test_retain_grad_and_post_accumulate() -> None:
    x = leaf(1.0, 2.0)
    y = x * 3
    y.retain_grad()
    called: list[list[float]] = []
    x.register_post_accumulate_grad_hook(lambda t: called.append(t.grad.tolist()))
    (y * y).sum().backward()
    assert y.grad.tolist() == [6.0, 12.0]
    assert called == [[18.0, 36.0]]


def test_a_post_accumulate_hook_that_returns_something() -> None:
    x = leaf(1.0, 2.0)
    returned: list[Any] = [x]
    x.register_post_accumulate_grad_hook(lambda t: returned[0])
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    for given, error in ((x.grad, tt.GradError), (3, TypeError)):
        returned[0] = given
        with pytest.raises(error, match=r"register_post_accumulate_grad_hook returned a \w+; it returns None or the tensor itself"):
            (x * 3).sum().backward()


def test_a_gradient_is_deleted() -> None:
    x = leaf(1.0, 2.0)
    (x * 3).sum().backward()
    del x.grad
    assert x.grad is None
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_what_a_hook_of_the_last_node_kept_stays_as_it_was() -> None:
    x = tt.ones(3, requires_grad=True)
    y = x * 2
    kept = []
    y.grad_fn.register_hook(lambda inputs, _: kept.append(inputs[0]))
    y.sum().backward()
    x.grad.add_(5)
    assert kept[0].tolist() == [2.0, 2.0, 2.0]
    assert x.grad.tolist() == [7.0, 7.0, 7.0]


def test_a_node_hook_that_gives_none_ends_the_gradient() -> None:
    x = leaf(1.0)
    y = x * 2
    y.grad_fn.register_prehook(lambda grads: (None,))
    (y * 3).sum().backward()
    assert x.grad is None
    leaf_node = x.view_as(x).grad_fn.next_functions[0][0]
    leaf_node.register_prehook(lambda grads: (None,))
    (x * 3).sum().backward()
    assert x.grad is None


def test_hooks_of_several_tensors_run_where_a_function_gives_none() -> None:
    class Half(tt.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            return a * b

        @staticmethod
        def backward(ctx, g):
            return g, None

    a, b, seen = leaf(1.0), leaf(2.0), []
    tt.autograd.graph.register_multi_grad_hook([a, b], lambda grads: seen.append((type(grads), [g is None for g in grads])))
    for _ in range(2):
        Half.apply(a, b).sum().backward()
    assert seen == [(list, [False, True])] * 2


def test_a_view_keeps_no_gradient_of_what_it_was_before_a_write() -> None:
    x = leaf(1.0, 2.0, 3.0)
    y = x * 2
    v = y[:2]
    v.retain_grad()
    v.mul_(3)
    (y * y).sum().backward(retain_graph=True)
    assert v.grad is None
    (v * v).sum().backward()
    assert v.grad.tolist() == [12.0, 24.0]


def test_a_step_in_backward_frees_each_gradient_before_the_next() -> None:
    """The hook runs as soon as a leaf's gradient is complete, outside the graph: what is alive at any time is one layer's."""
    weights = [tt.full((2,), float(n), requires_grad=True) for n in (2, 3, 5)]
    shared = weights[0]
    events: list[Any] = []

    def step(p: tt.Tensor) -> None:
        assert not tt.is_grad_enabled()
        assert [w.grad is not None for w in weights].count(True) == 1
        events.append((p.grad.tolist(), p.tolist()))
        p.add_(p.grad, alpha=-1.0)
        p.grad = None

    handles = [w.register_post_accumulate_grad_hook(step) for w in weights]
    y = tt.ones(2)
    for n, w in enumerate(weights):
        y = y * w
        y.grad_fn.register_prehook(lambda _, n=n: events.append(n))
    (y * shared).sum().backward()  # 2 * 3 * 5 * 2: the first weight is used twice, and is complete last
    assert events == [2, ([12, 12], [5, 5]), 1, ([20, 20], [3, 3]), 0, ([60, 60], [2, 2])]
    assert [w.tolist() for w in weights] == [[-58, -58], [-17, -17], [-7, -7]]
    assert all(w.grad is None for w in weights)
    for h in handles:
        h.remove()
    recording = []
    shared.register_post_accumulate_grad_hook(lambda p: recording.append((tt.is_grad_enabled(), p.grad.requires_grad)))
    (shared * shared).sum().backward(create_graph=True)
    shared.sum().backward(inputs=[shared])
    assert recording == [(True, True), (False, True)]


def test_libraries_look_whether_a_tensor_has_hooks() -> None:
    leaf = tt.ones(2, requires_grad=True)
    inner = leaf * 2
    assert (leaf._backward_hooks, inner._backward_hooks, tt.ones(1)._backward_hooks) == (None, None, None)
    for x in (leaf, inner):
        handle = x.register_hook(print)
        assert x._backward_hooks == {handle.id: print}
        assert handle.hooks_dict_ref() == {handle.id: print}
        handle.remove()
        assert handle.id not in handle.hooks_dict_ref()
