"""Base classes of transforms: a repr that names settings, and a change that is made with probability p."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from tritensor import nn
from tritensor.vision.transforms import draws


class Transform(nn.Module):
    """A transform whose repr shows the attributes that `_settings` lists, as torchvision's do."""

    _settings: ClassVar[tuple[str, ...]] = ()
    _separator: ClassVar[str] = ", "

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._separator.join(f'{name}={getattr(self, name)}' for name in self._settings)})"


class RandomChange(Transform):
    """`_change`, a function of the image or a method, with probability p."""

    _settings: ClassVar[tuple[str, ...]] = ("p",)
    _separator = ","  # torchvision's reprs of these have no blank
    _change: Callable[..., Any]

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p

    def forward(self, img: Any) -> Any:
        return self._change(img) if draws.chance(self.p) else img  # one draw, whatever is changed: the generator goes on alike
