"""`skip_init`: a layer whose parameters are not initialised."""

from __future__ import annotations

import inspect
from typing import Any

from tritensor.nn.module import Module
from tritensor.random import fork_rng


def skip_init(module_cls: type[Module], *args: Any, **kwargs: Any) -> Any:
    """module_cls(*args, **kwargs), its parameters and buffers holding anything, and no random number drawn for them.

    Raises RuntimeError for a class that is no module, or takes no `device`.
    """
    if not (isinstance(module_cls, type) and issubclass(module_cls, Module)):
        raise RuntimeError(f"skip_init: Expected a Module; got {module_cls}; give its class")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError(f"skip_init: Module must support a 'device' arg to skip initialization; {module_cls.__name__} has none")
    with fork_rng():  # the constructor draws all the same; the program's generators go on as if it had not
        return module_cls(*args, **kwargs)
