"""Compositions of transforms: one after another, some of them, one of them, in any order; any function as a transform."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tritensor import nn
from tritensor.vision.transforms import draws


def _format_list(title: str, transforms: Any) -> str:
    return "\n".join([f"{title}(", *(f"    {t}" for t in transforms), ")"])


class Compose:
    """Transforms one after another.

    >>> T = tt.vision.transforms
    >>> augment = T.Compose([T.RandomResizedCrop(24), T.RandomHorizontalFlip(), T.ConvertImageDtype(tt.float32)])
    >>> augment(tt.randint(0, 256, (16, 3, 32, 32), dtype=tt.uint8)).shape
    tritensor.Size([16, 3, 24, 24])
    """

    def __init__(self, transforms: Sequence[Callable[..., Any]]) -> None:
        self.transforms = transforms

    def __call__(self, img: Any) -> Any:
        for t in self.transforms:
            img = t(img)
        return img

    def __repr__(self) -> str:
        return _format_list(type(self).__name__, self.transforms)


class Lambda:
    """A function as a transform. Raises TypeError for what cannot be called."""

    def __init__(self, lambd: Callable[..., Any]) -> None:
        if not callable(lambd):
            raise TypeError(f"Lambda: lambd is a {type(lambd).__name__}; give a function")
        self.lambd = lambd

    def __call__(self, img: Any) -> Any:
        return self.lambd(img)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class RandomTransforms:
    """Base of RandomOrder and RandomChoice. Raises TypeError for no sequence."""

    def __init__(self, transforms: Sequence[Callable[..., Any]]) -> None:
        if not isinstance(transforms, Sequence):
            raise TypeError(f"{type(self).__name__}: transforms is a {type(transforms).__name__}; give a list of them")
        self.transforms = transforms

    def __call__(self, *args: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no __call__; RandomChoice and RandomOrder have")

    def __repr__(self) -> str:
        return _format_list(type(self).__name__, self.transforms)


class RandomApply(nn.Module):
    """All of a list of transforms, with probability p, or none."""

    def __init__(self, transforms: Sequence[Callable[..., Any]], p: float = 0.5) -> None:
        super().__init__()
        self.transforms = transforms
        self.p = p

    def forward(self, img: Any) -> Any:
        if draws.chance(self.p):
            for t in self.transforms:
                img = t(img)
        return img

    def __repr__(self) -> str:
        return _format_list(type(self).__name__, [f"p={self.p}", *self.transforms])


class RandomOrder(RandomTransforms):
    """All transforms, in a random order."""

    def __call__(self, img: Any) -> Any:
        for i in draws.permutation(len(self.transforms)):
            img = self.transforms[i](img)
        return img


class RandomChoice(RandomTransforms):
    """One of the transforms; `p` are weights, all equal where they are not given. Raises TypeError for a p that is no sequence."""

    def __init__(self, transforms: Sequence[Callable[..., Any]], p: Sequence[float] | None = None) -> None:
        super().__init__(transforms)
        if p is not None and not isinstance(p, Sequence):
            raise TypeError(f"RandomChoice: p is a {type(p).__name__}; give a weight for each transform")
        self.p = p

    def __call__(self, *args: Any) -> Any:
        return self.transforms[draws.choice(len(self.transforms), self.p)](*args)  # *args: pairs of image and target pass, too

    def __repr__(self) -> str:
        return f"{super().__repr__()}(p={self.p})"
