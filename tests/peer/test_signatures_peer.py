"""Every function that exists in both libraries takes the same arguments: names, order, defaults, what is given by keyword alone.

DIFFERENCES lists what is otherwise on purpose; an entry that is not true fails as well.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
import torch

import tritensor as tt
from tests.peer.signature_differences import DIFFERENCES
from tests.peer.signatures import differences
from tests.peer.torch_signatures import of_python, overloads

pytestmark = pytest.mark.peer


def listed() -> dict[str, set[str]]:
    """The table by name."""
    found: dict[str, set[str]] = {}
    for names, what, _ in DIFFERENCES:
        for name in names.split():
            assert what not in found.setdefault(name, set()), f"{name}: {what} is listed twice"
            found[name].add(what)
    return found


LISTED = listed()
Pair = tuple[Callable[..., Any], list[inspect.Signature], bool]


def _functions() -> Iterator[tuple[str, Pair]]:
    for name in tt.__all__:
        ours, theirs = getattr(tt, name), getattr(torch, name, None)
        if callable(ours) and not inspect.isclass(ours) and callable(theirs):
            yield f"torch.{name}", (ours, overloads(theirs, name, "_C/_VariableFunctions.pyi"), False)


def _methods() -> Iterator[tuple[str, Pair]]:
    for name in dir(tt.Tensor):
        ours, theirs = inspect.getattr_static(tt.Tensor, name), getattr(torch.Tensor, name, None)
        if not name.startswith("_") and inspect.isfunction(ours) and callable(theirs):
            yield f"Tensor.{name}", (ours, overloads(theirs, name, "_C/__init__.pyi", "TensorBase"), True)


def _functional() -> Iterator[tuple[str, Pair]]:
    ours, theirs = tt.nn.functional, torch.nn.functional
    for name, f in vars(ours).items():
        if inspect.isfunction(f) and f.__module__ == ours.__name__ and not name.startswith("_") and hasattr(theirs, name):
            yield f"F.{name}", (f, overloads(getattr(theirs, name), name, "nn/functional.pyi"), False)


def _module(name: str) -> Iterator[tuple[str, Pair]]:
    """Functions of a module, and the constructors and own methods of its classes."""
    ours, theirs = _at(tt, name), _at(torch, name)
    for key, a in vars(ours).items():
        b = getattr(theirs, key, None)
        if key.startswith("_") or b is None or not getattr(a, "__module__", "").startswith("tritensor") or a is tt.Tensor:
            continue
        if inspect.isclass(a) and inspect.isclass(b):
            yield from _class(f"{name}.{key}", a, b)
        elif inspect.isfunction(a) and (seen := of_python(b)) is not None:
            yield f"{name}.{key}", (a, [seen], False)


def _class(name: str, ours: type, theirs: type) -> Iterator[tuple[str, Pair]]:
    for key in ["__init__", *(k for k in vars(ours) if not k.startswith("_"))]:
        a, b = inspect.getattr_static(ours, key, None), inspect.getattr_static(theirs, key, None)
        static = isinstance(a, staticmethod)
        a, b = getattr(a, "__func__", a), getattr(b, "__func__", b)
        if inspect.isfunction(a) and inspect.isfunction(b) and (seen := of_python(b)) is not None:
            yield f"{name}.{key}", (a, [seen], not static)


def _at(root: ModuleType, name: str) -> Any:
    for part in name.split("."):
        root = getattr(root, part)
    return root


MODULES = ["nn", "nn.init", "nn.utils", "optim", "optim.lr_scheduler", "autograd", "utils.data", "random", "cuda"]
FAMILIES: dict[str, Callable[[], Iterator[tuple[str, Pair]]]] = {"functions": _functions, "methods": _methods, "functional": _functional}
FAMILIES |= {m: lambda m=m: _module(m) for m in MODULES}  # type: ignore[misc]


@pytest.mark.parametrize("family", FAMILIES)
def test_signatures_are_pytorchs_but_for_the_listed_differences(family: str) -> None:
    wrong = []
    for name, (ours, theirs, method) in FAMILIES[family]():
        found = set().union(*(differences(ours, signature, method) for signature in theirs))
        expected = LISTED.get(name, set())
        wrong += [f"{name}: {what} is not as in PyTorch" for what in sorted(found - expected)]
        wrong += [f"{name}: {what} is listed as different and is not" for what in sorted(expected - found)]
    assert not wrong, "\n" + "\n".join(wrong)


def test_every_listed_name_is_compared() -> None:
    compared = {name for family in FAMILIES.values() for name, (_, theirs, _) in family() if theirs}
    assert set(LISTED) <= compared
    assert len(compared) > 800
