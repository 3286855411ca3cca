"""Calls of cross-entropy for tests and benchmarks."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.ops.table import Sample, Work


def samples(rng: np.random.Generator) -> list[Sample]:
    """Labels and probabilities, each reduction, weights, ignored rows, smoothing, extra dims, one unbatched row."""
    x, t = rng.normal(size=(5, 7)), rng.integers(0, 7, 5)
    ignored = t.copy()
    ignored[1] = ignored[3] = -100
    weight = 0.5 + rng.random(7)
    probs = rng.random((5, 7))
    plain: dict[str, Any] = {"ignore_index": -100, "label_smoothing": 0.0}
    return [
        Sample(x, t, None, reduction="mean", **plain),
        Sample(x, t.astype(np.int32), None, reduction="none", **plain),
        Sample(x, ignored, weight, reduction="mean", ignore_index=-100, label_smoothing=0.1),
        Sample(x, ignored, None, reduction="sum", ignore_index=-100, label_smoothing=0.2),
        Sample(x, t, weight, reduction="none", ignore_index=int(t[0]), label_smoothing=0.0),
        Sample(x, probs, None, reduction="mean", **plain),
        Sample(x, probs, weight, reduction="none", ignore_index=-100, label_smoothing=0.1),
        Sample(rng.normal(size=(2, 5, 3)), rng.integers(0, 5, (2, 3)), weight[:5], reduction="mean", **plain),
        Sample(rng.normal(size=(2, 5, 3)), rng.random((2, 5, 3)), None, reduction="sum", **plain),
        Sample(x[0], np.asarray(t[0]), None, reduction="mean", **plain),
        Sample(20 * rng.normal(size=(70, 3)), rng.integers(0, 3, 70), None, reduction="mean", smooth=False, **plain),
        Sample(rng.normal(size=(2, 4200)), rng.integers(0, 4200, 2), None, reduction="mean", smooth=False, **plain),
        Sample(
            rng.normal(size=(11, 67)), rng.integers(0, 67, 11), None, reduction="none", ignore_index=-100, label_smoothing=0.1, smooth=False
        ),
        Sample(rng.normal(size=(700, 2)), rng.integers(0, 2, 700), weight[:2], reduction="mean", smooth=False, **plain),
    ]


def sizes(rng: np.random.Generator) -> list[Sample]:
    """Rows of classes: a small classifier, two vocabularies."""
    return [
        Sample(rng.standard_normal(s), rng.integers(0, s[1], s[0]), None, reduction="mean", ignore_index=-100, label_smoothing=0.0)
        for s in ((64, 10), (2048, 32768), (512, 131072), (2048, 50257))
    ]


def work(x: Any, target: Any, weight: Any = None, **attrs: Any) -> Work:
    """Five operations an element, each read once."""
    return Work(5 * x.size, x.size * x.dtype.itemsize)
