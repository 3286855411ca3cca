"""Image files and grids of images: what is written comes back; damage and mistakes are named."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import tritensor as tt
from tritensor import vision
from tritensor.ground.errors import CheckpointError
from tritensor.vision import io as images
from tritensor.vision.io import ImageReadMode
from tritensor.vision.utils import draw_bounding_boxes, make_grid, save_image

RAW = np.random.default_rng(5).integers(0, 256, (3, 9, 7), dtype=np.uint8)
RGB, GREY = tt.from_numpy(RAW), tt.from_numpy(RAW[:1])


def test_files_come_back(tmp_path: Path) -> None:
    for image in (RGB, GREY):
        images.write_png(image, tmp_path / "a.png", 9)
        assert tt.equal(images.read_image(tmp_path / "a.png"), image)
        assert tt.equal(images.decode_image(images.encode_png(image)), image)
        assert tt.equal(images.decode_image(str(tmp_path / "a.png")), image)
        images.write_jpeg(image.to("cuda"), tmp_path / "a.jpg", 100)
        with Image.open(tmp_path / "a.jpg") as opened:
            values = np.asarray(opened)
        assert np.array_equal(
            images.read_image(tmp_path / "a.jpg").numpy(), values[None] if values.ndim == 2 else values.transpose(2, 0, 1)
        )
    data = images.read_file(tmp_path / "a.png")
    images.write_file(tmp_path / "b.png", data)
    assert (tmp_path / "b.png").read_bytes() == (tmp_path / "a.png").read_bytes()


@pytest.mark.parametrize(("mode", "channels"), [("GRAY", 1), ("GRAY_ALPHA", 2), ("RGB", 3), ("RGB_ALPHA", 4), ("UNCHANGED", 3)])
def test_channels_are_asked_for(mode: str, channels: int) -> None:
    data = images.encode_png(RGB)
    found = images.decode_image(data, ImageReadMode[mode])
    assert found.shape == (channels, 9, 7)
    assert tt.equal(images.decode_image(data, mode.lower()), found)


def test_modes_of_files(tmp_path: Path) -> None:
    def read(image: Image.Image, **how: object) -> tt.Tensor:
        image.save(tmp_path / "x.png", **how)
        return images.read_image(tmp_path / "x.png")

    base = Image.fromarray(RAW.transpose(1, 2, 0))
    assert tt.equal(read(base.quantize(250)), tt.from_numpy(np.asarray(base.quantize(250).convert("RGB")).transpose(2, 0, 1).copy()))
    assert read(base.quantize(9), transparency=0).shape == (4, 9, 7)
    assert read(base.convert("RGBA")).shape == (4, 9, 7)
    assert read(base.convert("LA")).shape == (2, 9, 7)
    assert read(base.convert("1")).unique().tolist() == [0, 255]
    deep = np.arange(63, dtype=np.uint16).reshape(9, 7) * 1000
    found = read(Image.fromarray(deep))
    assert (found.dtype, np.array_equal(found[0].numpy(), deep)) == (tt.uint16, True)


def test_a_picture_is_turned_as_the_camera_noted(tmp_path: Path) -> None:
    image = Image.fromarray(RAW.transpose(1, 2, 0))
    exif = image.getexif()
    exif[0x0112] = 6  # Orientation: the top is on the right
    image.save(tmp_path / "x.png", exif=exif)
    assert images.read_image(tmp_path / "x.png").shape == (3, 9, 7)
    assert np.array_equal(images.read_image(tmp_path / "x.png", apply_exif_orientation=True).numpy(), np.rot90(RAW, -1, (1, 2)))


def test_damaged_files_are_named(tmp_path: Path) -> None:
    images.write_png(RGB, tmp_path / "x.png")
    whole = (tmp_path / "x.png").read_bytes()
    for content in (b"", b"no image", whole[:60], whole[:40] + bytes(20) + whole[60:]):
        (tmp_path / "x.png").write_bytes(content)
        with pytest.raises(CheckpointError, match=rf"{tmp_path}/x.png: no image that Pillow can read"):
            images.read_image(tmp_path / "x.png")
    with pytest.raises(FileNotFoundError):
        images.read_image(tmp_path / "nowhere.png")


def test_grids() -> None:
    x = tt.rand(5, 3, 4, 6)
    grid = make_grid(x, nrow=2, padding=1, pad_value=0.5)
    want = np.full((3, 16, 15), 0.5, np.float32)
    for k in range(5):
        top, left = 1 + k // 2 * 5, 1 + k % 2 * 7
        want[:, top : top + 4, left : left + 6] = x[k].numpy()
    assert np.array_equal(grid.numpy(), want)
    assert tt.equal(make_grid(list(x), nrow=2, padding=1, pad_value=0.5), grid)
    assert tt.equal(make_grid(x.to("cuda"), nrow=2, padding=1, pad_value=0.5).cpu(), grid)
    assert tt.equal(make_grid(x[0]), x[0])
    assert make_grid(x[:, :1]).shape == (3, 8, 42)
    assert make_grid(x[0, 0]).shape == (3, 4, 6)
    assert make_grid((x * 255).to(tt.uint8)).dtype is tt.uint8
    for each in (False, True):
        y = make_grid(x * 3 - 1, normalize=True, scale_each=each, padding=0)
        assert (float(y.min()), float(y.max())) == (0.0, 1.0)
    assert np.allclose(
        make_grid(x, normalize=True, value_range=(0.25, 0.5))[:, 2:6, 2:8].numpy(), (np.clip(x[0].numpy(), 0.25, 0.5) - 0.25) * 4
    )


def test_grids_in_files(tmp_path: Path) -> None:
    x = tt.rand(3, 3, 4, 6)
    save_image(x, tmp_path / "x.png", nrow=2)
    want = (make_grid(x, nrow=2) * 255 + 0.5).clamp(0, 255).to(tt.uint8)
    assert tt.equal(images.read_image(tmp_path / "x.png"), want)
    held = io.BytesIO()
    save_image(x, held, "PNG", nrow=2)
    assert held.getvalue() == (tmp_path / "x.png").read_bytes()
    with pytest.raises(ValueError, match=r"x.abc' ends like no image format that Pillow knows"):
        save_image(x, tmp_path / "x.abc")
    save_image(x, tmp_path / "x.abc", format="png")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.abc", "x.png"]


def test_boxes() -> None:
    image = tt.zeros(3, 20, 20, dtype=tt.uint8)
    found = draw_bounding_boxes(image, tt.tensor([[2, 3, 10, 12]]), colors="red")
    want = np.zeros((3, 20, 20), np.uint8)
    want[0, 3:13, [2, 10]] = want[0, [3, 12], 2:11] = 255
    assert np.array_equal(found.numpy(), want)
    assert int(image.max()) == 0
    filled = draw_bounding_boxes(image, tt.tensor([[2.0, 3, 10, 12]]), colors=[(255, 0, 0)], fill=True, width=2, labels=["a"])
    assert filled[0, 8, 8] == 102
    two = draw_bounding_boxes(image / 255, tt.tensor([[0, 0, 5, 5], [8, 8, 15, 15]]))
    assert two.dtype is tt.float32
    assert two[:, 0, 0].tolist() == [1.0, 0.0, 0.0]
    assert two[:, 8, 8].tolist() == [0.0, 1.0, 1.0]
    assert draw_bounding_boxes(image[:1], tt.zeros(0, 4)).shape == (3, 20, 20)


def test_networks_by_torchvisions_path() -> None:
    assert vision.models.resnet18(weights=None, num_classes=7).fc.out_features == 7
    assert vision.models.get_model("resnet18", num_classes=2).fc.out_features == 2
    assert "resnet50" in vision.models.list_models()
    with pytest.raises(ValueError, match="Unknown model resnet19; there are alexnet"):
        vision.models.get_model("resnet19")
    assert vision.get_image_backend() == "PIL"
    vision.set_image_backend("PIL")
    with pytest.raises(ValueError, match="'accimage'; images are read by PIL"):
        vision.set_image_backend("accimage")
    with pytest.raises(AttributeError, match="has no attribute 'nowhere'; it has datasets"):
        vision.nowhere  # noqa: B018
    assert "transforms" in dir(vision)


@pytest.mark.parametrize(
    ("call", "kind", "told"),
    [
        (lambda: make_grid(1), TypeError, "tensor is a int"),
        (lambda: make_grid(tt.ones(2)), ValueError, "has 1 dimensions"),
        (lambda: make_grid(RGB, normalize=True, value_range=3), TypeError, r"value_range 3; give \(least, most\)"),
        (lambda: images.encode_png(RGB.float()), TypeError, "input is tritensor.float32; give a tensor of uint8"),
        (lambda: images.encode_jpeg(RGB[:2]), ValueError, r"input \(2, 9, 7\); give \(channels, height, width\) with 1 or 3"),
        (lambda: images.encode_png(RGB, 10), ValueError, "compression_level 10"),
        (lambda: images.encode_jpeg(RGB, 0), ValueError, "quality 0"),
        (lambda: images.decode_image(RGB), TypeError, r"input is no tensor \(n,\) of uint8, and no path"),
        (lambda: images.decode_image(images.encode_png(RGB), "purple"), ValueError, "mode 'purple'"),
        (lambda: images.write_file("x", RGB), TypeError, r"data is uint8 \(3, 9, 7\)"),
        (lambda: draw_bounding_boxes(RGB[:2], tt.zeros(1, 4)), ValueError, r"image is \(2, 9, 7\)"),
        (lambda: draw_bounding_boxes(RGB, tt.zeros(4)), ValueError, r"boxes \(4,\); give \(n, 4\)"),
        (lambda: draw_bounding_boxes(RGB, tt.tensor([[3, 0, 1, 1]])), ValueError, "a box ends before it begins"),
        (lambda: draw_bounding_boxes(RGB, tt.zeros(1, 4), ["a", "b"]), ValueError, "2 labels for 1 boxes"),
        (lambda: draw_bounding_boxes(RGB, tt.zeros(2, 4), colors=["red"]), ValueError, "1 colors for 2 boxes"),
    ],
)  # fmt: skip
def test_mistakes_are_named(call: object, kind: type[Exception], told: str) -> None:
    with pytest.raises(kind, match=told):
        call()  # type: ignore[operator]
