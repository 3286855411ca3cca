"""State dicts of sharded modules and of their optimizers, of shards or of whole values; either can be loaded."""

from __future__ import annotations

from typing import Any

from tritensor.distributed.fsdp.module import FSDPModule, find_sharded
from tritensor.distributed.fsdp.sharded_parameter import Sharded
from tritensor.distributed.fsdp.wrappers import _CHECKPOINT_PREFIX
from tritensor.distributed.objects import broadcast_object_list
from tritensor.distributed.process_group import get_rank, is_initialized
from tritensor.ground.errors import ArgumentError, CheckpointError
from tritensor.nn import state as states
from tritensor.nn.module import Module
from tritensor.optim.optimizer import Optimizer
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


INNER = "_fsdp_wrapped_module"  # under which a wrapper holds its module, and which state dicts leave out
WHO = "optim_state_dict_to_load"


def _name_parameters(model: Module) -> dict[int, str]:
    """The names, without those of wrappers, of the parameters that optimizers step."""
    reshard_all(model)
    return {id(p): name.replace(INNER + ".", "").replace(_CHECKPOINT_PREFIX, "") for name, p in model.named_parameters()}


def _find_names(names: dict[int, str], group: dict[str, Any]) -> list[str]:
    for p in group["params"]:
        if id(p) not in names:
            raise CheckpointError(
                f"optim_state_dict: a parameter of shape {tuple(p.shape)} is not the model's; give the model that the optimizer is of"
            )
    return [names[id(p)] for p in group["params"]]


def export_state(model: Module, optimizer: Optimizer, whole: bool, offload: bool, rank0_only: bool) -> dict[str, Any]:
    """{"state": by the parameters' names, "param_groups"}; with rank0_only the other ranks get {}, and all call this."""
    names = _name_parameters(model)
    state, groups = {}, []
    drops = rank0_only and is_initialized() and get_rank() > 0  # each parameter's state before the next one's is gathered
    for group in optimizer.param_groups:
        mine = _find_names(names, group)
        groups.append({**{k: v for k, v in group.items() if k not in ("params", "param_names")}, "params": mine})
        for name, p in zip(mine, group["params"], strict=True):
            if p in optimizer.state:
                given = {k: _export_value(p, v, whole, offload) for k, v in optimizer.state[p].items()}
                # full_tensor() above is a collective, so ranks that keep nothing take part in it, too.
                if not drops:
                    state[name] = given
    if drops:
        return {}
    return {"state": state, "param_groups": groups}


def _export_value(p: Tensor, value: Any, whole: bool, offload: bool) -> Any:
    """Values of a part's shape are the parts of a whole."""
    if not isinstance(value, Tensor):
        return value
    if isinstance(p, Sharded):
        value = p.as_part(value)
    if isinstance(value, Sharded) and whole:
        value = value.full_tensor()
    return value.detach().cpu() if offload else value.detach()


def import_state(model: Module, optimizer: Optimizer, given: dict[str, Any] | None, from_rank0: bool) -> dict[str, Any]:
    """The state that `export_state` gave, as optimizer.load_state_dict takes it: by the parameters' numbers, of whole tensors this process' parts.

    Raises CheckpointError for another model's state.
    """
    # Rank 0 alone has read the file.
    if from_rank0 and is_initialized():
        told = [given if get_rank() == 0 else None]
        broadcast_object_list(told, src=0)
        (given,) = told
    if not given or not {"state", "param_groups"} <= given.keys():
        raise CheckpointError(
            f"{WHO}: the state has no 'state' and 'param_groups'; give what optim_state_dict or full_optim_state_dict gave"
        )
    names = _name_parameters(model)
    state: dict[int, dict[str, Any]] = {}
    groups: list[dict[str, Any]] = []
    for group, held in zip(optimizer.param_groups, optimizer.state_dict()["param_groups"], strict=True):
        mine = _find_names(names, group)
        # By its first parameter: groups may stand in another order.
        theirs = next((g for g in given["param_groups"] if mine and mine[0] in g["params"]), None)
        if mine and theirs is None:
            raise CheckpointError(f"{WHO}: no group of the state holds {mine[0]}; give the state of such an optimizer")
        groups.append({**held, **(theirs or {}), "params": held["params"]})
        for number, name, p in zip(held["params"], mine, group["params"], strict=True):
            if name in given["state"]:
                state[number] = {k: _cut_value(f"{name}.{k}", p, v) for k, v in given["state"][name].items()}
    return {"state": state, "param_groups": groups}


def _cut_value(key: str, p: Tensor, value: Any) -> Any:
    """Of a value of the parameter's whole shape the part that the parameter is; others (a step) are each process' own."""
    if not isinstance(value, Tensor) or not isinstance(p, Sharded):
        return value
    if isinstance(value, Sharded):
        if (value.global_shape, value.global_offset, value._array.shape) != (p.global_shape, p.global_offset, p._array.shape):
            raise CheckpointError(
                f"{WHO}: {key} is a part of {tuple(value.global_shape)} from {value.global_offset}, and one of {tuple(p.global_shape)} from "
                f"{p.global_offset} is needed here; load it by distributed.checkpoint.load"
            )
        return value.to_local()
    if tuple(value.shape) != tuple(p.global_shape):
        # Step counters have no dimensions and are the same on all processes.
        if value.ndim:
            raise CheckpointError(
                f"{WHO}: {key} has shape {tuple(value.shape)}, the parameter {tuple(p.global_shape)}; give this model's state"
            )
        return value
    start = p.global_offset[0]
    return value.detach()[start : start + p._array.shape[0]]
