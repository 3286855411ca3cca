"""Loading a checkpoint: each rank assembles the tensors of its state from whatever parts were written."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from tritensor.autograd.node import version_of
from tritensor.distributed.backends.one_process import copy_into
from tritensor.distributed.checkpoint.boxes import Box, get_box
from tritensor.distributed.checkpoint.filesystem import FileSystemReader, choose_storage
from tritensor.distributed.checkpoint.metadata import Metadata
from tritensor.distributed.checkpoint.states import Stateful, decode_value, expand_stateful, flatten_state, set_entry
from tritensor.distributed.checkpoint.together import CheckpointRanks
from tritensor.ground.errors import CheckpointError
from tritensor.ops.array import from_host
from tritensor.ops.lazy_array import compute_now
from tritensor.tensor.core import Tensor

Piece = tuple[tuple[slice, ...], np.ndarray]  # where elements go in a tensor, and they themselves, on the mapped file


def load(
    state_dict: dict[str, Any], *, checkpoint_id: str | os.PathLike[str] | None = None, storage_reader: FileSystemReader | None = None,
    planner: Any = None, process_group: Any = None, no_dist: bool = False,
) -> None:  # fmt: skip
    """Read a checkpoint into a state: its tensors are written in place, other values replaced, what has load_state_dict() is given its state.

    The state says what is read: whole tensors, or parts, of as many ranks as there are now. Only the bytes that a rank needs are read.

    Args:
        state_dict: nested dicts like the ones that were saved, or some of their keys.
        checkpoint_id: the folder.
        storage_reader: a FileSystemReader, which knows a folder, in place of checkpoint_id or for it.
        process_group: the ranks; all of them where nothing is given, this process where there are no groups.
        no_dist: this process alone, whatever groups there are.

    Raises on all ranks, before anything is changed, CheckpointError: no whole checkpoint in the folder, a file that is missing or another one; a key
    that it has not; another type or shape; a pickled value where the reader does not allow it; what another rank failed with.
    """
    ranks = CheckpointRanks("load", process_group, no_dist)
    pieces: list[tuple[Tensor, list[Piece]]] = []
    values: list[tuple[tuple[Any, ...], Any]] = []
    states: dict[str, Any] = {}

    def look() -> None:
        reader = choose_storage("load", FileSystemReader, "storage_reader", checkpoint_id, storage_reader, planner)
        states.update(expand_stateful(state_dict))
        tensors, others, paths = flatten_state(states)
        metadata = reader.read_metadata()
        _check_state(metadata, tensors, others, str(reader.path))
        for key, t in tensors.items():
            pieces.append((t, _find_pieces(reader, key, get_box(t)[1], metadata)))
        for key in others:
            if not isinstance(others[key], dict) or others[key]:  # entries are put into an empty dict
                values.append((paths[key], decode_value(key, metadata.values[key], str(reader.path), reader.allow_pickle)))

    def read() -> None:
        for t, found in pieces:
            _write_pieces(t, found)
        for path, value in values:
            set_entry(states, path, value)
        for key, value in state_dict.items():
            # Modules and optimizers copy the values themselves; all else is put back into the caller's dict.
            if isinstance(value, Stateful) and not isinstance(value, Tensor):
                value.load_state_dict(states[key])
            else:
                state_dict[key] = states[key]

    # Two steps: no rank writes before all have found what they need.
    ranks.step(look)
    ranks.step(read)


def load_state_dict(
    state_dict: dict[str, Any], storage_reader: FileSystemReader, process_group: Any = None, coordinator_rank: int = 0, no_dist: bool = False,
    planner: Any = None,
) -> None:  # fmt: skip
    """load() under its older name; coordinator_rank is PyTorch's, all ranks read the metadata."""
    load(state_dict, storage_reader=storage_reader, planner=planner, process_group=process_group, no_dist=no_dist)


def _check_state(metadata: Metadata, tensors: dict[str, Tensor], values: dict[str, Any], path: str) -> None:
    missing = [k for k in tensors if k not in metadata.tensors] + [k for k in values if k not in metadata.values]
    if missing:
        # A key of the other kind gets a message of its own: "has no lr" would be wrong where it holds lr as a value.
        for key in missing:
            if key in metadata.tensors or key in metadata.values:
                there, here = ("tensor", "value") if key in metadata.tensors else ("value", "tensor")
                raise CheckpointError(
                    f"load: {key} is a {there} in {path} and a {here} in the state; give a state like the one that was saved"
                )
        held = sorted({*metadata.tensors, *metadata.values})
        raise CheckpointError(
            f"load: {path} has no {_format_keys(missing)}; it holds {_format_keys(held)}; give a state of keys that are there, all of them or some"
        )
    for key, t in tensors.items():
        stored, (shape, box) = metadata.tensors[key], get_box(t)
        if (stored.dtype, stored.shape) != (t.dtype.name, shape):
            raise CheckpointError(
                f"load: {key} is {stored.dtype} {stored.shape} in {path}, and {t.dtype.name} {shape} in the state; give a state like the one that was saved"
            )
        if not box.fits_in(shape):
            raise CheckpointError(
                f"load: {key} in the state is the part {box} of {shape}, which reaches out of it; correct its global_offset"
            )


def _format_keys(keys: list[str]) -> str:
    return (", ".join(keys[:5]) or "nothing") + f" and {len(keys) - 5} more" * (len(keys) > 5)


def _find_pieces(reader: FileSystemReader, key: str, wanted: Box, metadata: Metadata) -> list[Piece]:
    """The elements of a tensor's box, of all parts that hold some; they are read when they are looked at. Raises CheckpointError."""
    stored = metadata.tensors[key]
    found: list[Piece] = []
    came = 0
    for part in stored.parts:
        common = wanted.intersect(part.box)
        # Files that hold nothing of this rank's part are not opened at all.
        if common is not None:
            t = reader.tensor(part.file, part.name)
            if (t.dtype.name, tuple(t._array.shape)) != (stored.dtype, part.box.shape):
                raise CheckpointError(
                    f"load: {key} in {reader.path / part.file} is {t.dtype.name} {tuple(t._array.shape)}, and {stored.dtype} {part.box.shape} in the "
                    "metadata; the checkpoint is torn: save it again, or load another"
                )
            found.append((common.slices_in(wanted), t._array[common.slices_in(part.box)]))
            came += common.size
    # Parts do not overlap, as saving checks, so the sum tells whether there is a gap.
    if came != wanted.size:
        raise CheckpointError(
            f"load: the parts of {key} hold {came} of the {wanted.size} elements that are asked for; the checkpoint is torn: save it again, or load another"
        )
    return found


def _write_pieces(t: Tensor, pieces: list[Piece]) -> None:
    """Write a tensor: on the CPU its own memory, on a GPU by way of the host, one tensor at a time."""
    compute_now(t)
    host = t._array if isinstance(t._array, np.ndarray) else np.empty(t._array.shape, t._array.dtype)
    for place, values in pieces:
        host[place] = values
    # numpy cannot write to a GPU: one tensor at a time crosses, so that the host never holds the whole state.
    if host is not t._array:
        copy_into(t._array, from_host(host, t.device))
    version_of(t).bump("load")
