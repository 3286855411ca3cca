"""Upsampling: images (batch, channels, ...) at another size."""

from __future__ import annotations

from collections.abc import Sequence

from tritensor.nn import functional as F
from tritensor.nn.module import Module
from tritensor.tensor.core import Tensor


class Upsample(Module):
    """The input at `size`, or `scale_factor` times as large, by F.interpolate in `mode`: nearest, linear, bilinear, bicubic, trilinear."""

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.name = type(self).__name__
        self.size, self.mode = size, mode
        several = isinstance(scale_factor, tuple | list)
        self.scale_factor = tuple(map(float, scale_factor)) if several else float(scale_factor) if scale_factor else None  # type: ignore[arg-type]
        self.align_corners, self.recompute_scale_factor = align_corners, recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners, recompute_scale_factor=self.recompute_scale_factor
        )

    def extra_repr(self) -> str:
        given = f"size={self.size!r}" if self.scale_factor is None else f"scale_factor={self.scale_factor!r}"
        return f"{given}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """(batch, channels, h, w) at another size, each pixel the nearest one."""

    def __init__(self, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None) -> None:
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """(batch, channels, h, w) at another size, between the four pixels around; corners lie on corners."""

    def __init__(self, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None) -> None:
        super().__init__(size, scale_factor, "bilinear", True)
