"""Names of types under `import torch`, held to PyTorch's own."""

from __future__ import annotations

import torch

import tritensor as tt
from tritensor.tools import run_script
from tritensor.torch_compat import layer_names


def test_layers_and_values_are_called_as_in_pytorch() -> None:
    layers = [name for names in layer_names.CLASSES.values() for name in names.split()]
    values = ("Tensor", "Size", "device", "dtype", "layout", "memory_format", "Generator", "finfo", "iinfo")
    theirs = {n: repr(getattr(torch.nn, n)) for n in layers} | {n: repr(getattr(torch, n)) for n in values}
    theirs |= {n: repr(getattr(torch.nn.parameter, n)) for n in ("Parameter", "Buffer", "UninitializedParameter", "UninitializedBuffer")}
    with run_script.opened():
        ours = {n: repr(getattr(tt.nn, n)) for n in layers} | {n: repr(getattr(tt, n)) for n in values}
        ours |= {n: repr(getattr(tt.nn.parameter, n)) for n in ("Parameter", "Buffer", "UninitializedParameter", "UninitializedBuffer")}
    assert ours == theirs
