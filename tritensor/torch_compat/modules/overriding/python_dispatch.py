"""torch.utils._python_dispatch: modes below autograd, and what is asked of classes with a `__torch_dispatch__`."""

from __future__ import annotations

from typing import Any

from tritensor.tensor.core import Tensor
from tritensor.tensor.overriding.protocol import setting
from tritensor.torch_dispatch.modes import BaseTorchDispatchMode as BaseTorchDispatchMode
from tritensor.torch_dispatch.modes import TorchDispatchMode as TorchDispatchMode

__all__ = [
    "BaseTorchDispatchMode",
    "TorchDispatchMode",
    "is_in_torch_dispatch_mode",
    "is_traceable_wrapper_subclass",
    "is_traceable_wrapper_subclass_type",
    "return_and_correct_aliasing",
    "transform_subclass",
]


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Whether this thread is inside a mode."""
    return bool(setting.lower_modes)


def _get_current_dispatch_mode() -> Any:
    """The innermost mode, or None."""
    return setting.lower_modes[-1] if setting.lower_modes else None


def _get_current_dispatch_mode_stack() -> list[Any]:
    return list(setting.lower_modes)


def _len_torch_dispatch_stack() -> int:
    return len(setting.lower_modes)


class _disable_current_modes:
    """A context manager in which no mode is handed anything."""

    def __enter__(self) -> list[Any]:
        self.before, setting.lower_modes = setting.lower_modes, []
        return list(self.before)

    def __exit__(self, *exc: object) -> None:
        setting.lower_modes = self.before


class _pop_mode_temporarily:
    """A context manager in which the innermost mode is handed nothing; it gives that mode."""

    def __enter__(self) -> Any:
        self.mode = setting.lower_modes.pop()
        return self.mode

    def __exit__(self, *exc: object) -> None:
        setting.lower_modes.append(self.mode)


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Whether a class of tensors says what it is made of: `__tensor_flatten__` and `__tensor_unflatten__`."""
    return issubclass(t, Tensor) and t is not Tensor and hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether an object is a tensor of such a class."""
    return is_traceable_wrapper_subclass_type(type(t))


def transform_subclass(t: Any, callback: Any, outer_size: Any = None, outer_stride: Any = None) -> Any:
    """A tensor of such a class made anew of what `callback(name, inner)` gives for each tensor that it is made of. Raises AssertionError for another size."""
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    size = t.size() if outer_size is None else outer_size
    steps = t.stride() if outer_stride is None else outer_stride
    made = type(t).__tensor_unflatten__(inner, context, size, steps)
    if tuple(made.shape) != tuple(size) or tuple(made.stride()) != tuple(steps):
        raise AssertionError(
            f"transform_subclass: {type(t).__qualname__}.__tensor_unflatten__ gave shape {tuple(made.shape)} with strides {tuple(made.stride())} where "
            f"{tuple(size)} with {tuple(steps)} were asked for"
        )
    return made


def return_and_correct_aliasing(func: Any, args: Any, kwargs: Any, out: Any) -> Any:
    """What a handler is to return: the very input that an op writes in place, or `out=`, else its result."""
    if func.packet_name.endswith("_") and not func.packet_name.endswith("__"):
        return args[0]
    if "out" in kwargs:
        return kwargs["out"]
    return out
