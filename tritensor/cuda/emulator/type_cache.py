"""Types and shapes of the interpreter's values made once: most of an operation's time went to making them anew.

Every operation of a kernel makes a `block_type` (checks of its sizes, a name) and a `tensor` (its shape as a tuple of constants,
with a type of its own). Both follow from the element's type and the sizes alone, so what the first of a kind came to is handed to
all that follow. Triton's own constructors make that first one: nothing here knows what is in it.
"""

from __future__ import annotations

from typing import Any

import triton.language as tl
from triton.runtime import interpreter as upstream

_KEPT = 1 << 14  # kinds of blocks: no kernel has as many, a day of benchmarks may
# two of one of these are operated on as they are; 16-bit floats are divided as float32, pointers are checked
_UNCHANGED = frozenset({*(f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64)), "int1", "fp32", "fp64"})
_block_init = tl.block_type.__init__
_tensor_init = tl.tensor.__init__
_blocks: dict[tuple[Any, ...], dict[str, Any]] = {}
_shapes: dict[tuple[int, ...], Any] = {}  # one object for each, for good: equal shapes are told by `is`, and known by their id
_joined: dict[tuple[int, int], Any] = {}  # two shapes and the one that holds both
_constants: dict[tuple[Any, ...], Any] = {}  # Python's numbers as tensors
_NUMBERS, _LARGEST = 1 << 12, 1 << 10  # so many of these, of so many elements: at most 32 MB


def _block(self: Any, element_ty: Any, shape: Any) -> None:
    """block_type.__init__: what the first block of these sizes came to."""
    key = (element_ty.name, type(element_ty), *[n.value if type(n) is tl.constexpr else n for n in shape])
    found = _blocks.get(key)
    if found is None:
        _block_init(self, element_ty, shape)
        if len(_blocks) >= _KEPT:
            _blocks.clear()
        found = _blocks[key] = self.__dict__ | {"of_tensors": {}, "stretched": {}}
        self.__dict__.update(found)
    else:
        self.__dict__.update(found)


def _tensor(self: Any, handle: Any, type: Any) -> None:
    """tensor.__init__: what the first tensor of this type came to."""
    known = type.__dict__.get("of_tensors")
    if not known:
        _tensor_init(self, handle, type)
        made = dict(self.__dict__)
        del made["handle"]
        sizes = tuple(n.value for n in self.shape)
        self.shape = made["shape"] = _shapes.setdefault(sizes, self.shape)
        if known is None:
            type.of_tensors = made
        else:
            known.update(made)  # in one step: another thread reads it
    else:
        self.__dict__.update(known)
        self.handle = handle


class Semantic(upstream.TritonSemantic):
    """Triton's rules for operations, with nothing to do where two operands are of one type and shape already, and what was done before where one
    is a Python number or two shapes were joined before."""

    def binary_op_type_checking_impl(self, lhs: Any, rhs: Any, *allowed: Any, **more: Any) -> Any:
        if type(lhs) is tl.tensor:
            if type(rhs) is tl.tensor:
                if lhs.dtype is rhs.dtype and lhs.dtype.name in _UNCHANGED:
                    return self.broadcast_impl_value(lhs, rhs)
            elif type(rhs) is int or (type(rhs) is float and rhs and rhs == rhs):  # of zeros the sign is no part of a key, and NaN is none
                return self._with_number(lhs, rhs, allowed, more)
        return super().binary_op_type_checking_impl(lhs, rhs, *allowed, **more)

    def _with_number(self, lhs: Any, number: float, allowed: tuple[Any, ...], more: dict[str, Any]) -> Any:
        """A tensor and a number: the constant that it was the last time, where the tensor stayed as it is."""
        key = (number, type(number), lhs.dtype.name, id(lhs.shape), allowed, *more.items())
        constant = _constants.get(key)
        if constant is not None:
            return lhs, constant
        left, right = super().binary_op_type_checking_impl(lhs, number, *allowed, **more)
        if left is lhs and right.handle.data.size <= _LARGEST:
            if len(_constants) >= _NUMBERS:
                _constants.clear()
            right.handle.data.flags.writeable = False  # every later operation gets the same
            _constants[key] = right
        return left, right

    def broadcast_impl_value(self, lhs: Any, rhs: Any) -> Any:
        if lhs.shape is rhs.shape:
            return lhs, rhs
        shape = _joined.get((id(lhs.shape), id(rhs.shape)))
        if shape is not None:
            return self._stretched(lhs, shape), self._stretched(rhs, shape)
        left, right = super().broadcast_impl_value(lhs, rhs)
        _joined[id(lhs.shape), id(rhs.shape)] = left.shape
        return left, right

    def _stretched(self, x: Any, shape: Any) -> Any:
        """x over a shape with which its own was joined before."""
        if x.shape is shape:
            return x
        types = x.type.__dict__.get("stretched")
        if types is None:
            types = x.type.stretched = {}
        wide = types.get(id(shape))
        if wide is None:
            wide = types[id(shape)] = tl.block_type(x.dtype, shape)
        if x.type.is_block():
            return self.tensor(self.builder.create_broadcast(x.handle, wide.shape), wide)
        return self.tensor(self.builder.create_splat(wide, x.handle), wide)

    def cast(self, input: Any, dst_ty: Any, *rounding: Any, **more: Any) -> Any:
        if input.dtype is dst_ty:
            return input
        return super().cast(input, dst_ty, *rounding, **more)


def patch_attribute(owner: Any, name: str, member: Any, builder: Any, scope: Any) -> None:
    """In place of Triton's: the builtin's function itself, told whose rules hold; Triton's sorts the keywords and asks for the rules at each call."""
    function, semantic = getattr(member, "__wrapped__", member), upstream.interpreter_semantic

    def builtin(*args: Any, **kwargs: Any) -> Any:
        kwargs["_semantic"] = semantic
        return function(*args, **kwargs)

    scope.set_attr(owner, name, builtin)


def install() -> None:
    """Put the two constructors where Triton has its own."""
    tl.block_type.__init__ = _block
    tl.tensor.__init__ = _tensor
