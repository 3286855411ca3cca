"""Philox's words in plain numpy, for references."""

from __future__ import annotations

import numpy as np


def philox_words(seed: int, offset: int, n: int) -> np.ndarray:
    """The first n uint32 words of a stream from block `offset` on, four to a block: Philox 4x32 of ten rounds (Salmon et al. 2011)."""
    low, blocks = 0xFFFFFFFF, np.uint64(offset) + np.arange(-(-n // 4), dtype=np.uint64)
    c0, c1, c2, c3 = blocks & low, blocks >> 32, blocks * 0, blocks * 0
    k0, k1 = seed & low, seed >> 32 & low
    for _ in range(10):
        p0, p1 = c0 * 0xD2511F53, c2 * 0xCD9E8D57
        c0, c1, c2, c3 = p1 >> 32 ^ c1 ^ k0, p1 & low, p0 >> 32 ^ c3 ^ k1, p0 & low
        k0, k1 = (k0 + 0x9E3779B9) & low, (k1 + 0xBB67AE85) & low
    return np.stack([c0, c1, c2, c3], -1).reshape(-1)[:n].astype(np.uint32)
