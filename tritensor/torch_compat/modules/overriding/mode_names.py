"""torch.utils._mode_utils: contexts of handlers below autograd."""

from __future__ import annotations

from typing import Any

from tritensor.torch_dispatch.asking import DisableTorchDispatch

__all__ = ["all_same_mode", "no_dispatch"]


def no_dispatch() -> DisableTorchDispatch:
    """A context manager in which no class and no mode below autograd is handed anything."""
    return DisableTorchDispatch()


def all_same_mode(modes: Any) -> bool:
    """Whether all of some modes are one."""
    return all(mode == modes[0] for mode in modes)
