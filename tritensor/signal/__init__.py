"""Signals: `signal.windows`."""

from tritensor.signal import windows as windows

__all__ = ["windows"]
