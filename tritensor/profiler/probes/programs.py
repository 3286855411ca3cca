"""Probes of a training loop's parts: calls of modules, steps of optimizers, batches of a DataLoader."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from tritensor.data.loader import DataLoader
from tritensor.ground.call_site import wrapper
from tritensor.nn.module import Module
from tritensor.optim.hooks import Hooked
from tritensor.profiler.probes.timed import time_call
from tritensor.profiler.recording import Patches, Recording
from tritensor.profiler.records import LOADER, MODULE, OPTIMIZER


def programs_probe(recording: Recording, patches: Patches) -> None:
    """Wrap optimizers and loaders, and modules where they are asked for."""
    for cls in _subclasses(Hooked):
        for name in ("step", "zero_grad"):
            if name in vars(cls):  # an inherited one is wrapped in its own class
                _probe_method(recording, patches, cls, name)
    _probe_loader(recording, patches)
    if recording.options.modules:
        call = Module.__call__
        patches.put(Module, "__call__", time_call(recording, MODULE, lambda self, *args: self, call))


def _subclasses(cls: type) -> set[type]:
    derived: list[type] = cls.__subclasses__()
    return {cls}.union(*[_subclasses(c) for c in derived])


def _probe_method(recording: Recording, patches: Patches, cls: Any, name: str) -> None:
    """An optimizer's step or zero_grad under PyTorch's name for it; one that a subclass's own calls is part of that."""
    plain = vars(cls)[name]
    timed = time_call(recording, OPTIMIZER, lambda self, *args: f"Optimizer.{name}#{type(self).__name__}.{name}", plain)

    @wrapper
    @functools.wraps(plain)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return (plain if name == "step" and self._stepping else timed)(self, *args, **kwargs)

    patches.put(cls, name, method)


class _TimedBatches:
    """An iterator over a DataLoader that is profiled, otherwise as the one inside it."""

    def __init__(self, inside: Iterator[Any], take: Any) -> None:
        self._inside, self._take = inside, take

    def __iter__(self) -> _TimedBatches:
        return self

    def __next__(self) -> Any:
        return self._take(self._inside)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inside, name)


def _probe_loader(recording: Recording, patches: Patches) -> None:
    plain: Any = DataLoader.__iter__

    @functools.wraps(plain)
    def batches(self: Any) -> Any:
        name = f"enumerate(DataLoader)#_{'MultiProcessing' if self.num_workers else 'SingleProcess'}DataLoaderIter.__next__"
        return _TimedBatches(plain(self), time_call(recording, LOADER, lambda inside: name, next))

    patches.put(DataLoader, "__iter__", batches)
