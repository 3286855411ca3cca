"""Channel between a DataLoader and one of its workers: pickles of any length, and descriptors of shared memory that go with them.

A message keeps its bounds (a sequenced-packet socket of the UNIX family). One that is too long for a packet goes as a nameless file. When a
process ends, however it does, the system closes its end, and the other reads the end at once.
"""

from __future__ import annotations

import errno
import os
import socket
import time
from collections import deque
from typing import Any

import numpy as np

from tritensor.ground.errors import OutOfMemoryError
from tritensor.tensor.shared_memory import Mapping, descriptor_usage, reserve_and_map

_PACKET = 32_000  # bytes of a message that go by themselves
DESCRIPTORS = 200  # that go with one; the system takes 253
_INLINE, _IN_FILE = b"m", b"f"
_PAUSE = 0.002  # seconds between two tries, where nothing tells when to try again


def socket_pair() -> tuple[socket.socket, socket.socket]:
    """The two ends of a channel."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


class Channel:
    """One end. The loader's does not wait when it sends: what the socket does not take stays in `outbox`."""

    def __init__(self, end: socket.socket, blocking: bool) -> None:
        self.socket = end
        self.outbox: deque[tuple[bytes, list[int]]] = deque()
        self._blocking = blocking
        end.setblocking(blocking)

    def send(self, message: bytes, descriptors: list[int] | None = None) -> None:
        """Send, or put in the outbox; descriptors are closed here once they are sent. Raises BrokenPipeError where the other has ended."""
        given = descriptors or []
        if len(message) < _PACKET:
            self.outbox.append((_INLINE + message, given))
        else:
            file, there = reserve_and_map(len(message))
            np.asarray(there)[:] = np.frombuffer(message, np.uint8)
            self.outbox.append((_IN_FILE + len(message).to_bytes(8, "little"), [file, *given]))
        self.flush()

    def flush(self) -> bool:
        """Send what waits in the outbox, as far as the socket takes it; returns whether it is empty."""
        while self.outbox:
            message, descriptors = self.outbox[0]
            try:
                if descriptors:
                    socket.send_fds(self.socket, [message], descriptors)
                else:
                    self.socket.send(message)
            except BlockingIOError:
                return False
            except OSError as error:
                if error.errno == errno.ETOOMANYREFS:  # too many descriptors under way: the other has yet to take some
                    if not self._blocking:
                        return False
                    time.sleep(_PAUSE)  # no event says when descriptors have been taken
                    continue
                raise
            self.outbox.popleft()
            for descriptor in descriptors:
                os.close(descriptor)
        return True

    def receive(self) -> tuple[Any, list[int]]:
        """(a message's bytes, its descriptors). Raises EOFError when the other has ended, BlockingIOError where nothing waits and this end does not,
        OutOfMemoryError where this process may hold no more descriptors: the message is lost."""
        while True:
            try:
                message, descriptors, flags, _ = socket.recv_fds(self.socket, _PACKET + 16, DESCRIPTORS + 1, socket.MSG_CMSG_CLOEXEC)
            except ConnectionResetError:  # it ended without reading all; what it has sent is still to be read
                continue
            if not message:
                raise EOFError
            if flags & socket.MSG_CTRUNC:
                for descriptor in descriptors:
                    os.close(descriptor)
                held, mend = descriptor_usage()
                raise OutOfMemoryError(
                    f"DataLoader: no file descriptor is left to receive what a worker sends ({held}); {mend}, or use fewer workers"
                )
            if message[:1] == _INLINE:
                return memoryview(message)[1:], list(descriptors)
            file = descriptors[0]
            try:
                content = np.asarray(Mapping(file, int.from_bytes(message[1:], "little")))
            except BaseException:
                for descriptor in descriptors[1:]:
                    os.close(descriptor)
                raise
            finally:
                os.close(file)
            return memoryview(content), list(descriptors[1:])  # type: ignore[arg-type]

    def close(self) -> None:
        """Close this end, and what was still to be sent."""
        for _, descriptors in self.outbox:
            for descriptor in descriptors:
                os.close(descriptor)
        self.outbox.clear()
        self.socket.close()
