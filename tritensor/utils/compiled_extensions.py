"""Refusal of extensions that are compiled against PyTorch's C++ library: the file, and what serves the same end here."""

from __future__ import annotations

import os
from typing import Any, NoReturn

# By a part of the file's path: what a user of that library wants instead.
_INSTEAD = {
    "torchaudio": "tritensor.audio, which has torchaudio's functional and transforms, and WAV files; uninstall torchaudio, and `import torchaudio` gives it",
    "torchtext": "a vocabulary is a dictionary, a batch nn.utils.rnn.pad_sequence; tokenizers has the splitting",
    "torchvision": "tritensor.vision, which `tritensor stand-in install` puts in torchvision's place",
    "xformers": "nn.functional.scaled_dot_product_attention",
    "flash_attn": "nn.functional.scaled_dot_product_attention",
    "torch_scatter": "Tensor.scatter_reduce and index_add",
    "torch_sparse": "torch_geometric without torch_sparse: edge_index as two rows of indices",
    "torch_cluster": "torch.cdist with topk",
    "bitsandbytes": "bfloat16 weights",
    "horovod": "tritensor.distributed under `tritensor launch`",
}


def load_library(path: Any) -> NoReturn:
    """Raise OSError: no extension that is compiled against PyTorch can be loaded; the message names the file and what to use in its place."""
    file = os.fspath(path)
    there = "" if os.path.exists(file) else " (which is not there, either)"
    instead = next(
        (said for part, said in _INSTEAD.items() if part in file), "the library's plain Python form, or an op of your own in Triton"
    )
    raise OSError(
        f"ops.load_library: {file}{there} is compiled against PyTorch's C++ library, which tritensor neither has nor imitates; use instead: {instead}"
    )
