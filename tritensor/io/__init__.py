"""Files: state dicts and tensors in the safetensors format, in PyTorch's own, and in shards with an index."""

from tritensor.io.checkpoint import load as load
from tritensor.io.checkpoint import save as save
from tritensor.io.safetensors import load_file as load_file
from tritensor.io.safetensors import load_metadata as load_metadata
from tritensor.io.safetensors import save_file as save_file
from tritensor.io.sharded import load_sharded as load_sharded
from tritensor.io.sharded import save_sharded as save_sharded
