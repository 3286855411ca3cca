"""default_collate and default_convert: structures kept, numbers of mixed kinds, strings, what is refused."""

from __future__ import annotations

import collections
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tritensor.data.collate import pin_tensors
from tritensor.ground.errors import ShapeError
from tritensor.utils.data import DataLoader, default_collate, default_convert

Point = collections.namedtuple("Point", "x y")

COLLATED = [
    ([1, 2], tt.int64, [1, 2]),
    ([1.5, 2.0], tt.float64, [1.5, 2.0]),
    ([True, False], tt.bool, [True, False]),
    ([np.float32(1), np.float32(2)], tt.float32, [1, 2]),
    ([np.arange(2), np.arange(2)], tt.int64, [[0, 1], [0, 1]]),
    ([1, 2.5], tt.float32, [1, 2.5]),
    ([2.5, 1], tt.float64, [2.5, 1]),
    ([True, 2], tt.int64, [1, 2]),
    ([1, True], tt.int64, [1, 1]),
    ((1, 2), tt.int64, [1, 2]),
    ([np.int32(1), np.float64(2.5)], tt.float64, [1, 2.5]),
    ([np.float32(1), 2], tt.float32, [1, 2]),
    ([np.bool_(1), np.bool_(0)], tt.bool, [True, False]),
    ([np.array(1.5), np.array(2.5)], tt.float64, [1.5, 2.5]),
    ([np.array([1]), np.array([1.5], np.float32)], tt.float32, [[1], [1.5]]),
    ([tt.tensor(1), tt.tensor(2.5)], tt.float32, [1, 2.5]),
]


@pytest.mark.parametrize(("batch", "dtype", "values"), COLLATED)
def test_collate_makes_tensors(batch: list[Any], dtype: Any, values: list[Any]) -> None:
    found = default_collate(batch)
    assert (found.dtype, found.tolist()) == (dtype, values)


def test_collate_keeps_structure() -> None:
    found = default_collate([{"a": 1, "b": (tt.zeros(2), "x")}, {"a": 2, "b": (tt.ones(2), "y")}])
    assert found["a"].tolist() == [1, 2]
    assert found["b"][0].tolist() == [[0, 0], [1, 1]]
    assert found["b"][1] == ("x", "y")
    point = default_collate([Point(1, [2.0]), Point(3, [4.0])])
    assert isinstance(point, Point)
    assert (point.x.tolist(), point.y[0].tolist()) == ([1, 3], [2.0, 4.0])


@pytest.mark.parametrize(
    ("batch", "collated"),
    [
        (["a", "b"], ["a", "b"]),
        ([b"a", b"b"], [b"a", b"b"]),
        ([np.str_("a"), np.str_("b")], ["a", "b"]),
        ([("a",), ("b",)], [("a", "b")]),
        ([["a"], ["b"]], [("a", "b")]),
        ([{"k": "a"}, {"k": "b", "more": "c"}], {"k": ["a", "b"]}),
        ([Point("a", "b"), Point("c", "d")], Point(("a", "c"), ("b", "d"))),
        ([(), ()], []),
    ],
)
def test_collate_leaves_strings(batch: list[Any], collated: Any) -> None:
    found = default_collate(batch)
    assert found == collated
    assert type(found) is type(collated)


class Table(dict[Any, Any]):
    pass


class Row(list[Any]):
    pass


@pytest.mark.parametrize(
    "make",
    [
        lambda v: collections.defaultdict(list, a=v),
        lambda v: collections.OrderedDict(a=v),
        lambda v: collections.Counter(a=v),
        lambda v: Table(a=v),
    ],
)
def test_mappings_keep_their_type(make: Any) -> None:
    samples = [make(1), make(2)]
    found = default_collate(samples)
    assert type(found) is type(samples[0])
    assert found["a"].tolist() == [1, 2]
    assert samples[0]["a"] == 1
    if isinstance(found, collections.defaultdict):
        assert found["none"] == []


def test_sequences_keep_their_type() -> None:
    for make in (Row, collections.deque):
        found = default_collate([make([1, 2]), make([3, 4])])
        assert type(found) is make
        assert [x.tolist() for x in found] == [[1, 3], [2, 4]]
    for batch in ([range(2)], [tt.Size((0, 1))], [bytearray(b"\0\1")], [memoryview(b"\0\1")]):
        found = default_collate(batch * 2)
        assert type(found) is list
        assert [x.tolist() for x in found] == [[0, 0], [1, 1]]


def test_single_samples_are_converted() -> None:
    sample = (np.ones(1), np.float32(3), "a", 2, {"x": np.zeros(1, np.int32)}, np.array(["s"]))
    (found,) = DataLoader([sample], batch_size=None)
    assert type(found) is list
    assert [getattr(x, "dtype", None) for x in found[:2]] == [tt.float64, tt.float32]
    assert found[2:4] == ["a", 2]
    assert found[4]["x"].tolist() == [0]
    assert found[5] is sample[5]
    assert default_convert(Point(np.ones(1), 1)).x.tolist() == [1]


def test_pinning_keeps_types() -> None:
    batch = collections.defaultdict(list, a=[tt.ones(1)], b=(tt.ones(1), "x"))
    found = pin_tensors(batch)
    assert type(found) is collections.defaultdict
    assert found["none"] == []
    assert type(found["b"]) is tuple


@pytest.mark.parametrize(
    ("batch", "error", "message"),
    [
        ([tt.zeros(2), tt.zeros(3)], ShapeError, r"sample 0 is \(2,\) of float32, sample 1 is \(3,\) of float32"),
        ([np.zeros((2, 2)), np.zeros(2)], ShapeError, r"sample 0 is \(2, 2\) of float64, sample 1 is \(2,\) of float64"),
        ([(1, 2), (3,)], ShapeError, "sample 0 has 2 members, sample 1 has 1"),
        ([{"a": 1}, {"b": 1}], ShapeError, r"sample 0 has keys \['a'\], sample 1 has \['b'\]"),
        ([object(), object()], TypeError, "no tensor can hold a object"),
        ([np.array("a"), np.array("b")], TypeError, "cannot become a tensor"),
        ([None, None], TypeError, "no tensor can hold a NoneType"),
        ([1, None], TypeError, "does not hold numbers"),
        ([1.0, None], TypeError, "does not hold numbers"),
        ([np.float32(1), None], TypeError, "sample 1 another kind, a NoneType"),
        ([1j], TypeError, "no tensor can hold a complex"),
        ([{1}], TypeError, "no tensor can hold a set"),
        ([tt.ones(2), 1], TypeError, "sample 0 is a Tensor, sample 1 a int"),
        ([tt.ones(2), np.ones(2)], TypeError, "sample 0 is a Tensor, sample 1 a ndarray"),
    ],
)
def test_collate_refuses(batch: list[Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        default_collate(batch)


def test_no_samples_are_told() -> None:
    with pytest.raises(IndexError, match=r"default_collate: a batch of no samples has no type and no shape; .*batch_sampler"):
        list(DataLoader(range(3), batch_sampler=[[], [1]]))
