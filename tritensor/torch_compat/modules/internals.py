"""torch._C: of PyTorch's compiled half, the names that published programs reach for; torch.fx.wrap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from tritensor.cuda import current_stream
from tritensor.ground.device import device as device
from tritensor.ground.dtypes import float32
from tritensor.ground.errors import LinAlgError as _LinAlgError  # noqa: F401
from tritensor.ground.errors import OutOfMemoryError as _OutOfMemoryError  # noqa: F401
from tritensor.random import Generator as Generator
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.constructors import to_dlpack as to_dlpack
from tritensor.tensor.functions.types.storages import TypedStorage
from tritensor.tensor.overriding.protocol import ALL_DISABLED, setting
from tritensor.tensor.overriding.protocol import DisableTorchFunction as DisableTorchFunction
from tritensor.tensor.overriding.protocol import DisableTorchFunctionSubclass as DisableTorchFunctionSubclass
from tritensor.tensor.overriding.protocol import disabled_torch_dispatch as _disabled_torch_dispatch_impl  # noqa: F401
from tritensor.tensor.overriding.protocol import disabled_torch_function as _disabled_torch_function_impl  # noqa: F401
from tritensor.torch_dispatch.asking import DisableTorchDispatch as _DisableTorchDispatch  # noqa: F401
from tritensor.torch_dispatch.asking import below_autograd as _AutoDispatchBelowAutograd  # noqa: F401

_TensorMeta = type(Tensor)  # the class of the class Tensor, in annotations of what is one
CUDA_HOME = None  # torch.utils.cpp_extension: where nvcc stands; nothing is built here


class Type:
    """The class of the types that PyTorch's compiler has: programs name it in annotations, most in place of typing's. There are none here."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Type:
        raise TypeError("Type: nothing is compiled, so there are no types to make; in annotations of classes write typing.Type")


def wrap(fn_or_name: Any) -> Any:
    """torch.fx.wrap: a function that a tracer leaves whole; nothing is traced, so it comes back as it is."""
    if not isinstance(fn_or_name, str) and not callable(fn_or_name):
        raise RuntimeError(f"fx.wrap: {fn_or_name!r} is no function and no function's name")
    return fn_or_name


class _FloatStorageMeta(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, TypedStorage) and instance.dtype is float32


class Storage(metaclass=_FloatStorageMeta):
    """torch.Storage, PyTorch's oldest class of storages: isinstance knows those of float32 by it. Made by `tensor.storage()` alone."""

    def __new__(cls, *args: Any) -> NoReturn:
        raise TypeError("Storage: it is a name for isinstance; make a tensor, and ask it for its storage()")


def _get_tracing_state() -> None:
    """None: nothing is traced."""


def _cuda_getCurrentRawStream(device: int) -> int:
    """The address of the current stream of GPU `device`, 0 of the default one: what programs hand to libraries of kernels."""
    return current_stream(device).cuda_stream


def _log_api_usage_once(*_: Any) -> None:
    """Nothing is reported to anybody."""


def _is_torch_function_enabled() -> bool:
    """Whether the classes of arguments take functions over in this thread."""
    return not setting.level


def _is_torch_function_mode_enabled() -> bool:
    """Whether a mode takes functions over in this thread."""
    return bool(setting.modes) and setting.level != ALL_DISABLED


def _switch(name: str) -> Callable[[bool], bool]:
    def switch(value: bool) -> bool:
        """A switch of PyTorch's compiler, of which there is none here: says what it was."""
        before = _switches.get(name, False)  # scripts put the old value back
        _switches[name] = bool(value)
        return before

    switch.__name__ = switch.__qualname__ = name
    return switch


_switches: dict[str, bool] = {}
for _name in ("profiling_mode", "profiling_executor", "texpr_fuser_enabled", "nvfuser_enabled"):
    globals()[f"_jit_set_{_name}"] = _switch(f"_jit_set_{_name}")
for _name in ("fuse_on_cpu", "fuse_on_gpu"):
    globals()[f"_jit_override_can_{_name}"] = _switch(f"_jit_override_can_{_name}")


class Graph:
    """A graph of PyTorch's tracer, which programs name in annotations. Raises NotImplementedError when it is made."""

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"_C.{cls.__name__}: not in tritensor: nothing is traced; onnx.export records a model's ops")


class Value(Graph):
    """A value in such a graph. Raises NotImplementedError when it is made."""


class Node(Graph):
    """A node of such a graph. Raises NotImplementedError when it is made."""
