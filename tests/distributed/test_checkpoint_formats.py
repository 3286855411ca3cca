"""Checkpoints of several ranks as one file, and back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tritensor as tt
import tritensor.distributed.checkpoint as dcp
from tests.distributed.ranks import succeed
from tritensor.distributed.checkpoint.format_utils import dcp_to_torch_save, main, torch_save_to_dcp
from tritensor.ground.errors import CheckpointError

STATE = {
    "model": {"a.b": tt.arange(6).reshape(2, 3), "none": {}},
    "optimizer": {
        "state": {0: {"step": tt.tensor(3.0)}, 11: {"step": tt.tensor(4.0)}},
        "param_groups": [{"lr": 0.1, "params": [0, 11]}, {"w": tt.ones(1)}],
    },
    "epoch": 3,
}


def plain(state: object) -> object:
    """The same with lists in the places of tensors."""
    if isinstance(state, dict):
        return {k: plain(v) for k, v in state.items()}
    if isinstance(state, list):
        return [plain(v) for v in state]
    return state.tolist() if isinstance(state, tt.Tensor) else state


def test_a_folder_becomes_a_file_and_a_folder_again(tmp_path: Path) -> None:
    dcp.save(STATE, checkpoint_id=tmp_path / "folder")
    dcp_to_torch_save(tmp_path / "folder", tmp_path / "file.pt")
    assert plain(tt.load(tmp_path / "file.pt")) == plain(STATE)
    torch_save_to_dcp(tmp_path / "file.pt", tmp_path / "again")
    main(["dcp_to_torch", str(tmp_path / "again"), str(tmp_path / "other.pt")])
    assert plain(tt.load(tmp_path / "other.pt")) == plain(STATE)
    main(["torch_to_dcp", str(tmp_path / "other.pt"), str(tmp_path / "third")])
    found = {"epoch": 0}
    dcp.load(found, checkpoint_id=tmp_path / "third")
    assert found == {"epoch": 3}


def test_parts_of_several_ranks_are_one_file(tmp_path: Path) -> None:
    succeed("scripts_of_others.py", 2, "parts", str(tmp_path / "folder"))
    dcp_to_torch_save(tmp_path / "folder", tmp_path / "file.pt")
    found = tt.load(tmp_path / "file.pt")
    assert found["app"]["model"]["layers.0.weight"].shape == (41, 10)
    assert found["app"]["optim"]["state"]["layers.0.weight"]["exp_avg"].shape == (41, 10)
    assert found["app"]["optim"]["param_groups"][0]["lr"] == 0.01


def test_of_an_earlier_version(tmp_path: Path) -> None:
    dcp.save({"a": tt.ones(2)}, checkpoint_id=tmp_path)
    about = json.loads((tmp_path / "metadata.json").read_text())
    del about["steps"]
    (tmp_path / "metadata.json").write_text(json.dumps(about))
    with pytest.raises(CheckpointError, match="does not say where a stood in the state"):
        dcp_to_torch_save(tmp_path, tmp_path / "file.pt")
    found = {"a": tt.zeros(2)}
    dcp.load(found, checkpoint_id=tmp_path)
    assert found["a"].tolist() == [1.0, 1.0]
