"""Loading: each rank puts together what it has a place for, of whatever parts were written."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from tritensor.array import from_host
from tritensor.autograd.node import version_of
from tritensor.distributed.backends.one_process import copy_into
from tritensor.distributed.checkpoint.boxes import box_of
from tritensor.distributed.checkpoint.metadata import Metadata, Stored
from tritensor.distributed.checkpoint.states import Stateful, flat, put, states_of, unplain
from tritensor.distributed.checkpoint.storage import FileSystemReader
from tritensor.distributed.checkpoint.together import Ranks
from tritensor.errors import ArgumentError, CheckpointError
from tritensor.tensor.core import Tensor


def load(
    state_dict: dict[str, Any], *, checkpoint_id: str | os.PathLike[str] | None = None, storage_reader: FileSystemReader | None = None,
    planner: Any = None, process_group: Any = None, no_dist: bool = False,
) -> None:  # fmt: skip
    """Read a checkpoint into a state: its tensors are written in place, other values replaced, what has load_state_dict() is given its state.

    The state says what is read: whole tensors, or parts, of as many ranks as there are now. Only the bytes that a rank needs are read.

    Raises on all ranks, before anything is changed, CheckpointError: no whole checkpoint in the folder; a key that it has not; another type or
    shape; what another rank failed with.
    """
    if planner is not None:
        raise NotImplementedError("load: planner is not in tritensor; leave it out")
    if (checkpoint_id is None) == (storage_reader is None):
        raise ArgumentError("load: give checkpoint_id, a folder, or storage_reader, one of the two")
    assert storage_reader is not None or checkpoint_id is not None
    reader = storage_reader if storage_reader is not None else FileSystemReader(checkpoint_id)  # type: ignore[arg-type]
    ranks = Ranks("load", process_group, no_dist)
    states = states_of(state_dict)

    def check() -> None:
        _check(reader.read_metadata(), states, str(reader.path))

    ranks.step(check)
    metadata = reader.read_metadata()
    tensors, values, paths = flat(states)

    def read() -> None:
        for key, t in tensors.items():
            _read(reader, key, t, metadata.tensors[key])
        for key in values:
            put(states, paths[key], unplain(metadata.values[key]))
        for key, value in state_dict.items():
            if isinstance(value, Stateful) and not isinstance(value, Tensor):
                value.load_state_dict(states[key])
            else:
                state_dict[key] = states[key]

    ranks.step(read)


def _check(metadata: Metadata, states: dict[str, Any], path: str) -> None:
    tensors, values, _ = flat(states)
    missing = [k for k in tensors if k not in metadata.tensors] + [k for k in values if k not in metadata.values]
    if missing:
        raise CheckpointError(
            f"load: {path} has no {', '.join(missing[:5])}"
            + f" and {len(missing) - 5} more" * (len(missing) > 5)
            + "; give a state of the same keys"
        )
    for key, t in tensors.items():
        stored, (shape, _) = metadata.tensors[key], box_of(t)
        if (stored.dtype, stored.shape) != (t.dtype.name, shape):
            raise CheckpointError(
                f"load: {key} is {stored.dtype} {stored.shape} in {path}, and {t.dtype.name} {shape} in the state; give a state like the one that was saved"
            )


def _read(reader: FileSystemReader, key: str, t: Tensor, stored: Stored) -> None:
    """Write the elements of a tensor's box, from all parts that hold some."""
    _, wanted = box_of(t)
    host = np.empty(wanted.shape, t.array.dtype)
    came = 0
    for part in stored.parts:
        common = wanted.common(part.box) if wanted.shape else wanted
        if common is not None:
            found = reader.tensor(part.file, part.name).array
            if found.shape != part.box.shape:
                raise CheckpointError(f"load: {key} in {part.file} is of shape {found.shape}, not {part.box.shape}; the checkpoint is torn")
            host[common.within(wanted)] = found[common.within(part.box)]
            came += common.size
    if came != wanted.size:
        raise CheckpointError(
            f"load: the parts of {key} hold {came} of the {wanted.size} elements that are asked for; the checkpoint is torn"
        )
    copy_into(t.array, host if isinstance(t.array, np.ndarray) else from_host(host, t.device))
    version_of(t).bump("load")
