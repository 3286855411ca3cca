"""Images to tensors and back, types of values, normalization: bit for bit what numpy says."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

import tritensor as tt
from tritensor.vision import transforms as T
from tritensor.vision.transforms import functional as F
from tritensor.vision.transforms import v2

RNG = np.random.default_rng(3)
BYTES = RNG.integers(0, 256, (5, 7, 3), dtype=np.uint8)
MODES = {
    "L": Image.fromarray(BYTES[:, :, 0]), "RGB": Image.fromarray(BYTES), "RGBA": Image.fromarray(RNG.integers(0, 256, (5, 7, 4), dtype=np.uint8)),
    "LA": Image.fromarray(np.ascontiguousarray(BYTES[:, :, :2])), "1": Image.fromarray(BYTES[:, :, 0] > 99), "I": Image.fromarray(BYTES[:, :, 0].astype(np.int32) * 1000),
    "F": Image.fromarray(BYTES[:, :, 0].astype(np.float32) / 3), "I;16": Image.fromarray(BYTES[:, :, 0].astype(np.uint16)), "CMYK": Image.fromarray(BYTES).convert("CMYK"),
}  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
def test_of_images(mode: str) -> None:
    image = MODES[mode]
    assert image.mode == mode
    values = np.array(image)
    first = values[None] if values.ndim == 2 else values.transpose(2, 0, 1)
    raw = F.pil_to_tensor(image)
    assert np.array_equal(raw.numpy(), first)
    assert raw.numpy().dtype == values.dtype
    found = F.to_tensor(image)
    want = first.astype(np.float32) / np.float32(255) if values.dtype == np.uint8 else first.astype(np.float32) if mode == "1" else first
    assert np.array_equal(found.numpy(), want)
    assert found.dtype is (tt.float32 if values.dtype == np.uint8 or mode in "1F" else tt.int16 if mode == "I;16" else tt.int32)
    assert found.is_contiguous()


def test_of_arrays_and_of_other_default_types() -> None:
    assert np.array_equal(F.to_tensor(BYTES).numpy(), BYTES.transpose(2, 0, 1) / np.float32(255))
    assert F.to_tensor(BYTES[:, :, 0]).shape == (1, 5, 7)
    assert F.to_tensor(BYTES.astype(np.float64)).dtype is tt.float64
    try:
        for kind in (tt.float64, tt.bfloat16):
            tt.set_default_dtype(kind)
            assert F.to_tensor(BYTES).dtype is kind
            assert tt.equal(F.to_tensor(BYTES), tt.from_numpy(np.ascontiguousarray(BYTES.transpose(2, 0, 1))).to(kind) / 255)
    finally:
        tt.set_default_dtype(tt.float32)


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "LA", "I", "F"])
def test_there_and_back(mode: str) -> None:
    back = F.to_pil_image(F.pil_to_tensor(MODES[mode]), mode if mode == "F" else None)
    assert back.mode == mode
    assert back.tobytes() == MODES[mode].tobytes()
    if mode not in ("I", "F"):
        assert F.to_pil_image(F.to_tensor(MODES[mode])).tobytes() == MODES[mode].tobytes()
        assert F.to_pil_image(F.to_tensor(MODES[mode]).to("cuda")).tobytes() == MODES[mode].tobytes()


def test_pictures_of_floats_are_cut_off() -> None:
    assert np.array_equal(np.asarray(F.to_pil_image(tt.tensor([[0.0, 0.999, 1.0]]))), [[0, 254, 255]])
    assert F.to_pil_image(tt.rand(3, 4, 5).to(tt.bfloat16)).size == (5, 4)
    assert F.to_pil_image(BYTES, "YCbCr").tobytes() == BYTES.tobytes()
    deep = tt.tensor([[1, 300, 32767]], dtype=tt.int16)
    assert F.to_pil_image(deep).mode == "I;16"
    assert np.asarray(F.to_pil_image(deep)).tolist() == deep.tolist()
    assert repr(T.ToPILImage("L")) == "ToPILImage(mode=L)"


@pytest.mark.parametrize("source", ["uint8", "int8", "int16", "int32", "float32", "float64", "float16"])
@pytest.mark.parametrize("target", ["uint8", "int16", "int32", "int64", "float32", "float64"])
def test_types_keep_full_brightness(source: str, target: str) -> None:
    from_kind, to_kind = getattr(tt, source), getattr(tt, target)
    largest = {"uint8": 255, "int8": 127, "int16": 32767, "int32": 2**31 - 1, "int64": 2**63 - 1}
    x = tt.tensor([0, 1, largest.get(source, 1)], dtype=from_kind)
    if (source, target) in (("float32", "int32"), ("float32", "int64"), ("float64", "int64")):
        with pytest.raises(TypeError, match=f"{source} has fewer digits than {target}"):
            F.convert_image_dtype(x, to_kind)
        return
    found = F.convert_image_dtype(x, to_kind)
    assert found.dtype is to_kind
    if source.startswith("float") and source != "float16":
        assert int(found[2]) == largest.get(target, 1)
    elif source in largest and target in largest and largest[source] <= largest[target]:
        assert int(found[2]) == largest[source] * (largest[target] + 1) // (largest[source] + 1)
    elif source in largest and target.startswith("float"):
        assert float(found[2]) == 1.0
    assert T.ConvertImageDtype(to_kind)(x).dtype is to_kind


def test_normalize() -> None:
    x = tt.rand(2, 3, 4, 5)
    mean, std = [0.1, 0.2, 0.3], (0.5, 0.6, 0.7)
    shaped = [np.array(v, np.float32).reshape(3, 1, 1) for v in (mean, std)]
    want = (x.numpy() - shaped[0]) / shaped[1]
    before = x.clone()
    assert np.array_equal(F.normalize(x, mean, std).numpy(), want)
    assert tt.equal(x, before)
    assert np.array_equal(T.Normalize(tt.tensor(mean), tt.tensor(std))(x).numpy(), want)
    assert np.array_equal(F.normalize(x.to("cuda"), mean, std).cpu().numpy(), want)
    with tt.inference_mode():
        F.normalize(x, [0.5], [0.25])
    grown = x.clone().requires_grad_()
    F.normalize(grown, [0.5], [0.25]).sum().backward()
    assert bool((grown.grad == 4).all())
    assert F.normalize(x, mean, std, inplace=True) is x
    assert np.array_equal(x.numpy(), want)


def test_a_linear_map_of_all_pixels() -> None:
    matrix, mean = tt.rand(24, 24), tt.rand(24)
    x = tt.rand(5, 2, 3, 4)
    want = (x.numpy().reshape(5, 24) - mean.numpy()) @ matrix.numpy()
    assert np.allclose(T.LinearTransformation(matrix, mean)(x).numpy(), want.reshape(x.shape), rtol=1e-5)


def test_second_version() -> None:
    x = v2.ToImage()(MODES["RGB"])
    assert tt.equal(x, F.pil_to_tensor(MODES["RGB"]))
    assert tt.equal(v2.ToImage()(BYTES), x)
    assert tt.allclose(v2.ToDtype(tt.float32, scale=True)(x), F.to_tensor(MODES["RGB"]))
    assert tt.equal(v2.ToDtype(tt.float32)(x), x.float())
    assert v2.Identity()(x) is x


@pytest.mark.parametrize(
    ("call", "kind", "told"),
    [
        (lambda: F.to_tensor([1]), TypeError, "to_tensor: pic is a list"),
        (lambda: F.to_tensor(np.zeros(3)), ValueError, r"pic \(3,\) has 1 dimensions"),
        (lambda: F.pil_to_tensor(tt.ones(3)), TypeError, "pic is a Tensor; give a PIL image"),
        (lambda: F.to_pil_image("x"), TypeError, "pic is a str"),
        (lambda: F.to_pil_image(tt.ones(1, 1, 2, 2)), ValueError, r"pic \(1, 1, 2, 2\) has 4 dimensions"),
        (lambda: F.to_pil_image(tt.ones(5, 2, 2)), ValueError, "has 5 channels; an image has 1 to 4"),
        (lambda: F.to_pil_image(tt.ones(3, 2, 2), "L"), ValueError, "mode 'L' for uint8 with 3 channels; it can be 'RGB'"),
        (lambda: F.to_pil_image(tt.ones(3, 2, 2, dtype=tt.int64)), TypeError, "pic is int64 with 3 channels, which Pillow has no mode for"),
        (lambda: F.to_pil_image(tt.ones(3, 2, 2, dtype=tt.int16), "RGB"), TypeError, "pic is int16 with 3 channels"),
        (lambda: F.convert_image_dtype("x"), TypeError, "image is a str"),
        (lambda: F.normalize(MODES["L"], 0, 1), TypeError, "tensor is a Image; ToTensor makes one"),
        (lambda: F.normalize(tt.ones(1, 2, 2, dtype=tt.uint8), 0, 1), TypeError, "tensor is uint8; convert_image_dtype makes floats"),
        (lambda: F.normalize(tt.ones(2, 2), 0, 1), ValueError, r"tensor \(2, 2\) has 2 dimensions"),
        (lambda: F.normalize(tt.ones(1, 2, 2), [0.0], [0.0]), ValueError, r"std \[0.0\] is 0 in float32"),
        (lambda: T.LinearTransformation(tt.ones(2, 3), tt.ones(2)), ValueError, r"transformation_matrix \(2, 3\)"),
        (lambda: T.LinearTransformation(tt.ones(2, 2), tt.ones(2).double()), ValueError, "mean_vector tritensor.float64"),
        (lambda: T.LinearTransformation(tt.ones(2, 2), tt.ones(2))(tt.ones(1, 1, 3)), ValueError, "has 3 values an image and the matrix takes 2"),
    ],
)  # fmt: skip
def test_mistakes_are_named(call: object, kind: type[Exception], told: str) -> None:
    with pytest.raises(kind, match=told):
        call()  # type: ignore[operator]
