"""torch.distributed.elastic.multiprocessing.errors: what wraps the main function of a script that torchrun may start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])


def record(fn: _Function, error_handler: Any = None) -> _Function:
    """`@record def main(): ...`: the function itself. Its errors rise as they are: no launcher reads a file of them."""
    return fn
