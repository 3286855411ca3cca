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
_shapes: dict[tuple[int, ...], Any] = {}  # one object for each, so that equal shapes are told by `is`


def _block(self: Any, element_ty: Any, shape: Any) -> None:
    """block_type.__init__: what the first block of these sizes came to."""
    key = (element_ty.name, type(element_ty), *[n.value if type(n) is tl.constexpr else n for n in shape])
    found = _blocks.get(key)
    if found is None:
        _block_init(self, element_ty, shape)
        if len(_blocks) >= _KEPT:
            _blocks.clear()
        _blocks[key] = {**self.__dict__, "of_tensors": {}}
        self.of_tensors = _blocks[key]["of_tensors"]
    else:
        self.__dict__.update(found)


def _tensor(self: Any, handle: Any, type: Any) -> None:
    """tensor.__init__: what the first tensor of this type came to."""
    known = type.__dict__.get("of_tensors")
    if not known:
        _tensor_init(self, handle, type)
        if known is None:
            type.of_tensors = known = {}
        known.update(self.__dict__)
        del known["handle"]
        sizes = tuple(n.value for n in self.shape)
        self.shape = known["shape"] = _shapes.setdefault(sizes, self.shape)
    else:
        self.__dict__.update(known)
        self.handle = handle


class Semantic(upstream.TritonSemantic):
    """Triton's rules for operations, with nothing to do where two operands are of one type and shape already."""

    def binary_op_type_checking_impl(self, lhs: Any, rhs: Any, *allowed: Any, **more: Any) -> Any:
        if type(lhs) is tl.tensor is type(rhs) and lhs.dtype is rhs.dtype and lhs.dtype.name in _UNCHANGED:
            return self.broadcast_impl_value(lhs, rhs)
        return super().binary_op_type_checking_impl(lhs, rhs, *allowed, **more)

    def broadcast_impl_value(self, lhs: Any, rhs: Any) -> Any:
        if lhs.shape is rhs.shape:
            return lhs, rhs
        return super().broadcast_impl_value(lhs, rhs)

    def cast(self, input: Any, dst_ty: Any, *rounding: Any, **more: Any) -> Any:
        if input.dtype is dst_ty:
            return input
        return super().cast(input, dst_ty, *rounding, **more)


def install() -> None:
    """Put the two constructors where Triton has its own."""
    tl.block_type.__init__ = _block
    tl.tensor.__init__ = _tensor
