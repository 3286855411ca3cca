"""Automatic augmentation: chains of operations of random strength, found by search or drawn evenly."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tritensor.ground.errors import ArgumentError
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.constructors import full
from tritensor.tensor.functions.creation.gammas import sample_dirichlet
from tritensor.vision.transforms import draws
from tritensor.vision.transforms import functional as F
from tritensor.vision.transforms.arguments import adapt_fill
from tritensor.vision.transforms.base import Transform
from tritensor.vision.transforms.functional.images import max_value
from tritensor.vision.transforms.interpolation import InterpolationMode, as_mode
from tritensor.vision.transforms.policies import AutoAugmentPolicy, get_policies

# The magnitudes of an operation, one a bin, and whether either sign is drawn; None for one that has no magnitude.
Space = dict[str, tuple[np.ndarray | None, bool]]


def make_space(bins: int, shear: float, x: float, y: float, turn: float, colour: float, bits: tuple[int, int]) -> Space:
    """The operations, with magnitudes from nothing to the largest given; `bits` are (kept by the weakest, fewer by the strongest) Posterize."""
    signed: Space = {
        name: (np.linspace(0.0, largest, bins, dtype=np.float32), True)
        for name, largest in (
            ("ShearX", shear), ("ShearY", shear), ("TranslateX", x), ("TranslateY", y), ("Rotate", turn), ("Brightness", colour),
            ("Color", colour), ("Contrast", colour), ("Sharpness", colour),
        )
    }  # fmt: skip
    posterize = bits[0] - np.rint(np.arange(bins, dtype=np.float32) / np.float32((bins - 1) / bits[1])).astype(np.int32)
    return {
        **signed,
        "Posterize": (posterize, False),
        "Solarize": (np.linspace(255.0, 0.0, bins, dtype=np.float32), False),
        "AutoContrast": (None, False),
        "Equalize": (None, False),
    }


def standard_space(bins: int, height: int, width: int) -> Space:
    """The space of AutoAugment and RandAugment: translations relative to images of 331 pixels."""
    return make_space(bins, 0.3, 150.0 / 331.0 * width, 150.0 / 331.0 * height, 30.0, 0.9, (8, 4))


def mixing_space(all_ops: bool, height: int, width: int) -> Space:
    """The space of AugMix."""
    space = make_space(10, 0.3, width / 3.0, height / 3.0, 30.0, 0.9, (4, 4))
    return space if all_ops else {n: m for n, m in space.items() if n not in ("Brightness", "Color", "Contrast", "Sharpness")}


def wide_space(bins: int) -> Space:
    """The space of TrivialAugmentWide."""
    return {"Identity": (None, False), **make_space(bins, 0.99, 32.0, 32.0, 135.0, 0.99, (8, 6))}


Operation = Callable[..., Any]  # of (image, magnitude); one that moves pixels takes interpolation and fill, too


def make_operations(f: Any) -> tuple[dict[str, Operation], dict[str, Operation]]:
    """(those that move pixels, those of colours), made of the functions of one version."""

    def shear(axis: int) -> Operation:
        def run(img: Any, m: float, **how: Any) -> Any:
            angle = math.degrees(math.atan(m))  # magnitudes are slopes, and affine() takes degrees
            return f.affine(img, 0.0, [0, 0], 1.0, [angle * (axis == 0), angle * (axis == 1)], center=[0, 0], **how)

        return run

    def move(axis: int) -> Operation:
        def run(img: Any, m: float, **how: Any) -> Any:
            return f.affine(img, 0.0, [int(m) * (axis == 0), int(m) * (axis == 1)], 1.0, [0.0, 0.0], **how)

        return run

    def solarize(img: Any, m: float) -> Any:
        full = max_value(img.dtype) if isinstance(img, Tensor) else 255
        return f.solarize(img, m / 255 * full)  # thresholds are those of bytes

    return {
        "ShearX": shear(0), "ShearY": shear(1), "TranslateX": move(0), "TranslateY": move(1), "Rotate": f.rotate,
    }, {
        "Brightness": lambda img, m: f.adjust_brightness(img, 1.0 + m), "Color": lambda img, m: f.adjust_saturation(img, 1.0 + m),
        "Contrast": lambda img, m: f.adjust_contrast(img, 1.0 + m), "Sharpness": lambda img, m: f.adjust_sharpness(img, 1.0 + m),
        "Posterize": lambda img, m: f.posterize(img, int(m)), "Solarize": solarize, "AutoContrast": lambda img, m: f.autocontrast(img),
        "Equalize": lambda img, m: f.equalize(img), "Invert": lambda img, m: f.invert(img), "Identity": lambda img, m: img,
    }  # fmt: skip


_OPERATIONS = make_operations(F)


def apply_operation(
    operations: tuple[dict[str, Operation], dict[str, Operation]], img: Any, name: str, magnitude: float, interpolation: Any, fill: Any
) -> Any:
    """An image after an operation of one version."""
    warps, colours = operations
    return warps[name](img, magnitude, interpolation=interpolation, fill=fill) if name in warps else colours[name](img, magnitude)


def draw_operation(space: Space, strength: Callable[[int], int]) -> tuple[str, float]:
    """(an operation of the space, the magnitude of the bin that `strength(bins)` chooses)."""
    name = list(space)[draws.integer(0, len(space))]
    magnitudes, signed = space[name]
    magnitude = 0.0 if magnitudes is None else float(magnitudes[strength(len(magnitudes))])
    # drawn for signed operations alone, as torchvision does
    return name, -magnitude if signed and draws.integer(0, 2) else magnitude


class _Augment(Transform):
    """Base of the four: the interpolation, and the fill (None: black)."""

    def __init__(self, interpolation: Any, fill: Any) -> None:
        super().__init__()
        self.interpolation, self.fill = as_mode(type(self).__name__, interpolation), fill

    def _apply_random_op(self, img: Any, space: Space, strength: Callable[[int], int], fill: Any) -> Any:
        """One operation of the space, with the magnitude of the bin that `strength(bins)` chooses."""
        return self._operate(img, *draw_operation(space, strength), fill)

    def _operate(self, img: Any, name: str, magnitude: float, fill: Any) -> Any:
        return apply_operation(_OPERATIONS, img, name, magnitude, self.interpolation, fill)


class AutoAugment(_Augment):
    """One of 25 pairs of operations that a search found to help (Cubuk et al. 2019). Tensors must be uint8. Raises ValueError for another policy."""

    _settings = ("policy", "fill")

    def __init__(
        self,
        policy: AutoAugmentPolicy = AutoAugmentPolicy.IMAGENET,
        interpolation: Any = InterpolationMode.NEAREST,
        fill: Sequence[float] | float | None = None,
    ) -> None:
        super().__init__(interpolation, fill)
        if not isinstance(policy, AutoAugmentPolicy):
            raise ArgumentError(f"AutoAugment: policy {policy!r}; give a member of AutoAugmentPolicy: IMAGENET, CIFAR10 or SVHN")
        self.policy, self.policies = policy, get_policies(policy)

    @staticmethod
    def get_params(transform_num: int) -> tuple[int, list[float], list[int]]:
        """(which pair, a number of 0 to 1 for each of the two, a sign for each)."""
        return draws.integer(0, transform_num), [draws.uniform(0, 1) for _ in range(2)], [draws.integer(0, 2) for _ in range(2)]

    def forward(self, img: Any) -> Any:
        fill = adapt_fill(self.fill, img)
        _, height, width = F.get_dimensions(img)
        space: Space = {**standard_space(10, height, width), "Invert": (None, False)}
        which, chances, signs = self.get_params(len(self.policies))
        # A probability and a sign are drawn for both, also for one that has no sign: the same draws as torchvision makes.
        for (name, p, at), drawn, sign in zip(self.policies[which], chances, signs, strict=True):
            if drawn <= p:
                magnitudes, signed = space[name]
                magnitude = 0.0 if at is None or magnitudes is None else float(magnitudes[at])
                img = self._operate(img, name, -magnitude if signed and sign == 0 else magnitude, fill)
        return img


class RandAugment(_Augment):
    """`num_ops` operations, each drawn evenly, all of one `magnitude` of `num_magnitude_bins` (Cubuk et al. 2020). Tensors must be uint8."""

    _settings = ("num_ops", "magnitude", "num_magnitude_bins", "interpolation", "fill")

    def __init__(
        self, num_ops: int = 2, magnitude: int = 9, num_magnitude_bins: int = 31, interpolation: Any = InterpolationMode.NEAREST,
        fill: Sequence[float] | float | None = None,
    ) -> None:  # fmt: skip
        super().__init__(interpolation, fill)
        self.num_ops, self.magnitude, self.num_magnitude_bins = num_ops, magnitude, num_magnitude_bins

    def forward(self, img: Any) -> Any:
        fill = adapt_fill(self.fill, img)
        _, height, width = F.get_dimensions(img)
        space: Space = {"Identity": (None, False), **standard_space(self.num_magnitude_bins, height, width)}
        for _ in range(self.num_ops):
            img = self._apply_random_op(img, space, lambda bins: self.magnitude, fill)
        return img


class TrivialAugmentWide(_Augment):
    """One operation, of any magnitude, all drawn evenly (Müller and Hutter 2021). Tensors must be uint8."""

    _settings = ("num_magnitude_bins", "interpolation", "fill")

    def __init__(
        self,
        num_magnitude_bins: int = 31,
        interpolation: Any = InterpolationMode.NEAREST,
        fill: Sequence[float] | float | None = None,
    ) -> None:
        super().__init__(interpolation, fill)
        self.num_magnitude_bins = num_magnitude_bins

    def forward(self, img: Any) -> Any:
        return self._apply_random_op(
            img, wide_space(self.num_magnitude_bins), lambda bins: draws.integer(0, bins), adapt_fill(self.fill, img)
        )


class AugMix(_Augment):
    """Chains of operations, mixed with each other and with the image (Hendrycks et al. 2020). Tensors must be uint8.

    Args:
        severity: the strongest magnitude, 1 to 10.
        mixture_width: how many chains.
        chain_depth: how long a chain is; -1 draws 1 to 3.
        alpha: of the Dirichlet distributions that weights are drawn from.
        all_ops: brightness, colour, contrast and sharpness too.
        interpolation, fill: as in `functional.rotate`.

    Raises ValueError for another severity.
    """

    _settings = ("severity", "mixture_width", "chain_depth", "alpha", "all_ops", "interpolation", "fill")

    def __init__(
        self, severity: int = 3, mixture_width: int = 3, chain_depth: int = -1, alpha: float = 1.0, all_ops: bool = True,
        interpolation: Any = InterpolationMode.BILINEAR, fill: Sequence[float] | float | None = None,
    ) -> None:  # fmt: skip
        super().__init__(interpolation, fill)
        if not 1 <= severity <= 10:
            raise ArgumentError(f"AugMix: severity {severity}; give 1 to 10")
        self.severity, self.mixture_width, self.chain_depth = severity, mixture_width, chain_depth
        self.alpha, self.all_ops = alpha, all_ops

    def forward(self, orig_img: Any) -> Any:
        fill = adapt_fill(self.fill, orig_img)
        img = orig_img if isinstance(orig_img, Tensor) else F.pil_to_tensor(orig_img)  # mixing is arithmetic
        batch = img.reshape(-1, *img.shape[-3:])  # (n, channels, height, width)
        count, each = batch.shape[0], (batch.shape[0], 1, 1, 1)
        space = mixing_space(self.all_ops, *batch.shape[-2:])
        share = self._sample_dirichlet(count, 2)  # of the image, and of the chains
        weights = self._sample_dirichlet(count, self.mixture_width) * share[:, 1:]
        mix = share[:, 0].reshape(each).to(batch.device) * batch
        for i in range(self.mixture_width):
            chain = batch
            for _ in range(self.chain_depth if self.chain_depth > 0 else draws.integer(1, 4)):
                chain = self._apply_random_op(chain, space, lambda bins: draws.integer(0, self.severity), fill)
            mix = mix + weights[:, i].reshape(each).to(batch.device) * chain
        mix = mix.reshape(img.shape).to(img.dtype)  # cut off, as torchvision does
        return mix if isinstance(orig_img, Tensor) else F.to_pil_image(mix)

    def _sample_dirichlet(self, count: int, n: int) -> Tensor:
        return sample_dirichlet(full((count, n), float(self.alpha)))
