"""Datasets: what they hold, how they are split, and what they refuse."""

from __future__ import annotations

from typing import Any

import pytest

import tritensor as tt
from tritensor.data.dataset import find_batch_reader
from tritensor.utils.data import (
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)


class Squares(Dataset[int]):
    def __init__(self, n: int) -> None:
        self.n = n

    def __getitem__(self, index: Any) -> int:
        if not 0 <= index < self.n:
            raise IndexError(index)
        return index * index

    def __len__(self) -> int:
        return self.n


def test_both_spellings_are_one() -> None:
    import tritensor.data
    import tritensor.utils.data

    names = {
        n for n in vars(tritensor.data) if n[0].isupper() or n in ("random_split", "default_collate", "default_convert", "get_worker_info")
    }
    assert len(names) >= 14
    for name in names:
        assert getattr(tritensor.utils.data, name) is getattr(tritensor.data, name)
    assert tt.utils.data is tritensor.utils.data


def test_tensor_dataset_gives_rows() -> None:
    x, y = tt.arange(12.0).reshape(6, 2), tt.arange(6)
    data = TensorDataset(x, y)
    assert len(data) == 6
    a, b = data[4]
    assert (a.tolist(), b.item()) == ([8, 9], 4)
    assert [t.tolist() for t in data[1:3]] == [[[2, 3], [4, 5]], [1, 2]]


@pytest.mark.parametrize("make", [lambda: (), lambda: (tt.zeros(3), tt.zeros(4)), lambda: (tt.tensor(1.0),), lambda: ([1, 2],)])
def test_tensor_dataset_refuses(make: Any) -> None:
    with pytest.raises((ValueError, TypeError), match=r"^TensorDataset: "):
        TensorDataset(*make())


def test_concat() -> None:
    both = Squares(3) + Squares(4)
    assert isinstance(both, ConcatDataset)
    assert [both[i] for i in range(len(both))] == [0, 1, 4, 0, 1, 4, 9]
    assert both[-1] == 9
    assert both[-7] == 0
    for i in (7, -8):
        with pytest.raises(IndexError, match=f"ConcatDataset: index {i} is out of range for 7 samples"):
            both[i]
    assert [ConcatDataset([Squares(0), Squares(2), Squares(0)])[i] for i in range(2)] == [0, 1]


def test_concat_refuses_streams() -> None:
    class Stream(IterableDataset[int]):
        pass

    with pytest.raises(ValueError, match="no datasets given"):
        ConcatDataset([])
    with pytest.raises(TypeError, match="Stream is an IterableDataset"):
        ConcatDataset([Stream()])
    with pytest.raises(NotImplementedError, match="Stream has no __iter__"):
        iter(Stream())
    with pytest.raises(NotImplementedError, match="Dataset has no __getitem__"):
        Dataset()[0]


def test_stacked() -> None:
    rows = StackDataset(Squares(4), TensorDataset(tt.arange(4)))
    assert (len(rows), rows[2][0], rows[2][1][0].item()) == (4, 4, 2)
    assert [r[0] for r in rows.__getitems__([3, 0])] == [9, 0]
    named = StackDataset(x=Squares(3), y=["a", "b", "c"])
    assert named[1] == {"x": 1, "y": "b"}
    assert [b["x"].tolist() for b in DataLoader(named, batch_size=2)] == [[0, 1], [4]]
    assert [b["y"] for b in DataLoader(named, batch_size=2)] == [["a", "b"], ["c"]]

    class Many(Squares):
        def __getitems__(self, indices: list[int]) -> list[int]:
            return [7 * i for i in indices][: 2 if len(indices) > 2 else None]

    assert StackDataset(Many(3), Squares(3)).__getitems__([2, 1]) == [(14, 4), (7, 1)]
    for make, message in (
        (lambda: StackDataset(), "neither given"),
        (lambda: StackDataset(Squares(1), x=Squares(1)), "both given"),
        (lambda: StackDataset(x=Squares(1), y=Squares(2)), r"lengths \{'x': 1, 'y': 2\} differ"),
        (lambda: StackDataset(Many(3)).__getitems__([0, 1, 2]), "dataset 0 gave 2 samples for 3 indices"),
    ):
        with pytest.raises(ValueError, match=f"^StackDataset: {message}"):
            make()


def test_chained() -> None:
    class Stream(IterableDataset[int]):
        def __init__(self, *found: int) -> None:
            self.found = found

        def __iter__(self) -> Any:
            return iter(self.found)

        def __len__(self) -> int:
            return len(self.found)

    both = Stream(1, 2) + Stream(3)
    assert isinstance(both, ChainDataset)
    assert (list(both), len(both), list(both)) == ([1, 2, 3], 3, [1, 2, 3])
    assert [b.tolist() for b in DataLoader(both, batch_size=2)] == [[1, 2], [3]]
    wrong = ChainDataset([Stream(1), Squares(3)])
    for use in (list, len):
        with pytest.raises((TypeError, AssertionError), match="ChainDataset: Squares is no IterableDataset"):
            use(wrong)


def test_subset() -> None:
    part = Subset(Squares(10), [7, 2, 2])
    assert [part[i] for i in range(len(part))] == [49, 4, 4]
    assert part.__getitems__([1, 0]) == [4, 49]
    rows = Subset(Subset(TensorDataset(tt.arange(10) * 10), [9, 8, 7, 6]), [3, 0])
    assert rows[[1, 0, 1]][0].tolist() == [90, 60, 90]


def test_who_makes_whole_batches() -> None:
    table = TensorDataset(tt.arange(10) * 10)
    assert find_batch_reader(Squares(3)) is None
    assert find_batch_reader([1, 2]) is None
    assert find_batch_reader(tt.arange(3)) is None, "a tensor's gather is another thing"
    assert find_batch_reader(Subset(Squares(10), [1])) is None
    assert find_batch_reader(Subset([1, 2], [1])) is None  # type: ignore[arg-type]
    for data in (table, Subset(table, range(10)), Subset(Subset(table, range(10)), range(10))):
        whole = find_batch_reader(data)
        assert whole is not None
        assert whole([1, 0, 1])[0].tolist() == [10, 0, 10]

    class Doubled(TensorDataset):
        def __getitem__(self, index: Any) -> Any:
            return super().__getitem__(index)[0] * 2

    class Shifted(Subset[Any]):
        def __getitem__(self, index: Any) -> Any:
            return super().__getitem__(index)[0] + 1

    assert find_batch_reader(Doubled(tt.arange(3))) is None
    assert find_batch_reader(Subset(Doubled(tt.arange(3)), [1])) is None
    assert find_batch_reader(Shifted(table, [1])) is None
    (batch,) = DataLoader(Doubled(tt.arange(3)), batch_size=3)
    assert batch.tolist() == [0, 2, 4]


@pytest.mark.parametrize(
    ("lengths", "sizes"), [([7, 3], [7, 3]), ([0, 10], [0, 10]), ([0.7, 0.3], [7, 3]), ([0.33, 0.33, 0.34], [4, 3, 3]), ([1.0], [10])]
)
def test_random_split_is_a_partition(lengths: list[float], sizes: list[int]) -> None:
    parts = random_split(Squares(10), lengths, generator=tt.Generator().manual_seed(3))
    assert [len(p) for p in parts] == sizes
    assert sorted(i for p in parts for i in p.indices) == list(range(10))


def test_whole_numbers_that_sum_to_one_are_fractions() -> None:
    assert [len(p) for p in random_split(Squares(10), [1])] == [10]
    with pytest.warns(UserWarning, match="random_split: Length of split at index 1 is 0"):
        assert [len(p) for p in random_split(Squares(10), [1, 0])] == [10, 0]
    with pytest.warns(UserWarning, match="index 1 is 0"):
        random_split(Squares(3), [0.9, 0.1])


def test_random_split_follows_the_generator() -> None:
    def split(seed: int) -> list[Any]:
        return [list(p.indices) for p in random_split(Squares(50), [25, 25], generator=tt.Generator().manual_seed(seed))]

    assert split(1) == split(1)
    assert split(1) != split(2)


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        ([5, 6], r"lengths \[5, 6\] sum to 11, the dataset holds 10"),
        ([0.5, 0.6], "sum to 1.1, not to 1"),
        ([-1, 11], "hold a negative one"),
    ],
)
def test_random_split_refuses(lengths: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        random_split(Squares(10), lengths)
