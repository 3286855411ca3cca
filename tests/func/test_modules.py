"""Modules as functions, Functions inside transforms, forward mode by hand, trees."""

from __future__ import annotations

import re
from collections import OrderedDict, namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tritensor as tt
import tritensor.func.forward_ad as fw
from tritensor import nn
from tritensor.func import functional_call, functionalize, grad, jvp, rearrange, replace_all_batch_norm_modules_, stack_module_state, vmap
from tritensor.ground import pytree


def close(a: Any, b: Any, tolerance: float = 1e-5) -> None:
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), tolerance, tolerance)


def net() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 3, 3), nn.GroupNorm(3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(27, 2))


def test_gradients_of_each_example_of_a_network() -> None:
    model, x, t = net(), tt.randn(4, 1, 5, 5), tt.tensor([0, 1, 1, 0])
    params = {k: v.detach() for k, v in model.named_parameters()}

    def loss(p: Any, image: tt.Tensor, label: tt.Tensor) -> tt.Tensor:
        return nn.functional.cross_entropy(functional_call(model, p, (image[None],)), label[None])

    each = vmap(grad(loss), in_dims=(None, 0, 0))(params, x, t)
    for i in range(4):
        model.zero_grad()
        nn.functional.cross_entropy(model(x[i : i + 1]), t[i : i + 1]).backward()
        for name, p in model.named_parameters():
            close(each[name][i], p.grad, 1e-4)


def test_an_ensemble_in_one_call() -> None:
    models = [net() for _ in range(3)]
    params, buffers = stack_module_state(models)
    x = tt.randn(2, 1, 5, 5)
    out = vmap(lambda p, b: functional_call(models[0], (p, b), (x,)))(params, buffers)
    for i, model in enumerate(models):
        close(out[i], model(x))
    out.sum().backward()
    assert all(p.is_leaf and p.grad is not None for p in params.values())


def test_batch_norm_without_statistics_is_mapped() -> None:
    model = replace_all_batch_norm_modules_(nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)))
    x = tt.randn(3, 2, 1, 5, 5)
    close(vmap(model)(x)[1], model(x[1]), 1e-4)


def test_a_recurrent_net_is_mapped() -> None:
    model, x = nn.LSTM(3, 4), tt.randn(5, 6, 2, 3)
    close(vmap(lambda y: model(y)[0])(x)[2], model(x[2])[0])


class Cube(tt.autograd.Function):
    """x^3 whose backward is its own, and counts."""

    generate_vmap_rule = True
    calls = 0

    @staticmethod
    def forward(x: tt.Tensor) -> tt.Tensor:
        return x**3

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tt.Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, g: tt.Tensor) -> tt.Tensor:
        Cube.calls += 1
        (x,) = ctx.saved_tensors
        return 3 * x**2 * g


def test_functions_are_one_step_at_every_level() -> None:
    x = tt.randn(3)
    f = lambda y: Cube.apply(y).sum()  # noqa: E731
    close(grad(f)(x), 3 * x**2)
    close(vmap(grad(f))(x[:, None])[:, 0], 3 * x**2)
    close(grad(lambda y: grad(f)(y).sum())(x), 6 * x)
    close(jvp(f, (x,), (tt.ones(3),))[1], (3 * x**2).sum())
    close(grad(lambda y: vmap(Cube.apply)(y).sum())(x), 3 * x**2)
    assert Cube.calls >= 5


def test_a_function_of_the_older_form_is_refused_inside() -> None:
    class Older(tt.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: tt.Tensor) -> tt.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: tt.Tensor) -> tt.Tensor:
            return g * 2

    close(grad(lambda y: Older.apply(y).sum())(tt.ones(2)), tt.full((2,), 2.0))
    with pytest.raises(tt.TransformError, match="a static setup_context"):
        vmap(Older.apply)(tt.ones(2))


def test_a_functions_own_jvp_and_vmap() -> None:
    class Own(tt.autograd.Function):
        @staticmethod
        def forward(x: tt.Tensor, k: float) -> tt.Tensor:
            return x * k

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tt.Tensor) -> None:
            ctx.k = inputs[1]

        @staticmethod
        def jvp(ctx: Any, t: tt.Tensor, _: Any) -> tt.Tensor:
            return t * ctx.k + 100

        @staticmethod
        def vmap(info: Any, in_dims: Any, x: tt.Tensor, k: float) -> Any:
            assert (info.batch_size, in_dims) == (4, (0, None))
            return x * k + 1, 0

    close(jvp(lambda y: Own.apply(y, 2.0), (tt.ones(2),), (tt.ones(2),))[1], tt.full((2,), 102.0))
    close(vmap(lambda y: Own.apply(y, 2.0))(tt.ones(4, 2)), tt.full((4, 2), 3.0))


def test_tensors_that_carry_tangents() -> None:
    x, w, t = tt.randn(3, requires_grad=True), tt.randn(3, requires_grad=True), tt.randn(3)
    with fw.dual_level():
        d = fw.make_dual(x, t)
        y = (d**3 * w).sum()
        primal, tangent = fw.unpack_dual(y)
        close(primal, (x**3 * w).sum())
        close(tangent, (3 * x**2 * w * t).sum())
        (g,) = tt.autograd.grad(y, x)
        close(fw.unpack_dual(g).tangent, 6 * x * w * t)
        close(tt.autograd.grad(tangent, w)[0], 3 * x**2 * t)
        assert fw.unpack_dual(w).tangent is None
        assert "tangent=" in repr(d)
        with pytest.raises(tt.TransformError, match="levels do not nest"):
            fw.enter_dual_level()
    assert fw.unpack_dual(d).tangent is None
    with pytest.raises(tt.TransformError, match="no level is entered"):
        fw.make_dual(x, t)


def test_trees() -> None:
    pair = namedtuple("pair", "a b")
    tree = {"x": [1, (2, 3)], "y": pair(4, OrderedDict(z=None))}
    leaves, spec = pytree.tree_flatten(tree)
    assert leaves == [1, 2, 3, 4, None]
    assert pytree.tree_unflatten(leaves, spec) == tree
    assert spec == pytree.tree_structure(tree)
    assert (spec.num_leaves, spec.num_children) == (5, 2)
    assert pytree.tree_map(lambda a, b: (a, b), [1, [2]], [3, [4]]) == [(1, 3), [(2, 4)]]
    assert pytree.tree_map_only(int, lambda v: -v, (1, "a")) == (-1, "a")
    assert pytree.broadcast_to_and_flatten([0, None], pytree.tree_structure([(1, 2), 3]), is_leaf=lambda v: v is None) == [0, 0, None]
    with pytest.raises(ValueError, match="give trees of one shape"):
        pytree.tree_map(lambda a, b: a, [1, 2], [1])
    with pytest.raises(ValueError, match="2 leaves for a tree of 5"):
        pytree.tree_unflatten([1, 2], spec)


def test_functionalize_is_the_function() -> None:
    assert functionalize(lambda x: x.add_(1))(tt.zeros(2)).tolist() == [1.0, 1.0]


def test_rearrange() -> None:
    x = tt.arange(24).reshape(2, 3, 4)
    assert rearrange(x, "a b c -> c (b a)").tolist() == x.permute(2, 1, 0).reshape(4, 6).tolist()
    assert rearrange(x, "a ... (c d) -> (c a) ... d 1", d=2).shape == (4, 3, 2, 1)
    with pytest.raises(ValueError, match="names 2 dimensions, the tensor \\(2, 3, 4\\) has 3; name them all"):
        rearrange(x, "a b -> b a")
    with pytest.raises(ValueError, match="is not made of c and d"):
        rearrange(x, "a b (c d) -> a b c d", c=3)


def test_the_code_of_the_page_runs() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "func.md").read_text()
    code = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0]
    exec(compile(code, "func.md", "exec"), {})


def test_trees_of_dictionaries_go_together_by_their_keys() -> None:
    assert pytree.tree_map(lambda a, b: a + b, {"a": 1, "b": 2}, OrderedDict(b=10, a=20)) == {"a": 21, "b": 12}
    x = {"a": tt.ones(2, 3), "b": tt.ones(3)}
    assert vmap(lambda d: d["a"] * d["b"], in_dims=({"b": None, "a": 0},))(x).shape == (2, 3)
    with pytest.raises(ValueError, match=r"with the keys \['a', 'b'\] is expected"):
        pytree.tree_map(lambda a, b: a, {"a": 1, "b": 2}, {"a": 1, "c": 2})
