"""A web server on this machine that does what servers do wrong: drops connections, lies about lengths, gives other contents, knows no ranges."""

from __future__ import annotations

import contextlib
import http.server
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass
class Served:
    """A file, and how it is served. Lists have an entry for each GET in turn; where one is at its end, what is usual happens."""

    content: bytes = b""
    ranges: bool = True
    drops: list[int | None] = field(default_factory=list)  # close the connection after so many bytes of the answer
    statuses: list[int] = field(default_factory=list)  # answer with these instead, 0 as usual
    length: int | None = None  # what Content-Length says, whatever is sent
    chunked: bool = False  # no length at all
    etag: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    redirect: str = ""
    starts_at: int | None = None  # answer a range with another one
    held: threading.Event | None = None  # what the first answer waits for in its middle


class Server:
    """`files` by path; `asked` lists (method, path, Range) of every request."""

    def __init__(self) -> None:
        self.files: dict[str, Served] = {}
        self.asked: list[tuple[str, str, str]] = []
        self.url = ""

    def gets(self, path: str) -> list[str]:
        """The Range of every GET of a path, "" where there was none."""
        return [r for m, p, r in self.asked if m == "GET" and p == path]


@contextlib.contextmanager
def serving() -> Iterator[Server]:
    """A server for the block."""
    server = Server()

    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            """Nothing on stderr."""

        def do_HEAD(self) -> None:
            self.answer(body=False)

        def do_GET(self) -> None:
            self.answer(body=True)

        def answer(self, body: bool) -> None:
            path, asked = self.path, self.headers.get("Range", "")
            server.asked.append((self.command, path, asked))
            served = server.files.get(path)
            status = 404 if served is None else (served.statuses.pop(0) if body and served.statuses else 0)
            if served is None or status:
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            if served.redirect:
                self.send_response(302)
                self.send_header("Location", served.redirect)
                self.send_headers(served)
                self.end_headers()
                return
            self.send(served, asked, body)

        def send_headers(self, served: Served) -> None:
            for name, value in served.headers.items():
                self.send_header(name, value)

        def send(self, served: Served, asked: str, body: bool) -> None:
            content, begin = served.content, 0
            wanted = re.fullmatch(r"bytes=(\d+)-", asked)
            unchanged = self.headers.get("If-Range", served.etag) == served.etag
            if wanted and served.ranges and unchanged:
                begin = int(wanted[1]) if served.starts_at is None else served.starts_at
                if begin >= len(content):
                    self.send_response(416)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
            else:
                self.send_response(200)
            if not served.chunked:
                self.send_header("Content-Length", str(served.length if served.length is not None else len(content) - begin))
            if served.etag:
                self.send_header("ETag", served.etag)
            self.send_headers(served)
            self.end_headers()
            if body and served.held is not None:
                self.wfile.write(content[begin : len(content) // 2])
                self.wfile.flush()
                held, served.held = served.held, None
                held.wait(30)
            elif body:
                drop = served.drops.pop(0) if served.drops else None
                self.wfile.write(content[begin:] if drop is None else content[begin : begin + drop])
            self.close_connection = True

    class Quiet(http.server.ThreadingHTTPServer):
        def handle_error(self, *args: object) -> None:
            """A client that hangs up is no news."""

    with Quiet(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        server.url = f"http://127.0.0.1:{running.server_address[1]}"
        try:
            yield server
        finally:
            running.shutdown()
            thread.join()
