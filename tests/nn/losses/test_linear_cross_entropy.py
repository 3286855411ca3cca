"""Linear cross-entropy by chunks: the same numbers as the two functions one after the other, to the second derivative, on both devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tritensor import nn
from tritensor.nn import functional as F

RNG = np.random.default_rng(14)
ROWS, FEATURES, CLASSES = 37, 5, 71
X, W, B = RNG.normal(size=(ROWS, FEATURES)), RNG.normal(size=(CLASSES, FEATURES)), RNG.normal(size=CLASSES)
LABELS = RNG.integers(0, CLASSES, ROWS)
LABELS[3] = LABELS[20] = -100
BY_CHUNKS = nn.LinearCrossEntropyOptions(batch_chunk_size=16)


def _all(device: str, options: Any, **settings: Any) -> list[np.ndarray]:
    """The loss, gradients of input, weight and bias, and of their squares' sum the gradients again."""
    given = [tt.tensor(v, device=device, requires_grad=True) for v in (X, W, B)]
    target = tt.tensor(LABELS, device=device)
    loss = F.linear_cross_entropy(given[0], given[1], target, linear_bias=given[2], options=options, **settings)
    first = tt.autograd.grad(loss.sum(), given, create_graph=True)
    second = tt.autograd.grad(sum((g * g).sum() for g in first), given)  # type: ignore[arg-type]
    bare = tt.autograd.grad(
        F.linear_cross_entropy(given[0], given[1], target, linear_bias=given[2], options=options, **settings).sum(), given
    )
    return [v.detach().cpu().numpy() for v in (loss, *first, *second, *bare)]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("settings", [{}, {"reduction": "sum", "label_smoothing": 0.1}, {"reduction": "none"}], ids=str)
def test_chunks_change_nothing(settings: dict[str, Any], device: str) -> None:
    whole, chunked = (_all(device, options, **settings) for options in (None, BY_CHUNKS))
    for a, b in zip(whole, chunked, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)


def test_what_the_op_does_not_take_is_served_by_the_two_functions() -> None:
    x, w = tt.tensor(X), tt.tensor(W)
    shares = tt.softmax(tt.tensor(RNG.normal(size=(ROWS, CLASSES))), 1)
    expected = F.cross_entropy(F.linear(x, w), shares)
    assert F.linear_cross_entropy(x, w, shares, options=BY_CHUNKS).item() == expected.item()
    weight = tt.tensor(np.abs(B))
    expected = F.cross_entropy(F.linear(x, w), tt.tensor(LABELS), weight)
    tt.debug.variants().clear()
    assert F.linear_cross_entropy(x, w, tt.tensor(LABELS), weight=weight, options=BY_CHUNKS).item() == expected.item()
    assert [(v.op, v.variant, v.times) for v in tt.debug.variants()] == [("linear_cross_entropy", "whole logits", 1)]
    assert "class numbers" in tt.debug.variants()[0].mend


def test_no_memory_holds_all_logits() -> None:
    """The peak of a forward and a backward on the emulated device is below that of all logits in float32."""
    rows, classes = 256, 1024
    x, w = tt.randn(rows, 4, device="cuda", requires_grad=True), tt.randn(classes, 4, device="cuda", requires_grad=True)
    target = tt.zeros(rows, dtype=tt.int64, device="cuda")
    tt.cuda.reset_peak_memory_stats()
    before = tt.cuda.memory_allocated()
    F.linear_cross_entropy(x, w, target, options=nn.LinearCrossEntropyOptions(batch_chunk_size=32)).backward()
    assert tt.cuda.max_memory_allocated() - before < rows * classes * 4 / 2


def test_a_label_that_is_no_class_is_named_by_its_row() -> None:
    wrong = LABELS.copy()
    wrong[33] = CLASSES
    with pytest.raises(IndexError, match=f"label {CLASSES} at position 33 is no class"):
        F.linear_cross_entropy(tt.tensor(X), tt.tensor(W), tt.tensor(wrong), options=BY_CHUNKS)
    F.linear_cross_entropy(tt.tensor(X, device="cuda"), tt.tensor(W, device="cuda"), tt.tensor(wrong, device="cuda"), options=BY_CHUNKS)
    with pytest.raises(IndexError, match=f"label {CLASSES} at position 33 is no class"):
        tt.cuda.synchronize()


def test_sixteen_bits_have_a_loss_of_their_type_and_autocast_one_of_float32() -> None:
    x, w, target = tt.tensor(X).bfloat16(), tt.tensor(W).bfloat16(), tt.tensor(LABELS)
    assert F.linear_cross_entropy(x, w, target, options=BY_CHUNKS).dtype == tt.bfloat16
    with tt.autocast("cpu", dtype=tt.bfloat16):
        assert F.linear_cross_entropy(tt.tensor(X).float(), tt.tensor(W).float(), target, options=BY_CHUNKS).dtype == tt.float32
