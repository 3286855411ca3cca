"""States by the parameters' names, whatever a model is wrapped in and however many ranks there are: torch.distributed.checkpoint.state_dict."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tritensor.autograd.modes import no_grad
from tritensor.autograd.node import version_of
from tritensor.distributed.backends.one_process import copy_into
from tritensor.distributed.checkpoint.boxes import as_part, get_box, is_shard, part_like
from tritensor.distributed.checkpoint.states import map_values
from tritensor.distributed.collectives import broadcast
from tritensor.distributed.data_parallel.module import DistributedDataParallel
from tritensor.distributed.fsdp.fully_sharded_data_parallel import FullyShardedDataParallel, StateDictType
from tritensor.distributed.fsdp.states import reshard_all
from tritensor.distributed.fsdp.wrappers import ActivationWrapper
from tritensor.distributed.objects import broadcast_object_list
from tritensor.distributed.optim.zero_redundancy_optimizer import ZeroRedundancyOptimizer
from tritensor.distributed.process_group import get_rank, get_world_size, is_initialized, require_group
from tritensor.ground import dtypes
from tritensor.ground.errors import CheckpointError
from tritensor.nn.module import Module
from tritensor.optim.optimizer import Optimizer
from tritensor.tensor.core import Tensor


@dataclass
class StateDictOptions:
    """Options of states that are read from or written to models and optimizers.

    Attributes:
        full_state_dict: whole tensors in place of parts.
        cpu_offload: on the CPU; with full_state_dict on rank 0 alone, elsewhere nothing.
        ignore_frozen_params: leave parameters out that take no gradient.
        strict: missing and unexpected keys raise.
        broadcast_from_rank0: rank 0 alone has the whole state that is set; the others may give {}.
        flatten_optimizer_state_dict: an optimizer's state as one dict, "state.0.weight.exp_avg", "param_groups.0.weight.lr".
        keep_submodule_prefixes: names are the whole model's where `submodules` are asked for; without it the submodules' own.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False


def strip_wrapper_names(model: Module, name: str) -> str:
    """The name of a parameter of a model without what DistributedDataParallel, FullyShardedDataParallel and checkpoint wrappers put in."""
    kept: list[str] = []
    part: Any = model
    for word in name.split("."):
        # State dicts leave the words of these two out.
        while isinstance(part, FullyShardedDataParallel | ActivationWrapper) and word not in part._modules:
            part = part.module
        is_wrapped = isinstance(part, DistributedDataParallel | FullyShardedDataParallel | ActivationWrapper) and word in part._modules
        if not is_wrapped:
            kept.append(word)
        part = getattr(part, "_modules", {}).get(word)
    return ".".join(kept)


def _read_model_state(model: Module, **settings: Any) -> dict[str, Any]:
    """The model's state, of parts, by plain names."""
    with FullyShardedDataParallel.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
        return {strip_wrapper_names(model, name): value for name, value in model.state_dict(**settings).items()}


def _name_parameters(model: Module) -> dict[int, str]:
    """The plain names of the parameters that optimizers step."""
    reshard_all(model)
    return {id(p): strip_wrapper_names(model, name) for name, p in model.named_parameters()}


def _find_name(who: str, names: dict[int, str], p: Tensor) -> str:
    # An optimizer of another model: its states would be saved under no name, or under that of another parameter.
    if id(p) not in names:
        raise CheckpointError(f"{who}: a parameter of shape {tuple(p.shape)} is not the model's; give the model that it is of")
    return names[id(p)]


def _export_value(value: Any, options: StateDictOptions) -> Any:
    if not isinstance(value, Tensor):
        return value
    # All ranks must come here, also those that drop the result: full_tensor() is a collective.
    if options.full_state_dict and is_shard(value):
        # Shards of other libraries say where they lie, and not which processes hold the rest.
        if not hasattr(value, "full_tensor"):
            raise CheckpointError(
                f"state_dict: a {type(value).__name__} of shape {tuple(value.shape)} is a part without full_tensor(); leave full_state_dict out"
            )
        value = value.full_tensor()
    if _is_left_empty(options):
        return None  # this one is dropped before the next is gathered
    return value.detach().cpu() if options.cpu_offload else value


def _is_left_empty(options: StateDictOptions) -> bool:
    """True on ranks other than 0, which alone keeps a whole state on the CPU."""
    return options.full_state_dict and options.cpu_offload and is_initialized() and get_world_size() > 1 and get_rank() > 0


def _keep_on_rank0(found: dict[str, Any], options: StateDictOptions) -> dict[str, Any]:
    # PyTorch's contract for full_state_dict with cpu_offload: rank 0 saves, and the others hold no second copy of the model.
    return {} if _is_left_empty(options) else found


def get_model_state_dict(
    model: Module, *, submodules: set[Module] | None = None, options: StateDictOptions | None = None
) -> dict[str, Any]:  # fmt: skip
    """The model's state by plain names: parts of sharded parameters, or with options.full_state_dict whole tensors."""
    options = options or StateDictOptions()
    state, names = _read_model_state(model), _name_parameters(model)
    frozen = {names[id(p)] for p in model.parameters() if not p.requires_grad} if options.ignore_frozen_params else set()
    named = {**names, **{id(b): strip_wrapper_names(model, n) for n, b in model.named_buffers()}}
    chosen = None if submodules is None else {named[id(t)] for m in submodules for t in (*m.parameters(), *m.buffers())}
    kept = {n: v for n, v in state.items() if n not in frozen and (chosen is None or n in chosen)}
    if chosen is not None and not options.keep_submodule_prefixes:
        paths = [f"{strip_wrapper_names(model, n)}." for n, m in model.named_modules() if n and m in (submodules or ())]
        kept = {n.removeprefix(next((p for p in paths if n.startswith(p)), "")): v for n, v in kept.items()}
    return _keep_on_rank0({n: _export_value(v, options) for n, v in kept.items()}, options)


def set_model_state_dict(model: Module, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None) -> Any:
    """Give the model a state by plain names: parts as they are cut here, or whole tensors, of which each rank takes its part.

    Returns the names that are missing and unexpected, which are none unless options.strict is False. Raises CheckpointError for other keys or
    shapes, before anything is changed.
    """
    options = options or StateDictOptions()
    given = _broadcast_state(model_state_dict) if options.broadcast_from_rank0 else model_state_dict
    places = _read_model_state(model, keep_vars=True)
    missing, extra = sorted(places.keys() - given.keys()), sorted(given.keys() - places.keys())
    # Before anything is copied, so that a model is never left half loaded.
    if options.strict and (missing or extra):
        raise CheckpointError(f"set_model_state_dict: missing {missing}, unexpected {extra}; give a state of this model, or strict=False")
    named = {key: _cut_part("set_model_state_dict", key, place, given[key]) for key, place in places.items() if key in given}
    with no_grad():
        for key, value in named.items():
            if isinstance(places[key], Tensor) and isinstance(value, Tensor):
                places[key].detach().copy_(value)
    with FullyShardedDataParallel.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
        whole = model.state_dict()
        others = {
            name: named[plain]
            for name in whole
            if not isinstance(named.get(plain := strip_wrapper_names(model, name), whole[name]), Tensor)
        }
        loaded = model.load_state_dict({**whole, **others}, strict=False)
    return type(loaded)(missing, extra)


def _cut_part(who: str, key: str, place: Any, value: Any) -> Any:
    """A value as its place takes it: the part of a whole tensor that lies there."""
    if not isinstance(value, Tensor) or not isinstance(place, Tensor):
        return value
    shape, box = get_box(place)
    theirs, other = get_box(value)
    if theirs != shape:
        raise CheckpointError(f"{who}: {key} has shape {theirs}, and {shape} here; give a state of this model")
    # Saved by as many ranks: the part is the one that is needed.
    if other == box:
        return Tensor.wrap(value._array)
    # Another rank's part: its values are not here, and only the files of a checkpoint have them.
    if other.shape != theirs:
        raise CheckpointError(
            f"{who}: {key} is the part {other} of {theirs}, and {box} is needed here; load it by distributed.checkpoint.load"
        )
    return Tensor.wrap(value._array[box.slices_in(other)])


class _TensorHeader(NamedTuple):
    """Type and shape of a tensor of rank 0's state, sent ahead of its values."""

    dtype: str
    shape: tuple[int, ...]


def _broadcast_state(state: dict[str, Any]) -> dict[str, Any]:
    # There is nobody to send to, and no group to send in.
    if not is_initialized() or get_world_size() == 1:
        return state
    order: list[Tensor] = []

    def send_header(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        order.append(value.detach().contiguous())
        return _TensorHeader(value.dtype.name, tuple(value.shape))

    headers = [map_values(state, send_header) if get_rank() == 0 else None]
    broadcast_object_list(headers, src=0)
    where = "cpu" if "cpu" in require_group("broadcast_from_rank0").backends else "cuda"
    tensors = iter(order)

    def receive_tensor(value: Any) -> Any:
        if not isinstance(value, _TensorHeader):
            return value
        t = next(tensors).to(where) if get_rank() == 0 else Tensor.wrap(np.empty(value.shape, getattr(dtypes, value.dtype).numpy)).to(where)
        broadcast(t, src=0)
        return t

    # A _TensorHeader is a tuple, of another class than those that are walked through.
    return map_values(headers[0], receive_tensor)  # type: ignore[no-any-return]


def _as_list(optimizers: Optimizer | Iterable[Optimizer]) -> list[Optimizer]:
    return [optimizers] if isinstance(optimizers, Optimizer) else list(optimizers)


def _get_local_optimizer(optimizer: Optimizer) -> Optimizer:
    """The optimizer that steps this process' parameters: the given one, or the one of its share."""
    return optimizer.optim if isinstance(optimizer, ZeroRedundancyOptimizer) else optimizer


def _init_optim_state(optimizer: Optimizer) -> None:
    """Let an optimizer that has not stepped make its state: a step of size 0 by gradients of 0, of this process' share, which communicates nothing."""
    optimizer = _get_local_optimizer(optimizer)
    # A state or gradients are there: a step now would use up gradients that the program is still to step by.
    if optimizer.state or any(p.grad is not None for group in optimizer.param_groups for p in group["params"]):
        return
    # Restored below: a step at rate 0 makes the states and leaves the parameters.
    rates = [group.get("lr") for group in optimizer.param_groups]
    try:
        for group in optimizer.param_groups:
            if "lr" in group:
                group["lr"] = 0.0 if not isinstance(group["lr"], Tensor) else group["lr"] * 0
            for p in group["params"]:
                if p.requires_grad:
                    p.grad = part_like(p, p.detach() * 0) if is_shard(p) else p.detach() * 0
        optimizer.step()
    finally:
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            if "lr" in group:
                group["lr"] = rate
        optimizer.zero_grad(set_to_none=True)


def get_optimizer_state_dict(
    model: Module, optimizers: Optimizer | Iterable[Optimizer], *, submodules: set[Module] | None = None, options: StateDictOptions | None = None
) -> dict[str, Any]:  # fmt: skip
    """The optimizers' states by the parameters' plain names; state of a sharded parameter's shape is the part that the parameter is."""
    options = options or StateDictOptions()
    names = _name_parameters(model)
    kept = None if submodules is None else {id(p) for m in submodules for p in m.parameters()}
    found: dict[str, Any] = {"state": {}, "param_groups": []}
    for optimizer in _as_list(optimizers):
        _init_optim_state(optimizer)
        for group in optimizer.param_groups:
            params = [p for p in group["params"] if kept is None or id(p) in kept]
            for p in params:
                name = _find_name("get_optimizer_state_dict", names, p)
                if p in optimizer.state:
                    found["state"][name] = {k: _export_value(as_part(p, v), options) for k, v in optimizer.state[p].items()}
            settings = {k: v for k, v in group.items() if k not in ("params", "param_names")}
            found["param_groups"].append({**settings, "params": [names[id(p)] for p in params]})
    return _keep_on_rank0(_flatten(found) if options.flatten_optimizer_state_dict else found, options)


def _flatten(found: dict[str, Any]) -> dict[str, Any]:
    flat = {f"state.{name}.{k}": v for name, state in found["state"].items() for k, v in state.items()}
    for group in found["param_groups"]:
        for name in group["params"]:
            flat.update({f"param_groups.{name}.{k}": v for k, v in group.items() if k != "params"})
    return flat


def _unflatten(flat: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """The nested state that `_flatten` made one dict of; settings stand with each parameter."""
    found: dict[str, Any] = {"state": {n: {} for n in names}, "param_groups": {n: {} for n in names}}
    longest = sorted(names, key=len, reverse=True)  # "a.b" before "a"
    for key, value in flat.items():
        kind, _, rest = key.partition(".")
        name = next((n for n in longest if rest.startswith(n + ".")), None)
        if kind not in found:
            raise CheckpointError(
                f"set_optimizer_state_dict: {key!r} begins neither with 'state.' nor 'param_groups.'; give an optimizer's state"
            )
        if name is not None:
            found[kind][name][rest[len(name) + 1 :]] = value
    groups = [{**settings, "params": [n]} for n, settings in found["param_groups"].items() if settings]
    return {"state": {n: v for n, v in found["state"].items() if v}, "param_groups": groups}


def set_optimizer_state_dict(
    model: Module, optimizers: Optimizer | Iterable[Optimizer], optim_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> None:  # fmt: skip
    """Give optimizers what get_optimizer_state_dict gave, nested or flat, of this or another number of ranks.

    Raises CheckpointError, before anything is changed, for parameters that the state has not (unless options.strict is False), or of other shapes.
    """
    options = options or StateDictOptions()
    given = _broadcast_state(optim_state_dict) if options.broadcast_from_rank0 else optim_state_dict
    names = _name_parameters(model)
    # Flat, as flatten_optimizer_state_dict has it.
    if "state" not in given or "param_groups" not in given:
        given = _unflatten(given, list(names.values()))
    changes: list[tuple[dict[str, Any], dict[str, Any]]] = []
    for optimizer in _as_list(optimizers):
        _init_optim_state(optimizer)
        here = {id(p) for group in _get_local_optimizer(optimizer).param_groups for p in group["params"]}
        for group in optimizer.param_groups:
            mine = [_find_name("set_optimizer_state_dict", names, p) for p in group["params"]]
            changes.append((group, _find_settings(mine, given["param_groups"])))
            for p, name in zip(group["params"], mine, strict=True):
                state, theirs = optimizer.state.get(p), given["state"].get(name)
                if theirs is not None and id(p) in here:
                    changes.append((optimizer.state[p], _cut_values(p, name, state or {}, theirs)))
                elif state and options.strict:
                    raise CheckpointError(
                        f"set_optimizer_state_dict: the state has nothing of {name}; it has {', '.join(list(given['state'])[:5]) or 'nothing'}; give a "
                        "state of these optimizers, or strict=False"
                    )
    for place, values in changes:
        for key, value in values.items():
            _set_value(place, key, value)


def _find_settings(mine: list[str], groups: list[dict[str, Any]]) -> dict[str, Any]:
    """A group's settings, of the group that holds its first parameter. Raises CheckpointError where none does."""
    if not mine:
        return {}
    theirs = next((g for g in groups if mine[0] in g["params"]), None)
    # Groups are found by their first parameter: their order may differ between programs.
    if theirs is None:
        raise CheckpointError(f"set_optimizer_state_dict: no group of the state holds {mine[0]}; give a state of these optimizers")
    return {k: v for k, v in theirs.items() if k != "params"}


def _cut_values(p: Tensor, name: str, state: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
    """A parameter's state as its places take it."""
    return {
        key: _cut_part("set_optimizer_state_dict", f"{name}.{key}", as_part(p, state[key]), value)
        if isinstance(state.get(key), Tensor)
        else value
        for key, value in theirs.items()
    }


def _set_value(state: dict[str, Any], key: str, value: Any) -> None:
    place = state.get(key)
    if not isinstance(place, Tensor) or not isinstance(value, Tensor):
        state[key] = value
    elif value._array is not place._array:
        # Copied into the optimizer's own memory, whose address captured CUDA graphs hold.
        copy_into(place._array, value.to(place.device, place.dtype)._array)
        version_of(place).bump("set_optimizer_state_dict")


def get_state_dict(
    model: Module, optimizers: Optimizer | Iterable[Optimizer], *, submodules: set[Module] | None = None, options: StateDictOptions | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:  # fmt: skip
    """(get_model_state_dict, get_optimizer_state_dict)."""
    return (
        get_model_state_dict(model, submodules=submodules, options=options),
        get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options),
    )


def set_state_dict(
    model: Module, optimizers: Optimizer | Iterable[Optimizer], *, model_state_dict: dict[str, Any], optim_state_dict: dict[str, Any],
    options: StateDictOptions | None = None,
) -> Any:  # fmt: skip
    """set_model_state_dict and set_optimizer_state_dict."""
    if optim_state_dict:
        set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)
