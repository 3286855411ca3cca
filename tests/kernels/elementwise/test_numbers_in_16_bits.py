"""Numbers beside 16-bit floats where a rounding decides: comparisons, bounds of clamp, thresholds; at a number as the type holds it, on both devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tritensor as tt

NUMBERS = [0.1, 0.3, 0.7, 0.45, 1e-3]  # the types hold some of them above, some below
KINDS = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
over = pytest.mark.parametrize(("dtype", "device"), [(d, on) for d in KINDS for on in ("cpu", "cuda")])


def held(dtype: str, device: str) -> Any:
    return tt.tensor(NUMBERS, dtype=getattr(tt, dtype), device=device, requires_grad=True)


@over
def test_a_tensor_is_equal_to_the_number_that_it_was_made_of(dtype: str, device: str) -> None:
    x = held(dtype, device).detach()
    for i, v in enumerate(NUMBERS):
        this = [k == i for k in range(len(NUMBERS))]
        for _ in range(2):  # the second goes by what the first has recorded
            assert (x == v).tolist() == (v == x).tolist() == this
            assert (x != v).tolist() == [not k for k in this]
            assert (x >= v).tolist() == [u >= v for u in NUMBERS]
            assert (x <= v).tolist() == [u <= v for u in NUMBERS]
            assert (x > v).tolist() == (v < x).tolist() == [u > v for u in NUMBERS]
            assert (x < v).tolist() == (v > x).tolist() == [u < v for u in NUMBERS]
    assert (x == x.new_tensor(NUMBERS[0]).item()).tolist()[0]
    assert (x < 1e6).all().item()
    assert not (x == 1e6).any().item()


BOUNDED: dict[str, tuple[Callable[[Any, float], Any], list[float]]] = {
    "clamp(min)": (lambda x, v: x.clamp(min=v), [1.0]),
    "clamp(max)": (lambda x, v: x.clamp(max=v), [1.0]),
    "clamp": (lambda x, v: x.clamp(-v, v), [1.0]),
    "clamp_min": (lambda x, v: x.clamp_min(v), [1.0]),
    "hardtanh": (lambda x, v: tt.nn.functional.hardtanh(x, -v, v) * 0, [0.0]),
    "hardshrink": (lambda x, v: tt.nn.functional.hardshrink(x, v), [0.0]),
}


@over
@pytest.mark.parametrize("name", BOUNDED)
def test_the_gradient_at_a_bound(name: str, dtype: str, device: str) -> None:
    f, slope = BOUNDED[name]
    for i, v in enumerate(NUMBERS):
        x = held(dtype, device)
        y = f(x[i : i + 1], v)
        (g,) = tt.autograd.grad(y.sum(), x, create_graph=True)
        assert g[i : i + 1].tolist() == slope
        assert y.item() == (0.0 if slope == [0.0] else x[i].item())


@over
def test_a_threshold_is_not_rounded(dtype: str, device: str) -> None:
    """As in PyTorch, and the gradient is of the side that the value is on."""
    for i, v in enumerate(NUMBERS):
        x = held(dtype, device)
        y = tt.nn.functional.threshold(x[i : i + 1], v, 7.0)
        (g,) = tt.autograd.grad(y.sum(), x)
        above = float(KINDS[dtype](v)) > v
        assert (y.item() == 7.0, g[i].item()) == (not above, float(above))


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize(("dtype", "eps"), [("float16", 1e-12), ("bfloat16", 0.0), ("float32", 0.0), ("float64", 0.0)])
@pytest.mark.filterwarnings("ignore:invalid value", "ignore:divide by zero")
def test_a_vector_of_zeros_over_its_length_of_0_is_nan_and_so_is_its_gradient(dtype: str, eps: float, device: str) -> None:
    """float16 holds 1e-12 as 0."""
    for f in (
        *(lambda x, p=p: tt.nn.functional.normalize(x, p=p, eps=eps) for p in (1, 2, float("inf"))),
        lambda x: tt.nn.functional.cosine_similarity(x, tt.ones_like(x), eps=eps),
    ):
        x = tt.tensor([[0.0, 0.0, 0.0], [1.0, 2.0, 2.0]], dtype=getattr(tt, dtype), device=device, requires_grad=True)
        y = f(x)
        y.sum().backward()
        assert x.grad is not None
        assert x.grad.isnan().tolist() == [[True] * 3, [False] * 3]
        assert y.isnan().flatten().tolist() == [True] * (y.numel() // 2) + [False] * (y.numel() // 2)
