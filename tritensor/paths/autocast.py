"""What scripts ask and tell of autocast: it is off, as ops run in the types that they are given; the types it would cast to are kept."""

from __future__ import annotations

from typing import Any

from tritensor.device import as_device
from tritensor.dtypes import DType, as_dtype, bfloat16, float16
from tritensor.tensor.publishing.publish import checked

_types: dict[str, DType] = {}
_cache = True


def refuse(name: str) -> None:
    """Raise NotImplementedError: nothing is cast."""
    raise NotImplementedError(
        f"{name}: enabled is True, and ops run in the types that they are given; give enabled=False, or convert the model, as with model.bfloat16()"
    )


@checked
def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """False: ops run in the types that they are given. Raises for a device type that is none."""
    as_device(device_type)
    return False


@checked
def is_autocast_cpu_enabled() -> bool:
    """False: ops run in the types that they are given."""
    return False


@checked
def set_autocast_enabled(device_type: Any = "cuda", enabled: bool | None = None) -> None:
    """`set_autocast_enabled("cuda", False)` or `set_autocast_enabled(False)`: off, as it is. Raises NotImplementedError for True."""
    if device_type if enabled is None else enabled:
        refuse("set_autocast_enabled")


@checked
def set_autocast_cpu_enabled(enabled: bool) -> None:
    """Off, as it is. Raises NotImplementedError for True."""
    if enabled:
        refuse("set_autocast_cpu_enabled")


@checked
def get_autocast_dtype(device_type: str) -> DType:
    """The type that autocast would cast to: what set_autocast_dtype was given last, bfloat16 on the CPU and float16 elsewhere before."""
    return _type_on(as_device(device_type).type)


def _type_on(kind: str) -> DType:
    return _types.get(kind, bfloat16 if kind == "cpu" else float16)


@checked
def set_autocast_dtype(device_type: str, dtype: Any) -> None:
    """Name the type that autocast would cast to."""
    _types[as_device(device_type).type] = as_dtype(dtype)


@checked
def get_autocast_cpu_dtype() -> DType:
    """get_autocast_dtype("cpu")."""
    return _type_on("cpu")


@checked
def get_autocast_gpu_dtype() -> DType:
    """get_autocast_dtype("cuda")."""
    return _type_on("cuda")


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
    """What set_autocast_cache_enabled was given last; True before. There are no casts to keep either way."""
    return _cache


@checked
def set_autocast_cache_enabled(enabled: bool) -> None:
    """Accepted: there are no casts to keep."""
    global _cache
    _cache = bool(enabled)


@checked
def clear_autocast_cache() -> None:
    """Accepted: there are no casts to forget."""
