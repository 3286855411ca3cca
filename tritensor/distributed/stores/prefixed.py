"""PrefixStore: another store's table below a word of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from tritensor.distributed.stores.interface import Store


class PrefixStore(Store):
    """`store` with `prefix/` before every key, so that two users of one table do not meet."""

    def __init__(self, prefix: str, store: Store) -> None:
        if not isinstance(store, Store):
            raise TypeError(f"PrefixStore: store is {store!r}, of type {type(store).__name__}; give a Store")
        super().__init__()
        self._prefix = prefix
        self.underlying_store = store

    @property
    def _underlying_non_prefix_store(self) -> Store:
        inner = self.underlying_store
        return inner._underlying_non_prefix_store if isinstance(inner, PrefixStore) else inner

    @property
    def timeout(self) -> timedelta:
        return self.underlying_store.timeout

    def set_timeout(self, timeout: timedelta) -> None:
        self.underlying_store.set_timeout(timeout)

    def set(self, key: str, value: str | bytes) -> None:
        self.underlying_store.set(self._name(key), value)

    def get(self, key: str) -> bytes:
        return self.underlying_store.get(self._name(key))

    def add(self, key: str, amount: int) -> int:
        return self.underlying_store.add(self._name(key), amount)

    def append(self, key: str, value: str | bytes) -> None:
        self.underlying_store.append(self._name(key), value)

    def compare_set(self, key: str, expected: str | bytes, desired: str | bytes) -> bytes:
        return self.underlying_store.compare_set(self._name(key), expected, desired)

    def check(self, keys: Sequence[str]) -> bool:
        return self.underlying_store.check([self._name(key) for key in keys])

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        names = [self._name(key) for key in keys]
        if timeout is None:
            self.underlying_store.wait(names)
        else:
            self.underlying_store.wait(names, timeout)

    def delete_key(self, key: str) -> bool:
        return self.underlying_store.delete_key(self._name(key))

    def num_keys(self) -> int:
        return self.underlying_store.num_keys()

    def list_keys(self) -> list[str]:
        return [key.removeprefix(f"{self._prefix}/") for key in self.underlying_store.list_keys() if key.startswith(f"{self._prefix}/")]

    def clone(self) -> Store:
        return PrefixStore(self._prefix, self.underlying_store.clone())

    def queue_push(self, key: str, value: str | bytes) -> None:
        self.underlying_store.queue_push(self._name(key), value)

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        return self.underlying_store.queue_pop(self._name(key), block)

    def queue_len(self, key: str) -> int:
        return self.underlying_store.queue_len(self._name(key))

    def has_extended_api(self) -> bool:
        return self.underlying_store.has_extended_api()

    def _name(self, key: str) -> str:
        return f"{self._prefix}/{key}"
