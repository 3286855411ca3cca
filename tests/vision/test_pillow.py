"""On PIL images every transform is what Pillow itself makes of them, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageEnhance, ImageOps

from tritensor.vision.transforms import InterpolationMode
from tritensor.vision.transforms import functional as F

RNG = np.random.default_rng(1)
RGB = Image.fromarray(RNG.integers(0, 256, (37, 29, 3), dtype=np.uint8))
IMAGES = {"RGB": RGB, "L": RGB.convert("L"), "P": RGB.convert("P"), "RGBA": RGB.convert("RGBA")}
COLOURS = {"RGB": RGB, "L": IMAGES["L"]}
MODES = [("nearest", 0), ("bilinear", 2), ("bicubic", 3), ("lanczos", 1), ("box", 4), ("hamming", 5)]


def same(found: Any, want: Any) -> None:
    assert (found.mode, found.size) == (want.mode, want.size)
    assert found.tobytes() == want.tobytes()
    assert found.getpalette() == want.getpalette()


@pytest.mark.parametrize("mode", IMAGES)
def test_places(mode: str) -> None:
    image = IMAGES[mode]
    same(F.hflip(image), image.transpose(Image.Transpose.FLIP_LEFT_RIGHT))
    same(F.vflip(image), image.transpose(Image.Transpose.FLIP_TOP_BOTTOM))
    same(F.crop(image, 3, 4, 10, 12), image.crop((4, 3, 16, 13)))
    same(F.crop(image, -3, -4, 50, 60), image.crop((-4, -3, 56, 47)))
    same(F.center_crop(image, (11, 10)), image.crop((10, 13, 20, 24)))
    same(
        F.pad(image, [1, 2, 3, 4], 5),
        expanded := ImageOps.expand(image, (1, 2, 3, 4), (5,) * len(image.getbands()) if mode[:3] == "RGB" else 5),
    )
    assert expanded.size == (33, 43)
    same(F.five_crop(image, 10)[3], image.crop((19, 27, 29, 37)))
    same(F.ten_crop(image, 10)[5], image.transpose(Image.Transpose.FLIP_LEFT_RIGHT).crop((0, 0, 10, 10)))
    assert F.get_dimensions(image) == [len(image.getbands()), 37, 29]
    assert F.get_image_size(image) == [29, 37]
    assert F.get_image_num_channels(image) == len(image.getbands())


@pytest.mark.parametrize(("name", "number"), MODES)
def test_sizes(name: str, number: int) -> None:
    for image in COLOURS.values():
        for given in (InterpolationMode(name), number):
            same(F.resize(image, (20, 50), given), image.resize((50, 20), number))
    same(F.resize(RGB, 20, number), RGB.resize((20, int(20 * 37 / 29)), number))
    same(F.resize(RGB, [30], number, max_size=31), RGB.resize((int(31 * 30 / int(30 * 37 / 29)), 31), number))
    assert F.resize(RGB, (37, 29)) is RGB
    same(F.resized_crop(RGB, 2, 3, 20, 21, 9, number), RGB.crop((3, 2, 24, 22)).resize((int(9 * 21 / 20), 9), number))


@pytest.mark.parametrize("mode", ["edge", "reflect", "symmetric"])
def test_borders_are_numpys(mode: str) -> None:
    for image in COLOURS.values():
        values = np.asarray(image)
        border = ((2, 4), (1, 3)) + ((0, 0),) * (values.ndim - 2)
        same(F.pad(image, (1, 2, 3, 4), padding_mode=mode), Image.fromarray(np.pad(values, border, mode)))  # type: ignore[call-overload]
    same(F.pad(RGB, (-2, 3, 1, -4), padding_mode=mode), F.pad(RGB.crop((2, 0, 29, 33)), (0, 3, 1, 0), padding_mode=mode))


@pytest.mark.parametrize("number", [0, 2, 3])
def test_turns(number: int) -> None:
    for image in COLOURS.values():
        fill = (5, 6, 7) if image.mode == "RGB" else 5
        for expand in (False, True):
            same(F.rotate(image, 33.0, number, expand, fill=fill), image.rotate(33.0, number, expand, fillcolor=fill))
        same(F.rotate(image, -20, number, center=(3, 4)), image.rotate(-20, number, center=(3, 4)))
    moved = F.affine(RGB, 0, [3, -5], 1.0, [0.0], number, fill=9)
    same(moved, RGB.transform(RGB.size, Image.Transform.AFFINE, (1, 0, -3, 0, 1, 5), number, fillcolor=(9, 9, 9)))
    corners, ends = [[0, 0], [28, 0], [28, 36], [0, 36]], [[3, 2], [25, 1], [27, 33], [2, 30]]
    rows = [[[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]] for (x, y), (u, v) in zip(ends, corners, strict=True)]
    numbers = np.linalg.solve(np.array(rows, float).reshape(8, 8), np.ravel(corners)).astype(np.float32).tolist()
    same(F.perspective(RGB, corners, ends, number), RGB.transform(RGB.size, Image.Transform.PERSPECTIVE, numbers, number))


def test_turns_about_the_middle_are_those_of_rotate() -> None:
    square = RGB.crop((0, 0, 28, 28))
    for angle in (90, 180, 270):
        same(F.affine(square, -angle, [0, 0], 1.0, [0.0, 0.0], 0), square.rotate(angle))


ENHANCED: list[tuple[Callable[..., Any], type]] = [
    (F.adjust_brightness, ImageEnhance.Brightness),
    (F.adjust_contrast, ImageEnhance.Contrast),
    (F.adjust_saturation, ImageEnhance.Color),
    (F.adjust_sharpness, ImageEnhance.Sharpness),
]


@pytest.mark.parametrize("image", COLOURS.values(), ids=COLOURS)
def test_colours(image: Any) -> None:
    for function, enhancer in ENHANCED:
        for factor in (0.0, 0.4, 1.0, 1.9):
            same(function(image, factor), enhancer(image).enhance(factor))
    for function, named in ((F.invert, ImageOps.invert), (F.autocontrast, ImageOps.autocontrast), (F.equalize, ImageOps.equalize)):
        same(function(image), named(image))
    same(F.posterize(image, 3), ImageOps.posterize(image, 3))
    same(F.solarize(image, 99), ImageOps.solarize(image, 99))
    same(F.to_grayscale(image), image.convert("L"))
    same(F.rgb_to_grayscale(image, 3), Image.merge("RGB", [image.convert("L")] * 3))
    bands = len(image.getbands())
    table = [min(255, int(255.999 * 1.1 * (v / 255) ** 0.7)) for v in range(256)]
    same(F.adjust_gamma(image, 0.7, 1.1), image.point(table * bands))


def test_hue_turns_the_wheel() -> None:
    h, s, v = RGB.convert("HSV").split()
    turned = Image.fromarray(((np.asarray(h).astype(int) + int(0.25 * 255)) % 256).astype(np.uint8))
    same(F.adjust_hue(RGB, 0.25), Image.merge("HSV", (turned, s, v)).convert("RGB"))
    assert F.adjust_hue(IMAGES["L"], 0.3) is IMAGES["L"]


def test_blur_is_that_of_the_tensor() -> None:
    blurred = F.gaussian_blur(RGB, (3, 5), 1.5)
    assert (blurred.mode, blurred.size) == ("RGB", RGB.size)
    assert np.array_equal(F.pil_to_tensor(blurred).numpy(), F.gaussian_blur(F.pil_to_tensor(RGB), (3, 5), 1.5).numpy())


def test_what_pillow_cannot_be_told() -> None:
    with pytest.warns(UserWarning, match="Pillow always antialiases"):
        F.resize(RGB, 10, antialias=False)
    with pytest.raises(ValueError, match=r"rotate: fill \(1, 2\) has 2 numbers and the image 3 channels"):
        F.rotate(RGB, 10, fill=(1, 2))
    with pytest.raises(TypeError, match="pad: fill is a str"):
        F.pad(RGB, 1, "red")
    with pytest.raises(TypeError, match="hflip: img is a ndarray; give a PIL image or a tensor"):
        F.hflip(np.zeros((3, 3)))
    with pytest.raises(TypeError, match="to_grayscale: img is a Tensor; of a tensor, rgb_to_grayscale"):
        F.to_grayscale(F.pil_to_tensor(RGB))
