"""Boxes as tensors (n, 4), left, top, right and bottom: areas, overlaps, forms, and those that others suppress."""

from __future__ import annotations

import math

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.constructors import zeros
from tritensor.tensor.functions.shaping.joining import stack
from tritensor.vision.ops.box_forms import box_convert as box_convert


def _upcast(t: Tensor) -> Tensor:
    """Values whose products and sums keep their digits: 16-bit floats as float32, narrow integers as wide ones."""
    if t.is_floating_point():
        return t if t.dtype in (dtypes.float32, dtypes.float64) else t.float()
    return t if t.dtype in (dtypes.int32, dtypes.int64) else t.int()


def _require_boxes(who: str, boxes: Tensor) -> None:
    if boxes.ndim < 1 or boxes.shape[-1] != 4:
        raise ShapeError(f"{who}: boxes {tuple(boxes.shape)}; give (n, 4), each left, top, right and bottom")


def box_area(boxes: Tensor, fmt: str = "xyxy") -> Tensor:
    """Areas (n,) of boxes (n, 4); `fmt`: "xyxy", "xywh" or "cxcywh". Raises ValueError for another form."""
    if fmt not in ("xyxy", "xywh", "cxcywh"):
        raise ArgumentError(f"box_area: fmt is {fmt!r}; give 'xyxy', 'xywh' or 'cxcywh'")
    _require_boxes("box_area", boxes)
    given = _upcast(boxes)
    if fmt == "xyxy":
        return (given[..., 2] - given[..., 0]) * (given[..., 3] - given[..., 1])
    return given[..., 2] * given[..., 3]


def _box_inter_union(boxes1: Tensor, boxes2: Tensor, fmt: str = "xyxy") -> tuple[Tensor, Tensor]:
    """(areas that two boxes share, areas of both together), (n, m) each, of boxes (n, 4) and (m, 4)."""
    area1, area2 = box_area(boxes1, fmt), box_area(boxes2, fmt)
    one, two = (b if fmt == "xyxy" else box_convert(b, fmt, "xyxy") for b in (boxes1, boxes2))
    top_left = ops.maximum(one[..., None, :2], two[..., None, :, :2])  # (n, m, 2)
    bottom_right = ops.minimum(one[..., None, 2:], two[..., None, :, 2:])
    size = _upcast(bottom_right - top_left).clamp(min=0)
    shared = size[..., 0] * size[..., 1]
    return shared, area1[..., None] + area2[..., None, :] - shared


def box_iou(boxes1: Tensor, boxes2: Tensor, fmt: str = "xyxy") -> Tensor:
    """Shared area over the area of both, (n, m), of every box of the first (n, 4) with every one of the second (m, 4)."""
    shared, both = _box_inter_union(boxes1, boxes2, fmt)
    return shared / both


def _hull(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    """Widths and heights (n, m, 2) of the least box around two."""
    top_left = ops.minimum(boxes1[:, None, :2], boxes2[:, :2])
    bottom_right = ops.maximum(boxes1[:, None, 2:], boxes2[:, 2:])
    return _upcast(bottom_right - top_left).clamp(min=0)


def generalized_box_iou(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    """IoU less the part of the hull that neither covers, (n, m), from -1 to 1 (Rezatofighi et al. 2019)."""
    shared, both = _box_inter_union(boxes1, boxes2)
    size = _hull(boxes1, boxes2)
    hull = size[..., 0] * size[..., 1]
    return shared / both - (hull - both) / hull


def _box_diou_iou(boxes1: Tensor, boxes2: Tensor, eps: float = 1e-7) -> tuple[Tensor, Tensor]:
    """(IoU less the squared distance of the centres over the hull's squared diagonal, IoU), (n, m) each."""
    iou = box_iou(boxes1, boxes2)
    diagonal = (_hull(boxes1, boxes2) ** 2).sum(-1) + eps
    centres1, centres2 = ((_upcast(b[:, :2]) + _upcast(b[:, 2:])) / 2 for b in (boxes1, boxes2))
    distance = ((centres1[:, None] - centres2) ** 2).sum(-1)
    return iou - distance / diagonal, iou


def distance_box_iou(boxes1: Tensor, boxes2: Tensor, eps: float = 1e-7) -> Tensor:
    """IoU less the centres' distance as a part of the hull's diagonal, squared, (n, m) (Zheng et al. 2020)."""
    return _box_diou_iou(_upcast(boxes1), _upcast(boxes2), eps)[0]


def complete_box_iou(boxes1: Tensor, boxes2: Tensor, eps: float = 1e-7) -> Tensor:
    """distance_box_iou less what the proportions differ by, (n, m) (Zheng et al. 2020)."""
    one, two = _upcast(boxes1), _upcast(boxes2)
    diou, iou = _box_diou_iou(one, two, eps)
    slope1, slope2 = (((b[:, 2] - b[:, 0]) / (b[:, 3] - b[:, 1])).atan() for b in (one, two))
    v = (4 / math.pi**2) * (slope1[:, None] - slope2) ** 2
    alpha = (v / (1 - iou + v + eps)).detach()  # a weight, not a way for the gradient
    return diou - alpha * v


def clip_boxes_to_image(boxes: Tensor, size: tuple[int, int]) -> Tensor:
    """Boxes (..., 4) that do not reach over an image of (height, width)."""
    _require_boxes("clip_boxes_to_image", boxes)
    height, width = size
    x, y = boxes[..., 0::2].clamp(min=0, max=width), boxes[..., 1::2].clamp(min=0, max=height)
    return stack((x, y), boxes.ndim).reshape(tuple(boxes.shape))


def remove_small_boxes(boxes: Tensor, min_size: float) -> Tensor:
    """The numbers of the boxes (n, 4) of which both sides have `min_size` at least."""
    _require_boxes("remove_small_boxes", boxes)
    width, height = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
    return ((width >= min_size) & (height >= min_size)).nonzero()[:, 0]


def masks_to_boxes(masks: Tensor) -> Tensor:
    """The least boxes (n, 4), float32, around what is not 0 in masks (n, h, w): first and last column and row. Raises ValueError for an empty mask."""
    if masks.ndim != 3:
        raise ShapeError(f"masks_to_boxes: masks {tuple(masks.shape)}; give (n, height, width)")
    out = zeros((masks.shape[0], 4), dtype=dtypes.float32, device=masks.device)
    for k, mask in enumerate(masks.detach().cpu().numpy()):
        y, x = np.nonzero(mask)
        if not len(x):
            raise ArgumentError(f"masks_to_boxes: mask {k} is 0 everywhere, and has no box; leave empty masks out")
        out[k] = Tensor.wrap(np.array([x.min(), y.min(), x.max(), y.max()], np.float32)).to(masks.device)
    return out


def _suppress(boxes: np.ndarray, scores: np.ndarray, classes: np.ndarray | None, threshold: float) -> np.ndarray:
    """The numbers of the boxes that none of a higher score, of its class, covers by more than a threshold; by falling score."""
    order = np.argsort(-scores, kind="stable")
    left, top, right, bottom = boxes[order].T
    areas = (right - left) * (bottom - top)
    kind = None if classes is None else classes[order]
    alive = np.ones(len(order), bool)
    for i in range(len(order)):
        if not alive[i]:
            continue
        rest = slice(i + 1, None)
        width = np.minimum(right[i], right[rest]) - np.maximum(left[i], left[rest])
        height = np.minimum(bottom[i], bottom[rest]) - np.maximum(top[i], top[rest])
        shared = np.maximum(width, 0) * np.maximum(height, 0)
        with np.errstate(invalid="ignore", divide="ignore"):  # two boxes without area: 0 / 0, which is not more than the threshold
            covered = shared / (areas[i] + areas[rest] - shared) > threshold
        alive[rest] &= ~(covered if kind is None else covered & (kind[rest] == kind[i]))
    found: np.ndarray = order[alive].astype(np.int64)
    return found


def _host(t: Tensor) -> np.ndarray:
    values: np.ndarray = _upcast(t.detach()).cpu().numpy()
    return values


def _check_scored(who: str, boxes: Tensor, scores: Tensor) -> None:
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise ShapeError(f"{who}: boxes {tuple(boxes.shape)}; give (n, 4), each left, top, right and bottom")
    if scores.ndim != 1 or scores.shape[0] != boxes.shape[0]:
        raise ShapeError(f"{who}: scores {tuple(scores.shape)} for boxes {tuple(boxes.shape)}; give one for each, ({boxes.shape[0]},)")


def nms(boxes: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Non-maximum suppression: the numbers, int64 and by falling score, of the boxes (n, 4) that none of a higher score covers by an IoU above the threshold.

    One box is decided after the other, by the host, on any device. Raises ShapeError for other shapes of boxes or scores.
    """
    _check_scored("nms", boxes, scores)
    return Tensor.wrap(_suppress(_host(boxes), _host(scores), None, iou_threshold)).to(boxes.device)


def batched_nms(boxes: Tensor, scores: Tensor, idxs: Tensor, iou_threshold: float) -> Tensor:
    """nms in which a box is suppressed by those of its own class alone; `idxs` (n,) are the classes."""
    _check_scored("batched_nms", boxes, scores)
    if tuple(idxs.shape) != tuple(scores.shape):
        raise ShapeError(f"batched_nms: idxs {tuple(idxs.shape)} for scores {tuple(scores.shape)}; give a class for each box")
    return Tensor.wrap(_suppress(_host(boxes), _host(scores), _host(idxs), iou_threshold)).to(boxes.device)
