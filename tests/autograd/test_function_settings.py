"""autograd.Function's settings: vjp for backward, gradients as a list, saved tensors that are given away; what an object of one says."""

from __future__ import annotations

import pytest

import tritensor as tt
from tritensor.autograd import Function


def test_vjp_is_another_name_for_backward() -> None:
    class Seven(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def vjp(ctx, g):
            with pytest.warns(DeprecationWarning, match="use 'saved_tensors'"):
                assert len(ctx.saved_variables) == 1
            return g * 7

    class Both(Seven):
        @staticmethod
        def backward(ctx, g):
            return g

    x = tt.ones(2, requires_grad=True)
    Seven.apply(x).sum().backward()
    assert x.grad.tolist() == [7, 7]
    y = Both.apply(x).sum()
    with pytest.raises(tt.GradError, match="Implementing both 'backward' and 'vjp'"):
        y.backward()


def test_boxed_gradients_come_as_a_list() -> None:
    class Boxed(Function):
        boxed_grads_call = True

        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, grads):
            assert isinstance(grads, list)
            return grads.pop() * 3 + grads.pop() * 2

    x = tt.ones(2, requires_grad=True)
    sum(Boxed.apply(x)).sum().backward()
    assert x.grad.tolist() == [5, 5]


def test_saved_tensors_are_given_away_where_it_is_said() -> None:
    class Once(Function):
        clear_saved_tensors_on_access = True

        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            with pytest.raises(tt.GradError, match="can only be accessed once"):
                ctx.saved_tensors  # noqa: B018
            return 2 * g * x

    x = tt.ones(2, requires_grad=True)
    y = Once.apply(x).sum()
    y.backward(retain_graph=True)
    assert x.grad.tolist() == [2, 2]
    with pytest.raises(tt.GradError, match="can only be accessed once"):
        y.backward()


def test_a_function_is_no_object() -> None:
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        Function()
    with pytest.raises(NotImplementedError, match="static setup_context"):
        Function.setup_context(None, (), None)
    with pytest.raises(RuntimeError, match="use tensor"):
        tt.autograd.variable(1)
