"""Sound: features, filters and augmentation of waveforms (..., time), and WAV files, with torchaudio's names."""

from typing import Any

from tritensor.audio.wav import load as load
from tritensor.audio.wav import save as save

_ROOMS = ("functional", "transforms")


def __getattr__(name: str) -> Any:
    """A module of this package, imported when it is asked for."""
    if name in _ROOMS:
        import importlib

        return importlib.import_module(f"tritensor.audio.{name}")
    raise AttributeError(f"module 'tritensor.audio' has no attribute {name!r}; it has {', '.join(_ROOMS)}, load and save")


def __dir__() -> list[str]:
    return [*_ROOMS, "load", "save"]
