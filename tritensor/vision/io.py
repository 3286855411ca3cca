"""Image files as tensors (channels, height, width) of uint8, and back, through Pillow."""

from __future__ import annotations

import io
import os
from enum import Enum
from typing import Any

import numpy as np

from tritensor.ground.errors import ArgumentError, CheckpointError, DTypeError, ShapeError
from tritensor.io.atomic import atomic_write
from tritensor.tensor.core import Tensor
from tritensor.vision.pillow import channels_first, image_from_array, pillow

Path = str | os.PathLike[str]


class ImageReadMode(Enum):
    """The channels to be read: those of the file, or others."""

    UNCHANGED = 0
    GRAY = 1
    GRAY_ALPHA = 2
    RGB = 3
    RGB_ALPHA = 4


_MODES = {ImageReadMode.GRAY: "L", ImageReadMode.GRAY_ALPHA: "LA", ImageReadMode.RGB: "RGB", ImageReadMode.RGB_ALPHA: "RGBA"}


def read_file(path: Path) -> Tensor:
    """The bytes of a file, (n,) of uint8. Raises what open() raises."""
    return Tensor.wrap(np.fromfile(path, np.uint8))


def write_file(filename: Path, data: Tensor) -> None:
    """Write bytes, (n,) of uint8, to a file, whole or not at all. Raises TypeError for others."""
    if data.dtype.name != "uint8" or data.ndim != 1:
        raise DTypeError(f"write_file: data is {data.dtype.name} {tuple(data.shape)}; give uint8 of one dimension")
    with atomic_write(filename) as file:  # a reader sees the old image or the new one
        file.write(data.cpu().numpy().tobytes())


def decode_image(input: Any, mode: ImageReadMode | str = ImageReadMode.UNCHANGED, apply_exif_orientation: bool = False) -> Tensor:
    """The image in the bytes of a file, a tensor (n,) of uint8, or a path: (channels, height, width) of uint8, or uint16 for PNGs of 16 bits.

    Args:
        mode: an ImageReadMode or its name; UNCHANGED turns palettes into colours, and keeps the rest.
        apply_exif_orientation: turn it as the camera noted.

    Raises:
        CheckpointError: no image that Pillow knows, or a damaged one.
        ValueError: another mode.
    """
    asked = mode if isinstance(mode, ImageReadMode) else ImageReadMode.__members__.get(str(mode).upper())
    if asked is None:
        raise ArgumentError(f"decode_image: mode {mode!r}; give one of {', '.join(ImageReadMode.__members__)}")
    if isinstance(input, str | os.PathLike):
        what, source = os.fspath(input), np.fromfile(input, np.uint8)
    elif isinstance(input, Tensor) and input.dtype.name == "uint8" and input.ndim == 1:
        what, source = f"{len(input):,} bytes", input.cpu().numpy()
    else:
        raise DTypeError("decode_image: input is no tensor (n,) of uint8, and no path; read_file(path) gives one")
    image = pillow(asked="decode_image")
    try:
        with image.open(io.BytesIO(source.tobytes())) as opened:
            turned = pillow("ImageOps").exif_transpose(opened) if apply_exif_orientation else opened
            values = _decode_values(turned, _MODES.get(asked))
    # Pillow's decoders raise any of these for damage
    except (image.UnidentifiedImageError, OSError, SyntaxError, ValueError, image.DecompressionBombError) as error:
        raise CheckpointError(f"decode_image: {what}: no image that Pillow can read ({error})") from None
    return Tensor.wrap(np.ascontiguousarray(channels_first(values)))


def _decode_values(image: Any, mode: str | None) -> np.ndarray:
    if mode is None:
        if image.mode.startswith("I;16"):  # PNGs of 16 bits: convert() would cut them to 8
            return np.asarray(image).astype(np.uint16)
        known = image.mode in ("L", "LA", "RGB", "RGBA")  # as torchvision decodes; palettes and CMYK become colours
        mode = image.mode if known else "L" if image.mode in ("1", "I", "F") else "RGBA" if "transparency" in image.info else "RGB"
    return np.asarray(image.convert(mode))


def read_image(path: Path, mode: ImageReadMode | str = ImageReadMode.UNCHANGED, apply_exif_orientation: bool = False) -> Tensor:
    """The image of a file: see decode_image. Raises what open() raises, too."""
    return decode_image(os.fspath(path), mode, apply_exif_orientation)


def _to_image(input: Tensor, name: str, channels: tuple[int, ...]) -> Any:
    """A tensor (channels, height, width) of uint8 as a PIL image."""
    if not isinstance(input, Tensor) or input.dtype.name != "uint8":
        raise DTypeError(f"{name}: input is {getattr(input, 'dtype', type(input).__name__)}; give a tensor of uint8")
    if input.ndim != 3 or input.shape[0] not in channels:
        raise ShapeError(
            f"{name}: input {tuple(input.shape)}; give (channels, height, width) with {' or '.join(map(str, channels))} channels"
        )
    values = input.cpu().numpy().transpose(1, 2, 0)
    return image_from_array(np.ascontiguousarray(values[:, :, 0] if values.shape[2] == 1 else values))


def _encode(image: Any, **how: Any) -> Tensor:
    held = io.BytesIO()
    image.save(held, **how)
    return Tensor.wrap(np.frombuffer(held.getvalue(), np.uint8).copy())


def encode_png(input: Tensor, compression_level: int = 6) -> Tensor:
    """The bytes of a PNG of an image (1 or 3, height, width) of uint8. Raises ValueError for a level beyond 0 to 9."""
    if not 0 <= compression_level <= 9:
        raise ArgumentError(f"encode_png: compression_level {compression_level}; give 0 to 9")
    return _encode(_to_image(input, "encode_png", (1, 3)), format="PNG", compress_level=compression_level)


def encode_jpeg(input: Tensor, quality: int = 75) -> Tensor:
    """The bytes of a JPEG of an image (1 or 3, height, width) of uint8. Raises ValueError for a quality beyond 1 to 100."""
    if not 1 <= quality <= 100:
        raise ArgumentError(f"encode_jpeg: quality {quality}; give 1 to 100")
    return _encode(_to_image(input, "encode_jpeg", (1, 3)), format="JPEG", quality=quality)


def write_png(input: Tensor, filename: Path, compression_level: int = 6) -> None:
    """Write an image as a PNG: see encode_png."""
    write_file(filename, encode_png(input, compression_level))


def write_jpeg(input: Tensor, filename: Path, quality: int = 75) -> None:
    """Write an image as a JPEG: see encode_jpeg."""
    write_file(filename, encode_jpeg(input, quality))
