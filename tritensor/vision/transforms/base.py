"""Base classes of transforms: a repr that names settings, a function of them, and a change that is made with probability p."""

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


class Change(Transform):
    """`_change`, a function of the image and the settings, or a method."""

    _change: Callable[..., Any]

    def forward(self, img: Any) -> Any:
        return self._change(img, *[getattr(self, name) for name in self._settings])


class RandomChange(Change):
    """Such a change with probability p, the last of the settings."""

    _settings: ClassVar[tuple[str, ...]] = ("p",)
    _separator = ","  # torchvision's reprs of these have no blank

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p

    def forward(self, img: Any) -> Any:
        if not draws.chance(self.p):  # one draw, whatever is changed: the generator goes on alike
            return img
        return self._change(img, *[getattr(self, name) for name in self._settings[:-1]])
