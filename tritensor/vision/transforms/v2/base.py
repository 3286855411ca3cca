"""Base classes of transforms of samples: any nesting of images, videos, masks, boxes, points and whatever else, which passes through."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, ClassVar

from tritensor import nn
from tritensor.ground.pytree import tree_flatten, tree_unflatten
from tritensor.tensor.core import Tensor
from tritensor.vision import tv_tensors as tv
from tritensor.vision.pillow import is_pil_image
from tritensor.vision.transforms import draws
from tritensor.vision.transforms.v2.arguments import check_probability, fill_for
from tritensor.vision.transforms.v2.functional import is_pure_tensor
from tritensor.vision.transforms.v2.functional.registry import apply_or_pass
from tritensor.vision.transforms.v2.samples import Check, check_type, has_any


class Transform(nn.Module):
    """Base of transforms, also of a program's own: `transform(inpt, params)` says what becomes of one input, `make_params(flat_inputs)` draws once for all.

    Of plain tensors the first is an image, where the sample has neither a tv_tensors.Image or Video nor a PIL image; the others pass through.
    """

    _transformed_types: tuple[Check, ...] = (Tensor, is_pil_image)
    _functional: ClassVar[Any] = None  # of a transform that is a function of its settings
    _settings: ClassVar[tuple[str, ...]] = ()

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        """Raise for a sample that the transform cannot change."""

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """What is drawn at random, once for a sample, of those of its leaves that are changed."""
        return {}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One leaf of a sample, changed. Raises NotImplementedError where a class does not say how."""
        if self._functional is None:
            raise NotImplementedError(f"{type(self).__name__} has no transform(inpt, params)")
        given = {name: getattr(self, name) for name in self._settings}
        if "fill" in given:
            given["fill"] = fill_for(self._fill, inpt)  # type: ignore[arg-type]
        return self._call_kernel(self._functional, inpt, **given, **params)

    def _call_kernel(self, functional: Callable[..., Any], inpt: Any, *args: Any, **kwargs: Any) -> Any:
        """What a functional makes of an input; one that it does not know passes through."""
        return apply_or_pass(functional, inpt, *args, **kwargs)

    def forward(self, *inputs: Any) -> Any:
        """The sample, changed: not to be overridden, see transform()."""
        flat_inputs, spec = tree_flatten(inputs if len(inputs) > 1 else inputs[0])
        self.check_inputs(flat_inputs)
        return tree_unflatten(self._transform_all(flat_inputs), spec)

    def _transform_all(self, flat_inputs: list[Any]) -> list[Any]:
        needed = self._needs_transform_list(flat_inputs)
        params = self.make_params([inpt for inpt, needs in zip(flat_inputs, needed, strict=True) if needs])
        return [self.transform(inpt, params) if needs else inpt for inpt, needs in zip(flat_inputs, needed, strict=True)]

    def _needs_transform_list(self, flat_inputs: list[Any]) -> list[bool]:
        """Of each leaf whether it is to be changed."""
        takes_pure = not has_any(flat_inputs, tv.Image, tv.Video, is_pil_image)
        needed = []
        for inpt in flat_inputs:
            needs = check_type(inpt, self._transformed_types)
            if needs and is_pure_tensor(inpt):
                needs, takes_pure = takes_pure, False  # labels and the like are no images
            needed.append(needs)
        return needed

    def extra_repr(self) -> str:
        """The settings, in the order in which they were set."""
        shown = bool | int | float | str | tuple | list | enum.Enum
        held = {n: v for n, v in self.__dict__.items() if not n.startswith("_") and n != "training" and isinstance(v, shown)}
        return ", ".join(f"{name}={value}" for name, value in held.items())


class RandomApplyTransform(Transform):
    """A change with probability p. Raises ValueError for a p beyond 0 to 1."""

    def __init__(self, p: float = 0.5) -> None:
        check_probability(p)
        super().__init__()
        self.p = p

    def forward(self, *inputs: Any) -> Any:
        """The sample, changed or not."""
        sample = inputs if len(inputs) > 1 else inputs[0]
        flat_inputs, spec = tree_flatten(sample)
        self.check_inputs(flat_inputs)
        return tree_unflatten(self._transform_all(flat_inputs), spec) if draws.chance(self.p) else sample
