"""Gradients of slices: a tensor that is taken apart gets one gradient, of what its parts get, on either device and to second order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tritensor.cuda.runtime import active
from tritensor.cuda.virtual.virtual_gpu import VirtualGPU

Taken = Callable[[tt.Tensor], list[tt.Tensor]]

TAKEN: dict[str, Taken] = {
    "split": lambda x: list(x.split([1, 3, 2], 1)),
    "split with an empty part": lambda x: list(x.split([1, 0, 5], 1)),
    "chunk": lambda x: list(x.chunk(4, 0)),
    "unbind": lambda x: list(x.unbind(2)),
    "a loop": lambda x: [x[i] for i in range(4)],
    "a loop from the end": lambda x: [x[-i] for i in range(1, 5)],
    "a loop that leaves some out": lambda x: [x[i] for i in (0, 3)],
    "the same slice twice": lambda x: [x[1], x[1], x[2:]],
    "slices that overlap": lambda x: [x[:, :4], x[:, 2:]],
    "steps": lambda x: [x[::2], x[1::2]],
    "a number and a slice": lambda x: [x[0], x[1:]],
    "a new dimension": lambda x: [x[None], x[:, None]],
    "all of it": lambda x: [x[:], x[...]],
    "an index of nothing, twice": lambda x: [x[()], x[()]],
    "a slice and the tensor itself": lambda x: [x[1], x, x[2]],
    "slices of slices": lambda x: [y for z in x.split(2, 0) for y in z.unbind(1)],
}


def weights(i: int, y: tt.Tensor) -> tt.Tensor:
    return tt.from_numpy(np.random.default_rng(i).standard_normal(y.shape)).to(y)


def loss(x: tt.Tensor, taken: Taken) -> tt.Tensor:
    found: Any = 0.0
    for i, y in enumerate(taken(x)):
        found = found + (weights(i, y) * y * y).sum()
    return found


def expected(x: np.ndarray, taken: Taken) -> np.ndarray:
    """By what each element of x becomes: positions go the way that values go."""
    at = tt.arange(x.size).reshape(x.shape)
    found = np.zeros(x.size)
    for i, y in enumerate(taken(at)):
        np.add.at(found, y.numpy().reshape(-1), (weights(i, y.double()).numpy() * 2).reshape(-1) * x.reshape(-1)[y.numpy().reshape(-1)])
    return found.reshape(x.shape)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("leaf", [True, False], ids=["a leaf", "a result"])
@pytest.mark.parametrize("name", TAKEN)
def test_the_gradient_is_that_of_all_parts(name: str, leaf: bool, device: str) -> None:
    values = np.random.default_rng(5).standard_normal((4, 6, 3))
    want = expected(values, TAKEN[name])
    x = tt.from_numpy(values).to(device).requires_grad_()
    taken_of = x if leaf else x * 1
    loss(taken_of, TAKEN[name]).backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.cpu().numpy(), want, rtol=1e-12, atol=1e-12)
    y = x.detach().requires_grad_()
    (found,) = tt.autograd.grad(loss(y if leaf else y * 1, TAKEN[name]), y)
    np.testing.assert_allclose(found.cpu().numpy(), want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", TAKEN)
def test_it_differentiates_again(name: str) -> None:
    x = tt.from_numpy(np.random.default_rng(7).standard_normal((4, 6, 3))).requires_grad_()
    assert tt.autograd.gradcheck(lambda x: tuple(y * y for y in TAKEN[name](x * 1)), (x,))
    assert tt.autograd.gradgradcheck(lambda x: tuple(y * y * y for y in TAKEN[name](x * 1)), (x,))


@pytest.mark.parametrize("name", TAKEN)
def test_hooks_and_kept_gradients_see_the_whole(name: str) -> None:
    values = np.random.default_rng(5).standard_normal((4, 6, 3))
    x = tt.from_numpy(values).requires_grad_()
    whole = x * 1
    whole.retain_grad()
    seen = []
    whole.register_hook(lambda g: seen.append(g.numpy().copy()))
    loss(whole, TAKEN[name]).backward()
    want = expected(values, TAKEN[name])
    assert whole.grad is not None
    for found in (whole.grad.numpy(), seen[0]):
        np.testing.assert_allclose(found, want, rtol=1e-12, atol=1e-12)
    assert len(seen) == 1


def test_a_leaf_adds_up_over_calls_and_its_gradient_is_its_own() -> None:
    x = tt.ones(3, 2, requires_grad=True)
    for _ in range(2):
        sum(y.sum() * (i + 1) for i, y in enumerate(x.unbind(0))).backward()  # type: ignore[union-attr]
    assert x.grad is not None
    assert x.grad.tolist() == [[2, 2], [4, 4], [6, 6]]
    x.grad.zero_()
    a, b, c = x.unbind(0)
    g = tt.full((2,), 5.0)
    tt.autograd.backward([a, b, c], [g, g, g])
    x.grad.add_(1)
    assert g.tolist() == [5, 5]


def test_a_step_hook_gets_a_sliced_leaf_as_soon_as_it_is_complete() -> None:
    x, seen = tt.ones(2, 2, requires_grad=True), []
    x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.tolist()))
    (x[0] * 2 + x[1] * 3).sum().backward()
    assert seen == [[[2, 2], [3, 3]]]


def test_a_tensor_split_in_three_costs_one_copy() -> None:
    """Not a zeroed tensor and a sum for each part."""
    gpu = VirtualGPU(90)
    before = active.use(gpu)  # type: ignore[arg-type]
    try:
        x = tt.empty(64, 96, device="cuda", requires_grad=True)
        parts = x.split(32, 1)
        grads = [tt.empty(64, 32, device="cuda") for _ in parts]
        gpu.calls = []
        tt.autograd.backward(parts, grads)
        assert len(gpu.calls) == 1
        assert sum(gpu.calls[0].sizes()) == 2 * 64 * 96 * 4
    finally:
        active.use(before)


def test_a_long_loop_moves_each_slice_once() -> None:
    """Bytes of a loop over n slices grow with n, not with n x n."""
    gpu = VirtualGPU(90)
    before = active.use(gpu)  # type: ignore[arg-type]
    try:

        def moved(n: int) -> int:
            x = tt.empty(n, 256, device="cuda", requires_grad=True)
            found = [x[i] for i in range(n - 1)]  # the last one is left out
            gpu.calls = []
            tt.autograd.grad(found, x, [tt.empty(256, device="cuda") for _ in found])
            return sum(sum(call.sizes()) for call in gpu.calls)

        assert moved(64) < 2.2 * moved(32)
    finally:
        active.use(before)
