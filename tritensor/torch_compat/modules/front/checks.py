"""torch._check and its kin: conditions that raise an error of a chosen kind where they do not hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tritensor.ground.errors import ShapeError
from tritensor.tensor.core import Tensor

_Message = Callable[[], Any] | None
_UNSAID = "the condition does not hold; give message=lambda: ... to say what was expected"


def _assert(condition: Any, message: str) -> None:
    """`assert condition, message`, which a tracer could follow. Raises AssertionError."""
    if not condition:
        raise AssertionError(message)


def _assert_async(condition: Tensor, msg: str = "_assert_async: the tensor's one value is 0") -> None:
    """Raises RuntimeError unless a tensor of one element is true. The value is waited for: nothing here goes on without it."""
    if condition.numel() != 1:
        raise ShapeError(f"_assert_async: the tensor is of shape {tuple(condition.shape)}; give one element, as of condition.all()")
    if not condition.item():
        raise RuntimeError(msg)


def _check_with(error_type: type[Exception], cond: bool, message: _Message) -> None:
    """Raises an error of the type, with what message() says, unless the condition holds. TypeError where it is no bool."""
    if not isinstance(cond, bool):
        told = "of tensors use _check_tensor_all" if isinstance(cond, Tensor) else "give a bool"
        raise TypeError(f"cond is of type {type(cond).__name__}; {told}")
    if cond:
        return
    if message is not None and not callable(message):
        raise TypeError(
            f"message is of type {type(message).__name__}; give a function without arguments, which is called where the check fails"
        )
    raise error_type(_UNSAID if message is None else str(message()))


def _check(cond: bool, message: _Message = None) -> None:
    """Raises RuntimeError unless cond is True."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond: bool, message: _Message = None) -> None:
    """Raises IndexError unless cond is True."""
    _check_with(IndexError, cond, message)


def _check_value(cond: bool, message: _Message = None) -> None:
    """Raises ValueError unless cond is True."""
    _check_with(ValueError, cond, message)


def _check_type(cond: bool, message: _Message = None) -> None:
    """Raises TypeError unless cond is True."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: bool, message: _Message = None) -> None:
    """Raises NotImplementedError unless cond is True."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i: Any, message: _Message = None, *, max: Any = None) -> None:
    """Raises RuntimeError unless a number is 0 or more, and at most `max`."""
    _check_with(RuntimeError, bool(i >= 0), message)
    if max is not None:
        _check_with(RuntimeError, bool(i <= max), message)


def _check_tensor_all_with(error_type: type[Exception], cond: Tensor, message: _Message = None) -> None:
    """Raises an error of the type unless all elements of a tensor are true."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond is of type {type(cond).__name__}; give a tensor, or use _check")
    _check_with(error_type, bool(cond.all().item()), message)


def _check_tensor_all(cond: Tensor, message: _Message = None) -> None:
    """Raises RuntimeError unless all elements of a tensor are true."""
    _check_tensor_all_with(RuntimeError, cond, message)
