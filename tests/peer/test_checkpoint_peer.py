"""Selective checkpointing beside torch's: the same gradients, the same refusals."""

from __future__ import annotations

import functools
import importlib
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.peer
LISTS = (["mm"], ["sigmoid", "mm"], ["tanh"], [])


def found(library: str, names: list[str]) -> list[Any]:
    T = importlib.import_module(library)
    C = importlib.import_module(f"{library}.utils.checkpoint")
    kept = [getattr(T.ops.aten, n).default for n in names]
    x = T.tensor(np.linspace(-1, 1, 12).reshape(3, 4)).requires_grad_()
    w = T.tensor(np.linspace(1, -2, 16).reshape(4, 4)).requires_grad_()
    contexts = functools.partial(C.create_selective_checkpoint_contexts, kept)
    y = C.checkpoint(lambda x: T.mm(T.mm(x, w).sigmoid(), w).tanh(), x, use_reentrant=False, context_fn=contexts)
    y.sum().backward(retain_graph=True)
    seen = [y.tolist(), x.grad.tolist(), w.grad.tolist()]
    try:
        y.sum().backward()
    except RuntimeError as e:
        seen.append(str(e))
    return seen


@pytest.mark.parametrize("names", LISTS, ids=lambda names: " ".join(names) or "none")
def test_gradients_and_a_second_backward(names: list[str]) -> None:
    ours, theirs = found("tritensor", names), found("torch", names)
    assert len(ours) == len(theirs)
    for a, b in zip(ours[:3], theirs[:3], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    assert ours[3:] == theirs[3:]
