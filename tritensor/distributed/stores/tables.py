"""Stores whose table is at hand: HashStore's in the memory of one process, FileStore's in a file that all processes of a machine open."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path

from tritensor.distributed.stores.interface import Store, as_bytes
from tritensor.ground.errors import ArgumentError, DistStoreError, QueueEmptyError
from tritensor.ground.process import locks

_PAUSE = 0.01
_USERS, _GONE = "efcount/", "cleanup/"  # keys by which a file's users are counted


class _TableStore(Store):
    """Everything that is said by a table which nobody else holds meanwhile."""

    def _table(self) -> contextlib.AbstractContextManager[dict[str, bytes]]:
        raise NotImplementedError

    def _wait_until(self, ready: Callable[[dict[str, bytes]], bool], seconds: float) -> bool:
        raise NotImplementedError

    def set(self, key: str, value: str | bytes) -> None:
        new = as_bytes(f"{type(self).__name__}.set", value)
        with self._table() as table:
            table[key] = new

    def get(self, key: str) -> bytes:
        self.wait([key])
        with self._table() as table:
            return table[key]

    def add(self, key: str, amount: int) -> int:
        with self._table() as table:
            found = table.get(key, b"0")
            try:
                count = int(found) + int(amount)
            except ValueError:
                raise ArgumentError(f"{type(self).__name__}.add: {key!r} is {found!r}, no number that can be counted up") from None
            table[key] = str(count).encode()
        return count

    def append(self, key: str, value: str | bytes) -> None:
        more = as_bytes(f"{type(self).__name__}.append", value)
        with self._table() as table:
            table[key] = table.get(key, b"") + more

    def compare_set(self, key: str, expected: str | bytes, desired: str | bytes) -> bytes:
        old, new = (as_bytes(f"{type(self).__name__}.compare_set", v) for v in (expected, desired))
        with self._table() as table:
            if table.get(key, b"") == old:
                table[key] = new
            # PyTorch's answer for a key that is not there, where one was expected, is what was expected.
            return table.get(key, old)

    def check(self, keys: Sequence[str]) -> bool:
        with self._table() as table:
            return all(key in table for key in keys)

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        limit = self.timeout if timeout is None else timeout
        if not self._wait_until(lambda table: all(key in table for key in keys), limit.total_seconds()):
            missing = [key for key in keys if not self.check([key])]
            raise DistStoreError(
                f"{type(self).__name__}: wait timeout after {limit.total_seconds():g} s, keys: {', '.join(missing)}; does every process come so far?"
            )

    def delete_key(self, key: str) -> bool:
        with self._table() as table:
            return table.pop(key, None) is not None

    def num_keys(self) -> int:
        with self._table() as table:
            return len(table)

    def list_keys(self) -> list[str]:
        with self._table() as table:
            return list(table)


class HashStore(_TableStore):
    """A table in this process' memory, for its threads."""

    def __init__(self) -> None:
        super().__init__()
        self._values: dict[str, bytes] = {}
        self._queues: dict[str, deque[bytes]] = {}
        self._changed = threading.Condition(locks.rlock())

    @contextlib.contextmanager
    def _table(self) -> Iterator[dict[str, bytes]]:
        with self._changed:
            yield self._values
            self._changed.notify_all()

    def _wait_until(self, ready: Callable[[dict[str, bytes]], bool], seconds: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: ready(self._values), seconds)

    def clone(self) -> Store:
        twin = HashStore()  # the table is one; how long to wait is each user's own
        twin._values, twin._queues, twin._changed = self._values, self._queues, self._changed
        return twin

    def has_extended_api(self) -> bool:
        return True

    def queue_push(self, key: str, value: str | bytes) -> None:
        new = as_bytes("HashStore.queue_push", value)
        with self._changed:
            self._queues.setdefault(key, deque()).append(new)
            self._changed.notify_all()

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        with self._changed:
            if not self._changed.wait_for(lambda: self._queues.get(key), self.timeout.total_seconds() if block else 0):
                if not block:
                    raise QueueEmptyError(f"HashStore.queue_pop: queue is empty: {key!r}; wait for a value with block=True")
                raise DistStoreError(f"HashStore.queue_pop: nothing came to {key!r} within {self.timeout.total_seconds():g} s")
            return self._queues[key].popleft()

    def queue_len(self, key: str) -> int:
        with self._changed:
            return len(self._queues.get(key, ()))


class FileStore(_TableStore):
    """A table in a file, for processes of one machine; the last of `world_size` users that lets go of it removes the file."""

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        super().__init__()
        self.path = os.fspath(file_name)
        self._size = int(world_size)
        self.add(_USERS, 1)

    def __del__(self) -> None:
        # Without a size nobody knows who is the last; a file that is gone has no users left.
        if getattr(self, "_size", -1) > 0 and os.path.exists(self.path) and self.add(_GONE, 1) == self._size:
            Path(self.path).unlink(missing_ok=True)

    @contextlib.contextmanager
    def _table(self) -> Iterator[dict[str, bytes]]:
        with open(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644), "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # let go at the close
            text = file.read()
            table = {key: value.encode("latin-1") for key, value in json.loads(text or b"{}").items()}
            yield table
            new = json.dumps({key: value.decode("latin-1") for key, value in table.items()}).encode()
            if new != text:
                file.seek(0)
                file.truncate()
                file.write(new)

    def _wait_until(self, ready: Callable[[dict[str, bytes]], bool], seconds: float) -> bool:
        end = time.monotonic() + seconds
        while True:
            with self._table() as table:
                if ready(table):
                    return True
            if time.monotonic() > end:
                return False
            time.sleep(_PAUSE)

    def clone(self) -> Store:
        return FileStore(self.path, self._size)

    def delete_key(self, key: str) -> bool:
        super().delete_key(key)
        return True  # as in PyTorch, whose file notes that the key is gone, whether it was there or not
