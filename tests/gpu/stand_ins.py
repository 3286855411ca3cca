"""The examples where what they draw with or learn from is not installed: stand-ins for tqdm, matplotlib and scikit-learn."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np


def glyphs() -> Any:
    """1,797 images of 8 x 8 of ten different shapes, shifted and noisy, with their labels: sklearn's digits in form."""
    rng = np.random.default_rng(11)
    shapes = rng.random((10, 6, 6)) < 0.45
    target = rng.integers(0, 10, 1797)
    images = np.zeros((1797, 8, 8))
    for image, label, (down, right) in zip(images, target, rng.integers(0, 3, (1797, 2)), strict=True):
        image[down : down + 6, right : right + 6] = 14.0 * shapes[label]
    return types.SimpleNamespace(images=np.clip(images + rng.normal(0, 1.5, images.shape), 0, 16), target=target)


class _Bar(contextlib.nullcontext[Any]):
    """tqdm's bar where it is not installed: draws nothing."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(self)

    def update(self, n: int) -> None:
        self.n = n

    def set_description(self, text: str, refresh: bool = True) -> None:
        self.text = text


_STAND_INS: dict[str, dict[str, Any]] = {
    "tqdm": {"tqdm": _Bar},
    "matplotlib": {},
    "matplotlib.pyplot": {},
    "sklearn": {},
    "sklearn.datasets": {"load_digits": glyphs},
}


@contextlib.contextmanager
def example(name: str) -> Iterator[Any]:
    """A module of examples/, with stand-ins for the extras that this machine lacks."""
    missing = {n for n in ("tqdm", "matplotlib", "sklearn") if importlib.util.find_spec(n) is None}
    added = {}
    for full, members in _STAND_INS.items():
        if full.partition(".")[0] in missing:
            added[full] = types.ModuleType(full)
            vars(added[full]).update(members)
    sys.modules.update(added)
    try:
        yield importlib.import_module(f"examples.{name}")
    finally:
        for full in added:
            del sys.modules[full]
