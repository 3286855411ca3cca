"""Weights that networks of convolutions start from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tritensor import nn
from tritensor.nn import init

Layer = Callable[..., nn.Module]


def start_convolutions(network: nn.Module, start_linear: Callable[[nn.Linear], Any]) -> None:
    """Convolutions by their fan-out (He et al. 2015), norms at 1 and 0, linear layers as `start_linear` says, no biases."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            init.kaiming_normal_(module.weight, mode="fan_out")
            if module.bias is not None:
                init.zeros_(module.bias)
        elif isinstance(module, nn.BatchNorm2d | nn.GroupNorm):
            assert module.weight is not None
            assert module.bias is not None
            init.ones_(module.weight)
            init.zeros_(module.bias)
        elif isinstance(module, nn.Linear):
            start_linear(module)
            assert module.bias is not None
            init.zeros_(module.bias)


def start_small(layer: nn.Linear) -> None:
    """Normal numbers of deviation 0.01."""
    init.normal_(layer.weight, 0, 0.01)


def check_settings(name: str, settings: Any, kind: type) -> None:
    """Raise ValueError for an empty list of settings, TypeError for others than `kind`."""
    if not settings:
        raise ValueError(f"The {name} should not be empty")
    if not isinstance(settings, list | tuple) or not all(isinstance(s, kind) for s in settings):
        raise TypeError(f"The {name} should be List[{kind.__name__}]")
