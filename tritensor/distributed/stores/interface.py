"""Store's methods, and errors: a table of keys and bytes that processes read, write and wait upon."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from tritensor.ground.errors import ArgumentError

_DEFAULT = timedelta(seconds=300)


def as_bytes(name: str, value: Any) -> bytes:
    """A value as bytes; text is UTF-8. Raises TypeError for anything else."""
    if isinstance(value, str):
        return value.encode()
    if not isinstance(value, (bytes, bytearray)):
        raise TypeError(f"{name}: a value is {value!r}, of type {type(value).__name__}; give a str or bytes")
    return bytes(value)


class Store:
    """The base of stores. A class of a program's own says `get` and `set`, and what else it uses; the others raise NotImplementedError."""

    def __init__(self) -> None:
        self._timeout = _DEFAULT

    @property
    def timeout(self) -> timedelta:
        """How long `get` and `wait` wait for a key; five minutes where nothing is said."""
        return getattr(self, "_timeout", _DEFAULT)

    def set_timeout(self, timeout: timedelta) -> None:
        """Say how long `get` and `wait` wait. Raises TypeError for anything but a timedelta."""
        if not isinstance(timeout, timedelta):
            raise TypeError(f"set_timeout: timeout is {timeout!r}; give a datetime.timedelta")
        self._timeout = timeout

    def set(self, key: str, value: str | bytes) -> None:
        """Write a value."""
        raise self._missing("set")

    def get(self, key: str) -> bytes:
        """The value of a key, once it is there. Raises DistStoreError where it does not come within the timeout."""
        raise self._missing("get")

    def add(self, key: str, amount: int) -> int:
        """Count a key up, from 0 where it is not there; its new number. Raises ValueError where its value is no number."""
        raise self._missing("add")

    def append(self, key: str, value: str | bytes) -> None:
        """Write a value behind the one that is there."""
        raise self._missing("append")

    def compare_set(self, key: str, expected: str | bytes, desired: str | bytes) -> bytes:
        """Write `desired` where the value is `expected`, or where there is none and nothing is expected; the value that then stands there."""
        raise self._missing("compare_set")

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys are there."""
        raise self._missing("check")

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until all keys are there. Raises DistStoreError where they do not come within the timeout."""
        raise self._missing("wait")

    def delete_key(self, key: str) -> bool:
        """Remove a key; whether it was there."""
        raise self._missing("delete_key")

    def num_keys(self) -> int:
        """The number of keys, with those by which a store counts its users."""
        raise self._missing("num_keys")

    def list_keys(self) -> list[str]:
        """All keys."""
        raise self._missing("list_keys")

    def clone(self) -> Store:
        """A store of the same table for another thread."""
        raise self._missing("clone")

    def queue_push(self, key: str, value: str | bytes) -> None:
        """Put a value at the end of a queue."""
        raise self._missing("queue_push")

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Take the first value of a queue, once there is one. Raises QueueEmptyError at once without `block`, DistStoreError after the timeout."""
        raise self._missing("queue_pop")

    def queue_len(self, key: str) -> int:
        """The number of values in a queue."""
        raise self._missing("queue_len")

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """The values of several keys."""
        return [self.get(key) for key in keys]

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Write several values. Raises ValueError where the numbers of keys and values differ."""
        if len(keys) != len(values):
            raise ArgumentError(f"multi_set: {len(keys)} keys and {len(values)} values; give one value for each key")
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def has_extended_api(self) -> bool:
        """Whether append, multi_get and multi_set are one step each."""
        return False

    def barrier(self, key: str, world_size: int, timeout: timedelta | None = None) -> None:
        """Wait until `world_size` users have called it with this key."""
        if self.add(f"{key}/num_members", 1) == world_size:
            self.set(f"{key}/last_member", b"1")
        self.wait([f"{key}/last_member"], timeout or self.timeout)

    def _missing(self, name: str) -> NotImplementedError:
        return NotImplementedError(f"{type(self).__name__}.{name}: this store does not have it; use HashStore or TCPStore, which do")
