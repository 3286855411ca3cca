"""Checkpoints of several ranks, read by another number of them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import tritensor as tt
import tritensor.distributed.checkpoint as dcp
from tests.distributed.ranks import succeed
from tritensor.distributed.checkpoint.boxes import Box
from tritensor.distributed.checkpoint.saving import planned


@pytest.mark.parametrize(("saved", "read"), [(4, (2, 4)), (2, (3, 1))])
def test_another_number_of_ranks(saved: int, read: tuple[int, ...], tmp_path: Path) -> None:
    succeed("checkpoints.py", saved, "save", str(tmp_path))
    for ranks in read:
        succeed("checkpoints.py", ranks, "load", str(tmp_path), *(["alone"] if ranks == 1 else []))


def test_one_process_without_a_group(tmp_path: Path) -> None:
    model = tt.nn.Linear(3, 2)
    dcp.save({"model": model, "epoch": 4}, checkpoint_id=tmp_path)
    other, state = tt.nn.Linear(3, 2), {"epoch": 0}
    dcp.load({"model": other}, checkpoint_id=tmp_path)
    dcp.load(state, checkpoint_id=tmp_path)
    assert tt.equal(model.weight, other.weight)
    assert state == {"epoch": 4}


def test_a_checkpoint_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    """A new one takes the old one's place by its last file; a folder without it, or with a file too few, is torn."""
    dcp.save({"x": tt.ones(3)}, checkpoint_id=tmp_path)
    (old,) = tmp_path.glob("part-*")
    dcp.save({"x": tt.zeros(3)}, checkpoint_id=tmp_path)
    (new,) = tmp_path.glob("part-*")
    assert old.name != new.name
    copy = tmp_path.with_name("copy")
    shutil.copytree(tmp_path, copy)
    (copy / new.name).unlink()
    with pytest.raises(ValueError, match=r"is missing, and metadata.json names it; the checkpoint is torn"):
        dcp.load({"x": tt.ones(3)}, checkpoint_id=copy)
    (copy / "metadata.json").unlink()
    with pytest.raises(ValueError, match="no checkpoint was written there to its end"):
        dcp.load({"x": tt.ones(3)}, checkpoint_id=copy)
    with pytest.raises(ValueError, match="overwrite=False"):
        dcp.save({"x": tt.ones(3)}, storage_writer=dcp.FileSystemWriter(tmp_path, overwrite=False))
    (copy / "metadata.json").write_text("{}")
    with pytest.raises(ValueError, match="is no metadata of a distributed checkpoint"):
        dcp.load({"x": tt.ones(3)}, checkpoint_id=copy)


def test_boxes() -> None:
    a = Box((2, 0), (3, 4))
    assert a.common(Box((4, 1), (5, 2))) == Box((4, 1), (1, 2))
    assert a.common(Box((5, 0), (1, 4))) is None
    assert Box((4, 1), (1, 2)).within(a) == (slice(2, 3), slice(1, 3))
    with pytest.raises(ValueError, match="overlap"):
        planned([{"w": ("float32", (4,), Box((0,), (3,)), 12)}, {"w": ("float32", (4,), Box((2,), (2,)), 8)}], "t")
    with pytest.raises(ValueError, match="hold 3 of the 4 elements"):
        planned([{"w": ("float32", (4,), Box((0,), (3,)), 12)}], "t")
