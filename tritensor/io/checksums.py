"""Checksums of files, to be compared with published ones."""

from __future__ import annotations

import hashlib
import os
from typing import Any, NamedTuple

from tritensor.ground.errors import ArgumentError

_LENGTHS = {"sha256": 64, "md5": 32}  # hexadecimal digits
_CHUNK = 1 << 20


class Checksum(NamedTuple):
    """Digest that a file must have: `kind` is sha256 or md5, `digits` its hexadecimal digits, or the first ones of them."""

    kind: str
    digits: str

    def matches(self, digest: str) -> bool:
        """Whether a whole digest begins with the digits that are known (pages often print the first eight)."""
        return digest.startswith(self.digits)

    def __str__(self) -> str:
        return f"{self.kind} {self.digits}"


def new_hash(kind: str) -> Any:
    """A hash object of hashlib."""
    # md5 only tells damage, as its publishers meant it: systems that forbid it in cryptography allow that
    return hashlib.md5(usedforsecurity=False) if kind == "md5" else hashlib.sha256()


def parse_checksum(sha256: str | None = None, md5: str | None = None, whole: bool = True) -> Checksum | None:
    """The checksum that is given, sha256 before md5, or None. Raises ValueError for digits that are none, or, where `whole`, too few."""
    for kind, digits in (("sha256", sha256), ("md5", md5)):
        if not digits:
            continue
        digits = digits.lower().removeprefix(f"{kind}:")
        wanted = _LENGTHS[kind]
        if set(digits) - set("0123456789abcdef") or len(digits) > wanted or (whole and len(digits) != wanted):
            raise ArgumentError(
                f"checksum: {kind} {digits!r} has {len(digits)} characters; give the {wanted} hexadecimal digits of `{kind}sum file`"
            )
        return Checksum(kind, digits)
    return None


def file_digest(path: str | os.PathLike[str], kind: str = "sha256") -> str:
    """The hexadecimal digest of a file."""
    found = new_hash(kind)
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            found.update(chunk)
    return str(found.hexdigest())


def is_intact(path: str | os.PathLike[str], wanted: Checksum | None) -> bool:
    """Whether a file is there, and is the one that is meant."""
    return os.path.isfile(path) and (wanted is None or wanted.matches(file_digest(path, wanted.kind)))
