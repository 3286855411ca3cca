"""Tape: a fused group of scalar formulas and reductions of rows as data, hashable, without arrays, sizes or numbers in it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

INDEX = np.dtype("S1")  # the type of Places among a tape's inputs, which no array of numbers has


class Places(NamedTuple):
    """An input of a tape that is read from nowhere: the place of each element in the C order of some array, int64, of which a draw makes its number.

    shape, strides: as if it were an array over the tape's space of one byte an element, so that an element's place is how far it lies from the first.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def dtype(self) -> np.dtype:
        """INDEX."""
        return INDEX

    @property
    def itemsize(self) -> int:
        """1."""
        return 1

    @property
    def ndim(self) -> int:
        """How many axes it has."""
        return len(self.shape)

    def reshape(self, shape: tuple[int, ...]) -> Places:
        """The same with more axes of one element in front."""
        return Places(shape, (0,) * (len(shape) - len(self.shape)) + self.strides)

    def numbers(self) -> np.ndarray:
        """As an array of int64."""
        found = np.zeros((1,) * self.ndim, np.int64)
        for axis, (n, step) in enumerate(zip(self.shape, self.strides, strict=True)):
            found = found + (np.arange(n) * step).reshape((n, *(1,) * (self.ndim - axis - 1)))
        return found


class Step(NamedTuple):
    """One formula of a tape: `formula(*values[k] for k in picks)`.

    formula: a scalar `@triton.jit` function of maths, as an op's corner hands it to its kernel, or a draw (random_words/draws.py), whose picks are
        places (an input of type INDEX), and the numbers seed and offset.
    picks: the places of its arguments among the tape's values.
    dtype: the type that the op by itself would store; between steps a value is rounded to it, as eager rounds.
    wide: whether the op by itself computes in float64 (some array of its own is float64, or its numbers are); floats are widened to
        float64 before the formula then, else to float32. Booleans arrive as int8, integers as they are.
    """

    formula: Any
    picks: tuple[int, ...]
    dtype: np.dtype
    wide: bool


class Fold(NamedTuple):
    """One reduction of every row: `finish(fold of map(*values[k] for k in picks), *scalars)`, see ReductionFunctions in parts/reduction.py.

    functions: a ReductionFunctions.
    picks: places of what `map` takes, in order; scalars: places of what `finish` takes after the state (values that are one per row or numbers).
    states: the types that sums are kept in; dtypes: those of the results. A fold gives as many values as it has dtypes, one per row each.
    numbers: places of what `map` takes after the index.
    """

    functions: Any
    picks: tuple[int, ...]
    scalars: tuple[int, ...]
    numbers: tuple[int, ...]
    states: tuple[np.dtype, ...]
    dtypes: tuple[np.dtype, ...]


class Tape(NamedTuple):
    """A fused group. Its values are numbered: inputs, then numbers, then what each step makes (a Step one value, a Fold one for each of its dtypes).

    inputs: the types of the arrays that it reads; INDEX where a draw's Places stand.
    numbers: the type of each number that it is given, as kernels get it: see `scalar` in parts/elementwise.py.
    steps: in an order in which each takes only what is made before it.
    stores: the places of the values that are written to results, whose types are their steps'.
    """

    inputs: tuple[np.dtype, ...]
    numbers: tuple[np.dtype, ...]
    steps: tuple[Step | Fold, ...]
    stores: tuple[int, ...]

    @property
    def folds(self) -> bool:
        """Whether it reduces rows."""
        return any([isinstance(s, Fold) for s in self.steps])

    def dtypes(self) -> tuple[np.dtype, ...]:
        """The type of every value."""
        found = [*self.inputs, *self.numbers]
        for step in self.steps:
            found += [step.dtype] if isinstance(step, Step) else step.dtypes
        return tuple(found)
