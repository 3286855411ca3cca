"""Amount of work in the GPU's tests: in full on the real device, a little where tests/sabotage/test_gpu_suite.py tries them on the emulated one."""

from __future__ import annotations

from typing import TypeVar

from tritensor.cuda.runtime.active import emulated

T = TypeVar("T")


def real() -> bool:
    """Whether device cuda is a GPU."""
    return not emulated()


def scaled(full: T, few: T) -> T:
    """`full` on a GPU, `few` on the emulated device."""
    return full if real() else few
