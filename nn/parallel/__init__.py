"""Models on several devices: DataParallel, as far as one process with one device goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritensor.nn.module import Module


class DataParallel(Module):
    """A module around `module`, which runs every batch on the one device that its parameters are on.

    Results and state_dict keys (`module.weight`) are PyTorch's, which splits a batch over several GPUs; this does not split.

    Raises NotImplementedError for more than one of device_ids.
    """

    def __init__(self, module: Module, device_ids: Sequence[Any] | None = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        if device_ids is not None and len(device_ids) > 1:
            raise NotImplementedError(f"DataParallel: {len(device_ids)} device_ids; a batch is not split over devices, give one or none")
        self.module = module
        self.device_ids = list(device_ids or ())
        self.output_device, self.dim = output_device, dim

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)
