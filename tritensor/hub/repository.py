"""Files of a model: in a folder, or of a repository, downloaded once and held to their checksums by a lock.

A repository is addressed as Hugging Face does: `{endpoint}/{owner}/{name}/resolve/{revision}/{file}`; any web server with such paths will do.
Taken are config.json, and weights in safetensors: model.safetensors, or model.safetensors.index.json with the files that it names.
"""

from __future__ import annotations

import json
import os
import re
import sys
import urllib.error
import urllib.parse
from collections.abc import Mapping
from typing import Any, NamedTuple

from tritensor.ground.errors import ArgumentError, CheckpointError, DownloadError, MissingFileError
from tritensor.hub.connection import describe_failure, open_url
from tritensor.hub.download import download
from tritensor.io.atomic import atomic_write
from tritensor.io.checksums import Checksum, file_digest, parse_checksum
from tritensor.io.sharded import INDEX, WEIGHTS, read_weight_map

CONFIG, LOCK = "config.json", "lock.json"
_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".msgpack", ".h5")
_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
_REVISION = re.compile(r"\w[\w./-]*")
_MAX_JSON_BYTES = 1 << 26  # bytes
Pins = Mapping[str, str] | str | None


_chosen: dict[str, str | None] = {"folder": None}


class Files(NamedTuple):
    """A model's files: the folder, config.json or None, and the names of the files with its weights."""

    folder: str
    config: str | None
    weights: list[str]


def _get_torch_home() -> str:
    """The folder above get_dir: $TRITENSOR_HOME, else $TORCH_HOME, else `tritensor` in $XDG_CACHE_HOME or ~/.cache."""
    given = os.environ.get("TRITENSOR_HOME") or os.environ.get("TORCH_HOME")
    return os.path.expanduser(given or os.path.join(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "tritensor"))


def get_dir() -> str:
    """The folder of weights and repositories: that of set_dir, else `hub` in $TRITENSOR_HOME, $TORCH_HOME or ~/.cache/tritensor."""
    chosen = _chosen["folder"]
    return os.path.join(_get_torch_home(), "hub") if chosen is None else chosen


def set_dir(d: str | os.PathLike[str]) -> None:
    """Keep weights and repositories in another folder, in this process."""
    _chosen["folder"] = os.path.expanduser(d)


def get_endpoint() -> str:
    """The address of repositories: $TRITENSOR_HUB_ENDPOINT, else $HF_ENDPOINT, else https://huggingface.co."""
    given = os.environ.get("TRITENSOR_HUB_ENDPOINT") or os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
    return given.rstrip("/")


def find_files(
    repo_or_dir: str | os.PathLike[str], source: str | None, revision: str, file: str | None, sha256: Pins, force_reload: bool,
    progress: bool,
) -> Files:  # fmt: skip
    """The files of a folder, or of a repository. Raises what hub.load says."""
    name = os.fspath(repo_or_dir)
    if source not in (None, "local", "huggingface"):
        raise ArgumentError(
            f"hub: source {source!r}; give 'local' or 'huggingface'. A GitHub repository is loaded by running its hubconf.py, and nothing of a "
            "repository is run here: install the model's package, and give its weights as safetensors"
        )
    if file is not None:
        _require_safetensors(file, name)
    if source == "local" or (source is None and os.path.isdir(name)):
        return _find_in_folder(os.path.expanduser(name), file, sha256)
    return _Repository(name, revision, file, progress).files(sha256, force_reload)


def _require_safetensors(file: str, where: str) -> None:
    if not file.endswith(".safetensors"):
        kind = "may be a pickle, whose reading runs what it says" if file.endswith(_PICKLES) else "is another format"
        raise ArgumentError(f"hub: {where}: {file} {kind}; weights are taken from .safetensors files alone")
    if file.startswith("/") or "\\" in file or ".." in file.split("/"):
        raise CheckpointError(f"hub: {where}: {file!r} leads out of the repository; nothing was read")
    # a folder of that name would keep the file itself from being written
    if any(folder.endswith((".json", ".safetensors", ".part")) for folder in file.split("/")[:-1]):
        raise CheckpointError(f"hub: {where}: {file!r} takes a file for a folder; nothing was read")


def _find_in_folder(folder: str, file: str | None, sha256: Pins) -> Files:
    if not os.path.isdir(folder):
        raise MissingFileError(f"hub: there is no folder {folder}")
    there = sorted(os.listdir(folder))
    single = [n for n in there if n.endswith(".safetensors")]
    if file is not None:
        weights = [file]
    elif WEIGHTS in there:
        weights = [WEIGHTS]
    elif INDEX in there:
        weights = [INDEX, *list_shards(os.path.join(folder, INDEX))]
    elif len(single) == 1:
        weights = single
    else:
        found = f"{len(single)} .safetensors files, of which file= chooses one" if single else _describe_others(there)
        raise MissingFileError(f"hub: {folder}: no {WEIGHTS}, no {INDEX}; there are {found}")
    config = CONFIG if CONFIG in there else None
    wanted = _wanted_checksums(sha256, [*([config] if config else []), *weights], folder)
    for name, sum in wanted.items():
        if not os.path.isfile(path := os.path.join(folder, name)):
            raise MissingFileError(f"hub: {path} is not there")
        if sum is not None and not sum.matches(found := file_digest(path)):
            raise CheckpointError(f"hub: {path} has sha256 {found}, and is pinned to {sum.digits}; it is another file")
    return Files(folder, config, weights)


def _describe_others(there: list[str]) -> str:
    """The files that are there in place of weights, for messages."""
    pickles = [n for n in there if n.endswith(_PICKLES)]
    if pickles:
        return f"{', '.join(pickles)}, which may be pickles, whose reading runs what they say; where you trust them, tritensor.load(file) and io.save_file"
    if "hubconf.py" in there:
        return "hubconf.py, which is code, and is not run; install the model's package and save its state_dict with io.save_file"
    return ", ".join(there[:8]) or "no files"


def list_shards(path: str) -> list[str]:
    """The names of the files of an index, in order. Raises CheckpointError for an index that is damaged, or leads elsewhere."""
    found = sorted(set(read_weight_map(path).values()))
    for name in found:
        _require_safetensors(name, path)
    return found


def read_json(path: str) -> dict[str, Any]:
    """A JSON object of a file. Raises CheckpointError for anything else."""
    try:
        with open(path, "rb") as file:
            content = file.read(_MAX_JSON_BYTES + 1)
        if len(content) > _MAX_JSON_BYTES:
            raise ValueError(f"it has more than {_MAX_JSON_BYTES:,} bytes")
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"hub: {path} is no JSON ({error}); it is damaged or foreign") from None
    if not isinstance(found, dict):
        raise CheckpointError(f"hub: {path} holds a JSON {type(found).__name__}, not an object")
    return found


def _wanted_checksums(sha256: Pins, names: list[str], where: str) -> dict[str, Checksum | None]:
    """The checksum of each file that the caller gives. A mapping names every file; a string is that of the one file of weights."""
    if sha256 is None:
        return dict.fromkeys(names)
    if isinstance(sha256, str):
        weights = [n for n in names if n.endswith(".safetensors")]
        if len(weights) != 1:
            raise ArgumentError(f"hub: {where}: sha256 is one string for {len(weights)} files; give {{file: sha256}} of {', '.join(names)}")
        return {n: parse_checksum(sha256) if n in weights else None for n in names}
    left_out = [n for n in names if n not in sha256]
    if left_out:
        raise ArgumentError(f"hub: {where}: sha256 does not name {', '.join(left_out)}, which would be read; hub.pins gives all of them")
    return {n: parse_checksum(sha256[n]) for n in names}


class _Repository:
    """A repository at a revision, and the folder that its files are kept in."""

    def __init__(self, name: str, revision: str, file: str | None, progress: bool) -> None:
        if ":" in name and _ID.fullmatch(name.partition(":")[0]):
            raise ArgumentError(
                f"hub: {name!r} names a branch of a GitHub repository, as torch.hub does, whose hubconf.py would be run; nothing of a repository is run "
                "here: give a folder, or 'owner/name' with revision=; for a network without weights, call tritensor.models.resnet18() or its kin"
            )
        if not _ID.fullmatch(name) or ".." in name:  # the name becomes a folder
            raise ArgumentError(f"hub: {name!r} is no folder that is there, and no repository; give 'owner/name'")
        if not _REVISION.fullmatch(revision) or ".." in revision:
            raise ArgumentError(f"hub: revision {revision!r}; give a branch, a tag or a commit")
        self.name, self.revision, self.file, self.progress = name, revision, file, progress
        self.folder = os.path.join(get_dir(), "repositories", name.replace("/", "--"), revision.replace("/", "--"))
        self.commit = ""

    def files(self, sha256: Pins, force_reload: bool) -> Files:
        """The files: kept ones that have the checksums of the lock, else the server's, which the lock then holds."""
        lock = {} if force_reload else self._read_lock()
        known: dict[str, str] = lock.get("files", {})
        self.commit = lock.get("commit", "")  # further files come from it, though the branch may have moved on
        config = self._find_config(known, sha256)
        # an index that is pinned is wanted, though the lock does not know it yet
        weights = self._find_weights({**known, **(sha256 if isinstance(sha256, Mapping) and INDEX in sha256 else {})})
        # before anything is downloaded: a wrong pin costs nothing
        wanted = _wanted_checksums(sha256, [*([config] if config else []), *weights], self.name)
        sums = {name: self._download(name, given or parse_checksum(known.get(name))) for name, given in wanted.items()}
        if {**known, **sums} != known:
            self._write_lock({**known, **sums})
        return Files(self.folder, config, weights)

    def _read_lock(self) -> dict[str, Any]:
        path = os.path.join(self.folder, LOCK)
        if not os.path.isfile(path):
            return {}
        found = read_json(path)
        files = found.get("files")
        sums = isinstance(files, dict) and all(isinstance(v, str) and re.fullmatch(r"[0-9a-f]{64}", v) for v in files.values())
        if not sums or not re.fullmatch(r"([0-9a-f]{40})?", str(found.get("commit", ""))):
            raise CheckpointError(f"hub: {path} is damaged; remove it, or give force_reload=True, to ask the server anew")
        said = found.get("repository"), found.get("revision")
        if said != (self.name, self.revision):  # "a/b" and "a--b" have one folder
            raise CheckpointError(
                f"hub: {path} is of {said[0]} at {said[1]}, and {self.name} at {self.revision} is asked for; give it another folder by hub.set_dir, or "
                "force_reload=True"
            )
        return found

    def _write_lock(self, files: dict[str, str]) -> None:
        path = os.path.join(self.folder, LOCK)
        with atomic_write(path) as file:
            lock = {"repository": self.name, "revision": self.revision, "commit": self.commit, "files": files}
            file.write(json.dumps(lock, indent=1).encode())
        if self.progress:
            at = self.commit or self.revision
            print(f"hub: {self.name} at {at}: {len(files)} files, held to their sha256 by {path}", file=sys.stderr)

    def _url(self, name: str) -> str:
        return f"{get_endpoint()}/{self.name}/resolve/{urllib.parse.quote(self.commit or self.revision)}/{urllib.parse.quote(name)}"

    def _request_headers(self, name: str) -> dict[str, str] | None:
        """The server's headers for a file, None where it has none. The commit that they name holds for all further files."""
        url = self._url(name)
        try:
            answer, headers = open_url(url, {}, "HEAD")
            answer.close()
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 404:
                return None
            closed = " (a repository that is not public, or not there)" if error.code in (401, 403) else ""
            raise DownloadError(f"hub: {self.name}: {url}: {describe_failure(error)}{closed}") from None
        except OSError as error:
            there = f"a folder with {CONFIG} and {WEIGHTS} loads without a network"
            raise DownloadError(f"hub: {self.name}: {url}: {describe_failure(error)}; {there}: hub.load(folder)") from None
        said = headers.get("x-repo-commit", "")
        if not self.commit and re.fullmatch(r"[0-9a-f]{40}", said):
            self.commit = said
        return headers

    def _find_config(self, known: dict[str, str], sha256: Pins) -> str | None:
        if CONFIG in known:
            return CONFIG
        if known and not isinstance(sha256, Mapping):  # the lock says that there is none
            return None
        return CONFIG if self._request_headers(CONFIG) is not None else None

    def _find_weights(self, known: dict[str, str]) -> list[str]:
        if self.file is not None:
            return [self.file]
        if WEIGHTS in known:
            return [WEIGHTS]
        if INDEX not in known:
            if self._request_headers(WEIGHTS) is not None:
                return [WEIGHTS]
            if self._request_headers(INDEX) is None:
                others = [
                    n for n in ("pytorch_model.bin", "pytorch_model.bin.index.json", "hubconf.py") if self._request_headers(n) is not None
                ]
                found = f"; there are {_describe_others(others)}" if others else "; of GitHub's repositories, which are code, none is read"
                raise MissingFileError(f"hub: {self.name} at {self.revision}: neither {WEIGHTS} nor {INDEX} is at {get_endpoint()}{found}")
        self._download(INDEX, parse_checksum(known.get(INDEX)))
        return [INDEX, *list_shards(os.path.join(self.folder, INDEX))]

    def _download(self, name: str, wanted: Checksum | None) -> str:
        """Download a file, unless it is there with the right checksum; returns its sha256."""
        path = os.path.join(self.folder, *name.split("/"))
        if wanted is None:  # Hugging Face's server names the sha256 of files that it keeps apart (LFS)
            said = (self._request_headers(name) or {}).get("x-linked-etag", "").strip('"')
            wanted = Checksum("sha256", said) if re.fullmatch(r"[0-9a-f]{64}", said) else None
        what, most = f"the repository {self.name}", _MAX_JSON_BYTES if name.endswith(".json") else None
        download(self._url(name), path, wanted=wanted, progress=self.progress, what=what, anew=True, most=most)
        return file_digest(path) if wanted is None else wanted.digits
