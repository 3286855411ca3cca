"""Files: state dicts and tensors in the safetensors format."""

from tritensor.io.checkpoint import load as load
from tritensor.io.checkpoint import save as save
from tritensor.io.safetensors import load_file as load_file
from tritensor.io.safetensors import load_metadata as load_metadata
from tritensor.io.safetensors import save_file as save_file
