"""Compile log: kernels that this process compiled or loaded, the time each took, and its difference from the kernel's earlier specializations."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from tritensor.cuda.compiler.arguments import Specialization
from tritensor.ground.call_site import user_line
from tritensor.ground.process import locks

SOURCES = ("compiled", "triton", "disk", "pack")  # by the compiler, from Triton's own disk cache, ours, or a pack


class Compile(NamedTuple):
    """One kernel that had to be had: `source` says from where ("compiled", "triton": Triton's disk cache, "disk", "pack"),
    `seconds` how long it took, `reason` what was new, `op` ("" where unknown) and `line` ("train.py:42") who asked."""

    kernel: str
    op: str
    types: tuple[str, ...]
    arch: int
    seconds: float
    source: str
    reason: str
    line: str

    def __repr__(self) -> str:
        took = f"{self.seconds:.2f} s" if self.seconds >= 0.1 else f"{1e3 * self.seconds:.1f} ms"
        op = f" for {self.op}" if self.op else ""
        return f"{self.kernel}({', '.join(self.types)}) sm_{self.arch}{op}: {self.source} in {took}: {self.reason} ({self.line})"


_log = logging.getLogger("tritensor.compiles")
_lock = locks.lock()
_entries: list[Compile] = []
_earlier: dict[Any, list[tuple[Specialization, int]]] = {}  # a kernel's Python function: its specializations so far
_handler: logging.Handler | None = None
_COMPARED = 32  # of a kernel's specializations, the last ones: a kernel may have hundreds, and a load takes a tenth of a millisecond


def entries() -> list[Compile]:
    """All so far, oldest first."""
    return list(_entries)


def clear() -> None:
    """Forget all; the next specialization of each kernel is a first use again."""
    with _lock:
        _entries.clear()
        _earlier.clear()


def record(spec: Specialization, arch: int, seconds: float, source: str, op: str = "") -> None:
    """Add one; printed through the logger `tritensor.compiles` (see printing)."""
    types = tuple([f"{n}: {_show_types(t)}" for n, t in zip(spec.kernel.arg_names, spec.types, strict=True) if t != "constexpr"])
    with _lock:
        before = _earlier.setdefault(spec.kernel.fn, [])
        why = reason(spec, arch, before)
        before.append((spec, arch))
        found = Compile(_name(spec.kernel.fn), op or _op(), types, arch, seconds, source, why, user_line())
        _entries.append(found)
    _log.info("%s", found)


def _name(function: Any) -> str:
    """A kernel's name with its file's, which tells the many `_kernel`s apart: "matmul._matmul_kernel"."""
    return f"{function.__module__.rpartition('.')[2]}.{function.__name__}"


def _op() -> str:
    """The op whose corner launches now ("mul", "mul backward"): the innermost frame of dispatch or of the engine that holds one."""
    # read off the stack rather than handed down: this runs once for a kernel, a launch a million times
    frame: Any = sys._getframe(2)
    while frame is not None:
        held = frame.f_locals
        forward, backward = held.get("op"), getattr(held.get("n"), "op", None)  # n: the engine's name for a node
        if type(forward).__name__ == "Op":
            return forward.name  # type: ignore[union-attr]
        if type(backward).__name__ == "Op":
            return f"{backward.name} backward"  # type: ignore[union-attr]
        frame = frame.f_back
    return ""


# The reason
def reason(spec: Specialization, arch: int, before: list[tuple[Specialization, int]]) -> str:
    """What `spec` has that the nearest earlier specialization of the same kernel has not."""
    if not before:
        return "first use"
    nearest: list[str] | None = None
    for old in reversed(before[-_COMPARED:]):
        found = _list_differences(spec, arch, *old)
        if nearest is None or len(found) < len(nearest):
            nearest = found
        if len(nearest) <= 1:
            break
    return "; ".join(nearest or ()) or "asked again"


def _list_differences(new: Specialization, arch: int, old: Specialization, old_arch: int) -> list[str]:
    out = [] if arch == old_arch else [f"sm_{old_arch} -> sm_{arch}"]
    constants, was = dict(new.constants), dict(old.constants)
    for i, name in enumerate(new.kernel.arg_names):
        out += _compare_parameter(name, (i,), old.types[i], new.types[i], was, constants)
    for field in new._fields[4:]:
        a, b = getattr(old, field), getattr(new, field)
        if a != b:
            out.append(f"{field} {_show_value(a)} -> {_show_value(b)}")
    return out


def _compare_parameter(name: str, path: tuple[int, ...], old: Any, new: Any, was: dict[Any, Any], now: dict[Any, Any]) -> list[str]:
    """How one parameter (or an item of a tuple parameter) differs."""
    if isinstance(old, tuple) and isinstance(new, tuple):
        if len(old) != len(new):
            return [f"{name}: {len(old)} values -> {len(new)}"]
        out = []
        for i, (a, b) in enumerate(zip(old, new, strict=True)):
            out += _compare_parameter(f"{name}[{i}]", (*path, i), a, b, was, now)
        return out
    if old == new == "constexpr":
        a, b = was[path], now[path]
        same = type(a) is type(b) and a == b
        return [] if same else [f"constant {name} {_show_value(a)} -> {_show_value(b)}"]
    if old == new:
        return []
    if isinstance(old, str) and isinstance(new, str) and old.removesuffix(":16") == new.removesuffix(":16"):
        what = f"the address of {name}" if new.startswith("*") else name
        return [f"{what} now divides by 16" if new.endswith(":16") else f"{what} no longer divides by 16"]
    a, b = (_show_value(held[path]) if t == "constexpr" else _show_types(t) for t, held in ((old, was), (new, now)))
    return [f"{name}: {a.removesuffix(':16')} -> {b.removesuffix(':16')}"]


def _show_types(types: Any) -> str:
    return f"({', '.join(map(_show_types, types))})" if isinstance(types, tuple) else types


def _show_value(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_show_value, value))})"
    return str(getattr(value, "__name__", value))


# Printing
def printing(on: bool) -> None:
    """Print each one to stderr as it happens, or stop. Only the logger `tritensor.compiles` is touched."""
    global _handler
    if on and _handler is None:
        _handler = logging.StreamHandler()
        _handler.setFormatter(logging.Formatter("tritensor: %(message)s"))
        _log.addHandler(_handler)
        _log.setLevel(logging.INFO)
    elif not on and _handler is not None:
        _log.removeHandler(_handler)
        _log.setLevel(logging.NOTSET)
        _handler = None


if "compiles" in os.environ.get("TRITENSOR_LOG", "").split(","):
    printing(True)


@contextmanager
def triton_listener() -> Iterator[list[bool]]:
    """Within this, the list receives whether Triton found each kernel in its own disk cache. A listener of the user's is called as well."""
    from triton import knobs

    hits: list[bool] = []
    theirs = knobs.compilation.listener

    def listen(**facts: Any) -> None:
        hits.append(bool(facts["cache_hit"]))
        if theirs is not None:
            theirs(**facts)

    knobs.compilation.listener = listen
    try:
        yield hits
    finally:
        knobs.compilation.listener = theirs
