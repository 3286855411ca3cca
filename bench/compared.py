"""Configs side by side: what is compared, and each one's launches."""

from __future__ import annotations

from typing import Any, NamedTuple

from tritensor.cuda.compiler.recorded_call import Call


class Entry(NamedTuple):
    """One config of a call: the fields that make it, the launches that it leads to (what it cannot be launched for in `failure`, then there is none)."""

    config: dict[str, Any]
    calls: tuple[Call, ...]
    failure: str = ""


class Group(NamedTuple):
    """One call under several configs. `rule`: the fields that configs change, as they are without; `timed`: whether the grid is known."""

    name: str
    entries: list[Entry]
    rule: dict[str, Any]
    timed: bool = True
