"""Triton's interpreter made exact: real bfloat16 and float8 arithmetic, single-rounding fma, library functions, fast reductions.

`install()` is called once per process, under TRITON_INTERPRET=1 only. What it changes and why:

- 16-bit and 8-bit floats are held as ml_dtypes arrays (the interpreter keeps raw bits: arithmetic on them is wrong, casts truncate);
- libdevice functions get numpy stand-ins, inline PTX is evaluated (instructions/; the interpreter raises);
- comparisons are int1 and int1 arithmetic wraps at one bit (the interpreter gives a comparison its operands' type);
- casts of floats to integers saturate, NaN becomes 0;
- int32 arithmetic that wraps around is remembered until an address is made of it (address_overflow.py); hints, assumptions and assertions
  are held against the values; Python's syntax is read as the compiler reads it (python_syntax.py);
- reductions and scans with a user's combine function run in log2(n) steps over whole arrays, in a tree as on the GPU (instructions/reductions.py);
- Triton's language is patched once for good: the interpreter does it anew at every call, which was most of a launch's time;
- 3.6's maximum, minimum, clamp, fma and umulhi follow the GPU, as 3.9's do.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import triton.language as tl
from triton.runtime import interpreter as upstream

from tritensor.cuda.emulator import address_overflow as address_overflow
from tritensor.cuda.emulator import language, python_syntax, type_cache
from tritensor.cuda.emulator.compiler_hints import promise
from tritensor.cuda.emulator.instructions import inline_ptx, reductions
from tritensor.cuda.emulator.instructions.arithmetic import fma, quotient, scaled, to_integer, umulhi
from tritensor.cuda.emulator.instructions.libdevice import stand_in

_SMALL_FLOATS = {
    tl.bfloat16: np.dtype(ml_dtypes.bfloat16),
    tl.float8e5: np.dtype(ml_dtypes.float8_e5m2),
    tl.float8e4nv: np.dtype(ml_dtypes.float8_e4m3fn),
}
_SMALL = frozenset(_SMALL_FLOATS.values())
_FLOAT8_MAX = {tl.float8e5: 57344.0, tl.float8e4nv: 448.0}
_upstream_numpy_type = upstream._get_np_dtype
_numpy_types: dict[str, np.dtype] = {}
_Handle = upstream.TensorHandle
_BOOL = np.dtype(np.bool_)
_PRECISIONS = ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6")  # of tl.dot on NVIDIA's GPUs; all give float32's product here


def numpy_type(dtype: Any) -> np.dtype:
    """The numpy type in which values of a Triton type are held."""
    scalar = dtype.scalar
    found = _numpy_types.get(scalar.name)  # by name: Triton's types take microseconds to hash
    if found is None:
        found = np.dtype(np.uint64) if scalar.is_ptr() else _SMALL_FLOATS.get(scalar) or _upstream_numpy_type(scalar)
        _numpy_types[scalar.name] = found
    return found


_FLOAT_ATOMICS: dict[Any, Callable[..., np.ndarray]] = {
    upstream._ir.ATOMIC_OP.FADD: np.add, upstream._ir.ATOMIC_OP.MAX: np.fmax, upstream._ir.ATOMIC_OP.MIN: np.fmin,
    upstream._ir.ATOMIC_OP.XCHG: lambda old, new: new,
}  # fmt: skip


def _is_small(dtype: np.dtype) -> bool:
    """Whether it is one of ml_dtypes' types, which the interpreter's C++ half does not know."""
    return dtype in _SMALL


def spread(x: np.ndarray, shape: Any) -> np.ndarray:
    """x over a larger shape. A copy: for a kernel's tiles numpy's views of this kind take longer to make."""
    if x.shape == shape:
        return x
    out = np.zeros(shape, x.dtype)  # what tests do to np.empty takes longer
    out[...] = x
    return out


def _masked_lanes() -> str:
    """What masked-off lanes of a load without `other` hold: "poison" (see sanitizer.py), or the "zero" that Triton's code for NVIDIA's GPUs leaves
    there, though its language promises none. Raises ValueError for anything else in TRITENSOR_MASKED_LANES."""
    asked = os.environ.get("TRITENSOR_MASKED_LANES", "poison")
    if asked not in ("poison", "zero"):
        raise ValueError(f"TRITENSOR_MASKED_LANES={asked}: it is poison or zero")
    return asked


class Builder(upstream.InterpreterBuilder):
    """The interpreter's operations, corrected. `watch` sees every access to memory (see sanitizer.py)."""

    def __init__(self) -> None:
        super().__init__()
        # uint32 arithmetic wraps, as on the GPU; debug: assertions are compiled in
        self.options = upstream.InterpreterOptions(sanitize_overflow=False, debug=True, allowed_dot_input_precisions=_PRECISIONS)
        self.watch: Any = None
        self.num_warps = 4
        self.poisons = _masked_lanes() == "poison"

    # memory
    def create_masked_load(self, ptrs: Any, mask: Any, other: Any, *_: Any, **__: Any) -> Any:
        element = ptrs.get_element_ty()
        dtype = numpy_type(element)
        if self.watch is not None:
            self.watch.load(ptrs, mask.data)
        fill = np.zeros(ptrs.data.shape, dtype) if other is None else spread(other.data, ptrs.data.shape)
        if other is None and self.watch is not None and self.poisons:
            fill = self.watch.poison(fill)
        raw = np.dtype(f"u{dtype.itemsize}") if _is_small(dtype) else dtype
        got = upstream._interpreter.load(ptrs.data, mask.data, fill.astype(dtype, copy=False).view(raw), raw)
        return _Handle(got.view(dtype), element)

    def create_masked_store(self, ptrs: Any, value: Any, mask: Any, *_: Any, **__: Any) -> Any:
        if self.watch is not None:
            self.watch.store(ptrs, value.data, mask.data)
        data = value.data
        if _is_small(data.dtype):
            data = np.ascontiguousarray(data).view(f"u{data.dtype.itemsize}")
        return upstream._interpreter.store(ptrs.data, data, mask.data)

    def create_load(self, ptr: Any, *_: Any, **__: Any) -> Any:
        mask = _Handle(np.ones(ptr.data.shape, bool), tl.int1)
        return self.create_masked_load(ptr, mask, None)

    def create_store(self, ptr: Any, value: Any, *_: Any, **__: Any) -> Any:
        return self.create_masked_store(ptr, value, _Handle(np.ones(ptr.data.shape, bool), tl.int1))

    def create_atomic_rmw(self, op: Any, ptr: Any, value: Any, mask: Any, sem: Any, scope: Any) -> Any:
        if self.watch is not None:
            self.watch.atomic(ptr, mask.data)
        kind = value.data.dtype
        if _is_small(kind) or (kind.kind == "f" and op != upstream._ir.ATOMIC_OP.FADD):
            return self._float_atomic(op, ptr, value, mask)
        return super().create_atomic_rmw(op, ptr, value, mask, sem, scope)

    def _float_atomic(self, op: Any, ptr: Any, value: Any, mask: Any) -> Any:
        """An atomic operation that the interpreter's C++ half does not know, on bfloat16 or an exchange of floats: one lane after another."""
        shape = ptr.data.shape
        values, active = (np.broadcast_to(x, shape).reshape(-1) for x in (value.data, mask.data))
        old = np.zeros(ptr.data.size, value.data.dtype)
        raw = np.dtype(f"u{old.dtype.itemsize}")
        every = np.ones(1, bool)
        # lane after lane: two lanes may meet at one address, and the second must see what the first has left
        for i in np.flatnonzero(active):
            at = ptr.data.reshape(-1)[i : i + 1]
            old[i : i + 1] = upstream._interpreter.load(at, every, np.zeros(1, raw), raw).view(old.dtype)
            new = _FLOAT_ATOMICS[op](old[i : i + 1], values[i : i + 1]).astype(old.dtype)
            upstream._interpreter.store(at, np.ascontiguousarray(new).view(raw), every)
        return _Handle(old.reshape(shape), value.dtype.scalar)

    def create_descriptor_reduce(self, kind: Any, desc: Any, value: Any, indices: list[Any]) -> None:
        """A tile added to (and so on) the array that a descriptor is of."""
        ptrs, mask = desc.materialize_pointers(indices)
        mask = mask if isinstance(mask, _Handle) else _Handle(mask, tl.int1)
        name = kind.name.upper()
        if value.dtype.scalar.is_floating() and name == "ADD":
            name = "FADD"
        elif value.dtype.scalar.is_int_unsigned() and name in ("MIN", "MAX"):
            name = f"U{name}"
        operation = getattr(upstream._ir.ATOMIC_OP, name)
        self.create_atomic_rmw(operation, ptrs, value, mask, upstream._ir.MEM_SEMANTIC.RELAXED, None)

    def create_atomic_cas(self, ptr: Any, cmp: Any, value: Any, sem: Any, scope: Any) -> Any:
        # nobody watches outside of a launch
        if self.watch is None:
            return super().create_atomic_cas(ptr, cmp, value, sem, scope)
        self.watch.swap(ptr)
        found = super().create_atomic_cas(ptr, cmp, value, sem, scope)
        self.watch.swapped(ptr, found.data == cmp.data)
        return found

    def create_barrier(self) -> None:
        if self.watch is not None:
            self.watch.barrier()

    # values
    def create_splat(self, kind: Any, arg: Any) -> Any:
        return _Handle(spread(arg.data, kind.shape), arg.dtype.scalar)

    def create_broadcast(self, arg: Any, shape: Any) -> Any:
        return _Handle(spread(arg.data, shape), arg.dtype.scalar)

    def create_expand_dims(self, arg: Any, axis: int) -> Any:
        shape = arg.data.shape
        return _Handle(arg.data.reshape(*shape[:axis], 1, *shape[axis:]), arg.dtype.scalar)

    def get_all_ones_value(self, kind: Any) -> Any:
        dtype = numpy_type(kind)
        return _Handle(np.ones(1, bool) if dtype is _BOOL else np.array([-1]).astype(dtype), kind.scalar)

    def create_histogram(self, data: Any, bins: int, mask: Any) -> Any:
        inside = (data.data >= 0) & (data.data < bins)  # all else is dropped
        counted = data.data[inside if mask is None else inside & mask.data]
        return _Handle(np.bincount(counted.astype(np.int64), minlength=bins).astype(np.int32), tl.int32)

    # types
    def get_bf16(self, value: float) -> Any:
        return _Handle(np.array([value], dtype=ml_dtypes.bfloat16), tl.bfloat16)

    def cast_impl(self, src: Any, dst_type: Any) -> Any:
        to = dst_type.scalar
        data = src.data
        if to in _FLOAT8_MAX:  # the GPU's conversion saturates, NaN stays NaN
            data = np.clip(data.astype(np.float32), -_FLOAT8_MAX[to], _FLOAT8_MAX[to])
        elif to.is_int() and data.dtype.kind in "fV":
            return _Handle(to_integer(data, numpy_type(to)), to)
        return _Handle(data.astype(numpy_type(to)), to)

    def create_int_cast(self, src: Any, dst_type: Any, is_signed: bool) -> Any:
        return address_overflow.cast(src, self.cast_impl(src, dst_type))

    def create_select(self, cond: Any, lhs: Any, rhs: Any) -> Any:
        out = address_overflow.select(cond, lhs, rhs, self.ternary_op(cond, lhs, rhs, np.where))
        if "argument" in lhs.attr and lhs.attr["argument"] == rhs.attr.get("argument"):
            out.attr["argument"] = lhs.attr["argument"]
        return out

    def create_fp_to_fp(self, src: Any, dst_type: Any, rounding_mode: Any) -> Any:
        if rounding_mode is None or rounding_mode == upstream._ir.ROUNDING_MODE.RTNE:
            return self.cast_impl(src, dst_type)
        return super().create_fp_to_fp(src, dst_type, rounding_mode)

    # arithmetic
    def binary_op(self, lhs: Any, rhs: Any, op: Any) -> Any:
        kind, given = lhs.dtype.scalar, lhs.data.dtype
        if given is _BOOL and rhs.data.dtype is _BOOL:  # a bit: numpy would saturate, and has no subtraction
            return _Handle((op(lhs.data.astype(np.int8), rhs.data.astype(np.int8)) & 1).astype(np.bool_), kind)
        out = op(lhs.data, rhs.data)
        if out.dtype is _BOOL:
            return _Handle(out, tl.int1)
        return _Handle(out if out.dtype is given else out.astype(numpy_type(kind), copy=False), kind)

    create_add = address_overflow.binary(np.add, "+", operator.add)
    create_sub = address_overflow.binary(np.subtract, "-", operator.add)
    create_mul = address_overflow.binary(np.multiply, "*", operator.mul)
    create_shl = address_overflow.binary(np.left_shift, "<<", lambda a, by: a << min(by, 64))
    create_srem = address_overflow.through(np.fmod)
    create_sdiv = address_overflow.through(quotient)
    create_minsi = address_overflow.through(np.minimum)
    create_maxsi = address_overflow.through(np.maximum)

    def create_addptr(self, ptr: Any, offset: Any) -> Any:
        return address_overflow.offset(ptr, offset, super().create_addptr(ptr, offset))

    def create_minnumf(self, lhs: Any, rhs: Any) -> Any:
        return self.binary_op(lhs, rhs, np.fmin)

    def create_maxnumf(self, lhs: Any, rhs: Any) -> Any:
        return self.binary_op(lhs, rhs, np.fmax)

    def create_clampf(self, arg: Any, lo: Any, hi: Any, propagate_nans: Any) -> Any:
        # fmax and fmin pass a NaN over, maximum and minimum hand it on
        if propagate_nans == upstream._ir.PROPAGATE_NAN.NONE:
            return self.binary_op(self.binary_op(arg, lo, np.fmax), hi, np.fmin)
        return self.binary_op(self.binary_op(arg, lo, np.maximum), hi, np.minimum)

    def create_fma(self, x: Any, y: Any, z: Any) -> Any:
        return _Handle(fma(x.data, y.data, z.data), z.dtype.scalar)

    def create_umulhi(self, lhs: Any, rhs: Any) -> Any:
        return _Handle(umulhi(lhs.data, rhs.data), lhs.dtype.scalar)

    def create_erf(self, arg: Any) -> Any:
        return _Handle(stand_in("__nv_erf", [arg.data]).astype(arg.data.dtype), arg.dtype.scalar)

    def create_rsqrt(self, arg: Any) -> Any:
        return _Handle((1 / np.sqrt(arg.data)).astype(arg.data.dtype), arg.dtype.scalar)

    def create_dot(self, a: Any, b: Any, d: Any, input_precision: Any, max_num_imprecise_acc: Any) -> Any:
        # 16-bit products are summed in float32, as tensor cores do: in their own type numpy would round each of them
        exact = d.data.dtype if d.data.dtype.kind in "iu" or d.data.dtype == np.float64 else np.dtype(np.float32)
        left, right = a.data.astype(exact), b.data.astype(exact)
        if input_precision == upstream._ir.INPUT_PRECISION.TF32 and np.float32 in (a.data.dtype, b.data.dtype) and self.watch is not None:
            left, right = self.watch.to_tensor_cores(left), self.watch.to_tensor_cores(right)
        product = np.matmul(left, right)
        return _Handle((product + d.data.astype(exact)).astype(d.data.dtype), d.dtype.scalar)

    def create_dot_scaled(
        self, a: Any, a_scale: Any, a_format: Any, b: Any, b_scale: Any, b_format: Any, fast: bool, a_packed: bool, b_packed: bool, d: Any
    ) -> Any:  # fmt: skip
        a_factors, b_factors = (None if s is None else s.data for s in (a_scale, b_scale))
        left = scaled(a.data, a_factors, a_format.name == "E2M1", -1 if a_packed else -2)
        right = scaled(b.data.swapaxes(-1, -2), b_factors, b_format.name == "E2M1", -1 if b_packed else -2).swapaxes(-1, -2)
        return _Handle(np.matmul(left, right) + d.data, tl.float32)

    def create_extern_elementwise(self, lib: str, path: str, symbol: str, args: list[Any], result: Any, pure: bool) -> Any:
        # rounded once: through float64, as the other stand-ins go, a fused product would be rounded twice
        if symbol in ("__nv_fmaf", "__nv_fma", "__nv_fmaf_rn", "__nv_fma_rn"):
            return self.create_fma(*args)
        data = stand_in(symbol, [a.data for a in args])
        return _Handle(np.asarray(data).astype(numpy_type(result), copy=False), result.scalar)

    def create_inline_asm(self, text: str, constraints: str, args: list[Any], types: list[Any], pure: bool, pack: int) -> Any:
        found = inline_ptx.evaluate(text, constraints, [a.data for a in args], [numpy_type(t) for t in types], pack)
        results = [_Handle(values, t.scalar) for values, t in zip(found, types, strict=True)]
        return SimpleNamespace(get_result=results.__getitem__)

    # promises
    def create_assert(self, condition: Any, message: str) -> None:
        self._hold(condition, "device_assert failed" + f": {message}" * bool(message))

    def create_assume(self, condition: Any) -> None:
        self._hold(condition, "an assumption (tl.assume) is false")

    def _hold(self, condition: Any, text: str) -> None:
        """Raise, saying where, when a condition of the kernel does not hold in every lane."""
        if self.watch is not None and not condition.data.all():
            at = [int(n) for n in np.argwhere(~condition.data.astype(bool))[0]]
            raise self.watch.error(text + (f", at {at} of {list(condition.data.shape)}" if condition.data.size > 1 else ""))


def _carry(name: str, at: int) -> None:
    """Make an operation that moves values hand on which argument its pointers came from, and what its integers would be."""
    base = getattr(Builder, name)

    def method(self: Builder, *args: Any) -> Any:
        out = base(self, *args)
        source = args[at].attr
        if "argument" in source:
            out.attr["argument"] = source["argument"]
        if name == "create_addptr":
            return out
        return address_overflow.moved(args[at], out, lambda handle: base(self, *args[:at], handle, *args[at + 1 :]))

    setattr(Builder, name, method)


for _name in (
    "create_addptr",
    "create_expand_dims",
    "create_broadcast",
    "create_reshape",
    "create_trans",
    "create_bitcast",
    "create_unsplat",
):
    if hasattr(upstream.InterpreterBuilder, _name):
        _carry(_name, 0)
_carry("create_splat", 1)


def _patch_libdevice(builder: Builder, scope: Any) -> None:
    """Let `libdevice.erf(x)` reach create_extern_elementwise; the backend-neutral module holds empty functions."""
    from triton.language.extra import libdevice as neutral
    from triton.language.extra.cuda import libdevice

    upstream._patch_builtin(libdevice, builder, scope)
    for name in dir(neutral):
        if not name.startswith("_") and callable(getattr(neutral, name)) and hasattr(libdevice, name):
            setattr(neutral, name, getattr(libdevice, name))


def _promise(input: Any, values: Any, attribute: str, _semantic: Any = None) -> Any:
    """tl.multiple_of and its like."""
    return promise(input, values, attribute, upstream.interpreter_builder.watch)


_builder: Builder | None = None
_NOTHING_PATCHED = upstream._LangPatchScope()
# What a function of Triton's language was corrected to: both by the id of the first, since some are hashed by their source.
_corrected: dict[int, tuple[Any, Any]] = {}


def rebind(function: Any) -> None:
    """Give a kernel the corrected functions of Triton's language where its file took them by name before they were: `from ...libdevice import rsqrt`."""
    names = function.__globals__
    for name in function.__code__.co_names:
        found = names.get(name)
        if (corrected := _corrected.get(id(found))) is not None:
            names[name] = corrected[1]
    for cell in function.__closure__ or ():
        if (corrected := _corrected.get(id(python_syntax.held(cell)))) is not None:
            cell.cell_contents = corrected[1]


def corrected(value: Any) -> Any:
    """A constexpr argument: a function of Triton's language as it is corrected, a numpy scalar as a Python number, anything else as it is."""
    if isinstance(value, np.generic):
        return value.item()
    found = _corrected.get(id(value))
    return value if found is None else found[1]


def _language() -> dict[tuple[Any, str], Any]:
    """What the modules of Triton's language hold."""
    from triton.language.extra import libdevice as neutral
    from triton.language.extra.cuda import libdevice

    modules = (tl, tl.core, tl.math, tl.standard, neutral, libdevice, language.extra)
    return {(m, name): value for m in modules for name, value in vars(m).items() if callable(value) and not isinstance(value, type)}


def _patched(function: Any) -> Any:
    """In place of Triton's patching of the language at each call."""
    if function.__closure__ or function not in upstream.InterpretedFunction.rewritten_fn:  # its names hold what they held at its first call
        rebind(function)
    return _NOTHING_PATCHED


def install() -> Builder:
    """Correct the interpreter of this process (once) and return its builder."""
    global _builder
    # once: patched twice, Triton's language would be wrapped twice
    if _builder is not None:
        return _builder
    # what the patches replace is told by comparison: Triton's own list of them changes from version to version
    before = _language()
    builder = Builder()
    upstream._get_np_dtype = numpy_type
    upstream.interpreter_builder = builder
    upstream.interpreter_semantic = upstream.TritonSemantic(builder)
    upstream._patch_attr = type_cache.patch_attribute
    reductions.install()
    scope = upstream._LangPatchScope()
    for lang in (tl, tl.core):
        upstream._patch_builtin(lang, builder, scope)
        upstream._patch_builtin(lang.tensor, builder, scope)
        upstream._patch_lang_tensor(lang.tensor, scope)
        upstream._patch_lang_core(lang, scope)
    upstream._patch_builtin(tl.math, builder, scope)
    upstream._patch_builtin(tl.core.tensor_descriptor_base, builder, scope)
    for name, attribute in (("multiple_of", "divisibility"), ("max_contiguous", "contiguity"), ("max_constancy", "constancy")):
        for lang in (tl, tl.core):
            setattr(lang, name, partial(_promise, attribute=f"tt.{attribute}"))
    type_cache.install()
    python_syntax.install()
    language.install()
    _patch_libdevice(builder, scope)
    tl.tensor.__index__ = lambda self: int(self.handle.data.reshape(()))  # 3.6 fails on numpy >= 2.4
    upstream._patch_lang = _patched  # done once for good, above
    now = _language()
    _corrected.update({id(value): (value, now[key]) for key, value in before.items() if now.get(key, value) is not value})
    _builder = builder
    return builder
