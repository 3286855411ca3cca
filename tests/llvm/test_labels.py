"""Cross-entropy of rows and labels in machine code: few rows as many, ignored labels, labels that are no class, wild logits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tritensor.ground.errors import OutOfRangeError
from tritensor.kernels.losses.cross_entropy import cpu
from tritensor.llvm import compiler
from tritensor.ops.table import registry

pytestmark = pytest.mark.skipif(bool(compiler.refusal()), reason=f"no machine code here: {compiler.refusal()}")
RNG = np.random.default_rng(3)
OP = registry["cross_entropy"]


def draw(rows: int, classes: int, dtype: Any = np.float32) -> tuple[np.ndarray, np.ndarray]:
    return (RNG.standard_normal((rows, classes)) * 3).astype(dtype), RNG.integers(0, classes, rows)


def loss(x: np.ndarray, target: np.ndarray, reduction: str = "mean", ignore_index: int = -100) -> Any:
    return OP.cpu(x, target, reduction=reduction, ignore_index=ignore_index, label_smoothing=0.0)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("rows", "classes"), [(1, 1), (1, 9), (8, 5), (3, 64), (7, 100), (40, 17)])
def test_as_by_addresses(rows: int, classes: int, dtype: type, reduction: str) -> None:
    x, target = draw(rows, classes, dtype)
    target[: rows // 3] = -7
    found = loss(x, target, reduction, -7)
    want = cpu._otherwise(x, target, -7, reduction=reduction)
    assert [(v.shape, v.dtype) for v in found] == [(v.shape, v.dtype) for v in want]
    assert found[1].tobytes() == want[1].tobytes()
    assert found[2].tobytes() == want[2].tobytes()
    np.testing.assert_allclose(found[0], want[0], rtol=1e-15 if dtype is np.float64 else 1e-7)
    if reduction != "none":
        down = cpu._GRADIENTS[reduction].call(x, target, found[1], -7, 0.75)
        assert down.tobytes() == cpu._rows_backward(x, target, found[1], -7, 0.75, reduction).tobytes()
        assert not down[: rows // 3].any()


def test_against_the_definition() -> None:
    x, target = draw(30, 6, np.float64)
    target[3] = target[11] = -100
    lost = np.log(np.exp(x).sum(1)) - x[np.arange(30), np.maximum(target, 0)]
    counts = target != -100
    np.testing.assert_allclose(loss(x, target)[0], lost[counts].mean(), rtol=1e-14)
    shares = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    shares[np.arange(30), np.maximum(target, 0)] -= 1
    made = cpu._GRADIENTS["mean"].call(x, target, loss(x, target)[1], -100, 2.0)
    np.testing.assert_allclose(made, np.where(counts[:, None], shares * 2 / 28, 0), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("label", [5, -1, 2**40, -(2**62)])
def test_labels_that_are_no_class(label: int) -> None:
    x, target = draw(8, 5)
    peaks = loss(x, target)[1]
    target[6] = label
    with pytest.raises(OutOfRangeError, match=f"label {label} at position 6"):
        loss(x, target)
    with pytest.raises(OutOfRangeError, match="position 6"):
        cpu._GRADIENTS["mean"].call(x, target, peaks, -100, 1.0)
    assert np.isfinite(loss(x, target, ignore_index=label)[0])


def test_wild_logits() -> None:
    x, target = draw(4, 5)
    x[0], x[1, 2], x[2, 3] = np.inf, np.nan, -np.inf
    target[:] = -100, 0, 1, 2
    value, peaks, share = loss(x, target)
    assert np.isnan(value)
    assert share == 3
    down = cpu._GRADIENTS["mean"].call(x, target, peaks, -100, 1.0)
    assert not down[0].any()
    assert np.isfinite(down[2:]).all()
    assert down[2, 3] == 0
    assert np.isnan(loss(x, np.full(4, -100))[0])  # a mean of nothing
    assert loss(x, np.full(4, -100), "sum")[0] == 0
    big = np.float32([[1e30, 0, -1e30]])
    assert loss(big, np.array([0]))[0] == 0
    assert loss(big, np.array([1]))[0] == np.float32(1e30)


def test_what_lies_otherwise() -> None:
    x, target = draw(12, 5)
    want = loss(x, target)
    for given, labels in (
        (np.asfortranarray(x), target),
        (np.repeat(x, 2, 0)[::2], target),
        (x, np.repeat(target, 2)[::2]),
        (x, target.astype(np.int32)),
    ):
        made = loss(given, labels)
        np.testing.assert_allclose(made[0], want[0], rtol=1e-6)
        np.testing.assert_allclose(made[1], want[1], rtol=1e-6)
    images = loss(np.ascontiguousarray(x.reshape(3, 4, 5).transpose(0, 2, 1)), target.reshape(3, 4))
    np.testing.assert_allclose(images[0], want[0], rtol=1e-6)
    np.testing.assert_allclose(loss(x[0], target[0].reshape(()))[0], loss(x[:1], target[:1])[0], rtol=1e-6)
