"""Thread that copies the next batches to pinned memory while the program computes."""

from __future__ import annotations

import os
import queue
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from tritensor.data.iterators import MultiProcessIterator

_QUEUE_LENGTH = 2  # pinned batches that wait
_BATCH, _ERROR, _END = "batch", "error", "end"


class PinnedIterator(MultiProcessIterator):
    """The batches of an iterator, pinned; an error of it, or of pinning, is raised in the batch's place."""

    def __init__(self, source: Any, pin: Callable[[Any], Any]) -> None:
        self._source = source
        self._ready: queue.Queue[tuple[str, Any]] = queue.Queue(_QUEUE_LENGTH)
        self._stop = threading.Event()
        self._done, self._process = False, os.getpid()
        self._thread = threading.Thread(target=_run_thread, args=(source, pin, self._ready, self._stop), daemon=True, name="tritensor-pin")
        self._finalizer = weakref.finalize(self, _end_thread, self._stop, self._ready, self._thread, source, self._process)
        self._thread.start()

    def __iter__(self) -> PinnedIterator:
        return self

    def __len__(self) -> int:
        return len(self._source)

    def __next__(self) -> Any:
        if self._done:
            raise StopIteration
        if self._process != os.getpid():  # a forked copy has no such thread; the source says so
            return next(self._source)
        kind, value = self._ready.get()
        if kind == _BATCH:
            return value
        if kind == _END:
            self.close()
            raise StopIteration
        try:
            raise value
        finally:
            del value  # else this frame and the error hold one another, and with them the iterator

    def close(self) -> None:
        """End the thread and the iterator."""
        self._done = True
        self._finalizer()


def _run_thread(source: Iterator[Any], pin: Callable[[Any], Any], ready: queue.Queue[tuple[str, Any]], stop: threading.Event) -> None:
    """Pin batches until the iterator ends, or its reader has gone."""
    while not stop.is_set():
        try:
            item = _BATCH, pin(next(source))
        except StopIteration:
            item = _END, None
        except BaseException as error:  # raised where the program asks for the batch
            item = _ERROR, error
        while not stop.is_set():
            try:
                ready.put(item, timeout=0.5)
                break
            except queue.Full:
                continue
        if item[0] == _END:
            return
        del item


def _end_thread(stop: threading.Event, ready: queue.Queue[Any], thread: threading.Thread, source: Any, process: int) -> None:
    """Let the thread go after the batch that it waits for, and end the iterator."""
    if process != os.getpid():  # a forked copy: the thread is not there, and may have held the queue's lock
        return
    stop.set()
    while not ready.empty():
        ready.get_nowait()
    if thread is not threading.current_thread() and thread.is_alive():
        source.interrupt()
        thread.join(5.0)
    source.close()
