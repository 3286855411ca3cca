"""Programs that change from one run to the next: what is known of the last run is never taken for this one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tests.lazy_evaluation import change_programs  # noqa: F401  (its programs are asked here)
from tests.lazy_evaluation.memory_programs import PROGRAMS, a, n, program, w
from tests.lazy_evaluation.programs import WAYS
from tritensor.ground.thread_state import here

# -- arguments that are equal, or the same object, and mean something else
_dims, _rows = [0], [[1.0, 2.0, 3.0]]
m = tt.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


@program
def a_list_that_changes(k: int, kept: dict[str, Any]) -> Any:
    _dims[0] = k % 2
    return (m * 2).sum(_dims), tt.sum(m * 2, dim=_dims)


@program
def a_list_of_numbers_that_changes(k: int, kept: dict[str, Any]) -> Any:
    _rows[0][1] = float(k)
    return tt.tensor(_rows) * (m + 1)[:1, :3]


@program
def truths_and_numbers(k: int, kept: dict[str, Any]) -> Any:
    x = m * 2
    return (
        x[(0, 1) if k % 2 else (False, True)],
        x[0 if k % 3 else False],
        n.clamp(min=1 if k % 2 else 1.0),
        tt.add(n, n, alpha=1 if k % 2 else True),
    )


@program
def signs_of_zero(k: int, kept: dict[str, Any]) -> Any:
    return 1 / (tt.abs(a) * (0.0 if k % 2 else -0.0)), tt.full((2,), -0.0 if k % 2 else 0.0) * a[:2]


@program
def the_same_tensor_twice(k: int, kept: dict[str, Any]) -> Any:
    x, y = a * 2, a * 3
    return tt.add(x, x if k % 3 else y), tt.cat([x, x] if k % 2 else [x, y]), tt.where(a > 0, a, a if k % 2 else n)


# -- settings
@program
def default_type(k: int, kept: dict[str, Any]) -> Any:
    tt.set_default_dtype(tt.float64 if k % 2 else tt.float32)
    try:
        y = n / 2
        return str(y.dtype), y
    finally:
        tt.set_default_dtype(tt.float32)


@program
def default_type_in_between(k: int, kept: dict[str, Any]) -> Any:
    y = n / 2
    tt.set_default_dtype(tt.float64)
    try:
        z = n / 2
        return str(y.dtype), str(z.dtype), y, z
    finally:
        tt.set_default_dtype(tt.float32)


@program
def default_device(k: int, kept: dict[str, Any]) -> Any:
    tt.set_default_device("meta" if k % 2 else "cpu")
    try:
        return str(tt.ones(3).device)
    finally:
        tt.set_default_device(None)


@program
def autocast(k: int, kept: dict[str, Any]) -> Any:
    m = kept.setdefault("m", tt.ones(3, 3))
    with tt.autocast("cpu") if k % 2 else contextlib.nullcontext():
        y = m @ m
    return str(y.dtype), y


@program
def grad_modes(k: int, kept: dict[str, Any]) -> Any:
    with (contextlib.nullcontext, tt.no_grad, tt.inference_mode)[k % 3]():
        y = w * 2
    return y.requires_grad, y.is_inference(), y.detach()


@program
def copied_over_another(k: int, kept: dict[str, Any]) -> Any:
    x, y = a * 2, a * 3
    y.copy_(x)
    tt.evaluate(x)
    y.add_(1)
    return x, y


@program
def a_leaf_copied_over_a_result(k: int, kept: dict[str, Any]) -> Any:
    y, z = a * 2, a * 3
    y.copy_(a)
    z.copy_(a)
    tt.evaluate(y)
    y.add_(1)
    return y, z, a.clone()


# -- views and versions of what is handed out
@program
def version_of_a_view(k: int, kept: dict[str, Any]) -> Any:
    y = a * 2
    v = y[0]
    tt.evaluate(y)
    loss = (w * y).sum()
    v.add_(1)
    with pytest.raises(tt.GradError, match="overwrote in place"):
        loss.backward()
    w.grad = None
    return y


@program
def versions(k: int, kept: dict[str, Any]) -> Any:
    y = a * 2
    y.add_(1)
    z = y.neg()
    v = y[1:]
    tt.evaluate(y)
    return y._version, z._version, v._version, v._base is y, y


@program
def parts(k: int, kept: dict[str, Any]) -> Any:
    y = a * 2
    u, v = y.chunk(2)
    tt.evaluate(u)
    u.add_(1)
    return y, u, v, u._base is y, v._base is y


@program
def view_whose_base_is_gone(k: int, kept: dict[str, Any]) -> Any:
    v = (a * 2)[1:]
    tt.evaluate(v)
    assert v._base is not None
    v.add_(1)
    return v, v._base, v.storage_offset()


@program
def positions(k: int, kept: dict[str, Any]) -> Any:
    y = (a - 2).nonzero()
    return y, y._base is None, tuple(y.stride())


@program
def strides_of_what_was_written(k: int, kept: dict[str, Any]) -> Any:
    x = tt.tensor([[1, 2], [3, 4], [5, 6]]).t()
    x.index_add_(0, tt.tensor([0, 0]), tt.cat([x[:1], x[:1]]))
    y, z = x.flip(0), x[:, 1:] * 2
    r = (tt.tensor([[1, 2], [3, 4], [5, 6]]) * 1).t() * 1
    r.index_add_(0, tt.tensor([0, 0]), tt.cat([r[:1], r[:1]]))
    v = r[1:]
    tt.evaluate(y)
    return x, y, z, r, v, r[:, 1:] * 3, tuple(x.stride()), tuple(y.stride()), tuple(r.stride())


@program
def window_without_elements(k: int, kept: dict[str, Any]) -> Any:
    y = (a * 2).reshape(3, 1)[:, 1:]
    return tuple(y.shape), y.storage_offset()


@program
def shown(k: int, kept: dict[str, Any]) -> Any:
    y = a * 2
    text = repr(y)
    return text, repr(y + k), type(y).__name__


@program
def results_kept(k: int, kept: dict[str, Any]) -> Any:
    kept.setdefault("all", []).append(a * k)
    return [x.clone() for x in kept["all"]]


# -- gradients
@program
def gradient_of_a_sum(k: int, kept: dict[str, Any]) -> Any:
    (g,) = tt.autograd.grad(w.sum(), [w])
    g.mul_(2)
    return g, tuple(g.stride())


class Tripled(tt.autograd.Function):
    """x * 3, whose backward goes through numpy."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 3

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return tt.from_numpy(3 * g.numpy())


@program
def gradients_that_are_rows(k: int, kept: dict[str, Any]) -> Any:
    y = kept.setdefault("y", Tripled.apply(w))
    rows = tt.eye(3)
    return tuple([tt.autograd.grad(y, w, rows[i], retain_graph=True)[0] for i in range(3)])


@program
def training(k: int, kept: dict[str, Any]) -> Any:
    p = kept.setdefault("p", tt.tensor([1.0, 2.0, 3.0], requires_grad=True))
    (p * p).sum().backward()
    if k % 2:
        with tt.no_grad():
            p -= 0.5 * p.grad
        p.grad = None
    return p.detach().clone(), (p * 2).detach()


class Named(tt.Tensor):
    """A tensor of another class, whose functions give such ones."""


@program
def a_subclass(k: int, kept: dict[str, Any]) -> Any:
    x = tt.tensor([1.0, 2.0, 3.0])
    y = x.as_subclass(Named) if k % 2 else x
    return type(y * 2).__name__, type((y * 2).sum(0)).__name__, (y * 2).sum(0).as_subclass(tt.Tensor)


@program
def end_of_the_graph(k: int, kept: dict[str, Any]) -> Any:
    p = tt.tensor([1.0, 2.0, 3.0], requires_grad=True)
    q = kept.setdefault("q", tt.exp(p)) if k % 2 else p
    tt.evaluate(q)
    (q * 2).sum().backward(retain_graph=True)
    return p.grad, q.grad if q.is_leaf else 0, q.is_leaf


@program
def required_later(k: int, kept: dict[str, Any]) -> Any:
    y = a * 2
    if k % 2:
        y.requires_grad_()
    else:
        y.requires_grad = True
    (y * y).sum().backward()
    return y.grad


@program
def hooks(k: int, kept: dict[str, Any]) -> Any:
    y = w * 2
    y.register_hook(lambda g: g * (k + 1))
    (y * 3).sum().backward()
    g = w.grad.clone()
    w.grad = None
    return g


# -- Python going another way
@program
def attributes(k: int, kept: dict[str, Any]) -> Any:
    y = a * 2
    y.mine = k
    return y.mine, y + 1


@program
def numbers(k: int, kept: dict[str, Any]) -> Any:
    y = a * (0.0 if k % 2 else -0.0)
    z = n + (1.0 if k % 2 else 1)
    return (
        tt.copysign(tt.ones(3), y),
        str(z.dtype),
        str((n * (True if k % 2 else 1)).dtype),
        z,
        a * np.float32(2 + k),
        str((a * float("nan")).tolist()),
    )


@program
def indices(k: int, kept: dict[str, Any]) -> Any:
    y = a * 2
    return y[k % 2 :], y[[0, 1]], y[tt.tensor([0, k % 3])], tt.cat([a, a][: 1 + k % 2])


@program
def random_numbers(k: int, kept: dict[str, Any]) -> Any:
    tt.manual_seed(k % 2)
    g = tt.Generator().manual_seed(k % 2)
    return tt.rand(3), a * tt.rand(3), tt.rand(3, generator=g) * a, tt.nn.functional.dropout(a, 0.5)


@program
def random_numbers_of_another_branch(k: int, kept: dict[str, Any]) -> Any:
    if k == 0:
        tt.manual_seed(0)
    x = tt.rand(3)
    y = x * tt.rand(3) if k % 2 else x + 1
    return x, y, tt.rand(3)


@program
def values_of_a_branch(k: int, kept: dict[str, Any]) -> Any:
    x = kept.setdefault("x", [tt.tensor([1.0, 2.0, 3.0]), tt.tensor([4.0, 5.0, 6.0])])[k % 2]
    y = x > 2
    return tt.where(y, x, 0) if k >= 2 else y + 1


@program
def views_of_a_branch(k: int, kept: dict[str, Any]) -> Any:
    y = a * (k + 2)
    v = y[1:]
    z = v + 1 if k % 2 else v - 1
    return z, tt.cat([v, y]) if k % 3 else v * 2


@program
def gradients_of_a_branch(k: int, kept: dict[str, Any]) -> Any:
    y = w * 2
    z = y.tanh() if k % 2 else y.sigmoid()
    (g,) = tt.autograd.grad((z[1:] * z[1:] * y[1:]).sum(), [w])
    return (g * 64).round()


@program
def exchanged(k: int, kept: dict[str, Any]) -> Any:
    x, y = a * 2, a * 3
    if k % 2:
        x, y = y, x
    return x - y


@program
def same_argument(k: int, kept: dict[str, Any]) -> Any:
    x = tt.tensor([1.0, 2.0, 3.0]) + k
    y = x if k % 2 else tt.tensor([4.0, 5.0, 6.0])
    return x + y, (x * 1).add_(y)


@program
def aliases(k: int, kept: dict[str, Any]) -> Any:
    x = tt.tensor([1.0, 2.0, 3.0])
    y = x if k % 2 else x.clone()
    v = x[:2] if k % 2 else x[:2].clone()
    x.add_(1)
    return x, y, x + y, v + 1


@program
def errors_of_python(k: int, kept: dict[str, Any]) -> Any:
    y = a * 2
    try:
        if k % 2:
            raise ValueError
        return y + 1
    except ValueError:
        return y + 2


@program
def other_types(k: int, kept: dict[str, Any]) -> Any:
    y = (a * 2).to((tt.float64, tt.float16, tt.int32)[k % 3])
    return str((y + 1).dtype), (y + 1).double()


@pytest.mark.parametrize("run", PROGRAMS, ids=lambda f: f.__name__)
def test_each_run_is_what_it_is_eagerly(run: Callable[[int, dict[str, Any]], Any]) -> None:
    found = {}
    for way in WAYS:
        here.own_segment = None
        tt.manual_seed(0)
        kept: dict[str, Any] = {}
        results = []
        with tt.lazy() if way == "one region" else contextlib.nullcontext():
            for k in range(6):
                with tt.lazy() if way == "a region each" or (way == "in and out" and k % 2) else contextlib.nullcontext():
                    results.append(run(k, kept))
        found[way] = [_values(r) for r in results]
    for way in WAYS[1:]:
        assert found[way] == found["eager"], way


def _values(x: Any) -> Any:
    if isinstance(x, tt.Tensor):
        return str(x.dtype), x.tolist()
    return [_values(y) for y in x] if isinstance(x, tuple | list) else x
