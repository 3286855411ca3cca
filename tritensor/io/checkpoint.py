"""The functions save and load: a state dict, or any nest of values around tensors, in the safetensors format or in PyTorch's own.

`choose_format` says which format a file is written in; `load` goes by a file's content.

safetensors: a flat dict of tensors is a plain safetensors file, which every other reader understands; so is a state_dict. What the format
cannot say (an optimizer's numbers, its nesting, integer keys, an OrderedDict and its versions) stands as JSON in `__metadata__["tritensor"]`;
see structure.py. Objects that are no such values stand there as a pickle, which is read only where weights_only=False asks for it; see objects.py.
PyTorch's: see torch_format/. Its pickle is read by an unpickler that makes values alone (pickle_vm.py).
"""

from __future__ import annotations

import errno
import io
import os
import pickle
import warnings
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

from tritensor.ground.device import as_device
from tritensor.ground.errors import CheckpointError
from tritensor.ground.thread_state import run_waiting
from tritensor.io import objects, safetensors
from tritensor.io.atomic import atomic_write
from tritensor.io.structure import Packer, unpack
from tritensor.ops.lazy_array import at_once
from tritensor.tensor.core import Tensor

_VALUES, _PICKLE = "tritensor", "tritensor.pickle"  # keys of __metadata__
TORCH, LEGACY, SAFETENSORS = "torch", "torch-legacy", "safetensors"
_ENDINGS = (".pt", ".pth", ".bin", ".ckpt", ".tar", ".pkl", ".pickle")  # what PyTorch's users call their files; .pth.tar among them


def save(
    obj: Any, f: str | os.PathLike[str] | BinaryIO, pickle_module: Any = pickle, pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool | None = None, _disable_byteorder_record: bool = False, *, format: str | None = None,
) -> None:  # fmt: skip
    """Write tensors, and what stands around them, to a path or a binary file.

    A name that ends as PyTorch's users call their files (.pt, .pth, .bin, .ckpt, .tar, .pkl), and what has no name, such as a BytesIO, is
    written in PyTorch's format: torch.load(f, weights_only=True) reads it. Another name is written as safetensors. `format="torch"` and
    `format="safetensors"` say it outright, `format="torch-legacy"` or `_use_new_zipfile_serialization=False` asks for PyTorch's format before 1.6.

    Takes tensors on any device, None, bool, int, float, complex, str, bytes, numpy scalars, dtypes, devices, and nests of these in
    dict, OrderedDict, defaultdict (of a built-in type), Counter, list, tuple, named tuple, set, frozenset and Size: all come back in
    the type and order they had, with a state_dict's `_metadata`, and an object that stands in two places, or in itself, does so again.
    In PyTorch's format tensors that share memory share it again, with their strides; parameters stay parameters, requires_grad is kept, and so
    is the device. In safetensors only the values of tensors are written. In both a view is written without the rest of its base.
    A path is replaced whole or not at all, and keeps its mode; what cannot be replaced (a pipe, a device) is written to.
    Anything else that pickle takes (a whole module, argparse's options) comes back only by `load(f, weights_only=False)`: reading it runs
    what the file says, so save values, such as a state_dict, wherever you can. A whole module is written under tritensor's names: PyTorch reads
    its state_dict, not the module.

    Args:
        pickle_module: a module with a Pickler of its own, as cloudpickle, which takes functions and classes of the script. Such a file comes back by
            load(f, weights_only=False) alone, not in PyTorch, and each tensor holds its values by itself.
        pickle_protocol: of PyTorch's format, 2 to 5; PyTorch itself reads 2 everywhere.

    Raises:
        TypeError: what cannot be pickled either; it names the place.
        RuntimeError: PyTorch's format, and two tensors see the same memory as different types.
        OSError: the disk is full, or fails; it names the file, what was needed and what is free, and the old file is as it was.

    >>> tt.save({"weight": tt.ones(2), "epoch": 3}, "state.pt")
    >>> tt.load("state.pt")
    {'weight': tensor([1., 1.]), 'epoch': 3}
    """
    run_waiting()
    foreign = None if pickle_module is pickle else pickle_module
    if foreign is not None and not hasattr(foreign, "Pickler"):
        raise TypeError(
            f"save: pickle_module={getattr(foreign, '__name__', foreign)} has no Pickler; give a module with one, or leave it out"
        )
    if not isinstance(f, str | os.PathLike) and not hasattr(f, "write"):
        raise AttributeError(
            f"save: expected 'f' to be string, path, or a file-like object with a 'write' attribute, not a {type(f).__name__}"
        )
    if isinstance(f, io.TextIOBase):
        raise TypeError(f"save: {getattr(f, 'name', type(f).__name__)} is open for text; open it with 'wb'")
    kind = choose_format(f, format, _use_new_zipfile_serialization)
    write, nbytes = (
        _safetensors_writer(obj)
        if kind == SAFETENSORS and foreign is None
        else _torch_writer(obj, f, kind, pickle_protocol, not _disable_byteorder_record, foreign)
    )
    if isinstance(f, str | os.PathLike):
        with atomic_write(f, nbytes) as file:
            write(file)
    else:
        write(_UnbufferedFile(f) if isinstance(f, io.RawIOBase) else f)  # type: ignore[arg-type]
        if hasattr(f, "flush"):
            f.flush()  # as PyTorch does: programs read the file by its name while it is open


def choose_format(f: Any, format: str | None, zipped: bool | None) -> str:
    """The format of a file: this is the whole rule.

    1. `format` says it: "torch", "torch-legacy" or "safetensors".
    2. `_use_new_zipfile_serialization`: True is PyTorch's archive, False what it wrote before 1.6.
    3. A name that ends with .pt, .pth, .bin, .ckpt, .tar, .pkl or .pickle, of a path or of an open file, is PyTorch's archive.
    4. Another name is safetensors.
    5. What has no name (a BytesIO, a socket) is PyTorch's archive: whoever gets the bytes may be PyTorch, and what a name would decide, nobody else does.

    Raises ValueError for another `format`, and where 1 and 2 disagree.
    """
    if format is not None:
        if format not in (TORCH, LEGACY, SAFETENSORS):
            raise ValueError(
                f"save: format is {format!r}; give {TORCH!r}, {LEGACY!r}, {SAFETENSORS!r} or None, which goes by the file's name"
            )
        if zipped is not None and format != (TORCH if zipped else LEGACY):
            raise ValueError(f"save: format={format!r} and _use_new_zipfile_serialization={zipped} disagree; give one of them")
        return format
    if zipped is not None:
        return TORCH if zipped else LEGACY
    name = f if isinstance(f, str | os.PathLike) else getattr(f, "name", None)
    if not isinstance(name, str | os.PathLike):
        return TORCH
    return TORCH if str(os.fspath(name)).lower().endswith(_ENDINGS) else SAFETENSORS


class _UnbufferedFile:
    """An unbuffered file as one that takes all that it is given: its own write() may take a part."""

    def __init__(self, file: io.RawIOBase) -> None:
        self._file = file

    def write(self, data: Any) -> None:
        """Write all of it. Raises BlockingIOError for a file that does not wait, and has no room now."""
        rest = memoryview(data).cast("B")
        while rest.nbytes:
            taken = self._file.write(rest)
            if not taken:  # a file that does not wait returns None
                raise BlockingIOError(
                    errno.EAGAIN, f"save: the file takes nothing now; {rest.nbytes} bytes are left: open it so that it waits"
                )
            rest = rest[taken:]


def check_readable(obj: Any) -> None:
    """Raise TypeError, naming the place, for what `save` would take and `load` would not read again unless weights_only=False lets it run code."""
    try:
        Packer().pack(obj)
    except TypeError as no_value:
        try:
            objects.unpack(*objects.pack(obj), trusted=False)
        except (pickle.UnpicklingError, TypeError, AttributeError, pickle.PicklingError, RecursionError):
            raise no_value from None


def _safetensors_writer(obj: Any) -> tuple[Callable[[BinaryIO], None], int]:
    """(the function that writes an object as safetensors, bytes at the least)."""
    metadata = None  # a flat dict of tensors needs none: every other reader understands the file
    if type(obj) is dict and all(_is_plain_name(k) and isinstance(v, Tensor) for k, v in obj.items()):
        tensors = obj
    else:
        metadata, tensors = _pack(obj)
    return lambda file: safetensors.write(file, tensors, metadata), sum(t.nbytes for t in tensors.values())


def _torch_writer(obj: Any, f: Any, kind: str, protocol: int, byteorder: bool, foreign: Any) -> tuple[Callable[[BinaryIO], None], int]:
    """(the function that writes an object as PyTorch does, bytes)."""
    from tritensor.io.torch_format.writing import TorchFile, archive_name

    try:
        saved = TorchFile(obj, archive_name(f), protocol, kind != LEGACY, byteorder, foreign)
    except RecursionError:
        raise RecursionError("save: the object is nested too deeply for a pickle; format='safetensors' takes any depth") from None
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        try:
            Packer().pack(obj)  # only to name the place: pickle's error does not
        except TypeError as no_value:
            raise TypeError(f"{no_value}; and pickle cannot take it either ({type(error).__name__}: {error})") from error
        raise
    return saved.write, saved.nbytes


def load(
    f: str | os.PathLike[str] | BinaryIO, map_location: Any = None, pickle_module: Any = None, *, weights_only: bool | None = None,
    mmap: bool | None = None, **pickle_load_args: Any,
) -> Any:  # fmt: skip
    """Read what `save` or torch.save wrote, or any safetensors file (a dict of tensors): which of them it is, the content says.

    Args:
        f: a path, which is mapped into memory, or a binary file.
        map_location: where tensors go: a device or its name, a dict from locations to others, or a function `(storage, location) -> storage,
            tensor or None`, called once for each storage. None is where they were saved from; of a safetensors file the CPU.
        pickle_module: a module with an Unpickler that reads PyTorch's files instead of Python's own.
        weights_only: None and True read values, and refuse a file with other objects in it, but those of `serialization.add_safe_globals`; False
            revives them all, which runs code from the file: only for files that you trust.
        mmap: False reads a path into memory at once. Mapped memory, else, is read when it is used; writing to a tensor does not change the file.
        pickle_load_args: with weights_only=False, for the Unpickler (`encoding="latin1"`).

    Raises:
        CheckpointError: the file is torn, foreign, hostile, or its contents contradict each other; a device that it names is not there.
        ForbiddenGlobalError: (a CheckpointError, and a pickle.UnpicklingError) it holds more than values, and weights_only is True.
        FileNotFoundError: as open() does.

    >>> net = nn.Linear(3, 2)
    >>> tt.save(net.state_dict(), "net.safetensors")
    >>> net.load_state_dict(tt.load("net.safetensors", map_location="cpu"))
    <All keys matched successfully>
    """
    trusted = weights_only is False or (
        weights_only is None and pickle_module is not None
    )  # who names a pickler trusts the file, as in PyTorch
    if pickle_module is not None and not trusted:
        raise RuntimeError(
            "Can not safely load weights when explicit pickle_module is specified; give weights_only=False, if you trust the file"
        )
    if pickle_load_args and not trusted:
        warnings.warn("pickle_load_args only works if `weights_only=False`.", stacklevel=2)
    from tritensor.io import sources

    source = sources.open_source(f, mmap)
    try:
        kind = sources.recognise_format(source.view, source.label)
        if kind == "safetensors":
            return _load_safetensors(source, map_location, trusted)
        from tritensor.io.torch_format import reading

        if mmap and kind == "legacy":  # its storages are read into memory of their own
            raise CheckpointError(
                f"{source.label}: mmap can only be used with files saved with _use_new_zipfile_serialization=True; leave mmap out, or save it again"
            )
        r = reading.Reader(source, map_location, not trusted, pickle_module, pickle_load_args)
        with at_once():  # tensors are made as windows on memory that is there
            return reading.load_archive(r) if kind == "zip" else reading.load_legacy(r)
    finally:
        source.release()


def _load_safetensors(source: Any, map_location: Any, trusted: bool) -> Any:
    label = source.label
    entries, metadata, start = safetensors.parse(source.view, label)
    data = source.view[start:]
    map_tensor = _tensor_mapper(map_location, label)
    tensors = {name: map_tensor(safetensors.tensor_at(data, entry)) for name, entry in entries.items()}
    source.close()  # tensors on the CPU keep the mapping; the descriptor is no longer needed
    if _PICKLE in metadata:
        try:
            return objects.unpack(metadata[_PICKLE], tensors, trusted=trusted)
        except pickle.UnpicklingError as error:
            raise CheckpointError(
                f"{label}: holds objects that are no plain values, such as {error}, whose reading runs code from the file; if you trust it, "
                "load(f, weights_only=False), or serialization.add_safe_globals([its class]); else save a state_dict"
            ) from None
    if _VALUES not in metadata:
        return tensors
    try:
        return unpack(metadata[_VALUES], tensors)
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise CheckpointError(
            f"{label}: __metadata__[{_VALUES!r}] does not describe these tensors ({error}); the file is damaged: save it again"
        ) from None


def _pack(obj: Any) -> tuple[dict[str, str], dict[str, Tensor]]:
    """(metadata, tensors) of an object: values as JSON, or, where something else stands among them, a pickle of the whole."""
    packer = Packer()
    try:
        return {_VALUES: packer.pack(obj)}, packer.tensors
    except TypeError as no_value:
        try:
            text, tensors = objects.pack(obj)
        except (TypeError, AttributeError, pickle.PicklingError, RecursionError) as error:
            raise TypeError(f"{no_value}; and pickle cannot take it either ({type(error).__name__})") from error
    return {_PICKLE: text}, tensors


def _tensor_mapper(map_location: Any, label: str) -> Callable[[Tensor], Tensor]:
    """The function that puts a tensor of a safetensors file, read on the CPU, where map_location says."""
    if callable(map_location):
        from tritensor.io.device_mapping import StorageMapper

        mapper = StorageMapper(map_location, label)
        return lambda t: mapper.tensor(t, "cpu")
    where = as_device(map_location.get("cpu") if isinstance(map_location, Mapping) else map_location)
    return lambda t: t if where.type == "cpu" else t.to(where)


def _is_plain_name(name: Any) -> bool:
    """Whether the format can hold this name: UTF-8 (no lone surrogates), and not the one that it uses itself."""
    return type(name) is str and name != "__metadata__" and not any("\ud800" <= c <= "\udfff" for c in name)
