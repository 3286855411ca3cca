"""Ops of vision, with torchvision's names: boxes, regions of interest, losses of detectors, layers. Composed of our ops; all but boxes take gradients."""

from tritensor.vision.ops.box_losses import complete_box_iou_loss as complete_box_iou_loss
from tritensor.vision.ops.box_losses import distance_box_iou_loss as distance_box_iou_loss
from tritensor.vision.ops.box_losses import generalized_box_iou_loss as generalized_box_iou_loss
from tritensor.vision.ops.boxes import batched_nms as batched_nms
from tritensor.vision.ops.boxes import box_area as box_area
from tritensor.vision.ops.boxes import box_convert as box_convert
from tritensor.vision.ops.boxes import box_iou as box_iou
from tritensor.vision.ops.boxes import clip_boxes_to_image as clip_boxes_to_image
from tritensor.vision.ops.boxes import complete_box_iou as complete_box_iou
from tritensor.vision.ops.boxes import distance_box_iou as distance_box_iou
from tritensor.vision.ops.boxes import generalized_box_iou as generalized_box_iou
from tritensor.vision.ops.boxes import masks_to_boxes as masks_to_boxes
from tritensor.vision.ops.boxes import nms as nms
from tritensor.vision.ops.boxes import remove_small_boxes as remove_small_boxes
from tritensor.vision.ops.deform_conv import DeformConv2d as DeformConv2d
from tritensor.vision.ops.deform_conv import deform_conv2d as deform_conv2d
from tritensor.vision.ops.drop_block import DropBlock2d as DropBlock2d
from tritensor.vision.ops.drop_block import DropBlock3d as DropBlock3d
from tritensor.vision.ops.drop_block import drop_block2d as drop_block2d
from tritensor.vision.ops.drop_block import drop_block3d as drop_block3d
from tritensor.vision.ops.feature_pyramid_network import FeaturePyramidNetwork as FeaturePyramidNetwork
from tritensor.vision.ops.focal_loss import sigmoid_focal_loss as sigmoid_focal_loss
from tritensor.vision.ops.layers import MLP as MLP
from tritensor.vision.ops.layers import Conv2dNormActivation as Conv2dNormActivation
from tritensor.vision.ops.layers import Conv3dNormActivation as Conv3dNormActivation
from tritensor.vision.ops.layers import FrozenBatchNorm2d as FrozenBatchNorm2d
from tritensor.vision.ops.layers import Permute as Permute
from tritensor.vision.ops.layers import SqueezeExcitation as SqueezeExcitation
from tritensor.vision.ops.poolers import MultiScaleRoIAlign as MultiScaleRoIAlign
from tritensor.vision.ops.roi_align import PSRoIAlign as PSRoIAlign
from tritensor.vision.ops.roi_align import RoIAlign as RoIAlign
from tritensor.vision.ops.roi_align import ps_roi_align as ps_roi_align
from tritensor.vision.ops.roi_align import roi_align as roi_align
from tritensor.vision.ops.roi_pool import PSRoIPool as PSRoIPool
from tritensor.vision.ops.roi_pool import RoIPool as RoIPool
from tritensor.vision.ops.roi_pool import ps_roi_pool as ps_roi_pool
from tritensor.vision.ops.roi_pool import roi_pool as roi_pool
from tritensor.vision.ops.stochastic_depth import StochasticDepth as StochasticDepth
from tritensor.vision.ops.stochastic_depth import stochastic_depth as stochastic_depth

__all__ = [
    "MLP", "Conv2dNormActivation", "Conv3dNormActivation", "DeformConv2d", "DropBlock2d", "DropBlock3d", "FeaturePyramidNetwork", "FrozenBatchNorm2d",
    "MultiScaleRoIAlign", "PSRoIAlign", "PSRoIPool", "Permute", "RoIAlign", "RoIPool", "SqueezeExcitation", "StochasticDepth", "batched_nms",
    "box_area", "box_convert", "box_iou", "clip_boxes_to_image", "complete_box_iou", "complete_box_iou_loss", "deform_conv2d", "distance_box_iou",
    "distance_box_iou_loss", "drop_block2d", "drop_block3d", "generalized_box_iou", "generalized_box_iou_loss", "masks_to_boxes", "nms", "ps_roi_align",
    "ps_roi_pool", "remove_small_boxes", "roi_align", "roi_pool", "sigmoid_focal_loss", "stochastic_depth",
]  # fmt: skip
