"""Samples on device cuda stay there, and become what they become on the CPU."""

from __future__ import annotations

import pytest

import tritensor as tt
from tritensor.vision import tv_tensors as tv
from tritensor.vision.transforms import v2

TRANSFORMS = [v2.RandomRotation((30, 30)), v2.ElasticTransform(20.0, 1.0), v2.Pad(2)]  # each on a way of its own


@pytest.mark.parametrize("transform", TRANSFORMS, ids=lambda t: type(t).__name__)
def test_a_sample_on_the_device(transform: v2.Transform) -> None:
    image = tt.arange(768).reshape(3, 16, 16).to(tt.uint8)
    plain = tv.BoundingBoxes([[1.0, 2.0, 9.0, 12.0]], format="XYXY", canvas_size=(16, 16))
    turned = tv.BoundingBoxes([[8.0, 8.0, 5.0, 3.0, 20.0]], format="CXCYWHR", canvas_size=(16, 16))
    points = tv.KeyPoints([[3.0, 4.0]], canvas_size=(16, 16))
    for boxes in (plain, turned):
        given = (tv.Image(image), boxes, points)
        tt.manual_seed(0)
        here = transform(given)
        tt.manual_seed(0)
        there = transform(tuple(x.to("cuda") for x in given))
        for x, y in zip(here, there, strict=True):
            assert (type(x), y.device.type) == (type(y), "cuda")
            assert float((x.as_subclass(tt.Tensor).float() - y.as_subclass(tt.Tensor).cpu().float()).abs().max()) <= (
                1 if x is here[0] else 1e-3
            )
