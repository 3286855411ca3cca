"""Compilation of a kernel for a GPU that need not be there (tritensor/cuda/compiler/kernel_report.py reads the machine code)."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.language.core import constexpr_type
from triton.runtime.jit import JITFunction

from tritensor.cuda.compiler.arguments import ARITHMETIC, FieldTypes, Specialization
from tritensor.ground.errors import LaunchError

_arch: ContextVar[int | None] = ContextVar("arch", default=None)


def compiled_for() -> int | None:
    """The compute capability that this thread compiles for, None where it compiles nothing: Triton's compiler, and kernels by `tl.target_info`, ask the
    driver for it, which knows no more than the GPU that is here."""
    return _arch.get()


@contextmanager
def _set_arch(arch: int) -> Iterator[None]:
    before = _arch.set(arch)
    try:
        yield
    finally:
        _arch.reset(before)


def _leaves(types: Any, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], str]]:
    for i, t in enumerate(types):
        if isinstance(t, tuple):
            yield from _leaves(t, (*path, i))
        else:
            yield (*path, i), t


def _strip_marks(types: Any) -> Any:
    """The types without their divisibility marks, those of a named tuple under its names."""
    if not isinstance(types, tuple):
        return types.removesuffix(":16")
    bare = tuple(_strip_marks(t) for t in types)
    return _fields_class(types.fields)(*bare) if isinstance(types, FieldTypes) else bare


@cache
def _fields_class(fields: tuple[str, ...]) -> Any:
    """The class of named tuples that Triton takes field names from; what it was called decides nothing."""
    return namedtuple("Fields", fields)


class _Keyed(tuple[Any, ...]):
    """A tuple constant that holds kernels' functions: Triton's disk cache keys a plain tuple by str(), which does not show sources."""

    @property
    def cache_key(self) -> str:
        return "-".join(str(getattr(v, "cache_key", v)) for v in self)

    @property
    def type(self) -> Any:
        """As a member of another tuple, of which Triton 3.6 asks it."""
        return constexpr_type(self)


def _add_cache_key(value: Any) -> Any:
    return _Keyed(_add_cache_key(v) for v in value) if type(value) is tuple else value


def compile(spec: Specialization, arch: int) -> Any:
    """Triton's CompiledKernel of a specialization for compute capability `arch` (80, 90, 100), from Triton's disk cache if it is there.

    It is compiled as ARITHMETIC says. tl.device_assert is compiled in where Triton does so: for `@triton.jit(debug=True)`, and for all
    kernels with TRITON_DEBUG=1. Raises LaunchError with the kernel's name and types when it does not compile.
    """
    kernel = spec.kernel
    if not isinstance(kernel, JITFunction):
        raise LaunchError(f"compile: {kernel!r} is no compilable kernel; @triton.jit gives one where TRITON_INTERPRET is not set")
    names = kernel.arg_names
    signature = dict(zip(names, _strip_marks(spec.types), strict=True))
    divisible = {path: [["tt.divisibility", 16]] for path, t in _leaves(spec.types) if t.endswith(":16")}
    source = ASTSource(kernel, signature, constexprs={path: _add_cache_key(v) for path, v in spec.constants}, attrs=divisible)
    options = {"num_warps": spec.num_warps, "num_stages": spec.num_stages, **dict(ARITHMETIC), **dict(spec.options)}
    options["debug"] = bool(kernel.debug or triton.knobs.runtime.debug)
    try:
        with _set_arch(arch):
            return triton.compile(source, target=GPUTarget("cuda", arch, 32), options=options)
    except Exception as error:  # Triton raises many kinds; all mean that this kernel cannot be had
        text = f"{describe(spec)} for sm_{arch} does not compile: {type(error).__name__}: {error}"
        inner = error.__cause__
        while inner is not None:  # from the kernel's line inwards to what Triton stumbled over
            text += f"\n{type(inner).__name__}: {inner}"
            inner = inner.__cause__
        raise LaunchError(text) from error


def describe(spec: Specialization) -> str:
    """One line naming the kernel, its argument types and its constants."""
    constants = dict(spec.constants)
    shown = []
    for i, (name, t) in enumerate(zip(spec.kernel.arg_names, spec.types, strict=True)):
        if t == "constexpr":
            value = constants[(i,)]
            shown.append(f"{name}={getattr(value, '__name__', value)!s}")
        else:
            shown.append(f"{name}: {_show_types(t)}")
    return f"{spec.kernel.__name__}({', '.join(shown)}) warps={spec.num_warps} stages={spec.num_stages}"


def _show_types(types: Any) -> str:
    return f"({', '.join(map(_show_types, types))})" if isinstance(types, tuple) else types
