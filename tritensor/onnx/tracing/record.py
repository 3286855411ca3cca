"""Records of a trace: inputs, constants, and calls of ops with their results."""

from __future__ import annotations

from types import CodeType
from typing import Any

import numpy as np

from tritensor.ground.call_site import file_and_line, line_of


class Item:
    """A value of a trace: its shape and numpy dtype as they were, and whether it depends on an input (or on chance)."""

    __slots__ = ("depends", "dtype", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any], depends: bool) -> None:
        self.shape, self.dtype, self.depends = tuple(shape), dtype, depends


class TracedInput(Item):
    """An input, by its place among all of them."""

    __slots__ = ("place",)

    def __init__(self, place: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        super().__init__(shape, dtype, True)
        self.place = place


class Constant(Item):
    """A tensor that the function had from elsewhere: `name` is that of the state_dict, or empty; `values` are those of when it was read."""

    __slots__ = ("line", "name", "values")

    def __init__(self, name: str, values: np.ndarray, line: str) -> None:
        super().__init__(values.shape, values.dtype, False)
        self.name, self.values, self.line = name, values, line


class Result(Item):
    """One output of a call. `tensor`: what it was, where it does not depend on an input and may stand as a constant."""

    __slots__ = ("call", "place", "tensor")

    def __init__(self, call: Call, place: int, shape: tuple[int, ...], dtype: np.dtype[Any], depends: bool, tensor: Any) -> None:
        super().__init__(shape, dtype, depends)
        self.call, self.place = call, place
        self.tensor: Any = None if depends else tensor  # activations are not held


class Call:
    """One call of an op: `inputs` are Items, Python numbers or None; `scope` the module it stood in, `at` the user's instruction."""

    __slots__ = ("at", "attrs", "inputs", "name", "number", "results", "scope")

    def __init__(
        self, name: str, number: int, inputs: tuple[Any, ...], attrs: dict[str, Any], scope: str, at: tuple[CodeType, int]
    ) -> None:  # fmt: skip
        self.name, self.number, self.inputs, self.attrs, self.scope, self.at = name, number, inputs, attrs, scope, at
        self.results: list[Result] = []

    @property
    def line(self) -> str:
        """ "model.py:42": the user's line that called."""
        return file_and_line(*line_of(*self.at))

    @property
    def where(self) -> str:
        """The module and the line, for a message."""
        return f"in {self.scope or 'the model itself'} ({self.line})"
