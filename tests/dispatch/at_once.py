"""Doors that learn at once: what the tests of plans share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tritensor.dispatch.plans import doors
from tritensor.tensor.public_api.publish import _door_of


@pytest.fixture(autouse=True)
def learns_at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(doors, "BEGIN", -1)
    monkeypatch.setattr(doors, "SEEN_BEFORE", False)
    doors.forget()
    yield
    assert not doors.OFF, "somebody has left plans switched off"


def plans_of(f: Callable[..., Any]) -> int:
    """How many plans a public function has."""
    return len(_door_of(f).plans)


def taught(f: Callable[[], Any]) -> Any:
    """What a call gives once it has been made."""
    f()
    return f()
