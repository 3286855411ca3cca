"""repr of tensors, character by character as torch's: values of every kind, shapes, options, and what stands behind the values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import tritensor as tt

pytestmark = pytest.mark.peer


@pytest.fixture(autouse=True)
def default_options() -> Iterator[None]:
    yield
    for library in (tt, torch):
        library.set_printoptions(profile="default")


def spelled(x: Any) -> str:
    """repr, names aside: "tritensor" is longer than "torch", so that a line with a dtype breaks earlier."""
    text = repr(x).replace("torch.", "tritensor.")
    return re.sub(r",\s+(size|dtype|grad_fn|requires_grad)=", r", \1=", text) if "dtype=" in text else text


def shown(library: Any, expression: str) -> str:
    return spelled(eval(expression, {"T": library, "np": np, "inf": np.inf, "nan": np.nan}))


EXPRESSIONS = [
    "T.tensor([-0., 0.])", "T.tensor([1., nan])", "T.tensor([1., inf])", "T.tensor([1.5, -inf, nan])", "T.tensor([nan])", "T.tensor(inf)",
    "T.tensor([1e-5, 1])", "T.tensor([1e5, 1.5])", "T.tensor([1e8, 1e8])", "T.tensor([100000008.])", "T.tensor([1000.5, 1.])", "T.tensor([1e-4, 1e-3])",
    "T.tensor([9.9999e-5])", "T.tensor([-1.5, 0., -0.])", "T.tensor([99999.96875, 123.5])", "T.tensor([1e-45, 1e-44])", "T.tensor([5e-324, 1e308], dtype=T.float64)",
    "T.tensor(-0.)", "T.tensor(1 + 2j)", "T.tensor([1 + 2j, -1.5 - 0.j])", "T.tensor([1e9 + 2j, 3 - 4j])", "T.tensor([complex(nan, 1), complex(1, -inf)])",
    "T.tensor([0.5j] * 30)", "T.tensor([1j], dtype=T.complex128)", "T.tensor([True, False])", "T.tensor([[True], [True]])", "T.tensor(False)", "T.tensor([1, -10, 100])",
    "T.tensor(5)", "T.tensor([1], dtype=T.int32)", "T.tensor([2**63 + 5], dtype=T.uint64)", "T.tensor([-128, 5], dtype=T.int8)", "T.tensor([])",
    "T.tensor([], dtype=T.int64)", "T.zeros(0, 3)", "T.zeros(2, 0, dtype=T.int32)", "T.zeros(0, dtype=T.bool)", "T.zeros(3, 0, 2, dtype=T.bool)",
    "T.zeros(0, requires_grad=True)", "T.zeros(0, 2, dtype=T.float64, requires_grad=True)", "T.tensor([[]])",
    "T.tensor(2.5, dtype=T.float64)", "T.tensor(2.5, requires_grad=True)", "T.tensor([2.5], requires_grad=True) * 2",
    "T.tensor([2.5], dtype=T.float64, requires_grad=True) * 2", "T.tensor([0.1, 1e-3], dtype=T.float16)", "T.tensor([1.5, 2.25], dtype=T.bfloat16)",
    "T.tensor([1.5, 2.25]).to(T.float8_e5m2)", "T.tensor([1.5, 300.]).to(T.float8_e4m3fn)", "T.arange(30.)", "T.arange(30)", "T.arange(30.).reshape(2, 15)", "T.arange(2000.)", "T.arange(1001)",
    "T.arange(1000)", "T.zeros(100, 100)", "T.zeros(3, 2, 2)", "T.ones(7, 7, 30)", "T.zeros(2, 3, 2, 2)", "T.zeros(1000, 2, 1)", "T.zeros(2, 600)", "T.zeros(600, 2)",
    "T.zeros(2, 1, 1, 1, 1)", "T.nn.Parameter(T.ones(2))", "T.nn.Parameter(T.ones(2), requires_grad=False)", "T.nn.Parameter(T.zeros(0, 2))",
    "T.arange(17.).double()", "T.arange(16.).double().requires_grad_()", "T.arange(15.).half()", "T.arange(18., requires_grad=True) * 1", "T.arange(17., requires_grad=True) * 1",
    "T.arange(2000).reshape(2, 1000).to(T.int32)", "T.tensor([123456789.123], dtype=T.float64)", "T.tensor([16777217.])", "T.tensor([1000., 1., 0.])", "T.tensor([1001., 1.])",
    "T.eye(3)", "T.full((2, 2), -7.25)", "T.arange(24).reshape(2, 3, 4).transpose(0, 2)", "T.arange(40.)[::3]", "T.ones(1).expand(3, 4)",
    "list(T.nn.Linear(2, 1).state_dict())", "[T.ones(2), T.zeros(1, 1)]", "{'a': T.tensor(1)}", "(T.tensor(1.5),)",
]  # fmt: skip


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_prints_as_torch(expression: str) -> None:
    assert shown(tt, expression) == shown(torch, expression)


OPTIONS: list[dict[str, Any]] = [
    {"precision": 2}, {"precision": 0}, {"precision": 8}, {"threshold": 5}, {"threshold": 5, "edgeitems": 1}, {"threshold": 5, "edgeitems": 2, "linewidth": 20},
    {"linewidth": 20}, {"linewidth": 200}, {"linewidth": 1}, {"sci_mode": True}, {"sci_mode": False}, {"profile": "short"}, {"profile": "full"},
    {"profile": "short", "precision": 6}, {"edgeitems": 0}, {"edgeitems": 0, "threshold": 3},
]  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_options_as_torch(options: dict[str, Any]) -> None:
    for library in (tt, torch):
        library.set_printoptions(**options)
    for expression in EXPRESSIONS:
        assert shown(tt, expression) == shown(torch, expression), expression


def test_options_one_after_another() -> None:
    for options in (
        {"sci_mode": True},
        {"profile": "default"},
        {"sci_mode": True},
        {"precision": 2},
        {"linewidth": 30},
        {"profile": "short"},
        {"edgeitems": 1},
    ):
        for library in (tt, torch):
            library.set_printoptions(**options)
        for expression in ("T.tensor([1.5])", "T.arange(40.)", "T.arange(2000)"):
            assert shown(tt, expression) == shown(torch, expression), options


TYPES = ["float32", "float64", "float16", "int64", "int32", "int8", "uint8", "bool", "complex64", "complex128"]
exponents = st.integers(-12, 12)
scaled = st.builds(lambda m, e: m * 10.0**e, st.floats(-10, 10), exponents)
whole = st.integers(-2000, 2000).map(float)
special = st.sampled_from([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, 1e8, 1e8 + 8, 1e-4, 1000.0, 1001.0, 0.99995, 9.99995, 99999.5])
reals = st.one_of(st.floats(width=64), scaled, whole, special, st.floats(-2, 2), st.integers(-9, 9).map(float))


@st.composite
def tensors(draw: st.DrawFn) -> np.ndarray:
    dtype = draw(st.sampled_from(TYPES))
    shape = draw(
        st.one_of(
            arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=9),
            st.sampled_from([(), (30,), (0,), (1200,), (40, 40), (5, 300), (2, 2, 300)]),
        )
    )
    n = int(np.prod(shape))
    few = draw(st.lists(draw(st.sampled_from([reals, scaled, whole, special, st.floats(-2, 2)])), min_size=1, max_size=12))
    order = np.random.default_rng(draw(st.integers(0, 9))).integers(0, len(few), n)
    values = np.array(few)[order]
    with np.errstate(all="ignore"):
        if dtype.startswith("complex"):
            values = values + 1j * np.roll(values, 1)
        elif not dtype.startswith("float"):
            values = np.nan_to_num(values, posinf=100, neginf=-100).clip(-(2**62), 2**62)
            if dtype == "uint8":
                values = np.abs(values) % 256
            elif dtype != "int64":
                values = values.clip(-128, 127) if dtype == "int8" else values.clip(-(2**31), 2**31 - 1)
        return np.asarray(values.astype(dtype).reshape(shape))


@settings(deadline=None, max_examples=600)
@given(
    tensors(),
    st.fixed_dictionaries(
        {},
        optional={
            "precision": st.integers(0, 9), "threshold": st.integers(0, 60), "edgeitems": st.integers(1, 5), "linewidth": st.integers(1, 130),
            "sci_mode": st.booleans(), "profile": st.sampled_from(["default", "short", "full"]),
        },
    ),
)  # fmt: skip
def test_any_tensor_prints_as_torchs(values: np.ndarray, options: dict[str, Any]) -> None:
    found = []
    for library in (tt, torch):
        library.set_printoptions(profile="default")
        library.set_printoptions(**options)
        found.append(spelled(library.from_numpy(values.copy())))
    assert found[0] == found[1]
