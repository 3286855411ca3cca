"""Checksum CRC-32C (Castagnoli), masked as in TFRecord files: a table for short records, many bytes at once for long ones."""

from __future__ import annotations

from functools import cache

import numpy as np

_POLYNOMIAL = 0x82F63B78  # x^32 + x^28 + x^27 + ... + 1, its bits reversed (RFC 3720, appendix B.4)
_NUMPY_BYTES = 1500  # bytes; from there on numpy is faster


def _shift_byte(state: int) -> int:
    for _ in range(8):
        state = state >> 1 ^ (_POLYNOMIAL if state & 1 else 0)
    return state


_TABLE = [_shift_byte(byte) for byte in range(256)]


def crc32c(data: bytes) -> int:
    """The checksum of some bytes."""
    if len(data) >= _NUMPY_BYTES:
        return _crc32c_in_lanes(data)
    state, table = 0xFFFFFFFF, _TABLE
    for byte in data:
        state = table[(state ^ byte) & 255] ^ state >> 8
    return state ^ 0xFFFFFFFF


def masked_crc32c(data: bytes) -> int:
    """The checksum as files have it: rotated by 15 bits, and a constant added."""
    # so that the checksum of data that hold checksums is none of theirs (tensorflow/core/lib/hash/crc32c.h)
    crc = crc32c(data)
    return (crc >> 15 | crc << 17 & 0xFFFFFFFF) + 0xA282EAD8 & 0xFFFFFFFF


def _crc32c_in_lanes(data: bytes) -> int:
    """The checksum of many bytes: the state is linear in them, so lanes are read side by side, two bytes at a time, then joined in pairs."""
    # Zeros in front change nothing in a state of zero: they make the lanes a power of two. The first state, all ones, goes into the
    # first four bytes instead.
    # few steps over many lanes, but not more lanes than caches hold
    run = 32 if len(data) < 1 << 16 else 256  # bytes of a lane
    lanes = 1 << (-(-len(data) // run) - 1).bit_length()
    block = np.zeros(lanes * run, np.uint8)
    block[-len(data) :] = np.frombuffer(data, np.uint8)
    first = block.size - len(data)
    block[first : first + 4] ^= 255
    columns = np.ascontiguousarray(block.view("<u2").reshape(lanes, run // 2).T)  # (run / 2, lanes)
    pairs, state = _two_byte_table(), np.zeros(lanes, np.uint32)
    for column in columns:
        state = pairs[(state ^ column) & 0xFFFF] ^ state >> 16
    while len(state) > 1:
        state = _append_zeros(state[0::2], run) ^ state[1::2]
        run *= 2
    return int(state[0]) ^ 0xFFFFFFFF


@cache
def _two_byte_table() -> np.ndarray:
    """The state after each pair of bytes, from a state of zero: (65536,)."""
    table = np.array(_TABLE, np.uint32)
    once = table[np.arange(65536) & 255]
    return table[(once ^ (np.arange(65536, dtype=np.uint32) >> 8)) & 255] ^ once >> 8


def _append_zeros(states: np.ndarray, length: int) -> np.ndarray:
    """States after that many further bytes of zero."""
    tables = _zeros_tables(length)
    found: np.ndarray = tables[0][states & 255]
    for i in (1, 2, 3):
        found = found ^ tables[i][states >> 8 * i & 255]
    return found


@cache
def _zeros_tables(length: int) -> np.ndarray:
    """Each byte of a state after so many bytes of zero, a power of two: (4, 256)."""
    bytes_ = np.arange(256, dtype=np.uint32) << np.arange(0, 32, 8, dtype=np.uint32)[:, None]
    if length == 1:
        return np.array(_TABLE, np.uint32)[bytes_ & 255] ^ bytes_ >> 8
    return _append_zeros(_append_zeros(bytes_, length // 2), length // 2)
