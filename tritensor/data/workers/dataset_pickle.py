"""Pickle of a DataLoader's dataset and functions, made once for all workers that are not forked.

Large arrays lie beside the pickle in one nameless file, which every worker maps as its own: they share the pages that none of them writes to.
Tensors move to shared memory, as everywhere in `tritensor.multiprocessing`.
"""

from __future__ import annotations

import io
import os
import pickle
import sys
from collections.abc import Callable
from multiprocessing import reduction
from multiprocessing.context import get_spawning_popen  # type: ignore[attr-defined]
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np

from tritensor.multiprocessing import reductions  # noqa: F401  (tells the pickler of tensors)
from tritensor.tensor.shared_memory import Mapping, reserve_and_map

_LARGE = 1 << 16  # bytes from which on an array lies beside the pickle
_ALIGNMENT = 64
Contents = tuple[Any, Callable[[Any], Any], Callable[[int], None] | None]  # dataset, collate_fn, worker_init_fn
_PART_NAMES = ("dataset", "collate_fn", "worker_init_fn")
_PICKLING_ERRORS = (pickle.PicklingError, AttributeError, TypeError, NotImplementedError, RecursionError, ImportError)


class CannotBeSent(pickle.PicklingError):
    """The dataset or a function cannot be sent to a new process; one that is forked has it already."""


class DatasetPickle:
    """A dataset, collate_fn and worker_init_fn on their way to workers; `open()` returns them, in the worker."""

    def __init__(self, contents: Contents) -> None:
        self.contents: Contents | None = contents
        self.names_main = False  # whether the pickle speaks of __main__, which a spawned worker then has to import
        self._file = -1
        self._layout: tuple[int, list[tuple[int, int]]] = (0, [])

    def __del__(self) -> None:
        if self._file >= 0:
            os.close(self._file)

    def __reduce__(self) -> Any:
        popen: Any = get_spawning_popen()
        if popen is None:
            raise RuntimeError("DataLoader: what workers are given is sent when they are started, and not otherwise")
        if self._file >= 0:
            return _receive, (reduction.DupFd(self._file), self._layout)
        passed_on = len(popen._fds)
        stream, buffers = self._pickle_contents()
        self.names_main = b"__main__" in stream
        total, spans = len(stream), []
        for buffer in buffers:
            first = -(-total // _ALIGNMENT) * _ALIGNMENT
            spans.append((first, buffer.nbytes))
            total = first + buffer.nbytes
        (file, mapping), layout = reserve_and_map(total), (len(stream), spans)
        there = np.asarray(mapping)
        there[: len(stream)] = np.frombuffer(stream, np.uint8)
        for (first, nbytes), buffer in zip(spans, buffers, strict=True):
            there[first : first + nbytes] = np.frombuffer(buffer, np.uint8)
        if len(popen._fds) == passed_on:  # nothing in it is for this worker alone: the next ones get the same
            self._file, self._layout = file, layout
            return _receive, (reduction.DupFd(file), layout)
        popen._tritensor_files = [*getattr(popen, "_tritensor_files", []), _OwnedDescriptor(file)]  # until it is under way
        return _receive, (reduction.DupFd(file), layout)

    def _pickle_contents(self) -> tuple[bytes, list[memoryview]]:
        buffers: list[memoryview] = []

        def keep_in_band(buffer: pickle.PickleBuffer) -> bool:
            memory = buffer.raw()
            if memory.nbytes < _LARGE:
                return True
            buffers.append(memory)
            return False

        file = io.BytesIO()
        try:
            ForkingPickler(file, 5, True, keep_in_band).dump(self.contents)
        except _PICKLING_ERRORS as error:
            assert self.contents is not None
            raise CannotBeSent(_describe_failure(self.contents, error)) from error
        return file.getvalue(), buffers

    def open(self) -> Contents:
        """The contents. Raises what unpickling raises."""
        if self.contents is None:
            nbytes, spans = self._layout
            total = spans[-1][0] + spans[-1][1] if spans else nbytes
            there = np.asarray(Mapping(self._file, total, private=True))
            self.contents = pickle.loads(there[:nbytes].data, buffers=[there[first : first + n] for first, n in spans])
            os.close(self._file)
            self._file = -1
        return self.contents


class _OwnedDescriptor:
    """A descriptor that is closed with this object."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def __del__(self) -> None:
        os.close(self.descriptor)


def _receive(file: Any, layout: tuple[int, list[tuple[int, int]]]) -> DatasetPickle:
    dataset_pickle = DatasetPickle.__new__(DatasetPickle)
    dataset_pickle.contents, dataset_pickle.names_main, dataset_pickle._layout = None, False, layout
    dataset_pickle._file = file.detach()
    return dataset_pickle


def _describe_failure(contents: Contents, error: Exception) -> str:
    """The message for a part that cannot be pickled: its name, why, and what can be done."""
    guilty, reason = "what they are given", error
    for name, part in zip(_PART_NAMES, contents, strict=True):
        error_of_part = _pickling_error(part)
        if error_of_part is None:
            continue
        guilty, reason = name, error_of_part
        inside = [(key, _pickling_error(value)) for key, value in getattr(part, "__dict__", {}).items()]
        if found := [(key, why) for key, why in inside if why is not None]:
            guilty, reason = f"dataset.{found[0][0]}" if name == "dataset" else f"{name}.{found[0][0]}", found[0][1]
        break
    return (
        f"DataLoader: workers cannot be given {guilty}: {type(reason).__name__}: {reason}. Workers are new processes, and get what can be pickled: "
        "functions and classes that stand in a module, not lambdas or what a function defines, nor open files, locks and generators. Define it at the "
        "top of the file, open files in worker_init_fn or at the first __getitem__; or use multiprocessing_context='fork', which pickles nothing"
    )


def _pickling_error(part: Any) -> Exception | None:
    try:
        ForkingPickler(io.BytesIO(), 5).dump(part)
    except _PICKLING_ERRORS as error:
        return error
    except RuntimeError:  # what can only be sent to a process that is being started
        return None
    return None


def main_is_a_file() -> bool:
    """Whether a new process can import the program."""
    main: Any = sys.modules.get("__main__")
    return os.path.isfile(getattr(main, "__file__", None) or "") or getattr(main, "__spec__", None) is not None
