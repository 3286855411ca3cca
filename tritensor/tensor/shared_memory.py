"""Memory that several processes see: segments, made by one of them and mapped by the others, and the numpy arrays that lie in them.

A segment is reserved when it is made: where the machine or /dev/shm has no room, that raises at once, and no process is ended by SIGBUS when it
writes there later. Two strategies say where segments come from, as in PyTorch:

- file_descriptor: nameless memory of the kernel (memfd). It counts against the machine's memory and not against the size of /dev/shm, and is gone
  with the last process that has mapped it, however these end. Each segment takes a file descriptor.
- file_system: files in /dev/shm, which take no descriptor. Each process that has one mapped owns a name of its own (a hard link), a message under
  way another; Python's resource tracker removes the names of processes that were killed.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import mmap
import os
from typing import Any

import numpy as np

from tritensor.ground.errors import ArgumentError, OutOfMemoryError
from tritensor.tensor.copying import Memory

FOLDER = "/dev/shm"
STRATEGIES = ("file_descriptor", "file_system")
_NO_ROOM = (errno.ENOSPC, errno.ENOMEM, errno.EFBIG, errno.EDQUOT)
NO_DESCRIPTOR = (errno.EMFILE, errno.ENFILE)
_strategy = "file_descriptor"
_MAP_FAILED = ctypes.c_void_p(-1).value


@functools.cache
def _libc() -> ctypes.CDLL:
    """The C library: most programs share no memory, and do not wait for it."""
    found = ctypes.CDLL(None, use_errno=True)
    found.mmap.restype = ctypes.c_void_p
    found.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
    found.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    return found


def strategy() -> str:
    """Where new segments come from: "file_descriptor" or "file_system"."""
    return _strategy


def set_strategy(new_strategy: str) -> None:
    """Take new segments from elsewhere. Raises ArgumentError for other words."""
    global _strategy
    if new_strategy not in STRATEGIES:
        raise ArgumentError(f"set_sharing_strategy: {new_strategy!r} is no strategy; give 'file_descriptor' or 'file_system'")
    if new_strategy == "file_system":
        _resource_tracker().ensure_running()  # before processes are forked, so that all of them report their names to the same one
    _strategy = new_strategy


def _resource_tracker() -> Any:
    from multiprocessing import resource_tracker

    return resource_tracker


class Mapping(Memory):
    """Bytes of a file that this process sees at an address; they go when the last array on them dies. It is such an array's `base`.

    With `private` writes stay in this process, and the file as it is.
    """

    __slots__ = ()

    def __init__(self, descriptor: int, nbytes: int, private: bool = False) -> None:
        super().__init__(0, nbytes)
        flags = mmap.MAP_PRIVATE if private else mmap.MAP_SHARED | mmap.MAP_POPULATE
        found = _libc().mmap(None, nbytes, mmap.PROT_READ | mmap.PROT_WRITE, flags, descriptor, 0)
        if found == _MAP_FAILED:
            code = ctypes.get_errno()
            raise OutOfMemoryError(
                f"shared memory: {nbytes:,} bytes could not be mapped: {os.strerror(code)}; free memory, or raise the process's limits "
                "(ulimit -v, /proc/sys/vm/max_map_count)"
            )
        self.address = found

    def __del__(self) -> None:
        if self.address:
            _libc().munmap(self.address, self.nbytes)


class Segment(Mapping):
    """Shared bytes that can be sent to other processes. `key` is the same in all of them.

    `descriptor` is the open file, -1 of a segment that has a `name` in /dev/shm; `owner` is the process whose name it is.
    """

    __slots__ = ("descriptor", "key", "name", "owner")

    def __init__(self, descriptor: int, nbytes: int, key: str, name: str) -> None:
        self.descriptor, self.key, self.name, self.owner = descriptor, key, name, os.getpid()
        if name:
            _own_names.keep(name)
        super().__init__(descriptor, nbytes)
        if name:
            self.descriptor = -1
            os.close(descriptor)

    def __del__(self) -> None:
        super().__del__()
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1
        if self.name and self.owner == os.getpid():  # a forked child has the memory, not the name
            _own_names.forget(self.name)
            self.name = ""


class _OwnNames:
    """The names in /dev/shm that are this process's own. Those of segments that are alive when it ends are removed by multiprocessing's exit
    function, which runs in its children as well."""

    def __init__(self) -> None:
        self.process, self.names = 0, set[str]()

    def keep(self, name: str) -> None:
        """Note a name of this process."""
        if self.process != os.getpid():  # the first name here; a forked child begins anew, since it has not inherited the finalizer
            from multiprocessing import util

            self.process, self.names = os.getpid(), set()
            util.Finalize(None, self.forget_all, exitpriority=0)
        self.names.add(name)

    def forget(self, name: str) -> None:
        """Remove one."""
        if name in self.names:
            self.names.discard(name)
            remove_name(name)

    def forget_all(self) -> None:
        """Remove all: the process ends."""
        for name in tuple(self.names):
            self.forget(name)


_own_names = _OwnNames()


class SegmentLoan(Memory):
    """What of a segment is lent to arrays until the last of them dies: a batch of a DataLoader. A subclass says to whom it goes back."""

    __slots__ = ("mapping",)

    def __init__(self, mapping: Mapping, nbytes: int) -> None:
        self.mapping = mapping
        super().__init__(mapping.address, nbytes)


def memory_base(x: np.ndarray) -> Any:
    """What an array's memory belongs to: a Segment, a Lent, or whatever else is the base of all bases; None where it is numpy's own."""
    base: Any = x.base
    while base is not None and not isinstance(base, Mapping | SegmentLoan):
        below = getattr(base, "base", None)
        base = below if below is not None else getattr(base, "owner", None)
    return base


def find_segment(x: np.ndarray) -> Segment | None:
    """The segment that an array lies in and can be sent with, None for other memory."""
    base = memory_base(x)
    return base if type(base) is Segment else None


def is_shared(x: np.ndarray) -> bool:
    """Whether an array lies in memory that other processes may see."""
    return isinstance(memory_base(x), Segment | SegmentLoan)


def create(nbytes: int) -> Segment:
    """A new segment of zeros. Raises OutOfMemoryError where there is no room, nothing left behind."""
    name = new_name() if _strategy == "file_system" else ""
    descriptor = reserve_file(nbytes, name)
    if name:
        _resource_tracker().register("/" + name, "shared_memory")
    return Segment(descriptor, nbytes, os.urandom(16).hex(), name)


def reserve_file(nbytes: int, name: str = "") -> int:
    """A descriptor of `nbytes` that the system has set aside: nameless memory, by strategy the kernel's or of /dev/shm; with a name a file there.

    Raises OutOfMemoryError, nothing left behind.
    """
    where = f"{FOLDER}/{name}"
    try:
        if name:
            descriptor = os.open(where, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        elif _strategy == "file_system":
            descriptor = os.open(FOLDER, os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, 0o600)
        else:
            descriptor = os.memfd_create("tritensor", os.MFD_CLOEXEC)
    except OSError as error:
        raise no_room_error(nbytes, error) from error
    try:
        if nbytes:
            # Reserves the pages now: a sparse file would end the process by SIGBUS at its first write beyond what is free.
            os.posix_fallocate(descriptor, 0, nbytes)
    except OSError as error:
        os.close(descriptor)
        if name:
            os.unlink(where)
        raise no_room_error(nbytes, error) from error
    return descriptor


def reserve_and_map(nbytes: int) -> tuple[int, Mapping]:
    """Nameless memory: its descriptor, and where it is mapped here. Raises OutOfMemoryError."""
    descriptor = reserve_file(nbytes)
    try:
        return descriptor, Mapping(descriptor, nbytes)
    except BaseException:
        os.close(descriptor)
        raise


def no_room_error(nbytes: int, error: OSError) -> Exception:
    """What is said where a segment could not be had: how much was asked, what there is, what to do. An error of another kind is returned as it is."""
    # Descriptors run out long before memory does: each segment holds one, and the mend is another.
    if error.errno in NO_DESCRIPTOR:
        held, raised = descriptor_usage()
        return OutOfMemoryError(
            f"shared memory: no file descriptor is left for {nbytes:,} bytes ({held}): each shared tensor holds one; {raised}, or "
            "tritensor.multiprocessing.set_sharing_strategy('file_system')"
        )
    if error.errno not in _NO_ROOM:
        if _strategy != "file_system":
            return error
        text = f"shared memory: {FOLDER} takes no file ({os.strerror(error.errno or 0)}); set_sharing_strategy('file_descriptor') does not use it"
        return OSError(error.errno, text, error.filename or FOLDER)
    said = f"shared memory: no room for {nbytes:,} bytes: {os.strerror(error.errno or 0)}; {_free_memory_text()}"
    # RLIMIT_FSIZE, which limits memfd and /dev/shm files too.
    if error.errno == errno.EFBIG:
        return OutOfMemoryError(said + "; this process may not write files that large: raise ulimit -f")
    mend = "use fewer DataLoader workers, a smaller prefetch_factor or batch_size"
    if _strategy == "file_system":
        mend += ", enlarge /dev/shm (docker run --shm-size=8g), or set_sharing_strategy('file_descriptor'), which does not use it"
    return OutOfMemoryError(f"{said}; {mend}")


def descriptor_usage() -> tuple[str, str]:
    """What is held and what helps, in words: "1024 open, limit 1024" and "raise the limit (ulimit -n, up to 4096)"."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        held = f"{len(os.listdir('/proc/self/fd'))} open, "
    except OSError:  # no /proc, or not even a descriptor for this
        held = ""
    return f"{held}limit {soft}", f"raise the limit (ulimit -n, up to {hard})"


def _free_memory_text() -> str:
    found = []
    if _strategy == "file_system":
        try:
            there = os.statvfs(FOLDER)
            found.append(f"{FOLDER} has {there.f_bavail * there.f_frsize:,} bytes free of {there.f_blocks * there.f_frsize:,}")
        except OSError as error:
            found.append(f"{FOLDER}: {error.strerror}")
    try:
        with open("/proc/meminfo") as lines:
            kib = next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
        found.append(f"the machine has {kib * 1024:,} bytes available")
    except (OSError, StopIteration, ValueError) as error:
        found.append(f"what the machine has available is unknown ({error})")
    return ", ".join(found)


def new_name() -> str:
    """A file name for /dev/shm that holds the process id, so that left-over files can be attributed."""
    return f"tritensor-{os.getpid()}-{os.urandom(8).hex()}"


def remove_name(name: str) -> None:
    """Remove a name from /dev/shm, and from the resource tracker's list."""
    try:
        os.unlink(f"{FOLDER}/{name}")
    except FileNotFoundError:  # the tracker, or an administrator, was quicker: there is nothing left to remove
        return
    _resource_tracker().unregister("/" + name, "shared_memory")


def add_name(segment: Segment) -> str:
    """One more name of a segment in /dev/shm, for the process that is to receive it."""
    name = new_name()
    os.link(f"{FOLDER}/{segment.name}", f"{FOLDER}/{name}")
    _resource_tracker().register("/" + name, "shared_memory")
    return name


def take_over_name(name: str) -> str:
    """A name that was sent here, as one of this process. Raises FileNotFoundError where it is gone."""
    own = new_name()
    # Renamed, not linked anew: the sender's tracker must not remove the name that this process uses.
    os.rename(f"{FOLDER}/{name}", f"{FOLDER}/{own}")
    _resource_tracker().register("/" + own, "shared_memory")
    _resource_tracker().unregister("/" + name, "shared_memory")
    return own


def open_name(name: str) -> int:
    """A descriptor of a file in /dev/shm."""
    return os.open(f"{FOLDER}/{name}", os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
