"""Images: data sets, transforms, files, with torchvision's names. Images are PIL's, or tensors (..., channels, height, width)."""

from typing import Any

_ROOMS = ("datasets", "io", "models", "ops", "transforms", "tv_tensors", "utils")


def __getattr__(name: str) -> Any:
    """A module of this package, imported when it is asked for."""
    if name in _ROOMS:  # few programs use all; Pillow and the data sets' network code take a while to load
        import importlib

        return importlib.import_module(f"tritensor.vision.{name}")
    raise AttributeError(f"module 'tritensor.vision' has no attribute {name!r}; it has {', '.join(_ROOMS)}")


def __dir__() -> list[str]:
    return [*_ROOMS, "get_image_backend", "set_image_backend"]


def get_image_backend() -> str:
    """The package that reads images: "PIL"."""
    return "PIL"


def set_image_backend(backend: str) -> None:
    """Accepts "PIL", the one there is. Raises ValueError for another."""
    if backend != "PIL":
        raise ValueError(f"set_image_backend: {backend!r}; images are read by PIL here")
