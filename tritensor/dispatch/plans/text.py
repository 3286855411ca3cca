"""Text of a plan: a recorded call as a straight line of Python. Calls that come to the same steps with other ops and layouts share one text, compiled once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any
from weakref import ref

import numpy as np

from tritensor.autograd.modes import state
from tritensor.autograd.node import Branch, Node, Version, latest, next_sequence, version_of
from tritensor.autograd.saved import note_all_borrowed, note_borrowed
from tritensor.dispatch import dispatcher
from tritensor.dispatch.nodes import record_node
from tritensor.dispatch.plans.computing import Computing, choose, ready_number
from tritensor.dispatch.plans.recorder import NUMBER, REGISTER, Step, has_complex, has_gradient
from tritensor.ground import dtypes
from tritensor.ground.call_site import INSIDE, mark_wrapper
from tritensor.ground.thread_state import here
from tritensor.ground.transforms import running
from tritensor.ops.array import layout_of
from tritensor.ops.table import Op
from tritensor.random import default_generator

_INDENT = "  "


def write_plan(steps: Sequence[Step], given: Sequence[Any], form: Any, tensors: int) -> Callable[..., Any] | None:
    """The plan of a recorded call, a function of what its door hands on; None where a step cannot be planned.

    `given` says what that is: a register for a tensor, registers for a sequence of them, None for anything else; `tensors` is how many it holds. `form` is
    the recorder's of the result.
    """
    text = _Text(given, tensors)
    for step in steps:
        if not text.add(step):
            return None
    if isinstance(form, int):
        text.lines.append(f"return t{form}")
    else:
        kind, places = form
        inside = ", ".join([f"t{p}" for p in places])
        made = f"({inside},)" if kind is tuple else f"[{inside}]" if kind is list else f"{text.constant(kind)}({inside})"
        text.lines.append(f"return {made}")
    return text.compiled()


class _Text:
    """The lines under construction. `t<i>` is the tensor of register i, `k<i>` a constant, `g<i>` what the door handed on."""

    def __init__(self, given: Sequence[Any], tensors: int) -> None:
        self.lines: list[str] = []
        self.constants: list[Any] = []
        names = []
        self.next = tensors
        for i, what in enumerate(given):
            if isinstance(what, int):
                names.append(f"t{what}")
            else:
                names.append(f"g{i}")
                if what is not None:
                    self.lines.append(f"{', '.join([f't{r}' for r in what])}, = g{i}")
        self.parameters = ", ".join(names)

    def constant(self, value: Any) -> str:
        for i, known in enumerate(self.constants):
            if known is value:
                return f"k{i}"
        self.constants.append(value)
        return f"k{len(self.constants) - 1}"

    def add(self, step: Step) -> bool:
        if step.op is None and "settings" in step.attrs:
            settings = "".join([f", {self.constant(v)}" for v in step.attrs["settings"]])
            self.lines.append(f"{self.constant(step.function)}(({', '.join([f't{r}' for _, r in step.inputs])},){settings})")
            return True
        if step.op is None:
            self.lines.append(f"t{self.next} = {self.constant(step.function)}(t{step.inputs[0][1]})")
            self.next += 1
            return True
        if step.written is not None:
            return self._write(step, *step.written)
        how = choose(step)
        if how is None:
            return False
        if step.drawn is not None:
            self.lines.append(f"seed, offset = drawn({self.constant(step.drawn)})")
        call = self._call(step, how)
        if len(step.results) == 1:
            self._one_result(step, step.op, how, call)
        else:
            self._several_results(step, step.op, call)
        return True

    def _write(self, step: Step, register: int, who: str) -> bool:
        """The lines of a write in place. What only the tensors at hand tell (memory that is shared, a base in the graph) sends a call the long way."""
        ready = ready_number(step.arrays)
        target, operands = f"t{register}", []
        self.lines.append(f"x = {target}._array")
        if state.enabled:
            self.lines.append(f"if {target}._view_path is not None and {target}._view_path[0]._tracked: raise Unplanned")
        for word, value in step.inputs:
            if word == NUMBER:
                if ready is None:
                    return False
                operands.append(f"{self.constant(ready)}(g{value})")
            elif word == REGISTER and value != register:
                y = f"t{value}._array"
                operands.append(y)
                self.lines.append(f"if ({y}.base is not None or x.base is not None or {y} is x) and not apart(x, {y}): raise Unplanned")
            else:
                operands.append("x" if word == REGISTER else self.constant(value))
        self.lines += [
            f"version = {target}._version_counter or version_of({target})", "if version.borrowers is not None: raise Unplanned",
            "try:", f"{_INDENT}{self.constant(step.function)}({', '.join(operands)}, x)",
            "except RuntimeWarning: x = None  # for which numpy looks when all is written",
            "version.value += 1", f"version.writer = {self.constant(who)}", "version.stamp = stamp = next_sequence()",
            "if stamp > latest.stamp: latest.stamp = stamp",
        ]  # fmt: skip
        return True

    def _call(self, step: Step, how: Computing) -> str:
        arguments = []
        for word, value in step.inputs:
            if word == REGISTER:
                arguments.append(f"t{value}._array")
            elif word == NUMBER:
                arguments.append(f"{self.constant(how.ready)}(g{value})")
        inside = ", ".join(arguments)
        if step.drawn is not None:
            return f"{self.constant(how.function)}({', '.join([*arguments, 'seed=seed', 'offset=offset'])})"
        return f"{self.constant(how.function)}({f'[{inside}]' if how.together else inside})"

    def _one_result(self, step: Step, op: Op, how: Computing, call: str) -> None:
        t = f"t{self.next}"
        self.next += 1
        result, lines = step.results[0], self.lines
        lines.append(f"y = {call}")
        if how.wrap:
            lines += ["if type(y) is not ndarray:", _INDENT + "y = asarray(y)"]
        node = step.recorded and has_gradient(step)
        keeps_result = node and op.keep(step.tracked)[1][0]
        self._tensor(t, "y", result)
        base = f"t{step.inputs[0][1]}" if op.view else ""
        if op.view:
            lines.append(f"{t}._version_counter = {base}._version_counter or version_of({base})")
        else:
            lines.append(f"{t}._version_counter = {'version = Version()' if keeps_result else 'None'}")
            lines.append(f"{t}._view_path = None")
        if not node or (op.view and not state.enabled):
            lines += [f"{t}._node = None", f"{t}._tracked = False"]
        elif not op.view and has_complex(step):
            lines += [
                f"{t}._node = None",
                f"record_node({self.constant(op)}, {self._inputs(step)}, {self._attributes(step)}, ({t},), (y,))",
            ]
        else:
            self._node(step, op, "((y, version),)" if keeps_result else "None")
            lines += [f"{t}._node = n", f"{t}._tracked = True"]
        if op.view:
            path = self.constant((op, step.attrs, ((step.arrays[0].shape, step.arrays[0].dtype),)))
            if state.enabled:  # what most views come to, written out
                lines += [
                    f"x = {base}._extra",
                    f"if x is not None and {base}._view_path is None and x.views is not None and len(fresh := x.views.fresh) < 31:",
                    f"{_INDENT}{t}._view_path = ({base}, {path})", f"{_INDENT}fresh[id({t})] = ref({t})",
                    "else:", f"{_INDENT}{t}._record_view_of({base}, {path}, True)",
                ]  # fmt: skip
            else:
                lines.append(f"{t}._record_view_of({base}, {path}, False)")

    def _tensor(self, t: str, array: str, result: Any) -> None:
        """The lines of a tensor on an array, but for its place in the graph and among views."""
        self.lines += [
            f"{t} = make(Tensor)",
            f"{t}._array = {array}",
            f"{t}._layout = {self.constant(layout_of(result))}",
            f"{t}._grad = {t}._extra = None",
        ]

    def _several_results(self, step: Step, op: Op, call: str) -> None:
        """The lines of a call that gives several arrays: of tensors, and of what only the node keeps."""
        tensors, arrays = [f"t{self.next + i}" for i in range(op.public)], [f"y{i}" for i in range(len(step.results))]
        self.next += op.public
        self.lines.append(f"{', '.join(arrays)}, = {call}")
        for y, result in zip(arrays, step.results, strict=True):
            if isinstance(result, np.ndarray) and result.shape == ():  # numpy gives a scalar
                self.lines += [f"if type({y}) is not ndarray:", f"{_INDENT}{y} = asarray({y})"]
        if has_complex(step):
            given = f"{self.constant(op)}, {self._inputs(step)}, {self._attributes(step)}, ({', '.join(arrays)},), {step.recorded}"
            self.lines.append(f"{', '.join(tensors)} = outputs({given})")
            return
        kept = op.keep(step.tracked)[1] if step.recorded else (False,) * len(arrays)
        for t, y, result, keeps in zip(tensors, arrays, step.results, kept, strict=False):
            self._tensor(t, y, result)
            self.lines += [
                f"{t}._version_counter = {f'{y}_version = Version()' if keeps else 'None'}",
                f"{t}._view_path = {t}._node = None",
                f"{t}._tracked = False",
            ]
        if not step.recorded:
            return
        held = [
            "None" if not k else f"({y}, {f'{y}_version' if i < op.public else 'Version()'})"
            for i, (y, k) in enumerate(zip(arrays, kept, strict=True))
        ]
        self._node(step, op, f"({', '.join(held)},)" if any(kept) else "None")
        for i, t in enumerate(tensors):
            if op.public == 1 or dtypes.has_gradient(step.results[i].dtype):
                self.lines += [f"{t}._node = {'n' if op.public == 1 else f'Branch(n, {i})'}", f"{t}._tracked = True"]

    def _node(self, step: Step, op: Op, outputs: str) -> None:
        """The lines of a plain node `n`, as `record_node` makes it, that keeps these outputs."""
        kept_in, _, wants_shapes = op.keep(step.tracked)
        kept = [kept_in[min(i, len(kept_in) - 1)] for i in range(len(step.inputs))]
        meta = None
        if wants_shapes and not (
            _only_to_undo(op) and all([getattr(a, "shape", s) == s for a in step.arrays for s in (step.results[0].shape,)])
        ):
            meta = tuple([(a.shape, a.dtype) if hasattr(a, "shape") else None for a in step.arrays])
        edges = ", ".join([f"{x}._node or {x}" if on else "None" for x, on in zip(self._names(step), step.tracked, strict=True)])
        inputs = ", ".join([x if k else "None" for x, k in zip(self._names(step), kept, strict=True)])
        self.lines += [
            "n = make(Node)", f"n.op = {self.constant(op)}", f"n.edges = ({edges},)", f"n.inputs = {f'({inputs},)' if any(kept) else 'None'}",
            f"n.outputs = {outputs}", f"n.attrs = {self._attributes(step)}", f"n.meta = {self.constant(meta)}",
            "n.hooks = None", "n.sequence = next_sequence()",
        ]  # fmt: skip
        if step.borrows:
            self.lines.append("note_all_borrowed(n)")
        elif op.borrows:
            self.lines.append("note_borrowed(n)")

    def _attributes(self, step: Step) -> str:
        kept = self.constant(step.attrs)
        return kept if step.drawn is None else f"{{**{kept}, 'seed': seed, 'offset': offset}}"

    def _inputs(self, step: Step) -> str:
        return f"({', '.join(self._names(step))},)"

    def _names(self, step: Step) -> list[str]:
        """How the text names a step's inputs."""
        found = []
        for word, value in step.inputs:
            found.append(f"t{value}" if word == REGISTER else f"g{value}" if word == NUMBER else self.constant(value))
        return found

    def compiled(self) -> Callable[..., Any]:
        return _factory(self.parameters, len(self.constants), tuple(self.lines))(*self.constants)  # type: ignore[no-any-return]


@functools.lru_cache(maxsize=1024)
def _factory(parameters: str, constants: int, lines: tuple[str, ...]) -> Callable[..., Any]:
    """What makes the plans of a text, of their constants."""
    made = ", ".join([f"k{i}" for i in range(constants)])
    body = "\n".join([2 * _INDENT + line for line in lines])
    source = f"def of({made}):\n{_INDENT}def plan({parameters}):\n{body}\n{_INDENT}return plan\n"
    space: dict[str, Any] = {}
    exec(compile(source, f"{INSIDE}dispatch/plans/<plan>", "exec"), _names(), space)
    for code in space["of"].__code__.co_consts:
        if hasattr(code, "co_code"):
            mark_wrapper(code)
    return space["of"]  # type: ignore[no-any-return]


@functools.cache
def _names() -> dict[str, Any]:
    """What texts name beside their constants."""
    return {
        "__name__": __name__,  # by which numpy's warnings are told apart
        "make": object.__new__, "drawn": _drawn, "Tensor": dispatcher._Tensor, "Node": Node, "Branch": Branch,
        "Version": Version, "latest": latest, "version_of": version_of, "next_sequence": next_sequence,
        "note_borrowed": note_borrowed, "note_all_borrowed": note_all_borrowed, "ref": ref, "ndarray": np.ndarray, "asarray": np.asarray,
        "record_node": record_node, "outputs": dispatcher._outputs, "apart": _apart, "Unplanned": Unplanned,
    }  # fmt: skip


class Unplanned(Exception):
    """What a plan raises that finds itself not meant: its door sends the call the long way."""


def _apart(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether two arrays are parts of different ones, so that they share no memory; False where that cannot be told."""
    first, second = (a if a.base is None else a.base for a in (x, y))
    return type(first) is np.ndarray and type(second) is np.ndarray and first is not second and first.base is None and second.base is None


def _drawn(blocks: int) -> tuple[int, int]:
    """The place of the default generator's next so many blocks."""
    if running.levels or here.capture is not None:  # where numbers are drawn otherwise
        raise Unplanned
    return default_generator.take(blocks)


@functools.cache
def _only_to_undo(op: Op) -> bool:
    """Whether an op's nodes note shapes to undo broadcasting and for nothing else."""
    corners = [c for c in (op.rule, op.backward, op.cpu_backward) if c is not None]
    named = {kind for c in corners for fetches in c.fetches for kind, _ in fetches}
    return op.broadcasts and not named & {"shape", "shapes", "dtype", "dtypes"}
