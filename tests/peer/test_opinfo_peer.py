"""The table of PyTorch's sample database says what is true: every entry is walked again."""

from __future__ import annotations

import time
from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db

import tritensor as tt
from tests.peer.opinfo import table, walk
from tests.peer.opinfo.reasons import REASONS
from tests.peer.opinfo.resolve import key
from tests.peer.opinfo.walk import walked

pytestmark = pytest.mark.peer
TABLE = table.read()


@pytest.mark.parametrize("op", op_db, ids=key)
def test_the_table_is_true(op: Any) -> None:
    torch.set_num_threads(1)
    made = table.line(walked(op))
    assert table.firm(made) == table.firm(TABLE[key(op)]), f"write it anew: python -m tests.peer.opinfo --record --only {key(op)}"


def test_the_table_has_every_entry_and_no_other() -> None:
    assert sorted(TABLE) == sorted(key(op) for op in op_db)


def test_reasons_are_given_for_what_needs_one() -> None:
    """A reason for an entry that passes is to be struck out."""
    states = {name: [v["state"] for k, v in TABLE.items() if name in (k, k.partition("/")[0])] for name in REASONS}
    assert not {name: s for name, s in states.items() if not s or set(s) == {"all"}}


def failing(name: str) -> set[tuple[str, str]]:
    op = next(o for o in op_db if key(o) == name)
    return {(f.where, f.kind) for f in walked(op).failures}


def test_a_wrong_value_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not [f for f in failing("sin") if not f[0].startswith("complex")]
    monkeypatch.setattr(tt, "sin", tt.cos)
    assert {("float32", "values"), ("int64", "values"), ("float64 backward", "values")} <= failing("sin")


def test_a_wrong_gradient_type_and_shape_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    sin = tt.sin
    monkeypatch.setattr(tt, "sin", lambda x: sin(x) + x.detach() - x)
    assert ("float64 backward", "gradient's values") in failing("sin")
    monkeypatch.setattr(tt, "sin", lambda x: sin(x).double())
    assert ("float32", "dtype") in failing("sin")
    monkeypatch.setattr(tt, "sin", lambda x: sin(x).reshape(-1, 1))
    assert ("float32", "shape") in failing("sin")
    monkeypatch.setattr(tt, "sin", lambda x: sin(x.detach()))
    assert ("float64 backward", "requires_grad") in failing("sin")


def test_silence_and_a_wrong_method_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tt, "cat", lambda x, *args, **kwargs: x[0])
    monkeypatch.setattr(tt.Tensor, "neg", tt.Tensor.abs)
    monkeypatch.setattr(tt.Tensor, "neg_", lambda x: -x)
    assert ("errors", "accepted") in failing("cat")
    assert {("method", "values"), ("in-place", "values")} <= failing("neg")


def test_a_test_modules_own_function_runs_over_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tt.Tensor, "expand", lambda x, shape: x)  # the database has `lambda self, shape: self.expand(shape)`
    assert ("float32", "shape") in failing("expand")


def test_what_takes_too_long_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "SECONDS", 1)
    monkeypatch.setattr(tt, "tan", lambda x: time.sleep(60))
    assert ("float32", walk.SLOW) in failing("tan")
