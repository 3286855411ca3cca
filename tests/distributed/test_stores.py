"""Stores of keys: what a table answers, who waits, a file's users, and processes that meet in one."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

import tritensor.distributed as dist
from tests.distributed.ranks import ROOT, environment
from tritensor.ground.errors import ArgumentError, DistNetworkError, DistStoreError, QueueEmptyError

Maker = Callable[[Path], dist.Store]
STORES: list[Maker] = [
    lambda _: dist.HashStore(),
    lambda p: dist.FileStore(str(p / "keys")),
    lambda _: dist.PrefixStore("own", dist.HashStore()),
]


@pytest.mark.parametrize("make", STORES)
def test_a_table(make: Maker, tmp_path: Path) -> None:
    store = make(tmp_path)
    store.set("a", "1")
    store.set("b", b"\xff")
    assert (store.get("a"), store.get("b")) == (b"1", b"\xff")
    assert [store.add("n", 3), store.add("n", -1), store.get("n")] == [3, 2, b"2"]
    # An empty expectation is met by a key that is not there; another one is answered with itself.
    steps = [("c", "", "x"), ("c", "x", "y"), ("c", "no", "z"), ("none", "no", "z")]
    assert [store.compare_set(*step) for step in steps] == [b"x", b"y", b"y", b"no"]
    store.append("c", "!")
    store.multi_set(["d", "e"], ["4", "5"])
    assert store.multi_get(["c", "d", "e"]) == [b"y!", b"4", b"5"]
    assert (store.check(["a", "c"]), store.check(["a", "none"]), store.delete_key("a"), store.check(["a"])) == (True, False, True, False)
    assert {"b", "c", "d", "e", "n"} == set(store.list_keys()) - {"efcount/"}
    assert store.timeout == timedelta(seconds=300)
    store.barrier("all", 1)


@pytest.mark.parametrize("make", STORES)
def test_a_key_that_comes_late(make: Maker, tmp_path: Path) -> None:
    store = make(tmp_path)
    later = threading.Timer(0.05, lambda: store.set("late", "1"))
    later.start()
    assert store.get("late") == b"1"
    later.join()
    with pytest.raises(DistStoreError, match=r"wait timeout after 0\.02 s, keys: .*never"):
        store.wait(["late", "never"], timedelta(milliseconds=20))
    store.set_timeout(timedelta(milliseconds=20))
    with pytest.raises(DistStoreError, match="never"):
        store.get("never")


@pytest.mark.parametrize("inner", [dist.HashStore, lambda: dist.TCPStore("localhost", 0, is_master=True)])
def test_a_queue(inner: Callable[[], dist.Store]) -> None:
    store = dist.PrefixStore("own", inner())
    store.queue_push("q", "1")
    store.queue_push("q", b"2")
    assert [store.queue_len("q"), store.queue_pop("q"), store.queue_pop("q"), store.queue_len("q")] == [2, b"1", b"2", 0]
    with pytest.raises(QueueEmptyError, match="queue is empty"):
        store.queue_pop("q", False)


def test_a_file_ends_with_its_last_user(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    first, second = dist.FileStore(str(path), 2), dist.FileStore(str(path), 2)
    first.set("a", "1")
    assert (second.get("a"), second.num_keys()) == (b"1", 2)  # PyTorch, too, counts the key by which it counts users
    del first
    assert path.exists()
    del second
    assert not path.exists()


def test_who_comes_to_an_address() -> None:
    server = dist.TCPStore("localhost", 0, 2, True, timedelta(seconds=20), wait_for_workers=False)
    guest = dist.TCPStore("localhost", server.port, 2, False, timedelta(seconds=20))
    guest.set("a", b"\xff\0")
    assert (server.get("a"), server.num_keys(), server.list_keys()) == (b"\xff\0", 2, ["a"])  # one key counts who has come
    twin = guest.clone()
    twin.set_timeout(timedelta(milliseconds=20))
    with pytest.raises(DistStoreError, match=r"TCPStore: wait timeout after 0\.02 s, keys: never"):
        twin.get("never")
    with pytest.raises(ArgumentError, match="no number that can be counted up"):
        guest.add("a", 1)
    with pytest.raises(DistNetworkError, match="cannot be served"):
        dist.TCPStore("localhost", server.port, is_master=True)
    with pytest.raises(DistStoreError, match=r"init/all"):
        dist.TCPStore("localhost", 0, 2, True, timedelta(milliseconds=20))
    del server
    with pytest.raises(DistNetworkError, match=r"has gone|is lost"):
        guest.get("a")
    with pytest.raises(DistNetworkError, match="nobody serves at"):
        dist.TCPStore("localhost", guest.port, timeout=timedelta(milliseconds=20))


def test_what_a_store_refuses(tmp_path: Path) -> None:
    store = dist.HashStore()
    store.set("a", "word")
    with pytest.raises(ArgumentError, match=r"'a' is b'word', no number"):
        store.add("a", 1)
    with pytest.raises(TypeError, match=r"a value is 5, of type int; give a str or bytes"):
        store.set("a", 5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"give a datetime\.timedelta"):
        store.set_timeout(3)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="1 keys and 2 values"):
        store.multi_set(["a"], ["1", "2"])
    with pytest.raises(NotImplementedError, match=r"FileStore\.queue_len"):
        dist.FileStore(str(tmp_path / "keys")).queue_len("a")


def test_a_world_of_one_with_a_store() -> None:
    dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    assert dist.get_world_size() == 1
    dist.destroy_process_group()


def test_processes_that_meet_in_a_file(tmp_path: Path) -> None:
    script = ROOT / "tests" / "distributed" / "forked" / "met_in_a_file.py"
    command = [sys.executable, "-m", "tritensor.run", str(script), str(tmp_path / "keys")]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=120, check=False)
    assert "right 2" in done.stdout, done.stdout + done.stderr
