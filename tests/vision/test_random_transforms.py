"""Transforms that draw: runs repeat, draws keep their ranges and their shares, classes do what the functions do, all of them can be pickled."""

from __future__ import annotations

import math
import pickle
from collections import Counter
from typing import Any

import numpy as np
import pytest
from PIL import Image

import tritensor as tt
from tritensor.vision import transforms as T
from tritensor.vision.transforms import draws, v2
from tritensor.vision.transforms import functional as F

RAW = np.random.default_rng(4).integers(20, 230, (3, 40, 50), dtype=np.uint8)
TENSOR = tt.from_numpy(RAW)
IMAGE = Image.fromarray(RAW.transpose(1, 2, 0))
ALL = [
    T.RandomCrop(20, 4), T.RandomCrop((45, 30), pad_if_needed=True, padding_mode="reflect"), T.RandomResizedCrop(20), T.RandomHorizontalFlip(), T.RandomVerticalFlip(),
    T.ColorJitter(0.4, 0.4, 0.4, 0.1), T.RandomGrayscale(0.5), T.RandomRotation(30), T.RandomRotation((10, 20), T.InterpolationMode.BILINEAR, True, fill=(1, 2, 3)),
    T.RandomAffine(30, (0.1, 0.2), (0.8, 1.2), (1, 2, 3, 4), fill=5), T.RandomPerspective(p=0.7), T.GaussianBlur((3, 5)), T.RandomInvert(), T.RandomPosterize(3),
    T.RandomSolarize(100), T.RandomAdjustSharpness(2), T.RandomAutocontrast(), T.RandomEqualize(), T.ElasticTransform(9.0, 2.0), T.AutoAugment(),
    T.AutoAugment(T.AutoAugmentPolicy.CIFAR10, fill=3), T.AutoAugment(T.AutoAugmentPolicy.SVHN), T.RandAugment(), T.TrivialAugmentWide(fill=[1, 2, 3]), T.AugMix(),
    T.RandomApply([T.CenterCrop(9)], 0.5), T.RandomChoice([T.CenterCrop(9), T.Pad(1), T.Grayscale(3)], [1, 2, 3]), T.RandomOrder([T.CenterCrop(9), T.Pad(1)]),
    T.Compose([T.RandomCrop(30), T.RandomHorizontalFlip(), T.RandomInvert()]),
]  # fmt: skip


def bytes_of(x: Any) -> bytes:
    return x.numpy().tobytes() if isinstance(x, tt.Tensor) else x.tobytes()


@pytest.mark.parametrize("transform", ALL, ids=[f"{i}-{type(t).__name__}" for i, t in enumerate(ALL)])
def test_a_seed_repeats_a_run(transform: Any) -> None:
    copy = pickle.loads(pickle.dumps(transform))  # as worker processes get it
    assert repr(copy) == repr(transform)
    for image in (IMAGE, TENSOR):
        runs = []
        for t in (transform, copy):
            tt.manual_seed(5)
            runs.append([bytes_of(t(image)) for _ in range(6)])
        assert runs[0] == runs[1]
        assert len(set(runs[0])) > 1
    assert bytes_of(TENSOR) == RAW.tobytes()


def test_draws_keep_their_ranges_and_shares() -> None:
    tt.manual_seed(0)
    first = [draws.uniform(0, 1) for _ in range(3)]
    tt.manual_seed(0)
    assert first == [tt.rand(1).item() for _ in range(3)]
    tt.manual_seed(0)
    numbers = [draws.uniform(-2, 3) for _ in range(2000)]
    assert -2 <= min(numbers) < -1.9
    assert 2.9 < max(numbers) <= 3
    assert abs(sum(numbers) / 2000 - 0.5) < 0.15
    assert Counter(draws.integer(2, 5) for _ in range(600)).keys() == {2, 3, 4}
    assert abs(sum(draws.chance(0.3) for _ in range(2000)) / 2000 - 0.3) < 0.05
    assert not any(draws.chance(0.0) for _ in range(100))
    assert all(draws.chance(1.0) for _ in range(100))
    assert sorted(draws.permutation(5)) == [0, 1, 2, 3, 4]
    chosen = Counter(draws.choice(3, [1, 0, 3]) for _ in range(1000))
    assert chosen.keys() == {0, 2}
    assert abs(chosen[0] / 1000 - 0.25) < 0.06
    assert Counter(draws.choice(3) for _ in range(300)).keys() == {0, 1, 2}


def test_parts_lie_inside_and_everywhere() -> None:
    tt.manual_seed(1)
    places = {T.RandomCrop.get_params(TENSOR, (38, 48)) for _ in range(200)}
    assert places == {(i, j, 38, 48) for i in range(3) for j in range(3)}
    assert T.RandomCrop.get_params(TENSOR, (40, 50)) == (0, 0, 40, 50)
    for _ in range(200):
        i, j, h, w = T.RandomResizedCrop.get_params(TENSOR, (0.1, 0.5), (0.5, 2.0))
        assert 0 <= i <= 40 - h
        assert 0 <= j <= 50 - w
        assert 0.09 < h * w / 2000 < 0.52
        assert 0.48 < w / h < 2.1
        i, j, h, w, v = T.RandomErasing.get_params(TENSOR, (0.02, 0.3), (0.3, 3.3), [1.0])
        assert 0 <= i <= 40 - h
        assert 0 <= j <= 50 - w
        assert h * w <= 0.32 * 2000
        assert v.shape == (1, 1, 1)
        starts, ends = T.RandomPerspective.get_params(50, 40, 0.4)
        assert starts == [[0, 0], [49, 0], [49, 39], [0, 39]]
        assert all(abs(x - u) <= 10 and abs(y - v) <= 8 for (x, y), (u, v) in zip(starts, ends, strict=True))
        angle, (x, y), scale, (sx, sy) = T.RandomAffine.get_params([-9, 9], (0.1, 0.2), (0.5, 2), [1, 2, 3, 4], (50, 40))
        assert (-9 <= angle <= 9, abs(x) <= 5, abs(y) <= 8, 0.5 <= scale <= 2, 1 <= sx <= 2, 3 <= sy <= 4) == (True,) * 6
    assert T.RandomResizedCrop.get_params(TENSOR, (5, 6), (1, 1)) == (0, 5, 40, 40)  # nothing fits: the middle
    assert T.RandomResizedCrop.get_params(TENSOR[:, :, :5], (5, 6), (1, 1)) == (17, 0, 5, 5)
    assert T.RandomErasing.get_params(TENSOR, (5, 6), (1, 1), [0.0])[4] is TENSOR
    assert T.RandomAffine.get_params([0, 0], None, None, None, (50, 40)) == (0.0, (0, 0), 1.0, (0.0, 0.0))


def test_classes_do_what_the_functions_do() -> None:
    pairs: list[tuple[Any, Any]] = [
        (T.Resize(20), F.resize(TENSOR, 20)), (T.Resize((9, 8), T.InterpolationMode.NEAREST), F.resize(TENSOR, (9, 8), T.InterpolationMode.NEAREST)),
        (T.Resize([20], max_size=22, antialias=False), F.resize(TENSOR, [20], max_size=22, antialias=False)), (T.CenterCrop([7]), F.center_crop(TENSOR, 7)),
        (T.Pad((1, 2), 3), F.pad(TENSOR, (1, 2), 3)), (T.Grayscale(3), F.rgb_to_grayscale(TENSOR, 3)), (T.RandomHorizontalFlip(1), F.hflip(TENSOR)),
        (T.RandomVerticalFlip(1.0), F.vflip(TENSOR)), (T.RandomRotation((30, 30), fill=4), F.rotate(TENSOR, 30.0, fill=[4.0] * 3)),
        (T.RandomInvert(1), F.invert(TENSOR)), (T.RandomPosterize(2, 1), F.posterize(TENSOR, 2)), (T.RandomSolarize(9, 1), F.solarize(TENSOR, 9)),
        (T.RandomAdjustSharpness(3, 1), F.adjust_sharpness(TENSOR, 3)), (T.RandomAutocontrast(1), F.autocontrast(TENSOR)), (T.RandomEqualize(1), F.equalize(TENSOR)),
        (T.RandomGrayscale(1), F.rgb_to_grayscale(TENSOR, 3)), (T.GaussianBlur(3, 0.7), F.gaussian_blur(TENSOR, 3, 0.7)),
        (T.ColorJitter(brightness=(0.5, 0.5)), F.adjust_brightness(TENSOR, 0.5)), (T.ColorJitter(hue=(0.2, 0.2)), F.adjust_hue(TENSOR, 0.2)),
        (T.ColorJitter(), TENSOR), (T.Lambda(lambda x: x[:1]), TENSOR[:1]), (T.RandomAffine((20, 20), scale=(2, 2)), F.affine(TENSOR, 20, [0, 0], 2.0, [0.0, 0.0], fill=0)),
    ]  # fmt: skip
    for transform, want in pairs:
        assert tt.equal(transform(TENSOR), want), transform
    assert [x.shape[-1] for x in T.FiveCrop(8)(TENSOR)] == [8] * 5
    assert tt.equal(T.TenCrop((8, 9), vertical_flip=True)(TENSOR)[7], F.ten_crop(TENSOR, (8, 9), True)[7])
    assert tt.nn.Sequential(T.CenterCrop(10), T.Pad(1))(TENSOR).shape == (3, 12, 12)


def test_erasing() -> None:
    floats = TENSOR / 255
    erased = T.RandomErasing(1, (0.2, 0.2), (1, 1), value=[1.0, 2.0, 3.0])(floats)
    changed = (erased != floats).any(0)
    assert int(changed.sum()) == 20 * 20
    assert erased[:, changed].max(1).values.tolist() == [1.0, 2.0, 3.0]
    noise = T.RandomErasing(1, (0.2, 0.2), (1, 1), value="random")(floats.to("cuda"))
    assert noise.device.type == "cuda"
    assert int((noise.cpu() != floats).any(0).sum()) == 20 * 20
    assert T.RandomErasing(0)(floats) is floats
    mine = floats.clone()
    assert T.RandomErasing(1, inplace=True)(mine) is mine
    assert not tt.equal(mine, floats)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_batches_and_labels_are_mixed(device: str) -> None:
    images, labels = tt.arange(4.0, device=device).reshape(4, 1, 1, 1).expand(4, 2, 8, 10), tt.arange(4, device=device)
    tt.manual_seed(3)
    for _ in range(5):
        mixed, probabilities = v2.MixUp(num_classes=4)(images, labels)
        share = probabilities.diagonal()
        assert np.allclose(mixed[:, 0, 0, 0].cpu().numpy(), (share * labels + (1 - share) * labels.roll(1, 0)).cpu().numpy(), atol=1e-6)
        assert np.allclose(probabilities.sum(1).cpu().numpy(), 1)
        cut, probabilities = v2.CutMix(alpha=2.0, num_classes=4)((images, labels))
        own = (cut[:, 0] == labels.reshape(4, 1, 1)).float().mean(dim=(1, 2))
        assert np.allclose(own.cpu().numpy(), probabilities.diagonal().cpu().numpy(), atol=1e-6)
        assert set(cut[1].unique().tolist()) <= {0.0, 1.0}
    given = one_hot(labels)
    tt.manual_seed(3)
    first = v2.MixUp()(images, given)
    tt.manual_seed(3)
    again = v2.MixUp(num_classes=4)(images, labels)
    assert tt.equal(first[1], again[1])
    assert v2.MixUp(num_classes=4)((images * 50).to(tt.uint8), labels)[0].dtype is tt.uint8


def one_hot(labels: tt.Tensor) -> tt.Tensor:
    return tt.nn.functional.one_hot(labels, 4)


def test_policies_are_the_papers() -> None:
    for policy in T.AutoAugmentPolicy:
        pairs = T.AutoAugment(policy).policies
        assert len(pairs) == 25
        for name, p, magnitude in [step for pair in pairs for step in pair]:
            assert 0 <= p <= 1
            assert (magnitude is None) == (name in ("AutoContrast", "Equalize", "Invert"))
    assert T.AutoAugment().policies[0] == (("Posterize", 0.4, 8), ("Rotate", 0.6, 9))
    assert T.AutoAugment(T.AutoAugmentPolicy.SVHN).policies[24] == (("ShearX", 0.7, 2), ("Invert", 0.1, None))


def test_magnitudes() -> None:
    from tritensor.vision.transforms.autoaugment import apply_operation, make_operations, make_space, standard_space

    operations = make_operations(F)

    def run(*how: Any) -> tt.Tensor:
        return apply_operation(operations, TENSOR, *how)

    space = standard_space(31, 40, 331)
    assert math.isclose(space["ShearX"][0][-1], 0.3, rel_tol=1e-6)  # type: ignore[index]
    assert math.isclose(space["TranslateX"][0][-1], 150.0, rel_tol=1e-6)  # type: ignore[index]
    assert space["Posterize"][0].tolist() == [8] * 4 + [7] * 8 + [6] * 7 + [5] * 8 + [4] * 4  # type: ignore[union-attr]
    assert space["Solarize"][0][[0, -1]].tolist() == [255.0, 0.0]  # type: ignore[index]
    assert make_space(10, 1, 1, 1, 1, 1, (4, 4))["Posterize"][0].tolist() == [4, 4, 3, 3, 2, 2, 1, 1, 0, 0]  # type: ignore[union-attr]
    assert {*space, "Invert", "Identity"} == {*operations[0], *operations[1]}
    nearest = T.InterpolationMode.NEAREST
    assert tt.equal(run("TranslateX", 5.9, nearest, None)[:, :, 5:], TENSOR[:, :, :-5])
    assert tt.equal(run("TranslateY", -3.0, nearest, None)[:, :-3], TENSOR[:, 3:])
    sheared = run("ShearX", 0.3, nearest, [0.0] * 3)
    assert tt.equal(sheared[:, 0], TENSOR[:, 0])  # around the top left corner
    assert tt.equal(run("Rotate", 30.0, nearest, None), F.rotate(TENSOR, 30.0))
    assert tt.equal(run("Contrast", -0.5, nearest, None), F.adjust_contrast(TENSOR, 0.5))
    assert run("Identity", 1.0, nearest, None) is TENSOR


def test_batches_on_the_device() -> None:
    batch = tt.stack([TENSOR, TENSOR.flip(-1)])[:, :, :12, :12].to("cuda")
    for transform in (T.RandomResizedCrop(8), T.ColorJitter(0.3, 0.3, 0.3), T.AugMix(mixture_width=1, chain_depth=1)):
        found = transform(batch)
        assert found.device.type == "cuda"
        assert found.shape[:2] == (2, 3)
        assert found.dtype is tt.uint8


@pytest.mark.parametrize(
    ("make", "kind", "told"),
    [
        (lambda: T.Resize("9"), TypeError, "Resize: size is a str"),
        (lambda: T.Resize(1.5), TypeError, "Resize: size is a float"),
        (lambda: T.CenterCrop((1, 2, 3)), ValueError, r"CenterCrop: size \(1, 2, 3\)"),
        (lambda: T.Pad("1"), TypeError, "Pad: padding is a str"),
        (lambda: T.Pad(1, "red"), TypeError, "Pad: fill is a str"),
        (lambda: T.Pad(1, 0, "wrap"), ValueError, "Pad: padding_mode 'wrap'"),
        (lambda: T.Pad((1, 2, 3)), ValueError, "has 3 numbers"),
        (lambda: T.RandomCrop(60)(TENSOR), ValueError, r"size \(60, 60\) is larger than the image, \(40, 50\); pad_if_needed"),
        (lambda: T.RandomResizedCrop(9, 0.5), TypeError, "scale 0.5; give a sequence"),
        (lambda: T.RandomErasing(2), ValueError, "p 2; both are shares"),
        (lambda: T.RandomErasing(value="red"), ValueError, "value 'red'"),
        (lambda: T.RandomErasing(value=None), TypeError, "value is a NoneType"),
        (lambda: T.RandomErasing(1, value=[1, 2])(TENSOR), ValueError, "has 2 numbers and the image 3 channels"),
        (lambda: T.RandomRotation(-1), ValueError, "degrees -1 is below 0"),
        (lambda: T.RandomRotation((1, 2, 3)), ValueError, r"degrees \(1, 2, 3\) has 3 numbers"),
        (lambda: T.RandomRotation(1, fill="x"), TypeError, "fill 'x'"),
        (lambda: T.RandomAffine(1, (0.1, 2)), ValueError, "give shares of the width and the height"),
        (lambda: T.RandomAffine(1, scale=(0, 1)), ValueError, "give numbers above 0"),
        (lambda: T.ColorJitter(-1), ValueError, "brightness -1 is below 0"),
        (lambda: T.ColorJitter(hue=0.6), ValueError, "hue reaches from -0.6 to 0.6"),
        (lambda: T.ColorJitter(contrast="x"), TypeError, "contrast 'x'"),
        (lambda: T.GaussianBlur(4), ValueError, r"kernel_size \(4, 4\); give odd"),
        (lambda: T.GaussianBlur(3, (2, 1)), ValueError, r"sigma \(2, 1\)"),
        (lambda: T.Lambda(1), TypeError, "lambd is a int"),
        (lambda: T.RandomOrder(1), TypeError, "transforms is a int"),
        (lambda: T.RandomChoice([T.Pad(1)], 1), TypeError, "p is a int"),
        (lambda: T.RandomTransforms([])(1), NotImplementedError, "RandomChoice and RandomOrder have"),
        (lambda: T.AutoAugment("imagenet"), ValueError, "policy 'imagenet'; give a member of AutoAugmentPolicy"),
        (lambda: T.AugMix(11), ValueError, "severity 11; give 1 to 10"),
        (lambda: v2.MixUp()(tt.ones(2, 1, 4, 4), tt.arange(2)), ValueError, r"labels \(2,\) are numbers of classes; num_classes must be passed"),
        (lambda: v2.CutMix(num_classes=3)(tt.ones(2, 1, 4, 4), tt.ones(2, 4)), ValueError, r"labels \(2, 4\): the number of classes must match num_classes, 3"),
        (lambda: v2.CutMix(num_classes=3)(tt.ones(1, 4, 4), tt.arange(1)), ValueError, r"Expected a batched input with 4 dims, but got \(1, 4, 4\)"),
        (lambda: v2.MixUp(num_classes=3)(tt.ones(1, 1, 4, 4)), ValueError, r"labels should be index based, \(n,\)"),
        (lambda: T.ElasticTransform((1, 2, 3)), ValueError, "alpha .* has 3 numbers"),
    ],
)  # fmt: skip
def test_mistakes_are_named(make: Any, kind: type[Exception], told: str) -> None:
    with pytest.raises(kind, match=told):
        make()
    with pytest.warns(UserWarning, match="should be"):
        T.RandomResizedCrop(9, (1, 0.5))
