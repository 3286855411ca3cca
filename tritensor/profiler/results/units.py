"""Units of figures: times, bytes, counts as text."""

from __future__ import annotations

from typing import Any

UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0}


def format_time(microseconds: float, unit: str | None = None) -> str:
    """A time as it reads best: 12.345us, 1.234ms, 1.234s."""
    if unit is None:
        unit = "s" if microseconds >= 1e6 else "ms" if microseconds >= 1e3 else "us"
    return f"{microseconds / UNITS[unit]:.3f}{unit}"


def format_bytes(nbytes: int) -> str:
    """Bytes: 512 B, 1.50 KB, -3.00 MB."""
    n, sign = abs(nbytes), "-" if nbytes < 0 else ""
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if n >= size:
            return f"{sign}{n / size:.2f} {unit}"
    return f"{sign}{n} B"


def format_count(n: float) -> str:
    """A large number with its unit: 480, 1.23 K, 4.56 G."""
    for unit, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("K", 1e3)):
        if n >= size:
            return f"{n / size:.2f} {unit}"
    return str(int(n))


def _as_text(name: str) -> Any:
    return property(lambda self: format_time(getattr(self, name)), doc=f'{name} with its unit, such as "1.234ms".')


class Texts:
    """The times of an event as text, under PyTorch's names."""

    __slots__ = ()
    cpu_time_str = _as_text("cpu_time")
    cpu_time_total_str = _as_text("cpu_time_total")
    self_cpu_time_total_str = _as_text("self_cpu_time_total")
    device_time_str = _as_text("device_time")
    device_time_total_str = _as_text("device_time_total")
    self_device_time_total_str = _as_text("self_device_time_total")
