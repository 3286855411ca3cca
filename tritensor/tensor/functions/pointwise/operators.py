"""Python's operators on tensors, copies, and conversion between types."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor.autograd.node import next_sequence
from tritensor.autograd.saved import borrow_saved
from tritensor.dispatch.plans.door_code import Parameters, open_door
from tritensor.dispatch.plans.doors import Door
from tritensor.ground import dtypes
from tritensor.ground.call_site import wrapper
from tritensor.ground.dtypes import DType
from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.ground.strides import as_format, contiguous_format, preserve_format
from tritensor.ground.transforms import WrappedArray
from tritensor.ops.array import element_strides, empty_elementwise, from_host
from tritensor.ops.lazy_array import note_shared
from tritensor.ops.table import ops
from tritensor.tensor.aliasing.inplace import compute_into, overwrite
from tritensor.tensor.casting import cast
from tritensor.tensor.core import Tensor, new_tensor
from tritensor.tensor.functions.shaping.moving import to
from tritensor.tensor.functions.shaping.reshaping import to_c_order
from tritensor.tensor.overriding.protocol import awaken, takes_over
from tritensor.tensor.parsing.data import as_tensor, parse_values
from tritensor.tensor.public_api.publish import function

_SWAPPED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}  # a < b is b > a
_OPERANDS_OF = Parameters(("self", "other"), None, (), exact=True)
_OPERAND_OF = Parameters(("self",), None, (), exact=True)
_OPERANDS = (Tensor, bool, int, float, complex, np.generic)


def _is_operand(x: Any) -> bool:
    return type(x) is Tensor or isinstance(x, _OPERANDS)


def _make_operator(python: str, name: str) -> Any:
    reflected = f"__{_SWAPPED.get(python, f'r{python}')}__"

    def operator(self: Tensor, other: Any) -> Any:
        given = other
        if _is_operand(other) or (other := _to_operand(self, other, name, reflected)) is not None:
            return getattr(ops, name)(self, other)
        return _refuse_operand(name, self, python, given)

    return _open(wrapper(operator), name, python, operator)


def _open(
    long: Callable[..., Any],
    name: str,
    python: str,
    operator: Callable[..., Any],
    checks: bool = True,
    parameters: Parameters = _OPERANDS_OF,
) -> Any:
    """The door of an operator, whose parameters are `operator`'s, to which `long` is the long way."""
    f = functools.update_wrapper(open_door(Door(long, parameters, name, numbers=parameters.by_place[1:], checks=checks)), operator)
    f.__name__, f.__qualname__ = f"__{python}__", f"Tensor.__{python}__"
    return f


def _make_reflected(name: str, python: str) -> Any:
    def operator(self: Tensor, other: Any) -> Any:
        if not isinstance(self, Tensor):
            raise TypeError(f"{name}: the reflected operator was asked of a {type(self).__name__}; it is a tensor's")
        given = other
        if _is_operand(other) or (other := _to_operand(self, other, name, "")) is not None:
            # a number's powers are in C order in PyTorch
            return getattr(ops, name)(other, to_c_order(self) if name == "pow" and not isinstance(other, Tensor) else self)
        return _refuse_operand(name, self, python, given)

    # PyTorch makes number * x.reciprocal() of a quotient, so that x may be written.
    long = borrow_saved(operator) if name == "div" else wrapper(operator)
    return _open(long, name, python, operator)


def _make_in_place(name: str, python: str) -> Any:
    def operator(self: Tensor, other: Any) -> Any:
        given = other
        if not _is_operand(other) and (other := _to_operand(self, other, name, f"__r{python}__")) is None:
            return _refuse_operand(name + "_", self, f"i{python}", given)
        # No graph needs the old contents: one pass in place.
        if compute_into(name, self, (self, other), name + "_"):
            return self
        since = next_sequence()
        return overwrite(self, getattr(ops, name)(self, other), name + "_", since)

    return _open(wrapper(operator), name + "_", f"i{python}", operator, checks=False)


def _refuse_operand(name: str, x: Tensor, python: str, other: Any) -> Any:
    """NotImplemented, so that Python asks the other operand's class. Raises TypeError where that has no answer either; == and != always have one."""
    if awaken((other,)):
        return getattr(x, f"__{python}__")(other)
    # Another library's class may know tensors; Python then compares identities for == and !=.
    if python in ("eq", "ne") or type(other).__module__ != "builtins":
        return NotImplemented
    shown = "None" if other is None else f"{'an' if type(other).__name__[0] in 'aeiou' else 'a'} {type(other).__name__}"
    raise TypeError(f"{name}: other is {shown}; give a tensor or a number (tritensor.tensor(...))")


def _to_operand(x: Tensor, other: Any, name: str, reflected: str) -> Tensor | None:
    """A numpy array (its memory shared on the CPU) or a list of numbers as a tensor on x's device; None for anything else, a list's subclass that overrides
    or has an operator of its own among it."""
    if isinstance(other, np.ndarray):
        if other.dtype.kind in "OUSmM":
            return as_tensor(other, x, name)  # which refuses it
        dtypes.of(other.dtype)
        note_shared(other)
        return new_tensor(other if x.is_cpu else from_host(other, x.device))
    if isinstance(other, list | tuple) and (type(other) is list or type(other) is tuple or not _has_say(other, reflected)):
        return new_tensor(from_host(parse_values(name, other, None), x.device))
    return None


def _has_say(other: Any, reflected: str) -> bool:
    """Whether an operand's class answers, by the reflected operator, for a tensor before it: no list and no tuple does by itself."""
    own = getattr(type(other), reflected, None)
    return takes_over(other) or (own is not None and own is not getattr(list if isinstance(other, list) else tuple, reflected, None))


_BINARY = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "pow": "pow", "matmul": "matmul", "floordiv": "floor_divide",
    "mod": "remainder", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift",
}  # fmt: skip
for _python, _name in _BINARY.items():
    setattr(Tensor, f"__{_python}__", _make_operator(_python, _name))
    setattr(Tensor, f"__r{_python}__", _make_reflected(_name, f"r{_python}"))
    setattr(Tensor, f"__i{_python}__", _make_in_place(_name, _python))
Tensor.__rdiv__ = Tensor.__rtruediv__  # type: ignore[method-assign]
for _python in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Tensor, f"__{_python}__", _make_operator(_python, _python))


Tensor.__hash__ = object.__hash__  # type: ignore[assignment, method-assign]


_OPERATOR_OF_UFUNC = {
    np.add: "add", np.subtract: "sub", np.multiply: "mul", np.true_divide: "truediv", np.power: "pow", np.matmul: "matmul", np.floor_divide: "floordiv",
    np.remainder: "mod", np.bitwise_and: "and", np.bitwise_or: "or", np.bitwise_xor: "xor", np.left_shift: "lshift", np.right_shift: "rshift",
    np.equal: "eq", np.not_equal: "ne", np.less: "lt", np.less_equal: "le", np.greater: "gt", np.greater_equal: "ge",
}  # fmt: skip


def _array_ufunc(self: Tensor, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
    """A function of numpy that was given a tensor. An operator (`ndarray + tensor`) is the tensor's own, gradients included; any other
    function runs in numpy on the values and gives a tensor on the CPU.

    Raises what `__array__` does for tensors on a GPU and those that require grad: such a function would lose the graph.
    """
    python = _OPERATOR_OF_UFUNC.get(ufunc)
    # `ndarray + tensor` arrives here: numpy asks __array_ufunc__ before Python asks __radd__.
    if python is not None and method == "__call__" and not options:
        a, b = inputs
        if isinstance(a, Tensor):
            return getattr(a, f"__{python}__")(b)
        return getattr(b, f"__{_SWAPPED[python]}__" if python in _SWAPPED else f"__r{python}__")(a)
    if "out" in options:
        # numpy writes into the tensor's memory directly.
        options["out"] = tuple(x.numpy() if isinstance(x, Tensor) else x for x in options["out"])
    found = getattr(ufunc, method)(*[np.asarray(x) if isinstance(x, Tensor) else x for x in inputs], **options)
    if "out" in options:
        return found
    return tuple(map(_wrap_array, found)) if isinstance(found, tuple) else _wrap_array(found)


def _wrap_array(x: Any) -> Any:
    return new_tensor(np.asarray(x)) if isinstance(x, np.ndarray | np.generic) else x


Tensor.__array_ufunc__ = _array_ufunc  # type: ignore[assignment, method-assign]


def _make_unary(python: str, name: str) -> Any:
    def operator(self: Tensor) -> Any:
        return getattr(ops, name)(self)

    return _open(wrapper(operator), name, python, operator, parameters=_OPERAND_OF)


for _python, _name in {"neg": "neg", "abs": "abs", "invert": "bitwise_not"}.items():
    setattr(Tensor, f"__{_python}__", _make_unary(_python, _name))


def _pos(self: Tensor) -> Tensor:
    return self


Tensor.__pos__ = _pos  # type: ignore[assignment, method-assign]


@function
def clone(x: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy in fresh memory, in the graph; laid out as x is where x has no gaps, or in another memory format."""
    return ops.copy(x, memory_format=as_format("clone", memory_format, preserve_format))


@function(free=False)
def contiguous(x: Tensor, memory_format: Any = contiguous_format) -> Tensor:
    """x itself when its elements lie without gaps in C order (or in another memory format's), else a copy that does.

    Raises ShapeError for a format of another number of dimensions, ValueError for preserve_format, which is no order.
    """
    if memory_format is contiguous_format:
        return x if x.is_contiguous() else ops.copy(x)
    wanted = as_format("contiguous", memory_format, contiguous_format)
    if wanted is preserve_format:
        raise ArgumentError("contiguous: preserve_format says no order; give contiguous_format, channels_last or channels_last_3d")
    return x if x.is_contiguous(wanted) else ops.copy(x, memory_format=wanted)


@function
def astype(x: Tensor, dtype: Any, copy: bool = True) -> Tensor:
    """x as another dtype (the array API's name of `to`)."""
    return to(x, dtype=dtype, copy=copy)


def _publish_conversion(name: str, dtype: DType) -> None:
    def convert(x: Tensor, memory_format: Any = preserve_format) -> Tensor:
        return to(x, dtype=dtype, memory_format=memory_format)

    convert.__name__ = name
    convert.__doc__ = f"x as {dtype.name}; itself when it is."
    setattr(Tensor, name, convert)


for _name, _dtype in {
    "float": dtypes.float32, "double": dtypes.float64, "half": dtypes.float16, "bfloat16": dtypes.bfloat16, "long": dtypes.int64,
    "int": dtypes.int32, "short": dtypes.int16, "char": dtypes.int8, "byte": dtypes.uint8, "bool": dtypes.bool_,
}.items():  # fmt: skip
    _publish_conversion(_name, _dtype)


@function(free=False)
def type_as(x: Tensor, other: Tensor) -> Tensor:
    """x as other's dtype, on its device."""
    return to(x, device=other.device, dtype=other.dtype)


@function(free=False, also={"other": "source"})
def copy_(x: Tensor, source: Any, non_blocking: bool = False) -> Tensor:
    """Write source (broadcast, cast, moved between devices) over x; returns x. `non_blocking` as in `to`, for a source on another device."""
    if isinstance(source, Tensor):
        # What is written on the CPU is read there at once, so a copy down has to be waited for.
        source = to(source, device=x.device, dtype=x.dtype, non_blocking=non_blocking and x.is_cuda)
    return overwrite(x, source, "copy_")


@function(method=False)
def fill(x: Tensor, value: Any) -> Tensor:
    """A tensor of x's shape, dtype, device and layout with one value, a number or a 0-d tensor, everywhere."""
    # These need a node or a cast; otherwise memory is filled once, not copied and filled.
    if x._tracked or type(x._array) is WrappedArray or isinstance(value, Tensor):
        return fill_(ops.copy(x, memory_format=preserve_format), value)
    return fill_(new_tensor(empty_elementwise(x._array.shape, x._array.dtype, x.device, (x._array,))), value)


@function
def fill_(x: Tensor, value: Any) -> Tensor:
    """Write one value, a number or a 0-d tensor, everywhere; returns x."""
    if isinstance(value, Tensor) and value._array.shape:
        raise ShapeError(f"fill_: the value has shape {tuple(value._array.shape)}; give a number or a 0-d tensor, or use copy_")
    if isinstance(value, Tensor):
        value = cast(value if value.device == x.device else to(value, device=x.device), x._array.dtype)
    elif isinstance(value, bool | int | float | complex):
        value = dtypes.as_element(x._array.dtype, value, "fill_")
    overwrite(_drop_repeats(x), value, "fill_")
    return x


def _drop_repeats(x: Tensor) -> Tensor:
    """x without the repeats of its expanded dimensions: where all get one value, one write is enough."""
    strides = element_strides(x._array)
    if 0 not in strides:
        return x
    return ops.index_view(x, index=tuple([slice(0, 1) if stride == 0 else slice(None) for stride in strides]))


@function
def zero_(x: Tensor) -> Tensor:
    """Write zeros; returns x."""
    overwrite(_drop_repeats(x), 0, "zero_")
    return x
