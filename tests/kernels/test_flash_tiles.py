"""The gate for flash attention: many small tiles, ragged edges, masks, heads that share keys, every tile that the rule can pick, faults that are found."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tritensor.kernels  # noqa: F401  (fills the table)
from tests.kernels.planting import planted
from tritensor.cuda.emulator.sanitizer import SanitizerError
from tritensor.ground import dtypes
from tritensor.ground.device import device
from tritensor.kernels.attention.flash import backward as flash_backward
from tritensor.kernels.attention.flash import forward as flash_forward
from tritensor.kernels.attention.flash import key_walk as flash_keys
from tritensor.kernels.attention.flash import parts as flash_parts
from tritensor.kernels.attention.flash.tiles import FlashTiles, flash_tiles
from tritensor.kernels.parts.launch_rules import forced
from tritensor.ops.table import Sample, registry
from tritensor.testing.questions.backward import backward_is_rule
from tritensor.testing.questions.cases import Case
from tritensor.testing.questions.forward import forward

GPU = device("cuda", 0)
BF16 = np.dtype(ml_dtypes.bfloat16)


def findings(name: str, sample: Sample) -> list[str]:
    """What forward and backward on the emulated device disagree in with numpy; that it refuses a launch is a finding."""
    case = Case(registry[name], 0, sample, "float32", "plain", GPU)
    try:
        return forward(case) + backward_is_rule(case)
    except SanitizerError as e:
        return [str(e)]


# Flash attention: 9 to 12 blocks of queries (with dropout 5, for its numbers take time), at least 3 of keys, ragged, masked in every way, heads that share keys
def attention(
    queries: int, keys: int, heads: int = 1, shared: int = 1, size: int = 5, mask: Any = None, **attrs: Any
) -> tuple[str, Sample]:
    x = np.random.default_rng((queries, keys)).standard_normal
    given = {"scale": 0.5, "causal": False, "p": 0.0, "seed": 7, "offset": 3, **attrs}
    k = (heads // shared, keys)
    return "flash_attention", Sample(x((heads, queries, size)), x((*k, size)), x((*k, size - 2)), mask, **given)


SEEN = np.random.default_rng(6).random((16 * 9 + 5, 16 * 3 + 7)) > 0.4
SEEN[3] = False
FLASH_CALLS = {
    "plain": attention(16 * 9 + 5, 16 * 3 + 7),
    "causal": attention(16 * 9 + 5, 16 * 10 + 1, causal=True),
    "causal, even": attention(16 * 10, 16 * 12, causal=True, size=16),
    "causal, fewer keys": attention(16 * 12 - 3, 16 * 3 + 2, causal=True),
    "shared": attention(16 * 3 + 5, 16 * 9 + 7, heads=4, shared=2, causal=True),
    "seen": attention(16 * 9 + 5, 16 * 3 + 7, mask=SEEN),
    "numbers": attention(16 * 9 + 5, 16 * 3 + 7, mask=np.where(SEEN, 1.5, -np.inf)[:1], causal=True),
    "dropped": attention(16 * 4 + 5, 16 * 3 + 6, heads=2, shared=2, p=0.3),
}


@pytest.mark.crossed
@pytest.mark.parametrize("tile", [FlashTiles(16, 16, 4, 2), FlashTiles(32, 16, 4, 2), FlashTiles(16, 32, 4, 2)], ids=str)
@pytest.mark.parametrize("call", FLASH_CALLS)
def test_flash_attention_in_small_tiles(call: str, tile: FlashTiles) -> None:
    with forced(flash_forward=tile, flash_dq=tile, flash_dkv=tile):
        assert not findings(*FLASH_CALLS[call])


def test_every_tile_of_flash_attention() -> None:
    """Each tile that the rule picks for any head, mask, type and shared memory, a block and a bit of queries and of keys."""
    for kernel in ("flash_forward", "flash_dq", "flash_dkv"):
        tiles = {
            (flash_tiles(kernel, queries, keys, wide, wide, causal, kind, drops, np.dtype(dtype), shared << 10), dtype, wide)
            for queries, keys, wide, (causal, kind, drops), dtype, shared in itertools.product(
                (1, 20, 5000), (1, 20, 5000), (16, 64, 128, 256), ((False, 0, False), (True, 0, False), (False, 2, True)),
                (BF16, np.dtype(np.float32), np.dtype(np.float64)), (99, 163, 227),
            )
        }  # fmt: skip
        for t, dtype, _ in {(t, dtype, 0) for t, dtype, _ in tiles}:
            name, sample = attention(t.block_m + 3, t.block_n + 5, causal=t.block_m >= t.block_n)
            with forced(**{kernel: t}):
                case = Case(registry[name], 0, sample, dtypes.of(dtype).name, "plain", GPU)
                assert not (forward(case) if kernel == "flash_forward" else backward_is_rule(case)), (kernel, t)


FORWARD, KEYS = (flash_forward, flash_forward), (flash_keys, flash_backward)  # where a function stands, and who calls it
FLASH_FAULTS = {
    "the diagonal is not seen": (flash_parts, flash_forward, "mask_scores", "seen = seen & (col <= row)", "seen = seen & (col < row)"),
    "a tile too many without a mask": (
        *FORWARD, "_forward_kernel", "tl.minimum(keys, tile * BM + 1) // BN", "tl.minimum(keys, tile * BM + BM) // BN",
    ),
    "a tile too few": (*FORWARD, "_forward_kernel", "tl.minimum(keys, (tile + 1) * BM)", "tl.minimum(keys, tile * BM)"),
    "the sum does not fade": (*FORWARD, "_walk", "total = total * fade", "total = total"),
    "the first head of a group alone": (*KEYS, "keys_kernel", "head = outer * GROUP + i", "head = outer * GROUP"),
    "queries before the diagonal": (
        *KEYS, "keys_kernel", "tl.minimum(tile * BN // BM * BM, queries)", "tl.minimum((tile + 1) * BN // BM * BM, queries)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", list(FLASH_FAULTS))
def test_a_fault_of_flash_attention_is_found(fault: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    home, user, name, right, wrong = FLASH_FAULTS[fault]
    monkeypatch.setattr(user, name, planted(home, name, right, wrong, tmp_path))
    tile = FlashTiles(32, 16, 4, 2)
    with forced(flash_forward=tile, flash_dq=tile, flash_dkv=tile):
        assert findings(*FLASH_CALLS["shared"]), fault
