"""autocast: products in 16 bits, what loses too much by them in float32; and decorators for a Function of one's own."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from tritensor import cuda
from tritensor.amp import policies
from tritensor.dispatch.autocast import settings
from tritensor.ground.dtypes import DType, as_dtype, bfloat16, float16
from tritensor.ground.thread_state import leave_path
from tritensor.tensor.core import Tensor

DEVICES = ("cpu", "cuda")


def require_device(who: str, device_type: Any) -> str:
    """A type of device that autocast serves. Raises ValueError for what is no string, RuntimeError for another device."""
    if not isinstance(device_type, str):
        raise ValueError(f"{who}: Expected `device_type` of type `str`, got: `{type(device_type).__name__}`; give 'cuda' or 'cpu'")
    if device_type not in DEVICES:
        raise RuntimeError(f"{who}: User specified an unsupported autocast device_type '{device_type}'; give 'cuda' or 'cpu'")
    return device_type


def is_autocast_available(device_type: str) -> bool:
    """Whether autocast serves a type of device: "cpu" and "cuda"."""
    return device_type in DEVICES


def set_state(device_type: str, enabled: bool | None = None, dtype: DType | None = None, keeps: bool | None = None) -> None:
    """Set what is given, for this thread, and let it hold."""
    leave_path()
    if enabled is not None:
        settings.enabled[device_type] = enabled
    if dtype is not None:
        settings.types[device_type] = dtype
    if keeps is not None:
        settings.keeps = keeps
    # Programs without autocast never load the lists: importing nn.functional and linalg takes time.
    if any(settings.enabled.values()):
        policies.install()
    settings.apply()


class autocast:
    """Inside, on tensors of a device type, products run in `dtype` (float16 on cuda, bfloat16 on cpu), and what is exact in float32 alone in that.

    `with autocast("cuda"):`, or a decorator. Results have the types that they were computed in; parameters stay as they are, their casts
    are kept until the outermost autocast ends. float64 is never touched. enabled=False turns it off inside another one. Run backward outside.

    Raises ValueError for a device_type that is no string, RuntimeError for one that is neither "cuda" nor "cpu".
    """

    def __init__(self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None) -> None:
        self.device = require_device("autocast", device_type)
        self.fast_dtype = settings.types[self.device] if dtype is None else as_dtype(dtype)
        # PyTorch's behaviour: a script written for a GPU runs on without one.
        if enabled and self.device == "cuda" and not cuda.is_available():
            warnings.warn("autocast: CUDA is not available. Disabling autocast.", UserWarning, stacklevel=2)
            enabled = False
        if enabled and self.device == "cpu" and self.fast_dtype not in (bfloat16, float16):
            warnings.warn(
                f"In CPU autocast, but the target dtype {self.fast_dtype.name} is not supported. Disabling autocast.\n"
                "CPU Autocast only supports dtypes of tritensor.bfloat16, tritensor.float16 currently.",
                stacklevel=2,
            )
            enabled = False
        self._enabled, self._cache_enabled = bool(enabled), settings.keeps if cache_enabled is None else bool(cache_enabled)
        self._before: list[tuple[bool, DType, bool]] = []

    def __enter__(self) -> autocast:
        self._before.append((settings.enabled[self.device], settings.types[self.device], settings.keeps))
        settings.nesting += 1
        set_state(self.device, self._enabled, self.fast_dtype, self._cache_enabled)
        return self

    def __exit__(self, *exc: object) -> None:
        settings.nesting -= 1
        # Kept casts are of parameters, which an optimizer's step may change after the block.
        if settings.nesting == 0:
            settings.kept = {}
        set_state(self.device, *self._before.pop())

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return call


def autocast_decorator(autocast_instance: autocast, func: Callable[..., Any]) -> Callable[..., Any]:
    """`autocast_instance(func)`."""
    return autocast_instance(func)


def _cast(value: Any, device_type: str, dtype: DType) -> Any:
    """Floating tensors of a device, but float64, in a type; inside lists, tuples and dictionaries, too."""
    if isinstance(value, Tensor):
        # float64 was asked for on purpose; PyTorch leaves it, too.
        takes = value.is_floating_point() and value.device.type == device_type and value.itemsize < 8
        return value.to(dtype) if takes else value
    if isinstance(value, dict):
        return {_cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)([_cast(v, device_type, dtype) for v in value])
    return value


def custom_fwd(fwd: Any = None, *, device_type: str, cast_inputs: Any = None) -> Any:
    """A decorator of a Function's forward. `cast_inputs`: under autocast its floating inputs are cast to that type, and nothing inside of it."""
    require_device("custom_fwd", device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(*args: Any, **kwargs: Any) -> Any:
        ctx, on = args[0], settings.enabled[device_type]
        ctx._dtype = settings.types[device_type]
        ctx._fwd_used_autocast = on and cast_inputs is None
        # Without autocast the inputs have their own types already.
        if cast_inputs is None or not on:
            return fwd(*args, **kwargs)
        dtype = as_dtype(cast_inputs)
        with autocast(device_type, enabled=False):
            return fwd(*_cast(args, device_type, dtype), **_cast(kwargs, device_type, dtype))

    return forward


def custom_bwd(bwd: Any = None, *, device_type: str) -> Any:
    """A decorator of a Function's backward, whose forward has custom_fwd: it runs under the autocast that forward ran under."""
    require_device("custom_bwd", device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(*args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, enabled=args[0]._fwd_used_autocast, dtype=args[0]._dtype):
            return bwd(*args, **kwargs)

    return backward
