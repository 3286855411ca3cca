"""grid_sample at whole coordinates, at the image's border and at positions that are NaN: PyTorch 2.13's slopes, and no NaN where nothing takes part."""

from __future__ import annotations

import math
from typing import Any

import pytest

import tritensor as tt
from tritensor.nn import functional as F

NAN = math.nan
X = [[1.0, 3.0, 6.0], [10.0, 15.0, 21.0], [28.0, 36.0, 45.0]]  # differences to the right: 2 3, 5 6, 8 9; down: 9 12 15, 18 21 24


def gradients(x: Any, grid: list[list[float]], on: str, create: bool, **how: Any) -> tuple[Any, Any]:
    image = tt.tensor(x, device=on).reshape(1, 1, *(3,) * len(grid[0])).requires_grad_()
    at = tt.tensor(grid, device=on).reshape(1, *(1,) * (len(grid[0]) - 1), len(grid), len(grid[0])).requires_grad_()
    y = F.grid_sample(image, at, **how)
    found = tt.autograd.grad(y.sum(), (image, at), create_graph=create)
    return tuple(t.detach().cpu().reshape(s) for t, s in zip(found, ((3,) * len(grid[0]), (-1, len(grid[0]))), strict=True))  # type: ignore[return-value]


CASES = {  # padding and position: the slopes by (across, down), of cells one number apart (align_corners, three cells)
    ("zeros", -1.0, -1.0): (2.0, 9.0),
    ("zeros", 0.0, 0.0): (6.0, 21.0),
    ("zeros", 1.0, 1.0): (-45.0, -45.0),  # beyond the last cell lies 0
    ("zeros", 1.0, -1.0): (-6.0, 15.0),
    ("border", -1.0, -1.0): (0.0, 0.0),
    ("border", 0.0, 0.0): (6.0, 21.0),
    ("border", 1.0, 0.0): (0.0, 24.0),
    ("reflection", 1.0, 0.0): (0.0, 24.0),
    ("reflection", -1.0, 0.0): (0.0, 18.0),
}


@pytest.mark.parametrize("on", ["cpu", "cuda"])
@pytest.mark.parametrize("create", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_slopes_at_whole_coordinates(padding: str, create: bool, on: str) -> None:
    here = {at: slopes for (which, *at_), slopes in CASES.items() if which == padding for at in [tuple(at_)]}
    _, found = gradients(X, [list(at) for at in here], on, create, padding_mode=padding, align_corners=True)
    assert found.tolist() == [list(s) for s in here.values()]
    for at, right in here.items():  # alone, so that no neighbour is outside
        assert gradients(X, [list(at)], on, create, padding_mode=padding, align_corners=True)[1].tolist() == [list(right)]


@pytest.mark.parametrize("on", ["cpu", "cuda"])
@pytest.mark.parametrize("create", [False, True])
def test_slopes_at_the_last_layer_of_a_volume(create: bool, on: str) -> None:
    x = [[[100.0 * i + 10 * j + k * k + 1 for k in range(3)] for j in range(3)] for i in range(3)]
    for at, right in (((1.0, 1.0, 1.0), (-225.0,) * 3), ((0.0, 0.0, 1.0), (3.0, 10.0, -212.0)), ((-1.0, 0.0, 0.0), (1.0, 10.0, 100.0))):
        _, found = gradients(x, [list(at)], on, create, align_corners=True)
        assert found.tolist() == [list(right)]


@pytest.mark.parametrize("on", ["cpu", "cuda"])
@pytest.mark.parametrize("create", [False, True])
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # of inf - inf, in numpy
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_a_position_that_is_nan_leaves_the_image_alone(mode: str, create: bool, on: str) -> None:
    for bad in (NAN, math.inf, -1e20):
        for grid in ([[bad, 0.1], [0.0, 0.0]], [[0.1, bad], [0.0, 0.0]], [[bad, bad], [0.0, 0.0]]):
            dx, _ = gradients(X, grid, on, create, mode=mode, align_corners=True)
            assert dx.tolist() == [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]


@pytest.mark.parametrize("on", ["cpu", "cuda"])
@pytest.mark.parametrize("create", [False, True])
def test_a_cell_that_is_nan_leaves_slopes_alone_that_do_not_read_it(create: bool, on: str) -> None:
    x = [[NAN, 3.0, 6.0], *X[1:]]
    dx, slopes = gradients(x, [[0.5, 0.5], [1.0, 1.0], [2.5, 0.0]], on, create, align_corners=True)
    assert slopes.isfinite().all()
    assert dx.isfinite().all()


@pytest.mark.parametrize("on", ["cpu", "cuda"])
def test_a_gradient_that_is_nan_reaches_what_was_read(on: str) -> None:
    """At the last cell its right neighbour, of weight 0, would be the first of the next row."""
    image = tt.tensor(X, device=on).reshape(1, 1, 3, 3).requires_grad_()
    grid = tt.tensor([[[[1.0, -1.0], [-1.0, 1.0]]]], device=on)
    y = F.grid_sample(image, grid, align_corners=True)
    (dx,) = tt.autograd.grad(y, image, tt.tensor([NAN, 1.0], device=on).reshape(y.shape))
    assert dx.isnan().reshape(9).tolist() == [False, False, True] + [False] * 6
    assert dx[0, 0, 2, 0].item() == 1.0
