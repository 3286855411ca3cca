"""Nothing is fetched while the site is built: Python's sockets lead to this machine alone, or raise."""

from __future__ import annotations

import sys
from typing import Any

_HERE = ("127.", "::1", "localhost", "0.0.0.0")


def guard() -> None:
    """From now on raise ConnectionError where this process looks up or connects to another host. An audit hook: it cannot be taken back."""
    sys.addaudithook(refuse)


def refuse(event: str, given: tuple[Any, ...]) -> None:
    """The audit hook. Raises ConnectionError for a name or an address of another machine."""
    if event in ("socket.getaddrinfo", "socket.gethostbyname"):
        host = given[0]
    elif event in ("socket.connect", "socket.sendto") and isinstance(given[1], tuple):
        host = given[1][0]
    else:
        return
    name = host.decode() if isinstance(host, bytes) else str(host or "localhost")
    if name and not name.startswith(_HERE):
        raise ConnectionError(f"the site is built without the network, and something asks for {name}; bring it along, or leave it out")
