"""DistributedDataParallel for the one process that a group has: the module runs as it is; there is no gradient to average with another's."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tritensor.device import as_device
from tritensor.distributed.process_group import joined
from tritensor.nn.module import Module
from tritensor.nn.parallel import gather, scatter_kwargs


class DistributedDataParallel(Module):
    """A module around `module`, as training on several processes wraps it: its state_dict has PyTorch's keys (`module.weight`).

    Gradients of one process are their own average. Settings of buckets and buffers are kept and change nothing.

    Raises:
        ValueError: no process group (call init_process_group first); device_ids that name more than one device.
        RuntimeError: a module without a parameter that takes gradients; parameters on several devices.
    """

    def __init__(
        self, module: Module, device_ids: Sequence[Any] | None = None, output_device: Any = None, dim: int = 0, broadcast_buffers: bool | None = None,
        init_sync: bool = True, process_group: Any = None, bucket_cap_mb: float | None = None, find_unused_parameters: bool = False,
        check_reduction: bool = False, gradient_as_bucket_view: bool = False, static_graph: bool = False,
        delay_all_reduce_named_params: Any = None, param_to_hook_all_reduce: Any = None, mixed_precision: Any = None,
        device_mesh: Any = None, skip_all_reduce_unused_params: bool = False, bucket_cap_mb_list: Sequence[float] | None = None,
        batched_grad_copy: bool = False, forward_sync_buffers: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.process_group = joined("DistributedDataParallel", process_group)
        if mixed_precision is not None or device_mesh is not None:
            raise NotImplementedError("DistributedDataParallel: mixed_precision and device_mesh are not in tritensor; leave them out")
        learned = [p for p in module.parameters() if p.requires_grad]
        if not learned:
            raise RuntimeError("DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient")
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError(f"DistributedDataParallel: device_ids {list(device_ids)}: a process has one device; give one, or None")
        devices = {p.device for p in module.parameters()}
        if device_ids and devices != {as_device(device_ids[0])}:
            raise ValueError(
                f"DistributedDataParallel: device_ids {list(device_ids)}, and the module's parameters are on {', '.join(sorted(map(str, devices)))}; "
                "move it there with .to(device), and give device_ids=None on the CPU"
            )
        self.module, self.device_ids, self.output_device, self.dim = module, device_ids, output_device, dim
        self.device, self.device_type = learned[0].device, learned[0].device.type
        if broadcast_buffers is None:
            broadcast_buffers = True if forward_sync_buffers is None else bool(forward_sync_buffers)
        self.broadcast_buffers, self.find_unused_parameters = broadcast_buffers, find_unused_parameters
        self.gradient_as_bucket_view, self.static_graph = gradient_as_bucket_view, static_graph
        self.require_backward_grad_sync = True

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)

    def scatter(self, inputs: Any, kwargs: Any, device_ids: Sequence[Any]) -> Any:
        return scatter_kwargs(inputs, kwargs, device_ids, self.dim)

    def to_kwargs(self, inputs: Any, kwargs: Any, device_id: Any) -> Any:
        return scatter_kwargs(inputs, kwargs, [device_id], self.dim)

    def gather(self, outputs: Sequence[Any], output_device: Any) -> Any:
        return gather(outputs, output_device, self.dim)

    def will_sync_module_buffers(self) -> bool:
        """False: there is no other process whose buffers could differ."""
        return False

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Inside, gradients are not averaged but accumulated, as steps of gradient accumulation ask."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    @contextlib.contextmanager
    def join(
        self, divide_by_initial_world_size: bool = True, enable: bool = True, throw_on_early_termination: bool = False
    ) -> Iterator[None]:
        """For uneven numbers of batches: among one process they are even."""
        yield

    def register_comm_hook(self, state: object, hook: Callable[..., Any]) -> None:
        """Raises NotImplementedError: nothing is communicated that a hook could change."""
        raise NotImplementedError(
            "DistributedDataParallel.register_comm_hook: gradients of one process are not communicated; leave the hook out"
        )
