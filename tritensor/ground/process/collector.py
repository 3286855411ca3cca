"""Garbage collector: what an import makes stays, and is not walked over again and again."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def settling() -> Iterator[None]:
    """Within the block nothing is collected, and what is there at its end counts as old, as if it had outlived many collections: those would take a fifth
    of an import's time. Where the program has its own way with the collector nothing is done."""
    if not gc.isenabled() or gc.get_freeze_count():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()  # moves all that there is out of the young generations, and looks at none of it
        gc.unfreeze()  # to the oldest, of which what is dead is found as ever
        gc.enable()
