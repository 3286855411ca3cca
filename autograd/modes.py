"""Grad modes: whether ops leave nodes in the graph. Per thread; context managers that are decorators too."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from typing import Any

from tritensor.ground.call_site import wrapper


class _State(threading.local):
    enabled: bool = True  # ops on tensors that require grad are recorded
    inference: bool = False  # what is_inference_mode_enabled answers
    casting: Any = None  # how autocast casts, where it is on (see dispatch.autocast)
    watch: Callable[[Any], None] | None = None  # called with each node that an op leaves, where set (see saved.watch)
    saving: tuple[tuple[Callable[..., Any], Callable[..., Any]], ...] = ()  # hooks on saved tensors, the innermost last
    borrows_saved: bool = False  # whether all that nodes save is borrowed (see saved.borrow_all_saved)
    saving_refused: str | None = None  # what to say to whoever sets such hooks
    lays_gradients: bool = True  # whether a leaf's first gradient lies as the leaf (see enforce_grad_layout_policy)
    anomaly: Any = None  # while backward looks for NaN, what does so (see anomaly_mode.Watch)
    check_nan: bool = True
    task: Any = None  # the backward that runs in this thread


state = _State()


def is_grad_enabled() -> bool:
    """True where ops are being recorded in this thread."""
    return state.enabled


def is_inference_mode_enabled() -> bool:
    """True where inference_mode is on in this thread."""
    return state.inference


class _Mode:
    """A context manager that sets the grad mode and restores the one it found; also decorates functions and generators."""

    _enabled: bool = True
    _inference: bool | None = None

    def __enter__(self) -> None:
        stack = self.__dict__.setdefault("_before", [])  # a stack: one object may be entered again inside itself
        stack.append((state.enabled, state.inference))
        state.enabled = self._enabled
        if self._inference is not None:
            state.inference = self._inference

    def __exit__(self, *exc: object) -> None:
        state.enabled, state.inference = self.__dict__["_before"].pop()

    def _clone(self) -> _Mode:
        return type(self)()

    def clone(self) -> _Mode:
        """Another one of the same mode."""
        return self._clone()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.isgeneratorfunction(function):
            return self._wrap_generator(function)  # whose body runs later, when this call is long over

        @wrapper
        @functools.wraps(function)
        def inner(*args: Any, **kwargs: Any) -> Any:
            with self._clone():
                return function(*args, **kwargs)

        return inner

    def _wrap_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        # The mode holds while the generator runs and not while its caller does, so it is entered anew for each step, and for what the
        # caller throws into it and for its end as well.
        @wrapper
        @functools.wraps(function)
        def inner(*args: Any, **kwargs: Any) -> Any:
            generator = function(*args, **kwargs)
            try:
                with self._clone():
                    item = next(generator)
                while True:
                    try:
                        sent = yield item
                    except GeneratorExit:
                        with self._clone():
                            generator.close()
                        raise
                    except BaseException as raised:
                        with self._clone():
                            item = generator.throw(raised)
                    else:
                        with self._clone():
                            item = generator.send(sent)
            except StopIteration as stop:
                return stop.value

        return inner


class _BareMode(_Mode):
    """A mode that decorates without parentheses, too: `@no_grad`, as in PyTorch."""

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        made = super().__new__(cls)
        return made if function is None else made(function)


class no_grad(_BareMode):
    """Ops inside are not recorded. `with no_grad():` or `@no_grad()`.

    >>> w = tt.ones(2, requires_grad=True)
    >>> with tt.no_grad():
    ...     y = w * 2
    >>> y.requires_grad
    False
    """

    _enabled = False


class enable_grad(_BareMode):
    """Ops inside are recorded, also within no_grad."""


class inference_mode(_Mode):
    """Like no_grad, and is_inference_mode_enabled() answers True; inference_mode(False) is enable_grad.

    Results are ordinary tensors that may enter a graph later.
    """

    def __new__(cls, mode: Any = True) -> Any:
        if callable(mode):  # @inference_mode without parentheses
            return cls()(mode)
        made = super().__new__(cls)
        made._enabled, made._inference = not mode, bool(mode)
        return made

    def _clone(self) -> _Mode:
        return type(self)(self._inference)


class set_grad_enabled(_Mode):
    """Set the mode at once; as a context manager, restore at the end the one that was on when it was made."""

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool | int):
            raise TypeError(f"set_grad_enabled: mode is a {type(mode).__name__}; give True or False")
        self._enabled = bool(mode)
        self._found = state.enabled
        state.enabled = self._enabled

    def __enter__(self) -> None:
        state.enabled = self._enabled

    def __exit__(self, *exc: object) -> None:
        state.enabled = self._found

    def _clone(self) -> _Mode:
        return enable_grad() if self._enabled else no_grad()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        state.enabled = self._found  # decorating is not entering
        return super().__call__(function)


class set_multithreading_enabled:
    """Accepted: backward runs in the thread that calls it. `mode` is kept; as a context manager, the mode found is restored at the end."""

    enabled = True

    def __init__(self, mode: bool) -> None:
        self._found, self.mode = set_multithreading_enabled.enabled, bool(mode)
        set_multithreading_enabled.enabled = self.mode

    def __enter__(self) -> None: ...

    def __exit__(self, *exc: object) -> None:
        set_multithreading_enabled.enabled = self._found

    def clone(self) -> set_multithreading_enabled:
        """Another one of the same mode."""
        return type(self)(self.mode)


class enforce_grad_layout_policy(_Mode):
    """enforce_grad_layout_policy(False): from now on, or inside a `with` or a decorated function, a leaf keeps the gradient that it is given without a copy
    although it lies in memory otherwise than the leaf. Per thread; on before."""

    def __init__(self, enable: bool = True) -> None:
        self.prev, self.mode = state.lays_gradients, bool(enable)
        state.lays_gradients = self.mode

    def __enter__(self) -> None: ...

    def __exit__(self, *exc: object) -> None:
        state.lays_gradients = self.prev

    def _clone(self) -> enforce_grad_layout_policy:
        return type(self)(self.mode)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        state.lays_gradients = self.prev  # decorating is not entering
        return super().__call__(function)
