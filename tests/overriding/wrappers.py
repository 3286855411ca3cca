"""Classes of tensors below autograd that tests use: one that holds a plain tensor and logs, and modes that log or pass everything on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tritensor as tt
from tritensor.ground.pytree import tree_map
from tritensor.torch_dispatch.modes import TorchDispatchMode


def make_holding(T: Any, tree_map: Callable[..., Any]) -> Any:
    """Of a library, tritensor or torch, a class of tensors without memory around a plain one: every op is computed on what is held, and noted."""

    class Holding(T.Tensor):  # type: ignore[misc]
        __torch_function__ = T._C._disabled_torch_function_impl
        names: list[str] = []  # noqa: RUF012

        @staticmethod
        def __new__(cls, held: Any, requires_grad: bool = False) -> Any:
            made = T.Tensor._make_wrapper_subclass(
                cls, held.shape, strides=held.stride(), dtype=held.dtype, device=held.device, requires_grad=requires_grad
            )
            made.held = held
            return made

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            cls.names.append(str(func))
            out = func(*tree_map(bare, args), **tree_map(bare, kwargs or {}))
            return tree_map(lambda y: cls(y) if isinstance(y, T.Tensor) and not isinstance(y, Holding) else y, out)

    Holding.__qualname__ = "Holding"  # where pickle finds tritensor's
    return Holding


def bare(x: Any) -> Any:
    """What is held, of what holds."""
    return getattr(x, "held", x)


Holding: Any = make_holding(tt, tree_map)


class Log(TorchDispatchMode):
    """Notes the name of every op, and computes it."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))
