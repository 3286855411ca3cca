"""Unpickler for files that the user trusts (weights_only=False): Python's own, with tritensor's classes for PyTorch's."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

from tritensor.ground.errors import CheckpointError
from tritensor.ground.providers import provider
from tritensor.io import safe_globals
from tritensor.io.torch_format import allowed_names
from tritensor.io.torch_format.pickle_vm import PickleVM


class _Stream:
    """A memoryview read as a file, so that it is known where a pickle ends."""

    def __init__(self, data: memoryview, at: int) -> None:
        self.data, self.at = data, at

    def read(self, n: int = -1) -> bytes:
        end = len(self.data) if n < 0 else min(self.at + n, len(self.data))
        self.at, begin = end, self.at
        return bytes(self.data[begin:end])

    def readline(self) -> bytes:
        end = self.at
        while end < len(self.data) and self.data[end] != 0x0A:
            end += 1
        return self.read(end + 1 - self.at)


class _TrustingVM(PickleVM):
    """The VM that constructors are given: everything is trusted."""

    def trusts(self, named: Any) -> bool:
        return True


class _BoundConstructor:
    """A constructor of allowed_names.py as a function that any unpickler calls; `stands` is what the table has for its name."""

    def __init__(self, stands: Any, make: Callable[..., Any], vm: PickleVM) -> None:
        self.stands, self.make, self.vm = stands, make, vm

    def __call__(self, *args: Any) -> Any:
        return self.make(self.vm, *args)


def read(
    data: memoryview, at: int, persistent: Callable[[Any], Any] | None, module: Any, arguments: dict[str, Any], mapper: Any = None
) -> tuple[Any, int]:
    """The value of a pickle, and where it ends. It runs what the file says. `module` has an Unpickler; None is Python's own pickle."""
    stream = _Stream(data, at)
    names, constructors = allowed_names.name_tables()
    vm = _TrustingVM(data, "load", allowed_names.lookup, constructors, mapper=mapper, room=1 << 62)

    class Unpickler((pickle if module is None else module).Unpickler):  # type: ignore[misc]
        def find_class(self, space: str, name: str) -> Any:
            whole = f"{space}.{name}"
            if space.startswith("torch") and whole in names:
                stands = names[whole]
                make = constructors.get(id(stands))
                return stands if make is None or isinstance(stands, type) else _BoundConstructor(stands, make, vm)
            if (chosen := safe_globals.find_safe(space, name)) is not None:
                return chosen
            return _find_in_tritensor(space, name) if space.partition(".")[0] == "torch" else super().find_class(space, name)

        def persistent_load(self, pid: Any) -> Any:
            if persistent is None:
                raise pickle.UnpicklingError("a storage is named where none can be")
            return persistent(pid)

    found = Unpickler(stream, **{"encoding": "utf-8", **arguments})
    return found.load(), stream.at


_MOVED = {"torch._C._nn": "torch.nn.functional"}  # PyTorch's compiled functions, as modules refer to them


def _find_in_tritensor(space: str, name: str) -> Any:
    """The object at PyTorch's path in tritensor. Raises CheckpointError where there is none."""
    try:
        found: Any = provider("torch_compat.finder").module_at(_MOVED.get(space, space).removeprefix("torch").removeprefix("."))
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise CheckpointError(
            f"load: the file wants {space}.{name}, which tritensor has not ({error}); where PyTorch is installed, save the state_dict of what it holds"
        ) from None
    return found
