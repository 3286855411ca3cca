"""Items of a plan: a call as it is, with the places of arrays among its arguments; fused groups are in tapes.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tritensor.ground.device import device
from tritensor.ops.table import Op

Steps = tuple[int, ...]


class View(NamedTuple):
    """A view of an array of a plan, by its place; strides in elements, `first` in bytes."""

    place: int
    shape: tuple[int, ...]
    dtype: np.dtype
    strides: Steps
    first: int


class Whole(NamedTuple):
    """An array of a plan as it is, by its place."""

    place: int


class Memory(NamedTuple):
    """The memory of a result."""

    shape: tuple[int, ...]
    dtype: np.dtype
    strides: Steps
    device: device


class Opaque(NamedTuple):
    """A call as it is.

    given: its arguments, with Whole, View and NumberSlot in place of arrays and numbers. drawn: attributes that are the plan's numbers, by place.
    outs: the place of each result, -1 for none; results: how each is to be; lies: whether others count on its strides.
    """

    name: str
    op: Op
    corner: str
    function: Callable[..., Any] | None
    attrs: dict[str, Any]
    on: device
    given: tuple[Any, ...]
    drawn: tuple[tuple[str, int], ...]
    outs: tuple[int, ...]
    results: tuple[Memory | None, ...]
    lies: tuple[bool, ...]
    calls: tuple[int, ...]


def places_in(given: Any) -> Any:
    """The places of arrays among arguments."""
    for x in given:
        if type(x) is Whole or type(x) is View:
            yield x.place
        elif type(x) is tuple:
            yield from places_in(x)
