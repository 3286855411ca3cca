"""Datasets: samples by index (Dataset) or one after another (IterableDataset)."""

from __future__ import annotations

import bisect
import itertools
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from tritensor.data.sampler import permutation
from tritensor.ground.errors import ArgumentError, AssertedArgumentError, AssertedError, StreamError
from tritensor.random import Generator
from tritensor.tensor.core import Tensor
from tritensor.tensor.parsing.data import as_tensor

T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """Samples by index: a subclass gives `__getitem__(index)` and `__len__()`.

    One that reads many samples better than one by one also gives `__getitems__(indices)`, the list of these samples, or
    `__getbatch__(indices)`, the batch that `default_collate([self[i] for i in indices])` would be: DataLoader then asks that.
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError(f"{type(self).__name__} has no __getitem__(index); a Dataset returns one sample by its index")

    def __add__(self, other: Dataset[Any]) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co]):
    """Samples one after another: a subclass gives `__iter__()`. For streams, where no index exists."""

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__} has no __iter__(); an IterableDataset yields its samples")

    def __add__(self, other: Dataset[Any]) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Tensors with one common first size n; sample i is the tuple of their rows i. Raises ShapeError where sizes differ.

    >>> data = tt.data.TensorDataset(tt.arange(6).reshape(3, 2), tt.tensor([0, 1, 0]))
    >>> len(data), data[1]
    (3, (tensor([2, 3]), tensor(1)))
    """

    def __init__(self, *tensors: Tensor) -> None:
        if not tensors:
            raise ValueError("TensorDataset: no tensors given; give at least one, such as TensorDataset(x, y)")
        for t in tensors:
            if not isinstance(t, Tensor):
                raise TypeError(f"TensorDataset: {type(t).__name__} is not a tensor; wrap it: tritensor.tensor(...) or from_numpy(...)")
        if any(t.ndim == 0 for t in tensors) or len({t.shape[0] for t in tensors}) != 1:
            shapes = ", ".join(str(tuple(t.shape)) for t in tensors)
            raise AssertedError(f"TensorDataset: {shapes}: first sizes must be there and equal, they count the samples")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(t[index] for t in self.tensors)

    def __getbatch__(self, indices: Sequence[int]) -> list[Tensor]:
        """A batch, by one gather per tensor."""
        where = as_tensor(list(indices))
        return [t[where.to(t.device)] for t in self.tensors]

    def __len__(self) -> int:
        return int(self.tensors[0].shape[0])


class ConcatDataset(Dataset[Any]):
    """Datasets end to end; `cumulative_sizes` says where each ends. Raises ValueError for none, TypeError for an IterableDataset, IndexError beyond the end."""

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertedArgumentError("ConcatDataset: no datasets given; give at least one")
        for d in self.datasets:
            if isinstance(d, IterableDataset):
                raise StreamError(
                    f"ConcatDataset: {type(d).__name__} is an IterableDataset and has no length; chain streams with ChainDataset"
                )
        self.cumulative_sizes = list(itertools.accumulate(len(d) for d in self.datasets))  # type: ignore[arg-type]

    def __getitem__(self, index: int) -> Any:
        n = len(self)
        if not -n <= index < n:
            raise IndexError(f"ConcatDataset: index {index} is out of range for {n} samples")
        index %= n  # negative ones count from the end
        which = bisect.bisect_right(self.cumulative_sizes, index)
        return self.datasets[which][index - (self.cumulative_sizes[which - 1] if which else 0)]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    @property
    def cummulative_sizes(self) -> list[int]:
        """PyTorch's older spelling of cumulative_sizes."""
        warnings.warn("cummulative_sizes is an older spelling; use cumulative_sizes", DeprecationWarning, stacklevel=2)
        return self.cumulative_sizes


class StackDataset(Dataset[Any]):
    """Datasets of one length side by side: sample i is the tuple of their samples i, or of datasets given by name a dict.

    Raises ValueError where lengths differ, where none is given, or some by name and some not.
    """

    def __init__(self, *args: Dataset[Any], **kwargs: Dataset[Any]) -> None:
        if bool(args) == bool(kwargs):
            given = "both" if args else "neither"
            raise ArgumentError(f"StackDataset: {given} given by place and by name; give StackDataset(a, b), or StackDataset(x=a, y=b)")
        self.datasets: Any = args if args else kwargs
        named = dict(enumerate(args)) if args else kwargs
        lengths = {name: len(d) for name, d in named.items()}  # type: ignore[arg-type]
        if len(set(lengths.values())) > 1:
            raise ArgumentError(f"StackDataset: lengths {lengths} differ; datasets side by side have one length, cut them with Subset")
        self._length = next(iter(lengths.values()))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: d[index] for name, d in self.datasets.items()}
        return tuple(d[index] for d in self.datasets)

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """The samples at several indices, each dataset asked once where it reads many."""
        named = self.datasets if isinstance(self.datasets, dict) else dict(enumerate(self.datasets))
        columns = {name: read_samples(d, indices) for name, d in named.items()}
        for name, column in columns.items():
            if len(column) != len(indices):
                raise ArgumentError(
                    f"StackDataset: dataset {name} gave {len(column)} samples for {len(indices)} indices; __getitems__ gives one for each"
                )
        rows = zip(*columns.values(), strict=True)
        return [dict(zip(columns, row, strict=True)) for row in rows] if isinstance(self.datasets, dict) else list(rows)

    def __len__(self) -> int:
        return self._length


class ChainDataset(IterableDataset[Any]):
    """Streams one after another. Raises TypeError, when it is read, for a dataset that is none."""

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[Any]:
        for d in self._streams():
            yield from d

    def __len__(self) -> int:
        return sum(map(len, self._streams()))  # type: ignore[arg-type]

    def _streams(self) -> Iterator[IterableDataset[Any]]:
        for d in self.datasets:
            if not isinstance(d, IterableDataset):
                raise StreamError(f"ChainDataset: {type(d).__name__} is no IterableDataset; join datasets with indices by ConcatDataset")
            yield d


class Subset(Dataset[T_co]):
    """The samples of a dataset at the given indices."""

    def __init__(self, dataset: Dataset[T_co], indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> T_co:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: Sequence[int]) -> list[T_co]:
        """The samples at several indices."""
        return read_samples(self.dataset, [self.indices[i] for i in indices])  # type: ignore[no-any-return]

    def __getbatch__(self, indices: Sequence[int]) -> Any:
        """A batch, for a dataset that makes whole ones: `find_batch_reader` has looked."""
        whole = find_batch_reader(self.dataset)
        assert whole is not None
        return whole([self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)


def read_samples(dataset: Any, indices: Sequence[Any]) -> Any:
    """A list of samples, by `__getitems__` where the dataset has it."""
    many = getattr(dataset, "__getitems__", None)
    return many(indices) if callable(many) else [dataset[i] for i in indices]


def find_batch_reader(dataset: Any) -> Callable[[Sequence[int]], Any] | None:
    """A dataset's method that makes whole batches, or None where only samples can be asked for."""
    # The nearest definition counts: a subclass that changes how one sample is read has changed the batches, too.
    for cls in type(dataset).__mro__:
        if cls is Subset and find_batch_reader(dataset.dataset) is None:
            return None
        if "__getbatch__" in vars(cls):
            return dataset.__getbatch__  # type: ignore[no-any-return]
        if "__getitem__" in vars(cls) or "__getitems__" in vars(cls):
            return None
    return None


def random_split(dataset: Dataset[Any], lengths: Sequence[int | float], generator: Generator | None = None) -> list[Subset[Any]]:
    """Disjoint random subsets of the given lengths (which sum to `len(dataset)`) or fractions (which sum to 1).

    Fractions are rounded down and what is left over goes one by one to the first subsets; a warning tells of one that gets nothing. What sums to 1
    is fractions, as [1] and [1, 0]. Raises ValueError when the lengths do not add up.
    """
    n = len(dataset)  # type: ignore[arg-type]
    if any(s < 0 for s in lengths):
        raise ValueError(f"random_split: lengths {list(lengths)} hold a negative one")
    sizes = [math.floor(s) for s in lengths]
    if any(isinstance(s, float) for s in lengths) or sum(lengths) == 1:
        if not math.isclose(sum(lengths), 1):
            raise ValueError(f"random_split: fractions {list(lengths)} sum to {sum(lengths):g}, not to 1; give fractions that do")
        sizes = [math.floor(n * s) for s in lengths]
        for i in range(n - sum(sizes)):
            sizes[i % len(sizes)] += 1
        for i, size in enumerate(sizes):
            if not size:
                warnings.warn(f"random_split: Length of split at index {i} is 0; the part is an empty dataset", stacklevel=2)
    if sum(sizes) != n:
        raise ValueError(f"random_split: lengths {sizes} sum to {sum(sizes)}, the dataset holds {n}; give lengths that sum to that")
    order = permutation(n, generator)
    ends = itertools.accumulate(sizes)
    return [Subset(dataset, order[end - size : end]) for size, end in zip(sizes, ends, strict=True)]
