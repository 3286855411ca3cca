"""Bad indices and labels on the device: named at the next wait, never before, never followed, and the process goes on."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import tritensor as tt
import tritensor.nn.functional as F
from tritensor.cuda.runtime.active import runtime
from tritensor.ground import call_site, device_errors
from tritensor.ground.device import device
from tritensor.ops.table import registry

GPU = device("cuda", 0)


def record(on: int = 0) -> list[int]:
    """The error record as it stands."""
    address = runtime().error_storage(on).pointer
    return list((device_errors.ctypes.c_int64 * device_errors.FIELDS).from_address(address))


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """Each test starts without a record and leaves none."""
    assert record()[0] == 0
    yield
    left = record()[0]
    if left:
        with pytest.raises(IndexError):
            runtime().check_errors(0)
    assert left == 0


def cuda(values: Any) -> tt.Tensor:
    return tt.tensor(values, device="cuda")


def here() -> int:
    """The caller's line."""
    return sys._getframe(1).f_lineno


X = np.arange(1.0, 5.0, dtype=np.float32)
GRID = np.arange(12, dtype=np.float32).reshape(3, 4)
BAD = np.array([0, 9, 3])
MANY = np.where(np.arange(40) == 21, -1, np.arange(40))

# call of the op, what the CPU says of it
CALLS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "getitem": (lambda t: t(X)[t(BAD)], "getitem: index 9 at position 1 is out of range for dim 0 of size 4"),
    "getitem, from the end": (lambda t: t(X)[t([-4, -5])], "getitem: index -5 at position 1 is out of range for dim 0 of size 4"),
    "getitem, second dim": (lambda t: t(GRID)[:, t([[0, 1], [7, 2]])], "getitem: index 7 at position (1, 0) is out of range for dim 1 of size 4"),
    "getitem, two arrays": (
        lambda t: t(GRID)[t([[0], [2]]), t([0, 3, 4])],
        "getitem: index 4 at position 2 is out of range for dim 1 of size 4",
    ),
    "getitem, both wrong": (lambda t: t(GRID)[t([[5], [0]]), t([8, 0])], "getitem: index 5 at position (0, 0) is out of range for dim 0 of size 3"),
    "setitem": (lambda t: t(X).__setitem__(t(BAD), 1.0), "setitem: index 9 at position 1 is out of range for dim 0 of size 4"),
    "setitem, strided": (lambda t: t(GRID).t().__setitem__(t(BAD), 1.0), "setitem: index 9 at position 1 is out of range for dim 0 of size 4"),
    "index_add": (lambda t: t(X).index_add(0, t(BAD), t(X[:3])), "index_add: index 9 at position 1 is out of range for dim 0 of size 4"),
    "index_add, many": (lambda t: t(np.zeros((2, 40, 3), np.float32)).index_add(1, t(MANY), t(np.ones((2, 40, 3), np.float32))), "index_add: index -1 at position 21 is out of range for dim 1 of size 40"),
    "index_copy": (lambda t: t(GRID).index_copy(1, t([0, -1]), t(GRID[:, :2])), "index_copy: index -1 at position 1 is out of range for dim 1 of size 4"),
    "index_select": (lambda t: t(GRID).index_select(1, t([0, 3, 4])), "index_select: index 4 at position 2 is out of range for dim 1 of size 4"),
    "index_fill": (lambda t: t(GRID).index_fill(1, t([0, -5]), 1.0), "index_fill: index -5 at position 1 is out of range for dim 1 of size 4"),
    "index_reduce": (lambda t: t(GRID).index_reduce(1, t([0, 4]), t(GRID[:, :2]), "amax"), "index_reduce: index 4 at position 1 is out of range for dim 1 of size 4"),
    "scatter_reduce": (lambda t: t(GRID).scatter_reduce(1, t([[0, 3], [1, 4]]), t(GRID), "prod"), "scatter_reduce: index 4 at position (1, 1) is out of range for dim 1 of size 4"),
    "take": (lambda t: t(GRID).take(t([[0], [-13]])), "take: index -13 at position (1, 0) is out of range for dim 0 of size 12"),
    "put": (lambda t: t(GRID).put(t([0, 12]), t(GRID[0, :2])), "put: index 12 at position 1 is out of range for dim 0 of size 12"),
    "gather": (lambda t: tt.gather(t(GRID), 1, t([[0, 3], [-1, 1]])), "gather: index -1 at position (1, 0) is out of range for dim 1 of size 4"),
    "scatter_add": (
        lambda t: t(GRID).scatter_add(1, t([[0, 3], [1, 4]]), t(GRID)),
        "scatter_add: index 4 at position (1, 1) is out of range for dim 1 of size 4",
    ),
    "scatter_add, many": (
        lambda t: t(np.zeros(40, np.float32)).scatter_add(0, t(MANY), t(np.ones(40, np.float32))),
        "scatter_add: index -1 at position 21 is out of range for dim 0 of size 40",
    ),
    "scatter": (lambda t: t(GRID).scatter(0, t([[2, 3]]), t(GRID)), "scatter: index 3 at position (0, 1) is out of range for dim 0 of size 3"),
    "scatter, along rows": (
        lambda t: t(GRID).scatter(1, t([[0, 1, 3], [2, 0, 7]]), t(GRID)),
        "scatter: index 7 at position (1, 2) is out of range for dim 1 of size 4",
    ),
    "scatter, along columns": (
        lambda t: t(GRID).scatter(0, t([[0, 1], [1, 2], [2, -1]]), t(GRID)),
        "scatter: index -1 at position (2, 1) is out of range for dim 0 of size 3",
    ),
    "embedding": (lambda t: F.embedding(t([[1, 0], [2, 3]]), t(GRID)), "embedding: index 3 at position (1, 1) is out of range for dim 0 of size 3"),
    "embedding, negative": (lambda t: F.embedding(t([-1]), t(GRID)), "embedding: index -1 at position 0 is out of range for dim 0 of size 3"),
    "embedding_bag": (
        lambda t: F.embedding_bag(t([[1, 0], [2, 3]]), t(GRID)),
        "embedding_bag: index 3 at position (1, 1) is out of range for dim 0 of size 3",
    ),
    "embedding_bag, max": (
        lambda t: F.embedding_bag(t([[1, 0], [2, 3]]), t(GRID), mode="max"),
        "embedding_bag: index 3 at position (1, 1) is out of range for dim 0 of size 3",
    ),
    "cross_entropy": (
        lambda t: F.cross_entropy(t(GRID), t([1, 0, 4])),
        "cross_entropy: label 4 at position 2 is no class; there are 4, 0 to 3 (ignore_index is -100); give labels among these",
    ),
    "cross_entropy, pixels": (
        lambda t: F.cross_entropy(t(GRID.reshape(1, 3, 4)), t([[1, -7, 0, -2]]), ignore_index=-7, reduction="none"),
        "cross_entropy: label -2 at position (0, 3) is no class; there are 3, 0 to 2 (ignore_index is -7); give labels among these",
    ),
    "ctc_loss": (
        lambda t: F.ctc_loss(F.log_softmax(t(np.zeros((4, 2, 3), np.float32)), 2), t([[1, 2], [1, 7]]), [4, 4], [2, 2]),
        "ctc_loss: label 7 at position (1, 1) is no class; there are 3, 0 to 2; give labels among these",
    ),
    "nll_loss": (
        lambda t: F.nll_loss(t(GRID), t([1, 0, 4])),
        "nll_loss: label 4 at position 2 is no class; there are 4, 0 to 3 (ignore_index is -100); give labels among these",
    ),
    "ctc_loss, negative": (
        lambda t: F.ctc_loss(t(GRID).reshape(3, 1, 4), t([[1, 2, 9]]), [3], [2]) + F.ctc_loss(t(GRID).reshape(3, 1, 4), t([[1, -2]]), [3], [2]),
        "ctc_loss: label -2 at position (0, 1) is no class; there are 4, 0 to 3; give labels among these",
    ),
}  # fmt: skip


def on_cpu(values: Any) -> tt.Tensor:
    return tt.tensor(values)


@pytest.mark.parametrize("name", CALLS)
def test_the_cpu_raises_at_once_and_the_device_at_the_next_wait(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    call, says = CALLS[name]
    with pytest.raises(IndexError) as at_once:
        call(on_cpu)
    assert str(at_once.value) == says
    copies = []
    serving: Any = type(runtime())
    copy = serving.copy_to_host

    def counted(*args: Any, **kwargs: Any) -> None:
        copies.append(1)
        copy(*args, **kwargs)

    monkeypatch.setattr(serving, "copy_to_host", counted)
    found, line = call(cuda), call.__code__.co_firstlineno
    assert not copies, "the launch waited for the device"
    with pytest.raises(IndexError) as later:
        tt.cuda.synchronize()
    said, _, rest = str(later.value).partition(" (at ")
    assert said == says
    file, _, rest = rest.partition(":")
    assert file.endswith("test_device_errors.py")
    assert 0 <= int(rest.partition(",")[0]) - line <= 1  # the lambda's own line, or the next where it starts on one of its own
    assert rest.endswith(", found when the device was waited for)")
    tt.cuda.synchronize()  # the record is gone
    assert (cuda(X) + 1).tolist() == [2, 3, 4, 5]
    if found is not None:
        found.cpu()  # what was computed is there, the bad element masked


def test_every_op_that_reports_is_asked() -> None:
    asked = {
        "index_get", "index_put", "index_assign", "gather", "scatter", "scatter_add", "scatter_reduce", "embedding", "cross_entropy", "nll_loss",
        "embedding_bag", "bag_tops", "ctc_loss", "linear_cross_entropy",
    }  # fmt: skip
    assert {op.name for op in registry.values() if op.reports} == asked


@pytest.mark.parametrize("wait", [lambda y: y.cpu(), lambda y: y.sum().item(), repr, lambda y: y.tolist(), lambda y: tt.cuda.synchronize()])
def test_whatever_waits_raises_once(wait: Callable[[Any], Any]) -> None:
    y = cuda(X)[cuda(BAD)]
    with pytest.raises(IndexError, match="index 9 at position 1"):
        wait(y)
    wait(y)
    assert y.tolist() == [1, 0, 4]


def test_a_stream_and_an_event_that_are_waited_for_raise() -> None:
    stream, event = tt.cuda.Stream(), tt.cuda.Event()
    for wait in (stream.synchronize, event.synchronize):
        with tt.cuda.stream(stream):
            cuda(X)[cuda(BAD)]
            event.record()
        with pytest.raises(IndexError, match="index 9 at position 1"):
            wait()
        wait()


def test_a_graph_names_the_line_that_was_captured() -> None:
    x, index = cuda(X), cuda([0, 1])
    x[index]
    graph = tt.cuda.CUDAGraph()
    with tt.cuda.graph(graph):
        line = here() + 1
        y = x[index]
    for value in (1, 5, 2, 6):
        index.copy_(cuda([3, value]))
        graph.replay()
        if value < 4:
            assert y.tolist() == [4, value + 1]
        else:
            with pytest.raises(IndexError, match=rf"index {value} at position 1 .*test_device_errors.py:{line}, "):
                tt.cuda.synchronize()
            assert y.tolist() == [4, 0]


def test_the_first_of_two_errors_wins() -> None:
    x = cuda(X)
    line = here() + 1
    x[cuda([7])]
    F.cross_entropy(cuda(GRID), cuda([1, 0, 4]))
    with pytest.raises(IndexError, match=rf"getitem: index 7 at position 0 .* \(at .*test_device_errors.py:{line}, "):
        x.cpu()
    x.cpu()


def test_one_program_of_many_and_one_element_of_many() -> None:
    index = np.zeros(5000, np.int64)
    index[[3333, 3334, 4999]] = [50, 60, 70]
    y = cuda(X)[cuda(index)]
    with pytest.raises(IndexError, match=r"index (50 at position 3333|70 at position 4999) "):
        y.cpu()
    assert np.flatnonzero(y.cpu().numpy() != 1).tolist() == [3333, 3334, 4999]


def test_the_line_is_the_one_outside_of_tritensor() -> None:
    table = tt.nn.Embedding(4, 2, device="cuda")
    line = here() + 1
    y = tt.nn.Sequential(table, tt.nn.Flatten())(cuda([[4]]))
    with pytest.raises(IndexError, match=rf"embedding: index 4 .*test_device_errors.py:{line}, "):
        y.tolist()


def test_one_line_called_again_names_each_value() -> None:
    for value in (8, 9):
        y = cuda(X)[cuda([0, value])]
        with pytest.raises(IndexError, match=f"index {value} at position 1"):
            y.cpu()
    for x in (X, GRID):  # the same line with another shape and another meaning
        y = cuda(x)[..., cuda([4])]
        with pytest.raises(IndexError, match=f"for dim {x.ndim - 1} of size 4"):
            y.cpu()


REPLAYED: dict[str, Callable[[Any, Any], Any]] = {
    "getitem": lambda x, i: x[i],
    "setitem": lambda x, i: x.__setitem__(i, 1.0),
    "gather": lambda x, i: tt.gather(x, 0, i),
    "scatter": lambda x, i: x.scatter(0, i, x),
    "embedding": lambda x, i: F.embedding(i, x.reshape(4, 1)),
    "cross_entropy": lambda x, i: F.cross_entropy(x.reshape(1, 4), i),
}  # fmt: skip


@pytest.mark.parametrize("name", REPLAYED)
def test_calls_that_are_replayed_name_their_own_line_and_value(name: str) -> None:
    program = compile("if first: call(x, i)\nelse: call(x, i)", "two_lines.py", "exec")
    scope = {"call": as_if_inside(REPLAYED[name]), "x": cuda(X)}
    for value in (9, 2, 8, 1, -9, 7):  # recorded with a bad one on line 1 and on line 2, replayed from then on
        for line in (1, 2):
            exec(program, scope | {"i": cuda([value]), "first": line == 1})
            if 0 <= value < 4:
                tt.cuda.synchronize()
                continue
            with pytest.raises(IndexError, match=rf"(index|label) {value} at position 0 .* \(at two_lines.py:{line}, "):
                tt.cuda.synchronize()


def as_if_inside(call: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The same function as if it were part of tritensor, so that its caller is the user's line."""
    code = call.__code__.replace(co_filename=call_site.INSIDE + "inside.py")
    return FunctionType(code, call.__globals__)


def test_each_device_has_its_own_record() -> None:
    x = tt.tensor(X, device="cuda:1")
    y = x[tt.tensor([4], device="cuda:1")]
    cuda(X).cpu()  # the other device has nothing to say
    with pytest.raises(IndexError, match="index 4"):
        y.cpu()


def test_a_backward_does_not_report_what_its_forward_has() -> None:
    x = tt.tensor(GRID, device="cuda", requires_grad=True)
    y = x[cuda([0, 3])].sum()
    with pytest.raises(IndexError, match="index 3"):
        y.item()
    y.backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[1] * 4, [0] * 4, [0] * 4]
    loss = F.cross_entropy(x, cuda([0, 9, 1]))
    with pytest.raises(IndexError, match="label 9"):
        loss.item()
    loss.backward()
    assert np.isnan(x.grad.cpu().numpy()).any()


def test_good_writes_stay_beside_a_bad_one() -> None:
    x = cuda(X)
    x[cuda(BAD)] = cuda([7.0, 8.0, 9.0])
    with pytest.raises(IndexError, match="setitem: index 9"):
        tt.cuda.synchronize()
    assert x.tolist() == [7, 2, 3, 9]


def test_a_thread_has_its_own_line() -> None:
    seen = []

    def work() -> None:
        seen.append(device_errors.current_site())
        seen.append(device_errors.enter(registry["gather"]))
        seen.append(device_errors.current_site())

    mine = device_errors.enter(registry["embedding"])
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen[0] == 0
    assert seen[1] == seen[2] != mine
    assert device_errors.current_site() == mine


def test_sites_are_interned() -> None:
    gather, embedding = registry["gather"], registry["embedding"]
    found = [(device_errors.enter(gather), device_errors.enter(embedding)) for _ in range(3)]
    assert len(set(found)) == 1
    assert found[0][0] != found[0][1]
    assert device_errors.enter(gather) not in found[0]
    code = "enter(op)\nenter(op)"
    before: list[int] = []
    after: list[int] = []
    for into in (before, after):  # the same text compiled again is the same place
        exec(compile(code, "typed.py", "exec"), {"enter": lambda op, into=into: into.append(_from(op)), "op": gather})
    assert before == after
    assert before[0] != before[1]


def _from(op: Any) -> int:
    """`enter` as a function of tritensor two frames further in would call it."""
    return device_errors._site_of_caller(sys._getframe(2), op.name)


def test_many_places_are_not_all_remembered() -> None:
    for _ in range(device_errors._MEMORY + 10):
        exec(compile("enter(op)", "typed.py", "exec"), {"enter": device_errors.enter, "op": registry["gather"]})
    assert len(device_errors._seen) <= device_errors._MEMORY


def test_a_record_that_is_being_written_is_left_alone() -> None:
    storage = runtime().error_storage(0)
    raw = (device_errors.ctypes.c_int64 * device_errors.FIELDS).from_address(storage.pointer)
    raw[0] = -device_errors.enter(registry["gather"])
    try:
        tt.cuda.synchronize()
        assert record()[0] < 0
    finally:
        raw[0] = 0
