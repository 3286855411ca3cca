"""Strides of results beside PyTorch's: elementwise over random layouts of operands, and functions of every family over the common ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tritensor.ground import strides

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.peer
DEVICES = ("cpu", "cuda")


def told(x: Any) -> tuple[int, ...]:
    """Strides of the dimensions that have more than one element."""
    return tuple(s for n, s in zip(x.shape, x.stride(), strict=True) if n != 1)


def random_layout(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """An empty torch tensor of `shape`: permuted, with gaps, with repeats, or broadcastable to it."""
    own = tuple(1 if n > 1 and rng.random() < 0.2 else n for n in shape)[int(rng.integers(0, 2)) if rng.random() < 0.2 else 0 :]
    order = rng.permutation(len(own)) if rng.random() < 0.7 else np.arange(len(own))
    gap = 2 if rng.random() < 0.3 else 1
    base = torch.zeros([own[d] * gap for d in order])[tuple(slice(None, None, gap) for _ in order)]
    made = base.permute([int(np.flatnonzero(order == d)[0]) for d in range(len(own))])
    if rng.random() < 0.2:
        made = made.expand(shape)
    return made


def test_random_operands_give_the_strides_that_torch_gives() -> None:
    rng = np.random.default_rng(3)
    for _ in range(4000):
        shape = tuple(int(n) for n in rng.integers(1, 4, rng.integers(2, 6)))
        given = [random_layout(rng, shape) for _ in range(rng.integers(1, 4))]
        want = given[0].clone() if len(given) == 1 else given[0] + given[1] if len(given) == 2 else torch.addcmul(*given)
        said = strides.elementwise_strides(tuple(want.shape), tuple((tuple(x.shape), x.stride()) for x in given))
        found = tuple(s for n, s in zip(want.shape, said, strict=True) if n != 1)
        assert found == told(want), [(tuple(x.shape), x.stride()) for x in given]


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "permuted": lambda t: t.arange(24.0).reshape(4, 2, 3).permute(1, 2, 0),
    "channels_last": lambda t: t.arange(120.0).reshape(2, 3, 4, 5).contiguous(memory_format=t.channels_last),
    "permuted4": lambda t: t.arange(120.0).reshape(5, 4, 3, 2).permute(3, 1, 2, 0),
    "sliced": lambda t: t.arange(48.0).reshape(8, 6).t()[::2, ::2],
    "expanded": lambda t: t.arange(3.0).reshape(3, 1).expand(3, 4),
    "ones": lambda t: t.arange(12.0).reshape(4, 1, 3).permute(2, 1, 0),
}
# t is the library, x the input
FUNCTIONS = [
    "-x", "x.clone()", "x.tanh()", "x.abs()", "x * 2", "2 - x", "x + x", "x + x.contiguous()", "x.contiguous() + x", "x + x[:1]", "x[:1] + x",
    "x + t.ones(x.shape[-1], device=x.device)", "t.ones(x.shape[-1], device=x.device) + x", "x > 3", "x.double()", "x.half()", "x.int()", "x ** 2", "x.fmod(2.0)", "x.clamp(1, 2)", "t.relu(x)",
    "t.nn.functional.gelu(x)", "t.nn.functional.softplus(x)", "t.nn.functional.silu(x)", "t.where(x > 3, x, 0.0)",
    "t.where(x > 3, x, x.contiguous())", "t.maximum(x, x.contiguous())", "t.lerp(x.contiguous(), x, 0.5)", "t.lerp(x, x.contiguous(), 0.5)",
    "t.nn.functional.normalize(x)", "t.nn.functional.dropout(x, 0.5)", "t.nn.functional.mse_loss(x, x.contiguous(), reduction='none')",
    "x.flip(0)", "t.zeros_like(x)", "t.rand_like(x)", "t.nan_to_num(x)",
    "x.sum(0)", "x.sum(-1, keepdim=True)", "x.mean(0)", "x.amax(0)", "x.max(0)[0]", "x.var(0)", "x.prod(0)", "x.norm(dim=0)", "x.logsumexp(0)",
    "(x > 0).all(0)", "x.argmax(0)", "x.count_nonzero(0)", "x.cumsum(0)", "x.softmax(-1)", "x.log_softmax(0)", "x.roll(1)",
    "x.tril()", "x.triu()", "t.cat([x, x.contiguous()], 0)", "t.stack([x, x.contiguous()])", "x.gather(0, t.zeros(x.shape, dtype=t.int64, device=x.device))",
    "x.index_select(0, t.tensor([0, 1], device=x.device))", "x.scatter(0, t.zeros(x.shape, dtype=t.int64, device=x.device), x)", "t.nn.functional.layer_norm(x, x.shape[-1:])",
    "x.repeat_interleave(2, 0)", "x @ x.mT", "t.take_along_dim(x, t.zeros(x.shape, dtype=t.int64, device=x.device), 0)", "x.contiguous()",
    "x.reshape(-1)",
]  # fmt: skip
IMAGES = [
    "F.conv2d(x, w)", "F.conv2d(x.contiguous(), w.contiguous(memory_format=t.channels_last))", "F.conv2d(x.contiguous(), w)", "F.conv2d(x, w, groups=3)",
    "F.max_pool2d(x, 2)", "F.avg_pool2d(x, 2)", "F.max_pool2d(x.contiguous(), 2)", "F.conv2d(x[:, :, ::2], w)", "F.max_pool2d(x[:, :, :, 1:], 2)",
    "F.avg_pool2d(x[:, :, 1:], 2)",
]  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("on", DEVICES)
def test_functions_lay_their_results_as_torch_does(layout: str, on: str) -> None:
    wrong = []
    for code in FUNCTIONS:
        want = told(eval(code, {"t": torch, "x": LAYOUTS[layout](torch)}))
        got = told(eval(code, {"t": tt, "x": LAYOUTS[layout](tt).to(on)}))
        if got != want:
            wrong.append(f"{code}: torch {want}, here {got}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("on", DEVICES)
def test_images_lie_as_torch_lays_them(on: str) -> None:
    wrong = []
    for code in IMAGES:
        found = []
        for t, where in ((torch, "cpu"), (tt, on)):
            w = t.ones(6, 1 if "groups" in code else 3, 2, 2).to(where)
            x = LAYOUTS["channels_last"](t).to(where)
            found.append(told(eval(code, {"t": t, "F": t.nn.functional, "x": x, "w": w})))
        if found[0] != found[1]:
            wrong.append(f"{code}: torch {found[0]}, here {found[1]}")
    assert not wrong, "\n".join(wrong)
