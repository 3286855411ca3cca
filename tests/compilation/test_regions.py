"""Regions of compiled functions: where ops wait, what closes them, and what threads and errors leave."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Generator
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tritensor import nn
from tritensor.ground import shortcuts
from tritensor.ground.thread_state import here
from tritensor.ops.lazy_array import LazyArray, waiting


def twice(x: tt.Tensor) -> tt.Tensor:
    return x * 2


def open_regions() -> int:
    """How many there are, in all threads: segments that wait keep plans away as well."""
    return shortcuts._reasons["lazy"] - len(waiting)


def kind_of(x: tt.Tensor) -> type:
    return type(x._array)


def test_ops_inside_wait_and_results_do_not() -> None:
    seen = []

    @tt.compile
    def f(x: tt.Tensor) -> tt.Tensor:
        y = x * 2
        seen.append(kind_of(y))
        return y + 1

    assert kind_of(f(tt.ones(2))) is np.ndarray
    assert seen == [LazyArray]


def test_an_error_leaves_what_was_written_and_closes_the_region() -> None:
    @tt.compile
    def f(x: tt.Tensor, state: tt.Tensor) -> tt.Tensor:
        state.add_(1)
        raise KeyError("of the user's")

    state = tt.zeros(2)
    with pytest.raises(KeyError, match="of the user's"):
        f(tt.ones(1), state)
    assert (here.segment, open_regions(), len(waiting)) == (None, 0, 0)
    assert state.tolist() == [1, 1]
    with pytest.raises(tt.ShapeError, match="matmul"):
        tt.compile(lambda x: x @ x)(tt.ones(2, 3))
    assert here.segment is None


def test_errors_of_values_name_op_and_line() -> None:
    @tt.compile
    def f(table: tt.Tensor, i: tt.Tensor) -> tt.Tensor:
        return tt.nn.functional.embedding(i, table)

    with pytest.raises(IndexError, match="index 7") as found:
        f(tt.ones(3, 2), tt.tensor([7]))
    assert "in embedding, called at" in found.value.__notes__[0]
    assert here.segment is None


def test_threads_have_regions_of_their_own() -> None:
    found: dict[int, float] = {}

    def work(i: int) -> None:
        w = tt.ones(4, requires_grad=True)
        for _ in range(3):
            tt.compile(lambda w: (w * i).sum())(w).backward()
        assert w.grad is not None
        found[i] = w.grad.sum().item()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == {i: 12 * i for i in range(4)}
    # of threads that have ended no region is open, and nothing waits
    assert (open_regions(), len(waiting)) == (0, 0)


def test_what_a_thread_has_left_waiting_others_may_ask_for() -> None:
    left = []
    t = threading.Thread(target=lambda: left.append(tt.compile(twice)(tt.ones(2, requires_grad=True))))
    t.start()
    t.join()
    assert open_regions() == 0
    assert kind_of(left[0]) is LazyArray
    assert left[0].tolist() == [2, 2]


def test_backends() -> None:
    seen = []

    def f(x: tt.Tensor) -> tt.Tensor:
        seen.append(kind_of(x * 2))
        return x

    for backend in ("tritensor", "inductor", "aot_eager", "cudagraphs", None):
        tt.compile(f, backend=backend)(tt.ones(1))
    assert seen == [LazyArray] * 5
    tt.compile(f, backend="eager")(tt.ones(1))
    assert seen[-1] is np.ndarray
    assert tt.compile(f, disable=True) is f
    assert tt.compile(disable=True)(f) is f


def test_compiled_in_place() -> None:
    model = nn.Linear(2, 2)
    seen: list[type] = []
    model.register_forward_hook(lambda m, a, y: seen.append(type(y._array)))
    assert model.compile(mode="default") is None
    assert callable(model._compiled_call_impl)
    with tt.no_grad():
        model(tt.ones(1, 2))
    assert seen == [LazyArray]
    assert list(model.state_dict()) == ["weight", "bias"]
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(nn.Linear(1, 1)))):
        assert other._compiled_call_impl is None
    model._compiled_call_impl = None
    seen.clear()
    with tt.no_grad():
        model(tt.ones(1, 2))
    assert seen == [np.ndarray]


def test_loss_and_backward_and_step_join_the_region() -> None:
    model = nn.Linear(3, 3)
    compiled, opt = tt.compile(model), tt.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        out = compiled(tt.ones(2, 3))
        loss = (out**2).mean()
        assert type(loss._array) is LazyArray
        loss.backward()
        assert model.weight.grad is not None
        assert type(model.weight.grad._array) is LazyArray
        assert open_regions() == 1
        opt.step()
        assert (here.segment, open_regions()) == (None, 0)
        assert [type(p._array) for p in model.parameters()] == [np.ndarray] * 2
        opt.zero_grad()


def test_a_value_that_is_asked_for_leaves_the_region_open_while_the_graph_is_held() -> None:
    w = tt.ones(3, requires_grad=True)
    compiled = tt.compile(lambda w: (w * w).sum())
    loss = compiled(w)
    assert loss.item() == 3
    assert here.segment is not None
    loss.backward()
    assert w.grad is not None
    assert type(w.grad._array) is LazyArray
    assert w.grad.tolist() == [2, 2, 2]
    del loss  # nobody can go backward any more
    (tt.ones(1) * 2).item()
    assert here.segment is None
    loss = compiled(w)
    loss.item()
    del loss
    (tt.ones(1) * 2).item()
    assert here.segment is None


def test_without_gradients_nothing_stays_open() -> None:
    compiled = tt.compile(nn.Linear(2, 2))
    with tt.no_grad():
        assert type(compiled(tt.ones(1, 2))._array) is np.ndarray
    assert type(compiled(tt.ones(1, 2)).detach()._array) is LazyArray
    detached = tt.compile(lambda x: compiled(x).detach())
    here.segment.settle()  # type: ignore[union-attr]
    tt.optim.SGD(compiled.parameters(), lr=0.1).step()
    assert type(detached(tt.ones(1, 2))._array) is np.ndarray
    assert here.segment is None


def test_between_the_steps_of_a_generator_its_caller_runs() -> None:
    @tt.compile
    def steps(x: tt.Tensor) -> Generator[tt.Tensor, Any, Any]:
        yield x + 1
        yield x + 2

    made = steps(tt.ones(2))
    for _ in range(2):
        assert kind_of(next(made)) is np.ndarray
        assert kind_of(tt.ones(1) * 2) is np.ndarray
