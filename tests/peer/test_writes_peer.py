"""Writes between a call and its backward, and results that hang in the graph, are as in PyTorch: its samples are walked, and what was recorded of it is so."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db

import tritensor as tt
from tests.expressions.listed import FAMILIES
from tests.expressions.record import theirs
from tests.expressions.writable import allowed, recorded
from tests.peer.opinfo.resolve import key
from tests.peer.opinfo.writes import FLAGS, KEPT, UNREPEATABLE, hung, written
from tritensor.autograd import saved

pytestmark = pytest.mark.peer
ASKED = [op for op in op_db if op.name not in UNREPEATABLE]


@pytest.mark.parametrize("op", ASKED, ids=key)
def test_what_pytorch_lets_be_written_may_be(op: Any) -> None:
    torch.set_num_threads(1)
    found = written(op)
    assert bool(found) == (op.name in KEPT), found


@pytest.mark.parametrize("op", ASKED, ids=key)
def test_what_hangs_in_the_graph(op: Any) -> None:
    found = hung(op)
    assert bool(found) == (op.name in FLAGS), found


@pytest.mark.parametrize("family", FAMILIES)
def test_the_recorded_writes_are_pytorchs(family: str) -> None:
    assert recorded(family) == {e: a for e in FAMILIES[family] if (a := allowed(theirs(e)))}


def test_a_node_that_keeps_too_much_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    op = next(o for o in op_db if o.name == "nn.functional.l1_loss")
    monkeypatch.setattr(saved, "note_borrower", lambda version, mark, place: None)
    assert any("raises" in line for line in written(op))


def test_a_write_that_nobody_counts_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    op = next(o for o in op_db if o.name == "mul")
    monkeypatch.setattr(tt.Tensor, "mul_", lambda x, y: (x._array.__imul__(y), x)[1])
    monkeypatch.setattr(tt.Tensor, "add_", lambda x, y: (x._array.__iadd__(y), x)[1])
    assert any("wrong" in line for line in written(op))
