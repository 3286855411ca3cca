"""Linear cross-entropy by chunks beside PyTorch's: losses and gradients of input, weight and bias."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import tritensor as tt

pytestmark = pytest.mark.peer
RNG = np.random.default_rng(14)
X, W, B = RNG.normal(size=(37, 5)), RNG.normal(size=(71, 5)), RNG.normal(size=71)
LABELS = RNG.integers(0, 71, 37)
LABELS[3] = LABELS[20] = -100


def _answers(library: Any, settings: dict[str, Any]) -> list[np.ndarray]:
    given = [library.tensor(v, requires_grad=True) for v in (X, W, B)]
    options = library.nn.LinearCrossEntropyOptions(batch_chunk_size=16)
    loss = library.nn.functional.linear_cross_entropy(
        given[0], given[1], library.tensor(LABELS), linear_bias=given[2], options=options, **settings
    )
    loss.sum().backward()
    return [v.detach().numpy() for v in (loss, *(g.grad for g in given))]


@pytest.mark.parametrize("settings", [{}, {"reduction": "sum"}, {"label_smoothing": 0.1}, {"ignore_index": -100}], ids=str)
@pytest.mark.filterwarnings("ignore:linear_cross_entropy")  # PyTorch takes no chunks with smoothing
def test_chunks_give_what_pytorch_gives(settings: dict[str, Any]) -> None:
    for ours, theirs in zip(_answers(tt, settings), _answers(torch, settings), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
