"""DistributedDataParallel, the module around a module, and its part in a join."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tritensor.autograd.modes import state
from tritensor.distributed.algorithms.join import Join, Joinable, JoinHook, JoinStep
from tritensor.distributed.data_parallel.agreement import broadcast_all, compare_parameters, get_ignored_names, get_synced
from tritensor.distributed.data_parallel.reducer import BucketTimes, Reducer, find_tensors
from tritensor.distributed.process_group import require_group
from tritensor.ground.device import as_device
from tritensor.nn.module import Module
from tritensor.nn.parallel import gather, scatter_kwargs


class ReplicaJoin(JoinHook):
    """The part of a DistributedDataParallel whose process is through."""

    def __init__(self, replica: Any) -> None:
        self.replica = replica  # the DistributedDataParallel

    def main_hook(self) -> None:
        """A step of the others: their buffers, and zeros for the averages of their gradients."""
        replica = self.replica
        step = replica.join_step
        assert step is not None
        if replica.will_sync_module_buffers():
            broadcast_all(get_synced(replica.module, "buffers"), replica.process_group, step.root)
        replica.require_forward_param_sync = step.syncs
        # Within no_sync the others communicate no gradients, and an extra all_reduce here would have no partner.
        if step.syncs:
            replica.reducer.shadow()

    def post_hook(self, is_last_joiner: bool) -> None:
        """All are through: one that was so last gives its parameters and buffers to all."""
        replica = self.replica
        replica.reducer.divide = replica.process_group.size()
        root = replica.join_step.root if replica.join_step is not None else 0
        module = replica.module
        broadcast_all([*get_synced(module, "parameters"), *get_synced(module, "buffers")], replica.process_group, root)
        replica.__dict__["join_step"] = None


FIRST_CAP = 1 << 20  # bytes of the first bucket: small, so that communication begins early


class DistributedDataParallel(Module, Joinable):
    """A module around `module`, of which every process of a group has one: each computes a part of the batch, and backward leaves the average
    of all processes' gradients in every `.grad`. Its state_dict has PyTorch's keys (`module.weight`).

    Gradients lie in buckets, flat pieces of memory, in the order in which backward reaches them; a bucket is averaged as soon as its last
    gradient has come, while backward goes on. The method is that of Li et al., "PyTorch Distributed" (VLDB 2020).

    Args:
        device_ids: the one device of the module, or None.
        broadcast_buffers: before each forward, give all processes rank 0's buffers (running statistics).
        init_sync: compare the parameters, and begin with rank 0's values.
        bucket_cap_mb: megabytes of a bucket; 25 where nothing is given. The first one has 1.
        find_unused_parameters: parameters that the outputs do not depend on are not waited for. It costs a walk through the graph.
        gradient_as_bucket_view: accepted; gradients are views of the buckets, whose memory is made anew where a program has kept the last ones.
        static_graph: every step uses the same parameters, as often: the first one is watched, and backward may go through parts of the graph
            several times (reentrant checkpoints).
        device_mesh: one dimension of processes, in place of process_group.

    Raises:
        ValueError: no process group (call init_process_group first); device_ids that name more than one device.
        RuntimeError: a module without a parameter that takes gradients; at a forward after a backward that left parameters without a gradient,
            whose names the message has.
        DistError: the processes' modules differ.
    """

    reducer: Reducer
    join_step: JoinStep | None = None  # the step of a join that goes on; None outside of one
    divides_by_all = True  # within a join: by all processes of the group, and not by those that still have batches

    def __init__(
        self, module: Module, device_ids: Sequence[Any] | None = None, output_device: Any = None, dim: int = 0, broadcast_buffers: bool | None = None,
        init_sync: bool = True, process_group: Any = None, bucket_cap_mb: float | None = None, find_unused_parameters: bool = False,
        check_reduction: bool = False, gradient_as_bucket_view: bool = False, static_graph: bool = False,
        delay_all_reduce_named_params: Any = None, param_to_hook_all_reduce: Any = None, mixed_precision: Any = None,
        device_mesh: Any = None, skip_all_reduce_unused_params: bool = False, bucket_cap_mb_list: Sequence[float] | None = None,
        batched_grad_copy: bool = False, forward_sync_buffers: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if device_mesh is not None:
            if process_group is not None or device_mesh.ndim != 1:
                raise ValueError("DistributedDataParallel: give process_group or a device_mesh of one dimension, not both")
            process_group = device_mesh.get_group()
        self.process_group = require_group("DistributedDataParallel", process_group)
        self.device_mesh = device_mesh
        if mixed_precision is not None or delay_all_reduce_named_params is not None:
            raise NotImplementedError(
                "DistributedDataParallel: mixed_precision and delay_all_reduce_named_params are not in tritensor; leave them out (autocast works)"
            )
        left_out = get_ignored_names(module)
        learned = [(name, p) for name, p in module.named_parameters() if p.requires_grad and name not in left_out]
        # There would be no gradient whose arrival begins a reduction.
        if not learned:
            raise RuntimeError("DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient")
        _check_devices(module, device_ids)
        self.module, self.device_ids, self.output_device, self.dim = module, device_ids, output_device, dim
        self.device, self.device_type = learned[0][1].device, learned[0][1].device.type
        if broadcast_buffers is None:
            broadcast_buffers = True if forward_sync_buffers is None else bool(forward_sync_buffers)
        self.broadcast_buffers, self.find_unused_parameters = broadcast_buffers, find_unused_parameters
        self.gradient_as_bucket_view, self.static_graph, self.init_sync = gradient_as_bucket_view, static_graph, init_sync
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self.bucket_bytes_cap = int((25 if bucket_cap_mb is None else bucket_cap_mb) * (1 << 20))
        caps = [int(mb * (1 << 20)) for mb in bucket_cap_mb_list or ()] or [min(FIRST_CAP, self.bucket_bytes_cap), self.bucket_bytes_cap]
        # Copies and unpickled wrappers leave it out: they may be made on one rank alone.
        if init_sync and self.process_group.size() > 1:
            compare_parameters([name for name, _ in learned], [p for _, p in learned], self.process_group)
            broadcast_all([*get_synced(module, "parameters"), *get_synced(module, "buffers")], self.process_group)
        self.__dict__["reducer"] = Reducer(
            [p for _, p in learned], [name for name, _ in learned], self.process_group, caps, find_unused_parameters, static_graph
        )

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        Join.notify_join_context(self)
        if self.will_sync_module_buffers():
            broadcast_all(get_synced(self.module, "buffers"), self.process_group, 0 if self.join_step is None else self.join_step.root)
        outputs = self.module(*inputs, **kwargs)
        # Evaluation has no backward to wait for.
        if state.enabled and self.require_backward_grad_sync:
            self.require_forward_param_sync = True
            self.reducer.expect(find_tensors(outputs) if self.find_unused_parameters else ())
        else:  # an earlier forward may have its backward before it: the averages that it expects are still to be made
            self.require_forward_param_sync = False
        return outputs

    def scatter(self, inputs: Any, kwargs: Any, device_ids: Sequence[Any]) -> Any:
        return scatter_kwargs(inputs, kwargs, device_ids, self.dim)

    def to_kwargs(self, inputs: Any, kwargs: Any, device_id: Any) -> Any:
        return scatter_kwargs(inputs, kwargs, [device_id], self.dim)

    def gather(self, outputs: Sequence[Any], output_device: Any) -> Any:
        return gather(outputs, output_device, self.dim)

    def will_sync_module_buffers(self) -> bool:
        """Whether a forward begins with rank 0's buffers."""
        has = any(True for _ in self.module.buffers())
        return self.require_forward_param_sync and self.broadcast_buffers and has and self.process_group.size() > 1

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Inside, gradients are not averaged but accumulated, as steps of gradient accumulation ask. It is the forward that must be inside."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def times(self) -> list[BucketTimes]:
        """When each bucket of the last backward was complete and when averaged, in seconds from its first gradient: what overlaps with what."""
        return self.reducer.times

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        """How gradients are averaged, by the names that PyTorch's log has for it: sizes in bytes, switches as 0 and 1."""
        group, params = self.process_group, self.reducer.params
        return {
            "world_size": group.size(), "rank": group.rank(), "backend_name": group.name(), "module_name": type(self.module).__name__,
            "device_ids": ", ".join(map(str, self.device_ids or ())), "bucket_cap_bytes": self.bucket_bytes_cap,
            "num_parameter_tensors": len(params), "total_parameter_size_bytes": sum(p.nbytes for p in params),
            **{n: int(getattr(self, n)) for n in ("broadcast_buffers", "find_unused_parameters", "gradient_as_bucket_view", "static_graph")},
        }  # fmt: skip

    def register_comm_hook(self, state: object, hook: Callable[..., Any]) -> None:
        """Communicate gradients by `hook(state, bucket)`, which returns a Future of the bucket's tensor; it divides by the number of processes
        itself. Hooks of PyTorch's names are in distributed.algorithms.ddp_comm_hooks.default_hooks. Raises RuntimeError for a second hook."""
        if not callable(hook):
            raise TypeError(f"DistributedDataParallel.register_comm_hook: hook is {type(hook).__name__}; give a function (state, bucket)")
        if self.reducer.hook is not None:
            raise RuntimeError("DistributedDataParallel: register_comm_hook can only be called once; make a new wrapper for another hook")
        self.reducer.hook = (state, hook)

    # uneven numbers of batches
    def join(self, divide_by_initial_world_size: bool = True, enable: bool = True, throw_on_early_termination: bool = False) -> Join:
        """`with model.join():` around a loop of which processes have different numbers of steps: those that are through take part with nothing
        until all are. divide_by_initial_world_size=False divides by the processes that still have batches."""
        return Join([self], enable, throw_on_early_termination, divide_by_initial_world_size=divide_by_initial_world_size)

    def join_hook(self, **kwargs: Any) -> JoinHook:
        self.__dict__["divides_by_all"] = kwargs.get("divide_by_initial_world_size", True)
        return ReplicaJoin(self)

    @property
    def join_device(self) -> Any:
        return self.device

    @property
    def join_process_group(self) -> Any:
        return self.process_group

    @property
    def join_syncs(self) -> bool:
        return state.enabled and self.require_backward_grad_sync

    def joined_early(self, step: JoinStep) -> None:
        self.__dict__["join_step"] = step
        # PyTorch's default goes on dividing by all; this option weighs each remaining batch fully.
        if not self.divides_by_all:
            self.reducer.divide = step.active

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles hold the module and the settings; the group is the default one where they are made anew."""
        return {k: v for k, v in self.__dict__.items() if k not in ("process_group", "reducer", "device_mesh", "join_step", "_join_config")}

    def __setstate__(self, given: dict[str, Any]) -> None:
        self.__dict__.update(given)
        settings = {
            name: given[name]
            for name in (
                "device_ids", "output_device", "dim", "broadcast_buffers", "find_unused_parameters", "static_graph", "gradient_as_bucket_view"
            )
        }  # fmt: skip
        cap = self.bucket_bytes_cap / (1 << 20)
        DistributedDataParallel.__init__(self, given["_modules"]["module"], init_sync=False, bucket_cap_mb=cap, **settings)
        made = {name: self.__dict__[name] for name in ("process_group", "device_mesh", "reducer")}
        # __init__ has put the mode, hooks and what else the program has set back to their beginning.
        self.__dict__.update({**given, **made})


def _check_devices(module: Module, device_ids: Sequence[Any] | None) -> None:
    if device_ids is not None and len(device_ids) > 1:
        raise ValueError(f"DistributedDataParallel: device_ids {list(device_ids)}: a process has one device; give one, or None")
    devices = {p.device for p in module.parameters()}
    if device_ids and devices != {as_device(device_ids[0])}:
        raise ValueError(
            f"DistributedDataParallel: device_ids {list(device_ids)}, and the module's parameters are on {', '.join(sorted(map(str, devices)))}; "
            "move it there with .to(device), and give device_ids=None on the CPU"
        )
