"""Reductions that walk: argmax and argmin without comparing places, moments by Welford's update, over one tile and many, split among programs or not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tritensor.kernels.parts.axes import Blocks
from tritensor.ops.tuning.config_choice import forced

SHAPES = [(3, 7), (2, 150), (3, 17, 3)]  # one tile; many; with an axis of two steps


def on_gpu(x: np.ndarray) -> Any:
    return tt.tensor(x, device="cuda")


@pytest.mark.crossed
@pytest.mark.parametrize("tile", [Blocks(1, 64), Blocks(4, 16), Blocks(2, 32, 3)], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_first_of_equals_and_nan_wherever_it_stands(shape: tuple[int, ...], tile: Blocks) -> None:
    rng = np.random.default_rng(7)
    few = rng.integers(-2, 3, shape).astype(np.float32)  # equals in every row
    nan = few.copy()
    nan.reshape(-1)[:: few.size // 3] = np.nan
    cases = [few, nan, np.full(shape, -np.inf, np.float32), np.full(shape, np.iinfo(np.int32).min, np.int32), few > 0]
    with forced(reduction=tile):
        for x in cases:
            for dim, name in ((None, "argmax"), (-1, "argmin"), (0, "argmax")):
                found = getattr(on_gpu(x), name)(dim).cpu().numpy()
                assert np.array_equal(found, getattr(np, name)(x, axis=dim)), (name, x.dtype, dim)
            values, places = on_gpu(x).max(-1)
            assert np.array_equal(places.cpu().numpy(), np.argmax(x, -1))
            assert np.array_equal(
                values.cpu().numpy(), np.take_along_axis(x, np.argmax(x, -1)[..., None], -1)[..., 0], equal_nan=x.dtype.kind == "f"
            )


@pytest.mark.crossed
@pytest.mark.parametrize("tile", [Blocks(1, 64), Blocks(4, 16), Blocks(2, 32, 3)], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_moments_far_from_zero(shape: tuple[int, ...], tile: Blocks) -> None:
    """A spread of 1 around 1,000: what a sum of squares would lose. An outlier stands first, which what counts from it would not bear."""
    rng = np.random.default_rng(3)
    x = (1000 + rng.standard_normal(shape)).astype(np.float32)
    x.reshape(-1)[0] = -1e4
    right = x.astype(np.float64)
    channels = np.moveaxis(x.reshape(shape[0], shape[1], -1), 1, 0)
    with forced(reduction=tile):
        np.testing.assert_allclose(on_gpu(x).var(-1).cpu().numpy(), right.var(-1, ddof=1), rtol=2e-4)
        np.testing.assert_allclose(on_gpu(x).std().item(), right.std(ddof=1), rtol=2e-4)
        _, mean, var = tt.ops.batch_norm(on_gpu(x), eps=1e-5)
    wide = channels.astype(np.float64).reshape(shape[1], -1)
    np.testing.assert_allclose(mean.cpu().numpy(), wide.mean(1), rtol=1e-5)
    np.testing.assert_allclose(var.cpu().numpy(), wide.var(1), rtol=2e-3)


def test_a_row_of_nothing_and_of_one() -> None:
    assert tt.zeros(2, 0, device="cuda").var(1).isnan().all()
    assert tt.ones(3, 1, device="cuda").var(1, correction=0).tolist() == [0.0, 0.0, 0.0]
    assert tt.ones(3, 1, device="cuda").argmax(1).tolist() == [0, 0, 0]
