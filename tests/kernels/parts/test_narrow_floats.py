"""float32 to float16 and float8 by integer arithmetic: the bits that numpy's own cast gives, of every kind of number."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tritensor.kernels.parts.cpu.float_conversions import _narrowed, converted


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn])
def test_bits_are_numpys(kind: type) -> None:
    rng = np.random.default_rng(0)
    values = np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float32)
    finite = values[np.isfinite(values)]
    middle = (finite[:-1].astype(np.float64) + finite[1:]) / 2  # ties between neighbours in float16
    bytes_ = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e5m2 if kind is np.float16 else kind).astype(np.float32)
    bytes_ = np.sort(bytes_[np.isfinite(bytes_)])
    ties = (bytes_[:-1] + bytes_[1:]) / 2
    near = np.concatenate([values, middle.astype(np.float32), bytes_, ties])
    near = near[np.isfinite(near)]
    near = np.concatenate([near, np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(-np.inf))])
    anything = rng.integers(0, 2**32, 200_000, dtype=np.uint32).view(np.float32)
    x = np.concatenate([near, anything, np.float32([np.inf, -np.inf, np.nan, 65519.99, 65520, 464, 464.01, 61439, 61440, -0.0])])
    dtype = np.dtype(kind)
    with np.errstate(all="ignore"):
        # what float8_e4m3fn cannot hold is NaN in numpy and its largest number here
        want = (np.clip(x, -448, 448) if kind is ml_dtypes.float8_e4m3fn else x).astype(dtype)
    for found in (_narrowed(x, dtype), converted(x, dtype)):  # by integers, and by machine code where there is such
        _same_numbers(found, want)


def _same_numbers(found: np.ndarray, want: np.ndarray) -> None:
    dtype = want.dtype
    number = ~np.isnan(want.astype(np.float32))
    bits = np.uint16 if dtype.itemsize == 2 else np.uint8
    np.testing.assert_array_equal(found.view(bits)[number], want.view(bits)[number])
    assert np.isnan(found.astype(np.float32)[~number]).all()
