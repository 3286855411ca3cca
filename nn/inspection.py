"""Inspection of a running module, which leaves it unchanged: modes, buffers, random numbers, hooks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tritensor.autograd.modes import no_grad
from tritensor.nn.module import Module
from tritensor.nn.parameter import is_lazy
from tritensor.ops.array import to_host
from tritensor.random import get_rng_state, set_rng_state
from tritensor.tensor.core import Tensor


@contextmanager
def preserve_modes(module: Module) -> Iterator[None]:
    """Afterwards a module and those in it train, or do not, as before."""
    before = [(m, m.training) for m in module.modules()]
    try:
        yield
    finally:
        for m, training in before:
            m.training = training


@contextmanager
def preserve_state(module: Any) -> Iterator[None]:
    """Afterwards a module is in its mode, its buffers are those of before and hold what they held, whatever its forward did to them, and chance goes
    on as if nothing had been drawn. Of a plain function that alone is so."""
    drawn = get_rng_state()
    if not isinstance(module, Module):
        try:
            yield
        finally:
            set_rng_state(drawn)
        return
    # by module and name, since forward may assign another tensor
    held = [(m, name, b) for m in module.modules() for name, b in m._buffers.items() if b is not None and not is_lazy(b)]
    before = [b.detach().clone() for _, _, b in held]
    try:
        with preserve_modes(module):
            yield
    finally:
        set_rng_state(drawn)
        with no_grad():
            for (m, name, buffer), values in zip(held, before, strict=True):
                m._buffers[name] = buffer  # forward may have put another in its place
                # by bytes: NaN is equal to itself, and an unchanged buffer's version stays
                if not np.array_equal(_to_bytes(buffer), _to_bytes(values)):
                    buffer.copy_(values)  # type: ignore[attr-defined]


def _to_bytes(x: Tensor) -> np.ndarray:
    return np.ascontiguousarray(to_host(x._array)).reshape(-1).view(np.uint8)


@contextmanager
def watch_calls(module: Module, before: Callable[..., Any], after: Callable[..., Any], outermost: bool = False) -> Iterator[None]:
    """Call `before(module, args, kwargs)` and `after(module, args, result)` around the call of every module; no hook is left.

    outermost: `before` comes before the program's own hooks, `after` also behind a call that raised.
    """
    bare = [m for m in module.modules() if m._hooks is None]
    handles: list[Any] = []
    try:
        for m in module.modules():
            handles += [
                m.register_forward_pre_hook(before, prepend=outermost, with_kwargs=True),
                m.register_forward_hook(after, always_call=outermost),
            ]
        yield
    finally:
        for handle in handles:
            handle.remove()
        for m in bare:
            if m._hooks is not None and not any(getattr(m._hooks, kind) for kind in m._hooks.__slots__):
                m._hooks = None  # a call without hooks is a shorter one
