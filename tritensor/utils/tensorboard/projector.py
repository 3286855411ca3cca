"""Embeddings for tensorboard's projector: points, labels and small pictures as files, and the configuration that names them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tritensor.ground.errors import ShapeError
from tritensor.io.atomic import atomic_write
from tritensor.utils.tensorboard import pictures
from tritensor.utils.tensorboard.values import as_array, describe

_WHO = "SummaryWriter.add_embedding"


class Embeddings:
    """The entries of a folder's projector_config.pbtxt."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._entries: dict[str, str] = {}

    def add(self, mat: Any, metadata: Any, label_img: Any, step: int, tag: str, header: Any) -> None:
        """Write the files of (N, D) points, and list them. Nothing is written where something does not fit."""
        points = as_array(_WHO, tag, mat)
        if points.ndim != 2:
            raise ShapeError(f"{_WHO}: tag {tag!r}: mat is {describe(mat)}; give (points, features)")
        lines = None if metadata is None else _format_labels(tag, len(points), metadata, header)
        sprite, size = (None, None) if label_img is None else _make_sprite(tag, len(points), label_img)
        where = f"{step:05d}/{_folder_name(tag)}"
        folder = self._folder / where
        folder.mkdir(parents=True, exist_ok=True)
        entry = [f"  tensor_name: {_quote(f'{tag}:{step:05d}')}"]
        if lines is not None:
            _write(folder / "metadata.tsv", lines.encode())
            entry.append(f"  metadata_path: {_quote(where + '/metadata.tsv')}")
        if sprite is not None and size is not None:
            _write(folder / "sprite.png", sprite)
            numbers = "".join(f"    single_image_dim: {n}\n" for n in size)
            entry.append(f"  sprite {{\n    image_path: {_quote(where + '/sprite.png')}\n{numbers}  }}")
        _write(folder / "tensors.tsv", "".join(["\t".join(map(str, row)) + "\n" for row in points.tolist()]).encode())
        entry.append(f"  tensor_path: {_quote(where + '/tensors.tsv')}")
        self._entries[where] = "embeddings {\n" + "\n".join(entry) + "\n}\n"
        _write(self._folder / "projector_config.pbtxt", "".join(self._entries.values()).encode())  # last: it names files that are there


def _write(path: Path, body: bytes) -> None:
    with atomic_write(path) as file:
        file.write(body)


def _quote(s: str) -> str:
    return json.dumps(s, ensure_ascii=False)


def _folder_name(tag: str) -> str:
    """A tag as the name of a folder."""
    return tag.replace("%", "%25").replace("/", "%2f").replace("\\", "%5c")


def _format_labels(tag: str, count: int, metadata: Sequence[Any], header: Any) -> str:
    """The text of the file of labels: one a line, or with a header several columns."""
    if len(metadata) != count:
        raise ShapeError(f"{_WHO}: tag {tag!r}: {len(metadata)} labels in metadata for {count} points; give one for each")
    if not header:
        return "".join([f"{_format_cell(x)}\n" for x in metadata])
    rows = [list(header), *[list(row) for row in metadata]]
    wrong = next((row for row in rows if len(row) != len(rows[0])), None)
    if wrong is not None:
        raise ShapeError(f"{_WHO}: tag {tag!r}: metadata_header has {len(rows[0])} columns, and {wrong!r} has {len(wrong)}")
    return "".join(["\t".join([_format_cell(x) for x in row]) + "\n" for row in rows])


def _format_cell(x: Any) -> str:
    """A label, in which a tab or a new line would begin another."""
    return str(x).replace("\t", " ").replace("\n", " ")


def _make_sprite(tag: str, count: int, label_img: Any) -> tuple[bytes, tuple[int, int]]:
    """(a PNG of all pictures, as high as it is wide or higher, (width, height) of one)."""
    images = as_array(_WHO, tag, label_img)
    if images.ndim != 4 or images.shape[1] not in (1, 3) or len(images) != count:
        raise ShapeError(
            f"{_WHO}: tag {tag!r}: label_img is {describe(label_img)}; give ({count}, 1 or 3, height, width), a picture for each point"
        )
    if images.shape[1] == 1:
        images = np.repeat(images, 3, axis=1)
    columns = int(np.ceil(count**0.5))
    height, width = images.shape[2:]
    sheet = pictures.to_uint8(pictures.arrange_grid(images, columns).transpose(1, 2, 0))
    # tensorboard takes the number of columns from a square
    square = np.zeros((max(sheet.shape[0], columns * width), columns * width, 3), np.uint8)
    square[: sheet.shape[0], : sheet.shape[1]] = sheet
    return pictures.encode_png(square), (width, height)
