"""The probes of what a training loop is made of: calls of modules, steps of optimizers, batches of a DataLoader."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from tritensor.data.loader import DataLoader
from tritensor.ground.call_site import wrapper
from tritensor.nn.module import Module
from tritensor.optim.hooks import Hooked
from tritensor.profiler.patches import Patches
from tritensor.profiler.probes.timed import timed_call
from tritensor.profiler.recording import Recording
from tritensor.profiler.records import LOADER, MODULE, OPTIMIZER


def programs_probe(recording: Recording, patches: Patches) -> None:
    """Optimizers and loaders; modules where they are asked for."""
    for cls in _below(Hooked):
        for name in ("step", "zero_grad"):
            if name in vars(cls):
                _method(recording, patches, cls, name)
    _loader(recording, patches)
    if recording.options.modules:
        call = Module.__call__
        patches.put(Module, "__call__", timed_call(recording, MODULE, lambda self, *args: self, call))


def _below(cls: type) -> set[type]:
    """A class and all that derive from it."""
    below: list[type] = cls.__subclasses__()
    return {cls}.union(*[_below(c) for c in below])


def _method(recording: Recording, patches: Patches, cls: Any, name: str) -> None:
    """An optimizer's step or zero_grad under PyTorch's name for it; one that a subclass's own calls is part of that."""
    plain = vars(cls)[name]
    timed = timed_call(recording, OPTIMIZER, lambda self, *args: f"Optimizer.{name}#{type(self).__name__}.{name}", plain)

    @wrapper
    @functools.wraps(plain)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return (plain if name == "step" and self._stepping else timed)(self, *args, **kwargs)

    patches.put(cls, name, method)


class _Batches:
    """An iterator over a DataLoader that is profiled, otherwise as the one inside it."""

    def __init__(self, inside: Iterator[Any], take: Any) -> None:
        self._inside, self._take = inside, take

    def __iter__(self) -> _Batches:
        return self

    def __next__(self) -> Any:
        return self._take(self._inside)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inside, name)


def _loader(recording: Recording, patches: Patches) -> None:
    plain: Any = DataLoader.__iter__

    @functools.wraps(plain)
    def batches(self: Any) -> Any:
        name = f"enumerate(DataLoader)#_{'MultiProcessing' if self.num_workers else 'SingleProcess'}DataLoaderIter.__next__"
        return _Batches(plain(self), timed_call(recording, LOADER, lambda inside: name, next))

    patches.put(DataLoader, "__iter__", batches)
