"""FullyShardedDataParallel: fully_shard in the form of a module around a module."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tritensor.autograd.modes import no_grad
from tritensor.distributed.backends.interface import Backend
from tritensor.distributed.backends.one_process import OneProcess
from tritensor.distributed.data_parallel.agreement import broadcast_all
from tritensor.distributed.fsdp.clipping import clip_grad_norm_
from tritensor.distributed.fsdp.group import ParameterGroup, Ranks
from tritensor.distributed.fsdp.materializing import materialize
from tritensor.distributed.fsdp.module import find_sharded
from tritensor.distributed.fsdp.policies import MixedPrecisionPolicy
from tritensor.distributed.fsdp.sharded_parameter import Sharded
from tritensor.distributed.fsdp.sharding import shard_group
from tritensor.distributed.fsdp.states import INNER, export_state, import_state
from tritensor.distributed.fsdp.wrap import wrap_children
from tritensor.distributed.fsdp.wrappers import Wrapper, add_wrapper_name
from tritensor.distributed.process_group import ProcessGroup, require_group
from tritensor.ground.dtypes import DType
from tritensor.ground.errors import ArgumentError
from tritensor.nn.module import Module
from tritensor.nn.parameter import Parameter
from tritensor.optim.optimizer import Optimizer
from tritensor.tensor.core import Tensor


class ShardingStrategy(enum.Enum):
    """The extent of sharding: all, given back between forward and backward; all, kept until backward is through; nothing."""

    FULL_SHARD = enum.auto()
    SHARD_GRAD_OP = enum.auto()
    NO_SHARD = enum.auto()
    HYBRID_SHARD = enum.auto()
    _HYBRID_SHARD_ZERO2 = enum.auto()


class BackwardPrefetch(enum.Enum):
    """Accepted: backward gathers the next group before it needs it, whichever is given."""

    BACKWARD_PRE = enum.auto()
    BACKWARD_POST = enum.auto()


@dataclass
class CPUOffload:
    """offload_params=True is not built: FullyShardedDataParallel raises NotImplementedError for it."""

    offload_params: bool = False


class StateDictType(enum.Enum):
    """The form of state_dict(): whole parameters, or each process' shards."""

    FULL_STATE_DICT = enum.auto()
    LOCAL_STATE_DICT = enum.auto()
    SHARDED_STATE_DICT = enum.auto()


@dataclass
class FullStateDictConfig:
    """offload_to_cpu: values on the CPU; rank0_only: only process 0 gets them."""

    offload_to_cpu: bool = False
    rank0_only: bool = False


@dataclass
class ShardedStateDictConfig:
    """offload_to_cpu: values on the CPU."""

    offload_to_cpu: bool = False


@dataclass
class FullOptimStateDictConfig:
    """offload_to_cpu: values on the CPU; rank0_only: only process 0 gets them, and only its own are loaded."""

    offload_to_cpu: bool = True
    rank0_only: bool = False


@dataclass
class ShardedOptimStateDictConfig:
    """offload_to_cpu: values on the CPU."""

    offload_to_cpu: bool = True


@dataclass(frozen=True)
class MixedPrecision:
    """Types to compute and to reduce in; buffer_dtype, that of floating buffers."""

    param_dtype: DType | None = None
    reduce_dtype: DType | None = None
    buffer_dtype: DType | None = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True


class FullyShardedDataParallel(Wrapper):
    """A module around `module` whose parameters are shared out among the processes, as fully_shard does; new programs call that.

    Parameters stay apart and keep their names (use_orig_params=True is the only way, and False is accepted), and state dicts have the
    module's own. Make the optimizer afterwards.

    Args:
        sharding_strategy: FULL_SHARD where None is given; of the hybrid ones a device_mesh of two dimensions says who shares.
        auto_wrap_policy: which modules below get a wrapper of their own, see fsdp.wrap.
        sync_module_states: begin with process 0's parameters and buffers.
        mixed_precision: types to compute and to reduce in.
        ignored_modules, ignored_states: what stays as it is.
        param_init_fn: called on each module that is not wrapped yet, where some parameter is on device meta, to give it memory and values; without it
            each is given memory, on device_id, and its reset_parameters() is called.
        device_id: where the module is moved first; a number is that of a GPU.

    Raises:
        ValueError: no process group; what fully_shard refuses.
        NotImplementedError: cpu_offload, and on a GPU FULL_SHARD below the root (use SHARD_GRAD_OP).
    """

    _holds_under = INNER

    def __init__(
        self, module: Module, process_group: Any = None, sharding_strategy: ShardingStrategy | None = None, cpu_offload: Any = None,
        auto_wrap_policy: Any = None, backward_prefetch: BackwardPrefetch | None = BackwardPrefetch.BACKWARD_PRE,
        mixed_precision: MixedPrecision | None = None, ignored_modules: Iterable[Module] | None = None, param_init_fn: Any = None,
        device_id: Any = None, sync_module_states: bool = False, forward_prefetch: bool = False, limit_all_gathers: bool = True,
        use_orig_params: bool = False, ignored_states: Iterable[Any] | None = None, device_mesh: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if getattr(cpu_offload, "offload_params", cpu_offload):
            raise NotImplementedError("FullyShardedDataParallel: cpu_offload is not in tritensor; leave it out")
        strategy = ShardingStrategy.FULL_SHARD if sharding_strategy is None else sharding_strategy
        world = _find_world(process_group, device_mesh)
        ranks = _make_ranks(strategy, world, device_mesh)
        where = f"cuda:{device_id}" if isinstance(device_id, int) else device_id
        skipped, states = set(ignored_modules or ()), list(ignored_states or ())
        skipped |= {m for m in states if isinstance(m, Module)}
        materialize(module, param_init_fn, skipped, where)
        if where is not None:
            module.to(where)
        if sync_module_states and ranks.size > 1:
            for group in (ranks.shard, ranks.replicas):
                if group is not None:
                    broadcast_all([*(p for p in module.parameters() if not isinstance(p, Sharded)), *module.buffers()], group)
        ignored = {p for p in states if isinstance(p, Parameter)} | {p for m in skipped for p in m.parameters()}
        settings = {
            "process_group": process_group, "sharding_strategy": strategy, "mixed_precision": mixed_precision, "device_mesh": device_mesh,
            "ignored_states": list(ignored),
        }  # fmt: skip
        if auto_wrap_policy is not None:
            wrap_children(module, auto_wrap_policy, skipped, lambda m, **own: FullyShardedDataParallel(m, **{**settings, **own}))
        self._modules[INNER] = module
        self.__dict__.update(sharding_strategy=strategy, process_group=world, _type=_make_type(StateDictType.FULL_STATE_DICT))
        policy, self.__dict__["_buffer_types"] = _make_policy(mixed_precision, module)
        keeps = strategy in (ShardingStrategy.SHARD_GRAD_OP, ShardingStrategy._HYBRID_SHARD_ZERO2, ShardingStrategy.NO_SHARD)
        named = type(self).__name__
        shard_group(self, [self], ranks, device_mesh, False if keeps else None, policy, ignored)
        self.__dict__["_sharding"].casts_as_root = mixed_precision is not None and mixed_precision.cast_root_forward_inputs
        type(self).__name__ = named  # this wrapper's own class: what is printed, and asked by name, has no second "FSDP" in front
        self.register_state_dict_post_hook(_clean_state_dict)
        self.register_load_state_dict_pre_hook(add_wrapper_name)
        hooks = self._hooks
        assert hooks is not None
        hooks.load_pre = dict(reversed(hooks.load_pre.items()))  # names first, then rows

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Parameter]]:
        """(name, parameter) of all; inside summon_full_params by the names of the module that is wrapped."""
        return self._named(super().named_parameters(*args, **kwargs))

    def named_buffers(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Tensor]]:
        """(name, buffer) of all; inside summon_full_params by the names of the module that is wrapped."""
        return self._named(super().named_buffers(*args, **kwargs))

    def _named(self, found: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
        for name, value in found:
            yield name.replace(f"{INNER}.", "") if self.__dict__["_sharding"].group.summoned else name, value

    def check_is_root(self) -> bool:
        """Whether no wrapper is around this one."""
        sharding = self.__dict__["_sharding"]
        sharding.begin()
        return bool(sharding.is_root)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Inside, backward adds to the whole gradients and reduces nothing."""
        parts = [m._sharding.group for m in find_sharded(self)]
        before = [g.syncs for g in parts]
        for g in parts:
            g.syncs = False
        try:
            yield
        finally:
            for g, syncs in zip(parts, before, strict=True):
                g.syncs = syncs

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Tensor:
        """fsdp.clip_grad_norm_ of all parameters."""
        return clip_grad_norm_(self.parameters(), max_norm, norm_type)

    @staticmethod
    def fsdp_modules(module: Module, root_only: bool = False) -> list[Any]:
        """The wrappers in a module; root_only: those that no other is around."""
        found = [m for m in module.modules() if isinstance(m, FullyShardedDataParallel)]
        inner = {id(m) for one in found for m in one.modules() if m is not one} if root_only else set()
        return [m for m in found if id(m) not in inner]

    @staticmethod
    @contextlib.contextmanager
    def summon_full_params(
        module: Module, recurse: bool = True, writeback: bool = True, rank0_only: bool = False, offload_to_cpu: bool = False, with_grads: bool = False
    ) -> Iterator[None]:  # fmt: skip
        """Inside, the module holds whole parameters of the shards' types; with writeback their values are kept afterwards, each process' rows by itself.

        Raises NotImplementedError for rank0_only, offload_to_cpu and with_grads; RuntimeError inside of another one, and where forward is called
        inside with gradients recorded.
        """
        if rank0_only or offload_to_cpu or with_grads:
            raise NotImplementedError("summon_full_params: rank0_only, offload_to_cpu and with_grads are not in tritensor; leave them out")
        groups = [m._sharding.group for m in (find_sharded(module) if recurse else [module])]
        if any(g.summoned for g in groups):
            raise RuntimeError("summon_full_params inside of summon_full_params: the parameters are whole already; leave the inner one out")
        summoned = [(g, _put_whole_parameters(g)) for g in groups]
        try:
            yield
        finally:
            for g, wholes in summoned:
                _put_shards_back(g, wholes, writeback)

    @staticmethod
    def set_state_dict_type(
        module: Module, state_dict_type: StateDictType, state_dict_config: Any = None, optim_state_dict_config: Any = None
    ) -> Any:
        """What state_dict() of all wrappers in a module gives from now on; returns what it was."""
        if state_dict_type is StateDictType.LOCAL_STATE_DICT:
            raise NotImplementedError("set_state_dict_type: LOCAL_STATE_DICT is not in tritensor; give SHARDED_STATE_DICT")
        parts = FullyShardedDataParallel.fsdp_modules(module)
        before = [part.__dict__["_type"] for part in parts]
        for part in parts:
            part.__dict__["_type"] = _make_type(state_dict_type, state_dict_config, optim_state_dict_config)
        return before

    @staticmethod
    @contextlib.contextmanager
    def state_dict_type(
        module: Module, state_dict_type: StateDictType, state_dict_config: Any = None, optim_state_dict_config: Any = None
    ) -> Iterator[None]:
        """set_state_dict_type for the time of a `with`."""
        before = FullyShardedDataParallel.set_state_dict_type(module, state_dict_type, state_dict_config, optim_state_dict_config)
        try:
            yield
        finally:
            for part, kind in zip(FullyShardedDataParallel.fsdp_modules(module), before, strict=True):
                part.__dict__["_type"] = kind

    @staticmethod
    def optim_state_dict(model: Module, optim: Optimizer, optim_state_dict: Any = None, group: Any = None) -> dict[str, Any]:
        """An optimizer's state by the parameters' names, whole or in parts as set_state_dict_type says; all processes call it."""
        if optim_state_dict is not None:
            raise NotImplementedError("optim_state_dict: a state in place of the optimizer's own is not in tritensor; leave it out")
        kind, _, config = _find_type(model)
        return export_state(
            model, optim, kind is StateDictType.FULL_STATE_DICT, config.offload_to_cpu, getattr(config, "rank0_only", False)
        )

    @staticmethod
    def optim_state_dict_to_load(
        model: Module, optim: Optimizer, optim_state_dict: dict[str, Any], is_named_optimizer: bool = False, load_directly: bool = False,
        group: Any = None,
    ) -> dict[str, Any]:  # fmt: skip
        """What optim.load_state_dict takes, of what `optim_state_dict` gave; with load_directly the optimizer has taken it.

        With FullOptimStateDictConfig(rank0_only=True) process 0's counts.
        """
        found = import_state(model, optim, optim_state_dict, getattr(_find_type(model)[2], "rank0_only", False))
        if load_directly:
            optim.load_state_dict(found)
        return found

    @staticmethod
    def full_optim_state_dict(
        model: Module, optim: Optimizer, optim_input: Any = None, rank0_only: bool = True, group: Any = None
    ) -> dict[str, Any]:  # fmt: skip
        """An optimizer's whole state by the parameters' names, on the CPU, on process 0 alone or on all."""
        return export_state(model, optim, True, True, rank0_only)

    @staticmethod
    def sharded_optim_state_dict(model: Module, optim: Optimizer, group: Any = None) -> dict[str, Any]:
        """An optimizer's state by the parameters' names, of each process' parts."""
        return export_state(model, optim, False, False, False)

    @staticmethod
    def scatter_full_optim_state_dict(
        full_optim_state_dict: dict[str, Any] | None, model: Module, optim_input: Any = None, optim: Optimizer | None = None, group: Any = None
    ) -> dict[str, Any]:  # fmt: skip
        """optim_state_dict_to_load of process 0's whole state. Raises ValueError without optim."""
        return import_state(model, _require_optimizer("scatter_full_optim_state_dict", optim), full_optim_state_dict, True)

    @staticmethod
    def shard_full_optim_state_dict(
        full_optim_state_dict: dict[str, Any], model: Module, optim_input: Any = None, optim: Optimizer | None = None
    ) -> dict[str, Any]:  # fmt: skip
        """optim_state_dict_to_load of a whole state that all processes have. Raises ValueError without optim."""
        return import_state(model, _require_optimizer("shard_full_optim_state_dict", optim), full_optim_state_dict, False)


def _require_optimizer(who: str, optim: Optimizer | None) -> Optimizer:
    if optim is None:
        raise ArgumentError(f"{who}: which optimizer's state is it? give optim=")
    return optim


def _make_type(kind: StateDictType, config: Any = None, of_optimizers: Any = None) -> tuple[StateDictType, Any, Any]:
    """The form of state dicts, with the usual settings where none are given."""
    whole = kind is StateDictType.FULL_STATE_DICT
    config = config or (FullStateDictConfig() if whole else ShardedStateDictConfig())
    return kind, config, of_optimizers or (FullOptimStateDictConfig() if whole else ShardedOptimStateDictConfig())


def _find_type(model: Module) -> tuple[StateDictType, Any, Any]:
    """The outermost wrapper's, else the usual one."""
    parts = FullyShardedDataParallel.fsdp_modules(model)
    found: tuple[StateDictType, Any, Any] = parts[0].__dict__["_type"] if parts else _make_type(StateDictType.FULL_STATE_DICT)
    return found


def _put_whole_parameters(group: ParameterGroup) -> list[Parameter]:
    """Whole parameters in the places of the shards. They are other ones than forward uses, so that nothing that gives those back frees these."""
    group.reshard()
    group.summoned = True
    wholes = []
    for m in group.members:
        whole = Parameter(m.shard.full_tensor(), m.shard._tracked)
        whole.__dict__.update(m.whole.__dict__)
        m.register(whole)
        wholes.append(whole)
    return wholes


@no_grad()
def _put_shards_back(group: ParameterGroup, wholes: list[Parameter], writeback: bool) -> None:
    """The shards in their places again; with writeback the rows of what was there are their new values."""
    group.summoned = False
    for m, whole in zip(group.members, wholes, strict=True):
        # Of changed whole parameters each process keeps its rows; without writeback the changes are dropped.
        if writeback:
            m.shard.detach().copy_(Tensor.wrap(whole._array[m.start : m.start + m.rows]))
        m.register(m.shard)


def _find_world(process_group: Any, mesh: Any) -> ProcessGroup:
    if mesh is not None and mesh.ndim == 1:
        return require_group("FullyShardedDataParallel", mesh.get_group())
    return require_group("FullyShardedDataParallel", process_group if isinstance(process_group, ProcessGroup) else None)


def _make_ranks(strategy: ShardingStrategy, world: ProcessGroup, mesh: Any) -> Ranks:
    """The processes that share parameters out, by the strategy."""
    if not isinstance(strategy, ShardingStrategy):
        raise TypeError(
            f"FullyShardedDataParallel: sharding_strategy is {strategy!r}; give one of ShardingStrategy, as ShardingStrategy.FULL_SHARD"
        )
    if strategy in (ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2):
        if mesh is None or mesh.ndim != 2:
            raise ArgumentError(
                f"FullyShardedDataParallel: {strategy} wants a device_mesh of two dimensions (replicated, sharded); give one"
            )
        return Ranks(mesh.get_group(1), mesh.get_group(0))
    # NO_SHARD is sharding among one process, with all others as replicas.
    if strategy is not ShardingStrategy.NO_SHARD or world.size() == 1:
        return Ranks(world)
    alone = world.__dict__.get("_alone")
    if alone is None:
        kinds: dict[str, Backend] = {kind: OneProcess() for kind in world.backends}
        alone = ProcessGroup([world.ranks[world.rank()]], world.backend, f"{world.group_name}, alone", kinds, 0, world.seconds)
        world.__dict__["_alone"] = alone
    return Ranks(alone, world)


def _make_policy(given: MixedPrecision | None, module: Module) -> tuple[MixedPrecisionPolicy, dict[str, DType]]:
    """Types to compute in; buffers are cast, and their own types returned by name, which state dicts keep."""
    types: dict[str, DType] = {}
    if given is None:
        return MixedPrecisionPolicy(), types
    if given.keep_low_precision_grads:
        raise NotImplementedError(
            "FullyShardedDataParallel: keep_low_precision_grads is not in tritensor; gradients have their parameters' types"
        )
    if given.buffer_dtype is not None:
        for path, part in module.named_modules():
            for name, b in part._buffers.items():
                if b is not None and b.is_floating_point() and b.dtype is not given.buffer_dtype:
                    types[f"{path}.{name}" if path else name] = b.dtype
                    part._buffers[name] = b.to(given.buffer_dtype)
    return MixedPrecisionPolicy(given.param_dtype, given.reduce_dtype, None, given.cast_forward_inputs), types


def _clean_state_dict(wrapper: Any, state_dict: Any, prefix: str, local_metadata: Any) -> None:
    """Names without the wrapper's, whole values where they are asked for, and buffers in the types that the module had."""
    kind, config, _ = wrapper.__dict__["_type"]
    types = wrapper.__dict__["_buffer_types"]
    held = list(state_dict.items())
    state_dict.clear()
    for key, value in held:
        ours = key.startswith(prefix)
        # All ranks gather, also those that rank0_only drops: it is a collective.
        if ours and isinstance(value, Sharded) and kind is StateDictType.FULL_STATE_DICT:
            rank, value = value.process_group.rank() if value.process_group else 0, value.full_tensor()
            if config.rank0_only and rank:
                continue
        if ours and config.offload_to_cpu and isinstance(value, Tensor):
            value = value.cpu()
        name = key.removeprefix(prefix + INNER + ".")
        # Buffers compute in buffer_dtype, and checkpoints keep the module's own type, as in PyTorch.
        if ours and name in types and isinstance(value, Tensor):
            value = value.to(types[name])
        state_dict[prefix + name if ours else key] = value
