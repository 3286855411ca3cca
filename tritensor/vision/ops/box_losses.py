"""Losses of boxes by their overlap, row by row: 1 less the generalized, the distance and the complete IoU."""

from __future__ import annotations

import math

from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor
from tritensor.vision.ops.focal_loss import reduce_loss


def _wide(boxes: Tensor) -> Tensor:
    return boxes if boxes.itemsize >= 4 or not boxes.is_floating_point() else boxes.float()


def _overlap(boxes1: Tensor, boxes2: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(shared areas, areas of both together, widths and heights of the hulls), row by row."""
    size = (ops.minimum(boxes1[..., 2:], boxes2[..., 2:]) - ops.maximum(boxes1[..., :2], boxes2[..., :2])).clamp(min=0)
    shared = size[..., 0] * size[..., 1]
    areas = [(b[..., 2] - b[..., 0]) * (b[..., 3] - b[..., 1]) for b in (boxes1, boxes2)]
    hull = ops.maximum(boxes1[..., 2:], boxes2[..., 2:]) - ops.minimum(boxes1[..., :2], boxes2[..., :2])
    return shared, areas[0] + areas[1] - shared, hull


def generalized_box_iou_loss(boxes1: Tensor, boxes2: Tensor, reduction: str = "none", eps: float = 1e-7) -> Tensor:
    """1 - GIoU of boxes (..., 4), row by row (Rezatofighi et al. 2019). Raises ValueError for another reduction."""
    shared, both, size = _overlap(_wide(boxes1), _wide(boxes2))
    hull = size[..., 0] * size[..., 1]
    loss = 1 - (shared / (both + eps) - (hull - both) / (hull + eps))
    return reduce_loss("generalized_box_iou_loss", loss, reduction)


def _distance_loss(boxes1: Tensor, boxes2: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """(1 - DIoU, IoU)."""
    shared, both, size = _overlap(boxes1, boxes2)
    iou = shared / (both + eps)
    diagonal = (size**2).sum(-1) + eps
    distance = (((boxes1[..., :2] + boxes1[..., 2:]) / 2 - (boxes2[..., :2] + boxes2[..., 2:]) / 2) ** 2).sum(-1)
    return 1 - iou + distance / diagonal, iou


def distance_box_iou_loss(boxes1: Tensor, boxes2: Tensor, reduction: str = "none", eps: float = 1e-7) -> Tensor:
    """1 - DIoU of boxes (..., 4), row by row (Zheng et al. 2020). Raises ValueError for another reduction."""
    return reduce_loss("distance_box_iou_loss", _distance_loss(_wide(boxes1), _wide(boxes2), eps)[0], reduction)


def complete_box_iou_loss(boxes1: Tensor, boxes2: Tensor, reduction: str = "none", eps: float = 1e-7) -> Tensor:
    """1 - CIoU of boxes (..., 4), row by row (Zheng et al. 2020). Raises ValueError for another reduction."""
    one, two = _wide(boxes1), _wide(boxes2)
    loss, iou = _distance_loss(one, two, eps)
    slope1, slope2 = (((b[..., 2] - b[..., 0]) / (b[..., 3] - b[..., 1])).atan() for b in (one, two))
    v = (4 / math.pi**2) * (slope2 - slope1) ** 2
    alpha = (v / (1 - iou + v + eps)).detach()  # a weight, not a way for the gradient
    return reduce_loss("complete_box_iou_loss", loss + alpha * v, reduction)
