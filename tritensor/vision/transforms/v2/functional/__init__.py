"""Transforms as functions of images, videos, masks, boxes and points, each changed in its own way; and below them kernels of plain tensors, `resize_mask`."""

from typing import Any

from tritensor.vision.transforms.interpolation import InterpolationMode as InterpolationMode
from tritensor.vision.transforms.v2.functional.box_forms import convert_bounding_box_format as convert_bounding_box_format
from tritensor.vision.transforms.v2.functional.box_forms import sanitize_bounding_boxes as sanitize_bounding_boxes
from tritensor.vision.transforms.v2.functional.box_forms import sanitize_keypoints as sanitize_keypoints
from tritensor.vision.transforms.v2.functional.clamping import clamp_bounding_boxes as clamp_bounding_boxes
from tritensor.vision.transforms.v2.functional.clamping import clamp_keypoints as clamp_keypoints
from tritensor.vision.transforms.v2.functional.color import adjust_brightness as adjust_brightness
from tritensor.vision.transforms.v2.functional.color import adjust_contrast as adjust_contrast
from tritensor.vision.transforms.v2.functional.color import adjust_gamma as adjust_gamma
from tritensor.vision.transforms.v2.functional.color import adjust_hue as adjust_hue
from tritensor.vision.transforms.v2.functional.color import adjust_saturation as adjust_saturation
from tritensor.vision.transforms.v2.functional.color import adjust_sharpness as adjust_sharpness
from tritensor.vision.transforms.v2.functional.color import autocontrast as autocontrast
from tritensor.vision.transforms.v2.functional.color import equalize as equalize
from tritensor.vision.transforms.v2.functional.color import grayscale_to_rgb as grayscale_to_rgb
from tritensor.vision.transforms.v2.functional.color import invert as invert
from tritensor.vision.transforms.v2.functional.color import permute_channels as permute_channels
from tritensor.vision.transforms.v2.functional.color import posterize as posterize
from tritensor.vision.transforms.v2.functional.color import rgb_to_grayscale as rgb_to_grayscale
from tritensor.vision.transforms.v2.functional.color import solarize as solarize
from tritensor.vision.transforms.v2.functional.color import to_grayscale as to_grayscale
from tritensor.vision.transforms.v2.functional.conversion import convert_image_dtype as convert_image_dtype
from tritensor.vision.transforms.v2.functional.conversion import pil_to_tensor as pil_to_tensor
from tritensor.vision.transforms.v2.functional.conversion import to_dtype as to_dtype
from tritensor.vision.transforms.v2.functional.conversion import to_image as to_image
from tritensor.vision.transforms.v2.functional.conversion import to_pil_image as to_pil_image
from tritensor.vision.transforms.v2.functional.conversion import to_tensor as to_tensor
from tritensor.vision.transforms.v2.functional.facts import get_dimensions as get_dimensions
from tritensor.vision.transforms.v2.functional.facts import get_image_num_channels as get_image_num_channels
from tritensor.vision.transforms.v2.functional.facts import get_image_size as get_image_size
from tritensor.vision.transforms.v2.functional.facts import get_num_channels as get_num_channels
from tritensor.vision.transforms.v2.functional.facts import get_num_frames as get_num_frames
from tritensor.vision.transforms.v2.functional.facts import get_size as get_size
from tritensor.vision.transforms.v2.functional.geometry import affine as affine
from tritensor.vision.transforms.v2.functional.geometry import center_crop as center_crop
from tritensor.vision.transforms.v2.functional.geometry import crop as crop
from tritensor.vision.transforms.v2.functional.geometry import elastic as elastic
from tritensor.vision.transforms.v2.functional.geometry import elastic_transform as elastic_transform
from tritensor.vision.transforms.v2.functional.geometry import five_crop as five_crop
from tritensor.vision.transforms.v2.functional.geometry import hflip as hflip
from tritensor.vision.transforms.v2.functional.geometry import horizontal_flip as horizontal_flip
from tritensor.vision.transforms.v2.functional.geometry import pad as pad
from tritensor.vision.transforms.v2.functional.geometry import perspective as perspective
from tritensor.vision.transforms.v2.functional.geometry import resize as resize
from tritensor.vision.transforms.v2.functional.geometry import resized_crop as resized_crop
from tritensor.vision.transforms.v2.functional.geometry import rotate as rotate
from tritensor.vision.transforms.v2.functional.geometry import ten_crop as ten_crop
from tritensor.vision.transforms.v2.functional.geometry import vertical_flip as vertical_flip
from tritensor.vision.transforms.v2.functional.geometry import vflip as vflip
from tritensor.vision.transforms.v2.functional.registry import is_pure_tensor as is_pure_tensor
from tritensor.vision.transforms.v2.functional.registry import kernels as _kernels
from tritensor.vision.transforms.v2.functional.registry import register_kernel as register_kernel
from tritensor.vision.transforms.v2.functional.values import erase as erase
from tritensor.vision.transforms.v2.functional.values import gaussian_blur as gaussian_blur
from tritensor.vision.transforms.v2.functional.values import gaussian_noise as gaussian_noise
from tritensor.vision.transforms.v2.functional.values import jpeg as jpeg
from tritensor.vision.transforms.v2.functional.values import normalize as normalize
from tritensor.vision.transforms.v2.functional.values import uniform_temporal_subsample as uniform_temporal_subsample


def __getattr__(name: str) -> Any:
    """A kernel by its name. Raises AttributeError where there is none."""
    if name in _kernels:
        return _kernels[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*(n for n in globals() if not n.startswith("_")), *_kernels})
