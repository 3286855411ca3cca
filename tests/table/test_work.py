"""Work and memory traffic that ops claim, on which every benchmark's roofline rests: counted by hand for small arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor.kernels  # noqa: F401  (fills the table)
from tritensor.ops.table import Work, registry

F32, I64 = np.float32, np.int64
CONV: dict[str, Any] = {"stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 1}
POOL: dict[str, Any] = {"kernel_size": (2, 2), "stride": (2, 2), "padding": (0, 0), "ceil_mode": False}


def a(*shape: int, dtype: Any = F32) -> np.ndarray:
    return np.zeros(shape, dtype)


# op: inputs, attributes, operations, bytes
COUNTED: list[tuple[str, tuple[Any, ...], dict[str, Any], int, int]] = [
    ("conv2d", (a(1, 2, 5, 5), a(3, 2, 3, 3)), CONV, 2 * (3 * 3 * 3) * (2 * 3 * 3), 4 * (50 + 54 + 27)),
    ("embedding", (a(10, 4), a(3, dtype=I64)), {}, 0, 3 * 8 + 2 * 12 * 4),
    ("cross_entropy", (a(2, 3), a(2, dtype=I64)), {}, 30, 24),
    ("nll_loss", (a(2, 3), a(2, dtype=I64)), {"reduction": "mean", "ignore_index": -100}, 4, 2 * 8 + (2 + 1) * 4),
    ("nll_loss", (a(2, 3, 5), a(2, 5, dtype=I64)), {"reduction": "none", "ignore_index": -100}, 20, 10 * 8 + (10 + 10) * 4),
    ("mse_loss", (a(6), a(6)), {}, 18, 48),
    ("layer_norm", (a(2, 3),), {"axes": 1}, 48, 48),
    ("rms_norm", (a(2, 3),), {"axes": 1}, 30, 48),
    ("batch_norm", (a(2, 3),), {}, 48, 72),
    ("batch_norm_by", (a(2, 3), a(3), a(3)), {}, 12, 48),
    ("group_norm", (a(2, 4),), {"groups": 2}, 64, 96),
    ("batch_norm_activation", (a(2, 3), a(3), a(3)), {}, 54, 72),
    ("batch_norm_activation", (a(2, 3), a(3), a(3), a(2, 3)), {}, 60, 96),
    ("batch_norm_by_activation", (a(2, 3), a(3), a(3), a(3), a(3), a(2, 3)), {}, 24, 72),
    ("group_norm_activation", (a(2, 4), a(4), a(4)), {"groups": 2}, 72, 96),
    ("softmax", (a(2, 3),), {"dim": 1}, 30, 48),
    ("log_softmax", (a(2, 3),), {"dim": 1}, 30, 48),
    ("adam_numbers", (a(4, 7), a(4, 1)), {"lr": 0.1, "beta1": 0.9, "beta2": 0.9, "eps": 1e-8}, 400, (7 + 2) * 16),
    ("sgd_step", (a(6), a(6), a(2)), {}, 24, 3 * 24),
    ("momentum_step", (a(6), a(6), a(6), a(4)), {}, 48, 5 * 24),
    ("adam_step", (a(6), a(6), a(6), a(6), a(7)), {}, 72, 7 * 24),
    ("amsgrad_step", (a(6), a(6), a(6), a(6), a(6), a(7)), {}, 96, 9 * 24),
    ("matmul", (a(2, 3), a(3, 4)), {}, 48, 4 * (6 + 12 + 8)),
    ("matmul", (a(5, 2, 3), a(3, 4)), {}, 240, 4 * (30 + 12 + 40)),
    ("linear", (a(2, 3), a(4, 3)), {}, 48, 4 * (6 + 12 + 8)),
    ("linear", (a(2, 3), a(4, 3), a(4)), {}, 56, 4 * (6 + 12 + 8)),
    ("dropout", (a(6),), {"p": 0.5, "seed": 0, "offset": 0}, 12, 48),
    ("sum", (a(2, 3),), {"dim": None}, 6, 24),
    ("mean", (a(2, 3),), {"dim": None}, 6, 24),
    ("max_pool2d", (a(1, 2, 4, 4),), POOL | {"dilation": (1, 1)}, 8 * 4, 4 * (32 + 8)),
    ("max_pool2d", (a(1, 1, 5, 5),), POOL | {"stride": (1, 1), "dilation": (2, 2)}, 9 * 4, 4 * (25 + 9)),
    ("avg_pool2d", (a(1, 2, 4, 6),), POOL | {"count_include_pad": True}, 12 * 4, 4 * (48 + 12)),
    ("add", (a(2, 3), a(2, 3)), {}, 6, 3 * 24),
    ("exp", (a(2, 3, dtype=np.float64),), {}, 6, 2 * 48),
]  # fmt: skip


@pytest.mark.parametrize(("name", "inputs", "attrs", "operations", "moved"), COUNTED, ids=[f"{r[0]}-{k}" for k, r in enumerate(COUNTED)])
def test_work(name: str, inputs: tuple[Any, ...], attrs: dict[str, Any], operations: int, moved: int) -> None:
    work = registry[name].work
    assert work is not None
    assert work(*inputs, **attrs) == Work(operations, moved)
