"""CUDA graphs on the GPU: a captured training step does to the last bit what the eager one does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tritensor as tt
from tests.gpu import steps
from tests.gpu.scale import scaled
from tritensor import optim

pytestmark = pytest.mark.gpu

WARM = 3  # steps before the capture: the optimizer's buffers come to be


def weights(step: Callable[[], tt.Tensor]) -> list[np.ndarray]:
    return [p.detach().cpu().numpy().copy() for p in step.model.parameters()]  # type: ignore[attr-defined]


def eager_and_graph(make: Callable[[str], Callable[[], tt.Tensor]], n: int) -> tuple[list[np.ndarray], list[np.ndarray], list[float]]:
    """Weights after WARM + n steps, eagerly and with the last n replayed, and the losses of the replays less the eager ones."""
    eager = make("cuda")
    for _ in range(WARM):
        eager()
    wanted = [eager().item() for _ in range(n)]

    captured = make("cuda")
    for _ in range(WARM):
        captured()
    tt.cuda.synchronize()
    graph = tt.cuda.CUDAGraph()
    with tt.cuda.graph(graph):
        loss = captured()
    got = []
    for _ in range(n):
        graph.replay()
        got.append(loss.item())
    return weights(eager), weights(captured), [a - b for a, b in zip(got, wanted, strict=True)]


def test_lenet_replayed_is_lenet_run() -> None:
    run, replayed, difference = eager_and_graph(scaled(steps.lenet, steps.small), scaled(20, 2))
    assert difference == [0.0] * len(difference)
    for a, b in zip(run, replayed, strict=True):
        np.testing.assert_array_equal(a, b)


def test_random_numbers_advance() -> None:
    x = tt.ones(1000, device="cuda")
    tt.nn.functional.dropout(x, 0.5)
    tt.cuda.synchronize()
    graph = tt.cuda.CUDAGraph()
    with tt.cuda.graph(graph):
        y = tt.nn.functional.dropout(x, 0.5)
    masks = []
    for _ in range(3):
        graph.replay()
        masks.append(y.cpu().numpy().copy())
    for mask in masks:
        assert set(np.unique(mask)) == {0.0, 2.0}
        assert 350 < np.count_nonzero(mask) < 650
    assert not np.array_equal(masks[0], masks[1])
    assert not np.array_equal(masks[1], masks[2])


def test_a_graph_reads_what_is_in_its_inputs() -> None:
    x = tt.zeros(256, device="cuda")
    (x * 2.0 + 1.0).sum()
    graph = tt.cuda.CUDAGraph()
    with tt.cuda.graph(graph):
        y = x * 2.0 + 1.0
    for value in (3.0, -4.0):
        x.copy_(tt.full((256,), value))
        graph.replay()
        np.testing.assert_array_equal(y.cpu().numpy(), np.full(256, 2 * value + 1, np.float32))


def test_what_a_capture_forbids_is_said() -> None:
    x = tt.ones(8, device="cuda")
    x.sum()
    with pytest.raises(Exception, match=r"(?i)captur"), tt.cuda.graph(tt.cuda.CUDAGraph()):
        x.sum().item()
    assert x.sum().item() == 8.0, "the device works on"


def test_many_parameters_one_graph() -> None:
    """AdamW's step count advances with the replays as it does eagerly."""

    def make(device: str) -> Callable[[], tt.Tensor]:
        step = steps.small(device)
        model = step.model  # type: ignore[attr-defined]
        optimizer = optim.AdamW(model.parameters(), lr=1e-2)
        model[2].p = 0.0
        x = tt.linspace(-1, 1, 128, device=device).reshape(8, 16)

        def run() -> tt.Tensor:
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        run.model = model  # type: ignore[attr-defined]
        return run

    run, replayed, _ = eager_and_graph(make, scaled(10, 1))
    for a, b in zip(run, replayed, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)
