"""functorch: the transforms of `func` under the name that they had as a package, and modules as functions of their parameters."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from tritensor import func
from tritensor.torch_compat.modules.functorch import make_functional as _made
from tritensor.torch_compat.modules.functorch.make_functional import FunctionalModule as FunctionalModule
from tritensor.torch_compat.modules.functorch.make_functional import FunctionalModuleWithBuffers as FunctionalModuleWithBuffers

__all__ = [
    "FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd",
    "jacrev", "jvp", "make_functional", "make_functional_with_buffers", "vjp", "vmap",
]  # fmt: skip


def _warned(old: str, new: str, function: Callable[..., Any]) -> Any:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(f"functorch.{old} is deprecated, in PyTorch too; write torch.func.{new}", FutureWarning, stacklevel=2)
        return function(*args, **kwargs)

    return call


vmap, grad, grad_and_value = (_warned(n, n, getattr(func, n)) for n in ("vmap", "grad", "grad_and_value"))
vjp, jvp, jacrev = (_warned(n, n, getattr(func, n)) for n in ("vjp", "jvp", "jacrev"))
jacfwd, hessian, functionalize = (_warned(n, n, getattr(func, n)) for n in ("jacfwd", "hessian", "functionalize"))
make_functional = _warned("make_functional", "functional_call", _made.make_functional)
make_functional_with_buffers = _warned("make_functional_with_buffers", "functional_call", _made.make_functional_with_buffers)
combine_state_for_ensemble = _warned("combine_state_for_ensemble", "stack_module_state", _made.combine_state_for_ensemble)
