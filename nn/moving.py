"""Moves and casts of a module: its parameters stay the same objects, so optimizers keep them; swap_tensors and PyTorch's flags choose otherwise."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from tritensor.autograd.modes import no_grad
from tritensor.autograd.node import version_of
from tritensor.ground import dtypes
from tritensor.ground.device import as_device
from tritensor.ground.device import device as Device
from tritensor.ground.dtypes import DType, as_dtype
from tritensor.ground.errors import DeviceError, DTypeError, MetaError
from tritensor.ground.naming.type_names import new_instance, own_name
from tritensor.ground.strides import as_format, preserve_format
from tritensor.ground.thread_state import run_waiting
from tritensor.nn.parameter import Parameter
from tritensor.ops.array import empty
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import rename_function

_flags = {"overwrite": False, "swap": False}


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Whether `module.to(...)`, `.half()`, `.cuda()` and their kin put new Parameters in the place of the old; without it the objects stay the same."""
    _flags["overwrite"] = bool(value)


def get_overwrite_module_params_on_conversion() -> bool:
    """What set_overwrite_module_params_on_conversion was given last; False before."""
    return _flags["overwrite"]


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Whether conversions and `load_state_dict` give a parameter new memory by `utils.swap_tensors`: its object stays, what shared its memory does not.

    It comes before set_overwrite_module_params_on_conversion.
    """
    _flags["swap"] = bool(value)


def get_swap_module_params_on_conversion() -> bool:
    """What set_swap_module_params_on_conversion was given last; False before."""
    return _flags["swap"]


_SLOTS = tuple(s for s in Tensor.__slots__ if s not in ("__dict__", "__weakref__"))


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Let two tensors exchange all that they are: values, type, device, class, attributes, gradient; each keeps its identity.

    A graph that saved one of them cannot go backward any more, and says so. Raises RuntimeError where that cannot be told apart from what others hold: a
    tensor that an op computed, a view or a tensor that has views, one that a weak reference points to, two of classes whose objects differ.
    """
    for name, t in (("t1", t1), ("t2", t2)):
        if not isinstance(t, Tensor):
            raise TypeError(f"swap_tensors: {name} is of type {type(t).__name__}; give two tensors")
        _refuse_held(name, t)
    one, other = _own_slots(type(t1)), _own_slots(type(t2))
    if one or other:
        raise RuntimeError(
            f"Cannot swap t1 and t2 if they have different slots: swap_tensors: {type(t1).__name__} has {one}, {type(t2).__name__} {other}; "
            "keep such values as plain attributes"
        )
    for t in (t1, t2):
        # a node that saved either of them then finds another version, and refuses to go backward with foreign values
        version_of(t).bump_loosely("swap_tensors")
    if type(t1) is not type(t2):
        t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    t1.__dict__, t2.__dict__ = t2.__dict__, t1.__dict__
    slots: Any = Tensor.__dict__  # by the slots themselves: an uninitialized parameter shows nobody its array
    for slot in _SLOTS:
        mine, theirs = slots[slot].__get__(t1), slots[slot].__get__(t2)
        slots[slot].__set__(t1, theirs)
        slots[slot].__set__(t2, mine)


def _own_slots(kind: type) -> list[str]:
    """Slots that a class of tensors has beside Tensor's."""
    return [s for base in kind.__mro__ if base not in Tensor.__mro__ for s in base.__dict__.get("__slots__", ())]


def _refuse_held(name: str, t: Tensor) -> None:
    if not t.is_leaf:
        raise RuntimeError(
            f"swap_tensors: {name} of shape {tuple(t.shape)} was computed by {t.grad_fn!r}, whose graph refers to it; give leaves, or detach() it"
        )
    if t._view_path is not None or (t._extra is not None and t._extra.views is not None and (t._extra.views.fresh or t._extra.views.stale)):
        what = "is a view" if t._view_path is not None else "has views that are alive"
        raise RuntimeError(
            f"swap_tensors: {name} of shape {tuple(t.shape)} {what}, which would show other memory than its base; clone() it"
        )
    run_waiting()  # which remembers tensors until their arrays are there
    if weakref.getweakrefs(t):
        raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it; swap_tensors: give up the weak reference first")


def _refuse_device(name: str) -> Any:
    def move(self: Any, device: Any = None) -> Any:
        raise DeviceError(f"Module.{name}: there is no device {name!r}; there are cpu and cuda, so use .cpu() or .cuda()")

    return rename_function(move, name, "Raises DeviceError: there is no such device.")


def _cast_to(name: str, kind: DType) -> Any:
    def cast(self: Movable) -> Any:
        return self._apply(lambda t: t.to(dtype=kind) if t.is_floating_point() else t)

    return rename_function(cast, name, f"Cast to {kind.name}, as `to` does.")


def parse_destination(
    *args: Any, device: Any = None, dtype: Any = None, non_blocking: bool = False
) -> tuple[Device | None, DType | None, bool]:
    """(device, type, non_blocking) that the arguments of a module's `to` mean; None where nothing is said."""
    for given in args:
        if isinstance(given, bool):
            non_blocking = given
        elif isinstance(given, Tensor):
            device, dtype = given.device, given.dtype
        elif isinstance(given, Device | int | str):
            device = given
        elif given is not None:
            dtype = given
    return None if device is None else as_device(device), None if dtype is None else as_dtype(dtype), non_blocking


class Movable:
    """The part of Module that moves it to a device and casts it."""

    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    children: Callable[[], Any]

    def __reduce_ex__(self, protocol: Any) -> Any:
        name = own_name(type(self))
        return super().__reduce_ex__(protocol) if name is type(self) else (new_instance, (name,), *super().__reduce_ex__(2)[2:])

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
                self._buffers[name] = fn(buffer)  # a new tensor, unlike a parameter: nobody but the module is expected to hold it
        return self

    def _convert_parameter(self, name: str, param: Any, moved: Tensor) -> Any:
        """A parameter with its new values: the same object, or a new one where `__future__` says so."""
        if get_swap_module_params_on_conversion() and moved is not param:
            try:
                swap_tensors(param, Parameter(moved, param.requires_grad))
            except RuntimeError as e:
                raise RuntimeError(f"_apply(): Couldn't swap {type(self).__name__}.{name}: {e}") from e
        elif param.is_meta != moved.is_meta and hasattr(param, "as_part"):  # a shard stays the object that its group of parameters holds
            param._set_array(moved._array)
        # as PyTorch: what has no memory and what has are two kinds of tensors, and neither becomes the other
        elif get_overwrite_module_params_on_conversion() or param.is_meta != moved.is_meta:
            return Parameter(moved, param.requires_grad)
        else:
            param.data = moved
        return param

    def to(self, *args: Any, device: Any = None, dtype: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Any:
        """Move and cast in place: to(device), to(dtype), to(device, dtype), to(tensor). Only floating and complex members are cast.

        `non_blocking` as in Tensor.to. `memory_format` is that of members of as many dimensions as it orders. Returns self.
        """
        target, kind, non_blocking = parse_destination(*args, device=device, dtype=dtype, non_blocking=non_blocking)
        wanted = as_format("Module.to", memory_format, preserve_format)  # before anything moves: a wrong word leaves the module as it was
        # parameters want gradients, which integers have none of
        if kind is not None and kind.kind not in ("float", "float8", "complex"):
            raise DTypeError(f"to: {kind} is not a floating or complex type; cast modules to float16, bfloat16, float32 or float64")

        def convert(t: Tensor) -> Tensor:
            cast = kind if kind is not None and (t.is_floating_point() or t.is_complex()) else None
            # channels_last is of images: a bias or a Linear's weight has no such order, and stays as it is
            laid = wanted if wanted.order is None or t.ndim == len(wanted.order) else preserve_format
            # the same object: an integer buffer keeps its identity under .to(float16)
            if target is None and cast is None and laid is preserve_format:
                return t
            there = t.device if target is None else target
            if t.is_meta and there.type != "meta":
                raise MetaError(
                    f"Module.to: a member of shape {tuple(t.shape)} is on device meta and has no values to copy to {there}; use "
                    f"to_empty(device={str(there)!r}) and initialise it, or load_state_dict(..., assign=True)"
                )
            return t.to(device=there, dtype=t.dtype if cast is None else cast, non_blocking=non_blocking, memory_format=laid)

        return self._apply(convert)

    def cuda(self, device: Any = None) -> Any:
        """Move to a GPU, the current one unless given, as `to` does."""
        return Movable.to(self, device="cuda" if device is None else device)  # a class's own `to` may be made of these

    def cpu(self) -> Any:
        """Move to the CPU, as `to` does."""
        return Movable.to(self, device="cpu")

    def type(self, dst_type: DType) -> Any:
        """Cast every parameter and buffer, integer ones too."""
        return self._apply(lambda t: t.to(dst_type))  # all: PyTorch's type() asks no dtype before

    float, double = _cast_to("float", dtypes.float32), _cast_to("double", dtypes.float64)
    half, bfloat16 = _cast_to("half", dtypes.float16), _cast_to("bfloat16", dtypes.bfloat16)

    def to_empty(self, *, device: Any, recurse: bool = True) -> Any:
        """Move to a device without values: parameters and buffers there are new memory, uninitialised. Returns self."""
        target = as_device(device)

        return self._apply(lambda t: Tensor.wrap(empty(tuple(t.shape), t.dtype.numpy, target)), recurse)

    def share_memory(self) -> Any:
        """Tensor.share_memory_ of every parameter, its gradient, and every buffer. Returns self."""
        module: Any = self
        for t in [*module.parameters(), *module.buffers()]:  # once each, also what several modules share
            t.share_memory_()
            if t.grad is not None:
                t.grad.share_memory_()
        return self

    xpu, ipu, mtia = (_refuse_device(name) for name in ("xpu", "ipu", "mtia"))
