"""Tensor descriptors: given to a launch in place of an array so that a kernel moves whole tiles of it (TMA on sm_90 and later)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from tritensor.ground import dtypes
from tritensor.ground.errors import DeviceError, DTypeError, ShapeError

_MOST_ELEMENTS = 2**20  # of a block: Triton's limit for any tensor in a kernel


@cache
def rounding_is_known() -> bool:
    """Whether this Triton can round float32 to tf32 on the way; 3.6 cannot, 3.9 can."""
    from triton.tools.tensor_descriptor import TensorDescriptor as Theirs

    return "round_f32_to_tf32" in Theirs.__dataclass_fields__


class TensorDescriptor:
    """An array on a GPU cut into tiles of `block_shape`: in the kernel, `desc.load([i, j])` and `desc.store([i, j], tile)`.

    Where a tile reaches beyond the array, what is loaded there is zero, or NaN with `padding="nan"`, and nothing is stored there.
    A GPU from sm_90 on copies such tiles by itself (its tensor memory accelerator); on older ones Triton computes addresses, and
    the same kernel runs. `shape` and `strides` are in elements, as the kernel sees them.

    Args:
        array: a CudaArray; rows lie densely (last stride 1), the first element and all other strides at multiples of 16 bytes.
        block_shape: powers of two, one per dimension of the array (1 to 5), the last one 16 bytes long or longer.
        rounds: whether float32 that is loaded is rounded to tf32 (11 bits, to nearest even), as tensor cores take it.
    Raises DeviceError for what is no array on a GPU, DTypeError for a type that cannot be copied or rounded so, ShapeError for a shape, stride
    or address that cannot be described, and ValueError for any other padding. The limits are those of cuTensorMapEncodeTiled.
    """

    __slots__ = ("array", "block_shape", "padding", "rounds", "shape", "strides", "type")

    def __init__(self, array: Any, block_shape: Sequence[int], padding: str = "zero", rounds: bool = False) -> None:
        if not (hasattr(array, "pointer") and hasattr(array, "storage")):
            raise DeviceError(f"TensorDescriptor: {type(array).__name__} is no array on a GPU; give a CudaArray")
        self.array = array
        self.block_shape = tuple(block_shape)
        self.padding = padding
        self.rounds = rounds
        self.shape: tuple[int, ...] = tuple(array.shape)
        self.strides = _strides(self.shape, array.strides, array.dtype.itemsize)
        _check(self)
        self.type = f"tensordesc<{dtypes.of(array.dtype).triton}{list(self.block_shape)}>"

    def over(self, array: Any) -> TensorDescriptor:
        """The same description of another array of this one's layout."""
        # not checked again: a replay describes arrays of a layout that passed
        found = TensorDescriptor.__new__(TensorDescriptor)
        found.array, found.block_shape, found.padding, found.rounds = array, self.block_shape, self.padding, self.rounds
        found.shape, found.strides, found.type = self.shape, self.strides, self.type
        return found

    def __repr__(self) -> str:
        rounds = ", rounds=True" if self.rounds else ""
        return f"TensorDescriptor({self.array!r}, block_shape={self.block_shape}, padding={self.padding!r}{rounds})"


def _strides(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """The strides, where a dimension of size 1, along which nobody steps, has one that can be described."""
    found = list(strides)
    unit = max(16 // itemsize, 1)
    for i in reversed(range(len(shape))):
        if shape[i] == 1:
            dense = 1 if i == len(shape) - 1 else found[i + 1] * shape[i + 1]
            found[i] = dense if i == len(shape) - 1 else -(-max(dense, 1) // unit) * unit
    return tuple(found)


def _check(d: TensorDescriptor) -> None:
    """Raise for an array, block or padding that no tensor map can describe."""
    dtype = dtypes.of(d.array.dtype)
    said = f"TensorDescriptor: {dtype.name}{list(d.shape)} with strides {list(d.array.strides)}"
    if dtype.triton is None or dtype.kind == "bool":
        raise DTypeError(f"{said}: no tensor map copies {dtype.name}; give a view of numbers of the same width (bool as uint8)")
    if d.padding not in ("zero", "nan"):
        raise ValueError(f"{said}: padding {d.padding!r}; it is 'zero' or 'nan'")
    if d.padding == "nan" and dtype.kind != "float":
        raise DTypeError(f"{said}: padding 'nan' is for floating types of 16 bits and more; use 'zero' and a mask")
    if d.rounds and dtype.name != "float32":
        raise DTypeError(f"{said}: only float32 is rounded to tf32; leave out rounds")
    if d.rounds and not rounding_is_known():
        raise DTypeError(f"{said}: this Triton does not round to tf32 on the way; take a later one, or round in the kernel")
    rank = len(d.shape)
    if not 1 <= rank <= 5:
        raise ShapeError(f"{said}: {rank} dimensions; a tensor map has 1 to 5, so merge some by reshape")
    if not all(1 <= n < 2**31 for n in d.shape):
        raise ShapeError(f"{said}: sizes must be 1 to 2**31 - 1; there is nothing to launch for an empty array")
    if d.strides[-1] != 1:
        raise ShapeError(f"{said}: the last stride is {d.strides[-1]} and must be 1: describe a transposed view, or a contiguous copy")
    for i, stride in enumerate(d.strides[:-1]):
        nbytes = stride * dtype.itemsize
        if nbytes % 16 or not 0 <= nbytes < 2**40:
            raise ShapeError(f"{said}: stride {i} is {nbytes} bytes and must be a multiple of 16 from 0 to 2**40; pad the rows, or copy")
    if d.array.pointer % 16:
        raise ShapeError(
            f"{said}: the first element is {d.array.pointer % 16} bytes behind a multiple of 16, where none may be; "
            "describe the whole array and start loads at an index, or copy"
        )
    _check_block(d, said, dtype.itemsize)


def _check_block(d: TensorDescriptor, said: str, itemsize: int) -> None:
    block = d.block_shape
    if len(block) != len(d.shape):
        raise ShapeError(f"{said}: block_shape {list(block)} has {len(block)} sizes for {len(d.shape)} dimensions")
    if not all(type(n) is int and n > 0 and n & (n - 1) == 0 for n in block):
        raise ShapeError(f"{said}: block_shape {list(block)}: sizes are powers of two")
    if block[-1] * itemsize < 16:
        raise ShapeError(f"{said}: block_shape {list(block)}: a row of it is {block[-1] * itemsize} bytes and must be 16 or more")
    elements = 1
    for n in block:
        elements *= n
    if elements > _MOST_ELEMENTS:
        raise ShapeError(f"{said}: block_shape {list(block)} has {elements} elements; a block has at most {_MOST_ELEMENTS}")
