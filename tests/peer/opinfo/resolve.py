"""Functions of ours that answer the entries of the database: by PyTorch's name, or the test module's own function over tritensor."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import torch

import tritensor as tt
from tests.peer.opinfo.translate import TESTING, Untranslatable, chains, function, named
from tritensor.torch_dispatch.overloads import Overload


def key(op: Any) -> str:
    """An entry's line in the table: its name, and its variant's where it has one."""
    return f"{op.name}/{op.variant_test_name}" if op.variant_test_name else op.name


def is_testing(f: Any) -> bool:
    """Whether a function is written in PyTorch's test modules."""
    return isinstance(f, types.FunctionType) and (f.__module__ or "").startswith(TESTING)


def _missing(f: types.FunctionType) -> list[str]:
    """What a test module's function asks of torch that tritensor has not."""
    found = {c: named(c) for c in chains(f.__code__)}
    return sorted(c for c, ours in found.items() if ours is None or (isinstance(ours, Overload) and ours.find_function() is None))


def resolved(op: Any) -> tuple[Callable[..., Any] | None, str]:
    """Our function of an entry, or None and what is missing."""
    f = op.op
    if is_testing(f):
        missing = _missing(f)
        if missing:
            return None, "no " + ", ".join(missing)
        if not chains(f.__code__) and not hasattr(tt.Tensor, op.name):  # `lambda x, ...: x.name(...)`
            return None, f"no Tensor.{op.name}"
        try:
            return function(f), ""
        except Untranslatable as error:
            return None, f"no {error}"
    if isinstance(f, types.MethodDescriptorType | types.WrapperDescriptorType):  # a method that is no function
        found, name = getattr(tt.Tensor, op.name, None), f"Tensor.{op.name}"
    else:
        found, name = named(op.name), op.name
        if found is None:  # an operator that torch has under its own name, too
            bare = op.name.removeprefix("torch.ops.aten.").removesuffix(".default")
            found = named(bare) if bare != op.name and hasattr(torch, bare) else None
        if found is None and isinstance(f, types.BuiltinFunctionType):  # an entry named after what is called underneath
            found = named(f.__name__)
        if found is None and not hasattr(torch, op.name.partition(".")[0]):
            found = getattr(tt.Tensor, op.name, None)
    return (found, "") if callable(found) else (None, f"no {name}")


def variant(op: Any, theirs: Any, suffix: str) -> tuple[Callable[..., Any] | None, str]:
    """Our method, or our method in place, that answers PyTorch's `theirs`; or None and what is missing."""
    if is_testing(theirs):
        missing = _missing(theirs)
        return (None, "no " + ", ".join(missing)) if missing else (function(theirs), "")
    if isinstance(theirs, functools.partial):  # of the function itself, as `partial(F.mish, inplace=True)`
        base, why = resolved(op)
        return (None, why) if base is None else (functools.partial(base, *theirs.args, **theirs.keywords), "")
    name = op.name + suffix
    if getattr(torch.Tensor, name, None) is None:
        name = getattr(theirs, "__name__", name)
    found = getattr(tt.Tensor, name, None)
    return (found, "") if found is not None else (None, f"no Tensor.{name}")


def missing_aliases(op: Any) -> list[str]:
    """The other names that PyTorch gives a function, its method and its method in place, as far as they are not here."""
    found = []
    for alias in op.aliases:
        if named(alias.name.removeprefix("torch.")) is None:
            found.append(alias.name)
        found += [
            f"Tensor.{n}"
            for n in (alias.name, alias.name + "_")
            if getattr(torch.Tensor, n, None) is not None and not hasattr(tt.Tensor, n)
        ]
    return found
