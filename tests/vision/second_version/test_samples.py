"""Transforms of samples: everything in them is changed alike, and the rest passes; what is drawn, labels that follow, mistakes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import PIL.Image
import pytest

import tritensor as tt
from tritensor.vision import tv_tensors as tv
from tritensor.vision.transforms import v2
from tritensor.vision.transforms.v2 import functional as F

ROWS, COLUMNS = 40, 50


def sample(kind: str = "image") -> dict[str, Any]:
    """An image whose bright rectangle is the mask of the first object, and lies in the first box."""
    pixels = tt.zeros(3, ROWS, COLUMNS, dtype=tt.uint8)
    pixels[:, 10:20, 15:35] = 200
    masks = tt.stack([pixels[0] > 0, pixels[0] * 0 > 0, pixels[0] == 0])
    image = {"image": tv.Image(pixels), "pillow": F.to_pil_image(pixels), "plain": pixels, "video": tv.Video(tt.stack([pixels] * 2))}[kind]
    boxes = tv.BoundingBoxes([[15, 10, 35, 20], [2, 2, 3, 9], [0, 0, 50, 40]], format="XYXY", canvas_size=(ROWS, COLUMNS))
    corners = tv.KeyPoints([[15.0, 10.0], [34.0, 19.0]], canvas_size=(ROWS, COLUMNS))
    return {
        "image": image,
        "target": [{"boxes": boxes, "labels": tt.tensor([7, 8, 9])}, tv.Mask(masks), corners],
        "name": "x",
        "id": tt.tensor(3),
    }


def bright(image: Any) -> list[int]:
    """(left, top, right, bottom) of what is bright in an image."""
    pixels = F.to_image(image) if isinstance(image, PIL.Image.Image) else image
    rows, columns = (pixels.as_subclass(tt.Tensor).reshape(-1, *pixels.shape[-2:])[0] > 100).nonzero(as_tuple=True)
    return [int(columns.min()), int(rows.min()), int(columns.max()) + 1, int(rows.max()) + 1]


TOGETHER = [
    v2.RandomHorizontalFlip(1), v2.RandomVerticalFlip(1), v2.Resize((80, 75), "nearest"), v2.ScaleJitter((40, 40), (1.0, 2.0), "nearest"),
    v2.RandomShortestSize([30, 60], 90, "nearest"), v2.RandomResize(30, 60, "nearest"), v2.Pad([1, 2, 3, 4]), v2.RandomZoomOut(p=1),
    v2.CenterCrop((30, 40)), v2.RandomCrop((36, 45), padding=4), v2.RandomRotation((90, 90), expand=True), v2.RandomAffine((0, 0), (0.1, 0.1)),
]  # fmt: skip


@pytest.mark.parametrize("kind", ["image", "pillow", "plain", "video"])
@pytest.mark.parametrize("transform", TOGETHER, ids=lambda t: type(t).__name__)
def test_boxes_masks_and_points_go_with_the_image(transform: v2.Transform, kind: str) -> None:
    tt.manual_seed(5)
    before = sample(kind)
    after = transform(before)
    boxes, masks, points = after["target"][0]["boxes"], after["target"][1], after["target"][2]
    size = tuple(F.get_size(after["image"]))
    assert size == boxes.canvas_size == points.canvas_size == tuple(masks.shape[-2:])
    assert type(after["image"]) is type(before["image"])
    found = bright(after["image"])
    assert boxes[0].tolist() == pytest.approx(found, abs=1)  # nearest pixels, whole numbers
    assert bright(masks.to(tt.uint8)[:1] * 200) == pytest.approx(found, abs=kind == "pillow")  # whose nearest pixels are others
    ends = [*points.amin(0).tolist(), *(points.amax(0) + 1).tolist()]
    if not isinstance(transform, v2.RandomRotation):  # which moves pixels' middles, not their corners
        assert ends == pytest.approx(found, abs=2)
    assert after["name"] == "x"
    assert after["id"] is before["id"]
    assert after["target"][0]["labels"] is before["target"][0]["labels"]


def test_only_the_first_plain_tensor_is_an_image_and_none_beside_an_image() -> None:
    x, y = tt.rand(3, 4, 4), tt.rand(3, 4, 4)
    flip = v2.RandomHorizontalFlip(1)
    first, second = flip(x, y)
    assert tt.equal(first, x.flip(-1))
    assert second is y
    image, kept = flip((tv.Image(x), y))
    assert tt.equal(image, x.flip(-1))
    assert kept is y


def test_what_is_too_small_is_left_out_with_its_labels_and_masks() -> None:
    given = sample()
    after = v2.SanitizeBoundingBoxes(min_size=2, labels_getter=lambda s: s["target"][0]["labels"])(given)
    assert after["target"][0]["boxes"].tolist() == [[15, 10, 35, 20], [0, 0, 50, 40]]
    assert after["target"][0]["labels"].tolist() == [7, 9]
    assert after["target"][1].shape == (2, ROWS, COLUMNS)
    assert type(after["target"][1]) is tv.Mask
    assert after["image"] is given["image"]
    by_name = v2.SanitizeBoundingBoxes(min_size=2)(given["image"], given["target"][0])[1]
    assert by_name["labels"].tolist() == [7, 9]
    points = tv.KeyPoints([[1.0, 2.0], [50.0, 2.0], [-1.0, 3.0]], canvas_size=(ROWS, COLUMNS))
    kept, labels = v2.SanitizeKeyPoints(labels_getter=lambda s: s[1])(points, tt.tensor([4, 5, 6]))
    assert (kept.tolist(), labels.tolist()) == ([[1.0, 2.0]], [4])


def test_a_crop_keeps_a_box_and_empties_those_that_are_outside() -> None:
    tt.manual_seed(0)
    given = sample()
    for _ in range(10):
        after = v2.RandomIoUCrop(sampler_options=[0.3])(given)
        boxes = after["target"][0]["boxes"]
        assert tuple(after["image"].shape[-2:]) == boxes.canvas_size
        assert (boxes[:, 2] > boxes[:, 0]).any()
        assert bool(((boxes >= 0) & (boxes <= tt.tensor([*boxes.canvas_size[::-1]] * 2))).all())
    assert v2.RandomIoUCrop(sampler_options=[1.0])(given)["image"] is given["image"]


def test_types_by_class() -> None:
    given = sample()
    after = v2.ToDtype({tv.Image: tt.float32, tv.Mask: tt.uint8, "others": None}, scale=True)(given)
    assert (after["image"].dtype, after["target"][1].dtype, after["target"][0]["boxes"].dtype) == (tt.float32, tt.uint8, tt.int64)
    assert float(after["image"].max()) == pytest.approx(200 / 255)
    assert v2.ToDtype(tt.float32)(given)["target"][1].dtype is tt.bool
    pure = v2.ToPureTensor()(given)
    assert {type(pure["image"]), type(pure["target"][1]), type(pure["target"][0]["boxes"])} == {tt.Tensor}


def test_fills_by_class() -> None:
    given = sample()
    after = v2.Pad(1, fill={tv.Image: 9, tv.Mask: True, "others": 0})(given)
    assert (int(after["image"][0, 0, 0]), bool(after["target"][1][1, 0, 0])) == (9, True)


def test_colours_leave_the_rest() -> None:
    tt.manual_seed(1)
    given = sample()
    for transform in (
        v2.ColorJitter(0.5, 0.5, 0.5, 0.3),
        v2.RandomPhotometricDistort(p=1),
        v2.GaussianBlur(3),
        v2.RandomInvert(1),
        v2.RandomErasing(1),
    ):
        with pytest.warns() if isinstance(transform, v2.RandomErasing) else nothing():
            after = transform(given)
        assert not tt.equal(after["image"], given["image"])
        assert tt.equal(after["target"][0]["boxes"], given["target"][0]["boxes"])
        assert tt.equal(after["target"][1], given["target"][1])


class nothing:
    def __enter__(self) -> None: ...

    def __exit__(self, *exc: object) -> None: ...


@pytest.mark.parametrize(
    "policy", [v2.AutoAugment(), v2.RandAugment(), v2.TrivialAugmentWide(), v2.AugMix()], ids=lambda p: type(p).__name__
)
def test_policies_change_the_one_image(policy: v2.Transform) -> None:
    tt.manual_seed(2)
    for kind in ("image", "pillow", "plain", "video"):
        image = sample(kind)["image"]
        found = [policy({"x": image, "y": 3}) for _ in range(8)]
        assert {type(f["x"]) for f in found} == {type(image)}
        assert {f["y"] for f in found} == {3}
        assert F.get_size(found[0]["x"]) == [ROWS, COLUMNS]
    with pytest.raises(TypeError, match="BoundingBoxes are not supported"):
        policy(sample())


def test_noise_and_compression() -> None:
    tt.manual_seed(3)
    floats = tt.full((3, 30, 30), 0.5)
    noisy = v2.GaussianNoise(sigma=0.1)(floats)
    assert float(noisy.std()) == pytest.approx(0.1, rel=0.1)
    assert 0 <= float(noisy.min()) < float(noisy.max()) <= 1
    assert v2.GaussianNoise()(sample()["image"]).dtype is tt.uint8
    packed = v2.JPEG((20, 40))(sample()["image"])
    assert bright(packed) == [15, 10, 35, 20]
    assert type(v2.JPEG(50)(sample("pillow")["image"])) is PIL.Image.Image


def test_mixtures_of_a_batch_in_a_sample() -> None:
    videos, labels = tv.Video(tt.arange(4.0).reshape(4, 1, 1, 1, 1).expand(4, 2, 3, 6, 8)), tt.arange(4)
    for mix in (v2.MixUp(num_classes=4), v2.CutMix(num_classes=4)):
        after = mix({"clip": videos, "labels": labels, "id": 5})
        assert type(after["clip"]) is tv.Video
        assert after["labels"].sum(1).tolist() == pytest.approx([1.0] * 4)
        assert after["id"] == 5


def test_a_programs_own() -> None:
    class Depth(tv.TVTensor):
        """Distances, for which only flips are known."""

    @F.register_kernel("hflip", Depth)
    def flip_depth(depth: Depth, *args: Any, **kwargs: Any) -> Any:
        return tv.wrap(-depth.as_subclass(tt.Tensor).flip(-1), like=depth)

    depth = tt.tensor([1.0, 2.0]).as_subclass(Depth)
    assert v2.RandomHorizontalFlip(1)(depth).tolist() == [-2.0, -1.0]
    assert v2.RandomVerticalFlip(1)(depth) is depth
    with pytest.raises(TypeError, match=r"vertical_flip: supports inputs of type PIL.Image.Image, Tensor, .* but got Depth"):
        F.vertical_flip(depth)
    with pytest.raises(ValueError, match="already has a kernel"):
        F.register_kernel(F.hflip, Depth)(flip_depth)

    class Border(v2.Transform):
        """As wide as the sample has leaves."""

        def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
            return {"padding": len(flat_inputs)}

        def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
            return self._call_kernel(F.pad, inpt, **params)

    image, boxes = Border()(tt.ones(3, 4, 5), tv.BoundingBoxes([0, 0, 1, 1], format="XYXY", canvas_size=(4, 5)))
    assert (image.shape, boxes.tolist(), boxes.canvas_size) == ((3, 8, 9), [[2, 2, 3, 3]], (8, 9))


def test_reprs_are_torchvisions() -> None:
    assert repr(v2.Resize(3)) == "Resize(size=[3], interpolation=bilinear, antialias=True)"
    assert repr(v2.Compose([v2.Identity(), v2.RandomPosterize(4)])) == "Compose(\n      Identity()\n      RandomPosterize(p=0.5, bits=4)\n)"
    assert repr(v2.Lambda(len, tv.Image)) == "Lambda(len, types=['Image'])"


def test_kernels_are_public() -> None:
    boxes, canvas = F.resize_bounding_boxes(tt.tensor([[1.0, 2.0, 3.0, 4.0]]), canvas_size=(10, 20), size=[5, 5])
    assert (boxes.tolist(), canvas) == ([[0.25, 1.0, 0.75, 2.0]], (5, 5))
    assert F.pad_mask(tt.ones(2, 2), [1]).shape == (4, 4)
    assert "affine_keypoints" in dir(F)
    with pytest.raises(AttributeError, match="no attribute 'resize_sound'"):
        F.resize_sound  # noqa: B018


@pytest.mark.parametrize(
    ("call", "kind", "told"),
    [
        (lambda: v2.RandomIoUCrop()(tt.ones(3, 4, 4)), TypeError, "requires input sample to contain"),
        (lambda: v2.Resize([1, 2, 3]), ValueError, "integer, a sequence of one or two integers, or None"),
        (lambda: v2.Resize(None), ValueError, "max_size must be an integer when size is None"),
        (lambda: v2.Pad([1, 2, 3]), ValueError, "1, 2, or 4 element"),
        (lambda: v2.Pad(1, fill="x"), TypeError, "inappropriate fill"),
        (lambda: v2.RandomZoomOut(side_range=(0.5, 1)), ValueError, "Invalid side range"),
        (lambda: v2.FiveCrop(3)(sample()), TypeError, "not supported by FiveCrop"),
        (lambda: v2.Normalize([0], [1])(sample("pillow")), TypeError, "does not support PIL images"),
        (lambda: v2.SanitizeBoundingBoxes(0.5), ValueError, "must be >= 1"),
        (lambda: v2.SanitizeBoundingBoxes()(tt.ones(2), 3), ValueError, "two-tuple whose second item"),
        (lambda: v2.SanitizeBoundingBoxes(labels_getter=None)(tt.ones(2)), ValueError, "No bounding boxes were found"),
        (
            lambda: v2.SanitizeBoundingBoxes()(sample()["target"][0]["boxes"], {"label": tt.ones(2)}),
            ValueError,
            "must match the number of labels",
        ),
        (lambda: v2.SanitizeBoundingBoxes(labels_getter=3), ValueError, "'default', a callable, or None, but got 3"),
        (lambda: v2.ToDtype("x"), ValueError, "must be a dict or a torch.dtype"),
        (lambda: v2.ToDtype({tv.Mask: tt.int64})(sample()["image"]), ValueError, "No dtype was specified for type"),
        (lambda: v2.RandomErasing(2), ValueError, r"interval \[0.0, 1.0\]"),
        (lambda: v2.Compose([]), ValueError, "at least one transform"),
        (lambda: v2.Compose(3), TypeError, "sequence of callables, got int"),  # type: ignore[arg-type]
        (lambda: v2.RandomChoice([v2.Identity()], [1, 2]), ValueError, "Length of p doesn't match"),
        (lambda: v2.RandomCrop(100)(sample()), ValueError, r"Required crop size \(100, 100\) is larger than input image size \(40, 50\)"),
        (lambda: v2.JPEG(0), ValueError, "1 to 100, got 0"),
        (lambda: v2.SetClampingMode("x"), ValueError, "soft, hard or None, got x"),
        (lambda: v2.Transform()(tt.ones(3, 2, 2)), NotImplementedError, "has no transform"),
        (lambda: v2.query_size([]), TypeError, "found in the sample"),
        (
            lambda: v2.query_size([tt.ones(1, 2, 3), tt.ones(1, 3, 3)]),
            ValueError,
            r"multiple HxW dimensions in the sample: \(2, 3\), \(3, 3\)",
        ),
        (lambda: F.convert_bounding_box_format(tt.ones(1, 4), new_format="XYWH"), ValueError, "`old_format` has to be passed"),
        (lambda: F.convert_bounding_box_format(sample()["target"][0]["boxes"], new_format="XYWHR"), ValueError, "rotated and unrotated"),
        (lambda: F.gaussian_noise(sample("pillow")["image"]), ValueError, "not implemented for PIL images"),
        (lambda: F.register_kernel("sound", tv.Image), ValueError, "Could not find functional with name 'sound'"),
        (lambda: F.register_kernel("hflip", tv.Image), ValueError, "builtin tv_tensor classes"),
        (lambda: F.resize(tt.ones(1, 2, 2), 3, "sharp"), ValueError, "Invalid interpolation mode: 'sharp'"),
    ],
)
def test_mistakes_are_named(call: Callable[[], Any], kind: type[Exception], told: str) -> None:
    with pytest.raises(kind, match=told):
        call()
