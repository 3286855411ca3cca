"""Walks along rows: which steps of a row tape vary along columns, on which way along a row each is needed, and how much a row's values take."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from tritensor.kernels.parts.tapes.separate_steps import taken_by
from tritensor.kernels.parts.tapes.tape import Fold, Tape


class Walk(NamedTuple):
    """One way along the rows: bit k of `inputs` and `steps` says that input or step k is needed there. folds: the steps that are folded; states: how many
    states the ones before each have. after: the steps of values per row that can be computed when it is over, as bits; of the last walk, which is for
    results that vary along columns, 0, and -1 where there are none."""

    inputs: int
    steps: int
    folds: tuple[int, ...]
    states: tuple[int, ...]
    after: int


class Walks(NamedTuple):
    """How rows that are too long for registers are walked: once for each level of folds, and a last time for results that vary along columns.

    made: how many values the steps make. before: the steps that need no walk, as bits. walks: see Walk. last: the number of the last one.
    """

    made: int
    before: int
    walks: tuple[tuple[Any, ...], ...]
    last: int


class _Values(NamedTuple):
    """What is known of a tape's values before it runs. along: whether each varies along columns. depth: the walks that must be over before it is known.
    maker: the step that makes it, -1 of inputs and numbers."""

    along: list[bool]
    depth: list[int]
    maker: list[int]


def _values_of(tape: Tape, along: tuple[bool, ...]) -> _Values:
    """`along`: whether each input varies along columns."""
    found = _Values(
        [*along, *(False for _ in tape.numbers)], [0] * (len(along) + len(tape.numbers)), [-1] * (len(along) + len(tape.numbers))
    )
    for k, step in enumerate(tape.steps):
        depth = max([found.depth[p] for p in taken_by(step)], default=0)
        for _ in step.dtypes if isinstance(step, Fold) else (step.dtype,):
            found.along.append(not isinstance(step, Fold) and any([found.along[p] for p in step.picks]))
            found.depth.append(depth + isinstance(step, Fold))
            found.maker.append(k)
    return found


def _needed(tape: Tape, values: _Values, places: Sequence[int]) -> tuple[int, int]:
    """The inputs and steps, as bits, whose values at some columns those at `places` are made of."""
    inputs, steps, left = 0, 0, [p for p in places if values.along[p]]
    while left:
        place = left.pop()
        if (k := values.maker[place]) < 0:
            inputs |= 1 << place
        elif not steps >> k & 1:
            steps |= 1 << k
            left += [p for p in taken_by(tape.steps[k]) if values.along[p]]
    return inputs, steps


@lru_cache(maxsize=1024)
def walks_of(tape: Tape, along: tuple[bool, ...]) -> Walks:
    """How a tape's rows are walked; `along`: whether each input varies along columns."""
    values, first = _values_of(tape, along), len(along) + len(tape.numbers)
    on_rows = [0] * (max(values.depth, default=0) + 1)  # by depth the steps of values per row
    folds: list[list[int]] = [[] for _ in on_rows]
    for place in range(first, len(values.maker)):
        k = values.maker[place]
        if isinstance(tape.steps[k], Fold):
            if k not in folds[values.depth[place]]:
                folds[values.depth[place]].append(k)
        elif not values.along[place]:
            on_rows[values.depth[place]] |= 1 << k
    walks = []
    for depth in range(1, len(on_rows)):
        states = [len(tape.steps[k].states) for k in folds[depth]]  # type: ignore[union-attr]
        inputs, steps = _needed(tape, values, [p for k in folds[depth] for p in tape.steps[k].picks])
        before = tuple([sum(states[:i]) for i in range(len(states))])
        walks.append(tuple(Walk(inputs, steps, tuple(folds[depth]), before, on_rows[depth])))
    stored = [p for p in tape.stores if values.along[p]]
    walks.append(tuple(Walk(*_needed(tape, values, stored), (), (), 0 if stored else -1)))
    return Walks(len(values.maker) - first, on_rows[0], tuple(walks), len(walks) - 1)


@lru_cache(maxsize=1024)
def words_of(tape: Tape, along: tuple[bool, ...]) -> int:
    """The 4-byte words that the values of one element take at most, of those that vary along columns."""
    values, types = _values_of(tape, along), tape.dtypes()
    last = list(values.maker)  # the last step that takes each
    for k, step in enumerate(tape.steps):
        for p in taken_by(step):
            last[p] = k
    size = [max(t.itemsize, 4) // 4 if there else 0 for t, there in zip(types, values.along, strict=True)]
    return max(
        [sum([w for w, made, end in zip(size, values.maker, last, strict=True) if made <= k <= end]) for k in range(len(tape.steps))]
    )
