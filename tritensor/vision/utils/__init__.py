"""Pictures of images: grids of them, files of grids, boxes drawn on them."""

from tritensor.vision.utils.boxes import draw_bounding_boxes as draw_bounding_boxes
from tritensor.vision.utils.grid import make_grid as make_grid
from tritensor.vision.utils.grid import save_image as save_image
