"""Autocast as scripts ask and set it through `tritensor`: whether it is on, and the types that it casts to."""

from __future__ import annotations

from typing import Any

from tritensor.dispatch.autocast import settings
from tritensor.ground.device import as_device
from tritensor.ground.dtypes import DType, as_dtype, bfloat16, float16
from tritensor.tensor.public_api.publish import checked


def _switch(device_type: Any, **what: Any) -> None:
    """Set something for a type of device; tritensor.amp is loaded now."""
    from tritensor.amp.autocast_mode import set_state

    set_state(_kind(device_type), **what)


# Types of devices that PyTorch's autocast serves and that are not here, with what it would cast to there.
_ELSEWHERE = {
    "hpu": bfloat16, "ipu": float16, "maia": bfloat16, "mps": float16, "mtia": float16, "privateuseone": float16, "xla": bfloat16, "xpu": float16,
}  # fmt: skip


def _kind(device_type: Any) -> str:
    """ "cuda" or "cpu". Raises for what is no type of device, or one that autocast does not serve."""
    if device_type in _ELSEWHERE:
        raise RuntimeError(f"autocast: a device of type {device_type!r} is not here, and nothing can be set for it; give 'cuda' or 'cpu'")
    kind = as_device(device_type).type
    if kind not in settings.enabled:
        raise RuntimeError(f"autocast: device_type {device_type!r} has no autocast; give 'cuda' or 'cpu'")
    return kind


@checked
def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether ops on a type of device are cast in this thread; False for one that is not here, "mps". Raises for a device type that is none."""
    return device_type not in _ELSEWHERE and settings.enabled[_kind(device_type)]


@checked
def is_autocast_cpu_enabled() -> bool:
    """is_autocast_enabled("cpu")."""
    return settings.enabled["cpu"]


@checked
def set_autocast_enabled(device_type: Any = "cuda", enabled: bool | None = None) -> None:
    """`set_autocast_enabled("cuda", True)` or `set_autocast_enabled(True)`: cast from now on, or do not. A context is safer: amp.autocast."""
    on = device_type if enabled is None else enabled
    kind = "cuda" if enabled is None else device_type
    if kind in _ELSEWHERE and not on:  # it is off there
        return
    if on or settings.enabled[_kind(kind)]:  # off where it is off already loads nothing
        _switch(kind, enabled=bool(on))


@checked
def set_autocast_cpu_enabled(enabled: bool) -> None:
    """set_autocast_enabled("cpu", enabled)."""
    set_autocast_enabled("cpu", enabled)


@checked
def get_autocast_dtype(device_type: str) -> DType:
    """The type that autocast casts to: what was set last, or before that bfloat16 on the CPU and float16 on a GPU."""
    if device_type in _ELSEWHERE:
        return _ELSEWHERE[device_type]
    found: DType = settings.types[_kind(device_type)]  # asked when it is wanted: a default may have been set since
    return found


@checked
def set_autocast_dtype(device_type: str, dtype: Any) -> None:
    """Name the type that autocast casts to."""
    settings.types[_kind(device_type)] = as_dtype(dtype)
    if settings.enabled[_kind(device_type)]:  # ops that are cast already have to hear of it
        settings.apply()


@checked
def get_autocast_cpu_dtype() -> DType:
    """get_autocast_dtype("cpu")."""
    return get_autocast_dtype("cpu")


@checked
def get_autocast_gpu_dtype() -> DType:
    """get_autocast_dtype("cuda")."""
    return get_autocast_dtype("cuda")


@checked
def set_autocast_cpu_dtype(dtype: Any) -> None:
    """set_autocast_dtype("cpu", dtype)."""
    set_autocast_dtype("cpu", dtype)


@checked
def set_autocast_gpu_dtype(dtype: Any) -> None:
    """set_autocast_dtype("cuda", dtype)."""
    set_autocast_dtype("cuda", dtype)


@checked
def is_autocast_cache_enabled() -> bool:
    """Whether autocast keeps the casts of weights; True unless set_autocast_cache_enabled changed it."""
    return settings.keeps


@checked
def set_autocast_cache_enabled(enabled: bool) -> None:
    """Let autocast keep the casts of weights, or not."""
    settings.keeps = bool(enabled)  # what was kept stays until clear_autocast_cache, as in PyTorch
    if any(settings.enabled.values()):
        settings.apply()


@checked
def clear_autocast_cache() -> None:
    """Forget the casts of weights that autocast has kept."""
    settings.kept.clear()
