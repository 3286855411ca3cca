"""Calls of compiled functions: each runs in a lazy region, also the steps of generators and coroutines."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from typing import Any

from tritensor.compilation import stance
from tritensor.ground.call_site import wrapper
from tritensor.lazy_evaluation.modes import abandon_region, at_once_inside, enter_region, leave_region

Around = Callable[..., Any]  # calls what it is given first with the rest


def in_region(f: Callable[..., Any], name: str | None = None, eager: bool = False) -> Any:
    """A function that calls f in a lazy region, which those that it calls are part of; with eager=True as it is."""
    why = f"the end of {name or getattr(f, '__name__', type(f).__name__)}"

    def around(call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        if eager or stance.forces_eager() or not enter_region():
            return call(*args, **kwargs)
        try:
            result = call(*args, **kwargs)
        except BaseException as error:
            abandon_region(None if isinstance(error, StopIteration | StopAsyncIteration | GeneratorExit) else error, why)
            raise
        leave_region(result, why)
        return result

    return _of_kind(f, around)


def opaque(f: Callable[..., Any]) -> Any:
    """A function that calls f with ops run as they are called; what waits is computed first."""
    why = f"{getattr(f, '__name__', type(f).__name__)}, which is not compiled"

    def around(call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        with at_once_inside(why):
            return call(*args, **kwargs)

    return _of_kind(f, around)


def innermost(f: Any) -> Any:
    """What a compiled function, or an OptimizedModule, was made of; anything else itself. A copy of the attributes on another function counts for nothing."""
    while getattr(f, "_torchdynamo_wrapper_id", None) == id(f):
        f = f._torchdynamo_orig_callable
    return f


def _of_kind(f: Callable[..., Any], around: Around) -> Any:
    """A function of f's kind, each of whose steps is called by `around`."""
    make = (
        _generator if inspect.isgeneratorfunction(f)
        else _coroutine if inspect.iscoroutinefunction(f)
        else _async_generator if inspect.isasyncgenfunction(f)
        else _function
    )  # fmt: skip
    made = make(f, around)
    functools.update_wrapper(made, f, updated=("__dict__",) if inspect.isroutine(f) else ())
    made._torchdynamo_orig_callable, made._torchdynamo_wrapper_id = f, id(made)  # by which libraries unwrap what is compiled
    return wrapper(made)


def _function(f: Callable[..., Any], around: Around) -> Any:
    def compiled(*args: Any, **kwargs: Any) -> Any:
        return around(f, *args, **kwargs)

    return compiled


def _generator(f: Callable[..., Any], around: Around) -> Any:
    def compiled(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        return (yield from _steps(f(*args, **kwargs), around))

    return compiled


def _coroutine(f: Callable[..., Any], around: Around) -> Any:
    async def compiled(*args: Any, **kwargs: Any) -> Any:
        return await _awaited(f(*args, **kwargs), around)

    return compiled


def _async_generator(f: Callable[..., Any], around: Around) -> Any:
    async def compiled(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        inner = f(*args, **kwargs)
        step: Awaitable[Any] = inner.__anext__()
        while True:
            try:
                item = await _awaited(step, around)
            except StopAsyncIteration:
                return
            try:
                step = inner.asend((yield item))
            except GeneratorExit:
                await _awaited(inner.aclose(), around)
                raise
            except BaseException as raised:
                step = inner.athrow(raised)

    return compiled


@types.coroutine
def _awaited(awaitable: Any, around: Around) -> Generator[Any, Any, Any]:
    """An awaitable, each of whose steps is called by `around`."""
    return (yield from _steps(awaitable.__await__(), around))


def _steps(generator: Any, around: Around) -> Generator[Any, Any, Any]:
    """A generator's items, each computed by `around`: between them its caller runs, which is nobody's region."""
    step: tuple[Any, ...] = (next, generator)
    while True:
        try:
            item = around(*step)
        except StopIteration as stop:
            return stop.value
        try:
            sent = yield item
        except GeneratorExit:
            around(generator.close)
            raise
        except BaseException as raised:
            step = generator.throw, raised
        else:
            step = (next, generator) if sent is None else (generator.send, sent)
