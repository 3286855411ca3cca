"""Elementwise numpy in blocks that stay in the cache: several passes over memory become one, and 16-bit floats compute in float32."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor.ground.device import cpu
from tritensor.ground.strides import ELEMENTWISE
from tritensor.kernels.parts.cpu.float_conversions import FLOATING, as_float32, is_half
from tritensor.llvm.loops import Loop
from tritensor.llvm.simd import select as choice
from tritensor.ops.array import empty_elementwise, to_layout
from tritensor.ops.table.signature import signature

# elements: a float64 block with a few temporaries fits a second-level cache of 2 MB, and numpy's cost per call is lost in it
BLOCK = 32768
# overflow gives infinity and 0/0 NaN, as everywhere in this library: no warning
SILENT = functools.partial(np.errstate, all="ignore")


def _contiguous_alike(arrays: tuple[Any, ...], shape: tuple[int, ...]) -> bool:
    return all(not isinstance(x, np.ndarray) or x.ndim == 0 or (x.shape == shape and x.flags.c_contiguous) for x in arrays)


def upcast(x: Any) -> Any:
    """A 16-bit float array as float32, everything else as it is."""
    return as_float32(x) if isinstance(x, np.ndarray) and is_half(x.dtype) else x


@SILENT()
def evaluate(function: Callable[..., Any], arrays: tuple[Any, ...]) -> np.ndarray:
    """function(*arrays) for an elementwise function of arrays and numbers, the first of them an array of the result's shape and type.

    Small float32 and float64 arrays go straight through; larger ones block by block; 16-bit floats in float32, rounded once.
    """
    first = arrays[0]
    half = is_half(first.dtype)
    if not half and first.size <= 2 * BLOCK:
        return function(*arrays)
    # arrays that broadcast or lie otherwise have no common pieces; two blocks or fewer gain nothing
    if first.size <= 2 * BLOCK or not _contiguous_alike(arrays, first.shape):
        result = function(*[upcast(x) for x in arrays]) if half else function(*arrays)
        return np.asarray(result).astype(first.dtype, copy=False)
    out = np.empty(first.shape, first.dtype)
    target = out.reshape(-1)
    flat = [x.reshape(-1) if isinstance(x, np.ndarray) and x.ndim else x for x in arrays]
    for start in range(0, first.size, BLOCK):
        part = slice(start, start + BLOCK)
        values = [x[part] if isinstance(x, np.ndarray) and x.ndim else x for x in flat]
        target[part] = function(*[upcast(x) for x in values]) if half else function(*values)
    return out


def blocked(function: Callable[[np.ndarray, np.ndarray], None]) -> Callable[..., np.ndarray]:
    """The CPU's side of a unary op from `function(x, out)`, which writes the result for one block of x to `out` (never x itself)."""

    @SILENT()
    def cpu_side(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        if out is None:
            out = np.empty(x.shape, x.dtype) if x.flags.c_contiguous else np.asarray(empty_elementwise(x.shape, x.dtype, cpu, (x,)))
        half = is_half(x.dtype)
        direct = not half and not np.may_share_memory(x, out)
        if x.size > BLOCK and x.flags.c_contiguous and out.flags.c_contiguous:
            source, target = x.reshape(-1), out.reshape(-1)
            parts = [(source[i : i + BLOCK], target[i : i + BLOCK]) for i in range(0, x.size, BLOCK)]
        else:  # numpy's in-place operations want arrays, and its results of 0 dimensions are numbers
            parts = [(x, out) if x.ndim else (x.reshape(1), out.reshape(1))]
        for source, target in parts:
            room = target if direct else np.empty(source.shape, np.float32 if half else x.dtype)
            function(as_float32(source) if half else source, room)
            if not direct:
                target[...] = room
        return out

    return cpu_side


def takes_out(function: Callable[..., Any]) -> bool:
    """Whether a function takes `out=`, as the CPU's side of an elementwise op must. A ufunc does."""
    code = getattr(function, "__code__", None)
    if code is None:
        return True
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return "out" in names or bool(code.co_flags & inspect.CO_VARKEYWORDS)


def in_expression(function: Callable[..., Any], result: Callable[[np.dtype], np.dtype] = np.dtype) -> Callable[..., np.ndarray]:
    """The CPU's side of an elementwise op from a plain expression of numpy, `lambda x: x / np.sqrt(1 + x * x)`: in float32 for 16-bit floats, rounded
    once to `result` of the inputs' type, without floating-point warnings, in an array of its own or in `out`."""
    quiet = SILENT()(function)  # as a decorator it costs half of what it does in a with statement

    def cpu_side(*arrays: Any, out: np.ndarray | None = None, **attrs: Any) -> np.ndarray:
        first = arrays[0] if isinstance(arrays[0], np.ndarray) else arrays[1]
        # Of many elements, where no machine code runs: one pass over memory in place of one for each operation.
        if len(arrays) == 1 and first.size > 2 * BLOCK:
            y: Any = evaluate(functools.partial(function, **attrs), arrays)
        elif first.dtype.char in "fd" and all([getattr(x, "dtype", None) is first.dtype for x in arrays]):
            y = quiet(*arrays, **attrs)
        else:
            # a number has the arrays' type, as in the kernel: numpy's functions of a number alone give float64
            kind = np.float32 if is_half(first.dtype) else first.dtype.type
            y = quiet(*[upcast(x) if isinstance(x, np.ndarray) else kind(x) for x in arrays], **attrs)
        if out is not None:
            out[...] = y
            return out
        dtype, y = result(first.dtype), np.asarray(y)
        own = y.base is None and y is not first and (len(arrays) == 1 or not any([y is x for x in arrays]))
        return y if own and y.dtype is dtype else y.astype(dtype)

    def bare(x: Any, *second: Any) -> Any:
        if second:
            return cpu_side(x, *second)
        y = quiet(x)
        # What most expressions give is right as it is: to see that is cheaper than to make sure.
        if y.dtype is not x.dtype or y.base is not None or y is x:
            y = cpu_side(x)
        return y if y.strides == x.strides else to_layout(ELEMENTWISE, np.asarray(y), (x,))

    cpu_side.bare = bare  # type: ignore[attr-defined]
    return functools.wraps(function)(cpu_side)


def blocked_together(block: Callable[..., None]) -> Callable[..., np.ndarray]:
    """The CPU's side of an elementwise op of several inputs, from block(*inputs, out) on arrays of one float type that hold as many elements as out,
    or one, in one dimension."""

    def cpu_side(*inputs: Any, out: np.ndarray | None = None) -> Any:
        given = tuple(x for x in inputs if isinstance(x, np.ndarray))
        dtype = given[0].dtype
        shape = np.broadcast_shapes(*[x.shape for x in given])
        if out is None:
            out = np.asarray(empty_elementwise(shape, dtype, cpu, given))
        wide = np.dtype(np.float32) if is_half(dtype) else dtype
        # where a result overlaps an operand, or lies with gaps, it is made beside it
        flat = [_flat(x, shape, wide) for x in inputs]
        apart = out.flags.c_contiguous and not any(np.may_share_memory(out, x) for x in flat)
        target = out.reshape(-1) if apart else np.empty(out.size, wide)
        with SILENT():
            for start in range(0, target.size, BLOCK):
                part = slice(start, start + BLOCK)
                values = [x[part].astype(wide, copy=False) if x.size != 1 else x.astype(wide, copy=False) for x in flat]
                if target.dtype == wide:
                    block(*values, target[part])
                else:
                    room = np.empty(target[part].shape, wide)
                    block(*values, room)
                    target[part] = room
        if not apart:
            out[...] = target.reshape(shape)
        return out

    return cpu_side


def _flat(x: Any, shape: tuple[int, ...], wide: np.dtype) -> np.ndarray:
    """An operand as one sequence of the result's elements; one that is the same everywhere as a sequence of one."""
    if not isinstance(x, np.ndarray):
        return np.full(1, x, wide)
    if x.size == 1:
        return x.reshape(1)
    return np.broadcast_to(x, shape).reshape(-1) if x.shape != shape else x.reshape(-1)


def beside_gaps(ufunc: Callable[..., Any]) -> Callable[..., Any]:
    """The CPU's side of a ufunc of one input of which numpy 2.3 or 2.4 has a loop that writes wrong values to an `out` with gaps between its elements, or
    reads from other elements then."""

    def cpu_side(x: np.ndarray, *, out: np.ndarray | None = None) -> Any:
        if out is None or out.flags.c_contiguous:
            return ufunc(x, out=out)
        out[...] = ufunc(x)
        return out

    cpu_side.bare = ufunc  # type: ignore[attr-defined]
    return cpu_side


_BITS = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}


def _zero_where_by_bits(g: np.ndarray, drop: np.ndarray) -> np.ndarray:
    """Bits are masked: ten times faster than np.where, and infinities and NaN go as well."""
    if drop.shape != g.shape:
        drop = np.broadcast_to(drop, g.shape)
    keep = np.subtract(drop.view(np.int8), 1, dtype=np.int8)  # 0 where dropped, else -1: all bits
    return np.bitwise_and(g.view(_BITS[g.itemsize]), keep).view(g.dtype)


_ZEROED = Loop(lambda g, drop: choice(drop != 0, 0.0, g)).as_function("zero_where", _zero_where_by_bits, FLOATING)


def zero_where(g: np.ndarray, drop: np.ndarray) -> np.ndarray:
    """g with zeros where `drop` is True."""
    return _ZEROED.call(g, drop)  # type: ignore[no-any-return]


def select(condition: np.ndarray, a: Any, b: Any, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """a where condition, else b, of which at least one is a number: by bits, b ^ ((a ^ b) & mask), where np.where would crawl."""
    if dtype.itemsize not in _BITS:
        return np.where(condition, np.asarray(a, dtype), np.asarray(b, dtype))
    bits = _BITS[dtype.itemsize]
    first, second = (np.asarray(x, dtype).view(bits) for x in (a, b))
    mask = np.negative(condition.view(np.int8), dtype=np.int8)
    out = np.empty(shape, dtype)
    result = out.view(bits)
    # a number of zero bits, as in masking, needs one operation of the three
    if second.ndim == 0 and not second.any():
        np.bitwise_and(first, mask, out=result)
        return out
    np.bitwise_xor(first, second, out=result)
    np.bitwise_and(result, mask, out=result)
    np.bitwise_xor(result, second, out=result)
    return out


def of_ufunc(ufunc: Callable[..., Any], inputs: tuple[str, ...], bool_result: bool = False) -> Callable[..., Any]:
    """The CPU's side of a ufunc of one or two inputs. `bare` is the ufunc itself, which is right for float32 and float64, and for two arrays of one type.

    One 16-bit float is computed in float32 and rounded once: some numpys compute float16 to 2 ULP alone. So is one with a Python number, as in
    the kernel: numpy would round the number to the array's type first (float16), or give float32 (bfloat16).
    """

    def cpu_side(a: Any, b: Any = None, *, out: np.ndarray | None = None) -> Any:
        first = isinstance(a, np.ndarray)
        array = a if first else b
        if (first and isinstance(b, np.ndarray)) or not is_half(array.dtype):
            return ufunc(a, out=out) if b is None else ufunc(a, b, out=out)
        with SILENT():
            y = ufunc(as_float32(a)) if b is None else ufunc(*[as_float32(x) if x is array else np.float32(x) for x in (a, b)])
            if out is not None:
                out[...] = y
                return out
            return y if bool_result else np.asarray(y).astype(array.dtype)

    cpu_side.__signature__ = signature(inputs)  # type: ignore[attr-defined]
    cpu_side.bare = ufunc  # type: ignore[attr-defined]
    return cpu_side
