"""Stateful: the protocol of objects with a state of their own, which a checkpoint holds for them."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, runtime_checkable


@runtime_checkable
class Stateful(Protocol):
    """A module, an optimizer, a sampler: save asks it for its state, load gives it the one that was saved."""

    def state_dict(self) -> dict[str, Any]:
        """The state."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take a state."""


StatefulT = TypeVar("StatefulT", bound=Stateful)
