"""Deferred @triton.jit: a kernel's source is read when the kernel is first used and not when its file is imported."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import triton.runtime.jit as jit

_Eager = jit.JITFunction
_constructing = threading.RLock()


class DeferredJITFunction(_Eager):  # type: ignore[misc, valid-type]
    """A JITFunction whose constructor runs at the first look at anything but the function's own name.

    The constructor tokenizes the kernel's source to find its end, about 1 ms each, and a process that trains a model
    uses a tenth of the kernels; on the CPU, none.
    """

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
                    super().__init__(self.fn, *args, **options)
                    self.constructed = True  # set last: who asks for it waits for the thread that constructs
        return object.__getattribute__(self, name)


_depth = 0


@contextmanager
def deferred_jit() -> Iterator[None]:
    """Within this, `@triton.jit` makes deferred functions. They are JITFunctions in every other respect.

    May be entered again within itself (a kernel file that imports another), and by several threads.
    """
    global _depth
    with _constructing:
        _depth += 1
        jit.JITFunction = DeferredJITFunction
    try:
        yield
    finally:
        with _constructing:
            _depth -= 1
            if not _depth:
                jit.JITFunction = _Eager
