"""Checkpoints of several ranks, read by another number of them."""

from __future__ import annotations

import copy
import shutil
from collections import OrderedDict
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import tritensor as tt
import tritensor.distributed.checkpoint as dcp
from tests.distributed.ranks import succeed
from tritensor.distributed.checkpoint import state_dict as sd
from tritensor.distributed.checkpoint.boxes import Box, Sharded, get_box, part_like
from tritensor.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType, plan_writes
from tritensor.distributed.checkpoint.states import Stateful
from tritensor.io.safetensors import save_file


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


def test_tensors_of_a_gpu(tmp_path: Path) -> None:
    """They are written from there and read to where the state has them, views of other memory among them."""
    state = {"w": tt.arange(6, device="cuda").reshape(2, 3).to(tt.bfloat16), "s": tt.tensor(2.5, device="cuda")}
    dcp.save(state, checkpoint_id=tmp_path / "a")
    future = dcp.async_save(state, checkpoint_id=tmp_path / "b")
    state["w"].zero_()
    future.result()
    for name in ("a", "b"):
        for where in ("cuda", "cpu"):
            rows = tt.zeros(3, 2, dtype=tt.bfloat16, device=where)
            found = {"w": rows.T, "s": tt.zeros((), device=where)}
            dcp.load(found, checkpoint_id=tmp_path / name)
            assert rows.tolist() == [[0, 3], [1, 4], [2, 5]]
            assert (found["s"].item(), found["w"].device.type) == (2.5, where)


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


def test_a_damaged_checkpoint_changes_nothing(tmp_path: Path) -> None:
    """All that is asked for is looked at before the first tensor is written."""
    dcp.save({"a": tt.ones(3), "b": tt.ones(2)}, checkpoint_id=tmp_path)
    (file,) = tmp_path.glob("part-*")
    meta = (tmp_path / "metadata.json").read_text()
    state = {"a": tt.zeros(3), "b": tt.zeros(2)}
    for tensors, said in (
        ({"a": tt.ones(3), "b": tt.ones(3)}, r"b in .* is float32 \(3,\), and float32 \(2,\) in the metadata"),
        ({"a": tt.ones(3), "b": tt.ones(2, dtype=tt.int32)}, r"b in .* is int32 \(2,\), and float32"),
        ({"a": tt.ones(3)}, "does not hold b"),
    ):
        save_file(tensors, file)
        with pytest.raises(ValueError, match=said):
            dcp.load(state, checkpoint_id=tmp_path)
    for was, becomes, said in (
        (file.name, f"../{file.name}", "is outside of it or of the folder"),
        ('"format": 1', '"format": 9', "format 9, and this tritensor reads 1"),
        ('"values"', '"other"', "is no metadata"),
    ):
        (tmp_path / "metadata.json").write_text(meta.replace(was, becomes))
        with pytest.raises(ValueError, match=said):
            dcp.load(state, checkpoint_id=tmp_path)
    assert (state["a"].tolist(), state["b"].tolist()) == ([0] * 3, [0] * 2)


def test_other_values_are_pickled_on_request_alone(tmp_path: Path) -> None:
    dcp.save({"a": np.arange(3)}, storage_writer=dcp.FileSystemWriter(tmp_path / "rows", allow_pickle=True))
    rows = {"a": np.zeros(3)}
    dcp.load(rows, storage_reader=dcp.FileSystemReader(tmp_path / "rows", allow_pickle=True))
    assert rows["a"].tolist() == [0, 1, 2]
    state = {"x": tt.ones(1), "seen": {3, 4}, "t": (1, 2), "f": float("inf"), "none": OrderedDict()}
    with pytest.raises(ValueError, match=r"seen is a set, .* allow_pickle=True"):
        dcp.save(state, checkpoint_id=tmp_path)
    with pytest.raises(ValueError, match="g is a function, which cannot be pickled"):
        dcp.save({"g": lambda: 0}, storage_writer=dcp.FileSystemWriter(tmp_path, allow_pickle=True))
    dcp.save(state, storage_writer=dcp.FileSystemWriter(tmp_path, allow_pickle=True))
    empty = {"x": tt.zeros(1), "seen": None, "t": (), "f": 0.0, "none": OrderedDict()}
    with pytest.raises(ValueError, match=r"seen in .* is pickled, and reading it runs what it says; .* allow_pickle=True"):
        dcp.load(empty, checkpoint_id=tmp_path)
    assert empty["x"].item() == 0
    dcp.load(empty, storage_reader=dcp.FileSystemReader(tmp_path, allow_pickle=True))
    assert empty == state


def test_what_is_asked_for_and_what_is_there(tmp_path: Path) -> None:
    writer = dcp.FileSystemWriter(tmp_path / "never")
    dcp.save({"w": tt.ones(2), "n": 1}, storage_writer=writer, checkpoint_id=tmp_path / "one")  # as in torch, the id takes the path's place
    (tmp_path / "one" / f".{'0' * 12}.{'1' * 12}.tmp").touch()  # a killed process left it
    dcp.save({"w": tt.ones(2), "n": 1}, storage_writer=writer)
    assert sorted(p.suffix for p in (tmp_path / "one").iterdir()) == [".json", ".safetensors"]
    assert not (tmp_path / "never").exists()
    for state, said in (
        ({"q": 1}, "has no q; it holds n, w; give a state of keys that are there"),
        ({"n": tt.ones(1)}, "n is a value in .* and a tensor in the state"),
        ({"w": tt.ones(2, dtype=tt.float64)}, r"w is float32 \(2,\) in .*, and float64 \(2,\) in the state"),
        ({"w": part_like(Part((2,), (1,)), tt.ones(2))}, "reaches out of it"),
    ):
        with pytest.raises(dcp.CheckpointException, match=said):
            dcp.load(state, checkpoint_id=tmp_path / "one")
    with pytest.raises(ValueError, match="neither checkpoint_id"):
        dcp.save({"w": tt.ones(2)})
    with pytest.raises(TypeError, match="storage_reader is a str"):
        dcp.load({"w": tt.ones(2)}, storage_reader="one")
    with pytest.raises(NotImplementedError, match="processes that write"):
        dcp.async_save({"w": tt.ones(2)}, checkpoint_id=tmp_path, async_checkpointer_type=AsyncCheckpointerType.PROCESS)
    future = dcp.async_save({"w": tt.full((2,), 7.0)}, checkpoint_id=tmp_path / "two")
    assert future.result().tensors["w"].shape == (2,)
    kept = {"w": tt.zeros(2)}
    dcp.load(kept, checkpoint_id=tmp_path / "two")
    assert kept["w"].tolist() == [7, 7]
    assert isinstance(tt.nn.Linear(1, 1), Stateful)


def test_states_of_optimizers_by_name() -> None:
    """Flat states name settings with each parameter; what a state lacks is told before anything is changed."""
    model = tt.nn.Sequential(tt.nn.Linear(2, 2), tt.nn.Linear(2, 1))
    groups = [{"params": model[0].parameters(), "lr": 0.5}, {"params": model[1].parameters(), "lr": 0.25}]
    optimizer = tt.optim.AdamW(groups)
    model(tt.ones(3, 2)).sum().backward()
    optimizer.step()
    flat = sd.get_optimizer_state_dict(model, optimizer, options=sd.StateDictOptions(flatten_optimizer_state_dict=True))
    assert {"state.1.weight.exp_avg", "param_groups.0.bias.lr"} <= flat.keys()
    other = copy.deepcopy(model)
    taking = tt.optim.AdamW([{"params": other[0].parameters()}, {"params": other[1].parameters()}], lr=9.0)
    lacking = {k: v for k, v in flat.items() if not k.startswith("state.1.bias")}
    with pytest.raises(ValueError, match=r"the state has nothing of 1.bias; it has 0.weight, 0.bias, 1.weight"):
        sd.set_optimizer_state_dict(other, taking, lacking)
    with pytest.raises(ValueError, match=r"1.bias.exp_avg has shape \(7,\), and \(1,\) here"):
        sd.set_optimizer_state_dict(other, taking, {**flat, "state.1.bias.exp_avg": tt.ones(7)})
    with pytest.raises(ValueError, match=r"no group of the state holds 0.weight"):
        sd.set_optimizer_state_dict(other, taking, {})
    assert [g["lr"] for g in taking.param_groups] == [9.0, 9.0]
    assert all(s["exp_avg"].abs().sum().item() == 0 for s in taking.state.values())
    sd.set_optimizer_state_dict(other, taking, flat)
    assert [g["lr"] for g in taking.param_groups] == [0.5, 0.25]
    for p, q in zip(model.parameters(), other.parameters(), strict=True):
        assert tt.equal(optimizer.state[p]["exp_avg"], taking.state[q]["exp_avg"])
    sd.set_optimizer_state_dict(other, taking, lacking, options=sd.StateDictOptions(strict=False))
    with pytest.raises(ValueError, match="is not the model's"):
        sd.set_optimizer_state_dict(model[0], taking, flat)


class Wrapper(tt.nn.Module):
    """Has a part that is called as what wrappers hold is."""

    def __init__(self) -> None:
        super().__init__()
        self.module, self.weight = tt.nn.Linear(2, 2, bias=False), tt.nn.Parameter(tt.ones(3))


def test_names_that_wrappers_use_are_kept() -> None:
    assert list(sd.get_model_state_dict(Wrapper())) == ["weight", "module.weight"]


def test_an_optimizer_that_cannot_begin_is_left_as_it_was() -> None:
    """LBFGS steps with a closure alone, so its state is not there before its first step."""
    model = tt.nn.Linear(2, 2)
    optimizer = tt.optim.LBFGS(model.parameters(), lr=0.25)
    with pytest.raises(TypeError, match="missing closure"):
        sd.get_optimizer_state_dict(model, optimizer)
    assert optimizer.param_groups[0]["lr"] == 0.25
    assert model.weight.grad is None


class Part(NamedTuple):
    """Where a part lies."""

    global_shape: tuple[int, ...]
    global_offset: tuple[int, ...]


def test_boxes() -> None:
    assert isinstance(Part((4,), (2,)), Sharded)
    assert not isinstance(tt.ones(2), Sharded)
    assert get_box(part_like(Part((4,), (2,)), tt.ones(2))) == ((4,), Box((2,), (2,)))
    assert Box((2,), (2,)).fits_in((4,))
    assert not Box((3,), (2,)).fits_in((4,))
    assert not Box((-1,), (2,)).fits_in((4,))
    a = Box((2, 0), (3, 4))
    assert a.intersect(Box((4, 1), (5, 2))) == Box((4, 1), (1, 2))
    assert a.intersect(Box((5, 0), (1, 4))) is None
    assert Box((4, 1), (1, 2)).slices_in(a) == (slice(2, 3), slice(1, 3))
    with pytest.raises(ValueError, match="overlap"):
        plan_writes([{"w": ("float32", (4,), Box((0,), (3,)), 12)}, {"w": ("float32", (4,), Box((2,), (2,)), 8)}], "t")
    with pytest.raises(ValueError, match="hold 3 of the 4 elements"):
        plan_writes([{"w": ("float32", (4,), Box((0,), (3,)), 12)}], "t")
