"""The older weight norm: a hook that computes the weight before each forward. nn.utils.parametrizations.weight_norm is the newer one."""

from __future__ import annotations

import warnings
from typing import Any

from tritensor.ground.errors import ArgumentError
from tritensor.nn.hooks import refuse_second_pre_hook, take_pre_hook
from tritensor.nn.module import Module
from tritensor.nn.parameter import Parameter
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.factorizations.norms import norm_except_dim


class WeightNorm:
    """The hook: weight = g v / |v|, the norm over all dimensions but `dim` (-1: over all)."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name, self.dim = name, -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Tensor:
        """The weight of `<name>_g` and `<name>_v`."""
        g, v = (getattr(module, self.name + part) for part in ("_g", "_v"))
        return v * (g / norm_except_dim(v, 2, self.dim))  # type: ignore[no-any-return]

    @staticmethod
    def apply(module: Module, name: str, dim: int | None) -> WeightNorm:
        """Put `<name>_g` and `<name>_v` in place of a parameter, and the hook on the module."""
        refuse_second_pre_hook(module, WeightNorm, name, "weight_norm")
        made = WeightNorm(name, dim)
        weight = module._parameters.get(name)
        if weight is None:
            raise ArgumentError(f"weight_norm: {type(module).__name__} has no parameter '{name}'; name one that it has")
        size = norm_except_dim(weight.detach(), 2, made.dim)  # g at first is |v|, so that the weight is what it was
        del module._parameters[name]  # its name becomes a plain attribute's, which the hook computes
        module.register_parameter(name + "_g", Parameter(size))
        module.register_parameter(name + "_v", Parameter(weight.detach()))
        setattr(module, name, made.compute_weight(module))  # also before the first forward the layer has its weight
        module.register_forward_pre_hook(made)
        return made

    def remove(self, module: Module) -> None:
        """Make the weight a parameter again."""
        weight = self.compute_weight(module).detach()
        delattr(module, self.name)
        for part in ("_g", "_v"):
            del module._parameters[self.name + part]
        setattr(module, self.name, Parameter(weight))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))  # anew in each forward: an optimizer has moved g and v meanwhile


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Let a weight be g v / |v| of parameters `<name>_g` and `<name>_v`, the norm over all dimensions but `dim` (None: over all)
    (Salimans and Kingma 2016). Raises RuntimeError where it has a weight norm already."""
    warnings.warn("`nn.utils.weight_norm` is deprecated in favor of `nn.utils.parametrizations.weight_norm`.", FutureWarning, stacklevel=2)
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Make the weight a parameter again, of the value that it has."""
    take_pre_hook(module, WeightNorm, name, "weight_norm").remove(module)
    return module
