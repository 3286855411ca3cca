"""Kernels with arguments and numpy's answer, as the files of kernels beside this one register them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Case(NamedTuple):
    """A kernel, its arguments, what the last of them hold afterwards, and the launch's grid and constants."""

    kernel: Any
    args: tuple[Any, ...]
    want: tuple[np.ndarray, ...]
    grid: tuple[int, ...]
    constants: dict[str, Any]


CASES: list[Case] = []


def case(args: tuple[Any, ...], *want: Any, grid: tuple[int, ...] = (1,), **constants: Any) -> Callable[[Any], Any]:
    """Register the kernel below."""

    def register(kernel: Any) -> Any:
        CASES.append(Case(kernel, args, tuple(np.asarray(w) for w in want), grid, constants))
        return kernel

    return register


def out(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.zeros(shape, dtype)
