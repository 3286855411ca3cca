"""Arguments of the programs, and how what they return is looked at."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

PROGRAMS: dict[str, Callable[..., Any]] = {}


def program(f: Callable[..., Any]) -> Callable[..., Any]:
    """(T, F, x): the library, its func, and x(*shape), which draws a tensor, the same in both."""
    PROGRAMS[f.__name__] = f
    return f


def drawing(T: Any, seed: int) -> Callable[..., Any]:
    rng = np.random.default_rng(seed)
    return lambda *shape: T.from_numpy(np.asarray(rng.standard_normal(shape)))


def leaves(found: Any) -> list[Any]:
    if isinstance(found, dict):
        return [y for k in found for y in leaves(found[k])]
    if isinstance(found, tuple | list):
        return [y for x in found for y in leaves(x)]
    return [found]


def asked(f: Callable[..., Any], T: Any) -> Any:
    """What a program gives, or the class of what it raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [y.detach().numpy(force=True) if hasattr(y, "detach") else y for y in leaves(f(T, T.func, drawing(T, 7)))]
