"""Ownership of files: those that another user has put in a folder open to all are neither trusted nor written to."""

from __future__ import annotations

import os
import stat


def is_foreign(path: str | os.PathLike[str]) -> str:
    """Why a file or folder may be another user's: "" where it is of this user (or of root), no link, and nobody else may write it. What is not there is
    nobody's. A group may write it where it is this user's own: many systems make files so."""
    try:
        # not stat: a link would show its target's owner
        seen = os.lstat(path)
    except FileNotFoundError:
        return ""
    return is_foreign_stat(seen)


def is_foreign_stat(seen: os.stat_result) -> str:
    """The same of what os.lstat or os.fstat has told."""
    if stat.S_ISLNK(seen.st_mode):
        return "is a link"
    if seen.st_uid not in (os.geteuid(), 0):
        return f"belongs to user {seen.st_uid}, and this is user {os.geteuid()}"
    mode = stat.S_IMODE(seen.st_mode)
    if mode & stat.S_IWOTH or (mode & stat.S_IWGRP and seen.st_gid != os.getegid() and seen.st_uid != 0):
        return f"may be written by others (mode {mode:o})"
    return ""


def is_foreign_file(path: str | os.PathLike[str]) -> str:
    """The same of a file and of the folder that it stands in, whose owner may exchange it."""
    return is_foreign(path) or is_foreign(os.path.dirname(os.fspath(path)) or os.curdir)
