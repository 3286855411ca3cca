"""Transforms with the same parameters, ours and torchvision's, on PIL images and on tensors; datasets' files and checksums; grids."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import tritensor as tt
from tritensor.vision import datasets, transforms
from tritensor.vision import utils as grids
from tritensor.vision.transforms import functional as F

# torchvision's own compiled ops are built for one build of torch each. None of them is needed here, but that the names of two exist.
_names = torch.library.Library("torchvision", "DEF")
for _name in ("nms", "qnms"):
    _names.define(f"{_name}(Tensor a) -> Tensor")
torchvision = pytest.importorskip("torchvision", exc_type=Exception)  # type: ignore[arg-type]
TF = pytest.importorskip("torchvision.transforms.functional")

pytestmark = pytest.mark.peer
RNG = np.random.default_rng(0)
BYTES = RNG.integers(0, 256, (3, 37, 29), dtype=np.uint8)
TENSORS = {
    "bytes": BYTES, "floats": (BYTES / 255).astype(np.float32), "doubles": BYTES / 255.0, "batch": RNG.integers(0, 256, (2, 3, 21, 31), dtype=np.uint8),
    "grey": BYTES[:1], "grey floats": (BYTES[:1] / 255).astype(np.float32),
}  # fmt: skip
RGB = Image.fromarray(BYTES.transpose(1, 2, 0))
IMAGES = {"RGB": RGB, "L": RGB.convert("L"), "P": RGB.convert("P"), "RGBA": RGB.convert("RGBA"), "1": RGB.convert("1")}
CORNERS = ([[0, 0], [28, 0], [28, 36], [0, 36]], [[3, 2], [25, 1], [27, 33], [2, 30]])
Call = Callable[[Any, Any, Any], Any]  # (functional, InterpolationMode, image)


def _listed() -> dict[str, Call]:
    found: dict[str, Call] = {}

    def add(title: str, name: str, *args: Any, mode: str = "", **kwargs: Any) -> None:
        def call(functional: Any, modes: Any, x: Any) -> Any:
            given = {**kwargs, "interpolation": modes[mode]} if mode else kwargs
            return getattr(functional, name)(x, *args, **given)

        found[f"{name} {title}"] = call

    for mode in ("NEAREST", "NEAREST_EXACT", "BILINEAR", "BICUBIC"):
        for size in ((15, 50), [20], 12, (80, 70)):
            for antialias in (True, False):
                add(f"{mode} {size} {antialias}", "resize", size, mode=mode, antialias=antialias)
    add("max_size", "resize", 25, max_size=28)
    for kind in ("constant", "edge", "reflect", "symmetric"):
        for padding in (3, [2, 5], [1, 2, 3, 4], [-2, 3, 4, -5]):
            add(f"{kind} {padding}", "pad", padding, padding_mode=kind)
    add("fill", "pad", 2, fill=7)
    for part in ((3, 4, 9, 11), (-3, -4, 50, 60), (5, 5, 50, 10)):
        add(str(part), "crop", *part)
    for size in (10, (9, 12), 50, (100, 7)):
        add(str(size), "center_crop", size)
    add("", "five_crop", 10)
    add("", "ten_crop", (8, 9), True)
    add("", "resized_crop", 3, 4, 15, 12, (9, 20))
    add("", "hflip")
    add("", "vflip")
    for angle in (0, 17, -45, 180, 33.3):
        for mode in ("NEAREST", "BILINEAR"):
            for expand in (False, True):
                for fill in (None, [5.0], [1.0, 2.0, 3.0]):
                    add(f"{angle} {mode} {expand} {fill}", "rotate", angle, mode=mode, expand=expand, fill=fill)
    add("center", "rotate", 20, center=[3, 4])
    for mode in ("NEAREST", "BILINEAR"):
        add(mode, "affine", 13.0, [3, -4], 1.3, [5.0, -7.0], mode=mode, fill=[9.0])
        add(f"{mode} center", "affine", 13.0, [3, -4], 0.7, [5.0, 0.0], mode=mode, center=[2, 3])
        add(mode, "perspective", *CORNERS, mode=mode, fill=[4.0])
    for factor in (0.0, 0.5, 1.0, 1.7):
        for what in ("brightness", "contrast", "saturation", "sharpness"):
            add(str(factor), f"adjust_{what}", factor)
    for factor in (-0.5, -0.2, 0, 0.3, 0.5):
        add(str(factor), "adjust_hue", factor)
    for gamma in (0.5, 1, 2.2):
        add(str(gamma), "adjust_gamma", gamma, 1.1)
    for name in ("invert", "autocontrast", "equalize", "rgb_to_grayscale"):
        add("", name)
    for bits in (1, 3, 8):
        add(str(bits), "posterize", bits)
    for threshold in (0, 1, 100):
        add(str(threshold), "solarize", threshold)
    for size, sigma in ((3, None), (5, 1.3), ([3, 7], [0.5, 2.0])):
        add(str(size), "gaussian_blur", size, sigma)
    return found


CALLS = _listed()


def _outcome(call: Call, functional: Any, modes: Any, x: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = call(functional, modes, x)
        except Exception as error:
            return error
    return list(found) if isinstance(found, tuple | list) else [found]


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("kind", IMAGES)
def test_images_are_equal_bit_for_bit(name: str, kind: str) -> None:
    theirs = _outcome(CALLS[name], TF, torchvision.transforms.InterpolationMode, IMAGES[kind])
    ours = _outcome(CALLS[name], F, transforms.InterpolationMode, IMAGES[kind])
    if isinstance(theirs, Exception):
        assert isinstance(ours, Exception), f"torchvision refuses: {theirs!r}"
        return
    for a, b in zip(ours, theirs, strict=True):
        assert (a.mode, a.size) == (b.mode, b.size)
        assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("kind", TENSORS)
def test_tensors_are_equal_to_a_rounding(name: str, kind: str) -> None:
    values = TENSORS[kind]
    theirs = _outcome(CALLS[name], TF, torchvision.transforms.InterpolationMode, torch.from_numpy(values.copy()))
    ours = _outcome(CALLS[name], F, transforms.InterpolationMode, tt.from_numpy(values.copy()))
    if isinstance(theirs, Exception):
        assert isinstance(ours, Exception), f"torchvision refuses: {theirs!r}"
        return
    assert not isinstance(ours, Exception), ours
    for a, b in zip(ours, theirs, strict=True):
        x, y = a.numpy(), b.numpy()
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        apart = np.abs(x.astype(np.float64) - y.astype(np.float64))
        if x.dtype == np.uint8:  # a sum in another order may be rounded to the next level, in few pixels
            assert apart.max(initial=0) <= 1
            assert np.count_nonzero(apart) <= 0.002 * apart.size + 3
        else:
            assert apart.max(initial=0) <= (5e-5 if x.dtype == np.float32 else 1e-12)


def test_conversions_are_equal() -> None:
    for image in IMAGES.values():
        assert np.array_equal(F.to_tensor(image).numpy(), TF.to_tensor(image).numpy())
        assert np.array_equal(F.pil_to_tensor(image).numpy(), TF.pil_to_tensor(image).numpy())
    for values in TENSORS.values():
        if values.ndim == 3:
            ours, theirs = F.to_pil_image(tt.from_numpy(values)), TF.to_pil_image(torch.from_numpy(values))
            assert (ours.mode, ours.tobytes()) == (theirs.mode, theirs.tobytes())
    kinds = ("uint8", "int8", "int16", "int32", "int64", "float32", "float64")
    for source in kinds:
        for target in kinds:
            x = RNG.integers(0, 100, 50).astype(source) if source[0] in "ui" else RNG.random(50).astype(source)
            theirs = _outcome(lambda f, _, t, k=target: f.convert_image_dtype(t, getattr(torch, k)), TF, None, torch.from_numpy(x))
            ours = _outcome(lambda f, _, t, k=target: f.convert_image_dtype(t, getattr(tt, k)), F, None, tt.from_numpy(x))
            assert isinstance(ours, Exception) == isinstance(theirs, Exception)
            if not isinstance(ours, Exception):
                assert np.array_equal(ours[0].numpy(), theirs[0].numpy()), (source, target)
    mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    x = TENSORS["floats"]
    assert np.array_equal(F.normalize(tt.from_numpy(x), mean, std).numpy(), TF.normalize(torch.from_numpy(x), mean, std).numpy())


def test_elastic_fields_are_equal() -> None:
    field = RNG.normal(0, 0.1, (1, 37, 29, 2)).astype(np.float32)
    for kind in ("bytes", "floats"):
        ours = F.elastic_transform(tt.from_numpy(TENSORS[kind]), tt.from_numpy(field), fill=[3.0]).numpy().astype(float)
        theirs = TF.elastic_transform(torch.from_numpy(TENSORS[kind]), torch.from_numpy(field), fill=[3.0]).numpy().astype(float)
        assert np.abs(ours - theirs).max() <= (1 if kind == "bytes" else 5e-5)


def test_names_and_parameters() -> None:
    """Every transform that torchvision's first version lists is here, with its parameters and what it prints."""
    theirs = torchvision.transforms
    names = [n for n in dir(theirs) if n[:1].isupper() and inspect.isclass(getattr(theirs, n))]
    assert [n for n in names if not hasattr(transforms, n)] == []
    for name in names:
        if issubclass(getattr(theirs, name), tuple | str) or name in ("InterpolationMode", "AutoAugmentPolicy"):
            continue
        want = [(p.name, p.default) for p in inspect.signature(getattr(theirs, name)).parameters.values()]
        have = [(p.name, p.default) for p in inspect.signature(getattr(transforms, name)).parameters.values()]
        assert [n for n, _ in have] == [n for n, _ in want], name
        for (_, a), (_, b) in zip(have, want, strict=True):
            assert str(a).replace("tritensor", "torch") == str(b), name
    functions = [
        n for n in dir(TF) if inspect.isfunction(getattr(TF, n)) and not n.startswith("_") and getattr(TF, n).__module__ == TF.__name__
    ]
    assert [n for n in functions if not hasattr(F, n)] == []
    for name in functions:
        want, have = (list(inspect.signature(getattr(f, name)).parameters) for f in (TF, F))
        assert have == want, name


PRINTED = [
    lambda T: T.Compose([T.ToTensor(), T.Normalize([0.5], [0.5])]), lambda T: T.RandomCrop(3, 1), lambda T: T.RandomResizedCrop((3, 4)),
    lambda T: T.RandomRotation(5, fill=3), lambda T: T.RandomAffine(3, (0.1, 0.1), fill=2), lambda T: T.ColorJitter(0.1, 0.2), lambda T: T.RandomErasing(),
    lambda T: T.RandomApply([T.CenterCrop(2)]), lambda T: T.RandomChoice([T.Pad(1)], [1]), lambda T: T.RandomOrder([T.FiveCrop(1)]), lambda T: T.GaussianBlur(3),
    lambda T: T.RandomPosterize(3), lambda T: T.AutoAugment(), lambda T: T.RandAugment(), lambda T: T.TrivialAugmentWide(), lambda T: T.AugMix(), lambda T: T.ToPILImage("L"),
    lambda T: T.ElasticTransform(), lambda T: T.Resize(3), lambda T: T.RandomPerspective(), lambda T: T.Grayscale(), lambda T: T.TenCrop(3), lambda T: T.Lambda(len),
]  # fmt: skip


@pytest.mark.parametrize("make", PRINTED)
def test_they_print_the_same(make: Callable[[Any], Any]) -> None:
    assert repr(make(transforms)) == repr(make(torchvision.transforms))


def test_policies_and_magnitudes_are_equal() -> None:
    from tritensor.vision.transforms.autoaugment import _make_space, _standard_space

    def compare(ours: Any, theirs: Any) -> None:
        for name, (magnitudes, signed) in theirs.items():
            if name not in ("Identity", "Invert"):
                have, sign = ours[name]
                assert sign == signed
                assert (have is None) == (magnitudes.ndim == 0)
                if have is not None:
                    assert np.allclose(have, magnitudes.numpy(), rtol=1e-6)

    theirs = torchvision.transforms
    for policy in transforms.AutoAugmentPolicy:
        other = theirs.AutoAugment(theirs.AutoAugmentPolicy[policy.name])
        assert transforms.AutoAugment(policy).policies == other.policies
    compare(_standard_space(10, 30, 40), theirs.AutoAugment()._augmentation_space(10, (30, 40)))
    compare(_standard_space(31, 30, 40), theirs.RandAugment()._augmentation_space(31, (30, 40)))
    compare(_make_space(31, 0.99, 32.0, 32.0, 135.0, 0.99, (8, 6)), theirs.TrivialAugmentWide()._augmentation_space(31))
    for all_ops in (True, False):
        mix = theirs.AugMix(all_ops=all_ops)._augmentation_space(10, (30, 40))
        ours = transforms.AugMix(all_ops=all_ops)._augmentation_space(30, 40)
        assert ours.keys() == mix.keys()
        compare(ours, mix)


@pytest.mark.parametrize("name", ["MNIST", "FashionMNIST", "KMNIST", "EMNIST", "CIFAR10", "CIFAR100"])
def test_files_and_checksums_of_data_sets(name: str) -> None:
    ours, theirs = getattr(datasets, name), getattr(torchvision.datasets, name)
    if name == "EMNIST":
        assert (ours.archive.mirrors[0] + ours.archive.name, ours.archive.md5) == (theirs.url, theirs.md5)
        assert {s: list(c) for s, c in ours.classes_split_dict.items()} == {s: list(c) for s, c in theirs.classes_split_dict.items()}
    elif name.startswith("CIFAR"):
        assert ours.mirrors[0] + ours.filename == theirs.url
        assert (ours.tgz_md5, ours.meta, ours.base_folder) == (theirs.tgz_md5, theirs.meta, theirs.base_folder)
        assert [list(x) for x in (*ours.train_list, *ours.test_list)] == [list(x) for x in (*theirs.train_list, *theirs.test_list)]
    else:
        assert list(ours.resources) == list(theirs.resources)
        assert list(ours.classes) == list(theirs.classes)


@pytest.mark.parametrize("name", ["MixUp", "CutMix"])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.75, 1.0])
def test_mixed_batches_are_equal(name: str, share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    from torchvision.transforms import v2 as theirs

    from tritensor.vision.transforms import draws, v2
    from tritensor.vision.transforms.v2 import mixing

    ours_at, theirs_at = iter([3, 7]), iter([3, 7])
    monkeypatch.setattr(mixing, "sample_dirichlet", lambda a: tt.tensor([share, 1 - share]))
    monkeypatch.setattr(draws, "integer", lambda low, high: next(ours_at))
    other = getattr(theirs, name)(num_classes=5)
    monkeypatch.setattr(other._dist, "sample", lambda shape: torch.tensor([share]))
    monkeypatch.setattr(torch, "randint", lambda high, size: torch.tensor([next(theirs_at)]))
    x, y = RNG.random((4, 3, 9, 8)).astype(np.float32), np.arange(4)
    ours = getattr(v2, name)(num_classes=5)(tt.from_numpy(x), tt.from_numpy(y))
    for a, b in zip(ours, other(torch.from_numpy(x), torch.from_numpy(y)), strict=True):
        assert np.allclose(a.numpy(), b.numpy(), atol=1e-6)


def test_grids_are_equal() -> None:
    from torchvision import utils

    x = RNG.random((5, 3, 6, 7)).astype(np.float32) * 3 - 1
    for how in (
        {},
        {"nrow": 2, "padding": 3, "pad_value": 0.5},
        {"normalize": True},
        {"normalize": True, "scale_each": True},
        {"normalize": True, "value_range": (0, 1)},
    ):
        assert np.array_equal(grids.make_grid(tt.from_numpy(x), **how).numpy(), utils.make_grid(torch.from_numpy(x), **how).numpy())  # type: ignore[arg-type]
    assert np.array_equal(grids.make_grid(tt.from_numpy(x[:, :1])).numpy(), utils.make_grid(torch.from_numpy(x[:, :1])).numpy())
    boxes = np.array([[1, 2, 5, 5], [2, 3, 6, 5]])
    image = (RNG.random((3, 9, 9)) * 255).astype(np.uint8)
    ours = grids.draw_bounding_boxes(tt.from_numpy(image), tt.from_numpy(boxes), colors=["red", (1, 2, 3)], width=1)
    theirs = utils.draw_bounding_boxes(torch.from_numpy(image), torch.from_numpy(boxes), colors=["red", (1, 2, 3)], width=1)
    assert np.array_equal(ours.numpy(), theirs.numpy())
