"""hub.load and its kin: folders and repositories, safetensors alone, every file held to what it was, no code run."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

import tritensor as tt
from tests.hub.faulty_server import Served, Server
from tritensor import hub, models
from tritensor.ground.errors import CheckpointError, DownloadError
from tritensor.hub import repository as repositories

SMALL = {"model_type": "gpt2", "vocab_size": 11, "n_positions": 6, "n_embd": 8, "n_layer": 2, "n_head": 2, "resid_pdrop": 0.0}
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def small() -> models.GPT2:
    return models.GPT2(models.GPT2Config(11, 6, 8, 2, 2, 0.0))


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a small GPT-2, named as published ones are."""
    tt.manual_seed(1)
    made = tmp_path / "gpt"
    made.mkdir()
    (made / "config.json").write_text(json.dumps(SMALL))
    tt.io.save_file({f"transformer.{k}": v for k, v in small().state_dict().items()}, made / "model.safetensors")
    return made


def sharded(folder: Path) -> Path:
    state = tt.load(folder / "model.safetensors")
    names = sorted(state)
    parts = {"model-1.safetensors": names[:9], "model-2.safetensors": names[9:]}
    for file, keys in parts.items():
        tt.io.save_file({k: state[k] for k in keys}, folder / file)
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {k: f for f, keys in parts.items() for k in keys}}))
    return folder


def served(server: Server, folder: Path, name: str = "owner/net", revisions: tuple[str, ...] = ("main",), **headers: str) -> None:
    """Serve a folder as a repository."""
    for revision in revisions:
        for path in folder.iterdir():
            server.files[f"/{name}/resolve/{revision}/{path.name}"] = Served(path.read_bytes(), headers=dict(headers))


def same(net: Any, folder: Path) -> bool:
    ids = tt.tensor([[1, 2, 3]])
    return bool(tt.equal(net.eval()(ids), hub.load(folder).eval()(ids)))


@pytest.fixture
def repository(server: Server, folder: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    served(server, folder, revisions=("main", COMMIT), **{"X-Repo-Commit": COMMIT})
    monkeypatch.setenv("TRITENSOR_HUB_ENDPOINT", server.url + "/")
    return server


def test_a_folder(folder: Path) -> None:
    net = hub.load(folder)
    assert isinstance(net, models.GPT2)
    assert tt.equal(net.h[1].attn.c_attn.weight, tt.load(folder / "model.safetensors")["transformer.h.1.attn.c_attn.weight"])
    assert same(hub.load(folder, "gpt2"), folder)
    assert same(hub.load(folder, small), folder)
    assert set(hub.load_state_dict(folder)) == set(tt.load(folder / "model.safetensors"))
    assert same(hub.load(sharded(folder), source="local"), folder)
    assert hub.list(folder) == ["gpt2"]


def test_pins_of_a_folder(folder: Path) -> None:
    pins = hub.pins(folder)
    assert pins == {n: sha((folder / n).read_bytes()) for n in ("config.json", "model.safetensors")}
    assert same(hub.load(folder, sha256=pins), folder)
    assert same(hub.load(folder, sha256=pins["model.safetensors"]), folder)
    with pytest.raises(CheckpointError, match=r"model.safetensors has sha256 [0-9a-f]+, and is pinned to 0000"):
        hub.load(folder, sha256={**pins, "model.safetensors": "0" * 64})
    with pytest.raises(ValueError, match=r"sha256 does not name config.json, which would be read"):
        hub.load(folder, sha256={"model.safetensors": pins["model.safetensors"]})
    with pytest.raises(ValueError, match="sha256 is one string for 2 files"):
        hub.load(sharded(folder), sha256="0" * 64)


def test_a_repository_is_downloaded_once_and_held_to_its_lock(
    repository: Server, folder: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert same(hub.load("owner/net"), folder)
    lock = home / "repositories" / "owner--net" / "main" / "lock.json"
    assert json.loads(lock.read_text()) == {"repository": "owner/net", "revision": "main", "commit": COMMIT, "files": hub.pins(folder)}
    assert f"hub: owner/net at {COMMIT}: 2 files, held to their sha256 by {lock}" in capsys.readouterr().err
    count = len(repository.asked)
    assert same(hub.load("owner/net", sha256=hub.pins(folder)), folder)
    assert len(repository.asked) == count  # nothing more was asked: it works offline
    kept = lock.with_name("model.safetensors")
    kept.write_bytes(kept.read_bytes()[:-1] + b"?")  # damaged on the disk: brought anew, of the same commit
    assert same(hub.load("owner/net", verbose=False), folder)
    assert repository.asked[count:] == [("GET", f"/owner/net/resolve/{COMMIT}/model.safetensors", "")]
    assert hub.list("owner/net") == ["gpt2"]


def test_what_changes_on_the_server_is_not_taken_silently(repository: Server, folder: Path, home: Path) -> None:
    hub.load("owner/net", verbose=False)
    pins = hub.pins("owner/net", verbose=False)
    tt.io.save_file({k: v + 1 for k, v in tt.load(folder / "model.safetensors").items()}, folder / "model.safetensors")
    served(repository, folder, revisions=("main", COMMIT))
    assert not same(hub.load("owner/net", verbose=False), folder)  # still what it was
    (home / "repositories/owner--net/main/model.safetensors").unlink()
    with pytest.raises(DownloadError, match="it gives another file"):
        hub.load("owner/net", verbose=False)
    with pytest.raises(DownloadError, match="it gives another file"):
        hub.load("owner/net", sha256=pins, force_reload=True, verbose=False)
    assert same(hub.load("owner/net", force_reload=True, verbose=False), folder)
    assert same(hub.load("owner/net", verbose=False), folder)


def test_shards_and_a_sum_that_the_server_states(server: Server, folder: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    served(server, sharded(folder), "tiny")
    first = server.files["/tiny/resolve/main/model-1.safetensors"]
    first.headers["X-Linked-Etag"] = f'"{sha(first.content)}"'
    assert same(hub.load("tiny", verbose=False), folder)
    assert same(hub.load("tiny", verbose=False, sha256=hub.pins(folder)), folder)
    first.headers["X-Linked-Etag"] = f'"{sha(b"other")}"'
    with pytest.raises(DownloadError, match=r"model-1.safetensors of the repository tiny could not be had: .*it gives another file"):
        hub.load("tiny", force_reload=True, verbose=False)


def test_a_broken_connection_is_taken_up_again(repository: Server, folder: Path) -> None:
    file = repository.files[f"/owner/net/resolve/{COMMIT}/model.safetensors"]
    file.drops, file.etag = [1000], '"v"'
    assert same(hub.load("owner/net", verbose=False), folder)
    assert repository.gets(f"/owner/net/resolve/{COMMIT}/model.safetensors") == ["", "bytes=1000-"]


def test_pickles_and_code_are_refused(repository: Server, folder: Path, tmp_path: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    (folder / "hubconf.py").write_text("raise SystemExit('it ran')")
    with pytest.raises(FileNotFoundError, match=r"pytorch_model.bin, which may be pickles, whose reading runs what they say"):
        hub.load(folder, "gpt2")
    (folder / "pytorch_model.bin").unlink()
    with pytest.raises(FileNotFoundError, match=r"hubconf.py, which is code, and is not run"):
        hub.load(folder, "gpt2")
    repository.files["/a/b/resolve/main/pytorch_model.bin"] = Served(b"x")
    with pytest.raises(
        FileNotFoundError, match=r"a/b at main: neither model.safetensors nor .* there are pytorch_model.bin, which may be pickles"
    ):
        hub.load("a/b", "gpt2")
    for file in ("pytorch_model.bin", "weights.pt"):
        with pytest.raises(
            ValueError, match=rf"{file} may be a pickle, whose reading runs what it says; weights are taken from .safetensors"
        ):
            hub.load(folder, "gpt2", file=file)
    with pytest.raises(ValueError, match="names a branch of a GitHub repository"):
        hub.load("pytorch/vision:v0.10.0", "resnet18")
    with pytest.raises(ValueError, match="source 'github'; give 'local' or 'huggingface'"):
        hub.load("pytorch/vision", "resnet18", source="github")


@pytest.mark.parametrize("name", ["../evil", "a/../b", "a/b/c", "", "a b", "/no/such", "a/.hidden"])
def test_names_that_are_none(name: str, home: Path) -> None:
    with pytest.raises(ValueError, match="is no folder that is there, and no repository"):
        hub.load(name, "gpt2")


def test_hostile_indices(folder: Path) -> None:
    index = folder / "model.safetensors.index.json"
    state = folder / "model.safetensors"
    state.rename(folder / "a.safetensors")
    for content, told in [
        ("{", "this is no index of shards"),
        ("[]", "this is no index of shards .it has no weight_map"),
        ("{}", "this is no index of shards"),
        (json.dumps({"weight_map": {"x": 1}}), "this is no index of shards"),
        (json.dumps({"weight_map": {"x": "../../a.safetensors"}}), "leads out of the repository"),
        (json.dumps({"weight_map": {"x": "/a.safetensors"}}), "leads out of the repository"),
        (json.dumps({"weight_map": {"x": "a.safetensors"}}), "do not agree on"),
        ("[" * 100_000, "this is no index of shards"),
        (json.dumps({"weight_map": {"x": "lock.json/a.safetensors"}}), "takes a file for a folder"),
    ]:
        index.write_text(content)
        with pytest.raises(CheckpointError, match=told):
            hub.load_state_dict(folder)
    index.write_text(json.dumps({"weight_map": {"x": "a.pkl"}}))
    with pytest.raises(ValueError, match="may be a pickle"):
        hub.load_state_dict(folder)


def test_configs(folder: Path) -> None:
    for change, told in [
        ({"model_type": "bert"}, r"config.json says {'model_type': 'bert'}, which is not known here; give model="),
        ({"activation_function": "relu"}, "activation_function is 'relu'; models.GPT2 has 'gelu_new'"),
        ({"n_inner": 7}, "n_inner is 7"),
        ({"n_head": 2.0}, "n_head is 2.0; give a number above 0"),
        ({"n_layer": "two"}, "n_layer is 'two'; give a number above 0"),
        ({"n_layer": 10**12}, r"describes a GPT-2 of 8[0-9,]+ parameters, and the weights hold [0-9,]+; they are of two models"),
        ({"vocab_size": 12}, "describes a GPT-2 of 1,[0-9]+ parameters"),
        ({"n_layer": 1}, "its weights are not those of GPT2"),
    ]:
        (folder / "config.json").write_text(json.dumps({**SMALL, **change}))
        with pytest.raises((ValueError, CheckpointError), match=told):
            hub.load(folder)
    (folder / "config.json").unlink()
    with pytest.raises(ValueError, match=r"there is no config.json, and model= does not say"):
        hub.load(folder)
    made = folder / "lenet"
    made.mkdir()
    tt.io.save_file(models.lenet(3).state_dict(), made / "weights.safetensors")
    (made / "config.json").write_text(json.dumps({"architecture": "lenet", "num_classes": 3}))
    assert hub.load(made).fc3.out_features == 3
    assert hub.load(made, "lenet", num_classes=3).fc3.out_features == 3
    with pytest.raises(CheckpointError, match="its weights are not those of LeNet"):
        hub.load(made, "lenet", 4)
    tt.io.save_file({}, made / "more.safetensors")
    with pytest.raises(FileNotFoundError, match=r"2 .safetensors files, of which file= chooses one"):
        hub.load(made)
    assert hub.load(made, file="weights.safetensors").fc3.out_features == 3


def test_no_network_and_no_such_repository(repository: Server, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileNotFoundError, match=r"nobody/none at main: neither model.safetensors nor"):
        hub.load("nobody/none", "gpt2")
    monkeypatch.setenv("TRITENSOR_OFFLINE", "1")
    with pytest.raises(DownloadError, match=r"other/one: .*TRITENSOR_OFFLINE is set.*loads without a network: hub.load\(folder\)"):
        hub.load("other/one")
    assert repository.asked[-1][1] == "/nobody/none/resolve/main/hubconf.py"


def test_a_damaged_lock_is_named(repository: Server, home: Path) -> None:
    hub.load("owner/net", verbose=False)
    lock = home / "repositories" / "owner--net" / "main" / "lock.json"
    good = json.loads(lock.read_text())
    odd = [{}, {**good, "commit": 5}, {**good, "commit": "../../x"}, {**good, "files": {"config.json": "zz"}}]
    for content in odd:
        lock.write_text(json.dumps(content))
        with pytest.raises(CheckpointError, match=r"lock.json is damaged; remove it, or give force_reload=True"):
            hub.load("owner/net")


def test_two_names_of_one_folder_are_not_taken_for_one_another(repository: Server, folder: Path, home: Path) -> None:
    served(repository, folder, "owner--net")
    hub.load("owner/net", verbose=False)
    with pytest.raises(
        CheckpointError, match=r"lock.json is of owner/net at main, and owner--net at main is asked for; .*force_reload=True"
    ):
        hub.load("owner--net", verbose=False)
    hub.load("owner--net", verbose=False, force_reload=True)


def test_a_config_without_end_is_not_taken(repository: Server, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repositories, "_MAX_JSON_BYTES", 5000)
    repository.files["/owner/long/resolve/main/model.safetensors"] = Served(b"never asked for")
    for chunked in (False, True):
        repository.files["/owner/long/resolve/main/config.json"] = Served(b" " * 100_000, chunked=chunked)
        with pytest.raises(DownloadError, match="it gives more than 5,000 bytes, the most that such a file has"):
            hub.load("owner/long", verbose=False)
    assert [p.name for p in home.rglob("config.json*") if p.stat().st_size > 5000] == []


def test_a_server_that_leads_to_no_address(repository: Server, home: Path) -> None:
    repository.files["/owner/odd/resolve/main/config.json"] = Served(redirect="http://[::")
    with pytest.raises(DownloadError, match=r"it leads to an address that is none \(Invalid IPv6 URL\)"):
        hub.load("owner/odd", verbose=False)


def test_files_by_url(server: Server, home: Path, tmp_path: Path) -> None:
    tt.save({"w": tt.ones(2)}, tmp_path / "saved")
    content = (tmp_path / "saved").read_bytes()
    name = f"net-{sha(content)[:8]}.safetensors"
    server.files[f"/{name}"] = server.files["/plain"] = Served(content)
    server.files["/net-00000000.pth"] = Served(content)
    assert tt.equal(hub.load_state_dict_from_url(f"{server.url}/{name}", check_hash=True, progress=False)["w"], tt.ones(2))
    assert os.listdir(home / "checkpoints") == [name]
    assert tt.equal(hub.load_state_dict_from_url(f"{server.url}/{name}", progress=False)["w"], tt.ones(2))
    assert len(server.gets(f"/{name}")) == 1
    with pytest.raises(RuntimeError, match="it gives another file"):
        hub.load_state_dict_from_url(f"{server.url}/net-00000000.pth", check_hash=True, progress=False)
    with pytest.raises(ValueError, match="'plain', which has no hash in it"):
        hub.load_state_dict_from_url(f"{server.url}/plain", check_hash=True)
    found = hub.load_state_dict_from_url(f"{server.url}/plain", tmp_path / "to", file_name="x", sha256=sha(content), progress=False)
    assert list(found) == ["w"]
    target = tmp_path / "to" / "y"
    hub.download_url_to_file(f"{server.url}/plain", target, sha(content)[:6], progress=False)
    with pytest.raises(RuntimeError):
        hub.download_url_to_file(f"{server.url}/plain", target, "ffffff", progress=False)
    assert target.read_bytes() == content
    server.files["/plain"].content = b"new"
    hub.download_url_to_file(f"{server.url}/plain", target, progress=False)
    assert target.read_bytes() == b"new"


def test_what_is_said_of_models() -> None:
    assert {"gpt2", "lenet", "resnet18"} <= set(hub.list())
    assert "A new ResNet-18" in hub.help("resnet18")
    assert hub.help("pytorch/vision", "resnet18") == hub.help("resnet18")
    with pytest.raises(ValueError, match=r"no model 'resnet19' in tritensor.models.*'resnet18' is there|no model 'resnet19'"):
        hub.load("anything/at-all", "resnet19")
