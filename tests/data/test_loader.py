"""DataLoader, samplers and collating: orders set by the seed, batches complete, the quick way equal to the long one."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple
from unittest.mock import Mock

import numpy as np
import pytest

import tritensor as tt
from tritensor.data.iterators import SingleProcessIterator
from tritensor.utils.data import (
    BatchSampler,
    DataLoader,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
)


def numbers(n: int) -> TensorDataset:
    return TensorDataset(tt.arange(n * 2.0).reshape(n, 2), tt.arange(n))


def order(loader: Any) -> list[int]:
    return [i for _, labels in loader for i in labels.tolist()]


class Stream(IterableDataset[int]):
    def __init__(self, n: int) -> None:
        self.n = n

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.n))

    def __len__(self) -> int:
        return self.n


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("batch_size", [1, 3, 4, 10, 11])
@pytest.mark.parametrize("shuffle", [False, True])
def test_every_sample_once_an_epoch(batch_size: int, shuffle: bool, drop_last: bool) -> None:
    loader = DataLoader(numbers(10), batch_size=batch_size, shuffle=shuffle, drop_last=drop_last)
    for _ in range(2):
        batches = list(loader)
        sizes = [len(labels) for _, labels in batches]
        assert len(batches) == len(loader)
        assert sizes == [batch_size] * (10 // batch_size) + ([10 % batch_size] if 10 % batch_size and not drop_last else [])
        seen = [i for _, labels in batches for i in labels.tolist()]
        assert len(set(seen)) == len(seen)
        if not shuffle:
            assert seen == list(range(len(seen)))
        for x, labels in batches:
            assert isinstance(x, tt.Tensor)
            np.testing.assert_array_equal(x.numpy(), np.stack([labels.numpy() * 2, labels.numpy() * 2 + 1], 1))


def test_the_seed_sets_the_order() -> None:
    def epochs(seed: int) -> list[list[int]]:
        tt.manual_seed(seed)
        loader = DataLoader(numbers(50), batch_size=8, shuffle=True)
        return [order(loader) for _ in range(3)]

    first = epochs(0)
    assert first == epochs(0)
    assert first != epochs(1)
    assert first[0] != first[1] != first[2], "each epoch has an order of its own"


def test_a_generator_sets_the_order_whatever_the_default_one_does() -> None:
    def epoch(draws: int) -> list[int]:
        tt.rand(draws)
        return order(DataLoader(numbers(50), shuffle=True, generator=tt.Generator().manual_seed(5)))

    assert epoch(1) == epoch(17)


def test_an_order_without_bias() -> None:
    tt.manual_seed(0)
    counts = np.zeros((4, 4))
    sampler = RandomSampler(range(4))
    for _ in range(600):
        counts[np.arange(4), list(sampler)] += 1
    assert ((counts / 600 - 0.25) ** 2 * 600 / 0.25).sum() < 34, "chi squared, 9 degrees of freedom: beyond 34 once in ten thousand"


def test_gather_is_what_collating_gives() -> None:
    data = numbers(20)
    quick = DataLoader(data, batch_size=6)
    slow = DataLoader(data, batch_size=6, collate_fn=lambda samples: default_collate(samples))
    part = DataLoader(Subset(data, range(20)), batch_size=6)
    for batches in zip(quick, slow, part, strict=True):
        assert {type(b) for b in batches} == {list}
        for columns in zip(*batches, strict=True):
            assert len({str(c.dtype) for c in columns}) == 1
            assert all(c.tolist() == columns[0].tolist() for c in columns)


def test_a_tensor_is_a_dataset_of_its_rows() -> None:
    assert [b.tolist() for b in DataLoader(tt.arange(3), batch_size=2)] == [[0, 1], [2]]
    assert [b.tolist() for b in DataLoader(Subset(tt.arange(9.0).reshape(3, 3), [2, 0]), batch_size=2)] == [[[6, 7, 8], [0, 1, 2]]]  # type: ignore[arg-type]


def test_any_object_with_getitem_and_len_is_a_dataset() -> None:
    class Numbers:
        def __getitem__(self, i: int) -> int:
            return i * 10

        def __len__(self) -> int:
            return 4

    assert [b.tolist() for b in DataLoader(Subset(Numbers(), [3, 1]), batch_size=2)] == [[30, 10]]  # type: ignore[arg-type]
    assert sorted(i for part in tt.data.random_split(Numbers(), [3, 1]) for i in part) == [0, 10, 20, 30]  # type: ignore[arg-type]


def test_getitems_reads_many_samples_and_collating_follows() -> None:
    class Many:
        asked: ClassVar[list[list[int]]] = []

        def __getitem__(self, i: int) -> int:
            raise AssertionError("one by one")

        def __getitems__(self, indices: list[int]) -> list[int]:
            self.asked.append(indices)
            return [i * 10 for i in indices]

        def __len__(self) -> int:
            return 5

    assert [b.tolist() for b in DataLoader(Many(), batch_size=2)] == [[0, 10], [20, 30], [40]]
    assert Many.asked == [[0, 1], [2, 3], [4]]
    assert list(DataLoader(Subset(Many(), [4, 2]), batch_size=2, collate_fn=sum)) == [60]  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"])
def test_what_the_batches_were_planned_with_stays(name: str) -> None:
    loader = DataLoader(numbers(4), batch_size=2)
    with pytest.raises(ValueError, match=f"{name} attribute should not be set after DataLoader is initialized"):
        setattr(loader, name, getattr(loader, name))
    loader.collate_fn = len
    assert list(loader) == [2, 2]


def test_there_are_no_workers() -> None:
    assert tt.utils.data.get_worker_info() is None


def test_gradients_go_through_a_batch() -> None:
    w = tt.ones(6, 2, requires_grad=True)
    (rows,) = next(iter(DataLoader(TensorDataset(w), sampler=[4, 1, 1], batch_size=3)))
    rows.sum().backward()
    assert w.grad.sum(1).tolist() == [0, 4, 0, 0, 2, 0]


def test_on_the_device() -> None:
    data = TensorDataset(tt.arange(10.0).reshape(5, 2).to("cuda"), tt.arange(5).to("cuda"))
    x, labels = next(iter(DataLoader(data, batch_size=3, sampler=[4, 0, 2])))
    assert x.device.type == labels.device.type == "cuda"
    assert (x.tolist(), labels.tolist()) == ([[8, 9], [0, 1], [4, 5]], [4, 0, 2])


def test_single_samples() -> None:
    found = list(DataLoader(numbers(3), batch_size=None))
    assert [(x.tolist(), y.item()) for x, y in found] == [([0, 1], 0), ([2, 3], 1), ([4, 5], 2)]
    assert len(DataLoader(numbers(3), batch_size=None)) == 3
    assert list(DataLoader([1, 2], batch_size=None, collate_fn=lambda x: x * 10)) == [10, 20]


def test_a_plain_list_is_a_dataset() -> None:
    assert [b.tolist() for b in DataLoader([1.5, 2.5, 3.5], batch_size=2)] == [[1.5, 2.5], [3.5]]


def test_samplers_given() -> None:
    assert order(DataLoader(numbers(9), sampler=[8, 0, 4], batch_size=2)) == [8, 0, 4]
    assert [y.tolist() for _, y in DataLoader(numbers(9), batch_sampler=[[1, 2], [5]])] == [[1, 2], [5]]
    loader = DataLoader(numbers(9), batch_sampler=BatchSampler(SequentialSampler(range(9)), 4, drop_last=True))
    assert ([y.tolist() for _, y in loader], len(loader)) == ([[0, 1, 2, 3], [4, 5, 6, 7]], 2)


def test_an_iteration_has_a_length() -> None:
    batches = iter(DataLoader(numbers(9), batch_size=2))
    next(batches)
    assert len(batches) == 5
    assert len(list(batches)) == 4
    endless = DataLoader(numbers(9), sampler=iter([8, 0]), batch_size=None)
    assert [int(y) for _, y in list(endless)] == [8, 0]
    with pytest.raises(TypeError, match="no len"):
        len(iter(endless))


@pytest.mark.parametrize(("batch_size", "drop_last", "sizes"), [(4, False, [4, 4, 2]), (4, True, [4, 4]), (5, True, [5, 5])])
def test_streams(batch_size: int, drop_last: bool, sizes: list[int]) -> None:
    loader = DataLoader(Stream(10), batch_size=batch_size, drop_last=drop_last)
    batches = list(loader)
    assert [len(b) for b in batches] == sizes
    assert len(loader) == len(sizes)
    assert [i for b in batches for i in b.tolist()] == list(range(sum(sizes)))
    assert list(DataLoader(Stream(3), batch_size=None)) == [0, 1, 2]


REFUSED = [
    ({"num_workers": -1}, "num_workers -1 is not a count"),
    ({"num_workers": "many"}, "num_workers 'many' is not a count"),
    ({"num_workers": 1, "prefetch_factor": 0}, "prefetch_factor 0 is not a count"),
    ({"num_workers": 1, "multiprocessing_context": "thread"}, "multiprocessing_context 'thread' is no way"),
    ({"pin_memory_device": "cpu"}, "pin_memory_device 'cpu' is no GPU"),
    ({"prefetch_factor": 2}, "prefetch_factor is for worker processes"),
    ({"persistent_workers": True}, "persistent_workers is for worker processes"),
    ({"multiprocessing_context": "fork"}, "multiprocessing_context is for worker processes"),
    ({"timeout": -1}, "timeout -1 is negative"),
    ({"batch_size": 0}, "batch_size 0 is not a positive integer"),
    ({"batch_size": 2.0}, "batch_size 2.0 is not a positive integer"),
    ({"batch_size": True}, "batch_size True is not a positive integer"),
    ({"sampler": [1], "shuffle": True}, "sampler and shuffle=True both set the order"),
    ({"batch_sampler": [[1]], "batch_size": 3}, "batch_sampler makes whole batches"),
    ({"batch_sampler": [[1]], "shuffle": True}, "batch_sampler makes whole batches"),
    ({"batch_size": None, "drop_last": True}, "drop_last needs batches"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^DataLoader: {message}"):
        DataLoader(numbers(4), **options)


@pytest.mark.parametrize("options", [{"shuffle": True}, {"sampler": [1]}, {"batch_sampler": [[1]]}])
def test_a_stream_has_no_order(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="an IterableDataset has no indices"):
        DataLoader(Stream(4), **options)


def test_a_streams_samplers_say_nothing_for_ever() -> None:
    """What libraries look at before they read a loader."""
    batches, singles = DataLoader(Stream(5), batch_size=2), DataLoader(Stream(5), batch_size=None)
    assert batches.batch_sampler is not None
    assert type(batches.sampler) is type(singles.sampler) is tt.utils.data.dataloader._InfiniteConstantSampler
    assert next(iter(batches.batch_sampler)) == [None, None]
    assert (batches.batch_sampler.sampler, singles.batch_sampler) == (batches.sampler, None)
    assert [len(batch) for batch in batches] == [2, 2, 1]
    assert len(list(singles)) == 5


class Restarting(IterableDataset[int]):
    """A stream that is its own iterator, and begins anew at each `__iter__`."""

    def __iter__(self) -> Iterator[int]:
        self.left = [3, 2, 1]
        return self

    def __next__(self) -> int:
        if not self.left:
            raise StopIteration
        return self.left.pop()


@pytest.mark.parametrize(("batch_size", "batches"), [(1, [[1], [2], [3]]), (2, [[1, 2], [3]]), (None, [1, 2, 3])])
def test_a_stream_that_is_its_own_iterator(batch_size: Any, batches: list[Any]) -> None:
    loader = DataLoader(Restarting(), batch_size=batch_size, collate_fn=lambda given: given)
    assert list(itertools.islice(loader, 5)) == batches
    assert list(itertools.islice(SingleProcessIterator(loader), 5)) == batches


def test_a_loader_may_make_its_iterator_itself() -> None:
    class Counting(DataLoader):
        begun = 0

        def _get_iterator(self) -> Iterator[Any]:
            self.begun += 1
            return super()._get_iterator()

    loader = Counting([1, 2])
    assert [len(list(loader)), len(list(loader)), loader.begun] == [2, 2, 2]


def test_an_iterator_cannot_be_pickled() -> None:
    with pytest.raises(NotImplementedError, match="cannot be pickled"):
        pickle.dumps(iter(DataLoader([1])))


def test_a_mock_of_a_loader_has_what_libraries_ask() -> None:
    assert hasattr(Mock(spec=DataLoader), "multiprocessing_context")


def test_batches_can_be_pinned() -> None:
    loader = DataLoader(numbers(4), pin_memory=True, batch_size=2)
    assert all(x.is_pinned() and y.is_pinned() for x, y in loader)
    assert order(loader) == [0, 1, 2, 3]

    class Named(NamedTuple):
        x: Any
        label: str

    class Own:
        pins = 0

        def pin_memory(self) -> Own:
            self.pins += 1
            return self

    own = Own()
    batch = {"a": [tt.ones(2), 3], "b": Named(tt.zeros(1), "cat"), "c": (tt.ones(1), None), "d": own}
    loader = DataLoader([batch], batch_size=None, pin_memory=True, collate_fn=lambda sample: sample)
    (out,) = loader
    assert out["a"][0].is_pinned()
    assert out["a"][1] == 3
    assert type(out["b"]) is Named
    assert out["b"].x.is_pinned()
    assert out["b"].label == "cat"
    assert type(out["c"]) is tuple
    assert out["c"][0].is_pinned()
    assert out["d"] is own
    assert own.pins == 1


def test_pinning_without_a_gpu_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tt.cuda, "is_available", lambda: False)
    monkeypatch.setattr(tt.cuda, "why", lambda: "no NVIDIA driver here")
    with pytest.warns(UserWarning, match="pin_memory=True has no effect here: no NVIDIA driver"):
        loader = DataLoader(numbers(4), pin_memory=True)
    assert order(loader) == [0, 1, 2, 3]


def test_what_speaks_of_workers_can_be_asked() -> None:
    loader = DataLoader([1, 2])
    assert (loader.prefetch_factor, loader.multiprocessing_context, loader.pin_memory_device, loader.in_order) == (None, None, "", True)


def test_random_sampler_counts() -> None:
    tt.manual_seed(0)
    assert sorted(RandomSampler(range(5))) == list(range(5))
    assert len(set(RandomSampler(range(5), num_samples=3))) == 3
    long = list(RandomSampler(range(5), num_samples=12))
    assert len(long) == 12
    assert sorted(long[:5]) == sorted(long[5:10]) == list(range(5))
    drawn = list(RandomSampler(range(5), replacement=True, num_samples=400))
    assert len(drawn) == 400
    assert min(np.bincount(drawn, minlength=5)) > 40
    with pytest.raises(TypeError, match="replacement 1 is not True or False"):
        RandomSampler(range(5), replacement=1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="drop_last 1 is not True or False"):
        BatchSampler(range(5), 2, 1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="num_samples -1 is not a count"):
        RandomSampler(range(5), num_samples=-1)
    with pytest.raises(ValueError, match="3 samples asked of an empty dataset"):
        list(RandomSampler([], num_samples=3))
    assert list(RandomSampler([])) == []


def test_a_stream_without_end_is_drawn_as_it_is_read() -> None:
    """A program that stops by itself asks for 10^10 samples."""
    sampler = RandomSampler(range(5), replacement=True, num_samples=10**10)
    loader = DataLoader(numbers(5), sampler=sampler, batch_size=4)
    batches = iter(loader)
    assert [len(next(batches)[1]) for _ in range(3)] == [4, 4, 4]
    assert len(loader) == 10**10 // 4
    assert len(list(RandomSampler(range(5), replacement=True, num_samples=40_000))) == 40_000


def test_subset_random_sampler() -> None:
    sampler = SubsetRandomSampler([3, 5, 9], generator=tt.Generator().manual_seed(0))
    assert sorted(sampler) == [3, 5, 9]
    assert len(sampler) == 3


def test_weighted_sampler_follows_its_weights() -> None:
    tt.manual_seed(0)
    counts = np.bincount(list(WeightedRandomSampler([1, 0, 3, 4, 0], 4000)), minlength=5)
    assert counts[1] == counts[4] == 0
    assert np.abs(counts / 4000 - np.array([1, 0, 3, 4, 0]) / 8).max() < 0.03
    for _ in range(20):
        assert sorted(WeightedRandomSampler([1, 0, 3, 4, 0], 3, replacement=False)) == [0, 2, 3]
    firsts = [next(iter(WeightedRandomSampler([1, 3], 1, replacement=False))) for _ in range(600)]
    assert 0.68 < np.mean(firsts) < 0.82
    for weights, count, message in (
        ([1, 0], 2, "from 1 indices of positive weight"),
        ([-1.0], 1, "must be finite"),
        ([1], 0, "is not a positive count"),
    ):
        with pytest.raises(ValueError, match=message):
            WeightedRandomSampler(weights, count, replacement=False)


def test_what_cannot_be_drawn_is_a_runtime_error_as_well() -> None:
    for draw in (
        lambda: WeightedRandomSampler([0.0], 1),
        lambda: WeightedRandomSampler([[1.0]], 1),
        lambda: WeightedRandomSampler(tt.ones(1, 1), 1),
        lambda: WeightedRandomSampler([1.0], 1, replacement=1),
        lambda: list(RandomSampler(range(0), num_samples=1)),
        lambda: WeightedRandomSampler([1.0], 2, replacement=False),
    ):
        with pytest.raises(RuntimeError):
            draw()
