"""torch.cuda.amp and torch.cpu.amp: what tritensor.amp holds, for one type of device and without its name."""

from __future__ import annotations

from typing import Any

from tritensor.amp import GradScaler, autocast
from tritensor.amp import custom_bwd as custom_bwd_of
from tritensor.amp import custom_fwd as custom_fwd_of
from tritensor.ground.dtypes import bfloat16, float16


class cuda_autocast(autocast):
    """`torch.cuda.amp.autocast(enabled=True, ...)`: autocast("cuda", ...)."""

    # Enabled comes first here, in tritensor.amp the device.
    def __init__(self, enabled: bool = True, dtype: Any = float16, cache_enabled: bool = True) -> None:
        super().__init__("cuda", dtype, enabled, cache_enabled)


class cpu_autocast(autocast):
    """`torch.cpu.amp.autocast(enabled=True, ...)`: autocast("cpu", ...)."""

    def __init__(self, enabled: bool = True, dtype: Any = bfloat16, cache_enabled: bool = True) -> None:
        super().__init__("cpu", dtype, enabled, cache_enabled)


class _OneDeviceScaler(GradScaler):
    _served: str  # the type of device, which the older modules have in their name and not among the arguments

    def __init__(
        self, init_scale: float = 2.0**16, growth_factor: float = 2.0, backoff_factor: float = 0.5, growth_interval: int = 2000, enabled: bool = True
    ) -> None:  # fmt: skip
        super().__init__(self._served, init_scale, growth_factor, backoff_factor, growth_interval, enabled)


class CudaGradScaler(_OneDeviceScaler):
    """`torch.cuda.amp.GradScaler(init_scale=65536.0, ...)`: GradScaler("cuda", ...)."""

    _served = "cuda"


class CpuGradScaler(_OneDeviceScaler):
    """`torch.cpu.amp.GradScaler(init_scale=65536.0, ...)`: GradScaler("cpu", ...)."""

    _served = "cpu"


def custom_fwd(fwd: Any = None, *, cast_inputs: Any = None) -> Any:
    """amp.custom_fwd with device_type="cuda"."""
    return custom_fwd_of(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Any = None) -> Any:
    """amp.custom_bwd with device_type="cuda"."""
    return custom_bwd_of(bwd, device_type="cuda")
