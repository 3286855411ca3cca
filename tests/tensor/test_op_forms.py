"""Public forms of an op, made of its record: a function, methods, `out=`; what the door says of wrong arguments, and of names that somebody has."""

from __future__ import annotations

import copy
import importlib.metadata
import inspect
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl

import tritensor as tt
from tritensor.ground.errors import DTypeError, PluginError, RegistrationError
from tritensor.kernels.parts import maths
from tritensor.ops.table import Ops, op, registry
from tritensor.tensor.public_api import op_forms

NAMES = ("op_forms_test", "op_forms_pair", "op_forms_peak", "op_forms_rows")


@pytest.fixture(autouse=True)
def the_names_are_free() -> Iterator[None]:
    yield
    for name in NAMES:
        registry.pop(name, None)


@triton.jit
def _isru(x, alpha):
    return maths.div(x, maths.sqrt(1.0 + alpha * x * x))


@triton.jit
def _isru_grad(g, x, alpha):
    return maths.div(g, (1.0 + alpha * x * x) * maths.sqrt(1.0 + alpha * x * x))


def _numpy_isru(x: np.ndarray, *, alpha: float = 1.0) -> np.ndarray:
    """x / sqrt(1 + alpha x^2)."""
    return x / np.sqrt(1 + alpha * x * x)


@triton.jit
def _average(a, b):
    return (a + b) * 0.5


@triton.jit
def _half(g):
    return g * 0.5


def isru(**more: Any) -> Any:
    given = {"attributes": ("alpha",), "kinds": ("float",), "public": True, **more}
    return tt.elementwise("op_forms_test", _isru, _isru_grad, _numpy_isru, **given)


def average(**more: Any) -> Any:
    return tt.elementwise("op_forms_pair", _average, (_half, _half), lambda a, b: (a + b) / 2, public=True, **more)


@pytest.mark.parametrize("where", ["cpu", "cuda"])
def test_an_elementwise_op_is_a_function_a_method_and_has_the_other_forms(where: str) -> None:
    isru()
    x = tt.linspace(-2, 2, 7, device=where)
    want = (x / (1 + 3 * x * x).sqrt()).tolist()
    close = {"rel": 1e-5}
    assert tt.op_forms_test(x, alpha=3).tolist() == pytest.approx(want, **close)
    assert x.op_forms_test(alpha=3.0).tolist() == pytest.approx(want, **close)
    out = tt.empty(7, device=where)
    assert tt.op_forms_test(input=x, alpha=3.0, out=out) is out
    assert out.tolist() == pytest.approx(want, **close)
    written = x.clone()
    assert written.op_forms_test_(alpha=3.0) is written
    assert written.tolist() == pytest.approx(want, **close)
    leaf = x.clone().requires_grad_()
    (first,) = tt.autograd.grad(tt.op_forms_test(leaf, alpha=3.0).sum(), leaf, create_graph=True)
    assert first.tolist() == pytest.approx(((1 + 3 * x * x) ** -1.5).tolist(), **close)
    assert first.requires_grad


def test_two_operands_broadcast_and_may_be_numbers() -> None:
    average()
    x = tt.tensor([[1.0], [3.0]])
    assert tt.op_forms_pair(x, tt.tensor([1.0, 5.0])).tolist() == [[1.0, 3.0], [2.0, 4.0]]
    assert x.op_forms_pair(1).tolist() == [[1.0], [2.0]]
    assert tt.op_forms_pair(1.0, b=x).tolist() == [[1.0], [2.0]]
    assert x.clone().op_forms_pair_(x).tolist() == x.tolist()
    assert tt.op_forms_pair(x.to(tt.int32), 2).dtype == tt.float32


WRONG: list[tuple[Any, type[Exception], str]] = [
    (lambda x: tt.op_forms_test(), TypeError, "op_forms_test: input missing; op_forms_test takes (input, *, alpha=1.0)"),
    (lambda x: tt.op_forms_test(x, 2.0), TypeError, "op_forms_test: 2 arguments by place; op_forms_test takes (input, *, alpha=1.0)"),
    (lambda x: tt.op_forms_test(x, alhpa=2.0), TypeError, "op_forms_test: no keyword 'alhpa', did you mean 'alpha'?"),
    (lambda x: tt.op_forms_test(x.numpy()), TypeError, "op_forms_test: input is a ndarray; give a tensor (tritensor.from_numpy(...))"),
    (lambda x: tt.op_forms_test(x, alpha="2"), TypeError, "op_forms_test: alpha is a str; give a number"),
    (lambda x: x.op_forms_test_(2.0), TypeError, "op_forms_test_: 2 arguments by place"),
    (lambda x: tt.op_forms_test(x.to(tt.complex64)), DTypeError, "op_forms_test: input is complex64; op_forms_test takes float types"),
    (lambda x: tt.op_forms_test(x, out=3), TypeError, "op_forms_test: out is a int, not a tensor"),
]


@pytest.mark.parametrize(("call", "kind", "said"), WRONG, ids=[w[2][:40] for w in WRONG])
def test_wrong_arguments_are_told_as_the_librarys_own(call: Any, kind: type[Exception], said: str) -> None:
    isru()
    with pytest.raises(kind) as caught:
        call(tt.ones(2))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_reduction_and_an_op_of_its_own_kernels_may_have_them_too() -> None:
    @triton.jit
    def larger(a, b):
        return tl.maximum(a, b)

    from tritensor.kernels.parts.reduction import value

    def peak(x: np.ndarray, *, dim: tuple[int, ...], keepdim: bool = False) -> np.ndarray:
        return np.asarray(x.max(axis=dim, keepdims=keepdim))

    tt.reduction(
        "op_forms_peak", peak, map=value, combine=larger, finish=None, identity=lambda states: (-np.inf,), rule=None,
        samples=lambda rng: [tt.Sample(rng.standard_normal((3, 4)), dim=(1,), keepdim=False)], kinds=("float",), public=True,
    )  # fmt: skip
    for where in ("cpu", "cuda"):
        x = tt.tensor([[1.0, 5.0], [7.0, 2.0]], device=where)
        assert tt.op_forms_peak(x, dim=(1,)).tolist() == x.op_forms_peak(dim=(1,)).tolist() == [5.0, 7.0]
        assert tt.op_forms_peak(x, dim=(0,), out=tt.empty(2, device=where)).tolist() == [7.0, 5.0]
    assert not hasattr(tt.Tensor, "op_forms_peak_")
    with pytest.raises(TypeError, match=r"op_forms_peak: dim missing; op_forms_peak takes \(input, \*, dim, keepdim=False\)"):
        tt.op_forms_peak(tt.ones(2))
    with pytest.raises(TypeError, match="op_forms_peak: keepdim is 1, an int; give True or False"):
        tt.op_forms_peak(tt.ones(2), dim=(0,), keepdim=1)


def view(name: str, **more: Any) -> Any:
    given: dict[str, Any] = {"shape": lambda x: tt.Spec(x.shape, x.dtype), "samples": lambda rng: [], "view": True, "differentiable": False}
    return op(name, lambda x: x[...], **{**given, **more})


REFUSED: dict[str, tuple[Any, str]] = {
    "a form that is none": (lambda: view("op_forms_rows", public="methods"), "public has 'methods'; it is True, or some of 'function', 'method'"),
    "a view written over": (lambda: view("op_forms_rows", public=("method", "inplace")), "public has 'inplace', which an op that gives a view cannot have"),
    "out= of nothing": (lambda: isru(public=("out",)), "public is 'out' alone"),
    "a function of ours": (
        lambda: view("tensordot", public="function"),
        r"public: tritensor.tensordot is taken by tritensor itself \(.*functions/.*\.py:\d+\); write replace=True",
    ),
    "a module": (lambda: view("nn", public="function", replace=True), r"tritensor.nn is taken by tritensor itself \(a module\); choose another name"),
    "a late module": (lambda: view("viz", public="function", replace=True), "tritensor.viz is taken .* choose another name"),
    "an attribute": (lambda: view("dtype", public="method", replace=True), "Tensor.dtype is taken by tritensor itself .*; choose another name"),
    "a slot": (lambda: view("_tracked", public="method"), "Tensor._tracked is taken"),
    "random numbers": (
        lambda: view("op_forms_rows", view=False, shape=lambda *, seed, offset: None, forward=lambda *, seed, offset: None, public=True),
        "write the function that draws them",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_public_is_refused(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, said = REFUSED[case]
    before = dict(dict.items(registry))
    if case == "random numbers":
        make = lambda: op(  # noqa: E731
            "op_forms_rows", lambda *, seed, offset: np.zeros(1), shape=lambda *, seed, offset: None, forward=lambda *, seed, offset: None,
            samples=lambda rng: [], differentiable=False, public=True,
        )  # fmt: skip
    with pytest.raises(RegistrationError, match=said):
        make()
    assert dict(dict.items(registry)) == before


def test_a_name_of_another_op_is_told_with_its_owner() -> None:
    tt.elementwise("op_forms_test", _isru, _isru_grad, _numpy_isru, attributes=("alpha",), public=True)
    tt.elementwise("op_forms_pair", _average, (_half, _half), lambda a, b: (a + b) / 2, public=True)
    registry["op_forms_pair"]
    with pytest.raises(RegistrationError, match=r"the name is taken by .*test_op_forms\.py:\d+; write replace=True"):
        isru()
    isru(replace=True)
    assert tt.op_forms_test(tt.ones(1)).item() == pytest.approx(2**-0.5)


def test_a_function_of_the_library_gives_way_and_comes_back() -> None:
    ours, method = tt.tensordot, tt.Tensor.tensordot if hasattr(tt.Tensor, "tensordot") else None
    view("tensordot", public=("function", "method"), replace=True)
    try:
        assert tt.tensordot(tt.ones(2)).tolist() == tt.ones(2).tensordot().tolist() == [1.0, 1.0]
    finally:
        del registry["tensordot"]
    assert tt.tensordot is ours
    assert (tt.Tensor.tensordot if hasattr(tt.Tensor, "tensordot") else None) is method


def test_help_pickle_and_listing() -> None:
    isru()
    for f in (tt.op_forms_test, tt.Tensor.op_forms_test):
        assert str(inspect.signature(f)) == "(input: 'Tensor', *, alpha: 'float' = 1.0, out: 'Tensor | None' = None) -> 'Tensor'"
    assert tt.op_forms_test.__doc__.startswith("x / sqrt(1 + alpha x^2).\n")
    assert tt.Tensor.op_forms_test_.__doc__.startswith("In-place form of op_forms_test")
    assert "op_forms_test" in dir(tt)
    assert "op_forms_test" in dir(tt.ones(1))
    assert pickle.loads(pickle.dumps(tt.op_forms_test)) is copy.copy(tt.op_forms_test) is tt.op_forms_test


class Entry:
    name, value, dist = "more", "more_ops", None

    def load(self) -> None:
        isru()


class Broken:
    name, value, dist = "broken", "broken_ops", None

    def load(self) -> None:
        raise ZeroDivisionError("by nought")


def test_a_packages_function_is_found_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [Entry()] if group == "tritensor.ops" else [])
    monkeypatch.setattr(Ops, "plugins_read", False)
    monkeypatch.setattr(op_forms, "_plugins_read", False)
    assert not hasattr(tt, "_private")
    assert not registry.known("op_forms_test")
    assert tt.op_forms_test(tt.ones(1)).item() == pytest.approx(2**-0.5)
    assert registry["op_forms_test"].owner.package == "more"


def test_a_package_that_raises_is_warned_of_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [Broken()] if group == "tritensor.ops" else [])
    monkeypatch.setattr(Ops, "plugins_read", False)
    monkeypatch.setattr(op_forms, "_plugins_read", False)
    with pytest.warns(UserWarning, match="the plug-in 'broken' .* ZeroDivisionError: by nought; mend it, or pip uninstall broken"):
        assert not hasattr(tt, "op_forms_no_such_name")
    assert not hasattr(tt, "op_forms_no_such_name")
    with pytest.raises(PluginError):
        tt.ops.op_forms_no_such_name  # noqa: B018
