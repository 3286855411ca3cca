"""Asks PyTorch, where it is installed, for the signature of every function that both have: `python -m tests.signatures.record`."""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Iterator
from typing import Any

import torch

import tritensor as tt
from tests.signatures.of_torch import of_python, overloads
from tests.signatures.recorded import FILE, written
from tritensor.torch_compat import recorded_names

MODULES = [
    "nn", "nn.init", "nn.utils", "nn.utils.rnn", "nn.utils.parametrize", "nn.utils.parametrizations", "nn.utils.prune", "nn.parallel", "nn.attention", "nn.grad",
    "optim", "optim.lr_scheduler", "optim.swa_utils", "autograd", "autograd.function", "autograd.functional", "autograd.graph", "autograd.forward_ad", "func",
    "amp", "cuda.amp", "distributions", "distributions.transforms", "utils.checkpoint", "utils.data", "distributed", "jit", "compiler", "profiler", "random", "cuda",
]  # fmt: skip
Found = tuple[str, bool, list[inspect.Signature]]  # a name, whether it is called as a method, PyTorch's overloads


def found() -> Iterator[Found]:
    """All functions of both libraries."""
    yield from _functions()
    yield from _methods()
    yield from _functional()
    for name in MODULES:
        yield from _module(name)


def _functions() -> Iterator[Found]:
    for name in tt.__all__:
        ours, theirs = getattr(tt, name), getattr(torch, name, None)
        if callable(ours) and not inspect.isclass(ours) and callable(theirs):
            yield f"torch.{name}", False, overloads(theirs, name, "_C/_VariableFunctions.pyi")


def _methods() -> Iterator[Found]:
    for name in dir(tt.Tensor):
        ours, theirs = inspect.getattr_static(tt.Tensor, name), getattr(torch.Tensor, name, None)
        if not name.startswith("_") and inspect.isfunction(ours) and callable(theirs):
            yield f"Tensor.{name}", True, overloads(theirs, name, "_C/__init__.pyi", "TensorBase")


def _functional() -> Iterator[Found]:
    ours, theirs = tt.nn.functional, torch.nn.functional
    for name, f in vars(ours).items():
        if inspect.isfunction(f) and f.__module__.startswith(ours.__name__) and not name.startswith("_") and hasattr(theirs, name):
            yield f"F.{name}", False, overloads(getattr(theirs, name), name, "nn/functional.pyi")


def _module(name: str) -> Iterator[Found]:
    """Functions of a module, and the constructors and own methods of its classes."""
    ours, theirs = importlib.import_module(f"tritensor.{name}"), importlib.import_module(f"torch.{name}")
    for key in dict.fromkeys([*vars(ours), *(k for k in recorded_names.names_of(name) if hasattr(ours, k))]):
        a, b = getattr(ours, key), getattr(theirs, key, None)
        there = (getattr(a, "__module__", None) or "").startswith("tritensor") and "not in tritensor:" not in str(a.__doc__)
        if key.startswith("_") or b is None or not there or a is tt.Tensor:
            continue
        if inspect.isclass(a) and inspect.isclass(b):
            yield from _class(f"{name}.{key}", a, b)
        elif inspect.isfunction(a) and (seen := of_python(b)) is not None:
            yield f"{name}.{key}", False, [seen]


def _class(name: str, ours: type, theirs: type) -> Iterator[Found]:
    # what bases have that are there to be derived from: where a method stands in our classes is our affair
    own = [c for c in ours.__mro__ if c is ours or c.__name__.startswith("_") or c.__name__.endswith("Base")]
    for key in dict.fromkeys(["__init__", *(k for c in own for k in vars(c) if not k.startswith("_"))]):
        a, b = inspect.getattr_static(ours, key, None), inspect.getattr_static(theirs, key, None)
        static = isinstance(a, staticmethod)
        a, b = getattr(a, "__func__", a), getattr(b, "__func__", b)
        if inspect.isfunction(a) and inspect.isfunction(b) and (seen := of_python(b)) is not None:
            yield f"{name}.{key}", not static, [seen]


def lines() -> dict[str, Any]:
    """What the file holds."""
    return {name: [method, [written(s) for s in signatures]] for name, method, signatures in found() if signatures}


def main() -> None:
    entries = [f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in lines().items()]
    FILE.write_text("{\n" + ",\n".join(entries) + "\n}\n")
    print(f"{len(entries)} functions of torch {torch.__version__}")


if __name__ == "__main__":
    main()
