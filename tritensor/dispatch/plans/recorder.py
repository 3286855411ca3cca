"""Recorder: the ops that a call comes to, in order, with where each of their inputs came from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.device import device
from tritensor.ops.array import CudaArray
from tritensor.ops.replay import Corner
from tritensor.ops.table import Op

# Where an input of a step comes from: a tensor's register, the place of a number among the call's arguments, or the value itself.
REGISTER, NUMBER, CONSTANT = "register", "number", "constant"
PLACE = ("seed", "offset")  # attributes of ops that draw


class Step(NamedTuple):
    """One op of a recorded call, or a function that was called on tensors for its effect, where `op` is None.

    `inputs` are pairs of these words and a register, a place or a value; `tracked` says of each whether a gradient will be asked of it. `results` are all
    arrays of the op, residuals included; `settled` whether it gave arrays that lie as the layout rule says, so that nothing is left to do to them.
    """

    op: Op | None
    inputs: tuple[tuple[str, Any], ...]
    tracked: tuple[bool, ...]
    attrs: dict[str, Any]
    arrays: tuple[Any, ...]
    results: tuple[Any, ...]
    settled: bool
    recorded: bool  # whether it has left a node
    function: Callable[..., Any] | None
    corner_key: Any
    borrows: bool = False  # whether its node has borrowed all that it saved
    written: tuple[int, str] | None = None  # the register that the result is written over, and in whose name
    drawn: int | None = None  # blocks of random numbers that it takes from the default generator

    def same(self, other: Step, firsts: Sequence[int]) -> bool:
        """Whether another recording has the same step: of the same op or function, with the same inputs and attributes, and results of the same form.
        `firsts` says which register here stands for one of the first there."""
        inputs = tuple([(w, firsts[v] if w == REGISTER and v is not None and v < len(firsts) else v) for w, v in other.inputs])
        return (
            self.op is other.op and self.function is other.function and self.tracked == other.tracked and self.recorded == other.recorded
            and _alike(self.inputs, inputs) and _alike(self.attrs, other.attrs) and self.drawn == other.drawn
            and [(r.shape, r.dtype) for r in self.results] == [(r.shape, r.dtype) for r in other.results]
        )  # fmt: skip


def _alike(a: Any, b: Any) -> bool:
    """Equal, and of equal types all the way down."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all([_alike(v, b[k]) for k, v in a.items()])
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(_alike, a, b))
    return bool(a == b or (type(a) is device and b.type == "meta"))  # on the device of a tensor that was given


class Recorder:
    """Writes down the ops of a call. `spoiled` says why it cannot be planned ("" while it can).

    `tensors` are the call's, in order, `numbers` those of its arguments that only reach ops as they are: {id: place}.
    """

    def __init__(self, tensors: Sequence[Any], numbers: dict[int, int]) -> None:
        self.held = list(tensors)  # by register; held, so that ids stay their own
        self.registers = {id(t): i for i, t in reversed(tuple(enumerate(tensors)))}  # the first, where one was given twice
        self.numbers = numbers
        self.steps: list[Step] = []
        self.spoiled = ""
        self._draw: tuple[int, tuple[int, int]] | None = None  # blocks and place of what was drawn, until an op takes it
        self.before = [_slots(t) for t in tensors]
        self._after: list[tuple[Any, tuple[Any, ...]]] = []  # results, with what they looked like when their op had made them

    def spoil(self, reason: str) -> None:
        self.spoiled = self.spoiled or reason

    def note(
        self,
        op: Op,
        inputs: tuple[Any, ...],
        attrs: dict[str, Any],
        made: Any,
        arrays: Sequence[Any],
        raw: Any,
        result: Any,
        corner_key: Any,
    ) -> None:
        """An op has run on `arrays` and given `raw`, laid out as `result`, residuals included; `made` are the tensors that the caller sees."""
        if self.spoiled:
            return
        if op.mutates:
            self.spoil(f"{op.name} writes")
            return
        drawn = None
        if "seed" in op.attrs:
            drawn, attrs = self._drawn_by(op, attrs)
        if any([isinstance(v, np.ndarray) or hasattr(v, "_array") for v in attrs.values()]):
            self.spoil(f"{op.name} has a tensor among its attributes")
            return
        outs, results = (t if type(t) is tuple else (t,) for t in (made, result))
        settled = all([type(a) is not np.ndarray or a is b for a, b in zip(raw if type(raw) is tuple else (raw,), results, strict=True)])
        corner = op.forward
        if corner_key is not None and (
            not isinstance(corner, Corner) or corner.reports or corner.mutates or (corner.draws is None) != (drawn is None)
        ):
            self.spoil(f"{op.name} reports or writes")
            return
        given, tracked = self._sources(inputs)
        recorded = outs[0]._node is not None if not op.view else outs[0]._tracked
        self.steps.append(Step(op, given, tracked, attrs, tuple(arrays), results, settled, recorded, None, corner_key, drawn=drawn))
        for t in outs:
            self._add(t)

    def note_call(self, function: Callable[..., Any], tensors: Sequence[Any], *settings: Any) -> None:
        """`function(tensors, *settings)` has been called for its effect: on later writes, or an error that it raises."""
        given, tracked = self._sources(tuple(tensors))
        self.steps.append(Step(None, given, tracked, {"settings": settings}, (), (), True, False, function, None))
        self._after = [(t, _slots(t)) for t, _ in self._after]

    def note_draw(self, blocks: int | None, place: tuple[int, int]) -> None:
        """So many blocks of the default generator were taken, or of another one (None)."""
        if blocks is None or self._draw is not None:
            self.spoil("it draws by a generator of its own, or what no op takes")
        else:
            self._draw = blocks, place

    def _drawn_by(self, op: Op, attrs: dict[str, Any]) -> tuple[int | None, dict[str, Any]]:
        """The blocks that an op takes, and its other attributes."""
        blocks, place = self._draw or (None, None)
        if (attrs["seed"], attrs["offset"]) != place:
            self.spoil(f"{op.name} draws from a place that was given")
        self._draw = None
        return blocks, {n: v for n, v in attrs.items() if n not in PLACE}

    def note_alias(self, function: Callable[..., Any], x: Any, made: Any) -> None:
        """`function(x)` has made another tensor on x's array."""
        given, tracked = self._sources((x,))
        self.steps.append(Step(None, given, tracked, {}, (), (), True, False, function, None))
        self._add(made)

    def note_write(
        self, op: Op, function: Callable[..., Any], target: Any, operands: tuple[Any, ...], arrays: Sequence[Any], who: str
    ) -> None:  # fmt: skip
        """numpy's `function` has computed an op of these operands directly into the memory of a tensor, which no graph remembers."""
        register = self.registers.get(id(target))
        if register is None or register >= len(self.before) or type(target._array) is not np.ndarray or not isinstance(function, np.ufunc):
            self.spoil("it writes")
            return
        given, tracked = self._sources(operands)
        self.steps.append(Step(op, given, tracked, {}, tuple(arrays), (), True, False, function, None, written=(register, who)))
        self.before[register] = _slots(target)
        self._after = [(t, _slots(t)) for t, _ in self._after]

    def borrow(self, first: int) -> None:
        """The nodes of the steps from this one on have borrowed what they saved (see autograd/saved.py)."""
        self.steps[first:] = [s._replace(borrows=True) for s in self.steps[first:]]

    def _sources(self, inputs: tuple[Any, ...]) -> tuple[tuple[tuple[str, Any], ...], tuple[bool, ...]]:
        given: list[tuple[str, Any]] = []
        for x in inputs:
            if hasattr(x, "_array"):
                place = self.registers.get(id(x))
                if place is None:
                    self.spoil("it computes with a tensor that it neither was given nor made by an op")
                given.append((REGISTER, place))
            elif id(x) in self.numbers and type(x) in (int, float):
                given.append((NUMBER, self.numbers[id(x)]))
            else:
                if self.numbers and x is not None:
                    self.spoil("it makes another number of one that it was given")
                given.append((CONSTANT, x))
        return tuple(given), tuple([hasattr(x, "_array") and bool(x._tracked) for x in inputs])

    def _add(self, t: Any) -> None:
        self.registers[id(t)] = len(self.held)
        self.held.append(t)
        self._after.append((t, _slots(t)))

    def finish(self, result: Any) -> Any:
        """The form of the call's result: a register, or (its type, registers) of several. None, and spoiled, where it is anything else."""
        if not self.spoiled:
            if any([_slots(t) != s for t, s in zip(self.held, self.before, strict=False)]):
                self.spoil("it changes a tensor that it was given")
            if any([_slots(t) != s for t, s in self._after]):
                self.spoil("it changes what an op has made")
            if self.numbers and not set(self.numbers.values()) <= {v for s in self.steps for w, v in s.inputs if w == NUMBER}:
                self.spoil("it looks at a number that it was given")
            if self._draw is not None:
                self.spoil("it draws what no op takes")
            if not self.steps and not hasattr(result, "_array"):
                self.spoil("it runs no op")
        form = self._form(result)
        if form is None:
            self.spoil("its result is not of its ops")
        return form

    def _form(self, result: Any) -> Any:
        if hasattr(result, "_array"):
            return self.registers.get(id(result))
        if isinstance(result, tuple | list) and result and all([hasattr(t, "_array") for t in result]):
            places = [self.registers.get(id(t)) for t in result]
            return None if None in places else (type(result), tuple(places))
        return None


def _slots(t: Any) -> tuple[Any, ...]:
    """What a call may change of a tensor, as ids and numbers."""
    version, extra = t._version_counter, t._extra
    written = 0 if version is None else version.value
    said = None if extra is None else (extra.origin, extra.retains, id(extra.hooks), id(extra.post_hooks), id(extra.memory))
    if said is not None and said == ("", False, id(None), id(None), id(None)):  # the record of views alone
        said = None
    return id(type(t)), id(t._array), id(t._node), bool(t._tracked), id(t._view_path), written, said, id(t._grad), len(vars(t))


def has_floats(arrays: Sequence[Any]) -> bool:
    """Whether all arrays are of one type, float32 or float64, on the CPU."""
    kinds = {a.dtype for a in arrays if type(a) is np.ndarray}
    return len(kinds) == 1 and next(iter(kinds)).char in "fd"


def has_complex(step: Step) -> bool:
    """Whether complex numbers take part, whose nodes are made with more care."""
    return any([a.dtype.kind == "c" for a in (*step.arrays, *step.results) if isinstance(a, np.ndarray | CudaArray)])


def has_gradient(step: Step) -> bool:
    """Whether a step's first result is of a type that has gradients."""
    return dtypes.has_gradient(step.results[0].dtype)
