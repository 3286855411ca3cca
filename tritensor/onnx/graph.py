"""Graph under construction: values, nodes, initializers, and sizes as values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tritensor.onnx import element_types as types
from tritensor.onnx.errors import DynamicAxisError, UnsupportedOperatorError
from tritensor.onnx.sizes import Sizes, Varying, VaryingFloat, varies


class Value:
    """A value of the graph. `shape`: ints and Varyings, None where it is not known; `values`: a constant's; `step`: the call that it is a result of."""

    __slots__ = ("axis_names", "dtype", "name", "node", "shape", "step", "values")

    def __init__(self, name: str, dtype: np.dtype[Any], shape: Any = None, values: np.ndarray | None = None) -> None:
        self.name, self.dtype, self.shape, self.values = name, dtype, shape, values
        self.step: Any = None
        self.node: Any = None
        self.axis_names: dict[int, str] = {}  # of an output's axes, as they were given

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __repr__(self) -> str:
        return f"Value({self.name!r}, {self.dtype}, {self.shape})"


# Operators that go element by element, and broadcast
_ELEMENTWISE = frozenset({
    "Abs", "Acos", "Acosh", "Add", "And", "Asin", "Asinh", "Atan", "Atanh", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "Ceil",
    "Clip", "Cos", "Cosh", "Div", "Elu", "Equal", "Erf", "Exp", "Floor", "Gelu", "Greater", "GreaterOrEqual", "HardSwish", "Identity", "IsInf",
    "IsNaN", "LeakyRelu", "Less", "LessOrEqual", "Log", "Max", "Min", "Mod", "Mul", "Neg", "Not", "Or", "Pow", "Reciprocal", "Relu", "Round",
    "Selu", "Sigmoid", "Sign", "Sin", "Sinh", "Softmax", "LogSoftmax", "Sqrt", "Sub", "Tan", "Tanh", "Where", "Xor",
})  # fmt: skip


def _elementwise_shape(kind: str, given: Sequence[Value | None]) -> Any:
    """The shape that an elementwise operator gives; None for other operators, and where a shape is not known."""
    shapes = [x.shape for x in given if x is not None]
    if kind not in _ELEMENTWISE or not shapes or any(s is None for s in shapes):
        return None
    rank = max(len(s) for s in shapes)
    padded = [(1,) * (rank - len(s)) + tuple(s) for s in shapes]
    return tuple([next((s[d] for s in padded if s[d] != 1), 1) for d in range(rank)])


class Graph:
    """What translations write to: `g.op("Add", a, b)` appends a node and gives its output.

    Inputs are Values, None for one left out, Python numbers (of the first value's type) and sequences of ints (int64 vectors, in which a Varying
    is computed from the sizes of the graph's values).
    """

    def __init__(self, opset: int, notes: bool = False, fold: bool = True) -> None:
        self.opset, self.notes, self.fold = opset, notes, fold
        self.nodes: list[Any] = []
        self.initializers: dict[str, np.ndarray] = {}
        self.taken: set[str] = set()
        self.scope = self.line = ""
        self.call: Any = None  # that is translated
        self.used: set[tuple[int, int]] = set()  # outputs of calls that something needs, by the call's number and their place
        self.value_of: Callable[[Any], Any] = lambda item: item  # what an Item of the trace is here
        self.sizes = Sizes(self)
        self._constants: dict[tuple[Any, ...], Value] = {}

    def is_used(self, place: int) -> bool:
        """Whether an output of the call that is translated is needed."""
        return (self.call.number, place) in self.used

    # -- names
    def unique(self, name: str) -> str:
        found, k = name, 0
        while found in self.taken:
            k += 1
            found = f"{name}_{k}"
        self.taken.add(found)
        return found

    # -- nodes
    def op(
        self, kind: str, *inputs: Any, outputs: int = 1, dtype: Any = None, shape: Any = None, domain: str = "", like: Value | None = None, **attrs: Any
    ) -> Any:  # fmt: skip
        """Append a node of an operator; attributes that are None are left out. Gives its output, or a tuple of several.

        dtype: of the output (of each, in a tuple), the first input's unless given; shape: of the output, where it is known.
        """
        from onnx import helper

        first = like or next((x for x in inputs if isinstance(x, Value)), None)
        given = [self.value(x, first) for x in inputs]
        while given and given[-1] is None:
            given.pop()
        wide = None if domain else types.widen_inputs(kind, self.opset, [None if x is None else x.dtype for x in given])
        if wide is not None:
            given = [x if x is None or d is None else self.cast(x, d) for x, d in zip(given, wide.inputs, strict=True)]
        if shape is None:
            shape = _elementwise_shape(kind, given)
        name = self.unique("/".join(["", *self.scope.split(".") * bool(self.scope), kind]))
        kinds = dtype if isinstance(dtype, tuple) else (dtype,) * outputs
        made = [
            Value(
                self.unique(f"{name}_output_{k}"),
                np.dtype(d) if d is not None else first.dtype if first is not None else types.FLOAT,
                shape,
            )
            for k, d in zip(range(outputs), kinds, strict=True)
        ]
        node = helper.make_node(
            kind, ["" if x is None else x.name for x in given], [y.name for y in made], name=name, domain=domain or None,
            doc_string=self.line if self.notes else None, **{k: v for k, v in attrs.items() if v is not None},
        )  # fmt: skip
        self.nodes.append(node)
        for y in made:
            y.node = node
        if wide is not None:
            made = [self._cast_back(y, pair) for y, pair in itertools.zip_longest(made, wide.outputs[: len(made)])]
        return made[0] if outputs == 1 else tuple(made)

    def _cast_back(self, y: Value, pair: tuple[Any, Any] | None) -> Value:
        """An output of a widened operator in the type that was asked for."""
        # an output whose type follows no widened input has its type already
        if pair is None:
            return y
        asked, y.dtype = y.dtype, pair[0]
        return self.cast(y, asked)

    def value(self, x: Any, like: Value | None = None) -> Value | None:
        """What may stand as an input of `op`, as a Value."""
        if x is None or isinstance(x, Value):
            return x
        if isinstance(x, Varying | VaryingFloat):
            return self.number(x, like.dtype if like is not None else types.INT64)
        if isinstance(x, np.ndarray | np.generic):
            return self.const(np.asarray(x))
        if isinstance(x, Sequence):
            return self.ints(x)
        kind = like.dtype if like is not None else None
        return self.const(np.array(x, kind) if kind is not None else np.asarray(x))

    def const(self, x: Any, dtype: Any = None, name: str = "") -> Value:
        """A constant as an initializer; equal small ones are one."""
        values = np.asarray(x) if dtype is None else np.array(x, dtype)
        key = (values.dtype, values.shape, values.tobytes()) if values.nbytes <= 1024 and not name else (name,) if name else ()
        if key and key in self._constants:
            return self._constants[key]
        made = Value(self.unique(name or "constant"), values.dtype, values.shape, values)
        self.initializers[made.name] = values
        if key:
            self._constants[key] = made
        return made

    def cast(self, x: Value, dtype: Any) -> Value:
        """x in another type; x itself where it has it."""
        kind = np.dtype(dtype)
        if x.dtype == kind:
            return x
        return self.op("Cast", x, to=types.type_number(kind), dtype=kind, shape=x.shape)  # type: ignore[no-any-return]

    # -- sizes
    def ints(self, numbers: Sequence[Any]) -> Value:
        """An int64 vector; a Varying in it is computed from sizes."""
        if not varies(tuple(numbers)):
            return self.const(np.array([int(n) for n in numbers], np.int64))
        parts: list[Any] = []
        for n in numbers:
            if isinstance(n, Varying):
                parts.append(self.sizes.vector(n))
            elif parts and isinstance(parts[-1], list):
                parts[-1].append(n)
            else:
                parts.append([n])
        given = [self.const(np.array(p, np.int64)) if isinstance(p, list) else p for p in parts]
        return given[0] if len(given) == 1 else self.op("Concat", *given, axis=0, dtype=np.int64, shape=(len(numbers),))

    def number(self, n: Any, dtype: Any) -> Value:
        """A number as a scalar of a type."""
        if isinstance(n, Varying):
            return self.cast(self.squeeze(self.sizes.vector(n), [0]), dtype)
        if isinstance(n, VaryingFloat):
            return self.cast(self.sizes.float_scalar(n), dtype)
        return self.const(np.array(n, dtype))

    # -- the few forms that everybody writes
    def reshape(self, x: Value, shape: Sequence[Any]) -> Value:
        """x in another shape of as many elements. A size that is x's own in that place, or the only one that varies, needs no computing."""
        wanted = tuple(shape)
        if x.shape is not None and tuple(x.shape) == wanted:
            return x
        before = x.step[1] if isinstance(x.step, tuple) and x.step[0] == "reshape" else None  # two reshapes are the last one
        if before is not None and before.shape is not None:
            if tuple(before.shape) == wanted:
                return before
            x = before
        target = list(wanted)
        # Reshape reads 0 as "the input's size there", unless allowzero, which opset 14 brought
        if 0 not in target:
            for d in range(min(len(target), len(x.shape or ()))):
                if isinstance(target[d], Varying) and x.shape[d] == target[d]:
                    target[d] = 0
            rest = [d for d, n in enumerate(target) if isinstance(n, Varying)]
            if len(rest) == 1:
                target[rest[0]] = -1
        elif wanted != tuple(x.shape or ())[: len(wanted)]:
            self.needs(14, "Reshape to a size of 0")
        allow = 1 if 0 in wanted else None
        made: Value = self.op("Reshape", x, self.ints(target), shape=wanted, allowzero=allow if self.opset >= 14 else None)
        made.step = ("reshape", x)
        return made

    def squeeze(self, x: Value, axes: Sequence[int]) -> Value:
        shape = None if x.shape is None else tuple(n for d, n in enumerate(x.shape) if d not in axes)
        return self.op("Squeeze", x, list(axes), shape=shape) if axes else x

    def unsqueeze(self, x: Value, axes: Sequence[int]) -> Value:
        """New axes of size 1, at their places in the result."""
        if not axes:
            return x
        shape = None
        if x.shape is not None:
            old = iter(x.shape)
            shape = tuple(1 if d in axes else next(old) for d in range(len(x.shape) + len(axes)))
        return self.op("Unsqueeze", x, list(axes), shape=shape)  # type: ignore[no-any-return]

    def transpose(self, x: Value, dims: Sequence[int]) -> Value:
        if isinstance(x.step, tuple) and x.step[0] == "transpose":  # of what is transposed already, both at once
            dims = [x.step[2][d] for d in dims]
            x = x.step[1]
        if list(dims) == list(range(len(dims))):
            return x
        shape = None if x.shape is None else tuple(x.shape[d] for d in dims)
        y: Value = self.op("Transpose", x, perm=list(dims), shape=shape)
        y.step = ("transpose", x, list(dims))
        return y

    def expand(self, x: Value, shape: Sequence[Any]) -> Value:
        return x if x.shape == tuple(shape) else self.op("Expand", x, self.ints(shape), shape=tuple(shape))

    def slice(self, x: Value, axis: int, start: Any, stop: Any, step: int = 1) -> Value:
        """x[start:stop:step] along an axis."""
        return self.op("Slice", x, [start], [stop], [axis], [step])  # type: ignore[no-any-return]

    def reduce(self, kind: str, x: Value, axes: Sequence[int], keepdims: bool) -> Value:
        """ReduceSum, ReduceMean, ... over axes; over none of them x itself."""
        if not axes:
            return x
        shape = None
        if x.shape is not None:
            shape = tuple(1 if d in axes else n for d, n in enumerate(x.shape) if keepdims or d not in axes)
        sums = kind not in ("ReduceMax", "ReduceMin") and types.is_float(x.dtype) and x.dtype.itemsize == 2
        wide = self.cast(x, types.FLOAT) if sums else x  # 16 bits are added up in 32
        # axes became an input with opset 13 for ReduceSum, with 18 for the others
        if self.opset >= (13 if kind == "ReduceSum" else 18):
            y = self.op(kind, wide, list(axes), keepdims=int(keepdims), shape=shape)
        else:
            y = self.op(kind, wide, axes=list(axes), keepdims=int(keepdims), shape=shape)
        return self.cast(y, x.dtype)

    def where(self, condition: Value, a: Any, b: Any) -> Value:
        like = a if isinstance(a, Value) else b if isinstance(b, Value) else None
        return self.op("Where", condition, self.value(a, like), self.value(b, like), dtype=like.dtype if like else None)  # type: ignore[no-any-return]

    def full(self, shape: Sequence[Any], number: Any, dtype: Any) -> Value:
        """A number in a shape."""
        kind = np.dtype(dtype)
        # a small constant is shorter than the node that would make it
        if not varies(tuple(shape)) and not varies(number) and math.prod(shape) <= 64:
            return self.const(np.full(shape, number, kind))
        if varies(number):
            return self.expand(self.number(number, kind), shape)
        own = types.FLOAT if kind.name == "bfloat16" and self.opset < 20 else kind
        value = types.tensor_message("", np.full((1,), number, own))
        return self.cast(self.op("ConstantOfShape", self.ints(shape), value=value, dtype=own, shape=tuple(shape)), kind)

    def range(self, n: Any) -> Value:
        """0 to n - 1 in int64."""
        if isinstance(n, int):
            return self.const(np.arange(n, dtype=np.int64))
        ends = self.const(np.int64(0)), self.number(n, np.int64), self.const(np.int64(1))
        return self.op("Range", *ends, dtype=np.int64, shape=(n,))  # type: ignore[no-any-return]

    # -- refusals
    def needs(self, opset: int, what: str) -> None:
        """Raise UnsupportedOperatorError where the version of ONNX that was asked for is older than `opset`."""
        if self.opset < opset:
            raise UnsupportedOperatorError(f"{what} needs opset_version={opset}, and {self.opset} was asked for")

    def number_of(self, n: Any, what: str) -> int:
        """A size that must be a number. Raises DynamicAxisError, naming what it is, where it varies."""
        if not isinstance(n, int):
            raise DynamicAxisError(f"{what} varies with the sizes of the inputs, and the operator has a number there")
        return n
