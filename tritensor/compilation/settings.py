"""Settings of one `compile`, which reports tell and a module keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Settings(NamedTuple):
    """What `compile` was given."""

    backend: str | Callable[..., Any] | None = None
    mode: str | None = None
    options: dict[str, Any] | None = None
    fullgraph: bool = False
    dynamic: bool | None = None
    name: str | None = None
