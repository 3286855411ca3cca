"""Functions of torch.hub: models by a folder or a repository's name, except that no code of a repository is run."""

from __future__ import annotations

import inspect
import os
import re
import urllib.parse
from collections.abc import Callable
from typing import Any

from tritensor.ground.errors import ArgumentError, CheckpointError
from tritensor.hub.building import build_network, find_maker, list_models
from tritensor.hub.download import download
from tritensor.hub.repository import CONFIG, Files, Pins, find_files, get_dir, read_json
from tritensor.io.checkpoint import load as load_checkpoint
from tritensor.io.checksums import file_digest, parse_checksum
from tritensor.io.safetensors import load_file
from tritensor.io.sharded import INDEX, read_weight_map

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # the hash in a weight file's name: resnet18-f37072fd.pth
Path = str | os.PathLike[str]


def load(
    repo_or_dir: Path,
    model: str | Callable[..., Any] | None = None,
    *args: Any,
    source: str | None = None,
    trust_repo: Any = None,
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    revision: str = "main",
    sha256: Pins = None,
    file: str | None = None,
    **kwargs: Any,
) -> Any:
    """A network with its weights, from a folder or a repository "owner/name" in Hugging Face's layout: config.json, model.safetensors.

    The network's class is one of tritensor.models, of an installed package (entry points of the group "tritensor.models"), or one that is given;
    no code of a repository is run, and weights are safetensors alone. A repository's files are downloaded once, into hub.get_dir(), and a lock
    holds their sha256: later calls verify them, need no network, and stay at the same commit.

    Args:
        repo_or_dir: a folder that is there, else a repository.
        model: a name (see hub.list()), a function or class; None where config.json tells (GPT-2; "architecture" of a name in hub.list()).
        args, kwargs: of the model. Without them a class that has it is called as `from_config(config.json)`.
        source: "local" or "huggingface", where the form of the name shall not decide.
        trust_repo, skip_validation: accepted; there is nothing to trust.
        force_reload: forget the lock, and ask the server anew.
        verbose: progress, and the lock's path, on stderr.
        revision: a branch, tag or commit.
        sha256: {file: sha256} of every file, as hub.pins gives it, or the one of the single file of weights: nothing else is read.
        file: the name of the weights, where it is not model.safetensors.

    Raises:
        DownloadError: the server did not give a file as it is pinned; FileNotFoundError: there is none.
        CheckpointError: a damaged file, or weights of another network.
        ValueError: a name, a source or a config that is not known here.

    >>> files = tt.io.save_sharded(nn.Linear(2, 1).state_dict(), "net")  # net/model.safetensors
    >>> tt.hub.load("net", nn.Linear, 2, 1)
    Linear(in_features=2, out_features=1, bias=True)
    """
    if model is not None:
        find_maker(model)  # a name that is not known raises before anything is downloaded
    files = find_files(repo_or_dir, source, revision, file, sha256, force_reload, verbose)
    config = read_json(os.path.join(files.folder, CONFIG)) if files.config else None
    state = load_weights(files)
    net = build_network(model, config, args, kwargs, sum(t.numel() for t in state.values()))
    try:
        net.load_state_dict(state)
    except RuntimeError as error:
        raise CheckpointError(f"hub.load: {os.fspath(repo_or_dir)}: its weights are not those of {type(net).__name__}: {error}") from None
    return net


def load_weights(files: Files, device: Any = None) -> dict[str, Any]:
    """The tensors of a model's files by name, on `device` (default: the CPU, mapped into memory).

    Raises CheckpointError for a damaged file, and for shards that do not hold what the index says.
    """
    if files.weights[0] != INDEX:
        return load_file(os.path.join(files.folder, files.weights[0]), device)
    listed = read_weight_map(os.path.join(files.folder, INDEX))
    found: dict[str, Any] = {}
    for name in files.weights[1:]:
        tensors = load_file(os.path.join(files.folder, name), device)
        expected = {key for key, file in listed.items() if file == name}
        if expected != tensors.keys():  # a shard of another revision has the right name and other tensors
            odd = sorted(expected ^ tensors.keys())
            raise CheckpointError(
                f"hub: {os.path.join(files.folder, name)} and {INDEX} do not agree on {', '.join(odd[:5])}; one of them is of another model"
            )
        found.update(tensors)
    return {key: found[key] for key in listed}


def load_state_dict(
    repo_or_dir: Path, *, source: str | None = None, revision: str = "main", sha256: Pins = None, file: str | None = None,
    force_reload: bool = False, verbose: bool = True, device: Any = None,
) -> dict[str, Any]:  # fmt: skip
    """The weights of a folder or a repository by name, without a network: see load. `device` takes them; the CPU's are mapped, not read."""
    return load_weights(find_files(repo_or_dir, source, revision, file, sha256, force_reload, verbose), device)


def pins(
    repo_or_dir: Path, *, source: str | None = None, revision: str = "main", file: str | None = None, verbose: bool = True
) -> dict[str, str]:
    """{file: sha256} of the files that load would read, for its sha256=. Downloads those that are not there."""
    files = find_files(repo_or_dir, source, revision, file, None, False, verbose)
    names = [*([files.config] if files.config else []), *files.weights]
    return {n: file_digest(os.path.join(files.folder, n)) for n in names}


def list(
    github: Any = None, force_reload: bool = False, skip_validation: bool = False, trust_repo: Any = None, verbose: bool = True
) -> Any:
    """The names that load takes as `model`: those of tritensor.models and of installed packages.

    With a folder or a repository, those of its config.json that are known here.
    """
    if github is None:
        return list_models()
    files = find_files(github, None, "main", None, None, force_reload, verbose)
    config = read_json(os.path.join(files.folder, CONFIG)) if files.config else {}
    return [n for n in (config.get("model_type"), config.get("architecture")) if isinstance(n, str) and n in list_models()]


def help(
    github: Any, model: Any = None, force_reload: bool = False, skip_validation: bool = False, trust_repo: Any = None
) -> str:  # fmt: skip
    """The signature and docstring of a model: help("resnet18"); a repository before the name, as torch.hub has it, changes nothing."""
    make = find_maker(github if model is None else model)
    signature = str(inspect.signature(make)).replace("'", "")
    return f"{getattr(make, '__name__', make)}{signature}\n{inspect.getdoc(make) or ''}".rstrip()


def download_url_to_file(url: str, dst: Path, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Download a file to `dst`, in place of what is there; a connection that breaks is taken up again.

    Raises DownloadError where it cannot be had, or its sha256 does not begin with `hash_prefix`; `dst` is then as it was.
    """
    download(url, dst, wanted=parse_checksum(hash_prefix, whole=False), progress=progress, anew=True)


def load_state_dict_from_url(
    url: str,
    model_dir: Path | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = True,
    sha256: str | None = None,
) -> Any:
    """The object that tritensor.load reads from a file of the network, kept in `checkpoints` in hub.get_dir().

    Args:
        model_dir: another folder.
        map_location, weights_only: of tritensor.load. By default no file runs code.
        check_hash: the file's name ends in the beginning of its sha256, as in resnet18-f37072fd.pth, and it must be that.
        file_name: another name.
        sha256: the checksum that the file must have.

    Raises:
        DownloadError: it cannot be had, or is another file. CheckpointError: it is no checkpoint.
        ValueError: check_hash for a name without a hash.
    """
    name = file_name or os.path.basename(urllib.parse.urlparse(url).path)
    if not name:
        raise ArgumentError(f"load_state_dict_from_url: {url} ends in no file's name; give file_name")
    prefix = None
    if check_hash and sha256 is None:
        found = HASH_REGEX.search(name)
        if not found or not found[1]:
            raise ArgumentError(
                f"load_state_dict_from_url: check_hash for {name!r}, which has no hash in it, as resnet18-f37072fd.pth has; give sha256="
            )
        prefix = found[1]
    path = os.path.join(os.fspath(model_dir) if model_dir is not None else os.path.join(get_dir(), "checkpoints"), name)
    wanted = parse_checksum(sha256) if sha256 else parse_checksum(prefix, whole=False)
    download(url, path, wanted=wanted, progress=progress)
    return load_checkpoint(path, map_location, weights_only=weights_only)
