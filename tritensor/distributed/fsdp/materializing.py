"""Memory for modules that were built on device meta, before FullyShardedDataParallel shares them out: by the user's function, or by reset_parameters."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

from tritensor import cuda
from tritensor.autograd.modes import no_grad
from tritensor.distributed.fsdp.module import FSDPModule
from tritensor.ground.device import as_device
from tritensor.ground.errors import ArgumentError
from tritensor.nn.module import Module


def materialize(module: Module, init: Callable[[Module], Any] | None, skipped: set[Module], device: Any) -> None:
    """Give a module that has parameters or buffers on device meta memory: `init` of each of its modules, or to_empty(device) and reset_parameters() of
    those that have some of their own, without recursing. A module that has none there stays as it is.

    Raises ValueError for an init that cannot be called; what reset_parameters raises, after a warning that names the module.
    """
    if init is not None and not callable(init):
        raise ArgumentError(f"FullyShardedDataParallel: param_init_fn is {init!r}; give a function of a module")
    found = list(_list_modules(module, skipped))
    if not any([t.is_meta for m in found for t in _members(m)]):
        return
    where = device if device is not None else as_device("cuda") if cuda.is_available() else "cpu"
    with no_grad():
        for m in found:
            if init is not None:
                init(m)
            elif list(_members(m)):
                _reset(m, where)


def _reset(module: Any, where: Any) -> None:
    try:
        module.to_empty(device=where, recurse=False)
        module.reset_parameters()
    except BaseException as error:
        warnings.warn(
            f"FullyShardedDataParallel: a {type(module).__name__} on device meta could not be initialised: {error}; give it a method "
            "reset_parameters(), which fills the parameters and buffers that are its own, or give param_init_fn",
            stacklevel=4,
        )
        raise


def _list_modules(root: Module, skipped: set[Module]) -> Iterator[Module]:
    """The modules from the root down, those of one depth together, less what is skipped and what is sharded already."""
    queue, seen = [root], {root}
    for module in queue:
        yield module
        for child in module.children():
            if child not in seen and child not in skipped and not isinstance(child, FSDPModule):
                seen.add(child)
                queue.append(child)


def _members(module: Module) -> Iterator[Any]:
    yield from module.parameters(recurse=False)
    yield from module.buffers(recurse=False)
