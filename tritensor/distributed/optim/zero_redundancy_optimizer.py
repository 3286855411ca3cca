"""ZeroRedundancyOptimizer: every process keeps optimizer states (ZeRO-1), and if asked gradients (ZeRO-2), of its share of the parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tritensor.autograd.modes import enable_grad, no_grad
from tritensor.autograd.node import version_of
from tritensor.distributed.algorithms.join import Join, Joinable, JoinHook
from tritensor.distributed.backends.one_process import copy_into
from tritensor.distributed.collectives import all_reduce, broadcast
from tritensor.distributed.data_parallel.agreement import broadcast_all
from tritensor.distributed.data_parallel.buckets import Bucket
from tritensor.distributed.objects import recv_object_list, send_object_list
from tritensor.distributed.optim.gradient_shards import GradientShards
from tritensor.distributed.process_group import ProcessGroup, require_group
from tritensor.distributed.reduce_op import get_norm_op
from tritensor.ground.errors import ArgumentError, CheckpointError
from tritensor.nn.utils.clip_grad import (
    clip_grads_with_norm_,
    empty_part,
    get_total_norm,
    norm_from_part,
    part_from_norm,
    read_order,
    refuse_nonfinite,
)
from tritensor.ops.table import ops
from tritensor.optim.optimizer import Optimizer
from tritensor.tensor.core import Tensor


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """An optimizer whose states are shared out among the processes: each steps its share of the parameters and gives the others their new values.

    Parameters go whole to one process each: the largest first, each to the process that has the fewest elements so far, which all processes find
    out by themselves. Use it with DistributedDataParallel, which leaves the same gradients on all processes (ZeRO-1: memory for P parameters
    of e bytes on N processes and k states for each is (2 + k / N) e P).

    With shard_gradients=True gradients are shared out as well (ZeRO-2: (1 + (1 + k) / N) e P), and the optimizer takes the place of
    DistributedDataParallel: give it the parameters of the plain module. They begin with process 0's values; buffers are not touched. As
    backward goes on, gradients are averaged in buckets, each of which is reduced to the process that owns its parameters, and freed elsewhere:
    `.grad` of a parameter that another process owns is None. Every backward reduces, and adds to the owner's `.grad` what it brought, so gradient
    accumulation needs nothing special. The norm of all gradients is that over all processes: use `clip_grad_norm_` of this optimizer. A
    GradScaler sees the gradients of its own process alone; do not use one together with shard_gradients.

    Args:
        params: parameters, or dicts with "params" and settings of their own.
        optimizer_class: the class of the optimizer of each process' share.
        process_group: the processes; all of them where None is given.
        parameters_as_bucket_view: move the parameters of each owner into one piece of memory, which is sent without copies. Their `.data` becomes
            another tensor, so do it before anything else looks at their memory.
        shard_gradients: see above.
        defaults: the optimizer's settings.

    Raises:
        ValueError: no process group; no parameters.
        TypeError: an optimizer_class that is none.
        NotImplementedError: overlap_with_ddp; a Join together with shard_gradients.
    """

    def __init__(
        self, params: Iterable[Any], optimizer_class: type[Optimizer], process_group: Any = None, parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False, shard_gradients: bool = False, **defaults: Any,
    ) -> None:  # fmt: skip
        if overlap_with_ddp:
            raise NotImplementedError("ZeroRedundancyOptimizer: overlap_with_ddp is not in tritensor; leave it out")
        if not isinstance(optimizer_class, type) or not issubclass(optimizer_class, Optimizer):
            raise TypeError(
                f"ZeroRedundancyOptimizer: optimizer_class is {optimizer_class!r}; give the class of an optimizer, as optim.AdamW"
            )
        self.process_group = require_group("ZeroRedundancyOptimizer", process_group)
        self.rank, self.world_size = self.process_group.rank(), self.process_group.size()
        self.parameters_as_bucket_view, self.shard_gradients = parameters_as_bucket_view, shard_gradients
        self._sizes = [0] * self.world_size
        self._shares: list[list[list[Tensor]]] = []  # for each group, of each process
        self._all: list[dict[str, Any]] | None = None
        super().__init__(params, defaults)
        settings = [{k: v for k, v in g.items() if k != "params"} for g in self.param_groups]
        mine = [{**s, "params": shares[self.rank]} for s, shares in zip(settings, self._shares, strict=True)]
        self.optim = optimizer_class(mine, **defaults)
        self.defaults = {**self.optim.defaults, **defaults}
        _copy_settings(self.optim.param_groups, self.param_groups)
        self._lay()

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a dict with "params" and settings; the parameters are shared out as those before. Nothing is added where a setting is refused."""
        super().add_param_group(param_group)
        sizes = list(self._sizes)
        shares: list[list[Tensor]] = [[] for _ in range(self.world_size)]
        # Largest first: the largest share is then at most 4/3 of the best possible one (Graham, 1969).
        for p in sorted(param_group["params"], key=lambda p: p.numel(), reverse=True):
            owner = sizes.index(min(sizes))
            sizes[owner] += p.numel()
            shares[owner].append(p)
        is_made = "optim" in self.__dict__
        if is_made:
            settings = {k: v for k, v in param_group.items() if k not in ("params", "param_names")}
            try:
                self.optim.add_param_group({**settings, "params": shares[self.rank]})
            except Exception:
                # The outer optimizer has the group already: both must agree when the caller catches this.
                self.param_groups.pop()
                raise
        self._sizes, self._all = sizes, None
        self._shares.append(shares)
        if is_made:
            self._lay()

    def owned(self, rank: int) -> list[Tensor]:
        """The parameters that a process steps, in its order."""
        return [p for shares in self._shares for p in shares[rank]]

    def _lay(self) -> None:
        """What is made of the parameters: states are the inner optimizer's, flat pieces, buckets of gradients."""
        self.state = self.optim.state
        self._flats: list[list[Bucket]] = []
        if self.parameters_as_bucket_view:
            self._flats = [_flatten_parameters(self.owned(rank)) for rank in range(self.world_size)]
        if self.shard_gradients:
            known: GradientShards | None = self.__dict__.get("gradients")
            if known is not None:
                known.forget()
            params = [p for g in self.param_groups for p in g["params"] if p.requires_grad]
            owners = {id(p): rank for rank in range(self.world_size) for p in self.owned(rank)}
            broadcast_all(params, self.process_group)
            self.gradients = GradientShards(params, [owners[id(p)] for p in params], self.process_group)

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Step this process' share, and give all processes all new values. `closure` as in other optimizers: it runs once."""
        Join.notify_join_context(self)
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        if self.shard_gradients:
            self.gradients.refuse_unknown([p for g in self.param_groups for p in g["params"]])
        _copy_settings(self.param_groups, self.optim.param_groups)
        self.optim.step(**kwargs)
        _copy_settings(self.optim.param_groups, self.param_groups)
        self._all = None
        self._share_values()
        return loss

    def _share_values(self) -> None:
        # All parameters are this process' own.
        if self.world_size == 1:
            return
        # Parameters lie apart: they are packed into messages of bounded size.
        if not self.parameters_as_bucket_view:
            for rank in range(self.world_size):
                broadcast_all(self.owned(rank), self.process_group, rank)
            return
        works = []
        for rank, flats in enumerate(self._flats):
            for flat in flats:
                # module.to() has moved them out: the piece that is sent would hold old values.
                if not all(flat.holds(i, p._array) for i, p in enumerate(flat.params)):
                    raise ArgumentError(
                        "ZeroRedundancyOptimizer.step: a parameter's data became another tensor, which parameters_as_bucket_view=True does not follow; "
                        "make the optimizer after the module is moved or cast"
                    )
                works.append((rank, flat, broadcast(Tensor.wrap(flat.flat), group=self.process_group, group_src=rank, async_op=True)))
        for rank, flat, work in works:
            assert work is not None
            work.wait()
            # The owner's version was bumped by its own step.
            if rank != self.rank:
                for p in flat.params:
                    version_of(p).bump("ZeroRedundancyOptimizer.step")

    # uneven numbers of batches, together with DistributedDataParallel: Join([model, optimizer])
    def join_hook(self, **kwargs: Any) -> JoinHook:
        if self.shard_gradients:
            raise NotImplementedError(
                "Join: ZeroRedundancyOptimizer with shard_gradients reduces in backward, in which processes that are through take no part; use "
                "DistributedDataParallel with shard_gradients=False, or give all processes as many batches"
            )
        return _StepHook(self)

    @property
    def join_device(self) -> Any:
        return self.param_groups[0]["params"][0].device

    @property
    def join_process_group(self) -> Any:
        return self.process_group

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False) -> Tensor:
        """nn.utils.clip_grad_norm_ of all parameters, with shard_gradients over all processes. All of them call it; returns the norm before."""
        from tritensor.distributed.optim.zero_redundancy_optimizer import clip_shares

        params = [p for g in self.param_groups for p in g["params"]]
        return clip_shares(params, max_norm, norm_type, error_if_nonfinite, self.process_group if self.shard_gradients else None)

    # states
    def consolidate_state_dict(self, to: int = 0) -> None:
        """Bring all processes' states to process `to` of the group, where state_dict() then gives all. All processes call it."""
        self._all = None
        mine = _copy_to_cpu(self.optim.state_dict())
        if self.rank != to:
            send_object_list([mine], group=self.process_group, group_dst=to)
            return
        found = []
        for rank in range(self.world_size):
            got: list[Any] = [mine]
            if rank != to:
                recv_object_list(got, group=self.process_group, group_src=rank)
            found.append(got[0])
        self._all = found

    def state_dict(self) -> dict[str, Any]:
        """The whole state, as an optimizer on one process would give it. Raises RuntimeError where consolidate_state_dict has not brought it here."""
        if self._all is None:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call `consolidate_state_dict(to="
                f"{self.rank})` on all ranks beforehand if you meant to save the global state."
            )
        for hook in self._list_hooks("state_pre"):
            hook(self)
        numbers = self._numbers()
        state = {
            numbers[id(p)]: held["state"][i]
            for rank, held in enumerate(self._all)
            for i, p in enumerate(self.owned(rank))
            if i in held["state"]
        }
        groups = [
            {**{k: v for k, v in g.items() if k != "params"}, "params": [numbers[id(p)] for p in g["params"]]} for g in self.param_groups
        ]
        found: dict[str, Any] = {"state": dict(sorted(state.items())), "param_groups": groups}
        for hook in self._list_hooks("state_post"):
            changed = hook(self, found)
            found = found if changed is None else changed
        return found

    def _numbers(self) -> dict[int, int]:
        return {id(p): i for i, p in enumerate(p for g in self.param_groups for p in g["params"])}

    def _refuse_others(self, state: dict[Any, Any], places: list[Any]) -> None:
        """All processes look at all of a state, so that none takes its share where another one raises."""
        for p, number in zip((p for g in self.param_groups for p in g["params"]), places, strict=True):
            for name in self.optim._like_params:
                value = state.get(number, {}).get(name)
                if isinstance(value, Tensor) and value.shape != p.shape:
                    raise CheckpointError(
                        f"ZeroRedundancyOptimizer.load_state_dict: {name} of parameter {number} is {tuple(value.shape)}, the parameter "
                        f"{tuple(p.shape)}; give the state of these parameters, in their order"
                    )

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take a whole state, of which this process keeps its share. Raises CheckpointError where it does not fit the parameters."""
        for hook in self._list_hooks("load_pre"):
            changed = hook(self, state_dict)
            state_dict = state_dict if changed is None else changed
        numbers, places = self._numbers(), [n for g in state_dict["param_groups"] for n in g["params"]]
        have, given = ([len(g["params"]) for g in groups] for groups in (self.param_groups, state_dict["param_groups"]))
        # The base class has the error text for groups of other sizes, and raises.
        if have != given:
            Optimizer.load_state_dict(self, state_dict)  # says so
        self._refuse_others(state_dict["state"], places)
        mine = self.owned(self.rank)
        state, groups, start = {}, [], 0
        for i, p in enumerate(mine):
            held = state_dict["state"].get(places[numbers[id(p)]])
            if held is not None:
                state[i] = held
        for shares, g in zip(self._shares, state_dict["param_groups"], strict=True):
            n = len(shares[self.rank])
            groups.append({**{k: v for k, v in g.items() if k != "param_names"}, "params": list(range(start, start + n))})
            start += n
        self.optim.load_state_dict({"state": state, "param_groups": groups})
        self.state, self._all = self.optim.state, None
        _copy_settings(self.optim.param_groups, self.param_groups)
        for hook in self._list_hooks("load_post"):
            hook(self)


def _copy_settings(given: list[dict[str, Any]], taken: list[dict[str, Any]]) -> None:
    """Settings of groups: schedulers change the outer optimizer's, the inner one steps by its own."""
    for a, b in zip(given, taken, strict=True):
        b.update({k: v for k, v in a.items() if k not in ("params", "param_names")})


def _copy_to_cpu(value: Any) -> Any:
    """Tensors in a state dict as copies on the CPU."""
    if isinstance(value, Tensor):
        return value.detach().cpu().clone()
    if isinstance(value, dict):
        return {k: _copy_to_cpu(v) for k, v in value.items()}
    return [_copy_to_cpu(v) for v in value] if isinstance(value, list) else value


def _flatten_parameters(params: list[Tensor]) -> list[Bucket]:
    """The parameters moved into one piece of memory for each type and device."""
    alike: dict[Any, list[Tensor]] = {}
    for p in params:
        alike.setdefault((p._array.dtype, p.device), []).append(p)
    flats = []
    for i, found in enumerate(alike.values()):
        flat = Bucket(i, range(len(found)), found)
        flat.begin()
        for k, p in enumerate(found):
            place = flat.view(k)
            if p._array.size:
                copy_into(place, p._array)
            p._set_array(place)
        flats.append(flat)
    return flats


class _StepHook(JoinHook):
    """A process without batches goes on stepping its share, by the gradients that DistributedDataParallel's hook leaves."""

    def __init__(self, optimizer: ZeroRedundancyOptimizer) -> None:
        self._optimizer = optimizer

    def main_hook(self) -> None:
        self._optimizer.step()


@no_grad()
def clip_shares(
    params: Sequence[Tensor], max_norm: float, norm_type: float, error_if_nonfinite: bool, group: ProcessGroup | None
) -> Tensor:
    """nn.utils.clip_grad_norm_ where the processes of `group` hold different gradients; None: the same ones. Returns the norm before."""
    p = read_order("clip_grad_norm_", norm_type)
    grads = [one.grad for one in params if one.grad is not None and one.grad.numel()]
    norm = get_total_norm(grads, p).double().to(params[0].device)
    if group is not None:
        part = part_from_norm(norm, p) if grads else ops.full(shape=(), value=empty_part(p), dtype=norm._array.dtype, device=norm.device)
        all_reduce(part, get_norm_op(p), group)
        norm = norm_from_part(part, p)
    if error_if_nonfinite:
        refuse_nonfinite("clip_grad_norm_", norm, norm_type)
    norm = norm.to(params[0].dtype)
    clip_grads_with_norm_(params, max_norm, norm)
    return norm
