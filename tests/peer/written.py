"""Programs that write in place, of which docs/differences.md tells what they give here and in PyTorch."""

from __future__ import annotations

import warnings
from typing import Any


def outside(T: Any) -> Any:
    """func.grad of a function that writes over a tensor that it did not make."""
    held = T.zeros(2)
    return T.func.grad(lambda x: (held.copy_(x), (held * 2).sum())[1])(T.ones(2))


def gapped(T: Any) -> Any:
    d = T.ones(2, 2, requires_grad=True).diagonal()
    return d.select_scatter(d[0], 0, 0).as_strided((1,), (1,)).zero_()


def beyond(T: Any) -> Any:
    b = T.arange(4.0)
    v = b[1:3]
    b.resize_(2).mul_(T.ones(2, requires_grad=True))
    return v * 1


def parts_written(T: Any) -> Any:
    def f(x: Any) -> Any:
        first, _ = (x * 1).unbind(0)
        return first.mul_(2)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return T.func.linearize(f, T.ones(2))[1](T.ones(2))


def moved(T: Any) -> Any:
    x = T.arange(4)
    x[1:] = x[:-1]
    return x


def added(T: Any) -> Any:
    x = T.arange(4)
    x[1:].add_(x[:-1])
    return x


def written_batch(T: Any) -> Any:
    """The gradient of a matrix after the batch that it was multiplied with is written."""
    w, batch = T.ones(1, 2, requires_grad=True), T.ones(2, 2, 2)
    y = w @ batch
    batch.add_(1)
    return T.autograd.grad(y.sum(), w)[0]


def written_factor(T: Any) -> float:
    """The gradient of a factor of a Kronecker product after the other is written."""
    a, b = T.ones(1), T.ones(1, requires_grad=True)
    y = T.kron(a, b)
    a.add_(1)
    return float(T.autograd.grad(y.sum(), b)[0])


def written_view(T: Any) -> Any:
    x = T.ones(2, requires_grad=True)
    with T.no_grad():
        v = x.view(-1)
        v.mul_(2)
    return (v * 1).detach()
