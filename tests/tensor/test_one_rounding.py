"""Sums of 16-bit products round once: what is left of beta * input + alpha * product where the two nearly cancel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as tt

NARROW = (tt.float16, tt.bfloat16)


def draw(dtype: Any, *shape: int) -> Any:
    """Whole numbers, so that products and their sums are exact in float32, and lie between 2048 and 65504, where float16 has no odd ones."""
    return tt.tensor(np.random.default_rng(7).integers(5, 24, shape), dtype=dtype)


def wide(x: Any) -> np.ndarray:
    return x.cpu().double().numpy()  # type: ignore[no-any-return]


SUMS = {  # shapes, and what is multiplied
    "addmm": ((9, 40), (40, 7), lambda a, b: a @ b),
    "addmv": ((9, 40), (40,), lambda a, b: a @ b),
    "addr": ((9,), (7,), np.outer),
    "baddbmm": ((3, 9, 40), (3, 40, 7), lambda a, b: a @ b),
    "addbmm": ((3, 9, 40), (3, 40, 7), lambda a, b: (a @ b).sum(0)),
}


@pytest.mark.parametrize("on", ["cpu", "cuda"])
@pytest.mark.parametrize("dtype", NARROW, ids=str)
@pytest.mark.parametrize("name", SUMS)
def test_what_nearly_cancels_keeps_its_digits(name: str, dtype: Any, on: str) -> None:
    """c is -(a @ b) as its type has it: the exact sum is what that rounding left, which the type has, too."""
    left, right, product = SUMS[name]
    a, b = draw(dtype, *left), draw(dtype, *right) + 1
    if name == "addr":
        a, b = a * 5 + 1, b * 5 + 3
    exact = product(wide(a), wide(b))
    c = tt.tensor(-exact, dtype=tt.float64).to(dtype)
    expected = exact + wide(c)
    assert np.abs(exact).max() < 65504
    assert np.abs(expected).max() > 0
    found = getattr(tt, name)(c.to(on), a.to(on), b.to(on))
    assert found.dtype is dtype
    assert (wide(found) == expected).all()
    into = tt.empty(c.shape, dtype=dtype, device=on)
    getattr(tt, name)(c.to(on), a.to(on), b.to(on), out=into)
    assert (wide(into) == expected).all()
    y = c.clone().to(on)
    getattr(y, name + "_")(a.to(on), b.to(on))
    assert (wide(y) == expected).all()
    half = getattr(tt, name)(c.to(on), a.to(on), b.to(on), beta=0.5, alpha=0.5)
    assert (wide(half) == expected / 2).all()


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_a_bias_of_addmm_rounds_once(dtype: Any) -> None:
    a, b = draw(dtype, 1, 300), draw(dtype, 300, 8) + 1
    exact = wide(a) @ wide(b)
    c = tt.tensor(-exact[0]).to(dtype)
    assert (wide(tt.addmm(c, a, b)) == exact + wide(c)).all()


def test_gradients_are_those_of_the_products() -> None:
    for dtype in NARROW:
        c, a, b = (draw(dtype, *s).requires_grad_() for s in ((9, 7), (9, 40), (40, 7)))
        g = draw(dtype, 9, 7)
        found = tt.autograd.grad(tt.addmm(c, a, b, beta=0.5, alpha=2), (c, a, b), g, create_graph=True)
        right = (0.5 * wide(g), 2 * wide(g) @ wide(b.detach()).T, 2 * wide(a.detach()).T @ wide(g))
        for x, y in zip(found, right, strict=True):
            assert x.dtype is dtype
            assert (wide(x.detach()) == wide(tt.tensor(y).to(dtype))).all()
