"""Reductions and losses over nothing: a mean of no rows, a variance of fewer elements than its correction."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tritensor as tt
import tritensor.nn.functional as F
from tritensor.errors import OutOfRangeError

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
DEVICES = ["cpu", "cuda"]


@pytest.mark.parametrize("where", DEVICES)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("again", [False, True])
def test_cross_entropy_of_rows_that_are_all_ignored(where: str, smoothing: float, weighted: bool, again: bool) -> None:
    x = tt.tensor([[1.0, 2.0, 3.0], [0.0, 1.0, 0.0]], device=where, requires_grad=True)
    target = tt.tensor([-100, -100], device=where)
    weight = tt.tensor([1.0, 2.0, 3.0], device=where) if weighted else None
    loss = F.cross_entropy(x, target, weight, label_smoothing=smoothing)
    assert math.isnan(loss.item())
    (g,) = tt.autograd.grad(loss, x, create_graph=again)
    assert g.tolist() == [[0.0] * 3] * 2
    if again:
        (h,) = tt.autograd.grad(g.sum(), x)
        assert h.tolist() == [[0.0] * 3] * 2


@pytest.mark.parametrize("where", DEVICES)
@pytest.mark.parametrize("again", [False, True])
def test_the_slope_of_a_variance_with_a_correction_beyond_the_count(where: str, again: bool) -> None:
    x = tt.tensor([2.0, 2.0, 1.0, 2.0], device=where, requires_grad=True)
    y = tt.var(x, 0, correction=5)
    assert y.item() == math.inf
    (g,) = tt.autograd.grad(y, x, create_graph=again)
    assert g.tolist() == [-0.5, -0.5, 1.5, -0.5]


INF, NAN = math.inf, math.nan


def derivative(f: Any, values: list[Any], where: str, again: bool) -> tuple[tt.Tensor, tt.Tensor]:
    """f(x) and the gradient of its sum, by the kernels or by the rule."""
    x = tt.tensor(values, dtype=tt.float64, device=where, requires_grad=True)
    y = f(x)
    (g,) = tt.autograd.grad(y.sum(), x, create_graph=again)
    return y.detach(), g.detach()


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
    _, g = derivative(lambda v: v.prod(0), x, where, again)
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
    found, g = derivative(lambda v: v.var(0), x, where, again)
    np.testing.assert_array_equal(found.cpu().numpy(), y)
    np.testing.assert_array_equal(g.cpu().numpy(), want)
    np.testing.assert_array_equal(derivative(lambda v: v.std(0), x, where, again)[0].cpu().numpy(), y)


@pytest.mark.parametrize("where", DEVICES)
@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("shape", [(3, 0), (0, 0), (0, 3), (0,), (2, 0, 2), (2, 3, 0)])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_cross_entropy_of_no_classes_or_no_rows(where: str, again: bool, reduction: str, shape: tuple[int, ...], smoothing: float) -> None:
    rows = shape[:1] + shape[2:] if len(shape) > 1 else ()
    want = {"mean": NAN, "sum": 0.0, "none": np.zeros(rows)}[reduction]
    for target in (tt.full(rows, -100, dtype=tt.int64, device=where), tt.zeros(*shape, device=where)):
        for weight in (None, tt.ones(shape[1] if len(shape) > 1 else 0, device=where)):
            x = tt.zeros(*shape, device=where, requires_grad=True)
            y = F.cross_entropy(x, target, weight, reduction=reduction, label_smoothing=smoothing)
            np.testing.assert_array_equal(y.detach().cpu().numpy(), want)
            assert tt.autograd.grad(y.sum(), x, create_graph=again)[0].shape == shape


@pytest.mark.parametrize("where", DEVICES)
def test_no_label_is_a_class_where_there_are_none(where: str) -> None:
    with pytest.raises(OutOfRangeError, match="cross_entropy: label 0 at position 0 is no class; there are none"):
        F.cross_entropy(tt.zeros(2, 0, device=where), tt.zeros(2, dtype=tt.int64, device=where)).item()


SOFT = [0.09003057, 0.24472847, 0.66524096]  # softmax of (1, 2, 3)


# (the first row's logits, labels, class weights, the losses' sum, the gradient's first row): PyTorch's, which multiplies by a weight of 0
@pytest.mark.parametrize("where", DEVICES)
@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize(
    ("row", "labels", "weight", "loss", "first"),
    [
        ([INF, 1.0, 2.0], [0, 1], [0.0, 1.0, 1.0], NAN, [NAN] * 3),
        ([-INF, 1.0, 2.0], [0, 1], [0.0, 1.0, 1.0], NAN, [0.0] * 3),
        ([1.0, NAN, 2.0], [0, 1], [0.0, 1.0, 1.0], NAN, [NAN] * 3),
        ([-INF, 1.0, 1.0], [1, 1], [0.0, 1.0, 1.0], math.log(2) - math.log(SOFT[1]), [0.0, -0.5, 0.5]),
        ([1.0, INF, 2.0], [-100, 1], [1.0, 1.0, 1.0], -math.log(SOFT[1]), [NAN] * 3),
        ([-INF, 1.0, 1.0], [1, 1], [INF, 1.0, 1.0], math.log(2) - math.log(SOFT[1]), [0.0, -0.5, 0.5]),
        ([1.0, 2.0, 3.0], [-100, 1], [NAN, 1.0, 1.0], -math.log(SOFT[1]), [0.0] * 3),
    ],
)
def test_class_weights_beside_infinities(
    where: str, again: bool, row: list[float], labels: list[int], weight: list[float], loss: float, first: list[float]
) -> None:
    target, w = tt.tensor(labels, device=where), tt.tensor(weight, dtype=tt.float64, device=where)
    y, g = derivative(lambda x: F.cross_entropy(x, target, w, reduction="sum"), [row, [1.0, 2.0, 3.0]], where, again)
    np.testing.assert_allclose(y.cpu().numpy(), loss, rtol=1e-7)
    np.testing.assert_allclose(g.cpu().numpy()[0], first, rtol=1e-12)
    np.testing.assert_allclose(g.cpu().numpy()[1], [SOFT[0], SOFT[1] - 1, SOFT[2]], rtol=1e-7)


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
    assert x.var(0).item() == x.std(0).item() == INF
    assert tt.full((3,), 1e30, device=where).var(0).item() == 0.0


@pytest.mark.parametrize("where", DEVICES)
@pytest.mark.parametrize("name", ["sum", "nansum", "prod", "cumsum"])
@pytest.mark.parametrize("dtype", [tt.int32, tt.uint8, tt.int8, tt.bool, tt.float16, tt.float64])
def test_a_result_has_the_type_asked_for(where: str, name: str, dtype: tt.dtype) -> None:
    x = tt.tensor([100, 99, 98], device=where)
    y = getattr(x, name)(0, dtype=dtype)
    assert y.dtype is dtype
    if name == "sum":
        want = {tt.int8: 41, tt.uint8: 41, tt.bool: True}.get(dtype, 297)  # modulo 256, as in PyTorch
        assert y.item() == want


@pytest.mark.parametrize("where", DEVICES)
def test_nan_is_left_out_before_the_type_changes(where: str) -> None:
    assert tt.tensor([NAN, 3.0], device=where).nansum(dtype=tt.int64).item() == 3


@pytest.mark.parametrize("where", DEVICES)
def test_the_gradient_of_class_weights_where_no_row_counts(where: str) -> None:
    w = tt.ones(3, device=where, requires_grad=True)
    loss = F.cross_entropy(tt.zeros(2, 3, device=where), tt.tensor([-100, -100], device=where), w)
    assert tt.autograd.grad(loss, w)[0].tolist() == [0.0, 0.0, 0.0]
    loss = F.cross_entropy(tt.zeros(0, 3, device=where), tt.zeros(0, dtype=tt.int64, device=where), w)
    assert tt.autograd.grad(loss, w)[0].tolist() == [0.0, 0.0, 0.0]


def test_the_ignored_label_is_an_integer() -> None:
    with pytest.raises(TypeError, match=r"^cross_entropy: ignore_index is a float; give an int$"):
        F.cross_entropy(tt.zeros(2, 3), tt.tensor([0, 1]), ignore_index=0.5)
