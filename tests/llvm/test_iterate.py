"""Iterations in machine code against numpy: the same steps, each element until it is done by itself."""

from __future__ import annotations

import numpy as np
import pytest

from tritensor.kernels.special import incomplete_gamma
from tritensor.llvm import compiler
from tritensor.llvm.iterate import Iteration
from tritensor.ops.table import registry

pytestmark = pytest.mark.skipif(bool(compiler.refusal()), reason=f"no machine code here: {compiler.refusal()}")


@pytest.mark.parametrize("first", [1, 5])
@pytest.mark.parametrize("n", [1, 8, 21])
def test_steps_until_each_is_done(n: int, first: int) -> None:
    most = np.random.default_rng(n).integers(1, 40, n).astype(np.float64)
    halved = Iteration(lambda k, most, x: (most, x * 0.5 + k), lambda k, most, x: k < most, first)
    start = (most, np.linspace(-2.0, 3.0, n))
    found = halved(start)
    assert found is not None
    for mine, wanted in zip(found, halved.in_numpy(start), strict=True):
        np.testing.assert_array_equal(mine, wanted)
    wanted = start[1].copy()
    for i, end in enumerate(most):
        k = first
        while True:
            for _ in range(4):
                wanted[i] = wanted[i] * 0.5 + k
                k += 1
            if not k - 1 < end:
                break
    np.testing.assert_array_equal(found[1], wanted)
    np.testing.assert_array_equal(start[1], np.linspace(-2.0, 3.0, n))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gradients_of_draws_and_incomplete_gammas_are_those_of_numpy(dtype: type, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    a, b = np.exp(rng.uniform(-4, 5, (2, 700))).astype(dtype)
    gammas, betas = rng.gamma(a).astype(dtype), rng.beta(a, b).astype(dtype)

    def asked() -> list[np.ndarray]:
        given = {"standard_gamma_grad": (a, gammas), "dirichlet_grad": (betas, a, a + b), "igamma": (a, b), "igammac": (a, b)}
        return [registry[name].cpu(*inputs) for name, inputs in given.items()]

    found = asked()
    monkeypatch.setattr(incomplete_gamma, "_MANY", 10**9)
    for mine, wanted in zip(found, asked(), strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=4 * np.finfo(dtype).eps)
