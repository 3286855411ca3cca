"""Worker processes of a loader: the same batches in the same order as without, seeds, streams, epochs, several iterations at once."""

from __future__ import annotations

import gc
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tests.data.worker_datasets import Draws, Faulty, Growing, Long, Rows, Slow, Stream, Structures, many, note_start, same
from tritensor.data import DataLoader, LengthBucketSampler, TensorDataset, WeightedRandomSampler, get_worker_info
from tritensor.data.loader_options import count_cores

pytestmark = pytest.mark.filterwarnings("ignore:.*processors for this process", "ignore:.*fork:DeprecationWarning")


def loader(data: Any, workers: int = 2, method: str = "fork", **options: Any) -> DataLoader:
    return DataLoader(data, num_workers=workers, **({"multiprocessing_context": method} if workers else {}), **options)


def order(found: Any) -> list[int]:
    return [i for batch in found for i in batch[1].tolist()]


def left() -> list[Any]:
    gc.collect()
    return [p for p in multiprocessing.active_children() if "DataLoader" in p.name]


@pytest.mark.parametrize("method", ["fork", pytest.param("forkserver", marks=pytest.mark.slow), "spawn"])
def test_batches_are_those_of_one_process(method: str) -> None:
    with_workers, alone = loader(Rows(), method=method, batch_size=5), DataLoader(Rows(), batch_size=5)
    for x, y in zip(with_workers, alone, strict=True):
        assert tt.equal(x[0], y[0])
        assert tt.equal(x[1], y[1])
        assert (x[0].is_shared(), y[0].is_shared()) == (True, False)
    assert len(with_workers) == len(iter(with_workers)) == 5
    assert not left()


SAMPLERS: dict[str, Any] = {
    "shuffled": {"shuffle": True, "batch_size": 4},
    "single samples": {"batch_size": None, "shuffle": True},
    "weighted": {"sampler": WeightedRandomSampler([1.0] * 24, 40), "batch_size": 7, "drop_last": True},
    "buckets": {"batch_sampler": LengthBucketSampler([1 + i % 5 for i in range(24)], 4)},
    "a generator": {"shuffle": True, "generator": tt.Generator().manual_seed(5)},
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_the_order_is_set_by_the_seed_alone(name: str) -> None:
    found = []
    for workers, more in ((0, {}), (1, {}), (2, {}), (2, {"prefetch_factor": 5}), (2, {"persistent_workers": True})):
        options = SAMPLERS[name]
        if "generator" in options:
            options["generator"].manual_seed(5)
        if "batch_sampler" in options:
            options["batch_sampler"].set_epoch(0)
        tt.manual_seed(3)
        made = loader(Draws(), workers, **options, **more)
        found.append([[b[0].tolist() if isinstance(b[0], tt.Tensor) else b[0] for b in made] for _ in range(2)])
    assert found[0] == found[1] == found[2] == found[3] == found[4]
    assert found[0][0] != found[0][1]


def test_a_worker_has_its_own_random_numbers_each_epoch() -> None:
    def epochs(**options: Any) -> list[list[list[float]]]:
        tt.manual_seed(0)
        made = loader(Draws(12), batch_size=3, **options)
        return [[column.tolist() for batch in made for column in batch[1:4]] for _ in range(2)]

    found = epochs()
    drawn = [x for epoch in found for column in epoch for x in column]
    assert len(set(drawn)) == len(drawn) == 72
    assert epochs(persistent_workers=True) == found, "one that persists draws as a new one would"
    assert [b[4].unique().item() for b in loader(Draws(12), batch_size=3)] == [0, 1, 0, 1], "in turn"


def test_one_process_draws_as_one_worker_and_the_program_apart() -> None:
    found = []
    for workers in (0, 1):
        tt.manual_seed(0)
        made = loader(Draws(12), workers, batch_size=3, shuffle=True)
        epochs = [[(b[0].tolist(), b[3].tolist()) for b in made] for _ in range(2)]
        found.append((epochs, tt.rand(2).tolist()))
    assert found[0] == found[1]


def test_a_worker_knows_of_itself() -> None:
    assert get_worker_info() is None
    tt.manual_seed(1)
    data = Rows(8)
    found = list(loader(data, batch_size=2, collate_fn=_who, worker_init_fn=note_start))
    seeds = {rank: seed for rank, *_, seed in found}
    assert [f[:3] for f in found] == [(0, 2, 7), (1, 2, 7), (0, 2, 7), (1, 2, 7)]
    assert seeds[1] == seeds[0] + 1
    assert data.n == 8


def _who(samples: Any) -> Any:
    w = get_worker_info()
    assert w is not None
    assert w.worker_method == "multiprocessing"
    return w.id, w.num_workers, w.dataset.n, w.seed


@pytest.mark.parametrize(("batch_size", "drop_last"), [(4, False), (4, True), (None, False)])
@pytest.mark.parametrize("in_order", [True, False])
def test_streams_are_read_by_each_worker(batch_size: int | None, drop_last: bool, in_order: bool) -> None:
    found = list(loader(Stream(21), batch_size=batch_size, drop_last=drop_last, in_order=in_order))
    shares = [list(range(w, 21, 2)) for w in range(2)]
    if batch_size is None:
        assert sorted(found) == list(range(21))
        return
    expected = [s[k : k + 4] for k in range(0, 12, 4) for s in shares if len(s[k : k + 4]) == 4 or (not drop_last and s[k:])]
    batches = [b.tolist() for b in found]
    assert batches == expected if in_order else sorted(batches) == sorted(expected)


def test_a_stream_that_is_longer_than_it_says_warns_once() -> None:
    for workers in (0, 2):
        data = Stream(8, shared=False)
        made = loader(data, workers, batch_size=3)
        assert len(made) == 3
        data.n = 8 if workers else 14
        made = made if workers else loader(_Lying(), 0, batch_size=3)
        len(made)
        with pytest.warns(UserWarning, match=r"was reported to be 8 \(by len\(loader\)\), but \d+ samples") as told:
            list(made)
        assert len(told) == 1


class _Lying(Stream):
    def __init__(self) -> None:
        super().__init__(14)

    def __len__(self) -> int:
        return 8


def test_batches_as_they_come() -> None:
    found = order(loader(Rows(), batch_size=2, in_order=False))
    assert sorted(found) == list(range(24))


def test_workers_that_persist_serve_several_iterations_at_once() -> None:
    made = loader(Rows(8), batch_size=2, persistent_workers=True)
    pids = {p.pid for p in left()}
    nested = [(a, b) for x in made for a in x[1].tolist() for y in made for b in y[1].tolist()]
    assert nested == [(a, b) for a in range(8) for b in range(8)]
    for _ in made:
        break
    assert [order(made), order(made)] == [list(range(8))] * 2
    assert len(left()) == 2
    assert {p.pid for p in left()} != pids
    del made
    assert not left()


def test_two_threads_share_the_workers() -> None:
    made, found = loader(Rows(40), batch_size=2, persistent_workers=True), {}
    threads = [threading.Thread(target=lambda k=k: found.update({k: order(made)})) for k in range(3)]
    list(made)
    for t in threads:
        t.start()
    for t in threads:
        t.join(30)
    assert found == {k: list(range(40)) for k in range(3)}


def test_a_loop_that_is_left_leaves_no_process() -> None:
    for k, _ in enumerate(loader(Rows(), batch_size=2)):
        if k == 1:
            break
    assert not left()
    kept = iter(loader(Rows(), batch_size=2))
    next(kept)
    assert len(left()) == 2
    with pytest.raises(ZeroDivisionError):
        _divide_in(loader(Rows(), batch_size=2))
    assert len(left()) == 2
    del kept
    assert not left()


def _divide_in(batches: Any) -> None:
    for _ in batches:
        1 / 0  # noqa: B018


def test_leaving_waits_for_a_sample_and_not_for_a_batch() -> None:
    made = iter(loader(Slow(300), batch_size=150))
    time.sleep(0.5)
    began = time.monotonic()
    del made
    assert time.monotonic() - began < 15, "a batch takes thirty seconds"
    assert not left()


def test_a_loader_in_a_program_that_is_read_while_workers_run() -> None:
    made = loader(Rows(), batch_size=4)
    a, b = iter(made), iter(made)
    assert [tt.equal(x[0], y[0]) for x, y in zip(a, b, strict=True)] == [True] * 6


def test_what_auto_means() -> None:
    assert DataLoader([1], num_workers="auto").num_workers == max(1, min(8, count_cores() - 1))


def test_more_workers_than_processors_are_told(recwarn: pytest.WarningsRecorder) -> None:
    with pytest.warns(
        UserWarning,
        match=rf"^This DataLoader will create {count_cores() + 1} worker processes in total; there are {count_cores()} processors",
    ):
        DataLoader([1], num_workers=count_cores() + 1)


def test_the_program_uses_its_own_threads_again() -> None:
    assert "MKL_NUM_THREADS" not in os.environ or os.environ["MKL_NUM_THREADS"] != "1"
    list(loader(Rows(4), batch_size=2))
    assert tt.get_num_threads() >= 1


@pytest.mark.parametrize("method", [pytest.param("spawn", marks=pytest.mark.slow), "fork"])
def test_any_structure_arrives_as_it_was(method: str) -> None:
    mine = Structures()[0]
    first, second = loader(Structures(), method=method, batch_size=None, collate_fn=same)
    for key, value in mine.items():
        for got, expected in zip(_flat(first[key]), _flat(value), strict=True):
            assert type(got) is type(expected)
            if isinstance(expected, tt.Tensor):
                assert (got.dtype, got.shape, got.stride(), got.requires_grad) == (
                    expected.dtype, expected.shape, expected.stride(), expected.requires_grad,
                ), key  # fmt: skip
            np.testing.assert_array_equal(_values(got), _values(expected))
    whole, part, turned = first["views"]
    whole[100] = -1
    assert (part[0].item(), turned[100, 0].item()) == (-1, -1), "views of one memory still are"
    assert second["views"][0][100] == 100
    one, other = first["small views"]
    one[2] = -1
    assert other[0] == -1
    assert all(x.is_shared() for x in (whole, part, first["bfloat16"], first["row of many"], first["parameter"]))
    assert first["row of many"].untyped_storage().nbytes() < 10**5, "not the memory that it was a row of"
    first["numpy"][0][0] = 5


def _flat(x: Any) -> list[Any]:
    return [v for member in x for v in _flat(member)] if isinstance(x, tuple) else [x]


def _values(x: Any) -> Any:
    return x.detach().to(tt.float32).numpy() if isinstance(x, tt.Tensor) else np.asarray(x)


def test_memory_is_used_again_and_never_while_it_is_seen() -> None:
    made = iter(loader(Rows(400), batch_size=4))
    pool = made._pool  # type: ignore[attr-defined]
    kept, addresses = [], set()
    for k, (x, labels) in enumerate(made):
        if k in (3, 4, 50):
            kept.append((x, labels.tolist()))
        addresses.add(x.data_ptr())
        assert x[:, 7].tolist() == labels.tolist()
        del x
    assert len(addresses) < 25, "of 100 batches"
    assert all(x.numpy().max(1).tolist() == x.numpy().min(1).tolist() == labels for x, labels in kept)
    assert not pool.alive


def test_a_dataset_that_keeps_what_it_gave() -> None:
    """A worker's own arrays hold their memory as well as the program's do."""
    found = [x.unique().tolist() for x in loader(_Keeping(), workers=1, batch_size=1)]
    assert found == [[k] for k in range(12)]


class _Keeping(Rows):
    def __init__(self) -> None:
        super().__init__(12)
        self.kept: list[Any] = []

    def __getitems__(self, indices: list[int]) -> Any:
        return [tt.data.default_collate([np.full(9000, i, np.float32)]) for i in indices]

    def __getitem__(self, i: int) -> Any:
        raise AssertionError("one by one")


def test_large_arrays_of_a_dataset_are_there_once(tmp_path: Any) -> None:
    data = TensorDataset(tt.arange(200_000.0).reshape(1000, 200), tt.arange(1000))
    found = [(x[:, 0] / 200).tolist() == y.tolist() for x, y in loader(data, method="spawn", batch_size=250)]
    assert found == [True] * 4
    assert data.tensors[0].is_shared()


@pytest.mark.parametrize("persistent", [False, True])
def test_a_thread_pins_the_batches(persistent: bool) -> None:
    made = loader(Rows(), batch_size=4, pin_memory=True, persistent_workers=persistent)
    for _ in range(2):
        seen = []
        for x, labels in made:
            assert x.is_pinned()
            assert labels.is_pinned()
            assert x.to("cuda", non_blocking=True)[:, 7].tolist() == labels.tolist()
            seen += labels.tolist()
        assert seen == list(range(24))
    kept = iter(made)
    assert (len(kept), next(kept)[1].tolist()) == (6, [0, 1, 2, 3])
    assert [t.name for t in threading.enumerate() if t.name == "tritensor-pin"] == ["tritensor-pin"]
    del kept
    assert not [t.name for t in threading.enumerate() if t.name == "tritensor-pin"]
    slow = iter(loader(Slow(300), batch_size=150, pin_memory=True))
    began = time.monotonic()
    del slow
    assert time.monotonic() - began < 15, "a thread that waits for a batch of thirty seconds is woken"


def test_an_error_comes_through_the_thread_that_pins() -> None:
    batches, found = iter(loader(Faulty("ValueError"), batch_size=4, pin_memory=True)), []
    while True:
        try:
            found.append(next(batches)[1].tolist())
        except ValueError as error:
            found.append(str(error)[:47])
        except StopIteration:
            break
    assert found == [[0, 1, 2, 3], "Caught ValueError in DataLoader worker process ", *(list(range(k, k + 4)) for k in (8, 12, 16, 20))]
    with pytest.raises(RuntimeError, match="SIGKILL"):
        list(loader(Faulty("SIGKILL"), batch_size=4, pin_memory=True))
    assert not [t.name for t in threading.enumerate() if t.name == "tritensor-pin"]
    assert not left()


def test_messages_of_any_length() -> None:
    """Long lists of indices, many large arrays in a batch, batches of many objects."""
    made = loader(Long(), batch_sampler=[list(range(20_000))] * 3, prefetch_factor=8, collate_fn=len)
    assert list(made) == [20_000] * 3
    found = list(loader(Long(), batch_size=25, collate_fn=many))
    assert [len(f[0]) for f in found] == [450] * 4
    assert all(x.shape == (5000,) and x[0] == 25 * k for k, f in enumerate(found) for x in f[0])
    assert found[1][1] == [str(i) for i in range(30_000)]


def test_batches_of_many_sizes_do_not_heap_up() -> None:
    made = iter(loader(Growing(), 1, batch_size=1))
    pool = made._pool  # type: ignore[attr-defined]
    for x in made:
        assert x.sum() == x.shape[1]
        held = sum(m.nbytes for m in pool.workers[0].pieces.values()) if pool.alive else 0
        assert held < 200 << 20, "40 sizes of 2 to 25 MB were made"


def test_a_worker_starts_without_the_compiler() -> None:
    code = "import sys; from tritensor.data.workers import child; assert not {'triton', 'tritensor.training', 'torch'} & set(sys.modules)"
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    assert (
        subprocess.run(
            [sys.executable, "-c", code], env=environment | {"PYTHONPATH": str(Path(__file__).resolve().parents[2])}, timeout=60
        ).returncode
        == 0
    )


@pytest.mark.parametrize("at", ["loader", "iterator"])
def test_workers_that_persist_are_ended_as_libraries_do(at: str) -> None:
    made = loader(Rows(8), workers=1, batch_size=2, persistent_workers=True)
    batches = iter(made)
    assert isinstance(batches, tt.utils.data.dataloader._MultiProcessingDataLoaderIter)
    (made._iterator if at == "loader" else batches)._shutdown_workers()
    assert not left()
    assert len(list(made)) == 4


@pytest.mark.parametrize("affinity", [True, False])
def test_a_machine_without_affinities_is_asked_for_its_processors(monkeypatch: pytest.MonkeyPatch, affinity: bool) -> None:
    import tritensor.utils.data.dataloader as module

    if affinity:
        monkeypatch.setattr(module.os, "sched_getaffinity", lambda process: {0})
    else:  # macOS has none
        monkeypatch.delattr(module.os, "sched_getaffinity")
        monkeypatch.setattr(module.os, "cpu_count", lambda: 1)
    with pytest.warns(UserWarning, match="^This DataLoader will create 2 worker processes in total; there are 1 processors"):
        made = DataLoader([1], num_workers=2)
    with pytest.warns(UserWarning, match="^This DataLoader will create 2"):
        made.check_worker_number_rationality()
