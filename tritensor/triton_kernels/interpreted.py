"""Interpreted kernels answer what programs ask of compiled ones: `isinstance(kernel, JITFunction)`, parameters, signature, a key of the source.

Triton's own autotuner (its cache on disk, its listener) and the launchers of other projects look for the JITFunction under a kernel by that test,
and without one run off the end where kernels are interpreted.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from tritensor.tensor.core import Tensor


def _source_key(kernel: Any) -> str:
    """A digest of a kernel's own source. It says that the kernel is emulated: what a tuner keeps under it is no measurement for a GPU."""
    try:
        source = inspect.getsource(kernel.fn)
    except (OSError, TypeError):  # made without a file
        # the next best thing that changes with the kernel
        source = kernel.fn.__code__.co_code.hex()
    return f"emulated{hashlib.sha256(source.encode()).hexdigest()}"


def _reported_class(self: Any) -> Any:
    """What isinstance asks after the type itself."""
    from triton.runtime.jit import JITFunction

    return JITFunction


def _compiled_attribute(self: Any, name: str) -> Any:
    """What an interpreted function does not have itself, of the compiled form of the same function."""
    if (name.startswith("__") and name != "__globals__") or name in ("fn", "kwargs"):
        raise AttributeError(name)
    if name == "cache_key":
        return _source_key(self)
    compiled = self.__dict__.get("_tritensor_compiled")
    # made when first asked: reading a source takes a millisecond, and most interpreted kernels are only run
    if compiled is None:
        compiled = self.__dict__["_tritensor_compiled"] = _reported_class(self)(self.fn, **self.kwargs)
    return getattr(compiled, name)


def _bind_method(self: Any, instance: Any, owner: Any = None) -> Any:
    """A `@triton.jit` method of one of Triton's aggregates gets its instance; to any other class a kernel is a value, as compiled ones are."""
    return self if instance is None or not getattr(type(instance), "__triton_aggregate__", False) else partial(self, instance)


def _guard_call(call: Callable[..., Any]) -> Callable[..., Any]:
    """What an interpreted function does when it is called: inside of a kernel it is one of its functions, elsewhere a launch without a grid."""

    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        for a in (*args, *kwargs.values()):
            # Triton's interpreter would run the function as Python, and fail somewhere inside of it
            if isinstance(a, Tensor):
                name = self.fn.__name__
                raise RuntimeError(f"{name}: a @triton.jit function is called inside of kernels only; {name}[grid](...) launches it")
        return call(self, *args, **kwargs)

    return called


def install() -> None:
    """Called once, when Triton and its interpreter have been imported: while it is, Triton itself tells the two classes apart."""
    from triton.runtime.interpreter import InterpretedFunction

    bases = InterpretedFunction.__bases__
    between = type(
        "AsCompiled", bases, {"__class__": property(_reported_class), "__getattr__": _compiled_attribute, "__get__": _bind_method}
    )
    InterpretedFunction.__bases__ = (between,)
    InterpretedFunction.__call__ = _guard_call(InterpretedFunction.__call__)
