"""torchvision.models._utils: networks that give what their parts compute, and widths that a number divides."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from tritensor import nn
from tritensor.ground.errors import ArgumentError
from tritensor.tensor.core import Tensor


class IntermediateLayerGetter(nn.ModuleDict):
    """A network whose children are called one after the other, up to the last that is wanted: {name given to it: what it computed}.

    `return_layers` is {child: name}. Raises ValueError for a child that is not there.
    """

    def __init__(self, model: nn.Module, return_layers: dict[str, str]) -> None:
        children = dict(model.named_children())
        if not set(return_layers) <= set(children):
            raise ArgumentError(f"return_layers are not present in model: {sorted(set(return_layers) - set(children))}")
        last = max(list(children).index(name) for name in return_layers)
        super().__init__(OrderedDict(list(children.items())[: last + 1]))
        self.return_layers = {str(k): str(v) for k, v in return_layers.items()}

    def forward(self, x: Tensor) -> dict[str, Any]:
        out: dict[str, Any] = OrderedDict()
        for name, module in self.items():
            x = module(x)
            if name in self.return_layers:
                out[self.return_layers[name]] = x
        return out


def _make_divisible(v: float, divisor: int, min_value: int | None = None) -> int:
    """The nearest multiple of a number, at least `min_value`, and no more than a tenth below v."""
    found = max(divisor if min_value is None else min_value, int(v + divisor / 2) // divisor * divisor)
    return found + divisor if found < 0.9 * v else found
