"""Devices: `cpu` (numpy), `cuda:N` (Triton kernels on a GPU, or emulated under TRITON_INTERPRET=1) and `meta` (tensors without memory)."""

from __future__ import annotations

import threading
from typing import Any

from tritensor.ground import shortcuts
from tritensor.ground.errors import DeviceError
from tritensor.ground.naming.type_names import named, own_name
from tritensor.ground.thread_state import leave_path

# Types that PyTorch names and nothing here drives: programs compare with them.
FOREIGN = frozenset((
    "fpga", "hip", "hpu", "ideep", "ipu", "lazy", "maia", "mps", "mtia", "opencl", "opengl", "privateuseone", "ve", "vulkan", "xla", "xpu",
))  # fmt: skip


@named("torch")
class device:
    """A place where tensors live: `device("cpu")`, `device("cuda")`, `device("cuda:1")`, `device("cuda", 1)`.

    On `device("meta")` tensors have no memory: shape, strides and type are as on other devices, and there are no values.
    PyTorch's other types, `device("mps")`, are names to compare with: making a tensor there raises.
    """

    __slots__ = ("index", "type")

    index: int | None
    type: str

    def __init__(self, type: str | device, index: int | None = None) -> None:
        if isinstance(type, device):
            given: device = type
            type, index = given.type, given.index
        if not isinstance(type, str):
            raise DeviceError(f"device: {type!r} is not a device; give 'cpu', 'cuda' or 'cuda:N'")
        name, _, number = type.partition(":")
        if number:
            if index is not None or not number.isdigit():
                raise DeviceError(f"device: {type!r} is not a device; give 'cpu', 'cuda' or 'cuda:N'")
            index = int(number)
        known = name in ("cpu", "cuda") or (name == "meta" and index in (None, 0)) or name in FOREIGN
        if not known:
            raise DeviceError(f"device: {type!r} is not a device; give 'cpu', 'cuda' or 'cuda:N'")
        self.type = name
        # PyTorch's cpu:0 is equal to cpu; cpu:1 is a name, whose tensors are on cpu
        self.index = None if name == "meta" or (name == "cpu" and not index) else index

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __repr__(self) -> str:
        return f"device(type='{self.type}')" if self.index is None else f"device(type='{self.type}', index={self.index})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __reduce__(self) -> Any:
        return own_name(device), (str(self),)

    def __enter__(self) -> device:
        """Inside `with device(...)` tensors are made there, where no device is asked for, by this thread."""
        _default.outer = (*_default.outer, _default.on)
        _set_default(self)
        return self

    def __exit__(self, *error: object) -> None:
        # what was outside, not the CPU: blocks nest
        *rest, outside = _default.outer
        _set_default(outside)
        _default.outer = tuple(rest)


cpu = device("cpu")
meta = device("meta")


class _Default(threading.local):
    """Where tensors are made when nobody says where; each thread has its own."""

    on = cpu
    outer: tuple[device, ...] = ()  # what it was outside the `with` blocks that are open


_default = _Default()
_named: dict[str, device] = {"cpu": cpu, "meta": meta}  # every name asked for so far; not "cuda", which each thread may mean differently
_gpus: dict[int, device] = {}
_here: Any = None  # tritensor.ground.thread_state.here, once it is asked for: tritensor.cuda imports this file


def gpu(index: int) -> device:
    """The device of a GPU's number, always the same object."""
    found = _gpus.get(index)
    if found is None:
        found = _gpus[index] = device("cuda", index)
    return found


def _current_gpu() -> device:
    """The GPU that "cuda" means on this thread (see tritensor.cuda.set_device)."""
    global _here
    if _here is None:
        from tritensor.ground.thread_state import here

        _here = here
    return gpu(_here.index)


def as_device(x: Any) -> device:
    """The device meant by a device, a name, a GPU number, or None (the default, the CPU). "cuda" is this thread's current GPU."""
    if x is None:
        on = _default.on
        return on if on is cpu else as_device(on)
    if type(x) is str:
        found = _named.get(x)
        if found is not None:
            return found
        if x == "cuda":
            return _current_gpu()
        found = device(x)
        if found.type in FOREIGN:
            raise _not_here(x)
        if found.type == "cuda":
            if found.index is None:
                return _current_gpu()
            found = gpu(found.index)
        elif found.type == "cpu":
            found = cpu
        _named[x] = found
        return found
    # True is no GPU
    if isinstance(x, int) and not isinstance(x, bool):
        return gpu(x) if x >= 0 else device("cuda", x)
    found = x if isinstance(x, device) else device(x)
    if found.type == "cuda":
        return _current_gpu() if found.index is None else found
    if found.type in FOREIGN:
        raise _not_here(str(x))
    return cpu if found.type == "cpu" else meta


def _not_here(name: str) -> DeviceError:
    return DeviceError(f"device: {name!r} is not a device; give 'cpu', 'cuda' or 'cuda:N'")


def set_default(x: Any) -> None:
    """Make a device the one that None means on this thread; None is the CPU again."""
    # by name, not by number: "cuda" as a default follows set_device
    given = cpu if x is None else device(x) if isinstance(x, str) else as_device(x)
    if given.type in FOREIGN:
        raise _not_here(str(given))
    _set_default(cpu if given == cpu else given)


def _set_default(on: device) -> None:
    """Plans of what is made with no device asked for are of the CPU: while a thread has another default they are off."""
    leave_path()
    was, _default.on = _default.on, on
    if (was is cpu) is not (on is cpu):
        shortcuts.turn("watching", 1 if was is cpu else -1)


def default() -> device:
    """The device that None means on this thread, as `as_device` has it."""
    return as_device(None)
