"""PyTorch's spelling: `tritensor.utils.data` is `tritensor.data`."""

from tritensor.utils import data as data
