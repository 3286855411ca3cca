"""Downloads: what a server does wrong is gone around, or told; a file under its name is always whole."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.hub.faulty_server import Served, Server
from tritensor.ground.errors import DownloadError
from tritensor.hub import connection
from tritensor.hub.download import TRIES, download
from tritensor.io.checksums import Checksum, parse_checksum

ROOT = Path(__file__).resolve().parents[2]
CONTENT = bytes(range(256)) * 4096  # 1 MB
SHA = Checksum("sha256", hashlib.sha256(CONTENT).hexdigest())
MD5 = Checksum("md5", hashlib.md5(CONTENT).hexdigest())


def got(server: Server, path: Path, wanted: Checksum | None = SHA, name: str = "/f", **how: object) -> list[str]:
    """Download, check, and say what ranges were asked."""
    download(server.url + name, path, wanted=wanted, progress=False, **how)  # type: ignore[arg-type]
    assert path.read_bytes() == CONTENT
    assert os.listdir(path.parent) == [path.name]
    return server.gets(name)


@pytest.mark.parametrize("wanted", [SHA, MD5, None], ids=["sha256", "md5", "none"])
def test_a_file_comes_whole(server: Server, tmp_path: Path, wanted: Checksum | None) -> None:
    server.files["/f"] = Served(CONTENT)
    assert got(server, tmp_path / "new" / "f", wanted) == [""]
    assert got(server, tmp_path / "new" / "f", wanted) == [""]  # and is not asked for again
    assert len(got(server, tmp_path / "new" / "f", None, anew=True)) == 2


def test_a_connection_that_breaks_is_taken_up_again(server: Server, tmp_path: Path) -> None:
    server.files["/f"] = Served(CONTENT, drops=[300_000, 0, 200_000])
    assert got(server, tmp_path / "f") == ["", "bytes=300000-", "bytes=300000-", "bytes=500000-"]


def test_without_a_checksum_only_where_the_server_names_the_version(server: Server, tmp_path: Path) -> None:
    server.files["/f"] = Served(CONTENT, drops=[300_000], etag='"one"')
    assert got(server, tmp_path / "f", None) == ["", "bytes=300000-"]
    server.files["/g"] = Served(CONTENT, drops=[300_000])
    assert got(server, tmp_path / "f", None, "/g", anew=True) == ["", ""]
    server.files["/h"] = Served(CONTENT, drops=[300_000], etag='W/"weak"')
    assert got(server, tmp_path / "f", None, "/h", anew=True) == ["", ""]


def test_a_server_without_ranges_begins_again(server: Server, tmp_path: Path) -> None:
    server.files["/f"] = Served(CONTENT, ranges=False, drops=[300_000])
    assert got(server, tmp_path / "f") == ["", "bytes=300000-"]


def test_a_range_other_than_asked_is_not_used(server: Server, tmp_path: Path) -> None:
    server.files["/f"] = Served(CONTENT, drops=[300_000], starts_at=5)
    assert got(server, tmp_path / "f") == ["", "bytes=300000-", ""]


def test_a_later_call_goes_on(server: Server, tmp_path: Path) -> None:
    server.files["/f"] = Served(CONTENT, drops=[300_000] + [0] * TRIES)
    with pytest.raises(DownloadError, match="the connection ended after 300,000 of 1,048,576 bytes"):
        download(server.url + "/f", tmp_path / "f", wanted=SHA, progress=False)
    assert os.listdir(tmp_path) == ["f.part"]
    assert got(server, tmp_path / "f")[-1] == "bytes=300000-"


@pytest.mark.parametrize("left", [b"x" * 1000, CONTENT + b"more", CONTENT], ids=["foreign", "too long", "whole"])
def test_what_lies_there_from_elsewhere_does_no_harm(server: Server, tmp_path: Path, left: bytes) -> None:
    server.files["/f"] = Served(CONTENT)
    (tmp_path / "f.part").write_bytes(left)
    got(server, tmp_path / "f")


def test_a_file_that_is_damaged_is_replaced(server: Server, tmp_path: Path) -> None:
    server.files["/f"] = Served(CONTENT)
    (tmp_path / "f").write_bytes(CONTENT[:-1])
    got(server, tmp_path / "f")


def test_wrong_contents_are_thrown_away(server: Server, tmp_path: Path) -> None:
    server.files["/f"] = Served(b"another file")
    told = rf"f of MNIST could not be had: {server.url}/f: it gives another file \(12 bytes, sha256 [0-9a-f]+\)\. .*put the file \(sha256 {SHA.digits}\)"
    with pytest.raises(DownloadError, match=told):
        download(server.url + "/f", tmp_path / "f", wanted=SHA, progress=False, what="MNIST")
    assert os.listdir(tmp_path) == []


def test_the_next_mirror_is_asked_and_goes_on(server: Server, tmp_path: Path) -> None:
    server.files["/bad"] = Served(b"another file")
    server.files["/torn"] = Served(CONTENT, drops=[300_000] + [0] * TRIES)
    server.files["/f"] = Served(CONTENT)
    urls = [server.url + name for name in ("/missing", "/bad", "/torn", "/f")]
    download(urls, tmp_path / "f", wanted=SHA, progress=False)
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert server.gets("/f") == ["bytes=300000-"]
    assert server.gets("/missing") == [""]


def test_a_mirror_with_another_beginning_does_not_spoil_the_next(server: Server, tmp_path: Path) -> None:
    server.files["/torn"] = Served(CONTENT[::-1], drops=[300_000] + [0] * TRIES)
    server.files["/f"] = Served(CONTENT)
    download([server.url + "/torn", server.url + "/f"], tmp_path / "f", wanted=SHA, progress=False)
    assert server.gets("/f") == ["bytes=300000-", ""]


def test_all_mirrors_are_named(server: Server, tmp_path: Path) -> None:
    server.files["/b"] = Served(statuses=[403])
    with pytest.raises(DownloadError) as told:
        download([server.url + "/a", server.url + "/b", "http://nowhere.invalid/c"], tmp_path / "f", progress=False)
    assert f"{server.url}/a: 404 Not Found; {server.url}/b: 403 Forbidden; http://nowhere.invalid/c: its name is not known" in str(
        told.value
    )
    assert f"put the file at {tmp_path / 'f'} by hand" in str(told.value)
    assert os.listdir(tmp_path) == []


def test_passing_answers_are_waited_out_and_others_not(server: Server, tmp_path: Path) -> None:
    server.files["/f"] = Served(CONTENT, statuses=[503, 429, 0])
    assert got(server, tmp_path / "f") == ["", "", ""]
    server.files["/g"] = Served(CONTENT, statuses=[500] * 9)
    with pytest.raises(DownloadError, match="500 Internal Server Error"):
        download(server.url + "/g", tmp_path / "g", progress=False)
    assert len(server.gets("/g")) == TRIES
    failed = urllib.error.HTTPError("u", 503, "busy", {"Retry-After": "7"}, None)  # type: ignore[arg-type]
    assert connection.get_retry_after(failed) == 7
    assert connection.get_retry_after(OSError()) == 0


@pytest.mark.parametrize(("length", "told"), [(2_000_000, "ended after"), (1000, "gives another file")])
def test_a_length_that_lies(server: Server, tmp_path: Path, length: int, told: str) -> None:
    server.files["/f"] = Served(CONTENT + b"!", ranges=False, length=length)
    with pytest.raises(DownloadError, match=told):
        download(server.url + "/f", tmp_path / "f", wanted=SHA, progress=False)
    assert not (tmp_path / "f").exists()
    server.files["/g"] = Served(CONTENT, ranges=False, length=2_000_000)  # the checksum knows better
    got(server, tmp_path / "f", name="/g")


def test_no_length_at_all(server: Server, tmp_path: Path) -> None:
    server.files["/f"] = Served(CONTENT, chunked=True, drops=[300_000])
    assert got(server, tmp_path / "f") == ["", "bytes=300000-"]


def test_a_file_that_changes_on_the_way_begins_again(server: Server, tmp_path: Path) -> None:
    served = server.files["/f"] = Served(CONTENT[::-1], drops=[300_000], etag='"old"')
    ask = connection.open_url

    def then_change(*args: object, **kwargs: object) -> object:
        answer = ask(*args, **kwargs)  # type: ignore[arg-type]
        served.content, served.etag = CONTENT, '"new"'
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tritensor.hub.download.open_url", then_change)
        download(server.url + "/f", tmp_path / "f", progress=False)
    assert (tmp_path / "f").read_bytes() == CONTENT


def test_redirects_are_followed_but_not_out_of_https(server: Server, tmp_path: Path) -> None:
    server.files["/f"] = Served(redirect=server.url + "/g", headers={"X-Linked-Etag": "e"})
    server.files["/g"] = Served(CONTENT)
    download(server.url + "/f", tmp_path / "f", wanted=SHA, progress=False)
    answer, headers = connection.open_url(server.url + "/f", {}, "HEAD")
    answer.close()
    assert headers["x-linked-etag"] == "e"
    elsewhere = server.url.replace("127.0.0.1", "localhost") + "/nowhere"  # a store that answers GET alone
    server.files["/h"] = Served(redirect=elsewhere, headers={"X-Linked-Etag": "kept"})
    answer, headers = connection.open_url(server.url + "/h", {}, "HEAD")
    answer.close()
    assert headers["x-linked-etag"] == "kept"
    assert [m for m, path, _ in server.asked if path == "/g"] == ["GET", "HEAD"]
    assert "/nowhere" not in [path for _, path, _ in server.asked]
    asked = SimpleNamespace(full_url="https://a/f", get_method=lambda: "GET")
    with pytest.raises(urllib.error.URLError, match="leads from https to http://a/g"):
        connection.Redirects().redirect_request(asked, None, 302, "", {}, "http://a/g")


def test_a_process_that_is_killed_in_the_middle(server: Server, tmp_path: Path) -> None:
    served = server.files["/f"] = Served(CONTENT, held=threading.Event())
    held, part = served.held, tmp_path / "f.part"
    assert held is not None
    call = f"download({server.url + '/f'!r}, {str(tmp_path / 'f')!r}, wanted=Checksum('sha256', {SHA.digits!r}), progress=False)"
    code = f"from tritensor.hub.download import download; from tritensor.io.checksums import Checksum; {call}"
    child = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    for _ in range(1500):
        if part.exists() and part.stat().st_size >= len(CONTENT) // 2:
            break
        time.sleep(0.02)
    child.kill()
    assert child.wait() == -signal.SIGKILL
    held.set()
    assert got(server, tmp_path / "f") == ["", f"bytes={len(CONTENT) // 2}-"]


def test_certificates_that_are_not_valid_are_told_and_not_tried_again() -> None:
    failed = ssl.SSLCertVerificationError(1, "no")
    failed.verify_message = "self-signed certificate"
    wrapped = urllib.error.URLError(failed)
    assert connection.describe_failure(wrapped) == "its certificate is not valid (self-signed certificate)"
    assert not connection.is_temporary(wrapped)
    assert connection.is_temporary(urllib.error.URLError(TimeoutError()))
    assert connection.describe_failure(TimeoutError()) == "no byte in 30 seconds"
    assert connection.describe_failure(ConnectionResetError()) == "ConnectionResetError"


def test_a_server_that_falls_silent(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections, and says nothing
        silent_url = f"http://127.0.0.1:{silent.getsockname()[1]}/f"
        server.files["/f"] = Served(CONTENT)
        monkeypatch.setattr("tritensor.hub.download.TRIES", 2)
        download([silent_url, server.url + "/f"], tmp_path / "f", wanted=SHA, progress=False)
        with pytest.raises(DownloadError, match=r"no byte in 0\.2 seconds"):
            download(silent_url, tmp_path / "g", wanted=SHA, progress=False)


def test_offline_says_so(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITENSOR_OFFLINE", "1")
    with pytest.raises(DownloadError, match="TRITENSOR_OFFLINE is set"):
        download(server.url + "/f", tmp_path / "f", progress=False)
    assert server.asked == []


def test_no_room_on_the_disk(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server.files["/f"] = Served(CONTENT)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1000))
    with pytest.raises(OSError, match="1,048,576 more bytes are needed") as told:
        download(server.url + "/f", tmp_path / "f", wanted=SHA, progress=False)
    assert told.value.errno == errno.ENOSPC


def test_two_that_want_one_file_get_it_once(server: Server, tmp_path: Path) -> None:
    server.files["/f"] = Served(CONTENT)
    threads = [
        threading.Thread(target=download, args=(server.url + "/f", tmp_path / "f"), kwargs={"wanted": SHA, "progress": False})
        for _ in range(4)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert server.gets("/f") == [""]
    assert os.listdir(tmp_path) == ["f"]


def test_progress_is_told(server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server.files["/f"] = Served(CONTENT * 3, drops=[1_500_000])
    download(server.url + "/f", tmp_path / "f")
    shown = capsys.readouterr().err
    assert "f: 3 of 3 MB" in shown
    server.files["/g"] = Served(b"little")
    download(server.url + "/g", tmp_path / "g")
    assert capsys.readouterr().err == ""


def test_checksums_that_are_none() -> None:
    assert parse_checksum() is None
    assert parse_checksum(sha256="sha256:" + SHA.digits.upper()) == SHA
    for given in ("abc", "x" * 64):
        with pytest.raises(ValueError, match="give the 64 hexadecimal digits"):
            parse_checksum(sha256=given)
    assert parse_checksum(sha256=SHA.digits[:8], whole=False) == Checksum("sha256", SHA.digits[:8])
