"""The pytest plug-in of packages that add ops: `pytest_plugins = ["tritensor.testing.pytest_plugin"]` in their conftest.py."""

from __future__ import annotations

from typing import Any

from tritensor.ground.errors import DeviceError
from tritensor.testing.devices import emulate_without_gpu


def pytest_configure(config: Any) -> None:
    """Emulate device cuda where there is no GPU: here, because pytest imports test modules, and they kernels, later than this."""
    import pytest

    try:
        emulate_without_gpu()
    except DeviceError as error:
        raise pytest.UsageError(str(error)) from None


def pytest_report_header(config: Any) -> str:
    """What device cuda is in this session."""
    from tritensor.testing.devices import here

    try:
        return f"tritensor: device cuda is the {'emulated one' if here() == 'emulated' else 'GPU'}"
    except DeviceError:
        return "tritensor: no device cuda"
