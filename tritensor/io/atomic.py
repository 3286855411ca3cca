"""Writing a file so that a reader sees the old one or the new one whole, whatever happens in between."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import shutil
import stat
from collections.abc import Iterator
from typing import BinaryIO

_OCCUPIED = (errno.EACCES, errno.EPERM, errno.EBUSY, errno.EROFS)  # a folder that takes no new file, or a file that keeps its place
FULL = {  # what a disk says that takes no more
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the quota is used up",
    errno.EFBIG: "the file is larger than is allowed",
    errno.EIO: "the disk fails",
}


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], nbytes: int | None = None) -> Iterator[BinaryIO]:
    """A file to write to, which takes the place of `path` when the block ends without an error.

    It is written beside `path` under another name, flushed to the disk, then renamed; after an error nothing is left, and what a
    killed process left of the same file is removed. The new file has the old one's mode and owner; a symbolic link stays, and
    what it points to is replaced. Where nothing can be replaced, the bytes go straight in: to a pipe, a device, or a file in a
    folder without write right.
    Raises what open(path, "wb") would raise: for a folder, a socket, a file that must not be written; OSError for a disk that is full
    or fails, which tells what was needed (`nbytes`, where it is known) and what is free.
    """
    name = os.fsdecode(path)
    if not name or name.endswith(os.sep):  # what realpath() makes another path of
        code = errno.EISDIR if name else errno.ENOENT
        raise OSError(code, os.strerror(code), name)
    target = os.path.realpath(path)
    try:
        old: os.stat_result | None = os.stat(path)
    except FileNotFoundError:
        old = None
    if old is not None and not _replaceable(target, old):
        try:
            with open(path, "wb") as straight:
                yield straight
        except OSError as error:
            if error.filename is not None:
                raise
            raise OSError(error.errno, f"save: {os.strerror(error.errno or 0)}", name) from error
        return
    if old is not None:
        with open(target, "r+b"):  # a file that must not be written is not replaced either
            pass
    try:
        beside, file = _temporary(target, old)
    except OSError as error:
        if old is None or error.errno not in _OCCUPIED:
            raise OSError(error.errno, os.strerror(error.errno or 0), target) from error  # not the name that nobody asked for
        with open(target, "r+b") as whole:
            yield whole
            whole.truncate()
        return
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            _take_place(beside, target, old)
    except BaseException as error:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(beside)
        if isinstance(error, OSError) and error.errno in FULL:
            raise _full(error, target, old is not None, nbytes) from error
        raise
    _remove_orphans(target)
    _settle(os.path.dirname(target))


def _full(error: OSError, target: str, replaced: bool, nbytes: int | None) -> OSError:
    """What is said of a disk that takes no more, once what was written is removed."""
    found = os.statvfs(os.path.dirname(target))
    need = "" if nbytes is None else f"{nbytes} bytes are needed, "
    kept = "the file that was there is as it was" if replaced else "nothing was left behind"
    why = os.strerror(error.errno or 0)
    free = found.f_bavail * found.f_frsize
    said = f"save: {FULL[error.errno or 0]} ({why}): {need}{free} are free on it; {kept}; free some room, or save elsewhere"
    return OSError(error.errno, said, target)


def _replaceable(target: str, old: os.stat_result) -> bool:
    """Whether a rename can stand for writing: a plain file, and one that has this name (an open file may have lost its own)."""
    if not stat.S_ISREG(old.st_mode):
        return False
    try:
        return os.path.samestat(old, os.stat(target))
    except FileNotFoundError:
        return False


def _stem(target: str) -> str:
    """How temporary files of `target` begin: of one length for every name, since a name may be as long as the system allows."""
    return f".{hashlib.sha256(os.fsencode(os.path.basename(target))).hexdigest()[:12]}."


def _temporary(target: str, old: os.stat_result | None) -> tuple[str, BinaryIO]:
    """A new locked file beside the target, with the rights of the file that it will replace. The lock says that its writer lives."""
    folder = os.path.dirname(target)
    while True:
        name = os.path.join(folder, f"{_stem(target)}{os.urandom(6).hex()}.tmp")
        handle = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666 if old is None else 0o600)
        with contextlib.suppress(OSError):  # a file system without locks: no one removes orphans there
            fcntl.flock(handle, fcntl.LOCK_EX)
        if os.path.exists(name):  # else someone who removes orphans came before the lock
            break
        os.close(handle)
    if old is not None:
        with contextlib.suppress(PermissionError):  # only root gives files away
            os.fchown(handle, old.st_uid, old.st_gid)
        os.fchmod(handle, stat.S_IMODE(old.st_mode))
    return name, os.fdopen(handle, "w+b")


def _take_place(beside: str, target: str, old: os.stat_result | None) -> None:
    """Rename; a file that holds its place (mounted there, or another's in a folder like /tmp) is overwritten instead."""
    try:
        os.replace(beside, target)
    except OSError as error:
        if old is None or error.errno not in _OCCUPIED:
            raise
        with open(beside, "rb") as source, open(target, "r+b") as file:
            shutil.copyfileobj(source, file)
            file.truncate()
        os.unlink(beside)


def _remove_orphans(target: str) -> None:
    """Remove temporary files of this target whose writer is gone: those that no one holds locked."""
    remove_orphans(os.path.dirname(target), re.compile(re.escape(_stem(target)) + r".*\.tmp"))


ANY_ORPHAN = re.compile(r"\.[0-9a-f]{12}\.[0-9a-f]{12}\.tmp")


def remove_orphans(folder: str | os.PathLike[str], named: re.Pattern[str] = ANY_ORPHAN) -> None:
    """Remove temporary files of a folder, of any target unless their names are given, whose writer is gone."""
    with contextlib.suppress(OSError):  # tidying must not fail a save that is done
        for name in [n for n in os.listdir(folder) if named.fullmatch(n)]:
            with contextlib.suppress(OSError):
                _remove_orphan(os.path.join(folder, name))


def _remove_orphan(path: str) -> None:
    """Remove a file that no one holds locked. One that another user has put there may be a link, or a pipe that a plain open() would wait at for ever."""
    left = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if stat.S_ISREG(os.fstat(left).st_mode):
            fcntl.flock(left, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(path)
    finally:
        os.close(left)


def _settle(folder: str) -> None:
    """The rename itself is on the disk once the folder is; a folder that may not be read settles by itself."""
    with contextlib.suppress(PermissionError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
