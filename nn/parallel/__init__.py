"""Models on several devices, as far as one process with one device goes: DataParallel and the functions that it is made of in PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritensor.ground.device import as_device
from tritensor.nn.module import Module
from tritensor.tensor.core import Tensor


def _refuse_several_devices(name: str, devices: Any) -> None:
    if isinstance(devices, Sequence) and not isinstance(devices, str) and len(devices) > 1:  # "cuda" has a length, and is one device
        raise NotImplementedError(f"{name}: {len(devices)} devices; a batch is not split over devices, give one or none")


class DataParallel(Module):
    """A module around `module`, which runs every batch on the one device that its parameters are on.

    Results and state_dict keys (`module.weight`) are PyTorch's, which splits a batch over several GPUs; this does not split.

    Raises NotImplementedError for more than one of device_ids.
    """

    def __init__(self, module: Module, device_ids: Sequence[Any] | None = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        _refuse_several_devices("DataParallel", device_ids)
        self.module = module  # under this name: state_dict keys begin with `module.`, as in files of PyTorch's
        self.device_ids = list(device_ids or ())
        self.output_device, self.dim = output_device, dim

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)

    def replicate(self, module: Module, device_ids: Sequence[Any]) -> list[Module]:
        """The module for each of the devices: itself, for its one."""
        return replicate(module, device_ids)

    def scatter(self, inputs: Any, kwargs: Any, device_ids: Sequence[Any]) -> Any:
        """The arguments in parts, one for each device: there is one."""
        return scatter_kwargs(inputs, kwargs, device_ids, self.dim)

    def gather(self, outputs: Sequence[Any], output_device: Any) -> Any:
        """The outputs of all devices joined on one: there is one."""
        return gather(outputs, output_device, self.dim)

    def parallel_apply(self, replicas: Sequence[Module], inputs: Sequence[Any], kwargs: Any) -> list[Any]:
        """What the modules give for their parts of the arguments."""
        return parallel_apply(replicas, inputs, kwargs)


def data_parallel(
    module: Module, inputs: Any, device_ids: Sequence[Any] | None = None, output_device: Any = None, dim: int = 0, module_kwargs: Any = None
) -> Any:
    """module(*inputs, **module_kwargs) on its one device. Raises NotImplementedError for more than one of device_ids."""
    _refuse_several_devices("data_parallel", device_ids)
    return module(*(inputs if isinstance(inputs, tuple) else (inputs,)), **(module_kwargs or {}))


def replicate(network: Module, devices: Sequence[Any], detach: bool = False) -> list[Module]:
    """The module itself, for its one device."""
    _refuse_several_devices("replicate", devices)
    return [network]


def _move(x: Any, to: Any) -> Any:
    """Tensors in nested tuples, lists and dicts on a device."""
    if isinstance(x, Tensor):
        return x.to(device=to)
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*[_move(v, to) for v in x])  # a named tuple's constructor wants its fields one by one
    if isinstance(x, tuple | list):
        return type(x)(_move(v, to) for v in x)
    return {k: _move(v, to) for k, v in x.items()} if isinstance(x, dict) else x


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """The inputs as the one part that one device gets, on it."""
    _refuse_several_devices("scatter", target_gpus)
    return [_move(inputs, as_device(target_gpus[0]))]


def scatter_kwargs(inputs: Any, kwargs: Any, target_gpus: Sequence[Any], dim: int = 0) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Arguments by place and by keyword as the one part that one device gets: (args,), (kwargs,)."""
    return tuple(scatter(tuple(inputs or ()), target_gpus, dim)), tuple(scatter(dict(kwargs or {}), target_gpus, dim))


def get_a_var(obj: Any) -> Tensor | None:
    """The first tensor in nested lists, tuples and dicts; None where there is none."""
    if isinstance(obj, Tensor):
        return obj
    inside = obj.items() if isinstance(obj, dict) else obj if isinstance(obj, list | tuple) else ()  # pairs: PyTorch looks into keys, too
    return next((t for t in map(get_a_var, inside) if t is not None), None)


def gather(outputs: Sequence[Any], target_device: Any, dim: int = 0) -> Any:
    """The one device's output, on the target device."""
    _refuse_several_devices("gather", outputs)
    # DataParallel without output_device: it stays where the module is
    return outputs[0] if target_device is None else _move(outputs[0], as_device(target_device))


def parallel_apply(
    modules: Sequence[Module], inputs: Sequence[Any], kwargs_tup: Any = None, devices: Sequence[Any] | None = None
) -> list[Any]:
    """[module(*inputs)] of the one module."""
    _refuse_several_devices("parallel_apply", modules)
    given = inputs[0] if isinstance(inputs[0], tuple | list) else (inputs[0],)
    return [modules[0](*given, **(kwargs_tup[0] if kwargs_tup else {}))]
