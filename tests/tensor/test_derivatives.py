"""Results that have no slope by what they were computed of: in the graph with gradients of 0, or with derivatives that raise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tritensor as tt

COMPARED = {
    "eq_": [1.0, 0.0], "ne_": [0.0, 1.0], "lt_": [0.0, 1.0], "le_": [1.0, 1.0], "gt_": [0.0, 0.0], "ge_": [1.0, 0.0],
    "not_equal_": [0.0, 1.0], "less_": [0.0, 1.0], "less_equal_": [1.0, 1.0], "greater_": [0.0, 0.0], "greater_equal_": [1.0, 0.0],
}  # fmt: skip


@pytest.fixture(params=["cpu", "cuda"])
def device(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def leaf(values: Any, device: str = "cpu", dtype: Any = tt.float32) -> tt.Tensor:
    return tt.tensor(values, dtype=dtype, device=device, requires_grad=True)


# -- comparisons that are written over their first argument
@pytest.mark.parametrize("name", COMPARED)
def test_a_comparison_written_over_numbers_is_constant_in_both(name: str, device: str) -> None:
    x, y = leaf([1.0, 2.0], device), leaf([1.0, 3.0], device)
    a = x * 1
    getattr(a, name)(y)
    assert a.tolist() == COMPARED[name]
    (a * tt.tensor([2.0, float("nan")], device=device)).sum().backward()  # what arrives, NaN too, meets a slope of 0
    assert x.grad.tolist() == [0.0, 0.0]
    assert y.grad.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("name", COMPARED)
def test_it_brings_its_first_argument_into_the_graph_of_the_second(name: str) -> None:
    a, y = tt.ones(2, 2), leaf([1.0, 3.0])
    getattr(a, name)(y)
    assert a.requires_grad
    assert a.grad_fn is not None
    a.sum().backward()
    assert y.grad.tolist() == [0.0, 0.0]


def test_it_reaches_the_base_of_a_view() -> None:
    base, y = tt.zeros(3), leaf([0.0])
    base[1:2].eq_(y)
    assert base.tolist() == [0.0, 1.0, 0.0]
    base.sum().backward()
    assert y.grad.tolist() == [0.0]


def test_whole_numbers_and_bools_stay_outside() -> None:
    for a in (tt.tensor([1, 2]), tt.tensor([True, False])):
        a.eq_(leaf([1.0, 3.0]))
        assert not a.requires_grad
    with tt.no_grad():
        assert not tt.ones(1).lt_(leaf([2.0])).requires_grad


def test_a_leaf_is_refused() -> None:
    with pytest.raises(tt.GradError, match="eq_: a leaf that requires grad cannot be written in place"):
        leaf([1.0]).eq_(leaf([1.0]))


@pytest.mark.parametrize("name", ["eq_", "lt_"])
def test_transforms_find_slopes_of_zero(name: str) -> None:
    def f(y: tt.Tensor) -> tt.Tensor:
        a: tt.Tensor = getattr(tt.zeros_like(y), name)(y)
        return (a * 3 + y).sum()

    y = tt.tensor([0.0, 2.0])
    assert tt.func.grad(f)(y).tolist() == [1.0, 1.0]
    assert tt.func.jvp(f, (y,), (tt.ones(2),))[1].item() == 2.0
    assert tt.func.vmap(tt.func.grad(f))(tt.stack([y, y])).tolist() == [[1.0, 1.0]] * 2
    assert tt.func.hessian(f)(y).tolist() == [[0.0, 0.0]] * 2


# -- what is multiplied by nothing
PRODUCTS = {
    "addmm": ((2, 2), (2, 3), (3, 2)), "addmv": ((2,), (2, 3), (3,)), "addr": ((2, 2), (2,), (2,)), "baddbmm": ((2, 2, 2), (2, 2, 3), (2, 3, 2)),
    "addbmm": ((2, 2), (2, 2, 3), (2, 3, 2)),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [tt.float32, tt.bfloat16])
@pytest.mark.parametrize("name", PRODUCTS)
def test_a_sum_of_products_that_leaves_its_input_out_has_its_zeros(name: str, dtype: Any, device: str) -> None:
    first, *others = (tt.ones(shape, dtype=dtype, device=device) for shape in PRODUCTS[name])
    x = (first * float("nan")).requires_grad_()
    y = getattr(tt, name)(x, *others, beta=0)
    assert y.requires_grad
    assert y.isfinite().all().item()
    y.sum().backward()
    assert x.grad.tolist() == tt.zeros_like(first).tolist()
    assert x.grad.dtype is dtype

    others[0].requires_grad_()
    whole = getattr(tt, name)(first, *others)  # whose slope by the factors is the same
    alone = getattr(tt, name)(x, *others, beta=0)
    wanted, found = (tt.autograd.grad(y.sum(), others[0])[0].tolist() for y in (whole, alone))
    assert found == wanted


@pytest.mark.parametrize("name", PRODUCTS)
def test_so_has_a_product_of_alpha_zero(name: str) -> None:
    x, a, b = (tt.ones(shape) for shape in PRODUCTS[name])
    a.requires_grad_()
    y = getattr(tt, name)(x, a, b, alpha=0)
    assert y.requires_grad
    y.sum().backward()
    assert a.grad.abs().sum().item() == 0.0


def test_what_was_written_in_place_loses_its_own_gradient() -> None:
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    y = x * 2
    y.addmm_(tt.ones(2, 2), tt.ones(2, 2), beta=0)
    y.mul_(3).sum().backward()
    assert y.tolist() == [[6.0, 6.0]] * 2
    assert x.grad.tolist() == [[0.0, 0.0]] * 2


def test_heaviside_is_constant_in_its_first_argument() -> None:
    x, at_zero = leaf([-1.0, 0.0, 2.0]), leaf(0.5)
    y = tt.heaviside(x, at_zero)
    assert y.tolist() == [0.0, 0.5, 1.0]
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, 0.0]
    assert at_zero.grad.item() == 1.0
    assert tt.heaviside(x, tt.tensor(0.5)).requires_grad
    assert tt.func.jvp(lambda x: tt.heaviside(x, tt.tensor(0.5)), (x.detach(),), (tt.ones(3),))[1].tolist() == [0.0, 0.0, 0.0]


# -- derivatives that nobody knows
def _first(f: Callable[[tt.Tensor], Any]) -> Callable[[tt.Tensor], tt.Tensor]:
    return lambda x: f(x)[0]


BARRED: dict[str, Callable[[tt.Tensor], Any]] = {
    "unique": tt.unique,
    "unique of rows": lambda x: tt.unique(x, dim=0),
    "unique and the rest": _first(lambda x: tt.unique(x, return_inverse=True, return_counts=True)),
    "unique_consecutive": tt.unique_consecutive,
    "unique_consecutive of rows": _first(lambda x: tt.unique_consecutive(x, dim=0, return_inverse=True)),
    "bincount": lambda x: tt.bincount(tt.tensor([0, 1, 1, 0], device=x.device), x.reshape(-1)),
    "histogram": _first(lambda x: tt.histogram(x, 2)),
    "histogram of weights": _first(lambda x: tt.histogram(x.detach(), 2, weight=x)),
    "histogramdd": _first(lambda x: tt.histogramdd(x, [2, 2])),
    "geqrf": _first(tt.geqrf),
    "ldl_factor": _first(tt.linalg.ldl_factor),
    "ldl_factor_ex": _first(tt.linalg.ldl_factor_ex),
    "ldl_solve": lambda x: tt.linalg.ldl_solve(tt.eye(2, device=x.device), tt.tensor([1, 2], dtype=tt.int32, device=x.device), x),
}


@pytest.mark.parametrize("case", BARRED)
def test_a_result_without_derivative_hangs_in_the_graph_and_says_so(case: str) -> None:
    f, x = BARRED[case], leaf([[2.0, -0.0], [-0.0, 1.0]])
    y = f(x)
    assert y.requires_grad
    assert y.grad_fn is not None
    assert (y.detach().tolist(), y.dtype) == (f(x.detach()).tolist(), f(x.detach()).dtype)
    assert [str(v) for v in y.detach().reshape(-1).tolist()] == [str(v) for v in f(x.detach()).reshape(-1).tolist()]  # -0.0 stays
    name = case.split()[0]
    for error in (tt.GradError, NotImplementedError):
        with pytest.raises(error, match=f"^{name}: there is no derivative; give it a detached tensor"):
            (f(x).sum() + x.sum()).backward()
    with pytest.raises(tt.NoDerivativeError, match=name):
        tt.func.grad(lambda x: f(x).sum())(x.detach())
    with pytest.raises(tt.NoDerivativeError, match=name):
        tt.func.jvp(lambda x: f(x).sum(), (x.detach(),), (tt.ones(2, 2),))
    with tt.no_grad():
        assert not f(x).requires_grad
    assert not f(x.detach()).requires_grad


def test_on_a_gpu_too(device: str) -> None:
    y = tt.unique(leaf([2.0, 1.0, 2.0], device))
    assert y.tolist() == [1.0, 2.0]
    with pytest.raises(tt.NoDerivativeError, match="unique"):
        y.sum().backward()


def test_what_is_counted_beside_has_none_either_way() -> None:
    x = leaf([2.0, 1.0, 2.0])
    _, inverse, counts = tt.unique(x, return_inverse=True, return_counts=True)
    assert not inverse.requires_grad
    assert not counts.requires_grad
    assert tt.func.grad(lambda x: (x * tt.unique(x, return_inverse=True)[1]).sum())(x.detach()).tolist() == [1.0, 0.0, 1.0]


@pytest.mark.filterwarnings("ignore:vmap. count_keys has no rule for batches")
def test_each_example_of_a_batch_is_refused_alike() -> None:
    keys, batch = tt.tensor([0, 1, 1]), tt.ones(2, 3)
    count = lambda w: tt.bincount(keys, w).sum()  # noqa: E731
    assert tt.func.vmap(count)(batch).tolist() == [3.0, 3.0]
    with pytest.raises(tt.NoDerivativeError, match="bincount"):
        tt.func.vmap(tt.func.grad(count))(batch)


def test_a_result_may_be_written() -> None:
    y = tt.unique(leaf([2.0, 1.0])).mul_(2)
    assert y.tolist() == [2.0, 4.0]
    assert y.requires_grad
