"""Shapes that counterparts come in: torch's function under the op's name, in torch, torch.special or torch.nn.functional."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Peer = Callable[..., Any]  # (torch, *inputs, **attrs) -> result


def named(*names: str) -> dict[str, Peer]:
    """Ops that torch calls by the same name with the same positional inputs."""
    return {n: lambda t, *xs, n=n: getattr(t, n)(*xs) for n in names}


def special(*names: str) -> dict[str, Peer]:
    """The same in torch.special."""
    return {n: lambda t, *xs, n=n: getattr(t.special, n)(*xs) for n in names}


def functional(*names: str) -> dict[str, Peer]:
    """The same in torch.nn.functional, attributes by name."""
    return {n: lambda t, *xs, n=n, **attrs: getattr(t.nn.functional, n)(*xs, **attrs) for n in names}


def keyword(*names: str) -> dict[str, Peer]:
    """The same in torch, attributes by name."""
    return {n: lambda t, *xs, n=n, **attrs: getattr(t, n)(*xs, **attrs) for n in names}


def renamed(f: Callable[[Any], Callable[..., Any]], **attributes: str) -> Peer:
    """A function of torch, `f(torch)`, that calls an op's attributes otherwise: ours=theirs."""
    return lambda t, *xs, **attrs: f(t)(*xs, **{attributes.get(k, k): v for k, v in attrs.items()})


def dtype_of(t: Any, dtype: Any) -> Any:
    """torch's type for numpy's."""
    return getattr(t, str(np.dtype(dtype)))
