"""torchvision.transforms.transforms: every transform under the path that older scripts import from."""

from typing import Any

from tritensor.vision import transforms


def __getattr__(name: str) -> Any:
    """The transform of the name. Raises AttributeError where there is none."""
    if name.startswith("_") or not hasattr(transforms, name):  # Python asks modules for dunder names, too
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(transforms, name)


def __dir__() -> list[str]:
    return sorted(n for n in dir(transforms) if n[:1].isupper())
