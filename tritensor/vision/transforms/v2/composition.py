"""Compositions of transforms of samples: one after another, some of them, one of them, in any order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tritensor import nn
from tritensor.ground.errors import ArgumentError
from tritensor.vision.transforms import draws
from tritensor.vision.transforms.v2.arguments import check_probability
from tritensor.vision.transforms.v2.base import Transform


class _Several(Transform):
    """Base of these. Raises TypeError for no sequence, ValueError for an empty one."""

    def __init__(self, transforms: Sequence[Callable[..., Any]]) -> None:
        super().__init__()
        if not isinstance(transforms, Sequence | nn.ModuleList):
            raise TypeError(
                f"{type(self).__name__}: Argument transforms should be a sequence of callables, got {type(transforms).__name__}"
            )
        if not transforms:
            raise ArgumentError(f"{type(self).__name__}: Pass at least one transform")
        self.transforms = transforms

    def _run(self, transforms: Any, inputs: tuple[Any, ...]) -> Any:
        """The sample after one transform after another; several arguments stay several."""
        outputs: Any = inputs if len(inputs) > 1 else inputs[0]
        several = len(inputs) > 1
        for transform in transforms:
            outputs = transform(*outputs) if several else transform(outputs)
        return outputs


class _Listed(_Several):
    def extra_repr(self) -> str:
        return "\n".join(f"    {t}" for t in self.transforms)


class Compose(_Listed):
    """Transforms one after another, of a sample of any form, also given as several arguments.

    >>> v2, tv = tt.vision.transforms.v2, tt.vision.tv_tensors
    >>> augment = v2.Compose([v2.RandomHorizontalFlip(p=1), v2.ToDtype(tt.float32, scale=True)])
    >>> image, target = augment(tv.Image(tt.zeros(3, 8, 10, dtype=tt.uint8)), {"boxes": tv.BoundingBoxes([[1, 2, 4, 5]], format="XYXY", canvas_size=(8, 10))})
    >>> image.dtype, target["boxes"].tolist()
    (tritensor.float32, [[6, 2, 9, 5]])
    """

    def forward(self, *inputs: Any) -> Any:
        """The sample after all."""
        return self._run(self.transforms, inputs)


class RandomApply(_Listed):
    """All of a list of transforms, with probability p, or none. Raises ValueError for a p beyond 0 to 1."""

    def __init__(self, transforms: Sequence[Callable[..., Any]], p: float = 0.5) -> None:
        super().__init__(transforms)
        self.p = check_probability(p)

    def forward(self, *inputs: Any) -> Any:
        """The sample after all, or as it is."""
        return self._run(self.transforms if draws.chance(self.p) else (), inputs)


class RandomChoice(_Several):
    """One of the transforms; `p` are weights, all equal where they are not given. Raises ValueError for another number of them."""

    def __init__(self, transforms: Sequence[Callable[..., Any]], p: Sequence[float] | None = None) -> None:
        super().__init__(transforms)
        weights = [1.0] * len(transforms) if p is None else list(p)
        if len(weights) != len(transforms):
            raise ArgumentError(f"RandomChoice: Length of p doesn't match the number of transforms: {len(weights)} != {len(transforms)}")
        self.p = [weight / sum(weights) for weight in weights]

    def forward(self, *inputs: Any) -> Any:
        """The sample after one."""
        return self.transforms[draws.choice(len(self.transforms), self.p)](*inputs)


class RandomOrder(_Several):
    """All transforms, in a random order."""

    def forward(self, *inputs: Any) -> Any:
        """The sample after all."""
        return self._run([self.transforms[i] for i in draws.permutation(len(self.transforms))], inputs)
