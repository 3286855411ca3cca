"""Ops of vision against plain loops: boxes, regions of interest, deformable convolution, layers; and their gradients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tritensor import nn
from tritensor.vision import ops

RNG = np.random.default_rng(0)


def _boxes(count: int, size: float = 12.0) -> np.ndarray:
    first = RNG.random((count, 2)) * size
    return np.concatenate([first, first + RNG.random((count, 2)) * size * 0.6 + 0.1], 1)


def _iou(a: np.ndarray, b: np.ndarray) -> float:
    width, height = (max(0.0, min(a[i + 2], b[i + 2]) - max(a[i], b[i])) for i in (0, 1))
    areas = [(c[2] - c[0]) * (c[3] - c[1]) for c in (a, b)]
    return width * height / (sum(areas) - width * height)


ONE, TWO = _boxes(7), _boxes(5)
MAPS = RNG.standard_normal((2, 8, 6, 7))
ROWS = np.concatenate([RNG.integers(0, 2, (5, 1)), _boxes(5, 8.0)], 1)
ROWS[0, 1:], ROWS[1, 1:], ROWS[2, 1:] = [-3, -2, 4, 5], [3, 3, 3, 3], [4, 3, 20, 20]


def test_overlaps() -> None:
    a, b = tt.from_numpy(ONE), tt.from_numpy(TWO)
    wanted = np.array([[_iou(x, y) for y in TWO] for x in ONE])
    assert np.allclose(ops.box_iou(a, b).numpy(), wanted)
    assert np.allclose(ops.box_iou(ops.box_convert(a, "xyxy", "cxcywh"), ops.box_convert(b, "xyxy", "cxcywh"), "cxcywh").numpy(), wanted)
    hull = np.array([[(max(x[2], y[2]) - min(x[0], y[0])) * (max(x[3], y[3]) - min(x[1], y[1])) for y in TWO] for x in ONE])
    both = np.array([[((x[2:] - x[:2]).prod() + (y[2:] - y[:2]).prod()) / (1 + _iou(x, y)) for y in TWO] for x in ONE])
    assert np.allclose(ops.generalized_box_iou(a, b).numpy(), wanted - (hull - both) / hull)
    assert np.allclose(1 - ops.generalized_box_iou_loss(a[:5], b).numpy(), np.diag(ops.generalized_box_iou(a[:5], b).numpy()), atol=1e-6)
    assert np.allclose(1 - ops.distance_box_iou_loss(a[:5], b).numpy(), np.diag(ops.distance_box_iou(a[:5], b).numpy()), atol=1e-6)
    assert np.allclose(1 - ops.complete_box_iou_loss(a[:5], b).numpy(), np.diag(ops.complete_box_iou(a[:5], b).numpy()), atol=1e-6)
    far = ops.distance_box_iou(tt.tensor([[0.0, 0, 1, 1]]), tt.tensor([[3.0, 0, 4, 1]]))
    assert math.isclose(float(far), -9 / 17, rel_tol=1e-5)
    assert ops.box_iou(a.half(), b.half()).dtype is tt.float32


@pytest.mark.parametrize("threshold", [0.05, 0.3])
def test_suppression(threshold: float) -> None:
    boxes, scores, classes = _boxes(20), RNG.random(20), RNG.integers(0, 2, 20)
    scores[3] = scores[9]

    def keep(kinds: Any) -> list[int]:
        kept: list[int] = []
        for i in sorted(range(20), key=lambda i: -scores[i]):
            if not any(kinds[i] == kinds[j] and _iou(boxes[i], boxes[j]) > threshold for j in kept):
                kept.append(i)
        return kept

    given = tt.from_numpy(boxes), tt.from_numpy(scores)
    assert ops.nms(*given, threshold).tolist() == keep([0] * 20)
    assert ops.batched_nms(*given, tt.from_numpy(classes), threshold).tolist() == keep(classes)
    assert ops.nms(tt.zeros(0, 4), tt.zeros(0), threshold).shape == (0,)
    with pytest.raises(ValueError, match=r"nms: scores \(3,\) for boxes \(20, 4\)"):
        ops.nms(given[0], tt.ones(3), threshold)


def test_forms_of_boxes() -> None:
    box = tt.tensor([[1.0, 2, 4, 7]])
    assert ops.box_convert(box, "xyxy", "cxcywh").tolist() == [[2.5, 4.5, 3.0, 5.0]]
    assert ops.box_convert(box.long(), "xywh", "xyxy").tolist() == [[1, 2, 5, 9]]
    turned = tt.tensor([[5.0, 6, 4, 2, 90]])
    four = ops.box_convert(turned, "cxcywhr", "xyxyxyxy")
    assert np.allclose(four.numpy(), [[4, 8, 4, 4, 6, 4, 6, 8]], atol=1e-5)
    assert np.allclose(ops.box_convert(four, "xyxyxyxy", "cxcywhr").numpy(), turned.numpy(), atol=1e-4)
    assert ops.clip_boxes_to_image(tt.tensor([[-1.0, 2, 9, 11]]), (10, 8)).tolist() == [[0, 2, 8, 10]]
    assert ops.remove_small_boxes(tt.tensor([[0.0, 0, 3, 3], [0, 0, 2, 9]]), 3).tolist() == [0]
    mask = tt.zeros(1, 5, 6)
    mask[0, 1:4, 2] = 1
    assert ops.masks_to_boxes(mask).tolist() == [[2, 1, 2, 3]]
    with pytest.raises(ValueError, match="mask 0 is 0 everywhere"):
        ops.masks_to_boxes(tt.zeros(1, 2, 2))
    with pytest.raises(ValueError, match="in_fmt is 'corners'"):
        ops.box_convert(box, "corners", "xyxy")
    with pytest.raises(ValueError, match=r"in the form 'cxcywhr'; give \(..., 5\)"):
        ops.box_convert(box, "cxcywhr", "xywhr")


def _bilinear(plane: np.ndarray, y: float, x: float) -> float:
    height, width = plane.shape
    if not (-1 <= y <= height and -1 <= x <= width):
        return 0.0
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    i, j = min(int(y), height - 1), min(int(x), width - 1)
    k, m = min(i + 1, height - 1), min(j + 1, width - 1)
    return float(
        (i + 1 - y) * ((j + 1 - x) * plane[i, j] + (x - j) * plane[i, m]) + (y - i) * ((j + 1 - x) * plane[k, j] + (x - j) * plane[k, m])
    )


def _align(rows: np.ndarray, size: tuple[int, int], scale: float, ratio: int, aligned: bool) -> np.ndarray:
    out = np.zeros((len(rows), MAPS.shape[1], *size))
    for r, row in enumerate(rows):
        left, top, right, bottom = row[1:] * scale - 0.5 * aligned
        height, width = (bottom - top, right - left) if aligned else (max(bottom - top, 1), max(right - left, 1))
        step_y, step_x = height / size[0], width / size[1]
        ny, nx = (ratio, ratio) if ratio > 0 else (math.ceil(step_y), math.ceil(step_x))
        for c, i, j in np.ndindex(out.shape[1:]):
            plane = MAPS[int(row[0]), c]
            points = [
                _bilinear(plane, top + (i + (a + 0.5) / ny) * step_y, left + (j + (b + 0.5) / nx) * step_x)
                for a in range(ny)
                for b in range(nx)
            ]
            out[r, c, i, j] = np.mean(points) if points else 0
    return out


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize(("ratio", "scale"), [(2, 1.0), (-1, 0.5)])
def test_roi_align(aligned: bool, ratio: int, scale: float) -> None:
    maps, rows = tt.from_numpy(MAPS), tt.from_numpy(ROWS)
    found = ops.roi_align(maps, rows, (3, 2), scale, ratio, aligned)
    assert np.allclose(found.numpy(), _align(ROWS, (3, 2), scale, ratio, aligned))
    if aligned:
        positions = ops.ps_roi_align(maps, rows, 2, scale, ratio)
        whole = _align(ROWS, (2, 2), scale, ratio, True).reshape(5, 2, 4, 4)
        assert np.allclose(positions.numpy(), np.stack([whole[:, :, k, k] for k in range(4)], 2).reshape(5, 2, 2, 2))


def test_roi_align_takes_lists_and_gives_gradients() -> None:
    maps = tt.from_numpy(MAPS[:, :2, :4, :4].copy()).requires_grad_()
    boxes = [tt.tensor([[0.0, 0, 3, 2]]), tt.tensor([[1.0, 1, 3, 3]])]
    assert tt.autograd.gradcheck(lambda x: ops.roi_align(x, boxes, 2, sampling_ratio=1), (maps,))
    assert tt.autograd.gradcheck(lambda x: ops.roi_pool(x, boxes, 2), (maps,))
    with pytest.raises(ValueError, match="a box is of image 5, and there are 2"):
        ops.roi_align(maps, tt.tensor([[5.0, 0, 0, 1, 1]]), 2)
    with pytest.raises(ValueError, match=r"boxes of an image are \(2,\)"):
        ops.roi_align(maps, [tt.ones(2)], 2)


def test_roi_pool() -> None:
    found = ops.roi_pool(tt.from_numpy(MAPS), tt.from_numpy(ROWS), (3, 2)).numpy()
    means = ops.ps_roi_pool(tt.from_numpy(MAPS), tt.from_numpy(ROWS), 2).numpy()
    for r, row in enumerate(ROWS):
        left, top, right, bottom = (int(math.floor(abs(v) + 0.5) * np.sign(v)) for v in row[1:])
        for c, i, j in np.ndindex(found.shape[1:]):
            part = MAPS[int(row[0]), c][_span(top, max(bottom - top + 1, 1), 3, i, 6), _span(left, max(right - left + 1, 1), 2, j, 7)]
            assert np.isclose(found[r, c, i, j], part.max() if part.size else 0)
        for c, i, j in np.ndindex(means.shape[1:]):
            plane = MAPS[int(row[0]), c * 4 + i * 2 + j]
            part = plane[_span(top, max(bottom - top, 1), 2, i, 5), _span(left, max(right - left, 1), 2, j, 6)]
            assert np.isclose(means[r, c, i, j], part.mean() if part.size else 0)


def _span(start: int, length: int, bins: int, k: int, limit: int) -> slice:
    first, last = math.floor(k * length / bins) + start, math.ceil((k + 1) * length / bins) + start
    return slice(min(max(first, 0), limit), min(max(last, 0), limit))


def test_deformable_convolution() -> None:
    x, w, bias = (tt.from_numpy(RNG.standard_normal(s)).requires_grad_() for s in ((1, 4, 5, 5), (2, 2, 3, 3), (2,)))
    plain = nn.functional.conv2d(x, w, bias, stride=2, padding=1, groups=2)
    assert np.allclose(
        ops.deform_conv2d(x, tt.zeros(1, 18, 3, 3, dtype=tt.float64), w, bias, 2, 1).detach().numpy(), plain.detach().numpy()
    )
    right = tt.zeros(1, 18, 5, 5, dtype=tt.float64)
    right[:, 1::2] = 1.0
    moved = ops.deform_conv2d(x, right, w, None, 1, 1).detach().numpy()  # each tap reads one pixel further right
    assert np.allclose(moved[..., :4], nn.functional.conv2d(x, w, None, padding=1, groups=2).detach().numpy()[..., 1:])
    offset, mask = (tt.from_numpy(RNG.random(s) * 0.8 + 0.1).requires_grad_() for s in ((1, 36, 2, 2), (1, 18, 2, 2)))
    assert tt.autograd.gradcheck(lambda *given: ops.deform_conv2d(*given[:4], 2, 0, 1, given[4]), (x, offset, w, bias, mask), atol=1e-4)
    assert ops.DeformConv2d(4, 2, 3, groups=2)(x.float(), tt.zeros(1, 18, 3, 3)).shape == (1, 2, 3, 3)
    with pytest.raises(ValueError, match="offset tensor at dimension 1 is not valid"):
        ops.deform_conv2d(x, tt.zeros(1, 4, 3, 3), w)


def test_pyramids() -> None:
    maps = {"a": tt.ones(1, 3, 8, 8), "b": tt.ones(1, 4, 4, 4)}
    out = ops.FeaturePyramidNetwork([3, 4], 5, ops.feature_pyramid_network.LastLevelP6P7(4, 5))(maps)
    assert {k: tuple(v.shape) for k, v in out.items()} == {"a": (1, 5, 8, 8), "b": (1, 5, 4, 4), "p6": (1, 5, 2, 2), "p7": (1, 5, 1, 1)}
    boxes = [tt.tensor([[0.0, 0, 30, 30], [0, 0, 900, 900]])]
    levels = {"a": tt.ones(1, 2, 64, 64), "b": 2 * tt.ones(1, 2, 32, 32)}
    pooled = ops.MultiScaleRoIAlign(["a", "b"], 1, 1)(levels, boxes, [(1024, 1024)])
    assert pooled[:, 0, 0, 0].tolist() == [1.0, 2.0]


def test_layers_of_vision() -> None:
    x = tt.from_numpy(MAPS[:, :4].astype(np.float32))
    norm = nn.BatchNorm2d(4)
    norm.running_mean.uniform_(0, 1)
    norm.running_var.uniform_(1, 2)
    frozen = ops.FrozenBatchNorm2d(4)
    frozen.load_state_dict(norm.state_dict())  # which counts batches, too
    assert np.allclose(frozen(x).numpy(), norm.eval()(x).detach().numpy(), atol=1e-5)
    assert list(frozen.parameters()) == []
    assert ops.Conv2dNormActivation(4, 6, (3, 5), dilation=2)(x).shape == (2, 6, 6, 7)
    squeezed = ops.SqueezeExcitation(4, 2)
    assert (squeezed(x).detach().abs() <= x.abs()).all()
    assert ops.Permute([0, 2, 3, 1])(x).shape == (2, 6, 7, 4)
    assert ops.MLP(4, [5, 3])(tt.ones(2, 4)).shape == (2, 3)
    many = tt.ones(400, 2, 3)
    dropped = ops.StochasticDepth(0.25, "row")(many)
    assert sorted(set(dropped.reshape(400, -1).amax(1).tolist()) | set(dropped.reshape(400, -1).amin(1).tolist())) == [
        0.0,
        pytest.approx(4 / 3),
    ]
    assert 260 < int((dropped[:, 0, 0] > 0).sum()) < 340
    assert ops.StochasticDepth(0.25, "row").eval()(many) is many
    blocks = ops.drop_block2d(tt.ones(8, 4, 20, 20), 0.3, 5)
    assert abs(float(blocks.mean()) - 1) < 1e-4
    assert 0.1 < float((blocks == 0).float().mean()) < 0.4
    with pytest.raises(ValueError, match="mode has to be either"):
        ops.stochastic_depth(many, 0.5, "column")


def test_focal_loss() -> None:
    scores, wanted = tt.tensor([2.0, -1.0, 0.0]).double(), tt.tensor([1.0, 0.0, 1.0]).double()
    p = 1 / (1 + np.exp(-scores.numpy()))
    right = np.where(wanted.numpy() == 1, p, 1 - p)
    plain = -np.log(right) * (1 - right) ** 2
    assert np.allclose(ops.sigmoid_focal_loss(scores, wanted, alpha=-1).numpy(), plain)
    assert np.isclose(float(ops.sigmoid_focal_loss(scores, wanted, reduction="mean")), (plain * [0.25, 0.75, 0.25]).mean())
    with pytest.raises(ValueError, match="Invalid alpha value: 2"):
        ops.sigmoid_focal_loss(scores, wanted, alpha=2)
