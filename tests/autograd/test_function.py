"""autograd.Function: what forward writes, returns, saves and marks; what backward may return; and that nothing of it lingers."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import tritensor as tt
from tritensor.autograd import Function, grad
from tritensor.autograd.function import once_differentiable


def leaf(*values: float) -> tt.Tensor:
    return tt.tensor(list(values), dtype=tt.float64, requires_grad=True)


def made(forward: Any, backward: Any = lambda ctx, *g: g[0], name: str = "Made") -> Any:
    return type(name, (Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


def _doubled(ctx: Any, x: tt.Tensor) -> tt.Tensor:
    x.mul_(2)
    ctx.mark_dirty(x)
    return x


double_ = made(_doubled, lambda ctx, g: g * 2, "Double")
same = made(lambda ctx, x: x, name="Same")


# -- memory
class Exp(Function):
    @staticmethod
    def forward(ctx: Any, x: tt.Tensor) -> tt.Tensor:
        y = x.exp()
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx: Any, g: tt.Tensor) -> tt.Tensor:
        return g * ctx.saved_tensors[1]


@pytest.mark.parametrize("function", [Exp, double_, same])
def test_apply_makes_no_cycle(function: Any) -> None:
    gc.collect()
    gc.disable()
    try:
        x = leaf(1.0)
        y = function.apply(x * 1)
        node, context = weakref.ref(y.grad_fn), weakref.ref(y.grad_fn.context)
        y.sum().backward()
        del y
        assert node() is None
        assert context() is None
        assert gc.collect() == 0
    finally:
        gc.enable()


# -- inputs that forward writes
def test_a_dirty_leaf_is_refused() -> None:
    with pytest.raises(RuntimeError, match="leaf"):
        double_.apply(leaf(1.0))
    with pytest.raises(RuntimeError, match="leaf"):
        double_.apply(leaf(1.0, 2.0)[:1])


def test_a_dirty_view_that_cannot_be_written_is_refused() -> None:
    y = leaf(1.0, 2.0) * 1
    with tt.no_grad():
        view = y[:1]
    for v, reason in ((view, "no_grad"), (y.unbind(0)[0], "several"), (same.apply(y), "Function")):
        with pytest.raises(RuntimeError, match=reason):
            double_.apply(v)


def test_a_dirty_input_is_the_output() -> None:
    x = leaf(1.0, 2.0)
    y = x * 1
    assert double_.apply(y) is y
    assert y.grad_fn.name() == "DoubleBackward"
    assert y._version == 2  # by mul_, and by the mark, which stands for writes past our own functions
    (y * 3).sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]


def test_a_dirty_view_changes_the_graph_of_its_base() -> None:
    x = leaf(1.0, 2.0)
    y = x * 1
    double_.apply(y[:1])
    assert y.tolist() == [2.0, 2.0]
    (y * 3).sum().backward()
    assert x.grad.tolist() == [6.0, 3.0]


def test_a_dirty_base_changes_the_graph_of_its_views() -> None:
    x = leaf(1.0, 2.0)
    y = x * 1
    view = y[:1]
    double_.apply(y)
    (view * 3).sum().backward()
    assert x.grad.tolist() == [6.0, 0.0]


def test_a_dirty_constant_enters_the_graph() -> None:
    def forward(ctx: Any, x: tt.Tensor, w: tt.Tensor) -> tt.Tensor:
        ctx.mark_dirty(x)
        return x.mul_(w)

    x, w = tt.full((2,), 3.0, dtype=tt.float64), leaf(1.0, 1.0)
    y = made(forward, lambda ctx, g: (None, g * 3)).apply(x, w)
    assert y is x
    y.sum().backward()
    assert w.grad.tolist() == [3.0, 3.0]


def test_what_was_saved_before_a_dirty_write_is_refused() -> None:
    x = leaf(1.0)
    y = x * 1
    z = y * y
    double_.apply(y)
    with pytest.raises(RuntimeError, match="Double"):
        z.backward()


def test_marks_that_do_not_fit() -> None:
    def other(ctx: Any, x: tt.Tensor) -> tt.Tensor:
        ctx.mark_dirty(x)
        return x * 2

    def fresh(ctx: Any, x: tt.Tensor) -> tt.Tensor:
        y = x * 2
        ctx.mark_dirty(y)
        return y

    with pytest.raises(RuntimeError, match="not returned"):
        made(other).apply(leaf(1.0) * 1)
    with pytest.warns(UserWarning, match="no input"):
        made(fresh).apply(leaf(1.0))


# -- what forward returns
@pytest.mark.parametrize("tracked", [True, False])
def test_an_input_that_is_returned_is_a_view(tracked: bool) -> None:
    x = leaf(1.0, 2.0) * 1 if tracked else tt.ones(2)
    y = same.apply(x)
    assert y is not x
    assert y._base is x
    if not tracked:
        y.mul_(2)
        assert x.tolist() == [2.0, 2.0]
        return
    with pytest.raises(RuntimeError, match="Function"):
        y.mul_(2)
    x.mul_(2)
    with pytest.raises(RuntimeError, match="Function"):
        y + 1
    assert "<Invalid>" in str(y)


def test_views_that_come_out_of_a_function_are_not_written() -> None:
    part = made(lambda ctx, x: x[:1], lambda ctx, g: tt.cat([g, g * 0]))
    both = made(lambda ctx, x: (x[:1], x[1:]), lambda ctx, a, b: tt.cat([a, b]))
    x = leaf(1.0, 2.0)
    y = x * 1
    with pytest.raises(RuntimeError, match="Function"):
        part.apply(y).mul_(2)
    with pytest.raises(RuntimeError, match="several"):
        both.apply(y)[1].mul_(2)
    (part.apply(y) * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 0.0]


def test_outputs_that_have_no_gradient() -> None:
    given: list[Any] = []

    def forward(ctx: Any, x: tt.Tensor) -> tuple[Any, ...]:
        flat = x * 0
        ctx.mark_non_differentiable(flat)
        return x * 2, x.long(), x > 1, flat, None, 3

    outs = made(forward, lambda ctx, *g: (given.extend(g), g[0] * 2)[1]).apply(x := leaf(1.0, 2.0))
    assert [t.requires_grad for t in outs[:4]] == [True, False, False, False]
    assert outs[4:] == (None, 3)
    outs[0].sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    assert [None if g is None else g.tolist() for g in given] == [[1.0, 1.0], [0, 0], [False, False], [0.0, 0.0], None, None]


def test_one_tensor_returned_twice() -> None:
    def forward(ctx: Any, x: tt.Tensor) -> tuple[tt.Tensor, tt.Tensor]:
        y = x * 1
        return y, y

    first, second = made(forward, lambda ctx, a, b: a + b).apply(x := leaf(1.0))
    assert first is second
    (first + second * 10).sum().backward()
    assert x.grad.tolist() == [11.0]


# -- what was saved
def test_a_saved_output_that_is_overwritten_is_refused() -> None:
    y = Exp.apply(leaf(1.0, 2.0))
    y.mul_(0)
    with pytest.raises(RuntimeError, match=r"overwritten in place by mul_"):
        y.sum().backward()


def test_a_saved_input_that_is_overwritten_is_refused() -> None:
    x = leaf(1.0, 2.0)
    y = Exp.apply(x)
    with tt.no_grad():
        x.mul_(2)
    with pytest.raises(RuntimeError, match=r"overwritten in place by mul_"):
        y.sum().backward()


def test_what_forward_itself_writes_before_its_end_is_saved_as_it_is_then() -> None:
    def forward(ctx: Any, x: tt.Tensor) -> tt.Tensor:
        y = x * 2
        ctx.save_for_backward(y)
        return y.add_(1)

    y = made(forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(x := leaf(1.0, 2.0))
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 5.0]


def test_what_is_freed_is_let_go() -> None:
    y = Exp.apply(leaf(1.0))
    y.sum().backward(retain_graph=True)
    assert y.grad_fn.saved_tensors[1].tolist() == y.tolist()
    y.sum().backward()
    with pytest.raises(RuntimeError, match="freed"):
        y.sum().backward()
    with pytest.raises(RuntimeError, match="freed"):
        _ = y.grad_fn.saved_tensors


def test_only_tensors_are_saved() -> None:
    def forward(ctx: Any, x: tt.Tensor) -> tt.Tensor:
        ctx.save_for_backward(x, None, 3)
        return x * 2

    with pytest.raises(TypeError, match="int at place 2"):
        made(forward).apply(leaf(1.0))


def test_the_node_shows_its_context() -> None:
    def forward(ctx: Any, x: tt.Tensor, k: float) -> tt.Tensor:
        ctx.k = k
        ctx.save_for_backward(x)
        return x * k

    node = made(forward).apply(x := leaf(1.0), 3.0).grad_fn
    assert node.saved_tensors[0] is x
    assert node.k == 3.0
    assert node.needs_input_grad == (True, False)
    with pytest.raises(AttributeError):
        _ = node.missing


# -- what backward returns
def test_a_gradient_wider_than_its_input_is_summed() -> None:
    x, row = leaf(1.0, 2.0, 3.0), tt.zeros(1, 3, dtype=tt.float64, requires_grad=True)
    wide = made(lambda ctx, x, r: x.expand(4, 3) * 1, lambda ctx, g: (g, g))
    wide.apply(x, row).sum().backward()
    assert x.grad.tolist() == [4.0] * 3
    assert row.grad.tolist() == [[4.0] * 3]


@pytest.mark.parametrize(
    ("back", "message"),
    [
        (lambda ctx, g: g[:1], "shape"),
        (lambda ctx, g: tt.ones(3), "shape"),
        (lambda ctx, g: 2.0, "float"),
        (lambda ctx, g: [g], "list"),
        (lambda ctx, g: (g, g), "2 gradients for 1"),
    ],
)
def test_what_does_not_fit_is_refused(back: Any, message: str) -> None:
    with pytest.raises((RuntimeError, TypeError), match=message):
        made(lambda ctx, x: x * 1, back).apply(leaf(1.0, 2.0)).sum().backward()


def test_a_gradient_for_a_number_is_refused_and_for_a_constant_dropped() -> None:
    scaled = made(lambda ctx, x, k: x * k, lambda ctx, g: (g, g))
    with pytest.raises(RuntimeError, match="input 1"):
        scaled.apply(leaf(1.0), 2.0).backward()
    scaled.apply(x := leaf(1.0), tt.ones(1, dtype=tt.float64)).backward()
    assert x.grad.tolist() == [1.0]


def test_a_gradient_of_another_type_is_converted() -> None:
    made(lambda ctx, x: x * 1, lambda ctx, g: g.float()).apply(x := leaf(1.0)).backward()
    assert x.grad.dtype == tt.float64


def test_materialized_gradients() -> None:
    given: list[Any] = []

    def forward(ctx: Any, x: tt.Tensor, materialize: bool) -> tuple[tt.Tensor, tt.Tensor]:
        ctx.set_materialize_grads(materialize)
        return x * 1, x * 2

    two = made(forward, lambda ctx, a, b: (given.append(b), (a, None))[1])
    for materialize in (True, False):
        two.apply(leaf(1.0), materialize)[0].backward()
    assert given[0].tolist() == [0.0]
    assert given[1] is None


def test_a_backward_that_is_differentiated() -> None:
    square = made(lambda ctx, x: (ctx.save_for_backward(x), x * x)[1], lambda ctx, g: g * 2 * ctx.saved_tensors[0])
    x = leaf(3.0)
    (first,) = grad(square.apply(x), x, create_graph=True)
    (second,) = grad(first, x)
    assert (first.item(), second.item()) == (6.0, 2.0)
    (first,) = grad(Exp.apply(x), x, create_graph=True)  # through the saved output
    (second,) = grad(first, x)
    assert second.item() == pytest.approx(first.item())


def test_a_backward_that_may_be_used_once() -> None:
    square = made(
        lambda ctx, x: (ctx.save_for_backward(x), x * x)[1], once_differentiable(lambda ctx, g: g * 2 * ctx.saved_tensors[0].detach())
    )
    x, k = leaf(3.0), leaf(1.0)
    (first,) = grad(square.apply(x) * k, x, create_graph=True)
    assert first.item() == 6.0
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.backward()


def test_a_backward_that_has_no_gradient_to_give() -> None:
    x, k = leaf(1.0), leaf(2.0)
    nothing = made(lambda ctx, x, k: x * k, lambda ctx, g: (None, g))
    nothing.apply(x, k).backward()
    assert x.grad is None
    assert k.grad.tolist() == [1.0]
    with pytest.raises(RuntimeError, match="no part"):
        grad(nothing.apply(x, k), x)


class _Kept(Function):
    """The other form of a Function, in a base class."""

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        return g * 2 * ctx.saved_tensors[0]


class _Square(_Kept):
    @staticmethod
    def forward(x):
        return x * x


class _SquareToo(_Square):
    pass


@pytest.mark.parametrize("function", [_Square, _SquareToo])
def test_setup_context_is_inherited(function: type[Function]) -> None:
    x = tt.tensor([3.0], requires_grad=True)
    function.apply(x).sum().backward()
    assert x.grad.tolist() == [6.0]


def test_arguments_by_keyword_and_defaults_have_their_places() -> None:
    def forward(ctx: Any, x: tt.Tensor, factor: tt.Tensor) -> tt.Tensor:
        ctx.save_for_backward(x, factor)
        assert ctx.needs_input_grad == (True, True)
        return x * factor

    scaled = made(forward, lambda ctx, g: (g * ctx.saved_tensors[1], g * ctx.saved_tensors[0]))
    x, factor = leaf(1.0, 2.0), leaf(3.0, 4.0)
    scaled.apply(x, factor=factor).sum().backward()
    assert (x.grad.tolist(), factor.grad.tolist()) == ([3.0, 4.0], [1.0, 2.0])

    split = made(lambda x, k=2: x * k, lambda ctx, g: (g * ctx.k, None))
    split.setup_context = staticmethod(lambda ctx, inputs, output: setattr(ctx, "k", inputs[1]))
    x.grad = None
    split.apply(x).sum().backward()
    split.apply(x, k=3).sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]


def test_vjp_is_another_name_for_backward_but_not_beside_it() -> None:
    x = leaf(1.0)
    named = type("Named", (Function,), {"forward": staticmethod(lambda ctx, x: x * 2), "vjp": staticmethod(lambda ctx, g: g * 2)})
    named.apply(x).sum().backward()
    assert x.grad.item() == 2.0
    named.backward = staticmethod(lambda ctx, g: g)
    with pytest.raises(tt.GradError, match="two names for one"):
        named.apply(x).sum().backward()


def test_old_programs_derive_from_inplace_function() -> None:
    class Quantized(tt.autograd.function.InplaceFunction):
        @staticmethod
        def forward(ctx: Any, x: tt.Tensor) -> tt.Tensor:
            return x.round()

        @staticmethod
        def backward(ctx: Any, g: tt.Tensor) -> tt.Tensor:
            return g

    x = leaf(1.4)
    Quantized.apply(x).sum().backward()
    assert x.grad.item() == 1.0
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        assert Quantized(inplace=True).inplace
