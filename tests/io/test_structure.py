"""Nests in checkpoints: every container's type, order, sharing and cycles come back; what a checkpoint cannot hold is refused by name."""

from __future__ import annotations

import io
import json
import math
import sys
from collections import Counter, OrderedDict, UserDict, defaultdict, namedtuple
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tritensor as tt
from tritensor.ground.errors import CheckpointError
from tritensor.io import save_file
from tritensor.io.structure import Packer


class Point(NamedTuple):
    x: Any
    y: Any = 0

    def norm(self) -> float:
        return math.hypot(self.x, self.y)


class Shade(IntEnum):
    DARK = 1


class Own(dict[Any, Any]):
    pass


def through(nest: Any) -> Any:
    """The nest saved and loaded."""
    buffer = io.BytesIO()
    tt.save(nest, buffer, format="safetensors")
    buffer.seek(0)
    return tt.load(buffer)


def exactly(a: Any, b: Any) -> None:
    """The same types, order and values throughout."""
    assert type(a) is type(b), (a, b)
    if isinstance(a, dict):
        exactly(list(a), list(b))
        exactly(list(a.values()), list(b.values()))
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            exactly(x, y)
    elif isinstance(a, tt.Tensor):
        assert a.dtype is b.dtype
        assert a.shape == b.shape
        assert a.tolist() == b.tolist()
    elif isinstance(a, float | complex | np.inexact):
        assert repr(a) == repr(b)  # tells nan and -0.0
    else:
        assert a == b


@pytest.mark.parametrize(
    "nest",
    [
        {"z": tt.ones(1), "a": tt.zeros(2, dtype=tt.int8), "m": tt.ones(1, dtype=tt.float64)},
        OrderedDict(z=tt.ones(1), a=tt.zeros(2, dtype=tt.int8)),
        OrderedDict(),
        Counter({4: 2, 1: 1}),
        Counter(a=tt.ones(2)),
        defaultdict(list, {"a": [1]}),
        defaultdict(None, {1: tt.ones(1)}),
        defaultdict(dict, {0: {"step": 3}}),
        (1, (2, ()), [3, (4,)]),
        Point(tt.ones(2), (1, 2)),
        [Point(1), {"p": Point(3, 4)}],
        {3: "a", "3": "b", None: 1, True: 2, 1.5: 3, (1, ("a", None)): 4, Point(1, 2): 5, frozenset({1}): 6},
        {1, 2, (3, 4)},
        frozenset({1, frozenset({2})}),
        tt.ones(2, 3).shape,
        {"dtype": tt.bfloat16, "device": tt.device("cuda:1"), "size": tt.Size((2, 0))},
        [2**64, -(2**200), 1 << 100_000, 2**63, -(2**63)],
        [1e400, -1e400, math.nan, -0.0, 5e-324, 0.1, 1 + 2j, complex(math.inf, -0.0)],
        [np.float32(0.1), np.int64(3), np.bool_(True), np.complex64(1 - 2j), np.str_("a"), np.uint8(200), np.float16(2)],
        ["\ud800 half", "\0", "\u2713", b"\x00\xff", ""],
        {"\ud800": tt.ones(1), "a/b": tt.zeros(1)},
        {"__metadata__": tt.ones(1)},
        {"at": 1, "tensor": "x", "list": ["dict", ["a", 1]]},
    ],
    ids=lambda nest: type(nest).__name__,
)  # fmt: skip
def test_types_and_order_come_back(nest: Any) -> None:
    exactly(nest, through(nest))


def test_a_default_dict_goes_on_making_defaults() -> None:
    found = through(defaultdict(list))
    found["new"].append(1)
    assert found == {"new": [1]}
    assert through(Counter([3]))[99] == 0


def test_a_named_tuple_is_the_programs_own_where_it_has_one() -> None:
    assert through(Point(3, 4)).norm() == 5.0
    gone = namedtuple("Gone", "a b")  # a class that the reader cannot find
    found = through(gone(1, tt.ones(2)))
    assert type(found).__name__ == "Gone"
    assert (found._fields, found.a, found.b.tolist()) == (("a", "b"), 1, [1, 1])


def test_a_file_makes_no_module_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    class Trap:
        def __getattr__(self, name: str) -> Any:
            asked.append(name)
            raise AttributeError(name)

    monkeypatch.setitem(sys.modules, "trap", Trap())  # type: ignore[arg-type]
    save_file({}, tmp_path / "x", {"tritensor": json.dumps([{"at": 0}, ["namedtuple", "trap", "T.U", ["a"], 1]])})
    assert tt.load(tmp_path / "x") == (1,)
    assert not [name for name in asked if not name.startswith("__")]
    save_file({}, tmp_path / "x", {"tritensor": json.dumps([{"at": 0}, ["namedtuple", "this", "T", ["a"], 1]])})
    tt.load(tmp_path / "x")
    assert "this" not in sys.modules


def test_what_stands_twice_is_one_object_again() -> None:
    t, inner = tt.ones(2), [1]
    found = through({"a": t, "b": [t, inner], "c": (inner, (inner,))})
    assert found["a"] is found["b"][0]
    assert found["b"][1] is found["c"][0] is found["c"][1][0]


def test_cycles() -> None:
    ring: list[Any] = [1]
    ring.append(ring)
    found = through(ring)
    assert found[1] is found
    table: dict[str, Any] = {}
    table["pair"] = (table, [table])
    found = through(table)
    assert found["pair"][0] is found["pair"][1][0] is found


@pytest.mark.parametrize("kind", [list, tuple, dict])
def test_any_depth(kind: Any) -> None:
    nest: Any = 7
    for _ in range(20_000):
        nest = {"a": nest} if kind is dict else kind([nest])
    found = through(nest)
    for _ in range(20_000):
        assert type(found) is kind
        (found,) = found.values() if kind is dict else found
    assert found == 7


def test_a_lattice_of_shared_parts_does_not_explode() -> None:
    nest: Any = []
    for _ in range(200):
        nest = [nest, nest]
    found = through(nest)
    assert found[0] is found[1]


@pytest.mark.parametrize(
    ("nest", "message"),
    [
        ({"a": Own(b=1)}, "a is a Own"),
        ({"a": UserDict()}, "a is a UserDict"),
        ([Shade.DARK], "0 is a Shade"),
        ({"a": defaultdict(lambda: 1)}, "a is a defaultdict of <function .*no code, only the factories"),
        ({Shade.DARK: 1}, "key <Shade.DARK: 1> is a Shade"),
        ({"a": {tt.ones(1): 1}}, "a has a tensor as a key"),
        (slice(3), "the object is a slice"),
    ],
)
def test_refused_by_place(nest: Any, message: str) -> None:
    with pytest.raises(TypeError, match=f"^save: {message}"):
        Packer().pack(nest)


DAMAGED = [
    "3", "null", '"a"', '{"a": 1}', "[]", "[[]]", "[[1]]", '[{"at": 0}]', '[{"at": 0}, 3]', '[{"at": 0}, []]', '[{"at": 0}, {"a": 1}]',
    '[{"at": 0}, ["code"]]', '[{"at": 0}, [["list"]]]', '[{"at": 0}, ["dict", "ab"]]', '[{"at": 0}, ["dict", ["a"]]]',
    '[{"at": 0}, ["dict", ["a", 1], ["a", 2]]]', '[{"at": 0}, ["dict", [{"at": 0}, 1]]]', '[{"at": 0}, ["set", {"at": 0}]]',
    '[{"at": 0}, ["tuple", {"at": 0}]]', '[{"at": 0}, ["tuple", {"at": 1}], ["tuple", {"at": 0}]]', '[{"at": 0}, ["tuple", {"at": 9}]]',
    '[{"at": 0}, ["tuple", {"at": -1}]]', '[{"at": 0}, ["tuple", {"at": "0"}]]', '[{"at": 0}, ["list", {"at": [0]}]]',
    '[{"at": 0}, ["defaultdict"]]', '[{"at": 0}, ["defaultdict", "eval"]]', '[{"at": 0}, ["defaultdict", ["list"]]]',
    '[{"at": 0}, ["namedtuple"]]', '[{"at": 0}, ["namedtuple", "os", "T", ["a b"], 1]]', '[{"at": 0}, ["namedtuple", "os", "T", ["a"]]]',
    '[{"at": 0}, ["namedtuple", "os", "T", "a", 1]]', '[{"at": 0}, ["namedtuple", 3, "T", ["a"], 1]]',
    '[{"at": 0}, ["namedtuple", "os", "T()", ["a"], 1]]', '[{"at": 0}, ["list", ["list"]]]', '[{"tensor": "gone"}]', '[{"tensor": ["x"]}]',
    '[{"float": "1"}]', '[{"float": 1}]', '[{"int": 5}]', '[{"int": "q"}]', '[{"complex": "12"}]', '[{"bytes": "?"}]', '[{"numpy": "ab"}]',
    '[{"numpy": ["float32", "00"]}]', '[{"numpy": ["object", "00"]}]', '[{"dtype": "object"}]', '[{"device": 3}]', '[{"device": "tpu"}]',
    "[{}]", '[{"at": 0, "tensor": "x"}]', "[NaN]", "[Infinity]", "[" * 100_000, '[{"a":' * 50_000, f"[{'9' * 10_000}]",
]  # fmt: skip


@pytest.mark.parametrize("text", DAMAGED, ids=lambda text: text[:60])
def test_damaged_descriptions_are_refused(text: str, tmp_path: Path) -> None:
    save_file({"x": tt.ones(2)}, tmp_path / "weights", {"tritensor": text})
    with pytest.raises(CheckpointError, match=r"weights: .*does not describe these tensors"):
        tt.load(tmp_path / "weights")


def test_a_key_that_would_overrun_the_stack_is_refused(tmp_path: Path) -> None:
    n = 3_000
    chain = [["tuple", {"at": i + 2}] for i in range(n)]
    save_file({}, tmp_path / "x", {"tritensor": json.dumps([{"at": 0}, ["dict", [{"at": 1}, 1]], *chain, ["tuple"]])})
    with pytest.raises(CheckpointError, match="a key is nested more than"):
        tt.load(tmp_path / "x")


leaves = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.binary(max_size=4) | st.complex_numbers()
    | st.builds(tt.tensor, st.lists(st.integers(-5, 5), max_size=3))
)  # fmt: skip
keys = st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.tuples(st.integers(), st.text(max_size=2))
nests = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(keys, inner, max_size=4)
        | st.dictionaries(keys, inner, max_size=4).map(OrderedDict)
        | st.dictionaries(keys, inner, max_size=4).map(lambda d: defaultdict(list, d))
        | st.dictionaries(keys, inner, max_size=4).map(Counter)
        | st.builds(Point, inner, inner)
    ),
    max_leaves=12,
)


@settings(deadline=None)
@given(nests)
def test_any_nest_comes_back(nest: Any) -> None:
    exactly(nest, through(nest))
