"""SummaryWriter: event files that tensorboard shows, under PyTorch's path and names; neither tensorboard nor protobuf is needed to write them."""

from tritensor.utils.tensorboard.event_file import FileWriter as FileWriter
from tritensor.utils.tensorboard.writer import SummaryWriter as SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
