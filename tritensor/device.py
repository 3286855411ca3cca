"""Devices: `cpu` (numpy) and `cuda:N` (Triton kernels on a GPU, or emulated under TRITON_INTERPRET=1)."""

from __future__ import annotations

from typing import Any

from tritensor.errors import DeviceError


class device:
    """A place where tensors live: `device("cpu")`, `device("cuda")`, `device("cuda:1")`, `device("cuda", 1)`."""

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
        if name not in ("cpu", "cuda") or (name == "cpu" and index not in (None, 0)):
            raise DeviceError(f"device: {type!r} is not a device; give 'cpu', 'cuda' or 'cuda:N'")
        self.type = name
        self.index = index if name == "cuda" else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __repr__(self) -> str:
        return f"device(type='{self.type}')" if self.index is None else f"device(type='{self.type}', index={self.index})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __reduce__(self) -> Any:
        return device, (str(self),)


cpu = device("cpu")


def as_device(x: Any) -> device:
    """The device meant by a device, a name, a GPU number, or None (the CPU)."""
    if x is None:
        return cpu
    if isinstance(x, int) and not isinstance(x, bool):
        return device("cuda", x)
    found = x if isinstance(x, device) else device(x)
    return device("cuda", 0) if found.type == "cuda" and found.index is None else found
