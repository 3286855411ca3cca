"""The gate for scans of rows in parts: every scan forwards and backwards, parts of one step and of several, ragged ends, what is no number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor.kernels  # noqa: F401  (fills the table)
from tests.kernels.test_tiles import GPU, findings, rows_of
from tritensor.kernels.parts.launch_rules import forced
from tritensor.kernels.parts.rows.row_tiles import RowTile
from tritensor.kernels.parts.rows.scan_parts import PROGRAMS, parts_rule
from tritensor.ops.array import from_host, to_host
from tritensor.ops.table import Sample, registry
from tritensor.testing.questions.cases import Case
from tritensor.testing.questions.forward import forward


@pytest.mark.crossed
@pytest.mark.parametrize("parts", [1, 2, 3, 64])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("shape", "dim"), [((2, 131), 1), ((131, 3), 0), ((2, 67, 3), 1), ((1, 1), 1)])
def test_a_cumsum_in_parts(shape: tuple[int, ...], dim: int, reverse: bool, parts: int) -> None:
    with forced(cumsum=RowTile(2, 16, False, 4), scan_parts=parts):
        assert not findings("cumsum", Sample(rows_of(*shape), dim=dim, reverse=reverse))
        whole = np.random.default_rng(7).integers(-50, 50, shape)
        found = to_host(registry["cumsum"].forward(from_host(whole, GPU), dim=dim, reverse=reverse))  # type: ignore[misc]
        assert np.array_equal(found, registry["cumsum"].cpu(whole, dim=dim, reverse=reverse))


SCANNED: dict[str, dict[str, Any]] = {
    "cumprod": {},
    "logcumsumexp": {},
    "cummax": {},
    "cummin": {},
    "linear_scan": {"reverse": False},
    "linear_scan reversed": {"reverse": True},
}


@pytest.mark.crossed
@pytest.mark.parametrize("parts", [1, 2, 3, 64])
@pytest.mark.parametrize("name", list(SCANNED))
@pytest.mark.parametrize(("shape", "dim"), [((2, 131), 1), ((131, 3), 0), ((2, 67, 3), 1), ((1, 1), 1)])
def test_a_scan_in_parts(shape: tuple[int, ...], dim: int, name: str, parts: int) -> None:
    tile, x = RowTile(2, 16, False, 4), rows_of(*shape)
    inputs = (np.tanh(x), x[::-1].copy()) if name.startswith("linear_scan") else (1 + x / 8,) if name == "cumprod" else (np.round(2 * x),)
    sample = Sample(*inputs, dim=dim, **SCANNED[name])
    with forced(cumprod=tile, logcumsumexp=tile, cummax=tile, linear_scan=tile, scan_parts=parts):
        assert not findings(name.split()[0], sample, "bfloat16" if parts in (2, 64) else "float32")


@pytest.mark.parametrize("parts", [3, 64])
def test_what_is_no_number_goes_on_through_the_parts(parts: int) -> None:
    """NaN stays, -inf and equals go on, a zero ends a product that overflows, whichever part they stand in."""
    tile = RowTile(1, 16, False, 4)
    x = np.round(2 * rows_of(4, 131))
    x[0, 20] = x[0, 90] = np.nan
    x[1, :70] = -np.inf
    x[2, 40:] = -5.0
    x[3] = 1e30
    x[3, 100] = 0
    with forced(cumprod=tile, logcumsumexp=tile, cummax=tile, scan_parts=parts):
        for name in ("cummax", "cummin", "logcumsumexp"):
            assert not findings(name, Sample(x[:3], dim=1, smooth=False))
        assert not forward(Case(registry["cumprod"], 0, Sample(x, dim=1, smooth=False), "float32", "plain", GPU))
    weights, added = np.full((1, 131), 1e30), np.zeros((1, 131))
    weights[0, 100] = 0
    added[0, 110] = 1e-30
    with forced(linear_scan=tile, scan_parts=parts):
        found = registry["linear_scan"].forward(*(from_host(a, GPU) for a in (weights, added)), dim=1)  # type: ignore[misc]
    want = np.zeros(131)
    with np.errstate(over="ignore"):
        for i in range(110, 131):
            want[i] = weights[0, i] * want[i - 1] + added[0, i]
    np.testing.assert_allclose(to_host(found)[0], want, rtol=1e-12)


def test_long_rows_are_summed_in_parts_and_many_rows_are_not() -> None:
    assert parts_rule(1, 1 << 24, 512) == PROGRAMS
    assert parts_rule(PROGRAMS, 1 << 24, 512) == 1
    assert parts_rule(1, 2047, 512) == 1
    assert parts_rule(100, 1 << 24, 512) * 100 >= PROGRAMS
