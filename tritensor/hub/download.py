"""Downloads that go on where they broke off, are checked, and appear under their name when they are whole."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import http.client
import os
import re
import shutil
import time
import urllib.error
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

from tritensor.ground.errors import DownloadError
from tritensor.hub.connection import describe_failure, get_retry_after, is_temporary, open_url
from tritensor.io.atomic import DISK_ERRORS
from tritensor.io.checksums import Checksum, is_intact, new_hash
from tritensor.utils.progress import Bar

PAUSE = 0.5  # seconds before the second try; each pause is twice the one before
TRIES = 5  # one after another that bring nothing new
_MAX_TRIES = 100  # of one address, however little each brings
_CHUNK = 1 << 18
_STEP = 1 << 20  # the bar counts MB


class _UnusableDownload(Exception):
    """An answer that is of no use, and will be of none the next time."""


class _TornDownload(Exception):
    """An answer that broke off."""


def download(
    urls: str | Sequence[str], path: str | os.PathLike[str], *, wanted: Checksum | None = None, progress: bool = True, what: str = "",
    anew: bool = False, most: int | None = None,
) -> None:  # fmt: skip
    """Get a file from the first of `urls` that gives it whole, to `path`; nothing is done where it is there already.

    Bytes go to `path` + ".part", which a later call goes on with where a checksum tells that the whole is right; then the file gets its name.
    Connections that break are taken up again (HTTP's Range, or from the beginning where the server knows none), with pauses that grow.
    Two processes that want one file wait for each other. Proxies are those of the environment (https_proxy), certificates are checked.

    Args:
        urls: addresses of the same file, asked in this order.
        wanted: the checksum of the whole file; another file is thrown away, and the next address asked.
        progress: a bar, or lines, on stderr.
        what: the file's owner, for errors: "MNIST".
        anew: get it even where it is there, unless a checksum tells that it is the same.
        most: bytes that the file may have; a longer one is not taken.

    Raises:
        DownloadError: no address gave it; the message has each with its reason, and where to put the file by hand.
        OSError: it cannot be written: a full disk, a folder without write right.
    """
    path, urls = os.fspath(path), [urls] if isinstance(urls, str) else list(urls)
    anew = anew and wanted is None  # with a checksum the file that is there is known to be the same
    if not anew and is_intact(path, wanted):
        return
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with _open_exclusively(path + ".part") as file:
        if not anew and is_intact(path, wanted):  # another process has brought it while this one waited
            os.unlink(path + ".part")
            return
        part, failed = _PartialFile(file, path + ".part", wanted, most), []
        for url in urls:
            try:
                _download_from(url, part, progress)
                part.check()
            except (_UnusableDownload, _TornDownload, OSError, http.client.HTTPException) as error:
                if isinstance(error, OSError) and error.errno in DISK_ERRORS:
                    raise OSError(
                        error.errno,
                        f"download: {error.strerror} after {part.size:,} bytes; what is there is kept for the next try",
                        part.name,
                    ) from None
                failed.append(f"{url}: {describe_failure(error)}")
                continue
            file.flush()
            os.fsync(file.fileno())
            os.replace(part.name, path)
            return
        if not part.size or wanted is None:  # without a checksum nothing says that the rest would belong to it
            os.unlink(part.name)
    raise DownloadError(_failure_message(path, wanted, what, failed))


def _failure_message(path: str, wanted: Checksum | None, what: str, failed: list[str]) -> str:
    known = f" ({wanted})" if wanted else ""
    name = os.path.basename(path) + (f" of {what}" if what else "")
    return f"download: {name} could not be had: {'; '.join(failed)}. Try again later, or put the file{known} at {os.path.abspath(path)} by hand"


@contextlib.contextmanager
def _open_exclusively(name: str) -> Iterator[BinaryIO]:
    """The file of this name, open for reading and writing, that no other process writes."""
    while True:
        with os.fdopen(os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666), "r+b") as file:
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(file, fcntl.LOCK_EX)
            if _has_name(file, name):  # else whoever held it has given it its own name, or removed it
                yield file
                return


def _has_name(file: BinaryIO, name: str) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(name))
    except FileNotFoundError:
        return False


class _PartialFile:
    """The part of a file that is there, with its hash."""

    def __init__(self, file: BinaryIO, name: str, wanted: Checksum | None, most: int | None) -> None:
        self.file, self.name, self.wanted, self.most, self.size = file, name, wanted, most, 0
        self.validator = ""  # the ETag or date of this very version of the file, from the answer that began it
        self._kind = wanted.kind if wanted else "sha256"
        self._hash: Any = new_hash(self._kind)
        if wanted is None:
            self.restart()
            return
        while chunk := file.read(_CHUNK):  # of an earlier call
            self._hash.update(chunk)
            self.size += len(chunk)

    def restart(self) -> None:
        """Begin again."""
        self.file.seek(0)
        self.file.truncate()
        self.size, self.validator = 0, ""
        self._hash = new_hash(self._kind)

    def append(self, chunk: bytes) -> None:
        self.allow(self.size + len(chunk))
        self.file.write(chunk)
        self.size += len(chunk)
        self._hash.update(chunk)

    def allow(self, size: int) -> None:
        """Raise where the whole would be longer than it may be."""
        if self.most is not None and size > self.most:
            raise _UnusableDownload(f"it gives more than {self.most:,} bytes, the most that such a file has")

    def is_right(self) -> bool:
        """Whether this has the wanted checksum, or none is wanted."""
        return self.wanted is None or self.wanted.matches(self._hash.hexdigest())

    def check(self) -> None:
        """Throw the part away and raise where it has not the wanted checksum."""
        if self.wanted is None or self.is_right():
            return
        size, digest = self.size, self._hash.hexdigest()
        self.restart()
        raise _UnusableDownload(f"it gives another file ({size:,} bytes, {self.wanted.kind} {digest})")


def _download_from(url: str, part: _PartialFile, progress: bool) -> None:
    """Complete the part from one address, over as many connections as it takes."""
    failures, best, bar = 0, part.size, _ByteBar(os.path.basename(part.name).removesuffix(".part"), progress)
    foreign, part.validator = part.size > 0, ""  # the beginning came from elsewhere, and may be of another file
    try:
        for tried in range(1, _MAX_TRIES + 1):
            try:
                _request_rest(url, part, bar)
                if foreign and not part.is_right():
                    foreign = False
                    part.restart()
                    continue
                return
            except (_TornDownload, OSError, http.client.HTTPException) as error:
                if not (isinstance(error, _TornDownload) or is_temporary(error)):
                    raise
                if part.wanted and part.is_right():  # whatever the server says of its length
                    return
                failures = 0 if part.size > best else failures + 1
                best = max(best, part.size)
                if failures >= TRIES or tried == _MAX_TRIES:  # a server that gives a few bytes each time would go on for ever
                    raise
                time.sleep(max(PAUSE * 2**failures, get_retry_after(error)))
    finally:
        bar.close()


def _request_rest(url: str, part: _PartialFile, bar: _ByteBar) -> None:
    """Ask for the rest, and write it. Raises _TornDownload where it ends too early."""
    asked = {}
    if part.size and (part.wanted or part.validator):
        asked = {"Range": f"bytes={part.size}-", **({"If-Range": part.validator} if part.validator else {})}
    else:
        part.restart()
    try:
        answer, headers = open_url(url, asked)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416 and asked:  # as long as the whole file, or longer
            if not (part.wanted and part.is_right()):
                part.restart()
            raise _TornDownload("416 for a range behind what was there") from None
        raise
    with answer:
        length = _read_length(answer, headers, part)
        part.allow(length or 0)
        tag = headers.get("etag", "")
        # a weak tag may stand for other bytes
        part.validator = tag if tag and not tag.startswith("W/") else headers.get("last-modified", "")
        if length is not None and shutil.disk_usage(os.path.dirname(part.name) or ".").free < length - part.size:
            raise OSError(errno.ENOSPC, f"No space left on device: {length - part.size:,} more bytes are needed")
        bar.begin(part.size, length)
        while chunk := answer.read(_CHUNK):
            part.append(chunk)
            bar.show(part.size)
    if length is not None and part.size < length:
        raise _TornDownload(f"the connection ended after {part.size:,} of {length:,} bytes")
    if length is None and not part.is_right():
        raise _TornDownload(f"the connection ended after {part.size:,} bytes, which are not the file; it did not say how many there are")


def _read_length(answer: Any, headers: dict[str, str], part: _PartialFile) -> int | None:
    """The length of the whole file, None where the server does not say; the part is set to where this answer goes on."""
    if getattr(answer, "status", 200) == 206:
        span = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+|\*)", headers.get("content-range", "").strip())
        if not span or int(span[1]) != part.size:
            part.restart()
            raise _TornDownload(f"asked to go on, it answered with {headers.get('content-range')!r}; from the beginning")
        return int(span[3]) if span[3] != "*" else int(span[2]) + 1
    if part.size:
        part.restart()
    given = headers.get("content-length", "")
    return int(given) if given.isdigit() else None


class _ByteBar:
    """A bar that counts MB."""

    def __init__(self, name: str, shown: bool) -> None:
        self._name, self._shown, self._done = name, shown, 0
        self._bar: Bar | None = None

    def begin(self, size: int, length: int | None) -> None:
        if self._shown and self._bar is None and (length is None or length >= _STEP):  # small files need no bar
            self._done = size // _STEP
            self._bar = Bar(self._name, "MB", None if length is None else length // _STEP, self._done)

    def show(self, size: int) -> None:
        if self._bar is not None:
            while self._done < size // _STEP:
                self._done += 1
                self._bar.step()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
