"""Elementwise functions in both libraries at 0, infinity, NaN, edges and denormals: values, first and second derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import tritensor as tt

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore")]

INF, NAN = np.inf, np.nan
VALUES = np.array([0.0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 3.7, INF, -INF, NAN, 1e30, -1e30, 1e-30, 88.0, -88.0, 1e-40])
UNARY = [
    "neg",
    "abs",
    "square",
    "sqrt",
    "rsqrt",
    "reciprocal",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "erf",
    "erfc",
    "sigmoid",
    "relu",
    "sign",
    "floor",
    "ceil",
    "trunc",
    "round",
    "logit",
    "deg2rad",
    "frac",
    "nn.functional.leaky_relu",
    "nn.functional.elu",
    "nn.functional.softplus",
    "nn.functional.gelu",
    "nn.functional.silu",
]
BINARY = ["add", "sub", "mul", "div", "pow", "remainder", "fmod", "atan2", "hypot", "logaddexp", "xlogy", "maximum", "minimum"]
FINITE = ["pow", "remainder", "fmod", "atan2", "hypot", "xlogy", "nn.functional.gelu"]  # here numbers in places where PyTorch has NaN


def resolve(library: Any, name: str) -> Any:
    for part in name.split("."):
        library = getattr(library, part)
    return library


def walk(library: Any, name: str, inputs: list[np.ndarray], dtype: str, **place: Any) -> list[np.ndarray]:
    """y, the gradients, and the gradients of each gradient's sum; zeros for what does not depend on an input."""
    xs = [library.tensor(x, dtype=getattr(library, dtype), requires_grad=True, **place) for x in inputs]
    y = resolve(library, name)(*xs)
    first = library.autograd.grad(y.sum(), xs, create_graph=True)
    found = [y, *first]
    for g in first:
        second = library.autograd.grad(g.sum(), xs, retain_graph=True, allow_unused=True) if g.requires_grad else [None] * len(xs)
        found += [library.zeros_like(g) if h is None else h for h in second]
    return [(v + library.zeros_like(y)).detach().cpu().numpy() for v in found]  # plus zeros: PyTorch has tensors of zeros without memory


# PyTorch's float32 gradient of atan2 squares its inputs, which overflow
@pytest.mark.parametrize(
    ("name", "dtype"), [(n, d) for n in (*UNARY, *BINARY) for d in ("float32", "float64") if (n, d) != ("atan2", "float32")]
)
def test_as_torch(name: str, dtype: str) -> None:
    inputs = [VALUES] if name in UNARY else [x.reshape(-1) for x in np.meshgrid(VALUES, VALUES)]
    ours, theirs = walk(tt, name, inputs, dtype), walk(torch, name, inputs, dtype)
    for i, (got, want) in enumerate(zip(ours, theirs, strict=True)):
        asked = np.ones(got.shape, np.bool_)
        if name in FINITE:
            asked = ~np.isnan(want)
        if name == "nn.functional.elu":  # at NaN PyTorch's gradient depends on the number of elements
            asked = ~np.isnan(VALUES)
        if name == "atan2" and i > 2:  # a difference of equal numbers is what rounding leaves
            asked &= np.abs(inputs[0]) != np.abs(inputs[1])
        if name == "pow" and i == 4:  # d2/da db: 1 / a at exponent 0, in PyTorch 0
            asked &= inputs[1] != 0
        np.testing.assert_allclose(
            got[asked],
            want[asked],
            rtol=1e-5 if dtype == "float32" else 1e-11,
            atol=1e-15 if name == "atan2" else 1e-37,
            err_msg=f"{name} {dtype}, result {i}",
        )


BOUNDS = [(1.0, 1.0), (1.0, 0.5), (2.0, -1.0), (0.0, 3.0), (NAN, 1.0), (1.0, NAN)]


def test_clamp_between_tensors() -> None:
    x, low, high = (np.array(v) for v in zip(*[(x, *b) for x in (0.0, 1.0, 2.0, NAN) for b in BOUNDS], strict=True))
    for got, want in zip(walk(tt, "clamp", [x, low, high], "float64"), walk(torch, "clamp", [x, low, high], "float64"), strict=True):
        np.testing.assert_array_equal(got, want)
