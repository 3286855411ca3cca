"""Checkpoints in shards: names and index as Hugging Face's libraries have them, whole at every moment, refused by name where something is missing."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.numpy

import tritensor as tt
from tritensor.ground.errors import CheckpointError
from tritensor.io import load_sharded, save_sharded, sharded

STATE = {"b.weight": tt.arange(10.0), "a.weight": tt.ones(5, dtype=tt.bfloat16), "c": tt.zeros(3, 3), "d": tt.tensor(1)}


def values(found: dict[str, tt.Tensor]) -> dict[str, Any]:
    return {k: found[k].tolist() for k in sorted(found)}


def test_one_file(tmp_path: Path) -> None:
    assert save_sharded(STATE, tmp_path / "new" / "folder") == ["model.safetensors"]
    found = load_sharded(tmp_path / "new" / "folder")
    assert values(found) == values(STATE)
    assert tt.io.load_metadata(tmp_path / "new" / "folder" / "model.safetensors") == {"format": "pt"}


def test_shards_and_their_index(tmp_path: Path) -> None:
    names = save_sharded(STATE, tmp_path, max_shard_size=50, metadata={"step": "3"})
    assert names == [*(f"model-0000{i}-of-00002.safetensors" for i in (1, 2)), "model.safetensors.index.json"]
    assert sorted(os.listdir(tmp_path)) == sorted(names)
    text = (tmp_path / names[-1]).read_text()
    index = json.loads(text)
    assert text == json.dumps(index, indent=2, sort_keys=True) + "\n"
    assert index["metadata"] == {"total_size": 40 + 10 + 36 + 8}
    assert list(index["weight_map"].values()) == [names[0], names[0], names[1], names[1]]
    for name in names[:-1]:
        kept = tt.io.load_file(tmp_path / name)
        assert sorted(kept) == sorted(k for k, v in index["weight_map"].items() if v == name)
        assert tt.io.load_metadata(tmp_path / name) == {"format": "pt", "step": "3"}
    assert list(safetensors.numpy.load_file(tmp_path / names[1])["c"].shape) == [3, 3]
    assert values(load_sharded(tmp_path)) == values(STATE)
    assert {str(t.device) for t in load_sharded(tmp_path, "cuda").values()} == {"cuda:0"}


@pytest.mark.parametrize(
    ("size", "nbytes"), [("5GB", 5 * 10**9), ("1.5 MB", 1_500_000), ("2KiB", 2048), (7, 7), ("10", 10), ("3gib", 3 * 2**30)]
)
def test_sizes(size: Any, nbytes: int) -> None:
    assert sharded._parse_size(size) == nbytes


@pytest.mark.parametrize("size", ["", "many", "5 XB", "-1", 0, "0.1", None])
def test_no_sizes(size: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"max_shard_size=.* is no size; give bytes, or text such as '5GB'"):
        save_sharded(STATE, tmp_path, size)


def test_sets_that_replace_one_another(tmp_path: Path) -> None:
    """As many shards, more, one alone, and back: what is read is always the last, and no shard is left over."""
    (tmp_path / "config.json").write_text("{}")
    for turn, size in enumerate((50, 50, 50, 20, 10**6, 50, 50)):
        state = {k: v + turn for k, v in STATE.items()}
        names = save_sharded(state, tmp_path, size)
        assert sorted(os.listdir(tmp_path)) == sorted([*names, "config.json"])
        assert values(load_sharded(tmp_path)) == values(state)


class Stopped(BaseException):
    """The process ends here."""


def _stopping_at(step: int, patch: pytest.MonkeyPatch) -> None:
    """Whatever touches the disk for the `step`-th time does not happen, nor what comes after."""
    left = [step]

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def act(*args: Any, **how: Any) -> Any:
            if left[0] <= 0:
                raise Stopped
            left[0] -= 1
            return real(*args, **how)

        return act

    for name in ("replace", "unlink", "open"):
        patch.setattr(os, name, counted(getattr(os, name)))


@pytest.mark.parametrize("sizes", [(50, 50), (50, 20), (50, 10**6), (10**6, 50), (10**6, 10**6)])
def test_a_save_that_stops_anywhere(sizes: tuple[int, int], tmp_path: Path) -> None:
    old, new = STATE, {k: v + 1 for k, v in STATE.items()}
    outcomes = []
    for step in range(60):
        folder = tmp_path / str(step)
        save_sharded(old, folder, sizes[0])
        with pytest.MonkeyPatch.context() as patch:
            _stopping_at(step, patch)
            try:
                save_sharded(new, folder, sizes[1])
                done = True
            except Stopped:
                done = False
        found = values(load_sharded(folder))
        assert found in (values(old), values(new))
        outcomes.append(found == values(new))
        if done:
            break
        save_sharded(new, folder, sizes[1])  # and once more: it tidies up
        assert values(load_sharded(folder)) == values(new)
        assert not [n for n in os.listdir(folder) if n.endswith(".tmp")]
    assert done
    assert outcomes == sorted(outcomes), "once the new set is there it stays"


def test_pytorchs_shards(tmp_path: Path) -> None:
    tt.save({"a": tt.ones(2)}, tmp_path / "pytorch_model-00001-of-00002.bin")
    tt.save({"b": tt.zeros(3)}, tmp_path / "pytorch_model-00002-of-00002.bin")
    index = {
        "metadata": {"total_size": 20},
        "weight_map": {"b": "pytorch_model-00002-of-00002.bin", "a": "pytorch_model-00001-of-00002.bin"},
    }
    (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    assert values(load_sharded(tmp_path)) == {"a": [1, 1], "b": [0, 0, 0]}
    tt.save({"a": tt.ones(1)}, tmp_path / "pytorch_model.bin")
    assert values(load_sharded(tmp_path)) == {"a": [1]}
    save_sharded({"s": tt.ones(1)}, tmp_path)
    assert values(load_sharded(tmp_path)) == {"s": [1]}


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none of model.safetensors, model.safetensors.index.json, pytorch_model.bin"):
        load_sharded(tmp_path)
    names = save_sharded(STATE, tmp_path, 50)
    index = tmp_path / names[-1]
    good = json.loads(index.read_text())
    os.rename(tmp_path / names[1], tmp_path / "away")
    with pytest.raises(
        CheckpointError, match=r"index.json: names model-00002-of-00002.safetensors, which is not there; the set is incomplete"
    ):
        load_sharded(tmp_path)
    os.rename(tmp_path / "away", tmp_path / names[1])
    for change, match in (
        ({"weight_map": {**good["weight_map"], "e": names[0]}}, "should hold 'e' and 0 more that it does not; the set is mixed"),
        ({"weight_map": {"a": "../x"}}, "names the file '../x', which is not in this folder"),
        ({"weight_map": {"a": "/etc/passwd"}}, "which is not in this folder"),
        ({"weight_map": {"a": ".."}}, "which is not in this folder"),
        ({"weight_map": ["a"]}, "this is no index of shards"),
        ({"weight_map": {"a": 3}}, "this is no index of shards"),
        ({}, "this is no index of shards"),
        ([], "this is no index of shards"),
    ):
        index.write_text(json.dumps(change))
        with pytest.raises(CheckpointError, match=match):
            load_sharded(tmp_path)
    index.write_text("[" * 5000)
    with pytest.raises(CheckpointError, match="this is no index of shards"):
        load_sharded(tmp_path)
    with pytest.raises(TypeError, match="'x' is a int, not a tensor"):
        save_sharded({"x": 3}, tmp_path)  # type: ignore[dict-item]
    tt.save({"epoch": 3}, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match="other things than tensors"):
        load_sharded(tmp_path)
