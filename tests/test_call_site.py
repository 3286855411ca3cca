"""Callers that messages name: the function that the user's line called, and no wrapper that stands around it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tritensor as tt
from tritensor.ground import call_site
from tritensor.ground.errors import CaptureError


def refused(run: Callable[[], Any]) -> str:
    """What is said of something that a CUDA graph cannot hold."""
    with pytest.raises(CaptureError) as caught, tt.cuda.graph():
        run()
    return str(caught.value)


def test_a_refusal_names_what_was_called_through_the_door_and_a_grad_mode() -> None:
    x = tt.ones(3, device="cuda", requires_grad=True)
    x.grad = tt.ones(3, device="cuda")
    assert refused(lambda: tt.nn.utils.clip_grad_norm_([x], 1.0, error_if_nonfinite=True)).startswith("clip_grad_norm_ (")


def test_a_wrapper_is_known_by_its_mark_and_not_by_its_name() -> None:
    x = tt.ones(1, device="cuda")

    def around() -> Any:
        return inside()

    def inside() -> Any:
        return x.item()

    for f in (around, inside):  # as if they stood in the library
        f.__code__ = f.__code__.replace(co_filename=call_site.INSIDE + "inside.py")
    assert refused(lambda: around()).startswith("around (")
    call_site.wrapper(around)
    assert refused(lambda: around()).startswith("inside (")


def test_every_public_function_has_a_marked_door() -> None:
    doors = [f for f in (getattr(tt, name) for name in tt.__all__) if hasattr(f, "__wrapped__") and hasattr(f, "__code__")]
    assert len(doors) > 100
    assert not [f.__name__ for f in doors if f.__code__ not in call_site._wrappers]
    for name in ("exp", "floor", "atan2"):
        assert getattr(tt, name).__wrapped__.__code__.co_name == name
    assert tt.Tensor.squeeze_.__code__.co_name == "squeeze_"
