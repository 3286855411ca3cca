"""The table of PyTorch's sample database says what is true: every entry is walked again."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db

from tests.peer.opinfo import table
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
