"""Values beside tensors that PyTorch saves and reads back, saved and read back here: classes of their own, containers that hold themselves."""

from __future__ import annotations

import collections
import dataclasses
import enum
import io
import warnings
from typing import Any

import numpy as np
import pytest

import tritensor as tt

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.peer


class Text(str):
    """A str."""


class Whole(int):
    """An int."""


class Real(float):
    """A float."""


class Row(list):
    """A list."""


class Pair(tuple):
    """A tuple."""


class Names(dict):
    """A dict."""


class Level(enum.IntEnum):
    """Numbers with names."""

    LOW = 1


class Colour(enum.Enum):
    """Names."""

    RED = "red"


Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass
class Options:
    """A dataclass."""

    rate: float


def itself(kind: str) -> Any:
    made: Any = [1] if kind in ("list", "tuple") else collections.OrderedDict() if kind == "OrderedDict" else {}
    if kind == "tuple":
        found = (made,)
        made.append(found)
        return found
    made.append(made) if kind == "list" else made.update(me=made)
    return made


VALUES: dict[str, Any] = {
    "str": Text("ab"), "int": Whole(3), "float": Real(2.5), "IntEnum": Level.LOW, "Enum": Colour.RED, "list": Row([1]), "tuple": Pair((1, 2)),
    "dict": Names(a=1), "named tuple": Point(1, 2), "dataclass": Options(0.1), "OrderedDict": collections.OrderedDict(a=1),
    "defaultdict": collections.defaultdict(list, a=[1]), "Counter": collections.Counter("aab"), "set": {1, 2}, "frozenset": frozenset({1}),
    "numpy int": np.int64(3), "numpy float": np.float32(1.5), "numpy bool": np.bool_(True), "numpy text": np.str_("a"), "key": {Text("k"): 1},
    "inside": [Text("k"), (Level.LOW,)], "large": 1 << 200, "bytes": b"ab", "bytearray": bytearray(b"ab"), "complex": 1 + 2j, "range": range(3),
    "deque": collections.deque([1]),
}  # fmt: skip


def there_and_back(T: Any, value: Any, weights_only: bool) -> Any:
    """What comes back, or the error's class."""
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        T.save(value, file)
        file.seek(0)
        try:
            return T.load(file, weights_only=weights_only)
        except Exception as error:
            return type(error)


@pytest.mark.parametrize("name", VALUES)
def test_values(name: str) -> None:
    value = VALUES[name]
    for weights_only in (False, True):
        theirs, ours = there_and_back(torch, value, weights_only), there_and_back(tt, value, weights_only)
        if isinstance(theirs, type) and issubclass(theirs, Exception):  # what PyTorch calls unsafe may be a value here, never another one
            assert isinstance(ours, type) or (type(ours) is type(value) and ours == value)
        else:
            assert (type(ours), ours) == (type(theirs), theirs)


@pytest.mark.parametrize("kind", ["list", "tuple", "dict", "OrderedDict"])
def test_what_holds_itself(kind: str) -> None:
    for T in (torch, tt):
        found = there_and_back(T, itself(kind), False)
        inside = found[-1] if kind == "list" else found[0][-1] if kind == "tuple" else found["me"]
        assert inside is found


@pytest.mark.parametrize("made", [lambda T: T.Size([1, 2]), lambda T: T.device("cpu"), lambda T: T.float32, lambda T: T.strided])
def test_pytorchs_own_values(made: Any) -> None:
    """Each reads the other's file."""
    for writes, reads in ((torch, tt), (tt, torch)):
        file = io.BytesIO()
        writes.save(made(writes), file)
        file.seek(0)
        assert reads.load(file, weights_only=True) == made(reads)
