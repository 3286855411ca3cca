"""Testing: `assert_close` and `make_tensor` as PyTorch's; `check`, `check_kernel`, `sabotage` and `ask` for authors of ops and kernels."""

import importlib
from typing import TYPE_CHECKING
from typing import Any as _Any

from tritensor.testing.comparison import assert_close as assert_close
from tritensor.testing.random_tensors import make_tensor as make_tensor

if TYPE_CHECKING:
    from tritensor.testing.kernel_check import check_kernel as check_kernel
    from tritensor.testing.op_check import check as check
    from tritensor.testing.op_check import findings as findings
    from tritensor.testing.planted_faults import sabotage as sabotage
    from tritensor.testing.pytest_tests import ask as ask

__all__ = ["ask", "assert_close", "check", "check_kernel", "findings", "make_tensor", "sabotage"]

# Loaded when they are first asked for: a script that compares two tensors loads neither the questions nor Triton.
_LATE = {
    "ask": "tritensor.testing.pytest_tests",
    "check": "tritensor.testing.op_check",
    "findings": "tritensor.testing.op_check",
    "check_kernel": "tritensor.testing.kernel_check",
    "sabotage": "tritensor.testing.planted_faults",
}


def __getattr__(name: str) -> _Any:
    if name not in _LATE:
        raise AttributeError(f"module 'tritensor.testing' has no attribute {name!r}")
    found = getattr(importlib.import_module(_LATE[name]), name)
    globals()[name] = found
    return found
