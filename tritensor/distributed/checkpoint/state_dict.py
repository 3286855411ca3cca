"""States by the parameters' names, whatever a model is wrapped in and however many ranks there are: torch.distributed.checkpoint.state_dict."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tritensor.autograd.modes import no_grad
from tritensor.autograd.node import version_of
from tritensor.distributed.backends.one_process import copy_into
from tritensor.distributed.checkpoint.boxes import box_of, is_shard, part_like
from tritensor.distributed.collectives import broadcast
from tritensor.distributed.objects import broadcast_object_list
from tritensor.distributed.process_group import get_rank, get_world_size, is_initialized
from tritensor.errors import CheckpointError
from tritensor.nn.module import Module
from tritensor.optim.optimizer import Optimizer
from tritensor.tensor.core import Tensor

WRAPPERS = ("module.", "_fsdp_wrapped_module.", "_orig_mod.", "_checkpoint_wrapped_module.")  # parts of names that wrappers put in


@dataclass
class StateDictOptions:
    """How states are given and taken.

    Attributes:
        full_state_dict: whole tensors in place of parts.
        cpu_offload: on the CPU; with full_state_dict on rank 0 alone, elsewhere nothing.
        ignore_frozen_params: leave parameters out that take no gradient.
        strict: missing and unexpected keys raise.
        broadcast_from_rank0: rank 0 alone has the whole state that is set.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False


def plain_name(name: str) -> str:
    """A parameter's name without what wrappers put in."""
    for word in WRAPPERS:
        name = name[len(word) :] if name.startswith(word) else name
        name = name.replace("." + word, ".")
    return name


def _names(model: Module) -> dict[int, str]:
    return {id(p): plain_name(name) for name, p in model.named_parameters()}


def _given(value: Any, options: StateDictOptions) -> Any:
    if not isinstance(value, Tensor):
        return value
    if options.full_state_dict and is_shard(value):
        value = value.full_tensor()  # type: ignore[attr-defined]
    return value.detach().cpu() if options.cpu_offload else value


def _only_on_first(found: dict[str, Any], options: StateDictOptions) -> dict[str, Any]:
    """A whole state on the CPU is kept by rank 0 alone."""
    alone = options.full_state_dict and options.cpu_offload and is_initialized() and get_world_size() > 1
    return {} if alone and get_rank() else found


def get_model_state_dict(
    model: Module, *, submodules: set[Module] | None = None, options: StateDictOptions | None = None
) -> dict[str, Any]:  # fmt: skip
    """The model's state by plain names: parts of sharded parameters, or with options.full_state_dict whole tensors."""
    options = options or StateDictOptions()
    frozen = {n for n, p in model.named_parameters() if not p.requires_grad} if options.ignore_frozen_params else set()
    kept = None if submodules is None else {id(t) for m in submodules for t in (*m.parameters(), *m.buffers())}
    tensors = {id(t): n for n, t in (*model.named_parameters(), *model.named_buffers())}
    chosen = None if kept is None else {n for i, n in tensors.items() if i in kept}
    found = {}
    for name, value in model.state_dict().items():
        if name not in frozen and (chosen is None or name in chosen):
            found[plain_name(name)] = _given(value, options)
    return _only_on_first(found, options)


def set_model_state_dict(model: Module, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None) -> Any:
    """Give the model a state by plain names: parts as they are cut here, or whole tensors, of which each rank takes its part.

    Raises CheckpointError for other keys or shapes, before anything is changed.
    """
    options = options or StateDictOptions()
    given = _from_first(model_state_dict) if options.broadcast_from_rank0 else model_state_dict
    places = {plain_name(name): (name, value) for name, value in model.state_dict(keep_vars=True).items()}
    if options.strict and given.keys() != places.keys():
        missing, extra = sorted(places.keys() - given.keys()), sorted(given.keys() - places.keys())
        raise CheckpointError(f"set_model_state_dict: missing {missing}, unexpected {extra}; give a state of this model, or strict=False")
    named = {}
    for key in places.keys() & given.keys():
        name, place = places[key]
        named[name] = _part_for("set_model_state_dict", key, place, given[key])
    with no_grad():
        for name, value in named.items():
            place = places[plain_name(name)][1]
            if isinstance(place, Tensor) and isinstance(value, Tensor):
                place.detach().copy_(value)
    return model.load_state_dict({**model.state_dict(), **{n: v for n, v in named.items() if not isinstance(v, Tensor)}}, strict=False)


def _part_for(who: str, key: str, place: Any, value: Any) -> Any:
    """A value as its place takes it: the part of a whole tensor that lies there."""
    if not isinstance(value, Tensor) or not isinstance(place, Tensor):
        return value
    shape, box = box_of(place)
    theirs, other = box_of(value)
    if theirs != shape:
        raise CheckpointError(f"{who}: {key} has shape {theirs}, and {shape} here; give a state of this model")
    if other == box:
        return Tensor.wrap(value.array)
    if other.shape != theirs:
        raise CheckpointError(
            f"{who}: {key} is the part {other} of {theirs}, and {box} is needed here; load it by distributed.checkpoint.load"
        )
    return Tensor.wrap(value.array[box.within(other)])


def _from_first(state: dict[str, Any]) -> dict[str, Any]:
    """Rank 0's state on all ranks."""
    if not is_initialized() or get_world_size() == 1:
        return state
    told: list[Any] = [None]
    if get_rank() == 0:
        told = [{k: (v.dtype.name, tuple(v.shape)) if isinstance(v, Tensor) else ("value", v) for k, v in state.items()}]
    broadcast_object_list(told, src=0)
    found: dict[str, Any] = {}
    for key, (kind, what) in told[0].items():
        if kind == "value":
            found[key] = what
            continue
        t = state[key].detach().contiguous() if get_rank() == 0 else _empty(kind, what)
        broadcast(t, src=0)
        found[key] = t
    return found


def _empty(dtype: str, shape: tuple[int, ...]) -> Tensor:
    from tritensor import dtypes

    return Tensor.wrap(np.empty(shape, getattr(dtypes, dtype).numpy))


def _optimizers(optimizers: Optimizer | Iterable[Optimizer]) -> list[Optimizer]:
    return [optimizers] if isinstance(optimizers, Optimizer) else list(optimizers)


def _begin(optimizer: Optimizer) -> None:
    """Let an optimizer that has not stepped make its state: a step of size 0 by gradients of 0."""
    if optimizer.state or any(p.grad is not None for group in optimizer.param_groups for p in group["params"]):
        return
    rates = [group.get("lr") for group in optimizer.param_groups]
    for group in optimizer.param_groups:
        if "lr" in group:
            group["lr"] = 0.0 if not isinstance(group["lr"], Tensor) else group["lr"] * 0
        for p in group["params"]:
            if p.requires_grad:
                p.grad = part_like(p, p.detach() * 0) if is_shard(p) else p.detach() * 0
    optimizer.step()
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        if "lr" in group:
            group["lr"] = rate
    optimizer.zero_grad(set_to_none=True)


def get_optimizer_state_dict(
    model: Module, optimizers: Optimizer | Iterable[Optimizer], *, submodules: set[Module] | None = None, options: StateDictOptions | None = None
) -> dict[str, Any]:  # fmt: skip
    """The optimizers' states by the parameters' plain names; state of a sharded parameter's shape is the part that the parameter is."""
    options = options or StateDictOptions()
    names = _names(model)
    kept = None if submodules is None else {id(p) for m in submodules for p in m.parameters()}
    found: dict[str, Any] = {"state": {}, "param_groups": []}
    for optimizer in _optimizers(optimizers):
        _begin(optimizer)
        for group in optimizer.param_groups:
            params = [p for p in group["params"] if kept is None or id(p) in kept]
            for p in params:
                if id(p) not in names:
                    raise CheckpointError(
                        f"get_optimizer_state_dict: a parameter of shape {tuple(p.shape)} is not the model's; give the model that it is of"
                    )
                if p in optimizer.state:
                    found["state"][names[id(p)]] = {k: _given(_as_part(p, v), options) for k, v in optimizer.state[p].items()}
            settings = {k: v for k, v in group.items() if k not in ("params", "param_names")}
            found["param_groups"].append({**settings, "params": [names[id(p)] for p in params]})
    return _only_on_first(_flattened(found) if options.flatten_optimizer_state_dict else found, options)


def _as_part(p: Any, value: Any) -> Any:
    if isinstance(value, Tensor) and is_shard(p) and not is_shard(value) and value.array.shape == p.array.shape and value.ndim:
        return p.like(value.array) if hasattr(p, "like") else part_like(p, value)
    return value


def _flattened(found: dict[str, Any]) -> dict[str, Any]:
    flat = {f"state.{name}.{k}": v for name, state in found["state"].items() for k, v in state.items()}
    for group in found["param_groups"]:
        for name in group["params"]:
            flat.update({f"param_groups.{name}.{k}": v for k, v in group.items() if k != "params"})
    return flat


def set_optimizer_state_dict(
    model: Module, optimizers: Optimizer | Iterable[Optimizer], optim_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> None:  # fmt: skip
    """Give optimizers what get_optimizer_state_dict gave, of this or another number of ranks.

    Raises CheckpointError for parameters that the state has not, or of other shapes.
    """
    options = options or StateDictOptions()
    if options.broadcast_from_rank0 or "state" not in optim_state_dict:
        raise NotImplementedError(
            "set_optimizer_state_dict: broadcast_from_rank0 and flat states are not in tritensor; give all ranks what get_optimizer_state_dict gave"
        )
    names = _names(model)
    for optimizer in _optimizers(optimizers):
        _begin(optimizer)
        for group in optimizer.param_groups:
            mine = [names[id(p)] for p in group["params"]]
            theirs = next((g for g in optim_state_dict["param_groups"] if set(mine) <= set(g["params"])), None)
            if theirs is None:
                raise CheckpointError(
                    f"set_optimizer_state_dict: no group of the state holds {', '.join(mine[:5])}; give a state of these optimizers"
                )
            group.update({k: v for k, v in theirs.items() if k != "params"})
            for p, name in zip(group["params"], mine, strict=True):
                if name in optim_state_dict["state"]:
                    _set_state(optimizer, p, name, optim_state_dict["state"][name])


def _set_state(optimizer: Optimizer, p: Tensor, name: str, given: dict[str, Any]) -> None:
    state = optimizer.state[p]
    for key, value in given.items():
        place = state.get(key)
        if isinstance(place, Tensor) and isinstance(value, Tensor):
            part = _part_for("set_optimizer_state_dict", f"{name}.{key}", _as_part(p, place), value)
            if part.array is not place.array:
                copy_into(place.array, part.to(place.device).array)
                version_of(place).bump("set_optimizer_state_dict")
        else:
            state[key] = value


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
