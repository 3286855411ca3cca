"""A call of flash attention as its kernels take it: unit strides along the heads' features, leading dimensions merged, what is constant."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tritensor.ground import dtypes
from tritensor.kernels.parts.copying import to_c_order
from tritensor.kernels.parts.gemm import dot_accumulator
from tritensor.kernels.parts.launch_rules import next_power_of_2
from tritensor.kernels.parts.random_words.dropout_mask import kept_scale, threshold
from tritensor.kernels.parts.random_words.philox import kernel_seed
from tritensor.kernels.parts.view_arithmetic import merge_axes
from tritensor.ops.array import CudaArray, expand
from tritensor.ops.matmul_precision import dot_precision
from tritensor.ops.table import registry

Steps = tuple[int, ...]


def rows_in_pieces(x: CudaArray) -> CudaArray:
    """x itself where each row lies in a piece, and 256 rows within offsets of 32 bits; else a copy."""
    return x if (x.strides[-1] == 1 or x.shape[-1] < 2) and abs(x.strides[-2]) < 1 << 23 else to_c_order(x)


def merge_dims(shape: Steps, steps: Sequence[Steps], grouped: bool = False) -> tuple[Steps, list[Steps]]:
    """Sizes and, for each array, strides of the leading dimensions, innermost first; runs that are dense in all are one. `grouped`: the last stays alone."""
    # keys are shared by heads in a row, which the innermost dimension counts: merged with another it would not
    merged = len(shape) - grouped
    sizes, found = merge_axes(shape[:merged], [s[:merged] for s in steps])
    sizes, found = sizes + shape[merged:], [f + tuple(s[merged:]) for f, s in zip(found, steps, strict=True)]
    return sizes[::-1] or (1,), [f[::-1] or (0,) for f in found]


def mask_strides(mask: CudaArray | None, scores: Steps) -> tuple[int, int, int]:
    """(kind, strides of queries and keys) of a mask: 0 none, 1 of booleans, 2 of numbers."""
    if mask is None:
        return 0, 0, 1
    return 1 if mask.dtype == np.bool_ else 2, *expand(mask, scores).strides[-2:]


def mask_as_numbers(mask: CudaArray | None, dtype: np.dtype) -> CudaArray | None:
    """A mask of booleans beside float64 as 0 and -inf: Triton 3.6 compiles no float64 product in whose tiles single bytes are read."""
    if mask is None or mask.dtype != np.bool_ or dtype != np.float64:
        return mask
    zero, nothing = (registry["full"].forward(shape=(), value=x, dtype=dtype, device=mask.device) for x in (0.0, -math.inf))  # type: ignore[misc]
    return registry["where"].forward(mask, zero, nothing)  # type: ignore[misc]


def dropout_args(p: float, seed: int, offset: int) -> tuple[Any, ...]:
    """What kernels take to draw which weights are dropped: key, first block, state of a capture, threshold, scale of the others."""
    return *kernel_seed(seed, offset), np.int64(threshold(p)), np.float64(kept_scale(p))


class Call(NamedTuple):
    """Operands with unit strides along their last dimension, and sizes: `outer` matrices of queries, GROUP of which share keys and values."""

    q: CudaArray
    k: CudaArray
    v: CudaArray
    queries: int
    keys: int
    outer: int
    group: int
    causal: bool
    kind: int
    drops: bool

    @classmethod
    def of(cls, q: CudaArray, k: CudaArray, v: CudaArray, mask: CudaArray | None, causal: bool, p: float) -> Call:
        group = q.shape[-3] // k.shape[-3] if q.ndim > 2 and k.shape[-3] else 1
        kind = 0 if mask is None else 1 if mask.dtype == np.bool_ else 2
        outer = math.prod(q.shape[:-2])
        return cls(
            rows_in_pieces(q), rows_in_pieces(k), rows_in_pieces(v), q.shape[-2], k.shape[-2], outer, group, bool(causal), kind, p > 0
        )

    @property
    def scores(self) -> Steps:
        return *self.q.shape[:-1], self.keys

    @property
    def wide(self) -> int:
        """Columns of a tile of queries or keys."""
        return max(next_power_of_2(self.q.shape[-1]), 16)

    @property
    def v_wide(self) -> int:
        return max(next_power_of_2(self.v.shape[-1]), 16)

    @property
    def stats(self) -> np.dtype:
        return dtypes.accumulator(self.q.dtype)

    @property
    def constants(self) -> dict[str, Any]:
        """What every kernel of the call takes as constants."""
        return {
            "SIZE": self.q.shape[-1], "V_SIZE": self.v.shape[-1], "WIDE": self.wide, "V_WIDE": self.v_wide, "GROUP": self.group, "DROP": self.drops,
            "PRECISION": dot_precision(), "ACC": dot_accumulator(self.q.dtype)[1],
        }  # fmt: skip

    def by_query(self, arrays: Sequence[CudaArray], mask: CudaArray | None) -> tuple[Steps, list[Steps]]:
        """Sizes, and strides of each array and of the mask, for matrices of queries; keys and values are shared by heads in a row."""
        lead = self.q.shape[:-2]
        steps = [x.strides[:-2] for x in arrays]
        steps.append((0,) * len(lead) if mask is None else expand(mask, self.scores).strides[:-2])
        return merge_dims(lead, steps, self.group > 1)

    def by_key(self, arrays: Sequence[CudaArray]) -> tuple[Steps, list[Steps]]:
        """Sizes, and strides of each array, for matrices of keys."""
        return merge_dims(self.k.shape[:-2], [x.strides[:-2] for x in arrays])
