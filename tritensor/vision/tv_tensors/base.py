"""TVTensor, the base of tensors that know what they are, and what ops give of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from tritensor.ground.errors import ArgumentError
from tritensor.ground.pytree import tree_flatten
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.constructors import as_tensor
from tritensor.tensor.overriding.protocol import DisableTorchFunctionSubclass

_RETURN_TYPES = {"tensor": False, "tvtensor": True}
_kept = False  # whether every op gives the class back, and not those of _keeping() alone


class _Restoring:
    """What set_return_type() gives: as a context manager it puts the earlier setting back."""

    def __init__(self, before: bool) -> None:
        self.before = before

    def __enter__(self) -> _Restoring:
        return self

    def __exit__(self, *exc: object) -> None:
        global _kept
        _kept = self.before


def set_return_type(return_type: str) -> _Restoring:
    """What ops on TVTensors give from now on, or inside `with`: "Tensor", plain ones, as at first, or "TVTensor", those of the class that they were given.

    Transforms keep the class in any case. Raises ValueError for another word.
    """
    global _kept
    if return_type.lower() not in _RETURN_TYPES:
        raise ArgumentError(f"set_return_type: return_type must be 'TVTensor' or 'Tensor', got {return_type}")
    restoring = _Restoring(_kept)
    _kept = _RETURN_TYPES[return_type.lower()]
    return restoring


@functools.cache
def _keeping() -> frozenset[Callable[..., Any]]:
    """Methods that change no value: what they give is still what it was."""
    methods: Any = Tensor
    return frozenset({methods.clone, methods.to, methods.detach, methods.requires_grad_, methods.pin_memory})


class TVTensor(Tensor):
    """Base of these classes, and of a program's own: a subclass without facts of its own needs nothing more.

    Ops give plain Tensors, save clone(), to(), detach(), requires_grad_() and pin_memory(): an image times two may be none. `set_return_type` changes that,
    and `wrap` says of a result what it is.
    """

    _facts: ClassVar[tuple[str, ...]] = ()  # attributes that describe the values, and go along with them

    @staticmethod
    def _to_tensor(data: Any, dtype: Any = None, device: Any = None, requires_grad: bool | None = None) -> Tensor:
        """The values as a plain tensor, which needs a gradient where `data` does, unless told otherwise."""
        if requires_grad is None:
            requires_grad = isinstance(data, Tensor) and data.requires_grad
        return as_tensor(data, dtype=dtype, device=device).requires_grad_(requires_grad)

    @classmethod
    def wrap(cls, tensor: Tensor, like: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        """A tensor as an instance of the class, memory shared, with the facts of `like`, but for those that kwargs give."""
        made: Any = tensor.as_subclass(cls)
        for fact in cls._facts:
            setattr(made, fact, kwargs[fact] if fact in kwargs else getattr(like, fact))
        return made

    @classmethod
    def _wrap_output(cls, output: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        """What an op gave, the tensors in it as instances of the class, with the facts of the first of the arguments that has them."""
        if isinstance(output, Tensor) and not isinstance(output, cls):
            given = tree_flatten((tuple(args), dict(kwargs or {})))[0] if cls._facts else []
            like = next((x for x in given if isinstance(x, cls)), None)
            return TVTensor.wrap.__func__(cls, output, like)  # type: ignore[attr-defined]  # not a subclass's, which may look at the shape
        if isinstance(output, tuple | list):
            parts = [cls._wrap_output(part, args, kwargs) for part in output]
            return type(output)(*parts) if hasattr(output, "_fields") else type(output)(parts)
        return output

    @classmethod
    def __torch_function__(cls, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        if not all(issubclass(cls, t) for t in types):
            return NotImplemented
        with DisableTorchFunctionSubclass():
            output = func(*args, **(kwargs or {}))
        # a_tensor.to(an_image) comes here, too, and stays a tensor
        if _kept or (func in _keeping() and isinstance(args[0], cls)):
            return cls._wrap_output(output, args, kwargs)
        return output.as_subclass(Tensor) if isinstance(output, cls) else output  # an op in place gives what it was given

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self.detach().clone().requires_grad_(self.requires_grad)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        facts = "".join(f", {fact}={getattr(self, fact)}" for fact in self._facts)
        shown = super().__repr__()
        return f"{shown[:-1]}{facts})"


def wrap(wrappee: Tensor, *, like: Any, **kwargs: Any) -> Any:
    """A tensor as an instance of like's class, with its facts (format, canvas_size, ...), but for those that kwargs give."""
    return type(like).wrap(wrappee, like, **kwargs) if hasattr(type(like), "wrap") else wrappee.as_subclass(type(like))
