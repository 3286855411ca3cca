"""Channels-last weights of convolutions."""

from __future__ import annotations

from typing import Any

from tritensor.nn.module import Module

Kinds = tuple[str, ...]


def _convert(module: Module, memory_format: Any, kinds: Kinds) -> Module:
    for part in module.modules():
        # by name: importing the layers here would be a circle, and subclasses count as well
        if any(c.__name__ in kinds for c in type(part).__mro__):
            weight: Any = part.weight
            # through .data: the parameter stays the object that an optimizer holds
            weight.data = weight.detach().clone(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: Module, memory_format: Any) -> Module:
    """Lay the weights of all Conv2d and ConvTranspose2d layers below in a memory format, in place."""
    return _convert(module, memory_format, ("Conv2d", "ConvTranspose2d"))


def convert_conv3d_weight_memory_format(module: Module, memory_format: Any) -> Module:
    """Lay the weights of all Conv3d and ConvTranspose3d layers below in a memory format, in place."""
    return _convert(module, memory_format, ("Conv3d", "ConvTranspose3d"))
