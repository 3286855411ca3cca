"""Checkpoints of several ranks as the one file that save() writes, and back: two functions, and `python -m` of this module."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from tritensor.distributed.checkpoint.filesystem import METADATA, FileSystemReader
from tritensor.distributed.checkpoint.state_dict_loader import load
from tritensor.distributed.checkpoint.state_dict_saver import save
from tritensor.distributed.checkpoint.states import insert_entry
from tritensor.ground import dtypes
from tritensor.ground.errors import CheckpointError
from tritensor.io import checkpoint as one_file
from tritensor.tensor.core import Tensor


def dcp_to_torch_save(dcp_checkpoint_dir: str | os.PathLike[str], torch_save_path: str | os.PathLike[str]) -> None:
    """Write the whole state of a checkpoint's folder, on this process alone, to a file for load().

    Raises CheckpointError: no whole checkpoint in the folder, pickled values in it, or one of a version that did not note where values stood.
    """
    metadata = FileSystemReader(dcp_checkpoint_dir).read_metadata()
    flat: dict[str, Any] = {
        key: Tensor.wrap(np.empty(stored.shape, getattr(dtypes, stored.dtype).numpy)) for key, stored in metadata.tensors.items()
    }
    flat.update(dict.fromkeys(metadata.values))
    lost = [key for key in flat if key not in metadata.steps]
    # Dotted keys alone do not tell a list's index from a dict's key.
    if lost:
        raise CheckpointError(
            f"dcp_to_torch_save: {METADATA} in {dcp_checkpoint_dir} does not say where {lost[0]} stood in the state, an earlier tritensor wrote it; "
            "load it into a state and save that anew"
        )
    load(flat, checkpoint_id=dcp_checkpoint_dir, no_dist=True)
    state: dict[Any, Any] = {}
    for key, value in flat.items():
        insert_entry(state, metadata.steps[key], value)
    one_file.save(state, torch_save_path)


def torch_save_to_dcp(torch_save_path: str | os.PathLike[str], dcp_checkpoint_dir: str | os.PathLike[str]) -> None:
    """Write the state that save() wrote to a file, on this process alone, to a folder that any number of ranks loads."""
    save(one_file.load(torch_save_path, map_location="cpu"), checkpoint_id=dcp_checkpoint_dir, no_dist=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """The command: a mode, what is read, what is written."""
    modes = {"dcp_to_torch": dcp_to_torch_save, "torch_to_dcp": torch_save_to_dcp}
    parser = argparse.ArgumentParser(prog="python -m tritensor.distributed.checkpoint.format_utils", description=__doc__)
    parser.add_argument("mode", choices=sorted(modes))
    parser.add_argument("src", help="the checkpoint that is read")
    parser.add_argument("dst", help="the checkpoint that is written")
    given = parser.parse_args(arguments)
    modes[given.mode](given.src, given.dst)


if __name__ == "__main__":
    main()
