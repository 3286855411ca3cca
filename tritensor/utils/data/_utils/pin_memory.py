"""PyTorch's path of the function that pins a batch."""

from __future__ import annotations

from typing import Any

from tritensor.data.collate import pin_tensors


def pin_memory(data: Any, device: Any = None) -> Any:
    """A batch with its tensors in pinned host memory, its structure kept. `device` is accepted: pinned memory is the same for all."""
    return pin_tensors(data)
