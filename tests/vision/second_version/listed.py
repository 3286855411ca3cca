"""Calls of transforms.v2.functional on inputs of every kind, and what is noted of their results; of torchvision and of ours alike."""

from __future__ import annotations

from typing import Any

import numpy as np

HEIGHT, WIDTH = 21, 16
_WAVE = np.arange(5 * 3 * HEIGHT * WIDTH)
RAW = ((_WAVE * 37 + _WAVE // 7 * 11) % 256).astype(np.uint8).reshape(5, 3, HEIGHT, WIDTH)
_CORNERS = np.array([[1.5, 2.25], [9.75, 0.5], [4.0, 12.5], [-3.0, 6.5], [11.25, 15.0]], np.float32)
_SIZES = np.array([[6.5, 7.25], [3.5, 9.0], [8.0, 4.5], [9.5, 12.25], [8.25, 2.5]], np.float32)
_ANGLES = np.array([[20.0], [-75.0], [135.0], [3.0], [-160.0]], np.float32)
_BOXES = {
    "XYXY": np.concatenate([_CORNERS, _CORNERS + _SIZES], 1), "XYWH": np.concatenate([_CORNERS, _SIZES], 1),
    "CXCYWH": np.concatenate([_CORNERS + _SIZES / 2, _SIZES], 1), "XYWHR": np.concatenate([_CORNERS + 2, _SIZES, _ANGLES], 1),
    "CXCYWHR": np.concatenate([_CORNERS + _SIZES / 2, _SIZES, _ANGLES], 1),
}  # fmt: skip


def make_inputs(tensor: Any, tv: Any, functional: Any, image: Any) -> dict[str, Any]:
    """Inputs by name: `tensor` makes a tensor of an array, `image` a PIL image."""
    canvas = {"canvas_size": (HEIGHT, WIDTH)}
    made = {
        "bytes": tv.Image(tensor(RAW[0])), "floats": tv.Image(tensor((RAW[0] / np.float32(255)).astype(np.float32))), "plain": tensor(RAW[1]),
        "video": tv.Video(tensor(RAW[:2])), "mask": tv.Mask(tensor(RAW[0, 0] // 50)), "masks": tv.Mask(tensor((RAW[0] > 100).astype(np.int64))),
        "pillow": image(np.ascontiguousarray(RAW[0].transpose(1, 2, 0))), "points": tv.KeyPoints(tensor(_CORNERS), **canvas),
        "polygons": tv.KeyPoints(tensor((_CORNERS[None, :4] + [[[1]], [[3]]]).astype(np.int64)), **canvas),
    }  # fmt: skip
    for form, values in _BOXES.items():
        for mode in ("soft", "hard", None) if form.endswith("R") else ("soft", None):
            made[f"{form} {mode}"] = tv.BoundingBoxes(tensor(values), format=form, clamping_mode=mode, **canvas)
        if not form.endswith("R"):
            made[f"{form} of integers"] = tv.BoundingBoxes(tensor(values.astype(np.int64)), format=form, **canvas)
    made["XYXYXYXY soft"] = functional.convert_bounding_box_format(made["XYWHR soft"], new_format="XYXYXYXY")
    return made


EVERYTHING = [
    "F.horizontal_flip(x)", "F.vertical_flip(x)", "F.resize(x, [9, 30])", "F.resize(x, 11, 'nearest-exact', max_size=14)", "F.resize(x, None, max_size=33)",
    "F.affine(x, angle=10, translate=[1, 2], scale=1.2, shear=[3.0, -4.0])", "F.affine(x, -30.5, [1, 2], 0.8, 5.0, 'bilinear', 0.5, [3, 4])",
    "F.rotate(x, 30.0, 'bilinear', expand=True)", "F.rotate(x, 90, expand=True)", "F.rotate(x, 20, center=[2.5, 3.25])",
    "F.perspective(x, [[0, 0], [15, 0], [15, 20], [0, 20]], [[2, 1], [14, 2], [13, 19], [1, 17]])",
    "F.perspective(x, None, None, 'nearest', coefficients=[1.24, 0.1, -3.0, 0.14, 1.2, -1.9, 0.002, 0.004])", "F.elastic(x, displacement)",
    "F.pad(x, [1, 2, 3, 4])", "F.crop(x, 2, 3, 9, 10)", "F.crop(x, -2, 3, 9, 40)", "F.center_crop(x, [30, 5])", "F.resized_crop(x, 2, 3, 9, 10, [20, 7])",
    "F.get_size(x)", "F.to_dtype(x, t.float64, scale=True)",
]  # fmt: skip
PIXELS = [
    "F.rgb_to_grayscale(x, num_output_channels=3)", "F.adjust_brightness(x, 1.3)", "F.adjust_contrast(x, 0.6)", "F.adjust_saturation(x, 1.5)",
    "F.adjust_sharpness(x, 1.7)", "F.adjust_hue(x, 0.2)", "F.adjust_gamma(x, 1.2, gain=1.3)", "F.posterize(x, 3)", "F.solarize(x, 0.4)",
    "F.autocontrast(x)", "F.equalize(x)", "F.invert(x)", "F.permute_channels(x, [2, 0, 1])", "F.gaussian_blur(x, [3, 5], [1.1])",
    "F.pad(x, [1, 3], padding_mode='symmetric')", "F.five_crop(x, 5)", "F.get_dimensions(x)", "F.normalize(x, [0.4, 0.5, 0.6], [0.1, 0.2, 0.3])",
    "F.uniform_temporal_subsample(x, 2)", "F.get_num_frames(x)",
]  # fmt: skip
BOXES = [
    *(f"F.convert_bounding_box_format(x, new_format='{form}')" for form in ("XYXY", "XYWH", "cxcywh", "XYWHR", "CXCYWHR", "xyxyxyxy")),
    "F.clamp_bounding_boxes(x)", "F.clamp_bounding_boxes(x, clamping_mode='hard')", "F.sanitize_bounding_boxes(x, min_size=4)", "F.clamp_keypoints(x)",
    "F.sanitize_keypoints(x)",
]  # fmt: skip
_MOVED = ("points", "polygons")
_SHOWN = ("bytes", "floats", "plain", "video", "pillow")


def cases(names: list[str]) -> list[tuple[str, str]]:
    """(call, input): each input under what is meant for it, and under a few calls that refuse it, or let it be."""
    positions = [n for n in names if n.split()[0] in ("XYXY", "XYWH", "CXCYWH", "XYWHR", "CXCYWHR", "XYXYXYXY") or n in _MOVED]
    pairs = [(call, n) for call in EVERYTHING for n in names]
    pairs += [(call, n) for call in PIXELS for n in (*_SHOWN, "mask", "points")]
    return pairs + [(call, n) for call in BOXES for n in (*positions, "bytes")]


def noted(x: Any) -> Any:
    """What is compared of a result: class, type, sizes, facts; values of a few numbers, sums of many, weighted by place."""
    if isinstance(x, list | tuple) and not hasattr(x, "detach"):
        return [noted(part) for part in x]
    if hasattr(x, "getbands"):
        return ["PIL", x.mode, list(x.size), *_sums(np.asarray(x))]
    if not hasattr(x, "detach"):
        return x
    held = {fact: str(getattr(x, fact)) for fact in ("format", "canvas_size", "clamping_mode") if hasattr(x, fact)}
    values = np.array(x.tolist(), np.float64)
    shown = [round(float(v), 3) for v in values.reshape(-1)] if values.size <= 40 else _sums(values)
    return [type(x).__name__, str(x.dtype).rpartition(".")[2], list(x.shape), held, *shown]


def _sums(values: np.ndarray) -> list[float]:
    flat = values.astype(np.float64).reshape(-1)
    return [round(float(flat.sum()), 2), round(float((flat * np.linspace(-1, 1, flat.size)).sum()), 2)]


def run(call: str, x: Any, functional: Any, torch: Any) -> Any:
    """What is noted of a call's result, or its error's type."""
    wave = np.sin(np.arange(2 * HEIGHT * WIDTH)).reshape(1, HEIGHT, WIDTH, 2) / 10
    given = {"F": functional, "t": torch, "x": x, "displacement": torch.tensor(wave.astype(np.float32).tolist())}
    try:
        return noted(eval(call, given))
    except (TypeError, ValueError, RuntimeError, LookupError) as error:
        return ["raises", *(c.__name__ for c in type(error).__mro__)]
