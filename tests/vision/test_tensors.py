"""On tensors: numpy's and scipy's definitions; a batch is its images; device cuda gives what the CPU gives; and Pillow is met where it computes the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.ndimage
from PIL import Image

import tritensor as tt
from tritensor.vision.transforms import InterpolationMode
from tritensor.vision.transforms import functional as F

RNG = np.random.default_rng(2)
RAW = RNG.integers(0, 256, (2, 3, 21, 16), dtype=np.uint8)
BATCH = tt.from_numpy(RAW)
ONE = BATCH[0]
CORNERS = ([[0, 0], [15, 0], [15, 20], [0, 20]], [[2, 1], [14, 2], [13, 19], [1, 17]])

CALLS: dict[str, Callable[[Any], Any]] = {
    "hflip": F.hflip, "vflip": F.vflip, "crop": lambda x: F.crop(x, -2, 3, 9, 40), "center_crop": lambda x: F.center_crop(x, (30, 5)),
    "resize": lambda x: F.resize(x, (9, 30)), "nearest": lambda x: F.resize(x, 9, InterpolationMode.NEAREST),
    "bicubic": lambda x: F.resize(x, 30, InterpolationMode.BICUBIC, antialias=False), "constant": lambda x: F.pad(x, (1, 2), 3),
    "edge": lambda x: F.pad(x, 3, padding_mode="edge"), "reflect": lambda x: F.pad(x, (3, 4, 0, 1), padding_mode="reflect"),
    "symmetric": lambda x: F.pad(x, (20, 1), padding_mode="symmetric"), "rotate": lambda x: F.rotate(x, 30, fill=[7]),
    "bilinear": lambda x: F.rotate(x, -20, InterpolationMode.BILINEAR, True, fill=[1, 2, 3]), "affine": lambda x: F.affine(x, 10, [1, 2], 1.2, [3, 4]),
    "perspective": lambda x: F.perspective(x, *CORNERS), "brightness": lambda x: F.adjust_brightness(x, 1.3), "contrast": lambda x: F.adjust_contrast(x, 0.6),
    "saturation": lambda x: F.adjust_saturation(x, 1.5), "hue": lambda x: F.adjust_hue(x, 0.2), "gamma": lambda x: F.adjust_gamma(x, 0.8),
    "grey": F.rgb_to_grayscale, "grey3": lambda x: F.rgb_to_grayscale(x, 3), "invert": F.invert, "posterize": lambda x: F.posterize(x, 3),
    "solarize": lambda x: F.solarize(x, 128), "sharpness": lambda x: F.adjust_sharpness(x, 1.7), "autocontrast": F.autocontrast, "equalize": F.equalize,
    "blur": lambda x: F.gaussian_blur(x, (3, 5), 1.1), "erase": lambda x: F.erase(x, 2, 3, 4, 5, 9),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_a_batch_is_its_images_on_every_device(name: str) -> None:
    call = CALLS[name]
    whole = call(BATCH)
    assert whole.dtype is tt.uint8
    each = tt.stack([call(x) for x in BATCH])
    far = call(BATCH.to("cuda"))
    assert far.device.type == "cuda"
    if name == "contrast":  # in a batch the mean is each image's own
        assert tt.equal(whole, each)
    # Sums in another order, rounded to whole levels.
    assert int((whole.int() - each.int()).abs().max()) <= 1
    assert int((whole.int() - far.cpu().int()).abs().max()) <= 1
    assert float((whole != far.cpu()).float().mean()) < 0.01
    assert tt.equal(call(BATCH.reshape(1, 2, 1, 3, 21, 16)).reshape(whole.shape), whole)


# Not those that work on bytes alone, or whose parameters are levels.
@pytest.mark.parametrize(
    "name", [n for n in CALLS if n not in ("posterize", "equalize", "constant", "solarize", "rotate", "bilinear", "erase")]
)
def test_floats_and_bytes_agree(name: str) -> None:
    scale = 255.0
    found = CALLS[name](ONE.float() / scale)
    assert found.dtype is tt.float32
    most = 2.01 if name in ("contrast", "sharpness") else 1.01  # of bytes, what these blend with is rounded first
    assert float((found.clamp(0, 1) * scale - CALLS[name](ONE).float()).abs().max()) <= most


def test_places_are_numpys() -> None:
    x, t = RAW[0], ONE
    assert np.array_equal(F.hflip(t).numpy(), x[:, :, ::-1])
    assert np.array_equal(F.vflip(t).numpy(), x[:, ::-1])
    assert np.array_equal(F.crop(t, 2, 3, 4, 5).numpy(), x[:, 2:6, 3:8])
    assert np.array_equal(F.crop(t, -1, -2, 30, 30).numpy(), np.pad(x, ((0, 0), (1, 8), (2, 12)))[:, :30, :30])
    assert np.array_equal(F.crop(t, 40, 40, 2, 3).numpy(), np.zeros((3, 2, 3)))
    assert np.array_equal(F.center_crop(t, 7).numpy(), x[:, 7:14, 4:11])
    assert F.center_crop(t, (21, 16)).shape == t.shape
    for mode in ("constant", "edge", "reflect", "symmetric"):
        assert np.array_equal(F.pad(t, (1, 2, 3, 4), padding_mode=mode).numpy(), np.pad(x, ((0, 0), (2, 4), (1, 3)), mode))  # type: ignore[call-overload]
        assert np.array_equal(F.pad(t, (-1, 2), padding_mode=mode).numpy(), np.pad(x[:, :, 1:-1], ((0, 0), (2, 2), (0, 0)), mode))  # type: ignore[call-overload]
    assert np.array_equal(F.pad(t, [50], padding_mode="symmetric").numpy(), np.pad(x, ((0, 0), (50, 50), (50, 50)), "symmetric"))
    grey = F.pad(t[0], 2, 9)
    assert np.array_equal(grey.numpy(), np.pad(x[0], 2, constant_values=9))


def test_sizes_are_pillows_to_a_level() -> None:
    image = Image.fromarray(RAW[0].transpose(1, 2, 0))
    for size in ((9, 30), (40, 7), (5, 5)):
        for mode in (InterpolationMode.BILINEAR, InterpolationMode.BICUBIC):
            want = np.asarray(F.resize(image, size, mode)).transpose(2, 0, 1).astype(int)
            # Pillow may round to bytes between its two passes, and bicubic's weights make more of that.
            assert np.abs(F.resize(ONE, size, mode).numpy() - want).max() <= (1 if mode is InterpolationMode.BILINEAR else 2)
    exact = np.asarray(F.resize(image, (9, 29), InterpolationMode.NEAREST)).transpose(2, 0, 1)
    assert np.array_equal(F.resize(ONE, (9, 29), InterpolationMode.NEAREST_EXACT).numpy(), exact)
    old = RAW[0][:, np.arange(9) * 21 // 9][:, :, np.arange(30) * 16 // 30]
    assert np.array_equal(F.resize(ONE, (9, 30), InterpolationMode.NEAREST).numpy(), old)


def test_levels_are_pillows() -> None:
    image = Image.fromarray(RAW[0].transpose(1, 2, 0))

    def apart(function: Callable[..., Any], *args: Any) -> int:
        want = np.asarray(function(image, *args)).astype(int)
        return int(np.abs(function(ONE, *args).numpy().astype(int) - (want[None] if want.ndim == 2 else want.transpose(2, 0, 1))).max())

    assert [apart(f) for f in (F.invert, F.equalize)] == [0, 0]
    assert [apart(F.posterize, b) for b in (0, 1, 4, 8)] == [0] * 4
    assert [apart(F.solarize, t) for t in (0, 100, 255)] == [0] * 3
    assert apart(F.autocontrast) <= 1
    assert apart(F.rgb_to_grayscale) <= 1
    for function in (F.adjust_brightness, F.adjust_contrast, F.adjust_saturation, F.adjust_sharpness):
        assert all(apart(function, factor) <= 2 for factor in (0.0, 0.5, 1.0, 1.5))
    assert apart(F.adjust_gamma, 2.2) <= 1


def test_equalize_of_few_levels() -> None:
    for levels in (1, 2, 3, 250):
        x = RNG.integers(0, levels, (3, 30, 40)).astype(np.uint8)
        want = np.asarray(F.equalize(Image.fromarray(x.transpose(1, 2, 0)))).transpose(2, 0, 1)
        assert np.array_equal(F.equalize(tt.from_numpy(x)).numpy(), want)
    flat = tt.full((3, 4, 4), 7, dtype=tt.uint8)
    assert tt.equal(F.autocontrast(flat), flat)


def test_quarter_turns() -> None:
    square = tt.from_numpy(np.ascontiguousarray(RAW[0][:, :15, :15]))
    for angle, k in ((90, 1), (180, 2), (-90, 3), (360, 0)):
        want = np.rot90(square.numpy(), k, (1, 2))
        assert np.array_equal(F.rotate(square, angle).numpy(), want)
        assert np.array_equal(F.rotate(square, angle, InterpolationMode.BILINEAR, expand=True).numpy(), want)
        assert np.array_equal(F.affine(square, -angle, [0, 0], 1.0, 0.0).numpy(), want)
    even = ONE[:, :20]
    assert np.array_equal(F.rotate(even, 90, expand=True).numpy(), np.rot90(even.numpy(), 1, (1, 2)))


def test_moves_and_fills() -> None:
    moved = F.affine(ONE, 0, [3, -2], 1.0, [0.0], fill=[9])
    want = np.full_like(RAW[0], 9)
    want[:, :-2, 3:] = RAW[0][:, 2:, :-3]
    assert np.array_equal(moved.numpy(), want)
    turned = F.rotate(ONE, 45, fill=[1, 2, 3])
    assert turned[:, 0, 0].tolist() == [1, 2, 3]
    assert F.rotate(ONE, 45)[:, 0, 0].tolist() == [0, 0, 0]
    assert F.rotate(ONE, 45, fill=5)[:, 0, 0].tolist() == [5, 5, 5]


def test_warps_are_scipys() -> None:
    x = scipy.ndimage.gaussian_filter(RNG.random((40, 40)), 2)
    angle, shear, scale = 25.0, 10.0, 1.25
    turn = np.deg2rad(angle)
    forward = (
        scale
        * np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
        @ np.array([[1, -np.tan(np.deg2rad(shear))], [0, 1]])
    )
    back = np.linalg.inv(forward)[::-1, ::-1]  # scipy counts (row, column)
    middle = np.array([19.5, 19.5])
    want = scipy.ndimage.affine_transform(x, back, middle - back @ (middle + [-2, 3]), order=1)  # moved by (3, -2)
    found = F.affine(tt.from_numpy(x)[None], angle, [3, -2], scale, [shear, 0.0], InterpolationMode.BILINEAR)[0].numpy()
    assert np.abs(found - want)[5:-5, 5:-5].max() < 1e-9


def test_perspective_moves_the_corners() -> None:
    x = tt.zeros(1, 30, 30)
    starts, ends = [[0, 0], [29, 0], [29, 29], [0, 29]], [[4, 6], [25, 3], [24, 26], [2, 22]]
    for (across, down), (u, v) in zip(starts, ends, strict=True):
        marked = x.clone()
        marked[:, max(down - 1, 0) : down + 2, max(across - 1, 0) : across + 2] = 1
        found = F.perspective(marked, starts, ends, InterpolationMode.NEAREST)[0].numpy()
        assert found[v, u] == 1
    assert tt.equal(F.perspective(ONE, starts, starts), ONE)


def test_blur_is_scipys() -> None:
    x = RNG.random((20, 23))
    taps = np.exp(-0.5 * (np.arange(-3, 4) / 1.3) ** 2)
    want = scipy.ndimage.convolve1d(scipy.ndimage.convolve1d(x, taps / taps.sum(), 0, mode="mirror"), taps / taps.sum(), 1, mode="mirror")
    assert np.allclose(F.gaussian_blur(tt.from_numpy(x)[None], 7, 1.3)[0].numpy(), want, rtol=1e-12)
    assert np.allclose(F.gaussian_blur(tt.from_numpy(x), 7, [1.3])[:].numpy(), want, rtol=1e-12)
    assert tt.equal(F.gaussian_blur(ONE, 5), F.gaussian_blur(ONE, 5, 0.15 * 5 + 0.35))


def test_elastic_transform() -> None:
    still = tt.zeros(1, 21, 16, 2)
    assert tt.equal(F.elastic_transform(ONE, still), ONE)
    right = still.clone()
    right[..., 0] = 2 / 16  # one pixel
    want = np.zeros_like(RAW[0])
    want[:, :, :-1] = RAW[0][:, :, 1:]
    assert np.array_equal(F.elastic_transform(ONE, right, InterpolationMode.NEAREST).numpy(), want)
    picture = F.elastic_transform(F.to_pil_image(ONE), right)
    assert np.array_equal(np.asarray(picture).transpose(2, 0, 1), want)


def test_gradients_pass() -> None:
    x = tt.rand(3, 8, 8, requires_grad=True)
    y = F.rotate(F.resize(F.adjust_brightness(F.normalize(x, 0.5, 0.5), 0.9), 12), 10, InterpolationMode.BILINEAR)
    y.sum().backward()
    assert x.grad is not None
    assert bool(x.grad.isfinite().all())


@pytest.mark.parametrize(
    ("call", "kind", "told"),
    [
        (lambda: F.hflip(tt.ones(3)), ValueError, r"hflip: a tensor of shape \(3,\) is no image"),
        (lambda: F.resize(ONE, (1, 2, 3)), ValueError, r"resize: size \(1, 2, 3\)"),
        (lambda: F.resize(ONE, (4, 5), max_size=9), ValueError, "max_size 9 goes with the length of the shorter edge"),
        (lambda: F.resize(ONE, 10, max_size=9), ValueError, "max_size 9 is not above the shorter edge, 10"),
        (lambda: F.resize(ONE, 10, InterpolationMode.BOX), ValueError, "box is Pillow's alone"),
        (lambda: F.resize(ONE, 10, "bilinear"), TypeError, "interpolation 'bilinear'; give an InterpolationMode"),
        (lambda: F.resize(ONE, 10, 9), ValueError, "interpolation 9 is none of Pillow's numbers"),
        (lambda: F.pad(ONE, (1, 2, 3)), ValueError, "padding .* has 3 numbers"),
        (lambda: F.pad(ONE, "1"), TypeError, "padding is a str"),
        (lambda: F.pad(ONE, 1, (1, 2)), TypeError, r"fill \(1, 2\) for a tensor; give one number"),
        (lambda: F.pad(ONE, 1, 0, "wrap"), ValueError, "padding_mode 'wrap'"),
        (lambda: F.pad(ONE, 16, 0, "reflect"), ValueError, "16 rows are to be reflected, and 15 stand behind the edge"),
        (lambda: F.five_crop(ONE, 50), ValueError, r"size \(50, 50\) is larger than the image, \(21, 16\)"),
        (lambda: F.rotate(ONE, 10, InterpolationMode.BICUBIC), ValueError, "interpolation bicubic of a tensor; give nearest or bilinear"),
        (lambda: F.rotate(ONE, 10, fill=[1, 2]), ValueError, r"fill \(1.0, 2.0\) has 2 numbers and the image 3 channels"),
        (lambda: F.affine(ONE, 0, [1], 1.0, 0), ValueError, r"translate \(1,\)"),
        (lambda: F.affine(ONE, 0, [1, 1], 0, 0), ValueError, "scale 0; give a number above 0"),
        (lambda: F.affine(ONE, 0, [1, 1], 1, [1, 2, 3]), ValueError, r"shear \(1, 2, 3\)"),
        (lambda: F.perspective(ONE, [[0, 0]], [[0, 0]]), ValueError, "1 startpoints and 1 endpoints"),
        (lambda: F.elastic_transform(ONE, 1), TypeError, "displacement is a int"),
        (lambda: F.elastic_transform(ONE, tt.ones(1, 2, 3, 2)), ValueError, r"displacement \(1, 2, 3, 2\) for an image of 21 x 16"),
        (lambda: F.adjust_brightness(ONE, -1), ValueError, "brightness_factor -1 is below 0"),
        (lambda: F.adjust_contrast(tt.ones(2, 4, 4), 1), TypeError, r"img \(2, 4, 4\) has 2 channels; it takes 1 or 3"),
        (lambda: F.adjust_hue(ONE, 0.6), ValueError, r"hue_factor 0.6 is not in \[-0.5, 0.5\]"),
        (lambda: F.adjust_gamma(ONE, -1), ValueError, "gamma -1 is below 0"),
        (lambda: F.rgb_to_grayscale(ONE, 2), ValueError, "num_output_channels 2; give 1 or 3"),
        (lambda: F.invert(ONE[0]), ValueError, r"img \(21, 16\) has 2 dimensions"),
        (lambda: F.posterize(ONE, 9), ValueError, "bits 9; give 0 to 8"),
        (lambda: F.equalize(ONE.float()), TypeError, "img is float32; it works on the bits of uint8"),
        (lambda: F.solarize(ONE, 300), TypeError, "threshold 300 is above 255"),
        (lambda: F.adjust_sharpness(ONE, -1), ValueError, "sharpness_factor -1 is below 0"),
        (lambda: F.gaussian_blur(ONE, 4), ValueError, "kernel_size 4; give an odd number"),
        (lambda: F.gaussian_blur(ONE, 3, 0.0), ValueError, "sigma 0.0; give a number above 0"),
        (lambda: F.erase("x", 0, 0, 1, 1, 0), TypeError, "erase: img is a str"),
    ],
)  # fmt: skip
def test_mistakes_are_named(call: Callable[[], Any], kind: type[Exception], told: str) -> None:
    with pytest.raises(kind, match=told):
        call()
