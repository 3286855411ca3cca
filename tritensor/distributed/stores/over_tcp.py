"""TCPStore: a table that one process serves and all others reach at its address."""

from __future__ import annotations

import contextlib
import json
import socket
import socketserver
import struct
import threading
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from tritensor.distributed.stores.interface import Store, as_bytes
from tritensor.distributed.stores.tables import HashStore
from tritensor.ground.errors import ArgumentError, DistNetworkError, DistStoreError, QueueEmptyError
from tritensor.ground.process import locks

_LENGTH = struct.Struct("!I")
_JOINED = "init/"  # the key by which a server counts those that have come
_RAISED: dict[str, type[Exception]] = {e.__name__: e for e in (ArgumentError, DistStoreError, QueueEmptyError, TypeError)}
_ASKED = frozenset(
    {
        "set",
        "get",
        "add",
        "append",
        "compare_set",
        "check",
        "wait",
        "delete_key",
        "num_keys",
        "list_keys",
        "queue_push",
        "queue_pop",
        "queue_len",
    }
)
_PAUSE = 0.05


def _send(link: socket.socket, what: Any) -> None:
    # JSON, not pickle: what comes over a network must not be able to run anything.
    text = json.dumps(what, default=lambda value: {"bytes": value.decode("latin-1")}).encode()
    link.sendall(_LENGTH.pack(len(text)) + text)


def _receive(link: socket.socket) -> Any:
    """What the other side has sent; None where it has gone."""
    head = _read(link, _LENGTH.size)
    text = head and _read(link, _LENGTH.unpack(head)[0])
    return text and json.loads(text, object_hook=lambda found: found["bytes"].encode("latin-1") if set(found) == {"bytes"} else found)


def _read(link: socket.socket, count: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < count:
        more = link.recv(count - len(parts))
        if not more:
            return None
        parts += more
    return bytes(parts)


class _Asker(socketserver.BaseRequestHandler):
    """One client's questions, each answered before the next is read."""

    def handle(self) -> None:
        table = self.server.table.clone()  # type: ignore[attr-defined]
        while (question := _receive(self.request)) is not None:
            name, args, seconds = question
            try:
                if name not in _ASKED:
                    raise TypeError(f"TCPStore: {name!r} is no question to a store")
                table.set_timeout(timedelta(seconds=seconds))
                answer = {"answer": getattr(table, name)(*args)}
            except tuple(_RAISED.values()) as error:
                answer = {"raised": type(error).__name__, "said": str(error).replace("HashStore", "TCPStore")}
            try:
                _send(self.request, answer)
            except ConnectionError:
                return  # the client did not wait for its answer


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, address: tuple[str, int]) -> None:
        self.table = HashStore()
        self.links: set[socket.socket] = set()
        super().__init__(address, _Asker)
        threading.Thread(target=self.serve_forever, args=(_PAUSE,), daemon=True).start()

    def process_request(self, request: Any, client_address: Any) -> None:
        self.links.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.links.discard(request)
        super().shutdown_request(request)

    def end(self) -> None:
        """Serve nobody any more; those who wait for an answer hear that it has gone."""
        self.shutdown()
        self.server_close()
        for link in list(self.links):
            with contextlib.suppress(OSError):  # one that has ended by itself meanwhile
                link.shutdown(socket.SHUT_RDWR)


class TCPStore(Store):
    """A table at `host_name:port`, which the process with `is_master` serves at that address alone; port 0 is a free one there.

    With a `world_size` its making waits until that many have come. `use_libuv` is accepted and noted.

    Raises DistNetworkError where nobody serves there within the timeout or the address is taken, DistStoreError where the others do not come.
    """

    def __init__(
        self, host_name: str, port: int, world_size: int | None = None, is_master: bool = False,
        timeout: timedelta = timedelta(seconds=300), wait_for_workers: bool = True, multi_tenant: bool = False,
        master_listen_fd: int | None = None, use_libuv: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        if multi_tenant or master_listen_fd is not None:
            raise NotImplementedError(
                "TCPStore: multi_tenant and master_listen_fd are not in tritensor; give each store a port of its own, or port 0"
            )
        self.set_timeout(timeout)
        self.host, self.libuvBackend = host_name, use_libuv
        self._server: _Server | None = None
        if is_master:
            try:
                self._server = _Server((host_name, int(port)))
            except OSError as error:
                raise DistNetworkError(f"TCPStore: {host_name}:{port} cannot be served ({error}); give a free port, or 0") from error
            port = self._server.server_address[1]
        self.port = int(port)
        self._lock = locks.lock()
        self._link = self._connect()
        if world_size is not None and self.add(_JOINED, 1) >= world_size:
            self.set(f"{_JOINED}all", b"1")
        if world_size is not None and wait_for_workers:
            self.wait([f"{_JOINED}all"])

    def __del__(self) -> None:
        if hasattr(self, "_link"):
            self._link.close()
        if getattr(self, "_server", None) is not None:
            self._server.end()  # type: ignore[union-attr]

    def _connect(self) -> socket.socket:
        end = time.monotonic() + self.timeout.total_seconds()
        while True:
            try:
                link = socket.create_connection((self.host, self.port), max(0.1, end - time.monotonic()))
            except OSError as error:
                if time.monotonic() > end:
                    raise DistNetworkError(
                        f"TCPStore: nobody serves at {self.host}:{self.port} ({error}); does rank 0 give is_master=True?"
                    ) from error
                time.sleep(_PAUSE)
            else:
                link.settimeout(None)
                return link

    def _ask(self, name: str, *args: Any, timeout: timedelta | None = None) -> Any:
        with self._lock:
            try:
                _send(self._link, [name, args, (timeout or self.timeout).total_seconds()])
                found = _receive(self._link)
            except ConnectionError as error:
                raise DistNetworkError(f"TCPStore.{name}: the connection to {self.host}:{self.port} is lost ({error})") from error
        if found is None:
            raise DistNetworkError(f"TCPStore.{name}: {self.host}:{self.port} has gone; the store ends with the process that serves it")
        if "raised" in found:
            raise _RAISED[found["raised"]](found["said"])
        return found["answer"]

    def set(self, key: str, value: str | bytes) -> None:
        self._ask("set", key, as_bytes("TCPStore.set", value))

    def get(self, key: str) -> bytes:
        return self._ask("get", key)

    def add(self, key: str, amount: int) -> int:
        return self._ask("add", key, int(amount))

    def append(self, key: str, value: str | bytes) -> None:
        self._ask("append", key, as_bytes("TCPStore.append", value))

    def compare_set(self, key: str, expected: str | bytes, desired: str | bytes) -> bytes:
        return self._ask("compare_set", key, *(as_bytes("TCPStore.compare_set", v) for v in (expected, desired)))

    def check(self, keys: Sequence[str]) -> bool:
        return self._ask("check", list(keys))

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        self._ask("wait", list(keys), timeout=timeout)

    def delete_key(self, key: str) -> bool:
        return self._ask("delete_key", key)

    def num_keys(self) -> int:
        return self._ask("num_keys") - self.check([f"{_JOINED}all"])

    def list_keys(self) -> list[str]:
        return [key for key in self._ask("list_keys") if not key.startswith(_JOINED)]

    def queue_push(self, key: str, value: str | bytes) -> None:
        self._ask("queue_push", key, as_bytes("TCPStore.queue_push", value))

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        return self._ask("queue_pop", key, block)

    def queue_len(self, key: str) -> int:
        return self._ask("queue_len", key)

    def has_extended_api(self) -> bool:
        return True

    def clone(self) -> Store:
        return TCPStore(self.host, self.port, timeout=self.timeout, use_libuv=self.libuvBackend)
