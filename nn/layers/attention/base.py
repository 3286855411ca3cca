"""The output projection of MultiheadAttention, under the class name that PyTorch's has."""

from __future__ import annotations

from tritensor.nn.layers.linear import Linear


class NonDynamicallyQuantizableLinear(Linear):
    # a file called base.py: its classes are not exported as layers (tools/exports.py)
    """The Linear that `out_proj` is; its name shows in a repr."""
