"""torch.xpu: Intel's GPUs, which are not driven. Questions are answered as PyTorch answers them on a machine without one; what needs one raises by name."""

from __future__ import annotations

from typing import Any

from tritensor.torch_compat.modules.devices.absent import device_count as device_count
from tritensor.torch_compat.modules.devices.absent import is_available as is_available


def is_initialized() -> bool:
    """False."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """False."""
    return False


def is_tf32_supported() -> bool:
    """False."""
    return False


def get_arch_list() -> list[str]:
    """[]."""
    return []


def empty_cache() -> None:
    """Nothing is kept."""


def manual_seed(seed: int) -> None:
    """No generator is there to be seeded: seeding every kind of device is no error."""


def manual_seed_all(seed: int) -> None:
    """No generator is there to be seeded."""


def get_rng_state_all() -> list[Any]:
    """[]: the state of no device."""
    return []


def memory_allocated(device: Any = None) -> int:
    """0."""
    return 0


memory_reserved = max_memory_allocated = max_memory_reserved = memory_allocated
