"""Slots: the arrays of a program, the nodes that make and read them, and where values lie in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tritensor.fusion.graph import Call, Value
from tritensor.fusion.program.steps import Elementary
from tritensor.ground.device import device

Steps = tuple[int, ...]


class Slot:
    """An array of the program. `node` makes it; a `leaf` is given. `readers` are the nodes that read it; `wanted`: it outlives the program.

    constant: a number everywhere, which each group makes for itself. seen: whether a call, or who wants it, takes a view of it, so that it must lie as said.
    home: of a part that lies in another's memory that other, `first` bytes behind its first element.
    """

    __slots__ = (
        "constant", "device", "dtype", "first", "home", "leaf", "node", "number", "readers", "seen", "shape", "strides", "wanted",
    )  # fmt: skip

    def __init__(self, number: int, shape: tuple[int, ...], dtype: np.dtype, strides: Steps, on: device, node: Node | None) -> None:
        self.number, self.shape, self.dtype, self.strides, self.device, self.node = number, shape, dtype, strides, on, node
        self.readers: list[Node] = []
        self.wanted = self.constant = self.leaf = self.seen = False
        self.home, self.first = self, 0

    def __repr__(self) -> str:
        return f"Slot({self.number}, {self.dtype} {self.shape})"


class SlotRead(NamedTuple):
    """An array that a step reads, over its axes; `first` in bytes."""

    slot: Slot
    first: int
    dtype: np.dtype
    strides: Steps

    @property
    def inlined(self) -> bool:
        """Whether it is of a constant, which is made anew in place of the read; bytes of one are read from memory."""
        return self.slot.constant and self.dtype == self.slot.dtype


class Node:
    """A step of a call, or (`step` None) a whole call, or (`joins`) what says that all parts of its slot are there, which nobody runs.

    reads: of a step in the order of its own reads, of a call each slot once. numbers: of a step, constants or NumberSlots.
    """

    __slots__ = ("call", "device", "joins", "live", "made", "numbers", "place", "reads", "step")

    def __init__(self, place: int, call: int, step: Elementary | None, on: device) -> None:
        self.place, self.call, self.step, self.device = place, call, step, on
        self.reads: list[SlotRead] = []
        self.numbers: list[Any] = []
        self.made: list[Slot | None] = []
        self.live = self.joins = False

    def __repr__(self) -> str:
        return f"Node({self.place}, call {self.call}{'' if self.step is None else ', a step'})"


class Lain(NamedTuple):
    """An array in a slot: a view of it, `first` in bytes."""

    slot: Slot
    shape: tuple[int, ...]
    dtype: np.dtype
    strides: Steps
    first: int

    @property
    def whole(self) -> bool:
        """Whether it is the slot as it is."""
        slot = self.slot
        return self.first == 0 and self.strides == slot.strides and self.shape == slot.shape and self.dtype == slot.dtype


class NumberSlot(NamedTuple):
    """A number of the program, by place, as a kernel gets it: `kind(number)`; kind None: as it is."""

    place: int
    kind: Any


class Called(NamedTuple):
    """A call as it is: its arguments with Lain and NumberSlot in place of arrays and numbers, the attributes that are numbers of the program, by place,
    and where its results lie."""

    given: tuple[Any, ...]
    drawn: tuple[tuple[str, int], ...]
    results: tuple[Lain | None, ...]


class Program(NamedTuple):
    """calls: as they were given. called: each with its operands. wanted: for each value that outlives the program where it lies. numbers: how many there are.
    opaque: of calls that stay whole, why."""

    calls: Sequence[Call]
    called: list[Called]
    nodes: list[Node]
    slots: list[Slot]
    leaves: list[Value]
    wanted: list[tuple[Value, Lain]]
    numbers: int
    opaque: dict[int, str]
