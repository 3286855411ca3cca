"""einops' backend for our tensors. einops finds a backend among the subclasses of its own class, so ours is defined when einops is there, and no sooner."""

from __future__ import annotations

import importlib.machinery
import sys
from collections.abc import Sequence
from typing import Any

from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import public

NAME = "einops._backends"
_kept: list[type] = []  # a class knows its subclasses only as long as someone holds them


class Operations:
    """What einops does with a tensor, under the names that it calls."""

    framework_name = "tritensor"

    def is_appropriate_type(self, tensor: Any) -> bool:
        return isinstance(tensor, Tensor)

    def from_numpy(self, x: Any) -> Tensor:
        made: Tensor = public["from_numpy"](x)
        # As einops' own backend for torch does.
        return made.requires_grad_() if made.is_floating_point() else made

    def to_numpy(self, x: Tensor) -> Any:
        return x.detach().cpu().numpy()

    def arange(self, start: int, stop: int) -> Any:
        return public["arange"](start, stop)

    def shape(self, x: Tensor) -> tuple[int, ...]:
        return tuple(x.shape)

    def reshape(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        return x.reshape(tuple(shape))

    def transpose(self, x: Tensor, axes: Sequence[int]) -> Tensor:
        return x.permute(tuple(axes))

    def reduce(self, x: Any, operation: str, axes: Sequence[int]) -> Any:
        if operation in ("min", "max"):
            return (x.amin if operation == "min" else x.amax)(dim=tuple(axes))
        if operation in ("sum", "mean"):
            return getattr(x, operation)(dim=tuple(axes))
        if operation not in ("prod", "any", "all"):
            raise NotImplementedError(f"einops: no reduction {operation!r} of tensors; give min, max, sum, mean, prod, any or all")
        for axis in sorted(axes, reverse=True):  # from the last: each reduction takes a dimension away
            x = getattr(x, operation)(dim=axis)
        return x

    def stack_on_zeroth_dimension(self, tensors: list[Tensor]) -> Any:
        return public["stack"](tensors)

    def add_axis(self, x: Tensor, new_position: int) -> Tensor:
        return x.unsqueeze(new_position)

    def add_axes(self, x: Tensor, n_axes: int, pos2len: dict[int, int]) -> Tensor:
        sizes = [-1] * n_axes  # -1 keeps a size that is there
        for position, length in pos2len.items():
            x, sizes[position] = x.unsqueeze(position), length
        return x.expand(tuple(sizes))

    def tile(self, x: Tensor, repeats: Sequence[int]) -> Tensor:
        return x.repeat(tuple(repeats))

    def concat(self, tensors: list[Tensor], axis: int) -> Any:
        return public["cat"](tensors, dim=axis)

    def is_float_type(self, x: Tensor) -> bool:
        return x.is_floating_point()

    def einsum(self, pattern: str, *x: Tensor) -> Any:
        return public["einsum"](pattern, *x)


class WhenLoaded:
    """Stands among Python's finders until einops is imported, lets the others load it, and adds the backend."""

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if fullname != NAME:
            return None
        sys.meta_path.remove(self)  # type: ignore[arg-type]  # once: the import of einops may be tried again after an error
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        loader: Any = None if spec is None else spec.loader
        if loader is not None:
            run = loader.exec_module

            def exec_module(module: Any) -> None:
                run(module)
                define(module)

            loader.exec_module = exec_module
        return spec


def register() -> None:
    """Define the backend, now or when einops is imported."""
    if NAME in sys.modules:
        define(sys.modules[NAME])
    else:
        sys.meta_path.insert(0, WhenLoaded())  # type: ignore[arg-type]


def define(einops: Any) -> type:
    """The backend: a subclass of einops' AbstractBackend."""
    made = type("TritensorBackend", (Operations, einops.AbstractBackend), {"__doc__": Operations.__doc__})
    _kept.append(made)
    return made
