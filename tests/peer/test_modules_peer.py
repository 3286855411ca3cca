"""The table of PyTorch's module database says what is true: every entry is walked again."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.testing._internal.common_modules import module_db

import tritensor as tt
from tests.peer.modules import table
from tests.peer.modules.walk import name_of, walked
from tests.peer.opinfo.table import firm

pytestmark = pytest.mark.peer
TABLE = table.read()


@pytest.mark.parametrize("info", module_db, ids=name_of)
def test_the_table_is_true(info: Any) -> None:
    torch.set_num_threads(1)
    name = name_of(info)
    assert firm(table.line(walked(info))) == firm(TABLE[name]), f"write it anew: python -m tests.peer.modules --record --only {name}"


def test_the_table_has_every_entry_and_no_other() -> None:
    assert sorted(TABLE) == sorted({name_of(i) for i in module_db})


def test_reasons_are_given_for_what_needs_one() -> None:
    assert sorted(table.REASONS) == sorted(k for k, v in TABLE.items() if v["state"] != "all" and k in table.REASONS)


def failing(name: str) -> set[tuple[str, str]]:
    return {(f.where, f.kind) for i in module_db if name_of(i) == name for f in walked(i).failures}


def test_a_wrong_layer_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not failing("nn.Linear")
    forward, start = tt.nn.Linear.forward, tt.nn.Linear.reset_parameters
    monkeypatch.setattr(tt.nn.Linear, "forward", lambda m, **given: forward(m, **given) * 1.01)
    assert {("forward train", "values"), ("backward eval", "values")} <= failing("nn.Linear")
    monkeypatch.setattr(
        tt.nn.Linear, "forward", lambda m, **given: forward(m, **given) + given["input"].sum() - given["input"].detach().sum()
    )
    assert ("backward train", "gradient's values") in failing("nn.Linear")
    monkeypatch.setattr(tt.nn.Linear, "forward", forward)
    monkeypatch.setattr(tt.nn.Linear, "extra_repr", lambda m: "")
    assert ("built", "repr") in failing("nn.Linear")
    monkeypatch.undo()

    def doubled(m: Any) -> None:
        start(m)
        m.weight.data.mul_(2)

    monkeypatch.setattr(tt.nn.Linear, "reset_parameters", doubled)
    assert ("start", "start") in failing("nn.Linear")
