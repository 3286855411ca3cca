"""Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011), in Triton and in numpy: the same words.

Block b of a stream is Philox of counter (b, 0, 0) under the key `seed`: four 32-bit words w0 w1 w2 w3, read as a sequence
w0 w1 w2 w3 of 32-bit words or w1:w0, w3:w2 of 64-bit words. An op that draws n words of `bits` bits starts at block
`offset` and uses random.blocks_used(n, bits) blocks, whatever the device; the generator moves on by that many. Counter words 2 and 3
are always 0, left for streams.
"""

from __future__ import annotations

import threading

import numpy as np
import triton
import triton.language as tl

from tritensor.cuda.streams.capture import CapturedOffset
from tritensor.kernels.parts.random_words import philox_llvm
from tritensor.ops.array import CudaArray

_WORDS = np.dtype(np.uint64)
(MULTIPLIER_0, MULTIPLIER_1), (WEYL_0, WEYL_1), ROUNDS = philox_llvm.MULTIPLIERS, philox_llvm.WEYL, philox_llvm.ROUNDS
CHUNK = 16384  # blocks that numpy computes at a time, so that the state stays in the cache


def key_of(seed: int) -> tuple[int, int]:
    """The two key words of a 64-bit seed."""
    return seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF


def kernel_seed(seed: int, offset: int) -> tuple[np.uint32, np.uint32, np.uint64, CudaArray | None]:
    """Seed and offset as kernel arguments, for `draw_origin`: (k0, k1, offset, state).

    In the capture of a graph `state` is the array of (seed, base) that each replay sets anew, and the offset counts from the base.
    """
    low, high = key_of(seed)
    if isinstance(offset, CapturedOffset):  # a replay of the graph draws anew
        return np.uint32(low), np.uint32(high), np.uint64(offset.relative), CudaArray(offset.state, (2,), _WORDS)
    return np.uint32(low), np.uint32(high), np.uint64(offset & 0xFFFFFFFFFFFFFFFF), None


@triton.jit
def draw_origin(k0, k1, offset, state):
    """The key and the first block of a draw: what was given, or what `state` holds and the offset from there."""
    if state is not None:
        seed = tl.load(state)
        k0 = seed.to(tl.uint32)
        k1 = (seed >> 32).to(tl.uint32)
        offset += tl.load(state + 1)
    return k0, k1, offset


# (c0, c1, c2, c3) -> (hi(M1 c2) ^ c1 ^ k0, lo(M1 c2), hi(M0 c0) ^ c3 ^ k1, lo(M0 c0)), ten times; the key grows by the Weyl constants
@triton.jit
def philox(block, k0, k1):
    """Four uint32 words for each uint64 block number."""
    c0 = block.to(tl.uint32)
    c1 = (block >> 32).to(tl.uint32)
    c2 = c0 * 0
    c3 = c0 * 0
    for _ in tl.static_range(10):
        p0 = c0.to(tl.uint64) * 0xD2511F53
        p1 = c2.to(tl.uint64) * 0xCD9E8D57
        c0 = (p1 >> 32).to(tl.uint32) ^ c1 ^ k0
        c1 = p1.to(tl.uint32)
        c2 = (p0 >> 32).to(tl.uint32) ^ c3 ^ k1
        c3 = p0.to(tl.uint32)
        k0 = (k0.to(tl.uint64) + 0x9E3779B9).to(tl.uint32)
        k1 = (k1.to(tl.uint64) + 0xBB67AE85).to(tl.uint32)
    return c0, c1, c2, c3


@triton.jit
def in_order(a, b, c, d):
    """a0 b0 c0 d0 a1 b1 c1 d1 ...: the values of four words of a block, as a sequence."""
    return tl.interleave(tl.interleave(a, c), tl.interleave(b, d))


def numpy_words(seed: int, offset: int, n: int) -> np.ndarray:
    """n uint32 words (n a multiple of 4) from block `offset` on."""
    blocks = n // 4
    if blocks <= AHEAD:
        words, start = ahead(seed, offset, blocks)
        return words[start : start + blocks].reshape(-1)
    words = np.empty((blocks, 4), np.uint32)
    for first in range(philox_llvm.fill("words", words.reshape(-1), seed, offset) // 4, blocks, CHUNK):
        _fill_blocks(words[first : first + CHUNK], seed, offset + first)
    return words.reshape(-1)


def ahead(seed: int, offset: int, blocks: int) -> tuple[np.ndarray, int]:
    """A chunk (m, 4) that holds these few blocks, and the row of the first: the chunk kept from the last call where it holds
    them, because small draws follow one another in a stream. It is read-only, and another array whenever it holds other words."""
    global _kept
    key, first, words = _kept
    start = offset - first
    if key != seed or start < 0 or start + blocks > len(words):
        words, start = np.empty((8 * AHEAD if key == seed else AHEAD, 4), np.uint32), 0  # a seed's first draw may be its last
        _fill_blocks(words, seed, offset)
        words.flags.writeable = False
        _kept = (seed, offset, words)
    return words, start


AHEAD = 256  # blocks
_kept: tuple[int, int, np.ndarray] = (-1, 0, np.empty((0, 4), np.uint32))


def _fill_blocks(out: np.ndarray, seed: int, offset: int) -> None:
    """Blocks offset, offset + 1, ... into the rows of out (blocks, 4), at most CHUNK.

    The upper halves of products that serve as words 1 and 3 are left dirty: they only enter an exclusive or whose result is masked.
    """
    count = len(out)
    if (room := getattr(_rooms, "room", None)) is None:
        room = _rooms.room = np.empty((6, CHUNK), np.uint64)
    even, before, after = (room.reshape(-1)[k * count : (k + 2) * count].reshape(2, count) for k in (0, 2, 4))
    c0, c2, both = even[0], even[1], even.reshape(-1)
    keys = ((np.array([[seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF]], np.uint64) + _WEYL) & _LOW)[:, :, None]  # (rounds, 2, 1)
    np.add(np.arange(count, dtype=np.uint64), np.uint64(offset & 0xFFFFFFFFFFFFFFFF), out=c0)
    np.right_shift(c0, _HALF, out=c2)
    np.bitwise_and(c0, _LOW, out=c0)
    # The first round, in which words 1 to 3 are the block's upper half, 0 and 0: p1 is 0.
    np.multiply(c0, _MULTIPLIER_0, out=before[0])
    np.bitwise_xor(c2, keys[0, 0], out=c0)
    np.right_shift(before[0], _HALF, out=c2)
    np.bitwise_xor(c2, keys[0, 1], out=c2)
    before[1] = 0
    for k0, k1 in keys[1:]:
        np.multiply(c0, _MULTIPLIER_0, out=after[0])
        np.multiply(c2, _MULTIPLIER_1, out=after[1])
        np.right_shift(after[1], _HALF, out=c0)
        np.right_shift(after[0], _HALF, out=c2)
        np.bitwise_xor(c0, before[1], out=c0)
        np.bitwise_xor(c2, before[0], out=c2)
        np.bitwise_xor(c0, k0, out=c0)
        np.bitwise_xor(c2, k1, out=c2)
        np.bitwise_and(both, _LOW, out=both)
        before, after = after, before
    for column, c in enumerate((c0, before[1], c2, before[0])):
        out[:, column] = c.view(np.uint32)[::2]  # the low halves (little-endian)


# Arrays of one: numpy takes twice as long to make one of a scalar.
_HALF, _LOW, _MULTIPLIER_0, _MULTIPLIER_1 = (np.array([v], np.uint64) for v in (32, 0xFFFFFFFF, MULTIPLIER_0, MULTIPLIER_1))
_WEYL = np.arange(ROUNDS, dtype=np.uint64)[:, None] * np.array([[WEYL_0, WEYL_1]], np.uint64)  # (rounds, 2)
_rooms = threading.local()
