"""Locks of this process's threads, and what a fork does to them: the child has one thread, and none of those that held a lock or were importing a file."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

_made: weakref.WeakSet[Any] = weakref.WeakSet()
_over_forks: list[Any] = []
_mending: list[Callable[[], Any]] = []


def lock() -> threading.Lock:
    """A lock that is free in a forked child, whoever held it: its holder is not there. What it guards is whole in the child where one assignment makes
    it visible; where it takes more, `in_child` mends what a holder left half done."""
    made = threading.Lock()
    _made.add(made)
    return made


def rlock() -> Any:
    """The same, which one thread may take several times; the thread that forks keeps it."""
    made = threading.RLock()
    _made.add(made)
    return made


def held_over_forks() -> Any:
    """A lock that a fork waits for, of work that must not be cut in two: code outside of Python that has locks of its own. Its holder may wait for
    nothing else, not for an import either; of other libraries some hold their locks over forks, too."""
    made = rlock()
    _over_forks.append(made)
    return made


def in_child(mend: Callable[[], Any]) -> None:
    """Call `mend()` in every forked child, once the locks are free."""
    _mending.append(mend)


def being_imported(module: str) -> bool:
    """Whether a module's file is being run now, by this thread or another one."""
    found = sys.modules.get(module)
    return found is not None and _is_begun(found)


def was_imported(module: str) -> bool:
    """Whether a module's file has been run to its end."""
    found = sys.modules.get(module)
    return found is not None and not _is_begun(found)


def _is_begun(module: Any) -> bool:
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


# -- imports and forks
_PATIENCE = 1.0  # seconds that an import waits for a fork, which may wait for what this thread has begun
_gate = rlock()  # closed while a fork waits for imports to end
_registering = lock()


class _Here(threading.local):
    depth = 0  # of imports that this thread has begun

    def __init__(self) -> None:
        self.taken: list[Any] = []  # locks that it holds over its fork


_here = _Here()
_waits = False


@contextlib.contextmanager
def importing() -> Iterator[None]:
    """Around a late import of much. A fork waits for its end, and for all that it imports and begins; it waits where a fork has begun.

    Python calls what is registered last first. So this is registered behind logging's, which holds a lock over the fork that an import may wait for.
    """
    global _waits
    if not _waits:
        import logging  # noqa: F401

        with _registering:
            if not _waits:
                os.register_at_fork(before=_wait_for_imports)
                _waits = True
    if not _here.depth and _gate.acquire(timeout=_PATIENCE):
        _gate.release()
    _here.depth += 1
    try:
        yield
    finally:
        _here.depth -= 1


def _wait_for_imports() -> None:
    """Let no further import begin, and wait for ours that have. Python waits neither for this thread's own nor for a thread that waits for this one."""
    _gate.acquire()  # first: what is begun must end, and nothing new may begin meanwhile
    _here.taken.append(_gate)
    package, seen = __name__.partition(".")[0], set()
    while begun := [n for n in tuple(sys.modules) if n.partition(".")[0] == package and n not in seen and being_imported(n)]:
        for name in begun:
            seen.add(name)
            # of a file that cannot be imported the thread is told that does so, and the next one that asks
            with contextlib.suppress(Exception):
                __import__(name)


def _before_fork() -> None:
    for made in tuple(_over_forks):
        made.acquire()
        _here.taken.append(made)


def _after_fork() -> None:
    while _here.taken:
        _here.taken.pop().release()


def _in_child() -> None:
    _after_fork()
    for made in tuple(_made):
        # the forking thread's own stay held: it is inside what they guard
        if not (hasattr(made, "_is_owned") and made._is_owned()):
            made._at_fork_reinit()
    _forget_half_imported()
    for mend in tuple(_mending):
        mend()


def _forget_half_imported() -> None:
    """Forget the files that threads of the parent were importing: who asked for one would wait for its thread for ever; now it is imported anew.

    Few are left of those within `importing()`. Ours are not the only ones: a file of ours may have been waiting for one of Triton's.
    """
    me, locks = threading.get_ident(), sys.modules["importlib._bootstrap"]._module_locks
    for name, lock in tuple(locks.items()):
        held = lock()
        if held is not None and held.owner not in (None, me):
            del locks[name]
            if being_imported(name):  # else it was only looked for
                del sys.modules[name]


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)
