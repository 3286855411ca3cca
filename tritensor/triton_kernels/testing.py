"""`triton.testing` with our tensors: its functions import torch by name, and are given this library where PyTorch is not there."""

from __future__ import annotations

import builtins
import functools
import importlib
import types
from collections.abc import Callable
from typing import Any

from tritensor.tensor.core import Tensor
from tritensor.triton_kernels.ownership import other_torch

_ASK_FOR_TORCH = ("do_bench_cudagraph", "assert_close", "get_max_tensorcore_tflops", "get_max_simd_tflops", "get_dram_gbps")


def _import(name: str, *args: Any) -> Any:
    """`import`, for which torch is this library."""
    if name == "torch":
        return importlib.import_module("tritensor")
    return builtins.__import__(name, *args)


def _with_ours(function: Any) -> Callable[..., Any]:
    """A function of triton.testing that runs over this library where PyTorch is not imported, or our tensors are among its arguments."""
    names = dict(function.__globals__, __builtins__={**vars(builtins), "__import__": _import})
    ours = types.FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
    ours.__kwdefaults__ = function.__kwdefaults__

    @functools.wraps(function)
    def chosen(*args: Any, **kwargs: Any) -> Any:
        mine = not other_torch() or any(isinstance(a, Tensor) for a in (*args, *kwargs.values()))
        return (ours if mine else function)(*args, **kwargs)

    return chosen


def install() -> None:
    """Called once, when Triton has been imported."""
    from triton import testing

    for name in _ASK_FOR_TORCH:
        if hasattr(testing, name):
            setattr(testing, name, _with_ours(getattr(testing, name)))
