"""Values that nodes save: refused once they are overwritten, kept by the node whose value overwrites them, let go by backward."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import pytest

import tritensor as tt
from tritensor.autograd import grad


def leaf(*values: float) -> tt.Tensor:
    return tt.tensor(list(values), dtype=tt.float64, requires_grad=True)


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("before", [True, False])
def test_a_write_is_refused_after_the_node_and_not_before(before: bool, create_graph: bool) -> None:
    x, w = tt.ones(2, dtype=tt.float64), leaf(2.0, 3.0)
    if before:
        x.mul_(5)
    y = x * w
    if not before:
        x.mul_(5)
        with pytest.raises(RuntimeError, match=r"mul saved .*mul_ then overwrote in place \(version 1\)"):
            y.sum().backward(create_graph=create_graph)
        return
    y.sum().backward(create_graph=create_graph)
    assert w.grad.tolist() == [5.0, 5.0]


@pytest.mark.parametrize("through", [lambda x: x[0], lambda x: x.detach(), lambda x: x.view(1, 2)[0]])
def test_a_write_through_a_view_or_a_detached_tensor_counts(through: Callable[[tt.Tensor], tt.Tensor]) -> None:
    x, w = tt.ones(2, dtype=tt.float64), leaf(2.0, 3.0)
    y = x * w
    through(x).mul_(5)
    with pytest.raises(RuntimeError, match="overwrote"):
        y.sum().backward()


@pytest.mark.parametrize("f", ["exp", "sigmoid", "tanh", "sqrt"])
@pytest.mark.parametrize("create_graph", [False, True])
def test_an_overwritten_result_is_refused(f: str, create_graph: bool) -> None:
    x = leaf(1.0, 2.0)
    y = getattr(x, f)()
    y.mul_(2)
    with pytest.raises(RuntimeError, match=r"saved its output .*mul_"):
        y.sum().backward(create_graph=create_graph)


def test_other_nodes_are_not_refused() -> None:
    a, b = leaf(1.0), leaf(2.0)
    x = tt.ones(1, dtype=tt.float64)
    y = x * a
    z = y * b  # saves y and b, not x
    x.mul_(5)
    assert grad(z, b)[0].item() == 1.0


def test_an_accumulated_gradient_that_a_graph_saved() -> None:
    x, w = leaf(1.0), leaf(2.0)
    (x * 3).backward()
    y = w * x.grad
    (x * 3).backward()  # adds to .grad in place
    with pytest.raises(RuntimeError, match="backward then overwrote"):
        y.backward()


def test_a_tensor_overwritten_by_what_was_computed_of_it() -> None:
    w = leaf(1.0, 1.0)
    x = tt.full((2,), 2.0, dtype=tt.float64)
    x.mul_(w)
    x.sum().backward()
    assert w.grad.tolist() == [2.0, 2.0]


def test_contents_that_the_node_did_not_save_are_not_taken_for_them() -> None:
    w = leaf(1.0, 1.0)
    x = tt.full((2,), 2.0, dtype=tt.float64)
    v = x * w
    x.fill_(5)
    x.copy_(v)
    with pytest.raises(RuntimeError, match="overwrote"):
        x.sum().backward()


@pytest.mark.parametrize(
    ("write", "expected"),
    [
        (lambda x, w: x.lerp_(w, 0.25), [0.75, 0.25]),
        (lambda x, w: x.addcmul_(w, w), [1.0, 6.0]),
        (lambda x, w: x.pow_(2).mul_(w), [12.0, 4.0]),
        (lambda x, w: x.mul_(x).mul_(w), [12.0, 4.0]),
    ],
)
def test_several_steps_in_place(write: Callable[[tt.Tensor, tt.Tensor], object], expected: list[float]) -> None:
    a, w = leaf(2.0), leaf(3.0)
    x = a * 1
    write(x, w)
    assert [g.item() for g in grad(x, [a, w])] == expected


# -- released
def _held(y: tt.Tensor) -> weakref.ref[tt.Tensor]:
    return weakref.ref(next(t for t in y.grad_fn.inputs if t is not None))


@pytest.mark.parametrize("run", [lambda y, x: y.sum().backward(), lambda y, x: grad(y.sum(), x)])
def test_backward_lets_go_of_what_was_saved(run: Callable[[tt.Tensor, tt.Tensor], object]) -> None:
    gc.collect()
    gc.disable()
    try:
        x = leaf(1.0, 2.0)
        y = (x * 2) * (x * 3)
        held = _held(y)
        assert held() is not None
        run(y, x)
        assert held() is None
        with pytest.raises(RuntimeError, match="freed by an earlier backward"):
            y.sum().backward()
    finally:
        gc.enable()


def test_retain_graph_keeps_what_was_saved() -> None:
    x = leaf(1.0, 2.0)
    y = (x * 2) * (x * 3)
    held = _held(y)
    first = grad(y.sum(), x, retain_graph=True)[0].tolist()
    assert held() is not None
    assert grad(y.sum(), x, create_graph=True)[0].tolist() == first
    assert grad(y.sum(), x)[0].tolist() == first == [12.0, 24.0]


def test_a_saved_result_is_let_go() -> None:
    x = leaf(1.0, 2.0)
    y = x.exp()
    node = y.grad_fn
    y.sum().backward()
    assert not node.outputs
    with pytest.raises(RuntimeError, match="freed"):
        y.sum().backward()


def test_nodes_that_saved_nothing_run_again() -> None:
    x = leaf(1.0, 2.0)
    y = x + 1
    for _ in range(2):
        y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


# -- types
@pytest.mark.parametrize("name", ["mul_", "add_", "div_"])
def test_a_result_of_a_higher_type_does_not_fit(name: str) -> None:
    for low, high in ((tt.int64, tt.float32), (tt.bool_ if hasattr(tt, "bool_") else tt.bool, tt.int64)):
        x = tt.ones(2, dtype=low)
        with pytest.raises(RuntimeError, match="does not fit into"):
            getattr(x, name)(tt.ones(2, dtype=high) * 2)
        assert x.dtype == low
        assert x._version == 0


def test_a_result_of_a_lower_type_is_converted() -> None:
    x = tt.ones(2, dtype=tt.float32)
    assert x.mul_(tt.tensor([2, 3])).tolist() == [2.0, 3.0]
    half = tt.ones(2, dtype=tt.float16)
    assert half.add_(tt.ones(2, dtype=tt.float64)).dtype == tt.float16
    whole = tt.ones(2, dtype=tt.int32)
    assert whole.add_(tt.tensor([2, 3], dtype=tt.int64)).tolist() == [3, 4]
    assert whole.dtype == tt.int32


def test_an_out_that_is_resized_counts_as_written() -> None:
    out, w = tt.ones(2, dtype=tt.float64), leaf(1.0, 2.0)
    y = out * w
    with pytest.warns(UserWarning, match="resized"):
        tt.add(tt.ones(3, dtype=tt.float64), 1, out=out)
    with pytest.raises(RuntimeError, match="overwrote"):
        y.sum().backward()


class Square(tt.autograd.Function):
    @staticmethod
    def forward(ctx, x):  # type: ignore[no-untyped-def]
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):  # type: ignore[no-untyped-def]
        (x,) = ctx.saved_tensors
        return 2 * x * g


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("f", [lambda y: y * y, lambda y: y * 2.0 * y, Square.apply, lambda y: tt.cat([y, y]).square()])
def test_a_saved_tensor_that_was_cut_off_in_place(f: Callable[[tt.Tensor], tt.Tensor], create_graph: bool, again: bool) -> None:
    """Its place in the graph is lost, so that a second derivative would be wrong in silence; PyTorch refuses the first, too."""
    x = leaf(1.0, 2.0)
    y = x * 2
    z = f(y)
    y.detach_()
    if again:
        y.requires_grad_()
    if z.shape == (4,):  # cat saved nothing of y
        assert grad(z.sum(), x, create_graph=create_graph)[0].tolist() == [16.0, 32.0]
        return
    with pytest.raises(tt.GradError, match=r"which detach_\(\) then cut off its graph; use detach\(\)"):
        grad(z.sum(), x, create_graph=create_graph)


def test_cutting_off_an_output_that_its_own_node_saved_costs_nothing() -> None:
    x = leaf(0.0, 1.0)
    y = x.exp()
    z = y * 2
    y.detach_()
    (g,) = grad(z.sum(), x, create_graph=True)
    assert grad(g.sum(), x)[0].tolist() == g.tolist()
