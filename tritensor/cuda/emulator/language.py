"""Functions of Triton's language that its interpreter lacks, and the properties of the GPU that a kernel may ask for."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import triton.language as tl
from triton.language.extra import cuda as extra
from triton.runtime import interpreter as upstream


def _scalar(value: int, kind: Any) -> Any:
    return upstream.interpreter_semantic.scalar_constant(value, kind)


def _globaltimer(_semantic: Any = None) -> Any:
    """Nanoseconds of some clock."""
    return _scalar(time.monotonic_ns(), tl.int64)


def _smid(_semantic: Any = None) -> Any:
    """All programs run on multiprocessor 0."""
    return _scalar(0, tl.int32)


def _num_warps(_semantic: Any = None) -> int:
    return upstream.interpreter_builder.num_warps


def _num_threads(_semantic: Any = None) -> int:
    return 32 * upstream.interpreter_builder.num_warps


def _map_elementwise(scalar_fn: Any, *args: Any, pack: int = 1, _semantic: Any = None, _generator: Any = None) -> Any:
    """tl.map_elementwise: a function with control flow of its own on every value, `pack` of them at a time."""
    semantic = upstream.interpreter_semantic
    args = tuple(semantic.to_tensor(a) for a in args)
    for i in range(1, len(args)):
        first, other = semantic.broadcast_impl_value(args[0], args[i])
        args = (first, *args[1:i], other, *args[i + 1 :])
    if len(args) > 2:  # the first may have grown after another was broadcast to it
        args = tuple(semantic.broadcast_impl_value(a, args[0])[0] for a in args)
    shape, flat = args[0].handle.data.shape, [a.handle.data.reshape(-1) for a in args]
    found: list[list[Any]] = []
    for at in range(0, flat[0].size, pack):
        given = [
            tl.tensor(upstream.TensorHandle(values[at + j : at + j + 1], a.dtype), a.dtype)
            for a, values in zip(args, flat, strict=True)
            for j in range(pack)
        ]
        out = scalar_fn(*given)
        found.append([semantic.to_tensor(v) for v in (out if isinstance(out, tuple | tl.tuple) else (out,))])
    results = []
    for n in range(0, len(found[0]), pack):
        values = np.concatenate([v.handle.data.reshape(-1) for row in found for v in row[n : n + pack]]).reshape(shape)
        kind = found[0][n].dtype
        block = tl.block_type(kind, list(args[0].shape)) if args[0].shape else kind
        results.append(tl.tensor(upstream.TensorHandle(values, kind), block))
    return results[0] if len(results) == 1 else tuple(results)


def _accept_format_names(dot: Any) -> Any:
    """tl.dot_scaled for formats given as plain strings, which that of Triton 3.6 does not take outside the compiler."""

    def dot_scaled(lhs: Any, lhs_scale: Any, lhs_format: Any, rhs: Any, rhs_scale: Any, rhs_format: Any, *args: Any, **options: Any) -> Any:
        named = [tl.constexpr(getattr(f, "value", f)) for f in (lhs_format, rhs_format)]
        return dot(lhs, lhs_scale, named[0], rhs, rhs_scale, named[1], *args, **options)

    return dot_scaled


OPERATORS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "and", "or", "xor", "lshift", "rshift", "lt", "le", "gt", "ge", "eq", "ne")


def _leave_to_tensors(method: Any) -> Any:
    """A constexpr's operator that leaves tensors to their own: it would take a tensor for a number, and give a constexpr that holds one."""

    def operator(self: Any, other: Any) -> Any:
        return NotImplemented if isinstance(other, tl.tensor) else method(self, other)

    return operator


def install() -> None:
    """Put them where kernels look for them."""
    tl.dtype.value = property(lambda self: self)  # compiled, a type that a kernel hands on is a constexpr, which has a value
    for name in OPERATORS:
        setattr(tl.constexpr, f"__{name}__", _leave_to_tensors(getattr(tl.constexpr, f"__{name}__")))
    for language in (tl, tl.core):
        language.dot_scaled = _accept_format_names(language.dot_scaled)
    extra.globaltimer, extra.smid, extra.num_warps, extra.num_threads = _globaltimer, _smid, _num_warps, _num_threads
    for language in (tl, tl.core):
        # not in every Triton that is supported
        if hasattr(language, "map_elementwise"):
            language.map_elementwise = _map_elementwise
