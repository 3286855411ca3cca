"""TraceLevel: the transform level of a trace, which maps each traced tensor to a value of the graph, through views and writes in place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tritensor.ground.call_site import user_instruction, user_line
from tritensor.ground.transforms import TRACE, Level, WrappedArray
from tritensor.onnx.tracing.record import Call, Constant, Item, Result, TracedInput
from tritensor.ops.array import to_host
from tritensor.ops.table import Op
from tritensor.tensor.core import Tensor, new_tensor

_SMALL_ROOT = 65536  # elements of a tensor that is kept whole for a view of it
RANDOM_OPS = ("dropout", "rand", "randn", "randint", "randperm")  # they depend on chance, as results depend on inputs


class Slot:
    """The memory of a traced tensor: its value now, and, of a view, of what and how it is one. `seen` is the base's value that it was read from."""

    __slots__ = ("array", "base", "item", "seen", "step")

    def __init__(self, array: WrappedArray, item: Item, base: Slot | None = None, step: tuple[Op, dict[str, Any]] | None = None) -> None:
        self.array, self.item, self.base, self.step = array, item, base, step
        self.seen = base.item if base is not None else None


class TraceLevel(Level):
    """One run that is noted down. `names`: of the module's tensors, by the id of their arrays; `stack`: names of the modules that are running."""

    __slots__ = ("calls", "constants", "kept_alive", "names", "replaced", "slots", "stack", "traced_inputs", "warned", "written")

    def __init__(self, names: Mapping[int, str], warned: bool) -> None:
        super().__init__(TRACE, recording=False)
        self.names = names
        self.warned = warned  # whether the user has heard of what cannot be traced
        self.stack: list[str] = [""]
        self.calls: list[Call] = []
        self.traced_inputs: list[TracedInput] = []
        self.slots: dict[int, Slot] = {}
        self.constants: dict[tuple[int, int], Item] = {}
        self.kept_alive: list[Any] = []  # what ids above are of
        self.replaced: list[tuple[Tensor, Any, Any, bool]] = []  # tensors of others that were written: to be put back
        self.written: dict[str, str] = {}  # inputs and tensors of the module that were written, and the first line

    # -- values
    def add_input(self, x: Tensor) -> Tensor:
        """A traced stand-in for an input, on a copy of its values."""
        array = WrappedArray(self, new_tensor(x.detach().clone()._array))
        item = TracedInput(len(self.traced_inputs), array.shape, array.dtype)
        self.traced_inputs.append(item)
        self.slots[id(array)] = Slot(array, item)
        return new_tensor(array)  # type: ignore[arg-type]

    def item(self, x: Any) -> Any:
        """What an input of an op is in the graph: an Item for a tensor, else what was given."""
        if not isinstance(x, Tensor):
            return x
        if type(x._array) is not WrappedArray or x._array.level is not self:
            return self.constant(x)
        slot = self.slots.get(id(x._array))
        return self.current(slot) if slot is not None else self.constant(x._array.value)

    def current(self, slot: Slot) -> Item:
        """The value of a slot now: a view is taken anew where its base was written since."""
        if slot.base is not None and slot.step is not None:
            base = self.current(slot.base)
            # a view of a base that was not written since is still the value that was recorded
            if base is not slot.seen:
                op, attrs = slot.step
                slot.item = self.call(op.name, (base,), attrs, [(slot.array.shape, slot.array.dtype, slot.array.value)])[0]
                slot.seen = base
        return slot.item

    def constant(self, x: Tensor) -> Item:
        """A tensor from outside; of a view the view of what it is one of, whose shape a size may decide."""
        key = id(x), x._version
        found = self.constants.get(key)
        if found is None:
            self.kept_alive.append(x)
            name = self.names.get(id(x._array), "")
            root = x if x._view_path is None else x._view_path[0]
            if (
                not name
                and x._view_path is not None
                and (id(root._array) in self.names or root._array.size <= max(4 * x._array.size, _SMALL_ROOT))
            ):
                found, under = self.item(root), root if type(root._array) is not WrappedArray else root._array.value
                for op, attrs, _ in x._view_path[1:]:
                    under = new_tensor(op.cpu(under._array, **attrs))
                    found = self.call(op.name, (found,), attrs, [(under._array.shape, under._array.dtype, under)])[0]
            else:
                values = to_host(x._array)
                found = Constant(name, np.array(values) if not name or not x._tracked else values, user_line())
            self.constants[key] = found
        return found

    def trace_new_tensor(self, x: Tensor) -> Tensor:
        """A tensor that was just made of data, as a traced one."""
        item = self.constant(x)
        array = WrappedArray(self, x)
        self.slots[id(array)] = Slot(array, item)
        return new_tensor(array)  # type: ignore[arg-type]

    # -- calls
    def call(self, name: str, inputs: tuple[Any, ...], attrs: dict[str, Any], outs: list[tuple[Any, Any, Any]]) -> list[Result]:
        """Note a call of an op with (shape, dtype, tensor) of each output."""
        made = Call(name, len(self.calls), inputs, dict(attrs), self.stack[-1], user_instruction())
        depends = name in RANDOM_OPS or any([isinstance(x, Item) and x.depends for x in inputs])
        made.results = [Result(made, k, shape, dtype, depends, tensor) for k, (shape, dtype, tensor) in enumerate(outs)]
        self.calls.append(made)
        return made.results

    def record_call(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any], values: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Note a call that was made on what lies below; gives its outputs as traced tensors."""
        items = tuple([self.item(x) for x in inputs])
        results = self.call(op.name, items, attrs, [(y._array.shape, y._array.dtype, y) for y in values])
        outs = []
        for y, result in zip(values, results, strict=True):
            array = WrappedArray(self, y)
            base = self.slots.get(id(inputs[0]._array)) if op.view else None
            slot = Slot(array, result, base, (op, attrs) if base is not None else None)
            if base is not None:
                slot.seen = items[0]
            self.slots[id(array)] = slot
            outs.append(new_tensor(array))  # type: ignore[arg-type]
        return tuple(outs)

    def alias(self, array: WrappedArray, other: WrappedArray) -> None:
        """Let another array stand for the same memory."""
        slot = self.slots.get(id(other))
        if slot is not None:
            self.slots[id(array)] = slot
            self.kept_alive.append(array)

    # -- writes
    def trace_in_place(self, x: Tensor, views: list[Tensor], replayed: list[Tensor]) -> None:
        """Let a tensor from outside, which is about to be written, be a traced one on a copy, with its views; `restore` undoes it."""
        item = self.constant(x)
        for t in (x, *views):
            self.replaced.append((t, t._array, t._node, t._tracked))
        x._set_array(WrappedArray(self, replayed[0]))  # type: ignore[assignment]
        self.slots[id(x._array)] = root = Slot(x._array, item)  # type: ignore[arg-type]
        for view, under in zip(views, replayed[1:], strict=True):
            array = WrappedArray(self, under)
            at = root
            for op, attrs, _ in view._view_path[1:-1]:  # type: ignore[index]
                inner = new_tensor(op.cpu(at.array.value._array, **attrs))
                result = self.call(op.name, (self.current(at),), attrs, [(inner._array.shape, inner._array.dtype, inner)])[0]
                at = Slot(WrappedArray(self, inner), result, at, (op, attrs))
            op, attrs, _ = view._view_path[-1]  # type: ignore[index]
            result = self.call(op.name, (self.current(at),), attrs, [(array.shape, array.dtype, under)])[0]
            self.slots[id(array)] = Slot(array, result, at, (op, attrs))
            view._set_array(array)  # type: ignore[assignment]
        for t in (x, *views):
            t._set_node(None)

    def write(self, array: WrappedArray, value: Tensor) -> None:
        """An array was overwritten with a value of its shape and type: its base, and through that all views, hold it from now on."""
        item = self.item(value)
        slot = self.slots.get(id(array))
        if slot is None:
            self.slots[id(array)] = Slot(array, item)
            return
        self.current(slot)
        while slot.base is not None and slot.step is not None:
            op, attrs = slot.step
            base = self.current(slot.base)
            whole = slot.base.array
            (into,) = self.call("write_view", (base, item), {"view": op.name, "how": attrs}, [(whole.shape, whole.dtype, whole.value)])
            slot.item, slot.seen = item, into
            slot, item = slot.base, into
        self._record_write(slot.item)
        slot.item = item

    def _record_write(self, item: Item) -> None:
        if isinstance(item, TracedInput):
            self.written.setdefault(f"#{item.place}", user_line())
        elif isinstance(item, Constant) and item.name:
            self.written.setdefault(item.name, user_line())

    def restore(self) -> None:
        """Give tensors from outside their own memory back."""
        for t, array, node, tracked in reversed(self.replaced):
            t._array, t._node, t._tracked = array, node, tracked
        self.replaced.clear()
