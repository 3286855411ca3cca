"""KeyPoints, points in an image."""

from __future__ import annotations

from typing import Any

from tritensor.ground.errors import ShapeError
from tritensor.tensor.core import Tensor
from tritensor.vision.tv_tensors.base import TVTensor


class KeyPoints(TVTensor):
    """Points (..., 2), x and y, in a canvas (height, width); one point (2,) becomes (1, 2). Raises ValueError for another last size."""

    _facts = ("canvas_size",)

    canvas_size: tuple[int, int]

    def __new__(
        cls, data: Any, *, canvas_size: tuple[int, int], dtype: Any = None, device: Any = None, requires_grad: bool | None = None
    ) -> Any:  # fmt: skip
        return cls.wrap(cls._to_tensor(data, dtype, device, requires_grad), None, canvas_size=canvas_size)

    @classmethod
    def wrap(cls, tensor: Tensor, like: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        """A tensor (..., 2) or of one point as points, with the canvas of `like` or that of kwargs. Raises as the class does."""
        if tensor.ndim != 1 and tensor.shape[-1] != 2:
            raise ShapeError(f"KeyPoints: Expected a tensor of shape (..., 2), not {tuple(tensor.shape)}")
        return super().wrap(tensor.unsqueeze(0) if tensor.ndim == 1 else tensor, like, **kwargs)
