"""Policies of augmentation, of the one image or video of a sample: AutoAugment, RandAugment, TrivialAugmentWide and AugMix."""

from __future__ import annotations

from typing import Any

from tritensor.ground.errors import ArgumentError
from tritensor.ground.pytree import tree_flatten, tree_unflatten
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.constructors import full
from tritensor.tensor.functions.creation.gammas import sample_dirichlet
from tritensor.vision import tv_tensors as tv
from tritensor.vision.pillow import is_pil_image
from tritensor.vision.transforms import autoaugment as first
from tritensor.vision.transforms import draws
from tritensor.vision.transforms.policies import AutoAugmentPolicy, get_policies
from tritensor.vision.transforms.v2 import functional as F
from tritensor.vision.transforms.v2.arguments import as_fills, fill_for
from tritensor.vision.transforms.v2.base import Transform
from tritensor.vision.transforms.v2.samples import IMAGES, check_type

_OPERATIONS = first.make_operations(F)


class _Augment(Transform):
    """Base of the four. A fill is one for all, or by class; None is black. Raises TypeError for boxes, masks and points, and another number of images."""

    def __init__(self, *, interpolation: Any, fill: Any) -> None:
        super().__init__()
        self.interpolation = interpolation
        self.fill, self._fill = fill, as_fills(fill)

    def forward(self, *inputs: Any) -> Any:
        """The sample with its image changed."""
        flat_inputs, spec = tree_flatten(inputs if len(inputs) > 1 else inputs[0])
        for inpt in flat_inputs:
            if isinstance(inpt, tv.BoundingBoxes | tv.Mask | tv.KeyPoints):
                raise TypeError(f"Inputs of type {type(inpt).__name__} are not supported by {type(self).__name__}()")
        needed = self._needs_transform_list(flat_inputs)
        places = [i for i, inpt in enumerate(flat_inputs) if needed[i] and check_type(inpt, IMAGES)]
        if not places:
            raise TypeError("Found no image in the sample.")
        if len(places) > 1:
            raise TypeError(f"Auto augment transformations are only properly defined for a single image or video, but found {len(places)}.")
        flat_inputs[places[0]] = self._augment(flat_inputs[places[0]], *F.get_size(flat_inputs[places[0]]))
        return tree_unflatten(flat_inputs, spec)

    def _augment(self, image: Any, height: int, width: int) -> Any:
        raise NotImplementedError

    def _operate(self, image: Any, name: str, magnitude: float) -> Any:
        return first.apply_operation(_OPERATIONS, image, name, magnitude, self.interpolation, fill_for(self._fill, image))


class AutoAugment(_Augment):
    """One of 25 pairs of operations that a search found to help (Cubuk et al. 2019). Raises ValueError for another policy."""

    get_params = staticmethod(first.AutoAugment.get_params)

    def __init__(self, policy: AutoAugmentPolicy = AutoAugmentPolicy.IMAGENET, interpolation: Any = "nearest", fill: Any = None) -> None:
        super().__init__(interpolation=interpolation, fill=fill)
        if not isinstance(policy, AutoAugmentPolicy):
            raise ArgumentError(f"AutoAugment: The provided policy {policy} is not recognized; give a member of AutoAugmentPolicy")
        self.policy, self._policies = policy, get_policies(policy)

    def _augment(self, image: Any, height: int, width: int) -> Any:
        space: first.Space = {**first.standard_space(10, height, width), "Invert": (None, False)}
        for name, p, at in self._policies[draws.integer(0, len(self._policies))]:
            if draws.uniform(0, 1) <= p:
                magnitudes, signed = space[name]
                magnitude = 0.0 if at is None or magnitudes is None else float(magnitudes[at])
                image = self._operate(image, name, -magnitude if signed and draws.integer(0, 2) else magnitude)
        return image


class RandAugment(_Augment):
    """`num_ops` operations, each drawn evenly, all of one `magnitude` of `num_magnitude_bins` (Cubuk et al. 2020)."""

    def __init__(
        self, num_ops: int = 2, magnitude: int = 9, num_magnitude_bins: int = 31, interpolation: Any = "nearest", fill: Any = None
    ) -> None:  # fmt: skip
        super().__init__(interpolation=interpolation, fill=fill)
        self.num_ops, self.magnitude, self.num_magnitude_bins = num_ops, magnitude, num_magnitude_bins

    def _augment(self, image: Any, height: int, width: int) -> Any:
        space: first.Space = {"Identity": (None, False), **first.standard_space(self.num_magnitude_bins, height, width)}
        for _ in range(self.num_ops):
            image = self._operate(image, *first.draw_operation(space, lambda bins: self.magnitude))
        return image


class TrivialAugmentWide(_Augment):
    """One operation, of any magnitude, all drawn evenly (Müller and Hutter 2021)."""

    def __init__(self, num_magnitude_bins: int = 31, interpolation: Any = "nearest", fill: Any = None) -> None:
        super().__init__(interpolation=interpolation, fill=fill)
        self.num_magnitude_bins = num_magnitude_bins

    def _augment(self, image: Any, height: int, width: int) -> Any:
        return self._operate(image, *first.draw_operation(first.wide_space(self.num_magnitude_bins), lambda bins: draws.integer(0, bins)))


class AugMix(_Augment):
    """Chains of operations, mixed with each other and with the image (Hendrycks et al. 2020).

    Args:
        severity: the strongest magnitude, 1 to 10.
        mixture_width: how many chains.
        chain_depth: how long a chain is; -1 draws 1 to 3.
        alpha: of the Dirichlet distributions that weights are drawn from.
        all_ops: brightness, colour, contrast and sharpness too.
        interpolation, fill: as in `functional.rotate`.

    Raises ValueError for another severity.
    """

    def __init__(
        self, severity: int = 3, mixture_width: int = 3, chain_depth: int = -1, alpha: float = 1.0, all_ops: bool = True,
        interpolation: Any = "bilinear", fill: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(interpolation=interpolation, fill=fill)
        if not 1 <= severity <= 10:
            raise ArgumentError(f"AugMix: The severity must be between 1 and 10. Got {severity} instead")
        self.severity, self.mixture_width, self.chain_depth = severity, mixture_width, chain_depth
        self.alpha, self.all_ops = alpha, all_ops

    def _augment(self, image: Any, height: int, width: int) -> Any:
        values = F.pil_to_tensor(image) if is_pil_image(image) else image.as_subclass(Tensor)
        batch = values.reshape(-1, *values.shape[-(4 if isinstance(image, tv.Video) else 3) :])  # a video is mixed as one
        each = (batch.shape[0], *[1] * (batch.ndim - 1))
        space = first.mixing_space(self.all_ops, height, width)
        share = self._sample_dirichlet(len(batch), 2)  # of the image, and of the chains
        weights = self._sample_dirichlet(len(batch), self.mixture_width) * share[:, 1:]
        mix = share[:, 0].reshape(each).to(batch.device) * batch
        for i in range(self.mixture_width):
            chain = batch if is_pil_image(image) else batch.as_subclass(type(image))
            for _ in range(self.chain_depth if self.chain_depth > 0 else draws.integer(1, 4)):
                chain = self._operate(chain, *first.draw_operation(space, lambda bins: draws.integer(0, self.severity)))
            mix = mix + weights[:, i].reshape(each).to(batch.device) * chain.as_subclass(Tensor)
        made = mix.reshape(values.shape).to(values.dtype)  # cut off, as torchvision does
        return F.to_pil_image(made) if is_pil_image(image) else made if type(image) is Tensor else tv.wrap(made, like=image)

    def _sample_dirichlet(self, count: int, n: int) -> Tensor:
        return sample_dirichlet(full((count, n), float(self.alpha)))
