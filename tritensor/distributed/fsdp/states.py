"""State dicts of sharded modules: of shards, which is what state_dict gives, and of whole parameters; either can be loaded."""

from __future__ import annotations

from typing import Any

from tritensor.distributed.fsdp.module import FSDPModule, find_sharded
from tritensor.distributed.fsdp.sharded_parameter import Sharded
from tritensor.ground.errors import ArgumentError
from tritensor.nn import state as states
from tritensor.tensor.core import Tensor


def reshard_all(module: Any) -> None:
    """Shards into their places, also where a forward has left whole parameters there: state dicts are made of them, and optimizers step them."""
    for part in find_sharded(module):
        part.reshard()


def cut_full_values(
    module: FSDPModule, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any], strict: bool, missing: Any, unexpected: Any, errors: Any
) -> None:  # fmt: skip
    """load_state_dict comes to a sharded module: of values that are whole this process' rows are taken. Raises ValueError for assign=True.

    Parts of other rows, and whole values of another shape that happens to be the part's, are told as errors of load_state_dict.
    """
    # A tensor put in a shard's place knows no whole, and lies outside of the flat memory that is gathered.
    if local_metadata.get("assign_to_params_buffers"):
        raise ArgumentError("load_state_dict: assign=True would put other tensors in the place of shards; leave it out, values are copied")
    module.reshard()
    names = {id(part): path for path, part in module.named_modules(remove_duplicate=False)}  # type: ignore[attr-defined]
    for m in module._sharding.group.members:
        for part, name in m.holders:
            path = names.get(id(part))
            key = prefix + (f"{path}.{name}" if path else name)
            given = None if path is None else state_dict.get(key)
            if not isinstance(given, Tensor):
                continue
            whole = tuple(getattr(given, "global_shape", given.shape))
            start = getattr(given, "global_offset", None)
            # Also a whole value whose shape is by chance the part's: copy_ would take it without an error.
            if whole != m.shape:
                # Other shapes are refused by load_state_dict itself.
                if given.shape == m.shard.shape:
                    errors.append(
                        f"size mismatch for {key}: copying a param with shape {whole} from checkpoint, the shape in current model is {m.shape}."
                    )
            elif start is None:
                if not module._sharding.group.summoned and m.shape != tuple(m.shard.shape):
                    state_dict[key] = given[m.start : m.start + m.rows]
            elif (start[0], given.shape[0]) != (m.start, m.rows):
                errors.append(
                    f"{key} has the {given.shape[0]} rows from {start[0]} of {whole}, and this process keeps the {m.rows} from {m.start}; load it on the "
                    "process that saved it, or give whole values"
                )


def full_state_dict(module: Any, *, cpu_offload: bool = False, rank0_only: bool = False) -> dict[str, Any]:
    """state_dict() with whole parameters, which all processes of the model must ask for.

    Args:
        cpu_offload: put the values on the CPU.
        rank0_only: only process 0 gets them; the others an empty dict.
    """
    found = module.state_dict()
    whole = states.new_state_dict()
    whole._metadata = found._metadata
    for key, value in found.items():
        keeps = True
        if isinstance(value, Sharded):
            keeps = not rank0_only or value.process_group is None or value.process_group.rank() == 0
            value = value.full_tensor()
        if keeps and isinstance(value, Tensor) and cpu_offload:
            value = value.cpu()
        if keeps:
            whole[key] = value
    return whole  # type: ignore[no-any-return]
