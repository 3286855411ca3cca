"""torch.distributed._tensor: the older path of torch.distributed.tensor."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    """What torch.distributed.tensor calls so."""
    from tritensor.torch_compat.finder import look_up

    return look_up("distributed.tensor", name)
