"""Start method of processes where none is given: what the program has chosen, as far as that can be known."""

from __future__ import annotations

import functools
import multiprocessing

_chosen: str | None = None


@functools.wraps(multiprocessing.set_start_method)
def set_start_method(method: str | None, force: bool = False) -> None:
    """Python's set_start_method; DataLoaders without a `multiprocessing_context` follow it, too."""
    global _chosen
    multiprocessing.set_start_method(method, force)
    _chosen = method


def chosen_method() -> str | None:
    """What the program has chosen for the whole process: here, or in `multiprocessing` itself where that is not Python's own default, which cannot
    be distinguished from no choice. None where it has not."""
    if _chosen is not None:
        return _chosen
    # Asking without allow_none would fix the default for the whole program.
    found = multiprocessing.get_start_method(allow_none=True)
    return found if found not in (None, multiprocessing.get_all_start_methods()[0]) else None
