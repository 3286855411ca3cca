"""torch.quasirandom: the Sobol sequence, also scrambled (Sobol 1967; direction numbers of Joe and Kuo 2008; scrambling after Owen 1998)."""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.dtypes import as_dtype
from tritensor.ground.errors import ArgumentError
from tritensor.random import Generator, default_generator
from tritensor.tensor.core import Tensor, new_tensor
from tritensor.tensor.public_api.publish import public


class SobolEngine:
    """Points of the Sobol sequence in [0, 1)^dimension, of which each power of two first ones fills the cube evenly.

    `scramble=True` permutes its digits at random, `seed` says how; the points are others than PyTorch's of that seed, which has other random numbers. The
    direction numbers are read from scipy, which must be installed. Raises ValueError for a dimension that is not 1 to 21201.
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ArgumentError(
                f"SobolEngine: dimension is {dimension}; Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]"
            )
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        directions = _directions(dimension, self.MAXBIT)
        shift = np.zeros(dimension, np.int64)
        if scramble:
            directions, shift = self._scrambled(directions)
        self.sobolstate: Tensor = new_tensor(directions)
        self.shift: Tensor = new_tensor(shift)
        self.quasi: Tensor = new_tensor(shift.copy())
        self.num_generated = 0

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next n points, (n, dimension), in a floating dtype or the default one."""
        kind = dtypes.default_float() if dtype is None else as_dtype(dtype)
        whole = self._points(self.num_generated, n)
        result = new_tensor((whole.astype(kind.numpy) * kind.numpy.type(2.0**-self.MAXBIT)).astype(kind.numpy))
        self._advance(n)
        return result if out is None else out.resize_as_(result).copy_(result)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next 2**m points. Raises ValueError where all that were drawn would be no power of two."""
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ArgumentError(
                f"SobolEngine: {self.num_generated} points were drawn, with 2**{m} more they are {total}; The balance properties of Sobol' points "
                "require n to be a power of 2; use draw"
            )
        return self.draw(n, out, dtype)

    def reset(self) -> SobolEngine:
        """Back to the first point."""
        self.num_generated = 0
        self.quasi = self.shift.clone()
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Leave n points out."""
        self._advance(n)
        return self

    def _advance(self, n: int) -> None:
        self.num_generated += n
        if self.num_generated:
            self.quasi = new_tensor(self._points(self.num_generated - 1, 1)[0])

    def _points(self, first: int, n: int) -> np.ndarray:
        """Points as integers of MAXBIT bits: the directions at the ones of the Gray code of a point's number, added without carry."""
        number = np.arange(first, first + n, dtype=np.int64)
        gray, directions = number ^ (number >> 1), np.asarray(self.sobolstate._array)
        points = np.repeat(np.asarray(self.shift._array)[None], n, 0)
        for bit in range(int(gray.max(initial=0)).bit_length()):
            points ^= np.where((gray >> bit & 1).astype(bool)[:, None], directions[:, bit], 0)
        return points

    def _scrambled(self, directions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Directions times a random lower triangular matrix of bits with ones on its diagonal, for each dimension, and a random first point."""
        generator = default_generator if self.seed is None else Generator().manual_seed(self.seed)
        powers = 1 << np.arange(self.MAXBIT, dtype=np.int64)
        draw = functools.partial(public["randint"], 2, generator=generator)
        shift = np.asarray(draw((self.dimension, self.MAXBIT))._array) @ powers
        matrix = np.tril(np.asarray(draw((self.dimension, self.MAXBIT, self.MAXBIT))._array), -1) + np.eye(self.MAXBIT, dtype=np.int64)
        digits = directions[:, None, :] >> np.arange(self.MAXBIT)[::-1, None] & 1  # (dimension, digit, direction), the highest first
        return ((matrix @ digits) % 2 * powers[::-1, None]).sum(1), shift

    def __repr__(self) -> str:
        parts = [f"dimension={self.dimension}", *["scramble=True"] * self.scramble, *[f"seed={self.seed}"] * (self.seed is not None)]
        return f"{type(self).__name__}({', '.join(parts)})"


def _directions(dimension: int, bits: int) -> np.ndarray:
    """(dimension, bits): the direction numbers, of which those after a polynomial's degree follow from the ones before."""
    polynomials, given = _joe_kuo()
    v = np.ones((dimension, bits), np.int64)  # of the first dimension all are 1
    for d in range(1, dimension):
        polynomial = int(polynomials[d])
        degree = polynomial.bit_length() - 1
        v[d, :degree] = given[d, :degree]
        for j in range(degree, bits):
            new = int(v[d, j - degree])
            for k in range(1, degree + 1):
                if polynomial >> degree - k & 1:
                    new ^= int(v[d, j - k]) << k
            v[d, j] = new
    return v << np.arange(bits)[::-1]  # type: ignore[no-any-return]


@functools.cache
def _joe_kuo() -> tuple[np.ndarray, np.ndarray]:
    found = importlib.util.find_spec("scipy")
    file = (
        Path(next(iter(found.submodule_search_locations or [""])), "stats", "_sobol_direction_numbers.npz") if found is not None else None
    )
    if file is None or not file.exists():
        raise ImportError("SobolEngine: the direction numbers are read from scipy, which is not installed; pip install scipy")
    with np.load(file) as data:
        return data["poly"], data["vinit"]
