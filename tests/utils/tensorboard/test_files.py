"""Event files outlive a SIGKILL, a fork, a full disk and a program that forgets to close; writers that share a folder do not meet."""

from __future__ import annotations

import errno
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import tritensor as tt
from tests.utils.tensorboard.reading import accumulated, files, read
from tritensor.utils.tensorboard import FileWriter, SummaryWriter, event_file


def in_child(body: str, folder: Path, **kwargs: Any) -> subprocess.CompletedProcess[str]:
    code = f"import os, signal, sys\nfrom tritensor.utils.tensorboard import SummaryWriter\nw = SummaryWriter({str(folder)!r})\n{body}"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, **kwargs)


def test_what_was_flushed_outlives_a_sigkill(tmp_path: Path) -> None:
    done = in_child("for i in range(50): w.add_scalar('a', i, i)\nw.flush()\nos.kill(os.getpid(), signal.SIGKILL)", tmp_path)
    assert done.returncode == -signal.SIGKILL
    assert [e.step for e in accumulated(tmp_path).Scalars("a")] == list(range(50))


def test_a_file_that_is_cut_off_anywhere_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        for i in range(5):
            writer.add_scalar("a", i, i)
    (file,) = files(tmp_path)
    whole, found = file.read_bytes(), set()
    for end in range(len(whole) - 100, len(whole)):
        file.write_bytes(whole[:end])
        found.add(len(read(file)))
    assert found == {3, 4, 5}, "the version, and a scalar more for each whole record"


def test_a_program_that_forgets_to_close(tmp_path: Path) -> None:
    done = in_child("w.add_scalar('a', 1.0, 3)", tmp_path)
    assert done.returncode == 0, done.stderr
    assert [e.step for e in accumulated(tmp_path).Scalars("a")] == [3]
    SummaryWriter(tmp_path / "lost").add_scalar("b", 2.0)  # and a writer that nobody holds
    assert [e.value for e in accumulated(tmp_path / "lost").Scalars("b")] == [2.0]


def test_the_thread_writes_after_max_queue_and_after_flush_secs(tmp_path: Path) -> None:
    patient = SummaryWriter(tmp_path / "patient", flush_secs=1000)
    many = SummaryWriter(tmp_path / "many", max_queue=3, flush_secs=1000)
    time.sleep(0.2)  # the thread has gone to sleep
    late = SummaryWriter(tmp_path / "late", max_queue=1000, flush_secs=0.2)
    for writer in (many, late):
        for i in range(3):
            writer.add_scalar("a", i, i)
    end = time.monotonic() + 20
    while time.monotonic() < end and any(len(read(*files(tmp_path / d))) < 4 for d in ("many", "late")):
        time.sleep(0.05)
    assert [len(read(*files(tmp_path / d))) for d in ("many", "late")] == [4, 4]
    for writer in (many, late, patient):
        writer.close()


def child_of_a_fork(writer: SummaryWriter) -> None:
    writer.add_scalar("child", 2.0, 2)


def test_a_forked_process_writes_a_file_of_its_own(tmp_path: Path) -> None:
    writer = SummaryWriter(tmp_path, max_queue=1000)
    writer.add_scalar("parent", 1.0, 1)
    child = multiprocessing.get_context("fork").Process(target=child_of_a_fork, args=(writer,))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    writer.add_scalar("parent", 3.0, 3)
    writer.close()
    found = [[v.tag for e in read(file) for v in e.summary.value] for file in files(tmp_path)]
    assert sorted(found) == [["child"], ["parent", "parent"]], "nothing twice, nothing lost"
    assert threading.active_count() < 20


def test_a_run_that_goes_on_hides_what_came_after_its_checkpoint(tmp_path: Path) -> None:
    for begin, end, purge in ((0, 10, None), (6, 12, 6)):
        with SummaryWriter(tmp_path, purge_step=purge) as writer:
            for i in range(begin, end):
                writer.add_scalar("a", begin + i, i)
    found = accumulated(tmp_path).Scalars("a")
    assert [(e.step, e.value) for e in found] == [(i, float(i)) for i in range(6)] + [(i, 6.0 + i) for i in range(6, 12)]


def test_files_of_one_folder_have_names_of_their_own_in_the_order_in_which_they_began(tmp_path: Path) -> None:
    writers = [SummaryWriter(tmp_path, filename_suffix=".v2") for _ in range(5)]
    names = [w.file_writer._sink.path.name for w in writers if w.file_writer is not None]
    assert names == sorted(set(names))
    assert all(n.endswith(".v2") for n in names)
    for w in writers:
        w.close()


def test_a_writer_goes_on_after_close(tmp_path: Path) -> None:
    writer = SummaryWriter(tmp_path)
    writer.add_scalar("a", 1.0, 1)
    writer.close()
    writer.close()
    writer.add_scalar("a", 2.0, 2)
    writer.close()
    assert [e.step for e in accumulated(tmp_path).Scalars("a")] == [1, 2]
    alone = FileWriter(tmp_path / "alone")
    alone.close()
    with pytest.raises(ValueError, match="is closed; call reopen"):
        alone.add_summary(b"")
    alone.reopen()
    alone.close()
    assert len(files(tmp_path / "alone")) == 2
    assert alone.get_logdir() == str(tmp_path / "alone")


def test_a_message_of_tensorboards_own_is_taken(tmp_path: Path) -> None:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary

    writer = SummaryWriter(tmp_path)
    assert writer.file_writer is not None
    writer.file_writer.add_summary(Summary(value=[Summary.Value(tag="a", simple_value=1.0)]), 3)
    writer.file_writer.add_event(Event(summary=Summary(value=[Summary.Value(tag="a", simple_value=2.0)])), 4, 7.0)
    writer.close()
    assert [(e.step, e.value) for e in accumulated(tmp_path).Scalars("a")] == [(3, 1.0), (4, 2.0)]


def test_a_disk_that_fills_is_told_and_nothing_torn_stays(tmp_path: Path) -> None:
    """A limit on the size of files stands for the disk."""

    def small_disk() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))

    body = """
import resource
for i in range(20): w.add_scalar('a', i, i)
w.flush()
for i in range(20, 60): w.add_scalar('a', i, i)
try:
    w.flush()
except OSError as error:
    print(error)
end = os.path.getsize(w.file_writer._sink.path)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
w.close()
print(end)
"""
    done = in_child(body, tmp_path, preexec_fn=small_disk)
    assert done.returncode == 0, done.stderr
    said, end = done.stdout.splitlines()
    assert f"[Errno {errno.EFBIG}] SummaryWriter: " in said
    assert "bytes of records could not be written to" in said
    assert "they are kept, and the next flush tries again" in said
    assert [e.step for e in accumulated(tmp_path).Scalars("a")] == list(range(60)), "and are there once there is room"
    assert 800 < int(end) < 2000, "no half record is left"


def test_what_the_thread_met_is_raised_by_the_next_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = SummaryWriter(tmp_path, max_queue=1)
    full = OSError(errno.ENOSPC, "No space left on device")

    def refuse(*_: Any) -> int:
        raise full

    with monkeypatch.context() as patched:
        patched.setattr(event_file.os, "write", refuse)
        writer.add_scalar("a", 1.0, 1)
        sink = writer.file_writer._sink  # type: ignore[union-attr]
        end = time.monotonic() + 20
        while sink.error is None and time.monotonic() < end:
            time.sleep(0.01)
        with pytest.raises(OSError, match="No space left on device; they are kept") as caught:
            writer.add_scalar("a", 2.0, 2)
        assert caught.value.errno == errno.ENOSPC
    writer.add_scalar("a", 3.0, 3)
    writer.close()
    assert [e.step for e in accumulated(tmp_path).Scalars("a")] == [1, 3]


def test_a_thread_that_was_stopped_is_followed_by_another(tmp_path: Path) -> None:
    """Test suites stop the daemon threads that a test has left, by a method of tensorboard's own thread."""
    with SummaryWriter(tmp_path / "a") as first:
        (thread,) = [t for t in threading.enumerate() if t.name == "tensorboard"]
        thread.stop()  # type: ignore[attr-defined]
        assert not thread.is_alive()
        first.add_scalar("x", 1, 1)
        with SummaryWriter(tmp_path / "b", max_queue=1) as second:
            assert [t for t in threading.enumerate() if t.name == "tensorboard"] not in ([], [thread])
            second.add_scalar("y", 2, 2)
    assert [e.step for e in accumulated(tmp_path / "a").Scalars("x")] == [1]
    assert [e.step for e in accumulated(tmp_path / "b").Scalars("y")] == [2]


def test_several_threads_log_at_once(tmp_path: Path) -> None:
    writer = SummaryWriter(tmp_path, max_queue=2)

    def log(name: int) -> None:
        for i in range(300):
            writer.add_scalar(f"t{name}", i, i)

    threads = [threading.Thread(target=log, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    writer.close()
    found = accumulated(tmp_path)
    assert all([e.step for e in found.Scalars(f"t{n}")] == list(range(300)) for n in range(4))


def test_folders_that_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        SummaryWriter(tmp_path / "file")
    with pytest.raises(ValueError, match="log_dir='s3://bucket/x' is an address; give a folder"):
        SummaryWriter("s3://bucket/x")
    with pytest.raises(ValueError, match="filename_suffix='a/b' has a slash"):
        SummaryWriter(tmp_path, filename_suffix="a/b")
    with pytest.raises(ValueError, match="flush_secs=0"):
        SummaryWriter(tmp_path, flush_secs=0)
    monkeypatch.chdir(tmp_path)
    with SummaryWriter(comment="_x") as writer:
        assert writer.get_logdir().startswith("runs/")
        assert writer.get_logdir().endswith("_x")
    assert len(files(tmp_path / writer.get_logdir())) == 1


def test_pytorchs_paths_lead_here() -> None:
    from tritensor.utils.tensorboard.writer import SummaryWriter as here

    assert tt.utils.tensorboard.SummaryWriter is here is SummaryWriter


def test_it_needs_no_package_but_numpy(tmp_path: Path) -> None:
    """Neither tensorboard nor protobuf, Pillow or matplotlib."""
    body = (
        "import numpy\nw.add_scalar('a', 1.0)\nw.add_histogram('h', numpy.ones(3))\nw.add_image('i', numpy.ones((3, 4, 4)))\nw.close()\n"
        "bad = {'tensorboard', 'google.protobuf', 'PIL', 'matplotlib'} & set(sys.modules)\nassert not bad, bad\n"
        "sys.modules['PIL'] = None\n"
        "try:\n    w.add_video('v', numpy.ones((1, 2, 3, 4, 4)))\nexcept ImportError as error: print(error)"
    )
    done = in_child(body, tmp_path, env={**os.environ})
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "SummaryWriter.add_video: needs Pillow, which is not installed: pip install 'tritensor[vision]'"
