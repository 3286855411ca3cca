"""fully_shard: gives every process a part of a module's parameters, gradients and optimizer states; which optimizers may step parts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tritensor.distributed.fsdp.flat import Member
from tritensor.distributed.fsdp.group import ParameterGroup, Ranks
from tritensor.distributed.fsdp.module import FSDPModule, Sharding, cannot_reshard, check_resharding
from tritensor.distributed.fsdp.policies import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy
from tritensor.distributed.fsdp.sharded_parameter import Sharded
from tritensor.distributed.fsdp.states import cut_full_values, reshard_all
from tritensor.distributed.process_group import ProcessGroup, require_group
from tritensor.ground.errors import ArgumentError
from tritensor.ground.process import locks
from tritensor.nn.container import ModuleDict, ModuleList
from tritensor.nn.module import Module
from tritensor.nn.parameter import Parameter, is_lazy
from tritensor.optim.hooks import register_optimizer_step_pre_hook
from tritensor.optim.optimizers.adafactor import Adafactor
from tritensor.optim.optimizers.lbfgs import LBFGS
from tritensor.optim.optimizers.muon import Muon

_WHOLE = (Adafactor, LBFGS, Muon)
_registering = locks.lock()
_watched: list[Any] = []  # the hook, once it is there


def register_step_check() -> None:
    """From now on each step is looked at, of optimizers that are made of shards later."""
    with _registering:
        if not _watched:
            _watched.append(register_optimizer_step_pre_hook(refuse_shards))


def refuse_shards(optimizer: Any, args: Any, kwargs: Any) -> None:
    """Raise NotImplementedError before an optimizer that mixes the elements of a parameter steps shards, of which it would see some rows."""
    # The hook sees the steps of all optimizers in the process.
    if not isinstance(optimizer, _WHOLE):
        return
    for group in optimizer.param_groups:
        for p in group["params"]:
            # Of one process the shard is the whole parameter.
            if isinstance(p, Sharded) and p.process_group is not None and p.process_group.size() > 1:
                name = type(optimizer).__name__
                raise NotImplementedError(
                    f"{name}.step: a parameter of {tuple(p.global_shape)} is a shard, rows {p.global_offset[0]} to "
                    f"{p.global_offset[0] + p._array.shape[0]} on this process, and {name} computes with whole ones; take an optimizer that treats each "
                    "element by itself (AdamW, SGD), or DistributedDataParallel with ZeroRedundancyOptimizer"
                )


_OWN_TYPES, _STAYS = MixedPrecisionPolicy(), OffloadPolicy()
_GIVEN_AWAY = "_sharded_in"  # attribute of a parameter that a fully_shard has taken: where


def fully_shard(
    module: Any, *, mesh: Any = None, reshard_after_forward: bool | int | None = None, shard_placement_fn: Any = None,
    mp_policy: MixedPrecisionPolicy = _OWN_TYPES, offload_policy: OffloadPolicy = _STAYS,
    ignored_params: set[Parameter] | None = None, dp_mesh_dims: Any = None,
) -> Any:  # fmt: skip
    """Share a module's parameters out among the processes, in place; returns the module, which is an FSDPModule from now on.

    Call it on parts first (the blocks of a transformer) and then on the whole: each call makes one group of the parameters that no call below
    has taken. Between uses every process holds its rows of each parameter, a ShardedParameter, and optimizers made afterwards step those, as long as
    they treat each element by itself (Adafactor, LBFGS and Muon do not, and refuse). The
    group is gathered before forward and again before its backward, after which gradients are averaged and cut into rows.

    Args:
        module: a module, or a list of modules that make one group: the first that is called gathers it, and when all were called it is given back.
        mesh: one dimension of processes; of two, parameters are shared out along the second and the same along the first. None: all processes.
        reshard_after_forward: free the whole parameters between forward and backward. None: not those of the root.
        mp_policy: types to compute and to reduce in.
        ignored_params: parameters that stay as they are.

    Raises:
        ValueError: no process group; a container without a forward; a scalar parameter, or one that another group has taken already.
        TypeError: a module or a mesh that is none.
        NotImplementedError: what PyTorch has and is not built, by name; reshard_after_forward on a GPU.
        AssertionError: a module that is sharded already.
    """
    for name, given in (("shard_placement_fn", shard_placement_fn), ("dp_mesh_dims", dp_mesh_dims)):
        if given is not None:
            raise NotImplementedError(
                f"fully_shard: {name} is not in tritensor; leave it out: parameters are cut along their first dimension"
            )
    if isinstance(offload_policy, CPUOffloadPolicy):
        raise NotImplementedError(
            "fully_shard: CPUOffloadPolicy is not in tritensor; leave offload_policy out, shards stay on their device"
        )
    after_forward = check_resharding(reshard_after_forward)
    roots = list(module) if isinstance(module, list | tuple) else [module]
    for root in roots:
        _check_module(root)
    ranks = _make_ranks(mesh)
    return shard_group(module, roots, ranks, mesh, after_forward, mp_policy, ignored_params or set())


def shard_group(
    module: Any, roots: list[Module], ranks: Ranks, mesh: Any, after_forward: bool | None, policy: MixedPrecisionPolicy,
    ignored: Iterable[Any],
) -> Any:  # fmt: skip
    """fully_shard of checked arguments, among the processes of `ranks`."""
    register_step_check()
    name = " and ".join(type(root).__name__ for root in roots)
    group = ParameterGroup(name, _make_members(roots, ranks.shard, mesh, {id(p) for p in ignored}, bool(after_forward)), ranks, policy)
    sharding = Sharding(roots[0], group, after_forward, policy)
    turns = Turns(sharding, roots)
    for root in roots:
        _attach(root, sharding, turns)
    return module


class Turns:
    """The modules of a group that are yet to be called: the first that is, whichever it is, begins the group's forward, and the last ends it."""

    def __init__(self, sharding: Sharding, roots: list[Module]) -> None:
        self._sharding, self._all = sharding, {id(root) for root in roots}
        self._left: set[int] = set()

    def before(self, module: Module, args: Any, kwargs: Any) -> Any:
        """A module's forward begins."""
        # A later module of a list whose first was called: the group is whole already.
        if id(module) in self._left and self._left != self._all and self._sharding.group.is_whole:
            return None
        self._left = set(self._all)  # also where an earlier forward came to an error
        return self._sharding.before(args, kwargs)

    def after(self, module: Module, args: Any, output: Any) -> Any:
        """A module's forward has ended."""
        self._left.discard(id(module))
        return output if self._left else self._sharding.after(output)


def _check_module(module: Any) -> None:
    if not isinstance(module, Module):
        raise TypeError(f"fully_shard: module is {type(module).__name__}; give an nn.Module, or a list of them")
    if isinstance(module, FSDPModule):
        raise AssertionError(
            f"fully_shard has already been applied to the following module: {module!r}; each distributed API is applied to a module once"
        )
    if isinstance(module, ModuleList | ModuleDict):
        raise ArgumentError(
            f"fully_shard does not support containers that do not implement forward: {type(module).__name__}; shard what it holds"
        )


def _make_ranks(mesh: Any) -> Ranks:
    if mesh is None:
        return Ranks(require_group("fully_shard"))
    if not hasattr(mesh, "get_group"):
        raise TypeError(f"fully_shard: mesh is {mesh!r}; give a DeviceMesh, as init_device_mesh makes it, or None for all processes")
    if mesh.ndim == 1:
        return Ranks(require_group("fully_shard", mesh.get_group()))
    # PyTorch's order: (replicate, shard).
    if mesh.ndim == 2:
        return Ranks(require_group("fully_shard", mesh.get_group(1)), require_group("fully_shard", mesh.get_group(0)))
    raise ArgumentError(f"fully_shard: a mesh of {mesh.ndim} dimensions; give one of 1 (sharded) or 2 (replicated, sharded)")


def _make_members(roots: list[Module], group: ProcessGroup, mesh: Any, ignored: set[int], after_forward: bool) -> list[Member]:
    """The parameters of the modules that no sharded module below has taken, each with all places that hold it.

    Nothing has been changed where it raises.
    """
    places: dict[int, list[tuple[Module, str]]] = {}
    found: dict[int, tuple[str, Parameter]] = {}
    for root in roots:
        for path, part in root.named_modules():
            for name, p in part._parameters.items():
                if p is None or isinstance(p, Sharded) or id(p) in ignored:
                    continue
                places.setdefault(id(p), []).append((part, name))
                found.setdefault(id(p), (f"{path}.{name}" if path else name, p))
    for name, p in found.values():
        _check_parameter(name, p)
        if after_forward and p.is_cuda:
            raise cannot_reshard(name, p.device)
    members = []
    for key, (name, p) in found.items():
        members.append(Member(name, places[key], p, group, mesh))
        p.__dict__[_GIVEN_AWAY] = name
    return members


def _check_parameter(name: str, p: Any) -> None:
    if is_lazy(p):
        raise ArgumentError(f"fully_shard: the shape of {name} is not known yet; call the lazy module's forward with a batch first")
    # Tied weights in two groups would get two shards, each stepped by its own half of the gradient.
    if _GIVEN_AWAY in p.__dict__:
        raise ArgumentError(
            f"fully_shard: {name} is the same parameter as {p.__dict__[_GIVEN_AWAY]} of a module that is sharded already, and the two would part; "
            "shard a module that holds both in one call"
        )
    # There is no first dimension to cut; PyTorch's words, which scripts match.
    if p.ndim == 0:
        raise ArgumentError(f"fully_shard doesn't support scalar parameters. Change {name} to a 1D tensor with numel equal to 1.")
    if not p.is_contiguous():
        raise NotImplementedError(f"fully_shard: {name} of shape {tuple(p.shape)} is not contiguous; call contiguous() on its data first")


def _attach(module: Module, sharding: Sharding, turns: Turns) -> None:
    """The class of an FSDPModule, and the hooks: one before all others, one behind them."""
    kind = type(module)
    module.__class__ = type(f"FSDP{kind.__name__}", (FSDPModule, kind), {"__module__": kind.__module__})  # type: ignore[assignment]
    module.__dict__["_sharding"] = sharding
    module.register_forward_pre_hook(turns.before, prepend=True, with_kwargs=True)
    module.register_forward_hook(turns.after)
    module.register_state_dict_pre_hook(lambda module, prefix, keep_vars: reshard_all(module))
    module.register_load_state_dict_pre_hook(cut_full_values)


def register_fsdp_forward_method(module: Any, method_name: str) -> None:
    """Let a method other than forward (generate, say) gather the module's parameters too. On a module that is not sharded it does nothing.

    Raises ValueError where there is no such method.
    """
    method = getattr(module, method_name, None)
    if not callable(method):
        raise ArgumentError(f"register_fsdp_forward_method: {type(module).__name__} has no method {method_name!r}; give the name of one")
    # Scripts call it for every module, sharded or not, as PyTorch allows.
    if not isinstance(module, FSDPModule):
        return
    sharding = module._sharding

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = sharding.before(args, kwargs)
        return sharding.after(method(*args, **kwargs))

    module.__dict__[method_name] = wrapped
