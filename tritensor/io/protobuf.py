"""The wire format of protocol buffers: numbers, text and messages as fields (protobuf.dev/programming-guides/encoding)."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import cache

import numpy as np

_double = struct.Struct("<d").pack
_single = struct.Struct("<f").pack


def varint(n: int) -> bytes:
    """An integer of 64 bits, seven of them a byte, the lowest first; a negative one as its two's complement."""
    if 0 <= n < 128:  # nearly all lengths and tags
        return _ONE_BYTE[n]
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


_ONE_BYTE = [bytes([n]) for n in range(128)]


@cache
def _tag(field: int, kind: int) -> bytes:
    """The bytes before a value. Kinds: 0 a varint, 1 eight bytes, 2 a length and as many bytes, 5 four bytes."""
    return varint(field << 3 | kind)


def integer(field: int, n: int) -> bytes:
    """An int32, int64, bool or enum."""
    return _tag(field, 0) + varint(n)


def double(field: int, x: float) -> bytes:
    return _tag(field, 1) + _double(x)


def float32(x: float) -> bytes:
    """Four bytes; too large a number is infinite, as a cast makes it."""
    try:
        return _single(x)
    except OverflowError:
        return _single(float("inf") if x > 0 else float("-inf"))


def single(field: int, x: float) -> bytes:
    return _tag(field, 5) + float32(x)


def message(field: int, *parts: bytes) -> bytes:
    """Bytes, or a message made of its fields."""
    body = parts[0] if len(parts) == 1 else b"".join(parts)
    return _tag(field, 2) + varint(len(body)) + body


def text(field: int, s: str) -> bytes:
    return message(field, s.encode())


def doubles(field: int, values: Iterable[float]) -> bytes:
    """A packed list."""
    return message(field, np.asarray(values, "<f8").tobytes())


def singles(field: int, values: Iterable[float]) -> bytes:
    """A packed list."""
    return message(field, np.asarray(values, "<f4").tobytes())


def integers(field: int, values: Iterable[int]) -> bytes:
    """A packed list."""
    return message(field, b"".join([varint(n) for n in values]))
