"""Running a program in one library: what every statement left behind, as plain numbers that outlive it."""

from __future__ import annotations

import copy
import io
import math
import pickle
import re
import tempfile
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType
from typing import Any

import numpy as np

from tests.fuzz.program import PLAIN_NAMES, Program, facts, tree_of

MODULES = (copy, io, pickle, math, tempfile)
DRAWS = re.compile(r"nn\.[A-Z]|distributions|data\.|drop|rand")  # seeding takes torch as long as ten small ops
UNREADABLE = "<cannot be read>"


@dataclass(frozen=True)
class Look:
    """A tensor as a program can see it."""

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # of the dimensions that have more than one element; none where there is no element
    values: np.ndarray
    requires_grad: bool
    is_leaf: bool
    grad: Look | None

    def __str__(self) -> str:
        shown = np.array2string(self.values, threshold=12, precision=8).replace("\n", "")
        flags = (", requires_grad" if self.requires_grad else "") + ("" if self.is_leaf else ", in a graph")
        return f"{self.dtype}{self.shape} strides {self.strides} {shown}{flags}" + (f", grad {self.grad}" if self.grad is not None else "")


@dataclass
class Step:
    """One statement: the error that it raised, if any, and how its names look after it."""

    index: int
    error: BaseException | None = None
    skipped: bool = False
    looks: dict[str, Any] = field(default_factory=dict)


@dataclass
class Trace:
    """A whole run."""

    steps: list[Step]
    scope: dict[str, Any]


@lru_cache(maxsize=20_000)
def compiled(code: str) -> CodeType:
    return compile(tree_of(code), "<program>", "exec")


def names_of(T: Any, device: str = "cpu") -> dict[str, Any]:
    """What a program finds at its start: the library under the names that scripts give it, and where its tensors are to be."""
    return {
        "tt": T,
        "nn": T.nn,
        "F": T.nn.functional,
        "dev": device,
        "inf": math.inf,
        "nan": math.nan,
        **{m.__name__: m for m in MODULES},
        "np": np,
    }


def numbers(x: Any) -> np.ndarray:
    """A copy of a tensor's elements, of either library; bfloat16 and float8 as float32."""
    x = x.detach()
    if str(x.device) != "cpu":
        x = x.cpu()
    if "bfloat16" in str(x.dtype) or "float8" in str(x.dtype):
        x = x.float()
    if "complex32" in str(x.dtype):  # PyTorch's alone, which numpy does not have
        x = x.cfloat()
    if x.dtype.is_complex and hasattr(x, "resolve_conj"):
        x = x.resolve_conj()
    if hasattr(x, "resolve_neg"):
        x = x.resolve_neg()
    return np.array(x.numpy(), copy=True)


def look(value: Any) -> Any:
    """A value without its library: a Look for a tensor, containers of such, plain Python as it is, else the name of its class."""
    if hasattr(value, "shadow_look"):
        return value.shadow_look()
    if hasattr(value, "is_leaf") and hasattr(value, "storage_offset"):
        shape = tuple(value.shape)
        few = not value.numel()
        strides = () if few else tuple(s for n, s in zip(shape, value.stride(), strict=True) if n > 1)
        leaf = bool(value.is_leaf)
        grad = look(value.grad) if leaf and value.grad is not None else None
        return Look(str(value.dtype).rpartition(".")[2], shape, strides, numbers(value), bool(value.requires_grad), leaf, grad)
    if isinstance(value, tuple | list):
        return tuple(look(v) for v in value)
    if isinstance(value, dict):
        return {str(k): look(v) for k, v in value.items()}
    if hasattr(value, "named_parameters"):
        return {
            "class": type(value).__name__,
            "training": value.training,
            **look(dict(value.named_parameters())),
            **look(dict(value.named_buffers())),
        }
    if isinstance(value, np.ndarray):
        return Look(str(value.dtype), value.shape, (), value.copy(), False, True, None)
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return value
    if type(value).__name__ == "dtype":
        return str(value).rpartition(".")[2]
    return f"<{type(value).__name__}>"


def readable(x: Any) -> bool:
    """False for a view that a write to its base has torn from its graph: all that is asked of it raises."""
    try:
        return isinstance(x.is_leaf, bool)
    except RuntimeError:
        return False


def look_or_none(value: Any) -> Any:
    """A look, or that there is none: a view whose graph an in-place write has made impossible raises when it is asked for anything."""
    try:
        return look(value)
    except RuntimeError:
        return UNREADABLE


def in_wide(program: Program, T: Any, device: str = "cpu") -> Trace:
    """The program's float64 form, whose default type is float64 as well."""
    T.set_default_dtype(T.float64)
    try:
        return run(program.in_float64(), T, device)
    finally:
        T.set_default_dtype(T.float32)


def run(program: Program, T: Any, device: str = "cpu", watch: bool = True) -> Trace:
    """Run every statement; one that raises loses the names that it would have set, and what reads a lost name is passed over.
    `watch=False` leaves out the looks."""
    scope = names_of(T, device)
    if any(DRAWS.search(code) for code in program.statements):
        T.manual_seed(0)
    trace = Trace([], scope)
    lost: set[str] = set()
    for index, code in enumerate(program.statements):
        said = facts(code)
        step = Step(index)
        trace.steps.append(step)
        if said.reads & lost:
            step.skipped = True
            lost |= said.sets
            continue
        try:
            exec(compiled(code), scope)
            if device != "cpu":
                T.cuda.synchronize()  # a GPU tells of bad indices when it is waited for
        except Exception as error:
            step.error = error.with_traceback(None)
            lost |= said.sets
        if watch:
            everything = said.differentiates or index == len(program.statements) - 1
            seen = [n for n in scope if _is_value(n)] if everything else sorted(said.reads | said.sets)
            step.looks = {n: look_or_none(scope[n]) for n in seen if n in scope and n not in lost and _is_value(n)}
    return trace


def _is_value(name: str) -> bool:
    return name not in PLAIN_NAMES and not name.startswith("__")
