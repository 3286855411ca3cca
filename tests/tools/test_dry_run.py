"""The stand-in for numpy's generator where launches are recorded: its shapes and types for every method, spelled every way."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from tritensor.tools.dry_run import Shapes

REAL = np.random.default_rng(0)
TABLE = np.arange(24.0).reshape(2, 3, 4)
# What a method needs beside `size`; nothing where it is not named.
NEEDS: dict[str, tuple[Any, ...]] = {
    "beta": (1.0, 2.0), "binomial": (5, 0.5), "chisquare": (3.0,), "choice": (9,), "dirichlet": ([1.0, 2.0, 3.0],), "f": (2.0, 3.0),
    "gamma": (2.0,), "geometric": (0.5,), "hypergeometric": (5, 6, 3), "integers": (0, 9), "logseries": (0.5,),
    "multinomial": (9, [0.2, 0.8]), "multivariate_hypergeometric": ([4, 5, 6], 3), "multivariate_normal": ([0.0, 1.0], np.eye(2)),
    "negative_binomial": (5, 0.5), "noncentral_chisquare": (2.0, 1.0), "noncentral_f": (2.0, 3.0, 1.0), "pareto": (2.0,), "power": (2.0,),
    "standard_gamma": (2.0,), "standard_t": (3.0,), "triangular": (0.0, 1.0, 2.0), "vonmises": (0.0, 1.0), "wald": (1.0, 1.0),
    "weibull": (2.0,), "zipf": (2.0,),
}  # fmt: skip
DRAWS = [n for n in dir(REAL) if n[0] != "_" and callable(getattr(REAL, n)) and "size" in inspect.signature(getattr(REAL, n)).parameters]


@pytest.mark.parametrize("name", DRAWS)
def test_every_draw_has_the_shape_and_type_of_numpys(name: str) -> None:
    needs = NEEDS.get(name, ())
    names = list(inspect.signature(getattr(REAL, name)).parameters)
    for size in ((2, 3), (), 4, np.int64(4), [2, 3], None):
        want = np.asarray(getattr(REAL, name)(*needs, size=size))
        by_name = np.asarray(getattr(Shapes(), name)(*needs, size=size))
        assert (by_name.shape, by_name.dtype) == (want.shape, want.dtype), size
    defaults = [p.default for p in inspect.signature(getattr(REAL, name)).parameters.values()][len(needs) : names.index("size")]
    by_place = getattr(Shapes(), name)(*needs, *defaults, (5, 2))
    assert by_place.shape == getattr(REAL, name)(*needs, *defaults, (5, 2)).shape


def test_a_type_is_no_shape_and_takes_no_memory() -> None:
    for x in (
        Shapes().standard_normal((1 << 20, 1 << 20), np.float32),
        Shapes().random((1 << 20, 1 << 20), dtype=np.float32),
        Shapes().standard_gamma(2.0, (1 << 20, 1 << 20), np.float32),
    ):
        assert x.shape == (1 << 20, 1 << 20)
        assert x.dtype == np.float64, "the type under test"
        assert x.strides == (0, 0)
    assert Shapes().integers(0, 9, (3, 4), np.int32).dtype == np.int32
    assert Shapes().integers(2, size=1 << 50).shape == (1 << 50,)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_choice_along_an_axis(axis: int) -> None:
    assert Shapes().choice(TABLE, (5, 6), axis=axis).shape == REAL.choice(TABLE, (5, 6), axis=axis).shape


def test_what_draws_no_array_of_a_size_is_numpys() -> None:
    assert sorted(Shapes().permutation(5)) == list(range(5))
    out = np.empty(3, np.float32)
    assert Shapes().standard_normal(out=out, dtype=np.float32) is out
    assert Shapes().uniform([0.0, 1.0, 2.0], 3.0, (2, 3)).shape == (2, 3)
