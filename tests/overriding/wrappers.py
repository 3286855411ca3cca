"""Classes of tensors below autograd that tests use: one that holds a plain tensor and logs, and modes that log or pass everything on."""

from __future__ import annotations

from typing import Any

import tritensor as tt
from tritensor.ground.pytree import tree_map
from tritensor.torch_dispatch.modes import TorchDispatchMode


class Holding(tt.Tensor):
    """A tensor without memory around a plain one: every op is computed on what is held, and noted."""

    __torch_function__ = tt._C._disabled_torch_function_impl
    names: list[str] = []  # noqa: RUF012
    held: tt.Tensor

    @staticmethod
    def __new__(cls, held: tt.Tensor, requires_grad: bool = False) -> Any:
        made = tt.Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls, held.shape, strides=held.stride(), dtype=held.dtype, device=held.device, requires_grad=requires_grad
        )
        made.held = held
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.names.append(str(func))
        out = func(*tree_map(bare, args), **tree_map(bare, kwargs or {}))
        return tree_map(lambda y: cls(y) if isinstance(y, tt.Tensor) and not isinstance(y, Holding) else y, out)


def bare(x: Any) -> Any:
    """What is held, of what holds."""
    return x.held if isinstance(x, Holding) else x


class Log(TorchDispatchMode):
    """Notes the name of every op, and computes it."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))
