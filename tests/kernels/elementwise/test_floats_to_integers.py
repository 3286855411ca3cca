"""Floats that an integer cannot hold, NaN among them, become the same integer on every device, in every layout, through every door."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tritensor.kernels.parts.cpu import float_conversions

NAN, INF = float("nan"), float("inf")
LEAST_32, LEAST_64 = -(2**31), -(2**63)
# value: as int32, as int64, as uint8, as int16, as uint32, as uint64; float32 and float64 hold each
TABLE: dict[float, tuple[int, int, int, int, int, int]] = {
    NAN: (LEAST_32, LEAST_64, 0, 0, 0, 2**63),
    INF: (LEAST_32, LEAST_64, 0, 0, 0, 0),
    -INF: (LEAST_32, LEAST_64, 0, 0, 0, 2**63),
    -1.0: (-1, -1, 255, -1, 2**32 - 1, 2**64 - 1),
    -1.5: (-1, -1, 255, -1, 2**32 - 1, 2**64 - 1),
    -0.5: (0, 0, 0, 0, 0, 0),
    256.0: (256, 256, 0, 256, 256, 256),
    300.75: (300, 300, 44, 300, 300, 300),
    40000.0: (40000, 40000, 64, -25536, 40000, 40000),
    -129.0: (-129, -129, 127, -129, 2**32 - 129, 2**64 - 129),
    2.0**31: (LEAST_32, 2**31, 0, 0, 2**31, 2**31),
    -(2.0**31): (LEAST_32, LEAST_32, 0, 0, 2**31, 2**64 - 2**31),
    2.0**32 + 2.0**12: (LEAST_32, 2**32 + 2**12, 0, 0, 2**12, 2**32 + 2**12),
    2.0**63: (LEAST_32, LEAST_64, 0, 0, 0, 2**63),
    -(2.0**63): (LEAST_32, LEAST_64, 0, 0, 0, 2**63),
    1e20: (LEAST_32, LEAST_64, 0, 0, 0, 0),
    -1e20: (LEAST_32, LEAST_64, 0, 0, 0, 2**63),
}
TYPES = (tt.int32, tt.int64, tt.uint8, tt.int16, tt.uint32, tt.uint64)


def expected(i: int) -> list[int]:
    return [row[i] for row in TABLE.values()]


def values(dtype: Any = tt.float32, on: str = "cpu", times: int = 1) -> Any:
    return tt.tensor(list(TABLE) * times, dtype=dtype).to(on)


@pytest.mark.parametrize("on", ["cpu", "cuda"])
@pytest.mark.parametrize("dtype", [tt.float32, tt.float64], ids=str)
@pytest.mark.parametrize("i", range(len(TYPES)), ids=lambda i: str(TYPES[i]))
def test_a_cast(i: int, dtype: Any, on: str) -> None:
    kind, right = TYPES[i], expected(i)
    assert values(dtype, on).to(kind).tolist() == right
    assert values(dtype, on, 80).to(kind).tolist() == right * 80
    assert tt.stack([values(dtype, on)] * 2, 1)[:, 0].to(kind).tolist() == right
    assert [x.to(kind).item() for x in values(dtype, on)] == right


@pytest.mark.parametrize("on", ["cpu", "cuda"])
@pytest.mark.parametrize("i", range(len(TYPES)), ids=lambda i: str(TYPES[i]))
def test_other_doors(i: int, on: str) -> None:
    kind, right = TYPES[i], expected(i)
    n = len(right)
    assert tt.zeros(n, dtype=kind, device=on).copy_(values(on=on)).tolist() == right
    x = tt.zeros(2, n, dtype=kind, device=on)
    x[1] = values(on=on)
    assert x.tolist() == [[0] * n, right]
    x[:, 0] = values(on=on)[:2]
    assert x[:, 0].tolist() == right[:2]


@pytest.mark.parametrize("on", ["cpu", "cuda"])
def test_narrow_floats_and_truth(on: str) -> None:
    for dtype in (tt.float16, tt.bfloat16):
        x = tt.tensor([NAN, INF, -INF, -1.0, 300.0], dtype=dtype, device=on)
        assert x.int().tolist() == [LEAST_32, LEAST_32, LEAST_32, -1, 300]
        assert x.to(tt.uint8).tolist() == [0, 0, 0, 255, 44]
        assert x.long().tolist() == [LEAST_64, LEAST_64, LEAST_64, -1, 300]
    assert tt.tensor([NAN, INF, -0.5, 0.0, -0.0], device=on).bool().tolist() == [True, True, True, False, False]


def test_a_processor_that_goes_to_the_nearest_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is computed where the processor's own conversions are others is the same."""
    monkeypatch.setattr(float_conversions, "_as_x86", lambda: False)
    for i, kind in enumerate(TYPES):
        for dtype in (np.float32, np.float64):
            assert float_conversions.as_integers(np.array(list(TABLE), dtype), kind.numpy).tolist() == expected(i)
