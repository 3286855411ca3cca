"""Atomic replacement of a file: a reader sees the old one or the new one whole, whatever happens in between."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import stat
from collections.abc import Iterator
from typing import BinaryIO

_REFUSALS = (errno.EACCES, errno.EPERM, errno.EBUSY, errno.EROFS)  # a folder that takes no new file, or a file that keeps its place
DISK_ERRORS = {  # what a disk says that takes no more
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the quota is used up",
    errno.EFBIG: "the file is larger than is allowed",
    errno.EIO: "the disk fails",
}


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str], nbytes: int | None = None) -> Iterator[BinaryIO]:
    """A file to write to, which takes the place of `path` when the block ends without an error.

    It is written beside `path` under another name, flushed to the disk, then renamed; after an error nothing is left, and what a
    killed process left of the same file is removed. The new file has the old one's mode and owner; a symbolic link stays, and
    what it points to is replaced. Where nothing can be replaced, the bytes go straight in: to a pipe, a device, or a file in a
    folder without write right.
    Raises what open(path, "wb") would raise: for a folder, a socket, a file that must not be written; OSError for a disk that is full
    or fails, which tells what was needed (`nbytes`, where it is known) and what is free.
    """
    name = os.fsdecode(path)
    if not name or name.endswith(os.sep):  # realpath() makes another path of it, which open() would take
        code = errno.EISDIR if name else errno.ENOENT
        raise OSError(code, os.strerror(code), name)
    target = os.path.realpath(path)
    try:
        old: os.stat_result | None = os.stat(path)
    except FileNotFoundError:
        old = None
    # A rename would put a plain file in the place of a pipe or a device that others hold open.
    if old is not None and not _can_replace(target, old):
        try:
            with open(path, "wb") as straight:
                yield straight
        except OSError as error:
            if error.filename is not None:
                raise
            raise OSError(error.errno, f"save: {os.strerror(error.errno or 0)}", name) from error
        return
    if old is not None:  # a rename asks the folder's rights alone; a file that must not be written is not replaced either
        os.close(os.open(target, os.O_RDWR | os.O_CLOEXEC))
    try:
        temporary, file = _open_temporary(target, old)
    except OSError as error:
        if old is None or error.errno not in _REFUSALS:
            raise OSError(error.errno, os.strerror(error.errno or 0), target) from error  # not the temporary name, for which nobody asked
        # the folder takes no new file: what is lost is that a reader sees one of the two whole
        with open(target, "r+b") as whole:
            yield whole
            whole.truncate()
        return
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            _move_over(temporary, target, old)
    except BaseException as error:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.errno in DISK_ERRORS:
            raise _disk_error(error, target, old is not None, nbytes) from error
        raise
    remove_orphans(os.path.dirname(target), re.compile(re.escape(_temporary_prefix(target)) + r".*\.tmp"))
    _sync_folder(os.path.dirname(target))


def _disk_error(error: OSError, target: str, replaced: bool, nbytes: int | None) -> OSError:
    """The error of a disk that takes no more; what was written is removed by now, so that the room named is what can be had."""
    found = os.statvfs(os.path.dirname(target))
    needed = "" if nbytes is None else f"{nbytes} bytes are needed, "
    kept = "the file that was there is as it was" if replaced else "nothing was left behind"
    why = os.strerror(error.errno or 0)
    free = found.f_bavail * found.f_frsize
    message = f"save: {DISK_ERRORS[error.errno or 0]} ({why}): {needed}{free} are free on it; {kept}; free some room, or save elsewhere"
    return OSError(error.errno, message, target)


def _can_replace(target: str, old: os.stat_result) -> bool:
    """Whether the target is a plain file under its own name: /proc/self/fd/3 may name one that has lost its."""
    if not stat.S_ISREG(old.st_mode):
        return False
    try:
        return os.path.samestat(old, os.stat(target))
    except FileNotFoundError:
        return False


def _temporary_prefix(target: str) -> str:
    """The first characters of temporary names: a digest, since the target's name may be as long as the system allows."""
    import hashlib  # late, as shutil is: few programs write files

    return f".{hashlib.sha256(os.fsencode(os.path.basename(target))).hexdigest()[:12]}."


def _open_temporary(target: str, old: os.stat_result | None) -> tuple[str, BinaryIO]:
    """A new locked file beside the target, with the owner and mode of the one that it will replace. The lock says that its writer lives."""
    folder = os.path.dirname(target)
    while True:
        name = os.path.join(folder, f"{_temporary_prefix(target)}{os.urandom(6).hex()}.tmp")
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


def _move_over(temporary: str, target: str, old: os.stat_result | None) -> None:
    """Rename; a file that holds its place (mounted there, or another's in a folder like /tmp) is overwritten instead."""
    try:
        os.replace(temporary, target)
    except OSError as error:
        if old is None or error.errno not in _REFUSALS:
            raise
        import shutil

        with open(temporary, "rb") as source, open(target, "r+b") as file:
            shutil.copyfileobj(source, file)
            file.truncate()
        os.unlink(temporary)


ANY_ORPHAN = re.compile(r"\.[0-9a-f]{12}\.[0-9a-f]{12}\.tmp")


def remove_orphans(folder: str | os.PathLike[str], named: re.Pattern[str] = ANY_ORPHAN) -> None:
    """Remove the temporary files of a folder (those that `named` matches) whose writer is gone."""
    with contextlib.suppress(OSError):  # tidying must not fail a save that is done
        for name in [n for n in os.listdir(folder) if named.fullmatch(n)]:
            with contextlib.suppress(OSError):
                _remove_orphan(os.path.join(folder, name))


def _remove_orphan(path: str) -> None:
    """Remove a file that no one holds locked."""
    # another user may have put a link there, or a pipe, at which a plain open() would wait for ever
    left = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if stat.S_ISREG(os.fstat(left).st_mode):
            fcntl.flock(left, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(path)
    finally:
        os.close(left)


def _sync_folder(folder: str) -> None:
    """Have the rename itself on the disk."""
    with contextlib.suppress(PermissionError):  # a folder that may be written but not read
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
