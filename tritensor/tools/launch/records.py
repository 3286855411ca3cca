"""Records that ranks send to the launcher, between the lines of their stderr: taking it out of the stream and putting parts together."""

from __future__ import annotations

import json
from typing import Any

from tritensor.tools.launch.child import CLOSE, OPEN

LONGEST = 4096  # no record is longer: what opens and does not close within it is a program's own text


class Reader:
    """Splits a stream of bytes into what programs wrote and the records of ranks. Bytes come in pieces of any size."""

    def __init__(self) -> None:
        self._held = b""  # what may become a record
        self._parts: dict[tuple[str, int], list[str]] = {}

    def feed(self, data: bytes) -> tuple[bytes, list[dict[str, Any]]]:
        """(text to pass on, records that are complete now). Text is kept back only while it can be the beginning of a record."""
        text, rest = b"", self._held + data
        found: list[dict[str, Any]] = []
        while True:
            before, opened, after = rest.partition(OPEN)
            if not opened:
                keep = next((n for n in range(min(len(OPEN) - 1, len(rest)), 0, -1) if OPEN.startswith(rest[-n:])), 0)
                text, self._held = text + rest[: len(rest) - keep], rest[len(rest) - keep :]
                return text, found
            text += before
            body, closed, later = after.partition(CLOSE)
            if not closed and len(after) <= LONGEST:
                self._held = opened + after
                return text, found
            part = _part(body) if closed else None
            if part is None:
                text, rest = text + opened, after  # the opening bytes were a program's own: look for the next
                continue
            rest = later
            try:
                record = self._join(*part)
            except ValueError:  # a part of it was torn, or a program wrote it: text
                text += opened + body + closed
                continue
            if record is not None:
                found.append(record)

    def rest(self) -> bytes:
        """What is still kept back when the stream has ended: text."""
        held, self._held = self._held, b""
        return held

    def _join(self, source: str, number: int, last: bool, text: str) -> dict[str, Any] | None:
        parts = self._parts.setdefault((source, number), [])
        parts.append(text)
        if not last:
            return None
        record = json.loads("".join(self._parts.pop((source, number))))
        if not isinstance(record, dict) or not record.keys() >= {"rank", "kind"}:
            raise ValueError(f"no record of a rank: {record!r:.80}")
        return record


def _part(body: bytes) -> tuple[str, int, bool, str] | None:
    """(rank and process, number of its record, whether the last part, text), None where a program wrote the opening bytes itself."""
    try:
        source, number, last, text = json.loads(body)
    except (ValueError, TypeError):
        return None
    if not isinstance(source, str) or not isinstance(number, int) or not isinstance(text, str):
        return None
    return source, number, last, text
