"""Slots of a tensor: their names leave every plain name to subclasses and to programs that hang attributes on tensors."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as tt
from tritensor.tensor.core import Tensor

PLAIN = ("array", "node", "path", "extra", "version", "tracked", "heading", "base", "value", "level")


@pytest.mark.parametrize("name", PLAIN)
def test_an_attribute_of_any_name_is_the_programs_own(name: str) -> None:
    """On a parameter, on a view of it, and after both have been through a graph."""
    p = tt.nn.Parameter(tt.ones(2, 3))
    view = p[0]
    for t in (p, view):
        setattr(t, name, "own")
    (p * 2).sum().backward()
    with tt.no_grad():
        p.mul_(2)
    assert getattr(p, name) == getattr(view, name) == "own"
    assert view.tolist() == [2, 2, 2]
    assert p.grad is not None


def test_a_subclass_defines_methods_of_any_name() -> None:
    """As MONAI's MetaTensor does `array`."""
    own = type("Own", (Tensor,), {name: property(lambda self: "own") for name in PLAIN})
    x = tt.ones(2, 3).as_subclass(own).requires_grad_()
    y = (x.t() @ x).exp().sum()
    y.backward()
    assert type(y) is own
    assert y.path == x.array == "own"
    assert np.isfinite(x.grad.numpy()).all()


def test_public_slots_there_are_none() -> None:
    assert [name for name in Tensor.__slots__ if not name.startswith("_")] == []
