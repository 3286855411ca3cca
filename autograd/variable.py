"""autograd.Variable: what old programs wrap tensors in, and ask of objects whether they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tritensor.autograd import node as nodes
from tritensor.autograd.engine import tensors_of
from tritensor.autograd.modes import state
from tritensor.ground.errors import GradError


class VariableMeta(type):
    """Tensors are Variables."""

    def __instancecheck__(cls, other: object) -> bool:
        return hasattr(other, "_tracked") and hasattr(other, "_array")


class _Engine:
    """What programs reach as Variable._execution_engine."""

    @staticmethod
    def queue_callback(call: Callable[[], Any]) -> None:
        """Call this when the backward that runs in this thread has ended. Raises GradError outside of one."""
        if state.task is None:
            raise GradError("queue_callback: no backward runs in this thread; call it from a hook")
        state.task.at_end(call)


class Variable(metaclass=VariableMeta):
    """`Variable(data, requires_grad=False)`: a leaf on data's memory. A tensor itself does the same since."""

    _execution_engine = _Engine

    def __new__(cls, data: Any, requires_grad: bool = False, volatile: bool = False) -> Any:
        t = nodes.make_tensor(tensors_of("Variable", "data", data)[0]._array)
        return t.requires_grad_() if requires_grad else t
