"""Functions over a tensor without dimensions: dims 0 and -1 name its one element, any other is out of range."""

from __future__ import annotations

from typing import Any

import pytest

import tritensor as tt

DEVICES = ["cpu", "cuda"]


def i(on: str, value: Any) -> tt.Tensor:
    return tt.tensor(value, device=on)


def f(on: str, value: Any) -> tt.Tensor:
    return tt.tensor(value, device=on, dtype=tt.float32)


CASES: dict[str, tuple[Any, Any]] = {  # of x = 2.0, a device and a dim; what comes out
    "index_select": (lambda x, on, d: x.index_select(d, i(on, [0])), 2),
    "index_select at a 0-d index": (lambda x, on, d: x.index_select(d, i(on, 0)), 2),
    "index_add": (lambda x, on, d: x.index_add(d, i(on, 0), f(on, 1)), 3),
    "index_copy": (lambda x, on, d: x.index_copy(d, i(on, [0]), f(on, [1])), 1),
    "index_copy of a 0-d source": (lambda x, on, d: x.index_copy(d, i(on, 0), f(on, 1)), 1),
    "index_fill": (lambda x, on, d: x.index_fill(d, i(on, 0), 5), 5),
    "gather": (lambda x, on, d: x.gather(d, i(on, 0)), 2),
    "gather twice": (lambda x, on, d: x.gather(d, i(on, [0, 0])), [2, 2]),
    "gather nothing": (lambda x, on, d: x.gather(d, tt.zeros(0, dtype=tt.int64, device=on)), []),
    "gather of a vector": (lambda x, on, d: tt.arange(3.0, device=on).gather(d, i(on, 1)), 1),
    "scatter": (lambda x, on, d: x.scatter(d, i(on, [0]), f(on, [5])), 5),
    "scatter a number": (lambda x, on, d: x.scatter(d, i(on, [0]), 5), 5),
    "scatter a 0-d source": (lambda x, on, d: x.scatter(d, i(on, [0]), f(on, 5)), 5),
    "scatter into a vector": (lambda x, on, d: tt.ones(3, device=on).scatter(d, i(on, 1), f(on, 5)), [1, 5, 1]),
    "scatter_add": (lambda x, on, d: x.scatter_add(d, i(on, [0, 0]), f(on, [5, 6])), 13),
    "unfold": (lambda x, on, d: x.unfold(d, 1, 1), [2]),
    "unfold nothing": (lambda x, on, d: x.unfold(d, 0, 1), []),
    "movedim": (lambda x, on, d: x.movedim(d, 0), 2),
    "movedim to": (lambda x, on, d: x.movedim(0, d), 2),
    "transpose": (lambda x, on, d: x.transpose(d, 0), 2),
    "flip": (lambda x, on, d: x.flip(d), 2),
    "cumsum": (lambda x, on, d: x.cumsum(d), 2),
    "sum": (lambda x, on, d: x.sum(d, keepdim=True), 2),
    "mean": (lambda x, on, d: x.mean(d), 2),
    "prod": (lambda x, on, d: x.prod(d), 2),
    "amax": (lambda x, on, d: x.amax(d), 2),
    "max": (lambda x, on, d: x.max(d).values, 2),
    "argmax": (lambda x, on, d: x.argmax(d), 0),
    "any": (lambda x, on, d: x.any(d), True),
    "all": (lambda x, on, d: x.all(d), True),
    "var": (lambda x, on, d: x.var(d, correction=0), 0),
    "std": (lambda x, on, d: x.std(d, correction=0), 0),
    "var_mean": (lambda x, on, d: tt.var_mean(x, d, correction=0)[1], 2),
    "norm": (lambda x, on, d: x.norm(2, d), 2),
    "logsumexp": (lambda x, on, d: x.logsumexp(d), 2),
    "softmax": (lambda x, on, d: x.softmax(d), 1),
    "log_softmax": (lambda x, on, d: x.log_softmax(d), 0),
    "unsqueeze": (lambda x, on, d: x.unsqueeze(d), [2]),
    "squeeze": (lambda x, on, d: x.squeeze(d), 2),
    "flatten": (lambda x, on, d: x.flatten(d, d), [2]),
    "repeat_interleave": (lambda x, on, d: tt.stack([x, x], d), [2, 2]),
}


@pytest.mark.parametrize("on", DEVICES)
@pytest.mark.parametrize("name", list(CASES))
def test_dims(name: str, on: str) -> None:
    call, want = CASES[name]
    x = tt.tensor(2.0, device=on)
    for d in (0, -1):
        assert call(x, on, d).tolist() == want
    for d in (1, -2):
        with pytest.raises(IndexError, match="is out of range"):
            call(x, on, d) if name not in ("gather of a vector", "scatter into a vector") else x.sum(d)


@pytest.mark.parametrize("on", DEVICES)
def test_without_a_dim(on: str) -> None:
    x = tt.tensor(2.0, device=on)
    assert x.roll(1).tolist() == x.roll((1,), ()).tolist() == 2
    with pytest.raises(IndexError, match="roll: dim 0 of a tensor that has no dimensions"):
        x.roll(1, 0)
    with pytest.raises(IndexError, match="take_along_dim: dim 0 of a tensor that has no dimensions"):
        x.take_along_dim(i(on, 0), 0)
    assert x.take_along_dim(i(on, 0)).tolist() == [2]
    truth, lie = tt.tensor(True, device=on), tt.tensor(False, device=on)
    assert x.masked_scatter(truth, f(on, [5])).tolist() == x.masked_scatter(truth, f(on, 5)).tolist() == 5
    assert x.masked_scatter(lie, f(on, 5)).tolist() == 2
    assert x.masked_select(truth).tolist() == [2]
    assert x.var(correction=0).item() == 0
    assert tt.isnan(x.var())
    assert tt.isnan(x.std())
    assert x.permute().tolist() == x.mT.tolist() == x.T.tolist() == 2
    with pytest.raises(RuntimeError, match="flipud"):
        x.flipud()


@pytest.mark.parametrize("on", DEVICES)
@pytest.mark.parametrize(
    ("call", "want"),
    [
        (lambda x, on: x.gather(0, i(on, [0, 0])).sum(), 2),
        (lambda x, on: x.scatter(0, i(on, [0]), f(on, [5])).sum(), 0),
        (lambda x, on: x.scatter_add(0, i(on, [0]), f(on, [5])).sum(), 1),
        (lambda x, on: x.index_select(0, i(on, [0])) * 3, 3),
        (lambda x, on: x.index_copy(0, i(on, 0), f(on, 5)), 0),
        (lambda x, on: x.index_add(0, i(on, 0), f(on, 5)) * x, 9),
        (lambda x, on: x.unfold(0, 1, 1).sum() * 3, 3),
        (lambda x, on: x.movedim(0, 0) * 3, 3),
        (lambda x, on: x.masked_scatter(tt.tensor(False, device=on), f(on, 5)), 1),
        (lambda x, on: x.var(correction=0), 0),
        (lambda x, on: x.roll(1) * x, 4),
    ],
)
def test_gradients(call: Any, want: float, on: str) -> None:
    x = tt.tensor(2.0, device=on, requires_grad=True)
    (g,) = tt.autograd.grad(call(x, on), x)
    assert g.shape == ()
    assert g.item() == want
