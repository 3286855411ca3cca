"""Tensors that say what they are: what they are made of, what ops give of them, and what goes along."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import PIL.Image
import pytest

import tritensor as tt
from tritensor.vision import tv_tensors as tv

BOXES = tv.BoundingBoxes([[1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 5.0, 6.0]], format="xyxy", canvas_size=(10, 20))


def facts(x: Any) -> tuple[Any, ...]:
    return type(x), x.format, x.canvas_size, x.clamping_mode


OWN = (tv.BoundingBoxes, tv.BoundingBoxFormat.XYXY, (10, 20), "soft")


def test_ops_give_plain_tensors_but_those_that_change_no_value() -> None:
    assert facts(BOXES) == OWN
    for made in (BOXES + 1, BOXES[0], BOXES.float(), BOXES.sum(), tt.stack([BOXES, BOXES]), tt.ones(1).to(BOXES)):
        assert type(made) is tt.Tensor
    for made in (
        BOXES.clone(),
        BOXES.to(tt.float64),
        BOXES.detach(),
        copy.deepcopy(BOXES),
        copy.copy(BOXES),
        pickle.loads(pickle.dumps(BOXES)),
    ):
        assert facts(made) == OWN
    changed = tv.Image(tt.ones(3, 4, 4))
    assert type(changed.mul_(2)) is tt.Tensor
    assert type(changed) is tv.Image
    assert changed.tolist() == tt.full((3, 4, 4), 2.0).tolist()


def test_all_ops_keep_the_class_where_that_is_asked_for() -> None:
    with tv.set_return_type("TVTensor"):
        assert facts(BOXES + 1) == facts(BOXES[0]) == OWN
        assert {type(part) for part in BOXES.max(1)} == {tv.BoundingBoxes}
        assert type(tv.Image(tt.ones(3, 4, 4)) * 2) is tv.Image
        assert type(BOXES.shape) is tt.Size
    assert type(BOXES + 1) is tt.Tensor
    with pytest.raises(ValueError, match="must be 'TVTensor' or 'Tensor', got image"):
        tv.set_return_type("image")


def test_wrapping_takes_facts_along() -> None:
    made = tv.wrap(tt.zeros(1, 4), like=BOXES, format="XYWH", canvas_size=(3, 4))
    assert facts(made) == (tv.BoundingBoxes, tv.BoundingBoxFormat.XYWH, (3, 4), "soft")
    points = tv.KeyPoints([1.0, 2.0], canvas_size=(5, 6))
    assert points.shape == (1, 2)
    assert tv.wrap(tt.zeros(2, 3, 2), like=points).canvas_size == (5, 6)

    class Mine(tv.TVTensor):
        """A program's own."""

    assert type(tv.wrap(tt.ones(2), like=tt.ones(1).as_subclass(Mine))) is Mine


def test_what_they_are_made_of() -> None:
    pixels = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    assert tv.Image(PIL.Image.fromarray(pixels)).tolist() == pixels.transpose(2, 0, 1).tolist()
    assert tv.Image([[1, 2], [3, 4]]).shape == (1, 2, 2)
    assert tv.Mask(PIL.Image.fromarray(pixels[:, :, 0])).shape == (1, 2, 4)
    assert tv.Image(tt.rand(3, 2, 2), requires_grad=True, dtype=tt.float64).requires_grad
    assert tv.BoundingBoxes([1, 2, 3, 4], format=tv.BoundingBoxFormat.CXCYWH, canvas_size=(1, 1)).shape == (1, 4)
    source = tt.zeros(3, 2, 2)
    tv.Image(source)[0] = 1
    assert float(source.sum()) == 4  # memory is shared


def test_prints_show_the_facts() -> None:
    shown = "BoundingBoxes([[1, 2, 3, 4]], format=BoundingBoxFormat.XYXY, canvas_size=(5, 6), clamping_mode=hard)"
    made = tv.BoundingBoxes([[1, 2, 3, 4]], format="XYXY", canvas_size=(5, 6), clamping_mode="hard")
    assert repr(made) == str(made) == f"{made}" == shown
    assert str(tv.Image([[1]])) == "Image([[[1]]])"


def test_gradients_pass_through() -> None:
    x = tt.ones(3, 2, 2, requires_grad=True)
    (tv.Image(x) * 3).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == tt.full((3, 2, 2), 3.0).tolist()


def test_a_program_pays_only_from_its_first_on() -> None:
    program = """
import sys, tritensor as tt
from tritensor.vision import tv_tensors as tv
from tritensor.vision.transforms import v2
tt.ones(2) + v2.Identity()(tt.ones(2))
assert "tritensor.tensor.overriding.interception" not in sys.modules
assert type(tt.ones(1, 2, 2).as_subclass(tv.Image).clone()) is tv.Image
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    ("call", "kind", "told"),
    [
        (lambda: tv.Image([1]), ValueError, "must be 2D or higher, got 1D"),
        (lambda: tv.Video(tt.ones(3, 2, 2)), ValueError, r"data \(3, 2, 2\) has 3 dimensions"),
        (lambda: tv.BoundingBoxes(tt.ones(1, 2, 4), format="XYXY", canvas_size=(1, 1)), ValueError, "Expected a 1D or 2D tensor, got 3D"),
        (lambda: tv.BoundingBoxes([1, 2, 3, 4], format="what", canvas_size=(1, 1)), KeyError, "WHAT"),
        (lambda: tv.BoundingBoxes([1, 2, 3, 4, 5], format="XYWHR", canvas_size=(1, 1)), ValueError, "Rotated .* floating point"),
        (
            lambda: tv.BoundingBoxes([1.0] * 4, format="XYXY", canvas_size=(1, 1), clamping_mode="all"),
            ValueError,
            "None, hard or soft, got all",
        ),
        (lambda: tv.KeyPoints(tt.ones(2, 3), canvas_size=(1, 1)), ValueError, r"shape \(\.\.\., 2\), not \(2, 3\)"),
        (lambda: tv.is_rotated_bounding_format(3), ValueError, "str or BoundingBoxFormat"),  # type: ignore[arg-type]
    ],
)
def test_mistakes_are_named(call: Callable[[], Any], kind: type[Exception], told: str) -> None:
    with pytest.raises(kind, match=told):
        call()
