"""torchvision.datasets.utils: downloads, checksums and archives under torchvision's names, over those of hub and io."""

from __future__ import annotations

import os
import urllib.parse
from typing import Any

from tritensor.io.archives import extract
from tritensor.io.checksums import file_digest, is_intact, parse_checksum

Path = str | os.PathLike[str]


def calculate_md5(fpath: Path, chunk_size: int = 1024 * 1024) -> str:
    """The md5 of a file, in hexadecimal digits. `chunk_size` is accepted."""
    return file_digest(fpath, "md5")


def check_md5(fpath: Path, md5: str, **kwargs: Any) -> bool:
    """Whether a file has this md5."""
    return calculate_md5(fpath) == md5


def check_integrity(fpath: Path, md5: str | None = None) -> bool:
    """Whether a file is there, and has this md5 where one is given."""
    return is_intact(fpath, parse_checksum(md5=md5))


def download_url(
    url: str, root: Path, filename: str | None = None, md5: str | None = None, max_redirect_hops: int = 3
) -> None:  # fmt: skip
    """Get a file to `root`, under its own name or `filename`; nothing is done where it is there, with this md5 where one is given.

    Raises DownloadError where it cannot be had, or is another file.
    """
    from tritensor.hub.download import download  # loads what speaks to networks

    name = filename or os.path.basename(urllib.parse.urlparse(url).path)
    download(url, os.path.join(os.path.expanduser(root), name), wanted=parse_checksum(md5=md5))


def extract_archive(from_path: Path, to_path: Path | None = None, remove_finished: bool = False) -> Path:
    """Unpack an archive to `to_path`, or beside it; returns that folder. Raises what io.archives.extract raises."""
    folder = os.path.dirname(from_path) if to_path is None else to_path
    extract(from_path, folder)
    if remove_finished:
        os.unlink(from_path)
    return folder


def download_and_extract_archive(
    url: str, download_root: Path, extract_root: Path | None = None, filename: str | None = None, md5: str | None = None, remove_finished: bool = False
) -> None:  # fmt: skip
    """download_url, then extract_archive to `extract_root`, or where the archive is."""
    download_url(url, download_root, filename, md5)
    name = filename or os.path.basename(urllib.parse.urlparse(url).path)
    root = os.path.expanduser(download_root)
    extract_archive(os.path.join(root, name), extract_root or root, remove_finished)
