"""Tensors that know what they are: images, videos, masks, bounding boxes and points, which transforms.v2 changes together, each in its own way."""

from tritensor.vision.tv_tensors.base import TVTensor as TVTensor
from tritensor.vision.tv_tensors.base import set_return_type as set_return_type
from tritensor.vision.tv_tensors.base import wrap as wrap
from tritensor.vision.tv_tensors.boxes import BoundingBoxes as BoundingBoxes
from tritensor.vision.tv_tensors.boxes import BoundingBoxFormat as BoundingBoxFormat
from tritensor.vision.tv_tensors.boxes import is_rotated_bounding_format as is_rotated_bounding_format
from tritensor.vision.tv_tensors.images import Image as Image
from tritensor.vision.tv_tensors.images import Mask as Mask
from tritensor.vision.tv_tensors.images import Video as Video
from tritensor.vision.tv_tensors.keypoints import KeyPoints as KeyPoints
