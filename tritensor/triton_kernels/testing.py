"""`triton.testing` with our tensors: its functions import torch by name, and are given this library where PyTorch is not there."""

from __future__ import annotations

import builtins
import contextlib
import functools
import inspect
import types
from collections.abc import Callable
from typing import Any

from tritensor.ground.providers import provider
from tritensor.tensor.core import Tensor
from tritensor.triton_kernels.ownership import other_torch

_ASK_FOR_TORCH = {"do_bench_cudagraph", "assert_close", "get_max_tensorcore_tflops", "get_max_simd_tflops", "get_dram_gbps"}


def _import(name: str, *args: Any) -> Any:
    """`import`, for which torch is this library."""
    if name == "torch":
        return provider("")
    return builtins.__import__(name, *args)


def _copy_with_globals(function: Any, names: dict[str, Any]) -> Any:
    """A function of triton.testing once more, with other names around it."""
    inner = inspect.unwrap(function)
    made = types.FunctionType(inner.__code__, names, inner.__name__, inner.__defaults__, inner.__closure__)
    made.__kwdefaults__ = inner.__kwdefaults__
    return contextlib.contextmanager(made) if inspect.isgeneratorfunction(inner) else made


def _choose_library(theirs: Callable[..., Any], ours: Callable[..., Any]) -> Callable[..., Any]:
    """Ours where PyTorch is not imported, or our tensors are among the arguments."""

    @functools.wraps(theirs)
    def chosen(*args: Any, **kwargs: Any) -> Any:
        mine = not other_torch() or any(isinstance(a, Tensor) for a in (*args, *kwargs.values()))
        return (ours if mine else theirs)(*args, **kwargs)

    return chosen


def install() -> None:
    """Called once, when Triton has been imported."""
    from triton import testing

    names = {**vars(testing), "__builtins__": {**vars(builtins), "__import__": _import}}
    functions = {n: f for n, f in vars(testing).items() if isinstance(f, types.FunctionType) and f.__module__ == testing.__name__}
    names.update({n: _copy_with_globals(f, names) for n, f in functions.items()})  # they call one another
    for name in _ASK_FOR_TORCH & functions.keys():
        setattr(testing, name, _choose_library(functions[name], names[name]))
