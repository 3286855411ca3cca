"""Arrays of many elements on the CPU, which is where numpy goes in blocks: the same as in small pieces, however they lie."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tritensor as tt
import tritensor.nn.functional as F

BLOCKED: dict[str, Callable[[tt.Tensor], tt.Tensor]] = {
    "gelu": F.gelu, "silu": F.silu, "sigmoid": F.sigmoid, "softplus": F.softplus, "elu": F.elu, "erf": tt.erf, "tanh": tt.tanh, "rsqrt": lambda x: (x * x + 1).rsqrt(),
    "leaky_relu": F.leaky_relu, "logit": lambda x: tt.logit(F.sigmoid(x)), "pow": lambda x: x.abs() ** 1.5,
}  # fmt: skip
LAID: dict[str, Callable[[tt.Tensor], tt.Tensor]] = {
    "in order": lambda x: x, "turned": lambda x: x.t(), "a part": lambda x: x[3:, 5:-7], "every third": lambda x: x[::3], "stretched": lambda x: x[:1].expand(300, -1),
}  # fmt: skip


@pytest.mark.parametrize("kind", [tt.float32, tt.float64, tt.bfloat16])
@pytest.mark.parametrize("laid", LAID)
@pytest.mark.parametrize("name", BLOCKED)
def test_blocks_agree_with_rows(name: str, laid: str, kind: tt.dtype) -> None:
    f = BLOCKED[name]
    x = LAID[laid](tt.tensor(np.random.default_rng(0).standard_normal((310, 420))).to(kind)).detach().requires_grad_()
    y = f(x)
    y.double().sum().backward()
    for i in (0, 1, x.shape[0] // 2, x.shape[0] - 1):
        row = x.detach()[i].clone().requires_grad_()
        part = f(row)
        part.double().sum().backward()
        assert tt.allclose(y.detach()[i].double(), part.detach().double(), rtol=1e-6, atol=1e-7)
        assert tt.allclose(x.grad[i].double(), row.grad.double(), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(("rows", "classes"), [(6000, 11), (40, 3000), (1, 5), (1, 1), (3000, 70)])
def test_cross_entropy_of_many_rows_and_classes(rows: int, classes: int, reduction: str) -> None:
    rng = np.random.default_rng(1)
    x = tt.tensor(rng.standard_normal((rows, classes)).astype(np.float32), requires_grad=True)
    labels = rng.integers(0, classes, rows)
    loss = F.cross_entropy(x, tt.tensor(labels), reduction=reduction)
    loss.sum().backward()
    wide = x.detach().numpy().astype(np.float64)
    shifted = np.exp(wide - wide.max(1, keepdims=True))
    share = shifted / shifted.sum(1, keepdims=True)
    each = -np.log(share[np.arange(rows), labels])
    want = {"mean": each.mean(), "sum": each.sum(), "none": each}[reduction]
    np.testing.assert_allclose(loss.detach().numpy(), want, rtol=2e-5, atol=1e-6)
    share[np.arange(rows), labels] -= 1
    np.testing.assert_allclose(x.grad.numpy(), share / (rows if reduction == "mean" else 1), rtol=2e-4, atol=1e-7)
