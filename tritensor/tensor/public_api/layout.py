"""Values of `layout=`: strided, the one layout there is."""

from __future__ import annotations

from typing import Any

from tritensor.ground.call_site import qualified_name
from tritensor.tensor.core import Tensor


class layout:
    """The way a tensor's elements are stored. `tritensor.strided` is the only one; sparse layouts are not there."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return qualified_name(self.name)

    def __reduce__(self) -> str:
        return self.name


strided = layout("strided")


def check_layout(name: str, given: Any) -> None:
    """Refuse a layout that is not strided."""
    if given is not strided:
        raise TypeError(f"{name}: layout is {given!r}; tritensor.strided is the only layout, leave it out or give that")


def _get_layout(x: Tensor) -> layout:
    """Always `tritensor.strided`."""
    return strided


Tensor.layout = property(_get_layout)  # type: ignore[assignment, method-assign]
