"""Every public function that takes a dim, over a tensor without dimensions, with each dim from -3 to 2: torch's answer, or both refuse."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import torch

import tritensor as tt
from tritensor.tensor.public_api.publish import public

pytestmark = pytest.mark.peer

# What stands behind the tensor in a call: T is the library, d the dim. Functions that are not named here are called f(x, d).
CALLS: dict[str, list[str]] = {
    "select": ["x, d, 0"],
    "narrow": ["x, d, 0, 1"],
    "split": ["x, 1, d"],
    "split_with_sizes": ["x, [1], d"],
    "chunk": ["x, 1, d"],
    "tensor_split": ["x, 1, d"],
    "transpose": ["x, d, 0", "x, -1, d"],
    "swapaxes": ["x, d, 0"],
    "swapdims": ["x, d, 0"],
    "movedim": ["x, d, 0", "x, 0, d", "x, (d,), (0,)"],
    "moveaxis": ["x, d, 0"],
    "permute": ["x, (d,)", "x, ()"],
    "flip": ["x, (d,)", "x, ()"],
    "roll": ["x, 1", "x, 1, d", "x, (1,), (d,)"],
    "flatten": ["x, d, d"],
    "unflatten": ["x, d, (1,)"],
    "index_select": ["x, d, T.tensor([0])", "x, d, T.tensor(0)", "x, d, T.tensor([0, 0])"],
    "index_add": ["x, d, T.tensor(0), T.tensor(1.0)"],
    "index_copy": ["x, d, T.tensor([0]), T.tensor([1.0])", "x, d, T.tensor(0), T.tensor(1.0)", "x, d, T.tensor([0]), T.tensor(1.0)"],
    "index_fill": ["x, d, T.tensor([0]), 5.0", "x, d, T.tensor(0), 5.0"],
    "gather": ["x, d, T.tensor(0)", "x, d, T.tensor([0, 0])", "x, d, T.tensor([[0]])", "x, d, T.zeros(0, dtype=T.int64)", "T.ones(3), d, T.tensor(1)"],
    "scatter": [
        "x, d, T.tensor(0), T.tensor(5.0)", "x, d, T.tensor([0]), T.tensor([5.0])", "x, d, T.tensor([0]), T.tensor(5.0)", "x, d, T.tensor([0]), 5.0",
        "T.ones(3), d, T.tensor(1), T.tensor(5.0)", "x, d, T.tensor([0, 0]), T.tensor([5.0, 6.0]), reduce='multiply'",
    ],
    "scatter_add": ["x, d, T.tensor(0), T.tensor(5.0)", "x, d, T.tensor([0, 0]), T.tensor([5.0, 6.0])"],
    "take_along_dim": ["x, T.tensor(0), d", "x, T.tensor([0]), d", "x, T.tensor([0])", "x, T.tensor(0)"],
    "repeat_interleave": ["x, 2, d", "x, 2"],
    "stack": ["[x, x], d"],
    "cat": ["[x, x], d"],
    "concat": ["[x, x], d"],
    "concatenate": ["[x, x], d"],
    "norm": ["x, 2, d", "x, 1, (d,)", "x"],
    "masked_scatter": ["x, T.tensor(True), T.tensor([5.0])", "x, T.tensor(False), T.tensor(5.0)"],
    "var": ["x, d", "x, (d,)", "x", "x, d, correction=0"],
    "std": ["x, d", "x", "x, d, correction=0"],
    "sum": ["x, d", "x, (d,), keepdim=True", "x, (d, d)", "x, ()"],
    "rot90": ["x, 1, (d, 0)"],
    "diagonal": ["x, 0, d, 0"],
    "diag_embed": ["x, 0, d, 0"],
    "tensordot": ["x, x, 0"],
    "tile": ["x, (2,)", "x, ()"],
    "unfold": [],
    "take_along_axis": [],
    "expand_dims": [],
    "nanmean": ["x, d"],
    "softmax": ["x, d"],
}  # fmt: skip
METHODS = {"unfold": ["d, 1, 1", "d, 0, 1", "d, 2, 1"], "size": ["d"]}


def with_a_dim() -> list[str]:
    """Names of the public functions that take dim, dims or dimension, and are torch's too."""
    found = []
    for name, f in sorted(public.items()):
        parameters = inspect.signature(f).parameters
        if {"dim", "dims", "dimension", "dim0", "source"} & set(parameters) and hasattr(torch, name):
            found.append(name)
    return found


def outcome(library: Any, expression: str, d: int) -> Any:
    x = library.tensor(2.0)
    try:
        y = eval(expression, {"T": library, "x": x, "d": d})
    except (IndexError, RuntimeError, TypeError, ValueError) as error:
        return type(error)
    parts = y if isinstance(y, tuple) else (y,)
    return [(tuple(p.shape), str(p.dtype).split(".")[-1], np.asarray(p.numpy())) if hasattr(p, "dtype") else p for p in parts]


def compare(expression: str) -> None:
    for d in range(-3, 3):
        want, got = outcome(torch, expression, d), outcome(tt, expression, d)
        if isinstance(want, type) or isinstance(got, type):
            assert isinstance(want, type), f"{expression} with d={d}: {got}, torch gives {want}"
            assert isinstance(got, type), f"{expression} with d={d}: {got}, torch raises {want.__name__}"
            continue
        assert len(want) == len(got)
        for a, b in zip(want, got, strict=True):
            if not isinstance(a, tuple):
                assert a == b
                continue
            assert a[:2] == b[:2], f"{expression} with d={d}: {b}, torch gives {a}"
            np.testing.assert_allclose(b[2], a[2], err_msg=f"{expression} with d={d}")


@pytest.mark.parametrize("name", sorted({*with_a_dim(), *(n for n in CALLS if hasattr(torch, n))}))
@pytest.mark.filterwarnings("ignore")
def test_functions(name: str) -> None:
    for arguments in CALLS.get(name, ["x, d"]):
        compare(f"T.{name}({arguments})")


@pytest.mark.parametrize("name", sorted(METHODS))
def test_methods(name: str) -> None:
    for arguments in METHODS[name]:
        compare(f"x.{name}({arguments})")


def test_the_walk_meets_the_usual_ones() -> None:
    assert {"sum", "cumsum", "softmax", "gather", "movedim", "flip", "argmax", "index_select", "unsqueeze"} <= set(with_a_dim()) | set(
        CALLS
    )
