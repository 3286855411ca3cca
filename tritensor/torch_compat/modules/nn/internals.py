"""torch._C._nn: what the arguments of a module's `to` mean, as wrappers of modules ask."""

from __future__ import annotations

from typing import Any

from tritensor.nn.moving import parse_destination


def _parse_to(*args: Any, memory_format: Any = None, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """(device, type, non_blocking, memory_format) that `to(*args, **kwargs)` means, None where nothing is said."""
    return *parse_destination(*args, **kwargs), memory_format
