"""torch.distributed.checkpoint: every rank writes its own part of a state, which any number of ranks reads back."""

from tritensor.distributed.checkpoint.filesystem import FileSystemReader as FileSystemReader
from tritensor.distributed.checkpoint.filesystem import FileSystemWriter as FileSystemWriter
from tritensor.distributed.checkpoint.metadata import Metadata as Metadata
from tritensor.distributed.checkpoint.state_dict_loader import load as load
from tritensor.distributed.checkpoint.state_dict_loader import load_state_dict as load_state_dict
from tritensor.distributed.checkpoint.state_dict_saver import async_save as async_save
from tritensor.distributed.checkpoint.state_dict_saver import save as save
from tritensor.distributed.checkpoint.state_dict_saver import save_state_dict as save_state_dict
from tritensor.ground.errors import CheckpointError as CheckpointException

__all__ = [
    "CheckpointException", "FileSystemReader", "FileSystemWriter", "Metadata", "async_save", "load", "load_state_dict", "save",
    "save_state_dict",
]  # fmt: skip
