"""Records in a stream: taken out wherever it is cut, text around them left as it was."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from tritensor.tools.launch import child
from tritensor.tools.launch.child import CLOSE, OPEN, PART
from tritensor.tools.launch.records import LONGEST, Reader


def sent(record: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The pieces in which a record is written."""
    pieces: list[bytes] = []
    monkeypatch.setattr(child, "_drain", lambda: None)
    monkeypatch.setattr(os, "write", lambda stream, data: pieces.append(data))
    child.send(record)
    monkeypatch.undo()
    return pieces


def test_wherever_it_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    record = {"kind": "failed", "rank": 1, "traceback": "é\n\x1e\x1d\"'" * 500}
    other = {"kind": "started", "rank": 0}
    pieces = sent(record, monkeypatch)
    assert len(pieces) > 2
    assert all(len(p) < 4096 for p in pieces), "a pipe takes no more in one go"
    first, *rest = pieces
    stream = b"half" + first + b" a line\n\x1e\x1dtrit" + b"".join(sent(other, monkeypatch)) + b"".join(rest) + b"end\x1e"
    for size in (1, 2, 7, 1000, len(stream)):
        reader, text, found = Reader(), b"", []
        for at in range(0, len(stream), size):
            passed, records = reader.feed(stream[at : at + size])
            text, found = text + passed, found + records
        assert text + reader.rest() == b"half a line\n\x1e\x1dtritend\x1e"
        assert found == [other, record]


def test_text_is_not_kept_back() -> None:
    reader = Reader()
    assert reader.feed(b"50%") == (b"50%", [])
    assert reader.feed(b"\r60%\x1e") == (b"\r60%", [])
    assert reader.feed(b"!") == (b"\x1e!", [])


@pytest.mark.parametrize(
    "words",
    [
        OPEN + b"not a record" + CLOSE,
        OPEN + b"x" * (LONGEST + 1),
        *(OPEN + json.dumps(parts).encode() + CLOSE for parts in ([1, 2], 1, [[], 1, True, "{}"])),
        # The last part of a record whose others were torn, and whole ones that no rank has written.
        *(OPEN + json.dumps(["0.1", 1, True, text]).encode() + CLOSE for text in ('"kind": "failed"}', "1", "{}")),
    ],
)
def test_a_program_that_writes_the_opening_itself(words: bytes) -> None:
    reader = Reader()
    text, found = reader.feed(words + b"\nmore")
    assert (text + reader.rest(), found) == (words + b"\nmore", [])
    assert PART < LONGEST
