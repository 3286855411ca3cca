"""Calls of a group's collectives: the op, its number and the user's line, which messages of every process name."""

from __future__ import annotations

import sys
from types import CodeType

from tritensor.ground.call_site import file_and_line, line_of, user_frame


class Call:
    """One collective call: what the user called, the how-manieth of its group, what it was given, and from where.

    Reading a line out of code is dear beside a small collective, so it waits until somebody asks (see `line`).
    """

    __slots__ = ("_at", "group", "name", "number", "what")

    def __init__(self, name: str, number: int, group: str, what: str = "") -> None:
        frame = user_frame(sys._getframe(2))
        self._at: tuple[CodeType, int] = frame.f_code, frame.f_lasti
        self.name, self.number, self.group, self.what = name, number, group, what

    @property
    def line(self) -> str:
        """ "train.py:42"."""
        return file_and_line(*line_of(*self._at))

    def __str__(self) -> str:
        """ "all_reduce (call 7 of default_pg, train.py:42)"."""
        return f"{self.name} (call {self.number} of {self.group}, {self.line})"
