"""Values beside tensors in a checkpoint of several ranks: those of classes of their own, and containers that hold themselves."""

from __future__ import annotations

import enum
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tritensor as tt
import tritensor.distributed.checkpoint as dcp
from tritensor.distributed.checkpoint import FileSystemReader, FileSystemWriter
from tritensor.ground.errors import CheckpointError


class Version(str):
    """Text of a class of its own."""


class Count(int):
    """A number of a class of its own."""


class Rate(float):
    """Another one."""


class Phase(enum.IntEnum):
    """Numbers with names."""

    WARM = 3


class Word(enum.StrEnum):
    """Text with names."""

    YES = "yes"


def within(kind: str) -> Any:
    """A container that holds itself."""
    if kind == "list":
        found: Any = [1]
        found.append(found)
    elif kind == "list of a tensor":
        found = [tt.ones(2)]
        found.append(found)
    elif kind == "dict":
        found = {"x": 1}
        found["itself"] = found
    elif kind == "dict in a list":
        found = [{}]
        found[0]["up"] = found
    else:
        found = ([],)
        found[0].append(found)
    return found


@pytest.mark.parametrize("kind", ["list", "list of a tensor", "dict", "dict in a list", "tuple"])
@pytest.mark.parametrize("save", [dcp.save, lambda *a, **k: dcp.async_save(*a, **k).result()], ids=["save", "async_save"])
def test_what_holds_itself_is_named(kind: str, save: Callable[..., Any], tmp_path: Path) -> None:
    """The fault: a RecursionError without a word of ours."""
    with pytest.raises(CheckpointError, match=r"^checkpoint: a\.\S+ is a \w+ that holds itself; .*leave it out, or save\(\)"):
        save({"a": within(kind), "w": tt.ones(2)}, checkpoint_id=str(tmp_path / "c"))
    twice = [1, 2]
    save({"a": twice, "b": [twice, twice], "w": tt.ones(2)}, checkpoint_id=str(tmp_path / "d"))


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Version("2.1"), "2.1"), (Count(3), 3), (Rate(0.5), 0.5), (Phase.WARM, 3), (Word.YES, "yes"), ([Version("a"), [Phase.WARM]], ["a", [3]]),
        ((Version("a"), 1), ("a", 1)), (True, True),
    ],
)  # fmt: skip
def test_text_and_numbers_of_a_class_of_their_own(value: Any, plain: Any, tmp_path: Path) -> None:
    """The fault: refused. They come back as what they are equal to; pickled, where that was allowed, as they were."""
    dcp.save({"a": value, "w": tt.ones(2)}, checkpoint_id=str(tmp_path / "plain"))
    into = {"a": None, "w": tt.zeros(2)}
    dcp.load(into, checkpoint_id=str(tmp_path / "plain"))
    assert (into["a"], type(into["a"])) == (plain, type(plain))
    assert into["w"].tolist() == [1.0, 1.0]
    dcp.save({"a": value}, storage_writer=FileSystemWriter(tmp_path / "pickled", allow_pickle=True))
    into = {"a": None}
    dcp.load(into, storage_reader=FileSystemReader(tmp_path / "pickled", allow_pickle=True))
    assert (into["a"], type(into["a"])) == (value, type(value))
