"""Refusals of elementwise and op before an op is made, and in which words."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import triton

import tritensor as tt
from tritensor.ground.errors import RegistrationError


@triton.jit
def _twice(x):
    return x * 2.0


@triton.jit
def _twice_grad(g):
    return g * 2.0


@triton.jit
def _stranger(g, z):
    return g * z


@triton.jit
def _times(a, b):
    return a * b


def _plain(x: Any) -> Any:
    return x * 2.0


def _fields(**changed: Any) -> dict[str, Any]:
    return {
        "shape": lambda x: tt.Spec(x.shape, x.dtype), "samples": lambda rng: [tt.Sample(rng.normal(size=3))],
        "forward": lambda x: x, "rule": lambda g: g, "backward": lambda g: g,
    } | changed  # fmt: skip


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "no reference": (lambda: tt.elementwise("wrong", _twice, _twice_grad), "reference is None; give what numpy makes of the arrays"),
    "a plain formula": (lambda: tt.elementwise("wrong", _plain, _twice_grad, _plain), "formula is the plain function _plain; decorate it with @triton.jit"),
    "a plain gradient": (lambda: tt.elementwise("wrong", _twice, _plain, _plain), "the gradient is the plain function _plain; decorate it"),
    "a gradient of something else": (
        lambda: tt.elementwise("wrong", _twice, _stranger, _plain), "the gradient takes 'z', which is none of x, y; behind the arriving gradient",
    ),
    "one gradient for two inputs": (
        lambda: tt.elementwise("wrong", _times, _twice_grad, lambda a, b: a * b), "there are 1 gradient formulas for the inputs a, b; give a tuple",
    ),
    "an attribute that reference lacks": (
        lambda: tt.elementwise("wrong", _times, _twice_grad, lambda a: a, attributes=("b",)), "reference does not take the attribute 'b'",
    ),
    "an attribute that nobody named": (
        lambda: tt.elementwise("wrong", _times, _twice_grad, lambda a, *, b=1.0: a * b), "give both the same, or say attributes=('b',)",
    ),
    "attributes in the wrong place": (
        lambda: tt.elementwise("wrong", _times, _twice_grad, lambda b, *, a=1.0: a * b, attributes=("a",)), "the attributes a come last, in that order",
    ),
    "a kind that there is not": (lambda: tt.elementwise("wrong", _twice, _twice_grad, _plain, kinds="floats"), "kinds has 'floats'; it has some of 'bool'"),
    "a type of another kind": (
        lambda: tt.elementwise("wrong", _twice, None, _plain, kinds="int", promote="same", dtypes=("int32", "uint8")),
        "dtypes has 'uint8', whose kind 'uint' is not among kinds=('int',)",
    ),
    "a kernel for a corner": (lambda: tt.op("wrong", _plain, **_fields(forward=_twice)), "forward is the kernel _twice; give the function that allocates"),
    "a word for a rule": (lambda: tt.op("wrong", _plain, **_fields(rule="g")), "rule is 'g'; it must be a function, or a tuple with one for each input"),
    "a list of configs": (lambda: tt.op("wrong", _plain, **_fields(configs=[1, 2])), "configs is [1, 2]; it must be a function"),
    "a number for a name": (lambda: tt.op(3, _plain, **_fields()), "the name must be a string"),  # type: ignore[arg-type]
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_it_is_refused_by_name(wrong: str) -> None:
    call, said = WRONG[wrong]
    with pytest.raises(RegistrationError, match=rf"op ('wrong'|3) was not registered:\n  - .*{re.escape(said)}"):
        call()
    assert "wrong" not in dir(tt.ops)


def test_one_name_stands_for_a_tuple_of_it() -> None:
    op = tt.elementwise(
        "op_of_one_name", _times, None, lambda a, *, b=3.0: a * b, kinds="float", attributes="b", dtypes="float32", outputs="out"
    )
    try:
        assert (op.dtypes, op.outputs, op.attrs) == (("float32",), ("out",), {"b": 3.0})
        assert tt.ops.op_of_one_name(tt.ones(2)).tolist() == [3.0, 3.0]
        np.testing.assert_array_equal(tt.ops.op_of_one_name(tt.ones(2), b=2.0).numpy(), [2, 2])
    finally:
        del tt.table.registry["op_of_one_name"]
