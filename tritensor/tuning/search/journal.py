"""The tuner's notes: a line for each measurement, on the disk before the next begins, so that a killed run goes on where it was."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

SCHEMA = 1


class JournalError(ValueError):
    """A journal that belongs to something else; the message names it and the mend."""


class FullDiskError(OSError):
    """Notes or results that could not be written; the message names the file and what is free."""


class Journal:
    """Results by (target, config, round). A line is written at once and flushed to the disk; one that a kill tore is dropped when the file is read.

    `head` says what the results are true of (the GPU, Triton's version): a file with another head is refused.
    """

    def __init__(self, path: Path, head: dict[str, Any]) -> None:
        self.path = path
        self.found: dict[tuple[str, str, int], Any] = {}
        head = {"schema": SCHEMA, **head}
        whole = self._read(head)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("r+b" if path.exists() else "w+b", buffering=0)  # a line goes out whole or fails now
            self._file.truncate(whole)
            self._file.seek(whole)
        except OSError as error:
            raise FullDiskError(
                f"{path}: cannot be written: {error.strerror or error}; give a path in a folder of yours with --out"
            ) from None
        if not whole:
            self._write(head)

    def _read(self, head: dict[str, Any]) -> int:
        """Fill `found`; how many bytes of the file are whole lines."""
        if not self.path.exists():
            return 0
        data = self.path.read_bytes()
        whole = data.rfind(b"\n") + 1
        lines = data[:whole].splitlines()
        try:
            rows = [json.loads(line) for line in lines]
            there = rows[0] if rows else head
            if there != head:
                raise JournalError(f"{self.path}: notes of another run ({_differing(there, head)}); remove the file, or give another --out")
            for row in rows[1:]:
                self.found[row["target"], row["config"], row["round"]] = row["us"] if row["us"] is not None else row["failed"]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, JournalError):
                raise
            raise JournalError(
                f"{self.path}: no journal of the tuner, or damaged ({error}); remove the file, or give another --out"
            ) from None
        return whole

    def get(self, target: str, config: str, round: int) -> float | str | None:
        """Microseconds, the words of a failure, or None for what has not been measured."""
        return self.found.get((target, config, round))

    def put(self, target: str, config: str, round: int, result: float | str) -> None:
        """Note a result. Raises FullDiskError where it cannot be written; what was noted before is on the disk."""
        us, failed = (result, "") if isinstance(result, float) else (None, result)
        self._write({"target": target, "config": config, "round": round, "us": us, "failed": failed})
        self.found[target, config, round] = result

    def _write(self, row: dict[str, Any]) -> None:
        try:
            line = json.dumps(row).encode() + b"\n"
            while line:  # a disk that fills takes a part first
                line = line[self._file.write(line) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            raise full(self.path, error) from None

    def close(self) -> None:
        """Close the file, and keep it."""
        self._file.close()


def full(path: Path, error: OSError) -> FullDiskError:
    """What to say of a file that could not be written."""
    try:
        free = f"{shutil.disk_usage(path.parent).free / 1e6:.1f} MB are free there"
    except OSError:
        free = "the folder is gone"
    return FullDiskError(
        f"{path}: cannot be written: {error.strerror or error}; {free}. What was measured before is kept; the same command goes on"
    )


def _differing(there: Any, head: dict[str, Any]) -> str:
    if not isinstance(there, dict):
        return "it has no head"
    return ", ".join(f"{k} {there.get(k)!r}, not {v!r}" for k, v in head.items() if there.get(k) != v) or "its head has more fields"
