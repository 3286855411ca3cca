"""torch.compiler: how functions are compiled, what is told of it, and the marks that a compiler which traces bytecode needs and this one does not."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor.compilation.backends import get_default_backend as get_default_backend
from tritensor.compilation.backends import list_backends as list_backends
from tritensor.compilation.backends import set_default_backend as set_default_backend
from tritensor.compilation.compile import compile as compile
from tritensor.compilation.control import disable as disable
from tritensor.compilation.control import given_back
from tritensor.compilation.control import is_compiling as is_compiling
from tritensor.compilation.control import reset as reset
from tritensor.compilation.control import substitute_in_graph as substitute_in_graph
from tritensor.compilation.explain import explain as explain
from tritensor.compilation.stance import set_stance as set_stance
from tritensor.ground.errors import GradError
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.constructors import from_numpy

is_dynamo_compiling = is_exporting = is_compiling


def allow_in_graph(fn: Any) -> Any:
    """The function itself, or the list of functions: Python runs at each call, and there is no graph that it could be kept out of."""
    return given_back(fn)


def assume_constant_result(fn: Any) -> Any:
    """The function itself: it is called at each call, and its result is never kept."""
    return given_back(fn)


def nested_compile_region(fn: Any = None, *, options: Any = None, max_reuse_entries: int = 8, reuse_hash_fn: Any = None) -> Any:
    """The function itself, or a decorator: equal groups of calls share their kernels wherever they are called."""
    return given_back if fn is None else fn


def cudagraph_mark_step_begin() -> None:
    """Nothing: results lie in memory of their own, and no later call overwrites them."""


_guards_are_collective = False


def set_enable_guard_collectives(enabled: bool) -> bool:
    """The setting of before: nothing is guarded, so that ranks have nothing to agree on."""
    global _guards_are_collective
    before, _guards_are_collective = _guards_are_collective, bool(enabled)
    return before


def skip_all_guards_unsafe(guard_entries: Any) -> list[bool]:
    """False for each entry: nothing is guarded."""
    return [False for _ in guard_entries]


skip_guard_on_inbuilt_nn_modules_unsafe = skip_guard_on_all_nn_modules_unsafe = skip_guard_on_globals_unsafe = skip_all_guards_unsafe
keep_portable_guards_unsafe = skip_all_guards_unsafe


def keep_tensor_guards_unsafe(guard_entries: Any, keep_parameters: bool = False) -> list[bool]:
    """False for each entry: nothing is guarded."""
    return skip_all_guards_unsafe(guard_entries)


def wrap_numpy(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function of numpy's arrays as one of tensors, on the CPU. Raises GradError for a tensor that requires grad, which numpy would not follow."""

    @functools.wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        found = fn(*[_as_array(x) for x in args], **{k: _as_array(x) for k, x in kwargs.items()})
        return tuple([_as_tensor(y) for y in found]) if type(found) is tuple else _as_tensor(found)

    return wrapped


def _as_array(x: Any) -> Any:
    if not isinstance(x, Tensor):
        return x
    if x.requires_grad:
        raise GradError(
            "wrap_numpy: the tensor requires grad, which numpy does not follow; give x.detach(), or write the function on tensors"
        )
    return x.numpy()


def _as_tensor(y: Any) -> Any:
    return from_numpy(np.asarray(y)) if isinstance(y, np.ndarray | np.generic) else y
