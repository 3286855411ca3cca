"""torch.distributed.checkpoint: every rank writes its own part of a state, which any number of ranks reads back."""

from tritensor.distributed.checkpoint.loading import load as load
from tritensor.distributed.checkpoint.metadata import Metadata as Metadata
from tritensor.distributed.checkpoint.saving import async_save as async_save
from tritensor.distributed.checkpoint.saving import save as save
from tritensor.distributed.checkpoint.storage import FileSystemReader as FileSystemReader
from tritensor.distributed.checkpoint.storage import FileSystemWriter as FileSystemWriter
