"""Cross-entropy over nothing and beside infinities: no classes, no rows, all of them ignored, class weights of 0, infinity and NaN."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tritensor as tt
import tritensor.nn.functional as F
from tests.kernels.value_and_gradient import value_and_gradient
from tritensor.ground.errors import OutOfRangeError

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
DEVICES = ["cpu", "cuda"]
INF, NAN = math.inf, math.nan


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
    y, g = value_and_gradient(lambda x: F.cross_entropy(x, target, w, reduction="sum"), [row, [1.0, 2.0, 3.0]], where, again)
    np.testing.assert_allclose(y.cpu().numpy(), loss, rtol=1e-7)
    np.testing.assert_allclose(g.cpu().numpy()[0], first, rtol=1e-12)
    np.testing.assert_allclose(g.cpu().numpy()[1], [SOFT[0], SOFT[1] - 1, SOFT[2]], rtol=1e-7)


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


@pytest.mark.parametrize("where", ["cpu", "cuda"])
@pytest.mark.parametrize("smoothing", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("probabilities", [False, True])
def test_cross_entropy_of_one_class(where: str, smoothing: float, probabilities: bool) -> None:
    """Its share is 1 whatever the logit is: no loss, and no gradient."""
    x = tt.tensor([[3.0], [-2.0], [0.0]], device=where, requires_grad=True)
    target = tt.ones(3, 1, device=where) if probabilities else tt.zeros(3, dtype=tt.int64, device=where)
    loss = F.cross_entropy(x, target, label_smoothing=smoothing)
    loss.backward()
    assert loss.item() == 0.0
    assert x.grad is not None
    assert x.grad.tolist() == [[0.0]] * 3


@pytest.mark.parametrize("where", ["cpu", "cuda"])
def test_cross_entropy_of_one_class_and_ignored_rows(where: str) -> None:
    x = tt.tensor([[3.0], [-2.0], [0.0]], device=where, requires_grad=True)
    loss = F.cross_entropy(x, tt.tensor([0, -100, 0], device=where))
    loss.backward()
    assert loss.item() == 0.0
    assert x.grad is not None
    assert x.grad.tolist() == [[0.0]] * 3


@pytest.mark.quick
@pytest.mark.parametrize("columns", [1031, 4099])
def test_rows_that_begin_between_whole_accesses(columns: int) -> None:
    """Their ends are read apart from the columns between, which are read some at a time."""
    x = np.random.default_rng(columns).standard_normal((3, columns)).astype(np.float32)
    x[:, [0, -1]] = 9  # the ends weigh most
    target = tt.tensor([0, 5, columns - 1])
    answers = []
    for on in DEVICES:
        logits = tt.tensor(x, device=on, requires_grad=True)
        loss = F.cross_entropy(logits, target.to(on))
        answers.append((loss.item(), tt.autograd.grad(loss, logits)[0].cpu().numpy()))
    (on_cpu, g), (emulated, h) = answers
    np.testing.assert_allclose(emulated, on_cpu, rtol=1e-5)
    np.testing.assert_allclose(h, g, rtol=1e-5, atol=1e-7)
