"""What a launch's arguments are to a kernel: parameters matched by position and name, and the Triton type of each value."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tritensor import dtypes


class Parameter(NamedTuple):
    """One parameter of a kernel. `type` is the Triton type its annotation forces ("i64"), "" without one."""

    name: str
    constexpr: bool
    type: str
    default: Any


@cache
def parameters(function: Any) -> tuple[Parameter, ...]:
    """The parameters of the Python function under a `@triton.jit` kernel."""
    from triton.runtime.jit import _normalize_ty

    found = []
    for p in inspect.signature(function).parameters.values():
        written = "" if p.annotation is p.empty else _normalize_ty(p.annotation)
        constexpr = "constexpr" in written
        found.append(Parameter(p.name, constexpr, "" if constexpr or not _is_scalar_type(written) else written, p.default))
    return tuple(found)


def _is_scalar_type(name: str) -> bool:
    return name in {d.triton for d in dtypes.ALL if d.triton}


def bind(kernel: Any, args: tuple[Any, ...], by_name: dict[str, Any]) -> list[tuple[Parameter, Any]]:
    """Each parameter of `kernel` with its value. Raises TypeError for a missing, doubled or unknown argument."""
    wanted = parameters(kernel.fn)
    name = kernel.fn.__name__
    if len(args) > len(wanted):
        raise TypeError(f"launch {name}: {len(args)} arguments for {len(wanted)} parameters ({', '.join(p.name for p in wanted)})")
    out = list(zip(wanted, args, strict=False))
    rest = dict(by_name)
    for p in wanted[: len(args)]:
        if p.name in rest:
            raise TypeError(f"launch {name}: {p.name} is given by position and by name")
    for p in wanted[len(args) :]:
        if p.name in rest:
            out.append((p, rest.pop(p.name)))
        elif p.default is not inspect.Parameter.empty:
            out.append((p, p.default))
        else:
            raise TypeError(f"launch {name}: no value for parameter {p.name}; it takes ({', '.join(q.name for q in wanted)})")
    if rest:
        raise TypeError(f"launch {name}: no parameter is called {', '.join(rest)}; it takes ({', '.join(p.name for p in wanted)})")
    return out


def is_array(x: Any) -> bool:
    """Whether a value is an array on the device (a CudaArray, known by its storage: arrays live one floor up)."""
    return hasattr(x, "storage")


def scalar_type(value: Any, name: str = "") -> str:
    """The Triton type of a number: bool i1, int i32 (i64, u64 where it does not fit), float fp32, numpy scalars their own."""
    if isinstance(value, np.generic):
        found = dtypes.of(value.dtype).triton
        if found is None:
            raise TypeError(f"argument {name}: no kernel takes {value.dtype}")
        return found
    if isinstance(value, bool):
        return "i1"
    if isinstance(value, int):
        if -(2**31) <= value < 2**31:
            return "i32"
        if -(2**63) <= value < 2**63:
            return "i64"
        if 2**63 <= value < 2**64:
            return "u64"
        raise TypeError(f"argument {name}: {value} does not fit 64 bits")
    if isinstance(value, float):
        return "fp32"
    raise TypeError(
        f"argument {name}: {type(value).__name__} is nothing a kernel takes; give a CudaArray, a number, None or a tuple of these"
    )


def pointer_type(x: Any) -> str:
    """The Triton type of an array argument: "*fp32"."""
    return f"*{dtypes.of(x.dtype).triton}"


def first_array(values: Any) -> Any:
    """The first array among arguments and tuples of them, or None: its device is the launch's."""
    for v in values:
        if is_array(v):
            return v
        if isinstance(v, tuple):
            found = first_array(v)
            if found is not None:
                return found
    return None


class Specialization(NamedTuple):
    """Everything a compiled kernel depends on, hashable: one compilation serves all launches with an equal one.

    `types` has a leaf per parameter, nested as its tuples are: a Triton type ("*bf16", "i32"), with ":16" behind it where
    the address or the integer divides by 16, or "constexpr". `constants` are the (path, value) pairs of the constexpr
    leaves; `typed` tells 1, True and 1.0 apart, which are equal to Python.
    """

    kernel: Any
    types: tuple[Any, ...]
    constants: tuple[tuple[tuple[int, ...], Any], ...]
    typed: tuple[Any, ...]
    num_warps: int
    num_stages: int


def specialize(
    kernel: Any, args: tuple[Any, ...], by_name: dict[str, Any], num_warps: int, num_stages: int
) -> tuple[Specialization, list[tuple[str, Any]]]:
    """The specialization of a launch, and its run-time values (type, value) in the order the compiled kernel takes them."""
    constants: list[tuple[tuple[int, ...], Any]] = []
    values: list[tuple[str, Any]] = []

    def leaf(value: Any, path: tuple[int, ...], parameter: Parameter) -> Any:
        if parameter.constexpr or value is None:
            constants.append((path, value))
            return "constexpr"
        if isinstance(value, tuple):
            return tuple(leaf(v, (*path, i), parameter) for i, v in enumerate(value))
        if is_array(value):
            address = value.data_ptr()
            values.append(("*", address))
            kind = pointer_type(value)
            return kind + ":16" if address % 16 == 0 else kind
        kind = parameter.type or scalar_type(value, parameter.name)
        values.append((kind, value))
        return kind + ":16" if kind[0] in "iu" and kind != "i1" and value % 16 == 0 else kind

    types = tuple(leaf(v, (i,), p) for i, (p, v) in enumerate(bind(kernel, args, by_name)))
    return Specialization(kernel, types, tuple(constants), tuple(_typed(v) for _, v in constants), num_warps, num_stages), values


def _typed(value: Any) -> Any:
    return tuple(_typed(v) for v in value) if isinstance(value, tuple) else type(value)
