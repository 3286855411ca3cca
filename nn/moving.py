"""Moves and casts of a module: its parameters stay the same objects, so optimizers keep them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tritensor.autograd.modes import no_grad
from tritensor.ground.device import as_device
from tritensor.ground.device import device as Device
from tritensor.ground.dtypes import DType, as_dtype, bfloat16, float16, float32, float64
from tritensor.ground.errors import DeviceError, DTypeError
from tritensor.ground.strides import as_format, preserve_format
from tritensor.nn.conversion import get_overwrite_module_params_on_conversion, get_swap_module_params_on_conversion, swap_tensors
from tritensor.nn.parameter import Parameter
from tritensor.ops.array import empty
from tritensor.tensor.core import Tensor


class Movable:
    """The part of Module that moves it to a device and casts it."""

    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    children: Callable[[], Any]

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        for module in self.children() if recurse else ():
            module._apply(fn)
        with no_grad():
            for name, param in self._parameters.items():
                if param is not None:
                    grad = param.grad
                    moved, moved_grad = fn(param.detach()), None if grad is None else fn(grad.detach())
                    if grad is not None:
                        param.grad = None  # a gradient has its parameter's type and device at all times
                    self._parameters[name] = new = self._convert_parameter(name, param, moved)
                    if grad is not None:
                        if new is param:
                            grad.data = moved_grad  # who holds the gradient goes on holding it
                        else:
                            new.grad = moved_grad
                        param.grad = grad
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def _convert_parameter(self, name: str, param: Any, moved: Tensor) -> Any:
        """A parameter with its new values: the same object, or a new one where `__future__` says so."""
        if get_swap_module_params_on_conversion() and moved is not param:
            try:
                swap_tensors(param, Parameter(moved, param.requires_grad))
            except RuntimeError as e:
                raise RuntimeError(f"_apply(): Couldn't swap {type(self).__name__}.{name}: {e}") from e
        elif get_overwrite_module_params_on_conversion():
            return Parameter(moved, param.requires_grad)
        else:
            param.data = moved
        return param

    def to(self, *args: Any, device: Any = None, dtype: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Any:
        """Move and cast in place: to(device), to(dtype), to(device, dtype), to(tensor). Only floating and complex members are cast.

        `non_blocking` as in Tensor.to. `memory_format` is that of members of as many dimensions as it orders. Returns self.
        """
        for given in args:
            if isinstance(given, bool):
                non_blocking = given
            elif isinstance(given, Tensor):
                device, dtype = given.device, given.dtype
            elif isinstance(given, Device | int | str):
                device = given
            elif given is not None:
                dtype = given
        wanted = as_format("Module.to", memory_format, preserve_format)
        target = None if device is None else as_device(device)
        kind = None if dtype is None else as_dtype(dtype)
        # parameters want gradients, which integers have none of
        if kind is not None and kind.kind not in ("float", "complex"):
            raise DTypeError(f"to: {kind} is not a floating or complex type; cast modules to float16, bfloat16, float32 or float64")

        def convert(t: Tensor) -> Tensor:
            cast = kind if kind is not None and (t.is_floating_point() or t.is_complex()) else None
            # channels_last is of images: a bias or a Linear's weight has no such order, and stays as it is
            laid = wanted if wanted.order is None or t.ndim == len(wanted.order) else preserve_format
            # the same object: an integer buffer keeps its identity under .to(float16)
            if target is None and cast is None and laid is preserve_format:
                return t
            there = t.device if target is None else target
            return t.to(device=there, dtype=t.dtype if cast is None else cast, non_blocking=non_blocking, memory_format=laid)

        return self._apply(convert)

    def cuda(self, device: Any = None) -> Any:
        """Move to a GPU, the current one unless given, as `to` does."""
        return self.to(device="cuda" if device is None else device)

    def cpu(self) -> Any:
        """Move to the CPU, as `to` does."""
        return self.to(device="cpu")

    def type(self, dst_type: DType) -> Any:
        """Cast every parameter and buffer, integer ones too."""
        return self._apply(lambda t: t.to(dst_type))

    def _cast_floats(self, dtype: DType) -> Any:
        return self._apply(lambda t: t.to(dtype=dtype) if t.is_floating_point() else t)

    def float(self) -> Any:
        """Cast to float32, as `to` does."""
        return self._cast_floats(float32)

    def double(self) -> Any:
        """Cast to float64, as `to` does."""
        return self._cast_floats(float64)

    def half(self) -> Any:
        """Cast to float16, as `to` does."""
        return self._cast_floats(float16)

    def bfloat16(self) -> Any:
        """Cast to bfloat16, as `to` does."""
        return self._cast_floats(bfloat16)

    def to_empty(self, *, device: Any, recurse: bool = True) -> Any:
        """Move to a device without values: parameters and buffers there are new memory, uninitialised. Returns self."""
        target = as_device(device)

        def emptied(t: Tensor) -> Tensor:
            return Tensor.wrap(empty(tuple(t.shape), t.dtype.numpy, target))

        return self._apply(emptied, recurse)

    def share_memory(self) -> Any:
        """Tensor.share_memory_ of every parameter, its gradient, and every buffer. Returns self."""
        module: Any = self
        for t in [*module.parameters(), *module.buffers()]:
            t.share_memory_()
            if t.grad is not None:
                t.grad.share_memory_()
        return self

    def xpu(self, device: Any = None) -> Any:
        """Raises DeviceError: there is no such device."""
        raise self._no_such("xpu")

    def ipu(self, device: Any = None) -> Any:
        """Raises DeviceError: there is no such device."""
        raise self._no_such("ipu")

    def mtia(self, device: Any = None) -> Any:
        """Raises DeviceError: there is no such device."""
        raise self._no_such("mtia")

    @staticmethod
    def _no_such(name: str) -> DeviceError:
        return DeviceError(f"Module.{name}: there is no device {name!r}; there are cpu and cuda, so use .cpu() or .cuda()")
