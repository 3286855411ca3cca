"""Masks for attention by name: the causal ones of a rectangle, aligned with its upper left or its lower right corner."""

from __future__ import annotations

import enum
from typing import Any

from tritensor.ground.device import as_device
from tritensor.ground.dtypes import bool_
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor


class CausalVariant(enum.IntEnum):
    """Which corner of the scores the diagonal of a causal mask meets."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


def _mask(sizes: tuple[int, ...], diagonal: int, device: Any) -> Tensor:
    if len(sizes) != 2:
        raise RuntimeError(f"causal bias: sizes {sizes}; give two, the number of queries and of keys")
    seen = ops.full(shape=tuple(sizes), value=True, dtype=bool_.numpy, device=as_device(device))
    return ops.tril(seen, diagonal=diagonal)


def causal_upper_left(*size: int, device: Any = None) -> Tensor:
    """(queries, keys), bool: query i sees the keys up to i. A mask for scaled_dot_product_attention."""
    return _mask(size, 0, device)


def causal_lower_right(*size: int, device: Any = None) -> Tensor:
    """(queries, keys), bool: the last query sees all keys, the one before all but the last. A mask for scaled_dot_product_attention."""
    return _mask(size, size[1] - size[0] if len(size) == 2 else 0, device)  # two sizes or none: _mask refuses the rest, and names them
