"""Time steps of sequences that lie one step after the other, the longest first: the rows of each, and the states before them.

Of `batch_sizes` (b0, b1, ...) the first b0 rows are time step 0, the next b1 step 1, and so on; sizes never grow. A row of the state serves one
sequence throughout, so a step of b rows reads and writes the first b rows of it: a sequence that has ended, or, backwards in time, has not begun,
keeps its row as it is.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tritensor.ground.errors import ShapeError
from tritensor.kernels.parts.view_arithmetic import zero_tensor
from tritensor.ops.table import ops, refuse_kind, refuse_mixed


class Rows(NamedTuple):
    """A matrix in a loop over time: `moving` if each step has rows of its own, else the first rows serve every step."""

    x: Any  # (rows, n), elements of a row side by side
    moving: bool


def steps(batch_sizes: Sequence[int], reverse: bool) -> list[tuple[int, int]]:
    """(first row, number of rows) of each time step, in the order in which they are computed."""
    starts = itertools.accumulate(batch_sizes, initial=0)
    found = list(zip(starts, batch_sizes, strict=False))
    # backwards in time the last step is computed first
    return found[::-1] if reverse else found


def _pieces(batch_sizes: Sequence[int], reverse: bool) -> list[tuple[bool, int, int]]:
    """Where the states before all rows stand, in the order of the rows: (of the first state, else of the results; from row, to row)."""
    found: list[tuple[bool, int, int]] = []
    before = [(0, 0), *zip(itertools.accumulate(batch_sizes, initial=0), batch_sizes, strict=False)]
    after = [*before[2:], (0, 0)]
    for i, size in enumerate(batch_sizes):
        # backwards in time a shorter step comes after: rows that it has not computed still hold their first state
        start, known = after[i] if reverse else before[i]
        known = min(known, size)
        for piece in ((False, start, start + known), (True, known, size)):
            if piece[1] == piece[2]:
                continue
            # pieces that follow one another are one: of equal lengths a sequence's states are two pieces, whatever its length
            if found and found[-1][0] == piece[0] and found[-1][2] == piece[1]:
                found[-1] = (piece[0], found[-1][1], piece[2])
            else:
                found.append(piece)
    return found


def states_before(first: Any, results: Any, batch_sizes: Sequence[int], reverse: bool, run: Callable[..., Any]) -> Any:
    """The state before each row, (rows, size), out of the first state and the results; `run(name, *arrays, dim=0)` runs an op."""
    parts = [(first if of_first else results)[a:b] for of_first, a, b in _pieces(batch_sizes, reverse)]
    return run("cat", *parts, dim=0) if parts else first[:0]


def check_shapes(name: str, gates: int, x: Any, w: Any, size: int, batch_sizes: Sequence[int], **states: Any) -> None:
    """Refuse shapes and types that do not fit: x (rows, gates * size), w (gates * size, inner), states (batch, their size)."""
    given = f"{name}: x {tuple(x.shape)}, w {tuple(w.shape)}, " + ", ".join(f"{k} {tuple(s.shape)}" for k, s in states.items())
    for label, s in (("x", x), ("w", w), *states.items()):
        if len(s.shape) != 2:
            raise ShapeError(f"{given}: {label} must have two dimensions; reshape it")
    if x.shape[1] != gates * size or w.shape[0] != gates * size:
        raise ShapeError(f"{given}: x's last size and w's first must be {gates} times the state's {size}; give ({gates * size})")
    h = states["h"]
    if w.shape[1] != h.shape[1]:
        raise ShapeError(f"{given}: w's last size {w.shape[1]} is not the last of h, {h.shape[1]}; transpose w, or give another h")
    # a projection makes the state another size than what comes out, and happens behind each step
    if h.shape[1] != size and len(batch_sizes) != 1:
        raise ShapeError(f"{given}: a state h of {h.shape[1]} where {size} come out serves a single time step; call it step by step")
    said = f"{given}, batch_sizes {tuple(batch_sizes)}"
    if not batch_sizes or any(a < b for a, b in itertools.pairwise(batch_sizes)) or min(batch_sizes) < 0:
        raise ShapeError(f"{said}: give the size of at least one time step, and none larger than the one before")
    if sum(batch_sizes) != x.shape[0] or any(s.shape[0] != batch_sizes[0] for s in states.values()):
        raise ShapeError(f"{said}: they must add up to x's rows, {x.shape[0]}, and the first is the number of rows of the states")
    refuse_mixed(name, ("x", x), ("w", w), *states.items())
    refuse_kind(name, x.dtype, ("float",))


def sigmoid(x: np.ndarray) -> np.ndarray:
    """1 / (1 + e^-x), for the references."""
    return 1 / (1 + np.exp(-x))


# For rules, on Tensors.
def run_op(name: str, *xs: Any, **attrs: Any) -> Any:
    """An op by its name, as both backends of time_loop.py run it."""
    return getattr(ops, name)(*xs, **attrs)


def concatenate_rows(*xs: Any) -> Any:
    """Rows of all, one after the other."""
    return ops.cat(*xs, dim=0) if len(xs) > 1 else xs[0]


def replace_first_rows(state: Any, new: Any) -> Any:
    """The state with new first rows."""
    n = new.shape[0]
    # sequences of one length, the common case: nothing is joined
    return new if n == state.shape[0] else ops.cat(new, state[n:], dim=0)


def fill_missing(g: tuple[Any, ...], likes: tuple[Any, ...]) -> tuple[Any, ...]:
    """The gradients of several outputs, zeros for those that did not come."""
    return tuple(zero_tensor(t.shape, t) if x is None else x for x, t in zip(g, likes, strict=True))
