"""Formulas as authors write them: terms that cancel, an input called y, and a finding that names their functions alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl

import tritensor as tt
from tritensor.kernels.parts import maths
from tritensor.kernels.parts import maths as mathematics
from tritensor.ops.table import registry
from tritensor.testing import findings


@triton.jit
def _sigmoid_by_tanh(x):
    return 0.5 * (1.0 + maths.tanh(3.0 * x))


@triton.jit
def _sigmoid_by_tanh_grad(g, x):
    t = maths.tanh(3.0 * x)
    return g * 1.5 * (1.0 - t * t)


@triton.jit
def _by_triton(g, x):
    return g * tl.sigmoid(x)


@triton.jit
def _by_nothing(g, x):
    return g * maths.sigmoidd(x)  # type: ignore[attr-defined]


@triton.jit
def _by_another_name(g, x):
    t = mathematics.tanh(3.0 * x)
    return g * 1.5 * (1.0 - t) * (1.0 + t)


@triton.jit
def _scaled(x, scale, y):
    return x + scale * y


@triton.jit
def _first(g):
    return g


@triton.jit
def _by_scale(g, y):
    return g * y


@triton.jit
def _by_y(g, scale):
    return g * scale


def _terms(x: np.ndarray) -> np.ndarray:
    return 0.5 * (1 + np.abs(np.tanh(3 * x)))


def _terms_of_gradient(g: np.ndarray, inputs: tuple[np.ndarray, ...], attrs: dict[str, Any]) -> tuple[np.ndarray, ...]:
    return (1.5 * np.abs(g) * (1 + np.tanh(3 * inputs[0]) ** 2),)


@pytest.fixture(autouse=True)
def _leave_the_table_as_it_was() -> Iterator[None]:
    yield
    for name in ("sigmoid_by_tanh", "scaled_sum"):
        registry.pop(name, None)


def test_terms_that_cancel_are_named_by_condition() -> None:
    def registered(condition: Any) -> Any:
        return tt.elementwise(
            "sigmoid_by_tanh", _sigmoid_by_tanh, _sigmoid_by_tanh_grad, lambda x: 0.5 * (1 + np.tanh(3 * x)), kinds=("float",),
            condition=condition, replace=True,
        )  # fmt: skip

    report = findings(registered(None), dtypes="float32")
    assert report.findings, "nothing was said of 1 + tanh, which loses its digits below -1"
    where = [line for line in report.lines() if "; see " in line]
    assert where
    for line in where:
        named = re.findall(r"([\w<>]+) in (\w+\.py):\d+", line.split("; see ")[1])
        assert named, line
        assert {file for _, file in named} == {"test_formulas_of_authors.py"}, line
        assert len(named) == len(set(named)), line
        assert ("gradient of x" in line) == (named[0][0] == "_sigmoid_by_tanh_grad"), line
    assert not findings(registered((_terms, _terms_of_gradient)), dtypes=["float32", "bfloat16"]).lines()


def test_an_input_may_be_called_y() -> None:
    def reference(x: Any, scale: Any, y: Any) -> Any:
        return x + scale * y

    with pytest.raises(
        tt.RegistrationError, match="names 'y', which is an input and an output; rename one of them, the output with outputs="
    ):
        tt.elementwise("scaled_sum", _scaled, (_first, _by_scale, _by_y), reference, kinds=("float",))
    op = tt.elementwise("scaled_sum", _scaled, (_first, _by_scale, _by_y), reference, kinds=("float",), outputs=("out",))
    assert not findings(op, dtypes=["float32", "float64"], layouts="plain").lines()


def test_a_gradient_formula_that_only_a_kernel_could_run_is_refused() -> None:
    for gradient, said in (
        (
            _by_triton,
            r"_by_triton in test_formulas_of_authors\.py:\d+ calls tl\.sigmoid, which numpy and tensors have not.*; did you mean maths\.sigmoid\?",
        ),
        (_by_nothing, r"_by_nothing in .*:\d+ calls maths\.sigmoidd, which maths has not; did you mean maths\.sigmoid\?"),
    ):
        with pytest.raises(tt.RegistrationError, match=said):
            tt.elementwise("sigmoid_by_tanh", _sigmoid_by_tanh, gradient, lambda x: 0.5 * (1 + np.tanh(3 * x)), kinds=("float",))


def test_maths_may_be_imported_under_another_name() -> None:
    op = tt.elementwise(
        "sigmoid_by_tanh", _sigmoid_by_tanh, _by_another_name, lambda x: 0.5 * (1 + np.tanh(3 * x)), kinds=("float",),
        condition=(_terms, _terms_of_gradient),
    )  # fmt: skip
    assert not findings(op, dtypes=["float64"], layouts="plain").lines()


def test_samples_that_raise_are_named_with_their_line() -> None:
    def samples(rng: np.random.Generator) -> list[tt.Sample]:
        raise ValueError("no data here")

    op = tt.elementwise("sigmoid_by_tanh", _sigmoid_by_tanh, _sigmoid_by_tanh_grad, lambda x: x, kinds=("float",), samples=samples)
    with pytest.raises(
        tt.ArgumentError, match=r"sigmoid_by_tanh: samples raises ValueError: no data here \(test_formulas_of_authors\.py:\d+: raise"
    ):
        findings(op, dtypes="float32")
