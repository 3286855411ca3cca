"""Pictures for tensorboard: tensors as rows of pixels, boxes drawn on them, figures of matplotlib, films; PNG files with zlib alone."""

from __future__ import annotations

import importlib
import io
import struct
import zlib
from typing import Any

import numpy as np

from tritensor.ground.errors import ArgumentError, EmptyError, ShapeError
from tritensor.ground.extras import extra
from tritensor.io.protobuf import integer, message
from tritensor.utils.tensorboard.values import as_array, describe
from tritensor.vision.pillow import pillow

_COLUMNS = 8  # of a grid of images
_RED = (255, 0, 0)


def encode_image(pixels: np.ndarray, file: bytes) -> bytes:
    """A Summary.Image of a file of (height, width, channels)."""
    height, width, channels = pixels.shape
    return integer(1, height) + integer(2, width) + integer(3, channels) + message(4, file)


def to_pixels(who: str, tag: str, given: Any, layout: str) -> np.ndarray:
    """Pixels (height, width, channels) of an image, or of a grid of images, in any order of its dimensions.

    Floats from 0 to 1 become bytes, and what lies outside is clipped (NaN is 0); uint8 stays. One channel becomes three.
    Raises ShapeError where the layout is not that of the image.
    """
    values = as_array(who, tag, given)
    word = str(layout).upper()
    wanted = {4: "NCHW", 3: "CHW", 2: "HW"}.get(len(word))
    if wanted is None or sorted(word) != sorted(wanted):
        raise ArgumentError(f"{who}: tag {tag!r}: dataformats={layout!r}; give an order of NCHW, CHW or HW")
    if values.ndim != len(word):
        raise ShapeError(f"{who}: tag {tag!r}: dataformats={layout!r} names {len(word)} dimensions, and the image is {describe(given)}")
    values = values.transpose([word.index(c) for c in wanted])
    if not values.size:
        raise EmptyError(f"{who}: tag {tag!r} was given {describe(given)}, which has no pixel")
    if len(word) == 2:
        values = values[None]
    channels = values.shape[-3]
    if channels not in (1, 3) if len(word) == 4 else channels not in (1, 2, 3, 4):
        raise ShapeError(f"{who}: tag {tag!r}: {describe(given)} as {layout!r} has {channels} channels; give 1 or 3")
    if channels == 1:
        values = np.repeat(values, 3, axis=-3)
    if len(word) == 4:
        values = arrange_grid(values, _COLUMNS)
    return to_uint8(values.transpose(1, 2, 0))


def to_uint8(values: np.ndarray) -> np.ndarray:
    """Values from 0 to 1, or uint8, as uint8; rounded towards zero, as in PyTorch."""
    if values.dtype == np.uint8:
        return values
    scaled = np.nan_to_num(values.astype(np.float32) * np.float32(255), nan=0.0)  # a cast of NaN to uint8 is undefined in C
    return scaled.clip(0, 255).astype(np.uint8)


def arrange_grid(images: np.ndarray, columns: int) -> np.ndarray:
    """(N, C, H, W) side by side in rows: (C, rows H, columns W), zeros where images are missing."""
    count, channels, height, width = images.shape
    columns = min(count, columns)
    rows = -(-count // columns)
    canvas = np.zeros((rows * columns, channels, height, width), images.dtype)
    canvas[:count] = images
    spread = canvas.reshape(rows, columns, channels, height, width).transpose(2, 0, 3, 1, 4)
    return np.ascontiguousarray(spread).reshape(channels, rows * height, columns * width)


def draw_boxes(tag: str, pixels: np.ndarray, boxes: Any, labels: Any, rescale: float) -> tuple[np.ndarray, bytes]:
    """(the pixels before, a PNG) with red frames of (xmin, ymin, xmax, ymax), two pixels thick. Labels and another size are Pillow's work."""
    who = "SummaryWriter.add_image_with_boxes"
    corners = as_array(who, tag, boxes)
    if corners.ndim != 2 or corners.shape[1] != 4:
        raise ShapeError(f"{who}: tag {tag!r}: box_tensor is {describe(boxes)}; give (boxes, 4): xmin, ymin, xmax, ymax")
    names = [labels] * len(corners) if isinstance(labels, str) else labels
    if names is not None and len(names) != len(corners):
        raise ShapeError(f"{who}: tag {tag!r}: {len(names)} labels for {len(corners)} boxes; give one for each")
    drawn = np.repeat(pixels, 3, axis=2) if pixels.shape[2] == 1 else pixels.copy()
    for box in corners:
        _draw_frame(drawn, *np.floor(box).astype(int).tolist())
    if names is None and rescale == 1:
        return pixels, encode_png(drawn)
    pil = pillow(asked=f"{who} with labels or rescale")
    picture = pil.fromarray(drawn)
    if names is not None:
        _draw_labels(picture, corners, names)
    size = (max(1, int(pixels.shape[1] * rescale)), max(1, int(pixels.shape[0] * rescale)))
    return pixels, encode_png(np.asarray(picture.resize(size, pil.Resampling.LANCZOS)))


def _draw_frame(pixels: np.ndarray, left: int, top: int, right: int, bottom: int) -> None:
    """Draw a frame where Pillow draws PyTorch's: columns left..right, rows top - 1..bottom + 1."""
    height, width, channels = pixels.shape
    colour = np.array([*_RED, 255][:channels], np.uint8)

    def fill(x: int, y: int, to_x: int, to_y: int) -> None:
        pixels[min(max(y, 0), height) : max(to_y, 0), min(max(x, 0), width) : max(to_x, 0)] = colour

    fill(left, top - 1, right + 1, top + 1)
    fill(left, bottom, right + 1, bottom + 2)
    fill(left, top - 1, left + 2, bottom + 2)
    fill(right - 1, top - 1, right + 1, bottom + 2)


def _draw_labels(picture: Any, corners: np.ndarray, names: Any) -> None:
    draw, font = pillow("ImageDraw").Draw(picture), pillow("ImageFont").load_default()
    for (left, _, _, bottom), name in zip(corners.tolist(), names, strict=True):
        _, _, width, height = font.getbbox(name)
        draw.rectangle([(left, bottom - height - 2), (left + width + 2, bottom)], fill=_RED)
        draw.text((left + 1, bottom - height - 2), name, fill=(0, 0, 0), font=font)


def render_figure(tag: str, given: Any, close: bool) -> np.ndarray:
    """Pixels of a figure of matplotlib, or of several of one size in a grid."""
    who = "SummaryWriter.add_figure"
    agg = extra("matplotlib.backends.backend_agg", who, "matplotlib", "matplotlib")
    shots = []
    for one in given if isinstance(given, list | tuple) else [given]:
        if not hasattr(one, "canvas"):
            raise TypeError(f"{who}: tag {tag!r} was given {describe(one)}; give a matplotlib.figure.Figure, or a list of them")
        canvas = agg.FigureCanvasAgg(one)  # whatever the program draws on: a window is not needed
        canvas.draw()
        shots.append(np.asarray(canvas.buffer_rgba())[:, :, :3].copy())
        if close:
            importlib.import_module("matplotlib.pyplot").close(one)
    if len({s.shape for s in shots}) != 1:
        raise ShapeError(f"{who}: tag {tag!r}: figures of different sizes {[s.shape[:2] for s in shots]}; make them alike, or log each")
    if not isinstance(given, list | tuple):
        return shots[0]
    return arrange_grid(np.stack(shots).transpose(0, 3, 1, 2), _COLUMNS).transpose(1, 2, 0)


def encode_video(tag: str, given: Any, fps: float) -> bytes:
    """A Summary.Image that is an animated GIF of (batch, frames, channels, height, width), the batch side by side."""
    who = "SummaryWriter.add_video"
    pil = pillow(asked=who)
    values = as_array(who, tag, given)
    if values.ndim != 5 or values.shape[2] not in (1, 3) or not values.size:
        raise ShapeError(f"{who}: tag {tag!r} was given {describe(given)}; give (batch, frames, 1 or 3 channels, height, width)")
    if not fps > 0:
        raise ArgumentError(f"{who}: tag {tag!r}: fps is {fps!r}; give frames a second, above 0")
    if values.shape[2] == 1:
        values = np.repeat(values, 3, axis=2)
    batch = values.shape[0]
    columns = 1 << -(-(batch - 1).bit_length() // 2) if batch > 1 else 1  # PyTorch's grid of a batch: a power of two wide
    frames = [to_uint8(arrange_grid(values[:, t], columns).transpose(1, 2, 0)) for t in range(values.shape[1])]
    first, *others = [pil.fromarray(f) for f in frames]
    file = io.BytesIO()
    first.save(file, "GIF", save_all=True, append_images=others, duration=round(1000 / fps), loop=0)
    return encode_image(frames[0], file.getvalue())


_COLOURS = {1: 0, 2: 4, 3: 2, 4: 6}  # channels: grey, grey and alpha, RGB, RGB and alpha


def encode_png(pixels: np.ndarray) -> bytes:
    """A PNG of (height, width, channels) bytes, of 1 to 4 channels."""
    height, width, channels = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, _COLOURS[channels], 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(_filter_rows(pixels), 6)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join([_chunk(kind, body) for kind, body in chunks])


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def _filter_rows(pixels: np.ndarray) -> bytes:
    """Each row as it is, less the pixel to the left, or less the one above: whichever gives the smallest numbers (section 12.7)."""
    height, width, channels = pixels.shape
    rows = np.ascontiguousarray(pixels, np.uint8).reshape(height, width * channels)
    left, above = np.zeros_like(rows), np.zeros_like(rows)
    left[:, channels:] = rows[:, :-channels]
    above[1:] = rows[:-1]
    ways = np.stack([rows, rows - left, rows - above])  # modulo 256
    best = np.abs(ways.view(np.int8).astype(np.int16)).sum(2, dtype=np.int64).argmin(0)  # (height,)
    out = np.empty((height, 1 + width * channels), np.uint8)
    out[:, 0] = best
    out[:, 1:] = ways[best, np.arange(height)]
    return out.tobytes()
