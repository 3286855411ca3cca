"""CUDA graphs: a captured step replayed is the eager step, random numbers included; what a graph cannot hold; errors in a capture."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tritensor import nn, optim
from tritensor.ground.errors import CaptureError
from tritensor.ground.thread_state import here, stream_of
from tritensor.nn import functional as F
from tritensor.random import Generator

CUDA = "cuda"


def values(x: tt.Tensor) -> np.ndarray:
    return x.detach().cpu().numpy().copy()


def on_gpu(a: Any) -> tt.Tensor:
    return tt.tensor(np.asarray(a), device=CUDA)


def captured(*does: Callable[[], Any]) -> tt.cuda.CUDAGraph:
    """A graph of some calls."""
    with tt.cuda.graph() as g:
        for call in does:
            call()
    return g


class LeNet(nn.Module):
    """A small one: a convolution, pooling, dropout, two linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 3, 3)
        self.hidden = nn.Linear(27, 8)
        self.drop = nn.Dropout(0.5)
        self.out = nn.Linear(8, 4)

    def forward(self, x: tt.Tensor) -> tt.Tensor:
        x = F.max_pool2d(F.relu(self.conv(x)), 2)
        return self.out(self.drop(F.relu(self.hidden(x.flatten(1)))))


OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "sgd": lambda ps: optim.SGD(ps, lr=0.1, momentum=0.9, weight_decay=0.01),
    "adam": lambda ps: optim.Adam(ps, lr=0.01, amsgrad=True),
    "adamw": lambda ps: optim.AdamW(ps, lr=0.01),
}


def trained(graphed: bool, make: Callable[[Any], Any], steps: int = 3) -> tuple[list[np.ndarray], list[float], int]:
    """Parameters, losses and the generator's place after some steps on changing batches; the last ones replayed from a graph or not."""
    tt.manual_seed(3)
    model = LeNet().to(CUDA)
    optimizer = make(model.parameters())
    rng = np.random.default_rng(0)
    x, target = tt.zeros(4, 1, 8, 8, device=CUDA), tt.zeros(4, dtype=tt.int64, device=CUDA)

    def step() -> tt.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
        return loss

    def feed() -> None:
        x.copy_(on_gpu(rng.standard_normal((4, 1, 8, 8)).astype(np.float32)))
        target.copy_(on_gpu(rng.integers(0, 4, 4)))

    feed()
    losses = [step().item()]  # warm up
    g = tt.cuda.CUDAGraph()
    if graphed:
        with tt.cuda.graph(g):
            loss = step()
    for _ in range(steps):
        feed()
        if graphed:
            g.replay()
        else:
            loss = step()
        losses.append(loss.item())
    return [values(p) for p in model.parameters()], losses, tt.random.default_generator.offset


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_replayed_training_step_is_the_eager_one(name: str) -> None:
    """Forward, loss, backward, optimizer and zero_grad, with dropout forward and backward: bit for bit."""
    eager, graphed = (trained(g, OPTIMIZERS[name]) for g in (False, True))
    assert graphed[1] == eager[1]
    assert graphed[2] == eager[2]
    for a, b in zip(eager[0], graphed[0], strict=True):
        np.testing.assert_array_equal(a, b)
    assert len(set(eager[1])) == len(eager[1])  # every step was another one


def test_nothing_runs_while_it_is_captured() -> None:
    x = tt.ones(3, device=CUDA)
    with tt.cuda.graph() as g:
        x.add_(1)
        y = x * 2
    assert values(x).tolist() == [1, 1, 1]
    g.replay()
    g.replay()
    assert values(x).tolist() == [3, 3, 3]
    assert values(y).tolist() == [6, 6, 6]


# --- random numbers
DRAWS: dict[str, Callable[[], tt.Tensor]] = {
    "rand": lambda: tt.rand(5, device=CUDA),
    "randn": lambda: tt.randn(7, device=CUDA),
    "randint": lambda: tt.randint(0, 100, (6,), device=CUDA),
    "randperm": lambda: tt.randperm(5, device=CUDA),
    "dropout": lambda: F.dropout(tt.ones(40, device=CUDA), 0.5, True),
    "double": lambda: tt.rand(3, device=CUDA, dtype=tt.float64),
}


@pytest.mark.parametrize("name", DRAWS)
def test_replays_draw_what_eager_calls_draw(name: str) -> None:
    draw = DRAWS[name]
    tt.manual_seed(2**63 + 5)
    wanted = [values(draw()) for _ in range(4)]
    tt.manual_seed(2**63 + 5)
    found = [values(draw())]
    with tt.cuda.graph() as g:
        y = draw()
    g.replay()
    found.append(values(y))
    found.append(values(draw()))  # an eager draw between replays goes on where they stand
    g.replay()
    found.append(values(y))
    for a, b in zip(wanted, found, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_seed_between_replays_is_honoured() -> None:
    with tt.cuda.graph() as g:
        y = tt.rand(8, device=CUDA)
    for seed in (1, 2**40, 1):
        tt.manual_seed(seed)
        wanted = values(tt.rand(8, device=CUDA))
        state = tt.get_rng_state()
        tt.manual_seed(seed)
        g.replay()
        np.testing.assert_array_equal(values(y), wanted)
        assert tt.get_rng_state().tolist() == state.tolist()


def test_generators_of_their_own_and_the_block_count() -> None:
    own = Generator().manual_seed(9)
    own.draw(2**32 - 2)  # the offset's high word changes while it is replayed
    before = own.offset, tt.random.default_generator.offset
    with tt.cuda.graph() as g:
        a = tt.rand(5, device=CUDA, generator=own)
        b = tt.randn(5, device=CUDA)
        c = tt.rand(5, device=CUDA, generator=own)
    assert (own.offset, tt.random.default_generator.offset) == before  # nothing was drawn yet
    again = own.clone_state()
    for _ in range(2):
        g.replay()
        for x in (a, c):
            np.testing.assert_array_equal(values(x), tt.rand(5, generator=again).numpy())
    assert own.offset == again.offset
    assert not np.array_equal(values(a), values(c))
    assert np.isfinite(values(b)).all()


def test_a_second_stream_waits_for_the_words_of_the_first() -> None:
    tt.manual_seed(1)
    wanted = [values(tt.rand(4, device=CUDA)) for _ in range(2)]
    tt.manual_seed(1)
    with tt.cuda.graph() as g:
        y = tt.rand(4, device=CUDA)
    g.replay()
    first = values(y)
    with tt.cuda.stream(tt.cuda.Stream()):
        g.replay()
    np.testing.assert_array_equal([first, values(y)], wanted)


def test_going_back_to_a_place_in_the_capture_draws_the_same_again() -> None:
    """What recomputation of a forward pass does."""
    with tt.cuda.graph() as g:
        state = tt.get_rng_state()
        a = tt.rand(6, device=CUDA)
        tt.set_rng_state(state)
        b = tt.rand(6, device=CUDA)
        with tt.random.fork_rng():
            c = tt.rand(6, device=CUDA)
        d = tt.rand(6, device=CUDA)
    for _ in range(2):
        g.replay()
        np.testing.assert_array_equal(values(a), values(b))
        np.testing.assert_array_equal(values(c), values(d))
        assert not np.array_equal(values(a), values(c))


# --- what a graph cannot hold
ELSEWHERE = Generator().manual_seed(77).get_state()
FORBIDDEN: dict[str, tuple[Callable[[tt.Tensor], Any], str, str]] = {
    "item": (lambda x: x.sum().item(), "item", "after replay()"),
    "float": (lambda x: float(x.sum()), "__float__", "after replay()"),
    "bool": (lambda x: bool((x > 0).all()), "__bool__", "outside of the captured part"),
    "cpu": (lambda x: x.cpu(), "cpu", "after replay()"),
    "to": (lambda x: x.to("cpu"), "to", "after replay()"),
    "tolist": (lambda x: x.tolist(), "tolist", "after replay()"),
    "print": (str, "_repr", "printing"),
    "nonzero": (lambda x: tt.nonzero(x), "nonzero", "size that depends on data"),
    "tensor": (lambda x: x + tt.tensor([1.0, 2.0, 3.0], device=CUDA), "tensor", "copy_()"),
    "synchronize": (lambda x: tt.cuda.synchronize(), "synchronize", "after replay()"),
    "stream": (lambda x: tt.cuda.current_stream().synchronize(), "synchronize", "after replay()"),
    "query": (lambda x: tt.cuda.current_stream().query(), "query", "after replay()"),
    "event": (lambda x: tt.cuda.current_stream().record_event().synchronize(), "synchronize", "around replay()"),
    "seed": (lambda x: tt.manual_seed(1), "manual_seed", "between replays"),
    "state": (lambda x: tt.set_rng_state(ELSEWHERE), "set_rng_state", "between replays"),
    "sgd": (lambda x: stepped(optim.SGD, lr=1.0, momentum=0.9), "step", "before the capture"),
    "adam": (lambda x: stepped(optim.Adam), "step", "before the capture"),
}


def stepped(kind: Any, **settings: Any) -> None:
    p = nn.Parameter(tt.ones(3, device=CUDA))
    p.grad = tt.ones(3, device=CUDA)
    kind([p], **settings).step()


@pytest.mark.parametrize("name", FORBIDDEN)
def test_what_a_graph_cannot_hold_is_refused_by_name_and_line(name: str) -> None:
    does, op, remedy = FORBIDDEN[name]
    x = tt.ones(3, device=CUDA)
    if name in ("item", "float"):
        x.sum().item()  # learnt before: a replayed call is refused as well
    with pytest.raises(CaptureError) as caught:
        captured(lambda: x.add_(1), lambda: does(x))
    text = str(caught.value)
    assert text.startswith(op)
    assert "test_graphs.py:" in text
    assert remedy in text
    assert "a CUDA graph is being captured" in text
    # The process goes on, and can capture.
    assert here.capture is None
    assert here.pool == 0
    assert stream_of(0) == 0
    assert values(x).tolist() == [1, 1, 1]
    with tt.cuda.graph() as g:
        x.add_(1)
    g.replay()
    assert values(x).tolist() == [2, 2, 2]


def test_an_error_of_the_program_in_a_capture_comes_out_as_it_is() -> None:
    before = tt.random.default_generator.offset
    with pytest.raises(ZeroDivisionError):
        captured(lambda: tt.rand(3, device=CUDA), lambda: 1 / 0)
    assert tt.random.default_generator.offset == before
    g = tt.cuda.CUDAGraph()
    with pytest.raises(ZeroDivisionError), tt.cuda.graph(g):
        tt.rand(1 // 0, device=CUDA)
    with pytest.raises(CaptureError, match="nothing was captured"):
        g.replay()
    with tt.cuda.graph(g):
        y = tt.ones(2, device=CUDA) + 1
    g.replay()
    assert values(y).tolist() == [2, 2]


def test_captures_out_of_turn() -> None:
    g = tt.cuda.CUDAGraph()
    with pytest.raises(CaptureError, match="default stream"):
        g.capture_begin()
    with pytest.raises(CaptureError, match="not capturing"):
        g.capture_end()
    with pytest.raises(CaptureError, match="no memory yet"):
        g.pool()
    with pytest.raises(ValueError, match="capture_error_mode"), tt.cuda.graph(g, capture_error_mode="lax"):
        pass
    x = tt.ones(2, device=CUDA)
    with tt.cuda.graph(g):
        x.add_(1)
    with pytest.raises(CaptureError, match="reset"), tt.cuda.graph(g):
        pass
    with pytest.raises(CaptureError, match="inside another"):
        captured(lambda: x.add_(1), g.replay)
    with pytest.raises(CaptureError, match="nest"):
        captured(lambda: x.add_(1), tt.cuda.CUDAGraph().capture_begin)
    assert here.capture is None


def test_an_empty_graph_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="empty"), tt.cuda.graph():
        tt.ones(3) + 1
    with pytest.warns(UserWarning, match="empty"), tt.cuda.graph(), tt.cuda.stream(tt.cuda.Stream()):
        tt.ones(3, device=CUDA)  # another stream, which did not wait for the capture


# --- memory
def test_memory_of_the_capture_lives_as_long_as_the_graph() -> None:
    x = tt.ones(3, device=CUDA)
    with tt.cuda.graph() as g:
        y = ((x + 1) * 2) - 1  # what is between is freed in the capture, and used by each replay
    gc.collect()
    filler = [tt.full((3,), 7.0, device=CUDA) for _ in range(8)]
    g.replay()
    assert values(y).tolist() == [3, 3, 3]
    assert all(values(f).tolist() == [7, 7, 7] for f in filler)
    g.reset()
    assert values(y).tolist() == [3, 3, 3]  # a tensor of it outlives the graph
    del y
    held = tt.cuda.memory_allocated()
    assert held == tt.cuda.memory_allocated()


def test_a_static_tensor_that_was_dropped_is_named() -> None:
    x = tt.ones(3, device=CUDA)
    y = tt.ones(3, device=CUDA)
    with tt.cuda.graph() as g:
        y.add_(x)
    del x
    gc.collect()
    with pytest.raises(CaptureError, match="freed since"):
        g.replay()


def test_graphs_share_a_pool() -> None:
    pool = tt.cuda.graph_pool_handle()
    x = tt.ones(3, device=CUDA)
    with tt.cuda.graph(pool=pool) as first:
        y = x + 1
    with tt.cuda.graph(pool=first.pool()) as second:
        z = y * 2
    assert first.pool() is second.pool() is pool
    first.replay()
    second.replay()
    assert values(z).tolist() == [4, 4, 4]
    with tt.cuda.device(1), pytest.raises(CaptureError, match="pool"), tt.cuda.graph(pool=pool):
        pass


# --- streams in a capture
def test_streams_fork_and_join_in_a_capture() -> None:
    x = tt.ones(3, device=CUDA)
    side = tt.cuda.Stream()
    with tt.cuda.graph() as g:
        main = tt.cuda.current_stream()
        y = x + 1
        side.wait_stream(main)
        with tt.cuda.stream(side):
            assert tt.cuda.is_current_stream_capturing()
            z = y * 3
        main.wait_stream(side)
        w = z - 1
    assert not tt.cuda.is_current_stream_capturing()
    x.add_(1)
    g.replay()
    assert values(w).tolist() == [8, 8, 8]
    assert side.query()


def test_a_stream_that_is_not_joined_ends_the_capture_with_an_error() -> None:
    x = tt.ones(3, device=CUDA)
    side = tt.cuda.Stream()

    def fork() -> None:
        side.wait_stream(tt.cuda.current_stream())
        with tt.cuda.stream(side):
            x.add_(1)

    with pytest.raises(CaptureError, match="joined"):
        captured(fork)
    assert here.capture is None
    side.synchronize()
    assert values(x).tolist() == [1, 1, 1]


def test_captured_work_cannot_wait_for_other_work() -> None:
    outside = tt.cuda.Stream()
    event = outside.record_event()
    inside = tt.cuda.Event()
    with tt.cuda.graph():
        tt.ones(2, device=CUDA)
        inside.record()
        with pytest.raises(CaptureError, match="outside of the capture"):
            tt.cuda.current_stream().wait_event(event)
    with pytest.raises(CaptureError, match="capture that is over"):
        outside.wait_event(inside)
    with pytest.raises(CaptureError, match="passes at no time"):
        inside.query()


# --- numbers that change
def test_a_rate_on_the_gpu_is_read_by_each_replay() -> None:
    for kind in (optim.SGD, optim.Adam):
        results = []
        for graphed in (False, True):
            p = nn.Parameter(on_gpu(np.arange(3.0)))
            lr = tt.tensor(0.5, device=CUDA) if graphed else 0.5
            optimizer = kind([p], lr=lr)
            schedule = optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
            p.grad = on_gpu([1.0, -2.0, 3.0])
            optimizer.step()
            g = tt.cuda.CUDAGraph()
            if graphed:
                with tt.cuda.graph(g):
                    optimizer.step()
            for _ in range(3):
                schedule.step()
                if graphed:
                    g.replay()
                else:
                    optimizer.step()
            results.append(values(p))
            if graphed:
                assert optimizer.param_groups[0]["lr"] is lr
                assert lr.item() == schedule.get_last_lr()[0] == 0.0625
        np.testing.assert_allclose(results[1], results[0], rtol=1e-6)


# --- errors that kernels report
def test_a_bad_index_in_a_replay_is_raised_at_the_next_wait() -> None:
    table, index = tt.ones(4, 2, device=CUDA), on_gpu(np.array([0, 1]))
    with tt.cuda.graph() as g:
        y = tt.index_select(table, 0, index)
    index.copy_(on_gpu(np.array([0, 9])))
    g.replay()
    with pytest.raises(IndexError, match=r"9.*test_graphs\.py"):
        tt.cuda.synchronize()
    index.copy_(on_gpu(np.array([3, 3])))
    g.replay()
    assert values(y).tolist() == [[1, 1], [1, 1]]
