"""torch._C._profiler: settings of the library that PyTorch's profiler is made with, which scripts pass as experimental_config."""

from __future__ import annotations

from typing import Any

from tritensor.profiler import DeviceType as DeviceType
from tritensor.profiler import ProfilerActivity as ProfilerActivity


class _ExperimentalConfig:
    """Accepted by profile(experimental_config=...): what it sets is that library's. Its settings are kept as attributes."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        self.args = args
        self.__dict__.update(settings)
