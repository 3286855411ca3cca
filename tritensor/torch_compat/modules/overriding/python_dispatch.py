"""torch.utils._python_dispatch: classes and modes below autograd, `__torch_dispatch__`, which nothing here calls: they say so when they are used."""

from __future__ import annotations

from typing import Any, NoReturn

from tritensor.tensor.core import Tensor
from tritensor.tensor.overriding.protocol import refuse_dispatch

__all__ = [
    "BaseTorchDispatchMode",
    "TorchDispatchMode",
    "is_in_torch_dispatch_mode",
    "is_traceable_wrapper_subclass",
    "is_traceable_wrapper_subclass_type",
]


class TorchDispatchMode:
    """A class to derive from. Entering it raises NotImplementedError: ops here are Triton kernels with numpy beside them, and no ops of aten."""

    def __init__(self, _dispatch_key: Any = None) -> None:
        pass

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> NoReturn:
        refuse_dispatch(f"TorchDispatchMode: {type(self).__name__}")

    def __exit__(self, *exc: object) -> None:
        pass


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that lets everything pass."""


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """False: no such mode can be entered."""
    return False


def _get_current_dispatch_mode() -> None:
    """None: there is no such mode."""


def _get_current_dispatch_mode_stack() -> list[Any]:
    return []


def _len_torch_dispatch_stack() -> int:
    return 0


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Whether a class of tensors says what it is made of: `__tensor_flatten__` and `__tensor_unflatten__`."""
    return issubclass(t, Tensor) and t is not Tensor and hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether an object is a tensor of such a class."""
    return is_traceable_wrapper_subclass_type(type(t))
