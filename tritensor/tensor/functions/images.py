"""Sampling at the positions of a grid, and grids of affine maps: grid_sampler, affine_grid_generator."""

from __future__ import annotations

from collections.abc import Sequence

from tritensor.ground.errors import ArgumentError, DTypeError, ShapeError
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import function, rename_function

MODES = ("bilinear", "nearest", "bicubic")
PADDINGS = ("zeros", "border", "reflection")


def sample_grid(name: str, x: Tensor, grid: Tensor, mode: str, padding_mode: str, align_corners: bool) -> Tensor:
    """x at the positions of a grid, refusing a grid that is no tensor of x's kind."""
    for label, t in (("input", x), ("grid", grid)):
        if t.dtype.kind != "float":
            raise DTypeError(f"{name}: {label} is {t.dtype.name}; {name} takes float types; cast it with .to(float32)")
    return ops.grid_sample(x, grid, mode=mode, padding_mode=padding_mode, align_corners=bool(align_corners))


def _mode_by_number(name: str, what: str, number: int, names: tuple[str, ...]) -> str:
    if not isinstance(number, int) or not 0 <= number < len(names):
        raise ArgumentError(f"{name}: {what} is {number!r}; give 0 to {len(names) - 1}: {', '.join(names)}")
    return names[number]


def _sample_by_numbers(name: str, x: Tensor, grid: Tensor, mode: int, padding: int, align_corners: bool, dims: tuple[int, ...]) -> Tensor:
    if x.ndim not in dims:
        raise ShapeError(f"{name}: input {tuple(x.shape)} has {x.ndim} dimensions; it takes {' or '.join(map(str, dims))}")
    found = _mode_by_number(name, "interpolation_mode", mode, MODES), _mode_by_number(name, "padding_mode", padding, PADDINGS)
    return sample_grid(name, x, grid, *found, align_corners)


def _publish_sampler(name: str, doc: str, dims: tuple[int, ...]) -> None:
    def call(x: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor:
        return _sample_by_numbers(name, x, grid, interpolation_mode, padding_mode, align_corners, dims)

    function(method=False)(rename_function(call, name, doc))


_publish_sampler("grid_sampler", "grid_sample with its modes by number: bilinear, nearest, bicubic; zeros, border, reflection.", (4, 5))
_publish_sampler("grid_sampler_2d", "grid_sampler of images (batch, c, h, w).", (4,))
_publish_sampler("grid_sampler_3d", "grid_sampler of volumes (batch, c, d, h, w).", (5,))


def make_affine_grid(name: str, theta: Tensor, size: Sequence[int], align_corners: bool) -> Tensor:
    """The grid (batch, *axes, n) of n by n + 1 matrices theta (batch, n, n + 1)."""
    if theta.dtype.kind != "float":
        raise DTypeError(f"{name}: theta is {theta.dtype.name}; {name} takes float types; cast it with .to(float32)")
    axes = len(size) - 2
    given = f"{name}: theta {tuple(theta.shape)}, size {tuple(size)}"
    if axes not in (2, 3):
        raise NotImplementedError(f"{given}: size must be (batch, c, h, w) or (batch, c, d, h, w)")
    if tuple(theta.shape) != (size[0], axes, axes + 1):
        raise ShapeError(f"{given}: theta must be {(size[0], axes, axes + 1)}")
    if min(size) < 1:
        raise ShapeError(f"{given}: every size must be at least 1")
    shape = (*size[2:], 1)
    columns = []
    for d in reversed(range(axes)):
        n = size[2 + d]
        if n == 1:
            at = ops.full(shape=(1,), value=0, dtype=theta.array.dtype, device=theta.device)
        else:
            end = 1.0 if align_corners else (n - 1) / n
            at = ops.linspace(start=-end, end=end, steps=n, dtype=theta.array.dtype, device=theta.device)
        at = ops.reshape(at, shape=tuple(n if k == d else 1 for k in range(axes + 1)))
        columns.append(ops.expand(at, shape=shape))
    columns.append(ops.full(shape=shape, value=1, dtype=theta.array.dtype, device=theta.device))
    base = ops.cat(*columns, dim=axes).reshape(-1, axes + 1)  # (positions, n + 1)
    return ops.matmul(base, theta.transpose(1, 2)).reshape(size[0], *size[2:], axes)


@function(method=False)
def affine_grid_generator(theta: Tensor, size: Sequence[int], align_corners: bool) -> Tensor:
    """affine_grid under the name of PyTorch's operator."""
    return make_affine_grid("affine_grid_generator", theta, size, align_corners)
