"""The same samples collated by torch: structure, types and values of batches; what datasets and loaders hand out and refuse."""

from __future__ import annotations

import collections
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tritensor as tt

pytestmark = pytest.mark.peer

Pair = collections.namedtuple("Pair", "a b")


class Rows(list[Any]):
    pass


def described(x: Any) -> Any:
    """A batch as plain data: its types by name, its values as lists."""
    if isinstance(x, torch.Tensor | tt.Tensor):
        return "tensor", str(x.dtype).rsplit(".", 1)[-1], tuple(x.shape), x.tolist()
    if isinstance(x, dict):
        return type(x).__name__, [(k, described(v)) for k, v in x.items()]
    if isinstance(x, list | tuple | collections.deque):
        return type(x).__name__, [described(v) for v in x]
    return type(x).__name__, x


def outcome(run: Any) -> Any:
    try:
        return described(run())
    except (TypeError, ValueError, RuntimeError, KeyError, AssertionError):
        return "refused"


BATCHES = [
    "[('a', 1), ('b', 2)]", "[['a', 1], ['b', 2]]", "[1, 2.5]", "[True, 2]", "[2.5, 1]", "[1, True]", "[True, False]",
    "[collections.defaultdict(list, a=1), collections.defaultdict(list, a=2)]", "[np.str_('a'), np.str_('b')]",
    "[np.float32(1), np.float64(2)]", "[np.int32(1), np.float64(2.5)]", "[np.bool_(1), np.bool_(0)]", "[b'a', b'b']", "[None, None]",
    "[1, None]", "[Pair(1, 'a'), Pair(2, 'b')]", "[Rows([1, 2]), Rows([3, 4])]", "[dict(a=1), dict(a=2, b=3)]",
    "[dict(a=1, b=2), dict(a=2)]", "[collections.OrderedDict(a=1), collections.OrderedDict(a=2)]", "[range(2), range(2)]", "[(1,), (2, 3)]",
    "[1j, 2j]", "[[], []]", "[(), ()]", "[np.array(['a']), np.array(['b'])]", "[np.array(1.5), np.array(2.5)]",
    "[np.array([1, 2]), np.array([1.5, 2])]", "[np.array([1]), np.array([1.5], np.float32)]", "[T.tensor(1), T.tensor(2.5)]",
    "[T.ones(2), T.ones(3)]", "[T.ones(2), 1]", "[T.ones(2), np.ones(2)]", "[np.float32(1), 2]", "[1, np.float32(2.5)]", "['a', 1]",
    "[dict(x=T.ones(1)), dict(x=T.zeros(1))]", "[T.zeros(1, 2).shape, T.zeros(3, 4).shape]", "[{1, 2}, {1, 2}]", "(1, 2)", "[np.float16(1)]",
    "[np.uint16(1), np.uint16(3)]", "[np.complex64(1)]", "[collections.deque([1, 2]), collections.deque([3, 4])]",
    "[(dict(a=(1, 'x')), [T.ones(2)]), (dict(a=(2, 'y')), [T.zeros(2)])]",
]  # fmt: skip


@pytest.mark.parametrize("expression", BATCHES)
def test_collated_as_torch(expression: str) -> None:
    ours, theirs = (
        outcome(lambda library=library: library.utils.data.default_collate(eval(expression, {**globals(), "T": library})))
        for library in (tt, torch)
    )
    assert ours == theirs


samples = st.recursive(
    st.integers(-9, 9) | st.floats(-9, 9, width=32) | st.booleans() | st.text(max_size=2) | st.just(np.float32(2)) | st.just(np.ones(2)),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
        | st.builds(Pair, inner, inner)
    ),
    max_leaves=6,
)


@settings(deadline=None)
@given(samples, st.integers(1, 3))
def test_any_structure_is_collated_as_torch(sample: Any, n: int) -> None:
    ours, theirs = (outcome(lambda library=library: library.utils.data.default_collate([sample] * n)) for library in (tt, torch))
    assert ours == theirs


@settings(deadline=None)
@given(samples)
def test_any_structure_is_converted_as_torch(sample: Any) -> None:
    ours, theirs = (outcome(lambda library=library: library.utils.data.default_convert(sample)) for library in (tt, torch))
    assert ours == theirs


LOADERS = [
    "D.DataLoader(T.arange(5), batch_size=2)", "D.DataLoader(D.TensorDataset(T.arange(5), T.arange(5.)), batch_size=2, drop_last=True)",
    "D.DataLoader(D.Subset(range(9), [8, 1, 1]), batch_size=2)", "D.DataLoader(D.Subset(D.TensorDataset(T.arange(5)), [4, 1]), batch_size=2)",
    "D.DataLoader([(np.ones(1), 'a')], batch_size=None)", "D.DataLoader({0: 'a', 1: 'b'})", "D.DataLoader([])", "D.DataLoader([1], num_workers=-1)",
    "D.DataLoader([1, 2], sampler=[1])", "D.DataLoader([1, 2], batch_sampler=[[1, 0]])", "D.DataLoader([1, 2], batch_sampler=[[1]], batch_size=2)",
    "D.DataLoader([1, 2], shuffle=True, sampler=[1])", "D.DataLoader([1], timeout=-1)", "D.DataLoader([1], multiprocessing_context='fork')",
    "D.DataLoader([1], prefetch_factor=2)", "D.DataLoader(D.ConcatDataset([[1], [2, 3]]), batch_size=3)", "D.random_split(range(4), [4])[0][3:]",
    "[D.get_worker_info()]", "D.Subset(T.arange(9), [4, 2])[[1, 0]]",
    "[len(p) for p in D.random_split(range(10), [.33, .33, .34])]", "D.random_split(range(4), [1, 2])", "D.random_split(range(4), [.5, .6])",
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("expression", LOADERS)
def test_loaded_as_torch(expression: str) -> None:
    ours, theirs = (
        outcome(lambda library=library: list(eval(expression, {**globals(), "T": library, "D": library.utils.data})))
        for library in (tt, torch)
    )
    assert ours == theirs
