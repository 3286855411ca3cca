"""torch.overrides: classes that take functions over are not known here, so that nothing is ever taken over."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from tritensor.tensor.core import Tensor

__all__ = [
    "handle_torch_function", "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic", "is_tensor_like",
    "is_tensor_method_or_property", "wrap_torch_function",
]  # fmt: skip


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """False: no class takes functions over by __torch_function__."""
    return False


def has_torch_function_unary(obj: Any) -> bool:
    """has_torch_function of one argument."""
    return False


def has_torch_function_variadic(*args: Any) -> bool:
    """has_torch_function of arguments by place."""
    return False


def handle_torch_function(public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any) -> NoReturn:
    """Raises TypeError, as PyTorch does where no argument's class takes the function over."""
    name = getattr(public_api, "__name__", public_api)
    raise TypeError(
        f"no implementation found for '{name}': handle_torch_function: no class takes functions over here; call the function itself"
    )


def wrap_torch_function(dispatcher: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that leaves a function as it is: nothing is taken over."""
    return lambda function: function


def is_tensor_like(inp: Any) -> bool:
    """Whether an object is a tensor, or of a class that has __torch_function__."""
    return isinstance(inp, Tensor) or hasattr(type(inp), "__torch_function__")  # libraries ask it of arrays that are no tensors


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether a function is a method of Tensor."""
    return any(vars(c).get(getattr(func, "__name__", "")) is func for c in Tensor.__mro__)
