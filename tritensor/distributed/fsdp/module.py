"""FSDPModule: the class that fully_shard gives a module, and the hooks around its forward."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NoReturn

from tritensor.autograd.modes import state
from tritensor.distributed.data_parallel.reducer import find_tensors
from tritensor.distributed.fsdp.group import ParameterGroup
from tritensor.distributed.fsdp.policies import MixedPrecisionPolicy
from tritensor.distributed.fsdp.schedule import Schedule
from tritensor.ground.errors import ArgumentError
from tritensor.ground.pytree import tree_map
from tritensor.nn.module import Module
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor


class Sharding:
    """The state of a sharded module: its group, the schedule of its root, and when whole parameters are given back.

    `after_forward`: True, False, or None, which means True below a root and False for a root, whose backward begins at once.
    """

    def __init__(self, module: Module, group: ParameterGroup, after_forward: bool | None, policy: MixedPrecisionPolicy) -> None:
        self.module, self.group, self.after_forward, self.policy = module, group, after_forward, policy
        self.schedule: Schedule | None = None
        self.is_root = False
        self.casts_as_root = False  # FullyShardedDataParallel's cast_root_forward_inputs

    def begin(self) -> Schedule:
        """The schedule; a module that is called before one around it is a root, and shares its own with all sharded modules below.

        Raises NotImplementedError on a GPU where a module below the root is to give its parameters back after forward.
        """
        if self.schedule is None:
            self.schedule, self.is_root = Schedule(), True
            for below in find_sharded(self.module):
                other = below._sharding
                # Modules of one list share a Sharding, which is joined once.
                if other is self or other.schedule is self.schedule:
                    continue
                other.schedule, other.is_root = self.schedule, False
                # One schedule orders the messages of one set of processes; others would see its gathers in another order.
                if other.group.ranks != self.group.ranks:
                    raise NotImplementedError(
                        f"fully_shard: {other.group.name} is shared among other processes than its root; give all modules of a model one mesh"
                    )
                other.refuse_resharding()
        return self.schedule

    def refuse_resharding(self) -> None:
        """Raise NotImplementedError where memory that a graph looks at would have to be given back, and cannot be."""
        if self.reshards and not self.group.keeps_address():
            raise cannot_reshard(self.group.name, self.group.flats[0].device)

    @property
    def reshards(self) -> bool:
        """Whether whole parameters are given back between forward and backward."""
        return not self.is_root if self.after_forward is None else self.after_forward

    def before(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Forward begins: the whole parameters are gathered, and inputs cast where the policy says so."""
        schedule = self.begin()
        schedule.enter(self.group)
        for i, m in enumerate(self.group.members):
            # Once for each parameter: hooks of a second forward would count each gradient twice.
            if m.whole._tracked and not m.hooked:
                m.hooked = True
                m.whole.register_post_accumulate_grad_hook(functools.partial(self._came, i))
        kind = self.policy.param_dtype
        casts = self.policy.cast_forward_inputs or (self.casts_as_root and self.is_root)
        # Summoned parameters have the shards' type, and inputs of another would not fit them.
        if kind is not None and casts and not self.group.summoned:
            args, kwargs = tree_map(lambda x: x.to(kind) if isinstance(x, Tensor) and x.is_floating_point() else x, (args, kwargs))
        # Frozen parameters bring no gradient that would tell when backward is through with them; the inputs' gradients do.
        if state.enabled and self.group.is_frozen_in_part:
            for t in find_tensors((args, kwargs)):
                if t._tracked:
                    self.group.inputs_left += 1
                    t.register_hook(self._input_came)
        return args, kwargs

    def _came(self, i: int, param: Tensor) -> None:
        assert self.schedule is not None
        self.schedule.came(self.group, i)

    def _input_came(self, gradient: Tensor) -> None:
        assert self.schedule is not None
        self.schedule.input_came(self.group)

    def _output_came(self, gradient: Tensor) -> None:
        assert self.schedule is not None
        self.schedule.backward(self.group)

    def after(self, output: Any) -> Any:
        """Forward has ended: outputs are watched, for backward to gather again, and the whole parameters given back."""
        assert self.schedule is not None
        # An output that lies in the parameters' memory would be given back with it.
        output = tree_map(lambda x: ops.copy(x) if isinstance(x, Tensor) and self.group.holds(x) else x, output)
        kind = self.policy.output_dtype
        if kind is not None:
            output = tree_map(lambda x: x.to(kind) if isinstance(x, Tensor) and x.is_floating_point() else x, output)
        # A checkpoint computes again inside of backward, which needs the parameters until it is through.
        if state.task is not None:
            return output
        if state.enabled:
            for t in find_tensors(output):
                if t._tracked and t._node is not None:
                    t.register_hook(self._output_came)
        # Without a graph nothing is to come that would need them: also a root gives its parameters back.
        if self.reshards or not state.enabled:
            self.group.reshard()
        if self.is_root:
            self.schedule.leave_root()
        return output


def cannot_reshard(name: str, device: Any) -> NotImplementedError:
    """The error for memory that a graph looks at and that cannot be given back."""
    return NotImplementedError(
        f"fully_shard: {name} is on {device}, where parameters cannot be given back between forward and backward "
        "while the graph holds them; give reshard_after_forward=False (they are given back after backward)"
    )


class UnshardHandle:
    """The result of unshard(async_op=True): `wait()` for the whole parameters."""

    def __init__(self, group: ParameterGroup) -> None:
        self._group = group

    def wait(self) -> None:
        """Put them in place of the shards."""
        self._group.gather()


def _refuse_method(name: str, instead: str) -> Callable[..., Any]:
    def refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"FSDPModule.{name}: not in tritensor; {instead}")

    refuse.__name__, refuse.__doc__ = name, f"Raises NotImplementedError: {instead}."
    return refuse


class FSDPModule:
    """The class that a module has besides its own once fully_shard was called on it."""

    _sharding: Sharding

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Instances that the module makes of its own class (a slice of a Sequential) are of the class that it had."""
        plain: Any = cls.__mro__[2]
        made = plain.__new__(plain)
        made.__init__(*args, **kwargs)
        return made

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Gather the whole parameters of this module's group; with async_op=True they are on their way, and `wait()` of the handle ends it."""
        handle = UnshardHandle(self._sharding.group)
        if async_op:
            self._sharding.group.begin_gather()
            return handle
        handle.wait()
        return None

    def reshard(self) -> None:
        """Give the whole parameters of this module's group back."""
        self._sharding.group.reshard()

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *, recurse: bool = True) -> None:
        """Whether backward reduces gradients. With False the whole parameters keep theirs, to which the next backward adds (gradient accumulation)."""
        for part in self._parts(recurse):
            part.group.syncs = bool(requires_gradient_sync)

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Give whole parameters back between forward and backward, or keep them. Raises NotImplementedError for True on a GPU."""
        after_forward = check_resharding(reshard_after_forward)
        for part in self._parts(recurse):
            part.after_forward = after_forward
            part.refuse_resharding()

    def set_reshard_after_backward(self, reshard_after_backward: bool, *, recurse: bool = True) -> None:
        """Give whole parameters back after backward, or keep them for the next forward, which gathers anew only where shards have changed."""
        for part in self._parts(recurse):
            part.group.reshards_after_backward = bool(reshard_after_backward)

    def set_modules_to_forward_prefetch(self, modules: list[FSDPModule]) -> None:
        """While this module's forward runs, gather the parameters of these, in place of those of the one that came next in the last iteration."""
        self._sharding.group.ahead = _get_groups("set_modules_to_forward_prefetch", modules)

    def set_modules_to_backward_prefetch(self, modules: list[FSDPModule]) -> None:
        """While this module's backward runs, gather the parameters of these, in place of those of the one that came before it in forward."""
        self._sharding.group.ahead_in_backward = _get_groups("set_modules_to_backward_prefetch", modules)

    def set_gradient_divide_factor(self, factor: float) -> None:
        """By what the sum of this module's group's gradients is divided, in place of the number of processes."""
        self._sharding.group.factor = float(factor)

    set_reduce_scatter_divide_factor = set_gradient_divide_factor

    def _parts(self, recurse: bool) -> list[Sharding]:
        return [m._sharding for m in find_sharded(self)] if recurse else [self._sharding]

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        self.reshard()
        found = super()._apply(fn, recurse)  # type: ignore[misc]
        self._sharding.group.lay_out_again()
        return found

    def __deepcopy__(self, memo: Any) -> NoReturn:
        raise AssertionError("FSDP does not support deepcopy. Please use state dict for serialization.")

    set_is_last_backward = _refuse_method("set_is_last_backward", "each backward ends with its gradients reduced")
    set_requires_all_reduce = _refuse_method("set_requires_all_reduce", "use set_requires_gradient_sync")
    set_custom_all_gather = _refuse_method("set_custom_all_gather", "collectives are those of the process group")
    set_custom_reduce_scatter = _refuse_method("set_custom_reduce_scatter", "collectives are those of the process group")
    set_all_reduce_hook = _refuse_method("set_all_reduce_hook", "use hooks on the shards' gradients after backward")
    set_unshard_in_backward = _refuse_method("set_unshard_in_backward", "a group is gathered when backward comes to it")


def _get_groups(who: str, modules: list[FSDPModule]) -> list[ParameterGroup]:
    for m in modules:
        if not isinstance(m, FSDPModule):
            raise ArgumentError(f"{who}: {type(m).__name__} is not sharded; give modules that fully_shard was called on")
    return [m._sharding.group for m in modules]


def find_sharded(module: Any) -> list[Any]:
    """The sharded modules of a model, the model itself among them, in order."""
    return [m for m in module.modules() if isinstance(m, FSDPModule)]


def check_resharding(given: Any) -> bool | None:
    """A reshard_after_forward. Raises for one that is not built, or makes no sense."""
    if given is None or isinstance(given, bool):
        return given
    # PyTorch's int means "reshard to a smaller group"; taken as a truth value it would do something else.
    if isinstance(given, int):
        raise NotImplementedError(
            f"fully_shard: reshard_after_forward={given}: shards of a smaller group of processes are not in tritensor; give True or False"
        )
    raise ArgumentError(f"fully_shard: reshard_after_forward is {given!r}; give True, False or None")
