"""Worker processes, shared memory and spawned processes as PyTorch has them: orders, lengths, seeds, streams, error classes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
import torch.multiprocessing
import torch.utils.data

import tritensor as tt
import tritensor.multiprocessing

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore")]
BOTH = (tt, torch)


class Squares:
    """Map-style; one sample may fail."""

    def __init__(self, n: int, fails: type[Exception] | None = None) -> None:
        self.n, self.fails = n, fails

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> Any:
        if self.fails is not None and i == 5:
            raise self.fails("the fifth")
        return i * i, np.full(3, i, np.float32), {"name": str(i)}


class Seeds:
    """What a worker was seeded with, seen in Python's and numpy's generators."""

    def __init__(self, library: Any) -> None:
        self.library = library

    def __len__(self) -> int:
        return 4

    def __getitem__(self, i: int) -> Any:
        w = self.library.utils.data.get_worker_info()
        return w.id, w.num_workers, w.seed, self.library.initial_seed(), random.random(), np.random.rand(), type(w.dataset).__name__


def streams(library: Any, n: int, shared: bool) -> Any:
    """An IterableDataset of 0 to n - 1."""

    class Stream(library.utils.data.IterableDataset):
        def __iter__(self) -> Iterator[int]:
            w = library.utils.data.get_worker_info()
            return iter(range(w.id, n, w.num_workers)) if w is not None and shared else iter(range(n))

        def __len__(self) -> int:
            return n

    return Stream()


def described(x: Any) -> Any:
    if isinstance(x, torch.Tensor | tt.Tensor):
        return str(x.dtype).rsplit(".", 1)[-1], tuple(x.shape), x.tolist(), x.is_shared()
    if isinstance(x, dict):
        return {k: described(v) for k, v in x.items()}
    if isinstance(x, list | tuple):
        return type(x).__name__, [described(v) for v in x]
    return x


def without_shared(x: Any) -> Any:
    """Small tensors travel by themselves here."""
    if isinstance(x, tuple) and len(x) == 4 and isinstance(x[0], str):
        return x[:3]
    if isinstance(x, dict):
        return {k: without_shared(v) for k, v in x.items()}
    if isinstance(x, tuple | list):
        return type(x)(without_shared(v) for v in x)
    return x


def epochs(library: Any, data: Any, count: int = 2, **options: Any) -> Any:
    options = {"num_workers": 2, "multiprocessing_context": "fork", **options}
    loader = library.utils.data.DataLoader(data, **options)
    return [without_shared([described(b) for b in loader]) for _ in range(count)], len(loader)


@pytest.mark.parametrize(
    "options",
    [
        {"batch_size": 3}, {"batch_size": 3, "drop_last": True}, {"batch_size": None}, {"sampler": [4, 1, 1], "batch_size": 2},
        {"batch_sampler": [[3, 1], [2]]}, {"batch_size": 4, "persistent_workers": True}, {"batch_size": 2, "prefetch_factor": 4, "num_workers": 3},
    ],
    ids=str,
)  # fmt: skip
def test_batches_in_order(options: Any) -> None:
    ours, theirs = (epochs(library, Squares(11), **options) for library in BOTH)
    assert ours == theirs


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(("batch_size", "drop_last"), [(4, False), (4, True), (None, False), (1, False)])
@pytest.mark.parametrize("workers", [0, 1, 3])
def test_streams(batch_size: int | None, drop_last: bool, shared: bool, workers: int) -> None:
    more = {} if workers else {"multiprocessing_context": None}
    ours, theirs = (
        epochs(library, streams(library, 13, shared), batch_size=batch_size, drop_last=drop_last, num_workers=workers, **more)
        for library in BOTH
    )
    assert ours == theirs


def test_seeds() -> None:
    """The loader's own seed is drawn from another stream; what workers make of it is the same."""
    for library in BOTH:
        library.manual_seed(0)
        rows = list(library.utils.data.DataLoader(Seeds(library), batch_size=None, num_workers=2, multiprocessing_context="fork"))
        base = rows[0][2] - rows[0][0]
        for rank, (w, of, seed, initial, drawn, numpys, name) in enumerate(rows[:2]):
            assert (w, of, seed, initial, name) == (rank, 2, base + rank, base + rank, "Seeds")
            random.seed(base + rank)
            assert drawn == random.random()
            np.random.seed(torch.utils.data._utils.worker._generate_state(base, rank))
            assert numpys == np.random.rand()


@pytest.mark.parametrize("error", [ValueError, KeyError, IndexError, OSError, ZeroDivisionError])
def test_errors_of_a_worker(error: type[Exception]) -> None:
    found = []
    for library in BOTH:
        batches, seen = (
            iter(library.utils.data.DataLoader(Squares(9, error), batch_size=3, num_workers=2, multiprocessing_context="fork")),
            [],
        )
        for _ in range(4):
            try:
                seen.append(next(batches)[0].tolist())
            except Exception as raised:
                first = (str(raised).splitlines() or [""])[0]
                seen.append(
                    (type(raised).__name__, first[: len("Caught KeyError in DataLoader worker process 1") - 8 + len(error.__name__)])
                )
        found.append(seen)
    assert found[0] == found[1]


ASKED = [
    "D.StackDataset([1, 2], [3, 4])[1]", "D.StackDataset(a=[1, 2], b=[3, 4])[0]", "D.StackDataset([1, 2], [3, 4]).__getitems__([1, 0])",
    "D.StackDataset(a=[1, 2]).__getitems__([0])", "D.StackDataset()", "D.StackDataset([1], [1, 2])", "D.StackDataset([1], a=[1])", "len(D.StackDataset([1, 2]))",
    "list(D.ChainDataset([S(T, 3, False), S(T, 2, False)]))", "len(D.ChainDataset([S(T, 3, False), S(T, 2, False)]))", "list(D.ChainDataset([[1]]))",
    "type(S(T, 1, False) + S(T, 1, False)).__name__", "D.ConcatDataset([[1], [2, 3]]).cummulative_sizes", "D.ConcatDataset([[1], [2, 3]]).cumulative_sizes",
    "D.DataLoader([1], num_workers=-1)", "D.DataLoader([1], num_workers=1, multiprocessing_context='magic')",
    "D.DataLoader([1], num_workers=1, multiprocessing_context=3)", "D.DataLoader([1], num_workers=1, timeout=-1)", "D.DataLoader([1], persistent_workers=True)",
    "D.DataLoader([1], num_workers=1).prefetch_factor", "D.DataLoader([1]).prefetch_factor", "M.get_all_sharing_strategies()", "M.get_sharing_strategy()",
    "T.ones(2).share_memory_().is_shared()", "T.ones(2).is_shared()", "T.ones(2).share_memory_()[1:].is_shared()", "T.nn.Linear(2, 2).share_memory().weight.is_shared()",
    "C.default_collate_fn_map[str](['a', 'b'], collate_fn_map=None)", "C.collate([1, 2], collate_fn_map={int: lambda b, *, collate_fn_map=None: sum(b)})",
    "C.collate([[1, 'a'], [2, 'b']], collate_fn_map={int: lambda b, *, collate_fn_map=None: sum(b), str: lambda b, *, collate_fn_map=None: ''.join(b)})",
    "C.collate([{'k': 1}, {'k': 2}], collate_fn_map={int: lambda b, *, collate_fn_map=None: max(b)})", "C.collate([1.5], collate_fn_map={int: sum})",
    "C.collate([True, False], collate_fn_map={int: lambda b, *, collate_fn_map=None: sum(b)})", "C.collate([1])",
]  # fmt: skip


@pytest.mark.parametrize("expression", ASKED)
def test_asked_of_both(expression: str) -> None:
    found = []
    for library in BOTH:
        names = {"T": library, "D": library.utils.data, "M": library.multiprocessing, "S": streams, "C": library.utils.data._utils.collate}
        try:
            value = eval(expression, names)
            found.append("a loader" if type(value).__name__ == "DataLoader" else value)
        except (ValueError, TypeError, RuntimeError, AssertionError) as error:
            found.append(("refused", isinstance(error, ValueError)))
    if isinstance(found[0], tuple) and found[0][:1] == ("refused",):
        assert isinstance(found[1], tuple), found
        assert found[1][0] == "refused"
        if found[1][1]:
            assert found[0][1], "a ValueError there"
        return
    assert found[0] == found[1]


def _second(i: int, way: str) -> None:
    if i == 1:
        raise ValueError("mine") if way == "raise" else SystemExit(5)


@pytest.mark.parametrize("way", ["raise", "exit"])
def test_processes_that_fail(way: str) -> None:
    found = []
    for library in BOTH:
        with pytest.raises(Exception, match=r"(?i)process") as e:
            library.multiprocessing.start_processes(_second, (way,), nprocs=2, start_method="fork")
        error: Any = e.value
        said = str(error).strip().splitlines()
        found.append((type(error).__name__, error.error_index, getattr(error, "exit_code", None), said[0], said[-1]))
    assert found[0] == found[1]


def _fill(queue: Any, back: Any) -> None:
    x, view = queue.get()
    x.fill_(3)
    back.put((view.tolist(), x.is_shared(), view.is_shared(), x.requires_grad))
    queue.get()


def test_queues_share_what_they_carry() -> None:
    found = []
    for library in BOTH:
        context = library.multiprocessing.get_context("fork")
        queue, back = context.Queue(), context.Queue()
        child = context.Process(target=_fill, args=(queue, back))
        child.start()
        x = library.zeros(4)
        queue.put((x, x[2:]))
        told = back.get(timeout=20)
        queue.put(0)
        child.join()
        found.append((told, x.tolist(), x.is_shared(), type(told).__name__))
        with pytest.raises(RuntimeError):
            library.multiprocessing.reductions.reduce_tensor(library.ones(1, requires_grad=True) * 2)
    assert found[0] == found[1]
