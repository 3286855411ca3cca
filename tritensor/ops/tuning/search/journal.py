"""The tuner's notes: a line for each measurement, on the disk before the next begins, so that a killed run goes on where it was."""

from __future__ import annotations

import errno
import fcntl
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
    """Results by (target, config, round, code). A line is written at once and flushed to the disk; one that a kill tore is dropped when the file is read.

    `head` says what the results are true of (the GPU, Triton's version): a file with another head is refused, and so is one that a run which is
    still alive writes to. Lines that are damaged are left out, and `damaged` counts them: what they held is measured anew.
    """

    def __init__(self, path: Path, head: dict[str, Any]) -> None:
        self.path = path
        self.found: dict[tuple[str, str, int, str], Any] = {}
        self.damaged = 0
        head = {"schema": SCHEMA, **head}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b", buffering=0)  # a line goes out whole or fails now
        except OSError as error:
            raise FullDiskError(
                f"{path}: cannot be written: {error.strerror or error}; give a path in a folder of yours with --out"
            ) from None
        try:
            self._lock()
            whole = self._read(head)
            # what a kill tore off would make the next line unreadable, too
            self._file.truncate(whole)
            self._file.seek(whole)
            if not whole:
                self._write(head)
        except BaseException:
            self._file.close()
            raise

    def _lock(self) -> None:
        """Hold the file as long as this process lives: two runs that write to one file would tear each other's lines."""
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # of the process: its children, who may outlive a kill, do not hold it
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EAGAIN):
                return  # a file system without locks
            raise JournalError(
                f"{self.path}: another `tritensor tune` is writing there; wait for its end, or give this one a file of its own with --out"
            ) from None

    def _read(self, head: dict[str, Any]) -> int:
        """Fill `found`; how many bytes of the file are whole lines."""
        data = self._file.read()
        whole = data.rfind(b"\n") + 1
        lines = data[:whole].splitlines()
        if not lines:
            return 0
        there = _row(lines[0])
        if not isinstance(there, dict) or "schema" not in there:
            raise JournalError(f"{self.path}: no journal of the tuner, or its head is damaged; remove the file, or give another --out")
        if there != head:
            raise JournalError(
                f"{self.path}: notes of another run ({_find_differences(there, head)}); remove the file, or give another --out"
            )
        for row in map(_row, lines[1:]):
            try:
                result = row["us"] if row["us"] is not None else row["failed"]
                self.found[row["target"], row["config"], row["round"], row.get("code", "")] = result
            except (KeyError, TypeError):
                self.damaged += 1
        return whole

    def get(self, target: str, config: str, round: int, code: str = "") -> float | str | None:
        """Microseconds, the words of a failure, or None for what has not been measured. `code` tells what was launched: a result of a kernel that
        has been changed since is none."""
        return self.found.get((target, config, round, code))

    def put(self, target: str, config: str, round: int, result: float | str, code: str = "") -> None:
        """Note a result. Raises FullDiskError where it cannot be written; what was noted before is on the disk."""
        us, failed = (result, "") if isinstance(result, float) else (None, result)
        self._write({"target": target, "config": config, "round": round, "us": us, "failed": failed, "code": code})
        self.found[target, config, round, code] = result

    def _write(self, row: dict[str, Any]) -> None:
        try:
            line = json.dumps(row).encode() + b"\n"
            while line:  # a disk that fills takes a part first
                line = line[self._file.write(line) :]
            # a machine that dies in the middle costs one line
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


def _row(line: bytes) -> Any:
    """A line's content; None where it is damaged."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _find_differences(there: dict[str, Any], head: dict[str, Any]) -> str:
    return ", ".join(f"{k} {there.get(k)!r}, not {v!r}" for k, v in head.items() if there.get(k) != v) or "its head has more fields"
