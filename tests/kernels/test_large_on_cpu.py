"""Arrays of many elements on the CPU, which is where numpy goes in blocks: the same as in small pieces, however they lie."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tritensor as tt
import tritensor.nn.functional as F

BLOCKED: dict[str, Callable[[tt.Tensor], tt.Tensor]] = {
    "gelu": F.gelu, "silu": F.silu, "sigmoid": F.sigmoid, "softplus": F.softplus, "elu": F.elu, "erf": tt.erf, "tanh": tt.tanh, "rsqrt": lambda x: (x * x + 1).rsqrt(),
    "leaky_relu": F.leaky_relu, "logit": lambda x: tt.logit(x.abs() / (1 + x.abs())), "pow": lambda x: x.abs() ** 1.5,
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
@pytest.mark.parametrize(("rows", "classes"), [(6000, 11), (40, 3000), (1, 5), (1, 1), (3000, 70), (20, 50)])
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


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_cross_entropy_of_a_logit_that_is_no_number(value: float) -> None:
    rng = np.random.default_rng(4)
    rows = rng.standard_normal((8, 40)).astype(np.float32)
    rows[3, 7] = value
    labels = rng.integers(0, 40, 8)
    each = F.cross_entropy(tt.tensor(rows), tt.tensor(labels), reduction="none")
    alone = [F.cross_entropy(tt.tensor(rows[i]), tt.tensor(labels[i])).item() for i in range(8)]
    np.testing.assert_allclose(each.numpy(), alone, rtol=1e-6)
    whole = F.cross_entropy(tt.tensor(rows), tt.tensor(labels), reduction="sum").item()
    np.testing.assert_allclose(whole, np.sum(alone), rtol=1e-6)
    assert np.isfinite(each.numpy()).sum() == (8 if value < 0 else 7)


@pytest.mark.parametrize("kind", [tt.float32, tt.float64, tt.bfloat16, tt.int64])
@pytest.mark.parametrize("columns", [1, 2, 3, 15, 16, 17, 31, 32, 33, 64])
def test_extremes_of_many_short_rows(columns: int, kind: tt.dtype) -> None:
    x = tt.tensor(np.random.default_rng(columns).integers(-60, 60, (300, columns)) / (1 if kind is tt.int64 else 4)).to(kind)
    wide = x.double().numpy()
    assert x.amax(1).double().numpy().tolist() == wide.max(1).tolist()
    assert x.amin(-1, keepdim=True).double().numpy().tolist() == wide.min(1, keepdims=True).tolist()
    assert x.reshape(30, 10, columns).amax(2).double().numpy().tolist() == wide.max(1).reshape(30, 10).tolist()
    if kind is not tt.int64:
        x[7, columns // 2] = float("nan")
        found = x.amax(1).isnan().tolist()
        assert [i for i, no_number in enumerate(found) if no_number] == [7]


@pytest.mark.parametrize("kind", [tt.float32, tt.float64, tt.bfloat16])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_softmax_in_blocks_of_rows(dim: int, kind: tt.dtype) -> None:
    x = tt.tensor(np.random.default_rng(dim).standard_normal((70, 11, 130)) * 4).to(kind).requires_grad_()
    wide = x.detach().double().numpy()
    share = np.exp(wide - wide.max(dim, keepdims=True))
    share /= share.sum(dim, keepdims=True)
    eps = {tt.float32: 4e-6, tt.float64: 1e-13, tt.bfloat16: 1e-2}[kind]
    y, log = x.softmax(dim), x.log_softmax(dim)
    np.testing.assert_allclose(y.detach().double().numpy(), share, rtol=eps, atol=1e-12)
    np.testing.assert_allclose(log.detach().double().numpy(), np.log(share), rtol=eps, atol=eps)
    (y * y).sum().backward()
    want = share * (2 * share - 2 * (share * share).sum(dim, keepdims=True))
    np.testing.assert_allclose(x.grad.double().numpy(), want, rtol=20 * eps, atol=2 * eps)


@pytest.mark.parametrize("kind", [tt.float32, tt.float64, tt.bfloat16])
@pytest.mark.parametrize("rows", [511, 512, 513, 1024, 1025, 5000])
def test_sums_down_many_rows(rows: int, kind: tt.dtype) -> None:
    """However numpy cuts them: error at most 8 eps of the sum of sizes, one rounding of the result."""
    for columns in (1, 3, 64, 200):
        x = tt.tensor(np.random.default_rng(rows + columns).standard_normal((rows, columns))).to(kind)
        wide = x.double().numpy()
        eps = {tt.float32: 2.0**-23, tt.float64: 2.0**-52, tt.bfloat16: 2.0**-23}[kind]
        allowed = 8 * eps * np.abs(wide).sum(0) + (2.0**-8 * np.abs(wide.sum(0)) if kind is tt.bfloat16 else 0)
        assert (np.abs(x.sum(0).double().numpy() - wide.sum(0)) <= allowed).all()
        assert (np.abs(x.t().contiguous().t().sum(0).double().numpy() - wide.sum(0)) <= allowed).all()
        assert (np.abs(x.reshape(1, rows, columns).sum(1).double().numpy() - wide.sum(0)) <= allowed).all()


@pytest.mark.parametrize("kind", ["float32", "float64", "float16"])
@pytest.mark.parametrize("towards", ["each its own", "a number", "a row"])
def test_neighbours_of_many_numbers_are_numpys(kind: str, towards: str) -> None:
    rng = np.random.default_rng(0)
    ends = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, np.finfo(kind).max, np.finfo(kind).smallest_subnormal], kind)
    a = np.where(rng.random((90, 120)) < 0.3, rng.choice(ends, (90, 120)), rng.standard_normal((90, 120))).astype(kind)
    b = {"each its own": rng.permutation(a.ravel()).reshape(a.shape), "a number": np.array(0.5, kind), "a row": np.resize(ends, 120)}[
        towards
    ]
    with np.errstate(all="ignore"):
        expected = np.nextafter(a, b)
    if kind == "float16":  # of two zeros numpy gives the first there, and in all other types the second, as C
        expected = np.where((a == 0) & (b == 0), b, expected).astype(kind)
    found = tt.nextafter(tt.from_numpy(a), tt.from_numpy(b)).numpy()
    np.testing.assert_array_equal(found.view(f"i{found.itemsize}"), expected.view(f"i{found.itemsize}"))
