"""Reductions over nothing and beside infinities: a mean of no rows, a variance of fewer elements than its correction."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tritensor as tt
import tritensor.nn.functional as F
from tests.kernels.value_and_gradient import value_and_gradient

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
DEVICES = ["cpu", "cuda"]


@pytest.mark.parametrize("where", DEVICES)
@pytest.mark.parametrize("again", [False, True])
def test_the_slope_of_a_variance_with_a_correction_beyond_the_count(where: str, again: bool) -> None:
    x = tt.tensor([2.0, 2.0, 1.0, 2.0], device=where, requires_grad=True)
    y = tt.var(x, 0, correction=5)
    assert y.item() == math.inf
    (g,) = tt.autograd.grad(y, x, create_graph=again)
    assert g.tolist() == [-0.5, -0.5, 1.5, -0.5]


INF, NAN = math.inf, math.nan


# (x, the gradient of its product): PyTorch's, which divides the product by the element where no element is 0
PRODUCTS = [
    ([INF, 2.0, 3.0], [NAN, INF, INF]),
    ([INF, INF, 3.0], [NAN, NAN, INF]),
    ([-INF, 2.0, 1.0], [NAN, -INF, -INF]),
    ([NAN, 2.0, 3.0], [NAN, NAN, NAN]),
    ([INF], [NAN]),
    ([INF, 0.0, 3.0], [0.0, INF, NAN]),
    ([NAN, 0.0, 2.0], [0.0, NAN, NAN]),
    ([0.0, 0.0, INF], [NAN, NAN, 0.0]),
    ([0.0, 0.0, 2.0], [0.0, 0.0, 0.0]),
]


@pytest.mark.parametrize("where", DEVICES)
@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize(("x", "want"), PRODUCTS)
def test_the_gradient_of_a_product_at_infinities(where: str, again: bool, x: list[float], want: list[float]) -> None:
    _, g = value_and_gradient(lambda v: v.prod(0), x, where, again)
    np.testing.assert_array_equal(g.cpu().numpy(), want)


# (x, its variance, the variance's gradient): PyTorch's
VARIANCES = [
    ([INF, 2.0, 3.0], NAN, [NAN, -INF, -INF]),
    ([2.0, INF, 3.0], NAN, [-INF, NAN, -INF]),
    ([INF, INF, 3.0], NAN, [NAN, NAN, -INF]),
    ([INF, -INF, 1.0], NAN, [NAN, NAN, NAN]),
    ([NAN, 1.0, 2.0], NAN, [NAN, NAN, NAN]),
    ([1e200, -1e200, 0.0], INF, [1e200, -1e200, 0.0]),
]


@pytest.mark.parametrize("where", DEVICES)
@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize(("x", "y", "want"), VARIANCES)
def test_a_variance_with_infinities(where: str, again: bool, x: list[float], y: float, want: list[float]) -> None:
    found, g = value_and_gradient(lambda v: v.var(0), x, where, again)
    np.testing.assert_array_equal(found.cpu().numpy(), y)
    np.testing.assert_array_equal(g.cpu().numpy(), want)
    np.testing.assert_array_equal(value_and_gradient(lambda v: v.std(0), x, where, again)[0].cpu().numpy(), y)


@pytest.mark.parametrize("where", DEVICES)
@pytest.mark.parametrize("name", ["max_pool2d", "avg_pool2d"])
def test_only_the_batch_of_a_pooling_may_be_empty(where: str, name: str) -> None:
    pool = getattr(F, name)
    x = tt.zeros(0, 3, 4, 4, device=where, requires_grad=True)
    y = pool(x, 2)
    assert y.shape == (0, 3, 2, 2)
    assert tt.autograd.grad(y.sum(), x)[0].shape == x.shape
    for shape in ((2, 0, 4, 4), (0, 4, 4), (2, 3, 0, 4), (3, 4, 0)):
        with pytest.raises(tt.ShapeError, match=f"{name}: .* size of 0, which only its batch may have"):
            pool(tt.zeros(*shape, device=where), 2)


@pytest.mark.parametrize("where", DEVICES)
def test_a_variance_whose_squares_overflow(where: str) -> None:
    """Rounding leaves something of the mean, whose square overflows too: infinite less infinite is not what a variance is."""
    x = tt.tensor([1e30, -1e30, 3.0, 1e30], device=where)
    assert x.var(0).item() == INF
    # The root is held by float32; the CPU finds it in float64, a GPU has float32's squares, in PyTorch as well.
    assert x.std(0).item() == (pytest.approx(9.574271e29, rel=1e-6) if where == "cpu" else INF)
    assert tt.full((3,), 1e30, device=where).var(0).item() == 0.0


@pytest.mark.parametrize("where", DEVICES)
@pytest.mark.parametrize("name", ["sum", "nansum", "prod", "cumsum"])
@pytest.mark.parametrize("dtype", [tt.int32, tt.uint8, tt.int8, tt.bool, tt.float16, tt.float64])
def test_a_result_has_the_type_asked_for(where: str, name: str, dtype: tt.dtype) -> None:
    x = tt.tensor([100, 99, 98], device=where)
    if name == "cumsum" and dtype is tt.bool:
        with pytest.raises(tt.DTypeError, match=r"^cumsum: dtype is bool, which holds no running results"):
            x.cumsum(0, dtype=dtype)
        return
    y = getattr(x, name)(0, dtype=dtype)
    assert y.dtype is dtype
    if name == "sum":
        want = {tt.int8: 41, tt.uint8: 41, tt.bool: True}.get(dtype, 297)  # modulo 256, as in PyTorch
        assert y.item() == want


@pytest.mark.parametrize("where", DEVICES)
def test_nan_is_left_out_before_the_type_changes(where: str) -> None:
    assert tt.tensor([NAN, 3.0], device=where).nansum(dtype=tt.int64).item() == 3


@pytest.mark.parametrize("where", DEVICES)
@pytest.mark.parametrize("shape", [(3, 1, 4), (1,), (1, 1)])
@pytest.mark.parametrize("name", ["sum", "prod", "mean", "amax", "amin", "logsumexp", "any", "all", "count_nonzero", "nansum"])
def test_over_a_dim_of_one_element(name: str, shape: tuple[int, ...], where: str) -> None:
    """What is reduced is that element."""
    x = tt.tensor(np.random.default_rng(0).uniform(1.0, 2.0, shape).astype(np.float32), device=where)
    dim = 1 if len(shape) > 1 else 0
    y = getattr(tt, name)(x, dim=dim)
    want = x.squeeze(dim).bool() if y.dtype is tt.bool else x.squeeze(dim)
    if name == "count_nonzero":
        want = tt.ones_like(y)
    assert tt.allclose(y.double(), want.double(), rtol=1e-6)
    assert y.shape == want.shape
    assert getattr(tt, name)(x[..., :0], dim=-1).shape == shape[:-1] if name not in ("amax", "amin") else True


@pytest.mark.parametrize("where", DEVICES)
def test_the_extreme_of_one_element_and_where_it_stands(where: str) -> None:
    x = tt.tensor([[[5, -7]]], device=where)
    for name in ("max", "min"):
        values, indices = getattr(x, name)(1)
        assert (values.tolist(), indices.tolist()) == ([[5, -7]], [[0, 0]])
    assert (x.argmax(1).tolist(), x.argmin(0).tolist()) == ([[0, 0]], [[0, 0]])
    assert x.cumsum(1).tolist() == x.tolist()


@pytest.mark.parametrize("where", DEVICES)
@pytest.mark.parametrize("dim", [0, 1])
def test_the_variance_of_neighbours_as_far_from_zero_as_whole_numbers_go(where: str, dim: int) -> None:
    """2^23, 2^23 + 1, ... are float32's last neighbours one apart: their distances from the first are exact, sums with it are not."""
    x = tt.tensor([[2.0**23 + (3 * k) % 8 for k in range(8)]], device=where)
    y = x if dim else x.t()
    assert tt.var(y, dim, correction=0).tolist() == [5.25]
    assert tt.var(y, dim, correction=1).tolist() == [6.0]


@pytest.mark.parametrize("where", DEVICES)
@pytest.mark.parametrize("keepdim", [False, True])
def test_sums_and_means_of_what_is_a_number(where: str, keepdim: bool) -> None:
    x = np.array([[1.0, NAN, 3.0], [NAN, NAN, NAN], [-2.0, 4.0, 10.0]], np.float32)
    t = tt.tensor(x, device=where)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(t.nansum(1, keepdim).cpu().numpy(), np.nansum(x, 1, keepdims=keepdim))
        np.testing.assert_allclose(t.nansum(0, keepdim).cpu().numpy(), np.nansum(x, 0, keepdims=keepdim))
        np.testing.assert_allclose(t.nanmean(1, keepdim).cpu().numpy(), np.nanmean(x, 1, keepdims=keepdim))
        np.testing.assert_allclose(t.nanmean(0, keepdim).cpu().numpy(), np.nanmean(x, 0, keepdims=keepdim), rtol=1e-6)
    assert t.nanmean().item() == pytest.approx(3.2)
    t.requires_grad_()
    t.nanmean(1)[0].backward()
    assert t.grad is not None
    assert t.grad[0].tolist() == [0.5, 0.0, 0.5]


@pytest.mark.parametrize("where", DEVICES)
@pytest.mark.parametrize("dtype", [tt.float16, tt.bfloat16])
def test_norms_and_deviations_of_16_bits_fit_though_their_squares_do_not(where: str, dtype: tt.dtype) -> None:
    x = tt.tensor([-1.0, -10000.0, 0.0, 4096.0], dtype=dtype, device=where)
    wide = x.float().cpu().numpy().astype(np.float64)
    near = 2e-3 if dtype is tt.float16 else 1e-2
    for found, want in (
        (x.std(), wide.std(ddof=1)),
        (tt.std_mean(x)[0], wide.std(ddof=1)),
        (x.norm(), np.linalg.norm(wide)),
        (x.norm(3), np.linalg.norm(wide, 3)),
        (tt.linalg.vector_norm(x, 2), np.linalg.norm(wide)),
    ):
        assert found.dtype is dtype
        assert found.item() == pytest.approx(want, rel=near)


@pytest.mark.parametrize("dtype", [tt.float16, tt.bfloat16])
def test_long_sums_of_16_bits_on_the_way_to_what_fits(dtype: tt.dtype) -> None:
    x = tt.zeros(70000, dtype=dtype)
    assert x.logsumexp(0).item() == pytest.approx(math.log(70000), rel=5e-3)
    assert (x + 2).nanmean().item() == 2.0


@pytest.mark.parametrize("where", DEVICES)
def test_what_was_expanded_to_nothing_is_not_read(where: str) -> None:
    x = tt.tensor([2.0, 3.0], device=where).reshape(2, 1).expand(2, 0)
    assert x.sum(1).tolist() == [0.0, 0.0]
    assert x.prod(1).tolist() == [1.0, 1.0]
    assert x.all(1).tolist() == [True, True]
    assert x.any().item() is False


@pytest.mark.parametrize(
    ("values", "dtype", "want", "steps"),
    [
        ([255, 255, 1], tt.uint8, 383.0, [255.0, 383.0]),
        ([32767, 1, 2], tt.int16, 16385.5, [16384.0, 16385.5]),
        ([100, 100], tt.int8, 100.0, [100.0]),
    ],
)
def test_trapezoids_of_narrow_integers_do_not_wrap(values: list[int], dtype: tt.dtype, want: float, steps: list[float]) -> None:
    y = tt.tensor(values, dtype=dtype)
    assert tt.trapezoid(y).item() == want
    assert tt.trapezoid(y, dx=2).item() == 2 * want
    assert tt.cumulative_trapezoid(y).tolist() == steps


def test_the_gradient_of_distances_between_points_of_no_coordinates() -> None:
    x = tt.zeros(2, 1, 0, requires_grad=True)
    for p in (0.5, 1.0, 2.0, math.inf):
        (g,) = tt.autograd.grad(tt.cdist(x, x, p=p).sum(), x)
        assert g.shape == (2, 1, 0)


@pytest.mark.parametrize("where", DEVICES)
@pytest.mark.parametrize("n", [1, 127, 128, 129, 250, 1000])
def test_many_rows_of_no_columns_reduce_to_none(where: str, n: int) -> None:
    for shape, dim in (((n, 0), 0), ((0, n), 1), ((n, 0, 2), 0), ((n, 2, 0), (0, 1))):
        x = tt.ones(shape, device=where)
        for f in (tt.sum, tt.mean, tt.var, tt.std, tt.logsumexp, tt.linalg.vector_norm, tt.nansum):
            kept = tuple(s for k, s in enumerate(shape) if k not in (dim if isinstance(dim, tuple) else (dim,)))
            assert f(x, dim=dim).shape == kept, (f.__name__, shape)
