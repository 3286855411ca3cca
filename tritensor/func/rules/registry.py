"""Rules for batches: what an op becomes when vmap gives some of its inputs a dimension of examples, which always stands first."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from tritensor.dispatch import run_planned
from tritensor.ground.transforms import Level
from tritensor.ops.table import Op, ops
from tritensor.tensor.core import Tensor


class Batch:
    """One call of an op on batches.

    Attributes:
        op, attrs: what is called.
        size: how many examples.
        values: the inputs, tensors with the examples along dimension 0 where `flags` says so, or the same for all examples.
        level: vmap's, which says what random functions do.
    """

    __slots__ = ("attrs", "flags", "level", "op", "size", "values")

    def __init__(self, op: Op, level: Level, values: tuple[Any, ...], flags: tuple[bool, ...], attrs: dict[str, Any]) -> None:
        self.op = op
        self.level = level
        self.size = level.size
        self.values = values
        self.flags = flags
        self.attrs = attrs if len(attrs) == len(op.attrs) else {**op.attrs, **attrs}  # rules read defaults, too

    def ndim(self, i: int) -> int:
        """Dimensions of one example of an input."""
        return len(self.values[i]._array.shape) - self.flags[i]

    def shape(self, i: int) -> tuple[int, ...]:
        """Sizes of one example of an input."""
        found: tuple[int, ...] = self.values[i]._array.shape
        return found[1:] if self.flags[i] else found

    def whole(self, i: int) -> Any:
        """An input with its dimension of examples, repeated (a view) where it is the same for all."""
        x = self.values[i]
        if not isinstance(x, Tensor) or self.flags[i]:
            return x
        return ops.expand(x, shape=(self.size, *x._array.shape))

    def wholes(self) -> list[Any]:
        """All inputs so."""
        return [self.whole(i) for i in range(len(self.values))]

    def run(self, *inputs: Any, **changed: Any) -> Any:
        """The op of other inputs, with some attributes changed."""
        return run_planned(self.op, inputs, {**self.attrs, **changed})  # dispatch again: another vmap may lie below


Rule = Callable[[Batch], Any]
RULES: dict[str, Rule] = {}
_warned: set[str] = set()


def rule_for(*names: str) -> Callable[[Rule], Rule]:
    """Make a function the rule of the ops of these names."""

    def keep(rule: Rule) -> Rule:
        for name in " ".join(names).split():
            RULES[name] = rule
        return rule

    return keep


def map_op(op: Op, level: Level, values: tuple[Any, ...], flags: tuple[bool, ...], attrs: dict[str, Any]) -> Any:
    """The outputs of an op for every example, along dimension 0."""
    batch = Batch(op, level, values, flags, attrs)
    rule = RULES.get(op.name)
    if rule is not None:
        return rule(batch)
    return elementwise(batch) if op.broadcasts else warn_and_loop(batch)


def elementwise(b: Batch) -> Any:
    """Inputs that broadcast: the examples stay in front of as many dimensions as the largest example has."""
    most = max([b.ndim(i) for i, x in enumerate(b.values) if isinstance(x, Tensor)])  # of one example, the batch's dimension not counted
    given = []
    for i, x in enumerate(b.values):
        if isinstance(x, Tensor) and b.flags[i] and (missing := most - b.ndim(i)):
            x = ops.reshape(x, shape=(b.size, *(1,) * missing, *b.shape(i)))
        given.append(x)
    return b.run(*given)


def warn_and_loop(b: Batch) -> Any:
    """An op without a rule: in a loop over the examples, which a warning says once."""
    if b.op.name not in _warned:  # once in a process for each op
        _warned.add(b.op.name)
        warnings.warn(
            f"vmap: {b.op.name} has no rule for batches and runs in a loop over the {b.size} examples, which is slow; where it matters, "
            "call it outside vmap",
            stacklevel=2,
        )
    return loop_examples(b)


def loop_examples(b: Batch) -> Any:
    """The op of each example, put together."""
    if not b.size:
        given = [_Example(b.shape(i), x._array.dtype) if isinstance(x, Tensor) else x for i, x in enumerate(b.values)]
        specs = b.op.shape(*given, **b.attrs)
        specs = (specs,) if hasattr(specs, "dtype") else specs[: b.op.public]  # a Spec is a tuple, too
        on = next(x.device for x in b.values if isinstance(x, Tensor))
        made = tuple([ops.full(shape=(0, *s.shape), value=0, dtype=s.dtype, device=on) for s in specs])
        return made if b.op.public > 1 else made[0]
    outs = []
    for k in range(b.size):
        outs.append(b.run(*[ops.index_view(x, index=(k,)) if flag else x for x, flag in zip(b.values, b.flags, strict=True)]))
    if b.op.public > 1:
        return tuple([ops.stack(*parts, dim=0) for parts in zip(*outs, strict=True)])
    return ops.stack(*outs, dim=0)


class _Example:
    """Shape and type of an example where there is none."""

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.shape = shape
        self.dtype = dtype
