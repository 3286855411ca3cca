"""Deferred @triton.jit: a kernel's source is read when the kernel is first used and not when its file is imported."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import triton.runtime.jit as jit

from tritensor.ground.process.locks import in_child, rlock

_Eager = jit.JITFunction
_constructing = rlock()


class DeferredJITFunction(_Eager):  # type: ignore[misc, valid-type]
    """A JITFunction whose constructor runs at the first look at anything but the function's own name.

    The constructor tokenizes the kernel's source to find its end, about 1 ms each, and a process that trains a model
    uses a tenth of the kernels; on the CPU, none.
    """

    # Triton's is that of the source and of all that it calls; equality is identity, and a table of functions must not read their sources.
    __hash__ = object.__hash__

    def __init__(self, fn: Any, *args: Any, **options: Any) -> None:
        self.__dict__.update(
            fn=fn, _deferred=(args, options), __doc__=fn.__doc__, __name__=fn.__name__, __qualname__=fn.__qualname__,
            __module__=fn.__module__, __globals__=fn.__globals__,
        )  # fmt: skip

    def __getattr__(self, name: str) -> Any:
        # Reached only for what the constructor would have set. Dunder names are asked by copy, pickle and inspect: no reason to construct.
        if not (name.startswith("__") and name.endswith("__")):
            with _constructing:
                deferred = self.__dict__.pop("_deferred", None)
                if deferred is not None:
                    args, options = deferred
                    try:
                        super().__init__(self.fn, *args, **options)
                    except BaseException:
                        self._deferred = deferred  # a source that cannot be read now is read at the next look
                        raise
                    self.constructed = True  # set last: who asks for it waits for the thread that constructs
        return object.__getattribute__(self, name)


_entered: list[int] = []  # the threads that are within deferred_jit(), once for each time


@contextmanager
def deferred_jit() -> Iterator[None]:
    """Within this, `@triton.jit` makes deferred functions. They are JITFunctions in every other respect.

    May be entered again within itself (a kernel file that imports another), and by several threads.
    """
    me = threading.get_ident()
    with _constructing:
        _entered.append(me)
        jit.JITFunction = DeferredJITFunction
    try:
        yield
    finally:
        with _constructing:
            _entered.remove(me)
            if not _entered:
                jit.JITFunction = _Eager


def _leave_in_child() -> None:
    """A forked child has none of the other threads, which would have left."""
    _entered[:] = [thread for thread in _entered if thread == threading.get_ident()]
    if not _entered:
        jit.JITFunction = _Eager


in_child(_leave_in_child)
