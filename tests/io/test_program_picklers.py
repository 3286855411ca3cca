"""Picklers of a program's own, by which save writes what Python's pickle does not take, and load reads it again."""

from __future__ import annotations

import pickle
import types
from pathlib import Path
from typing import Any

import pytest

import tritensor as tt
from tritensor.ground.errors import CheckpointError


class _Doubled(pickle.Pickler):
    """A pickler of a program's own, which writes functions by what they do, as cloudpickle does."""

    def reducer_override(self, obj: Any) -> Any:
        return (eval, ("lambda x: 2 * x",)) if isinstance(obj, types.FunctionType) and obj.__name__ == "<lambda>" else NotImplemented


@pytest.mark.parametrize("zipped", [None, True, False])
def test_a_pickler_of_the_programs_own_writes_what_pickle_does_not_take(tmp_path: Path, zipped: bool | None) -> None:
    own = types.SimpleNamespace(Pickler=_Doubled, Unpickler=pickle.Unpickler)
    model = tt.nn.Linear(2, 3)
    tt.save({"model": model, "f": lambda x: 2 * x, "tied": [model.weight]}, tmp_path / "own.pt", own, _use_new_zipfile_serialization=zipped)
    back = tt.load(tmp_path / "own.pt", pickle_module=own, weights_only=False)
    assert tt.load(tmp_path / "own.pt", pickle_module=own)["f"](3) == 6  # who names a pickler trusts the file
    assert tt.equal(back["model"].weight, model.weight)
    assert back["tied"][0] is back["model"].weight
    assert back["f"](3) == 6
    with pytest.raises(CheckpointError):
        tt.load(tmp_path / "own.pt", weights_only=True)
