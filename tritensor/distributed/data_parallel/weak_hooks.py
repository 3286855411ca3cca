"""Hooks on parameters that do not keep their setter alive."""

from __future__ import annotations

import weakref
from collections.abc import Callable

from tritensor.tensor.core import Tensor


class WeakHook:
    """Calls `method(number)` of an object that still lives; one that is gone leaves its parameters alone."""

    __slots__ = ("_method", "_number")

    def __init__(self, method: Callable[[int], None], number: int) -> None:
        self._method, self._number = weakref.WeakMethod(method), number

    def __call__(self, given: Tensor) -> None:
        method = self._method()
        # A model may outlive its wrapper: a program that wraps it again must not average twice.
        if method is not None:
            method(self._number)
