"""Forward-mode derivatives by hand, as `torch.autograd.forward_ad`: tensors that carry a tangent, while a level lasts.

The tensors stay in the graph: backward through what is computed of them gives gradients that carry tangents themselves.
"""

from __future__ import annotations

from contextlib import ContextDecorator
from typing import Any, NamedTuple

from tritensor.autograd import engine
from tritensor.autograd.modes import state
from tritensor.autograd.node import Node, version_of
from tritensor.func.forward import check_tangent
from tritensor.func.wrapping import below, dual, level_of, settle
from tritensor.ground.errors import GradError, TransformError
from tritensor.ground.pytree import described
from tritensor.ground.transforms import JVP, Level
from tritensor.ops.table import registry
from tritensor.tensor.core import Tensor

_levels: list[Level] = []


class UnpackedDualTensor(NamedTuple):
    """A tensor's two parts: the primal, and the tangent or None."""

    primal: Any
    tangent: Any


def enter_dual_level() -> int:
    """Begin a level; returns its number, 0. Raises TransformError inside another, which would mix the tangents of the two."""
    if _levels:
        raise TransformError(
            "enter_dual_level: a level is entered already and levels do not nest; use func.jvp for derivatives of derivatives"
        )
    level = Level(JVP, state.enabled)
    level.open = True  # what is not of this level is in its graph as well: backward goes through the tensors outside
    _levels.append(level.__enter__())
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """End the level; the tangents of all its tensors are forgotten. Raises TransformError where there is none, or for another number than 0."""
    if not _levels:
        raise TransformError("exit_dual_level: no level is entered; call enter_dual_level, or use `with dual_level():`")
    if level not in (None, 0):
        raise TransformError(f"exit_dual_level: level {level} is not the one that was entered last, 0; leave level out")
    _levels.pop().__exit__()


class dual_level(ContextDecorator):
    """`with dual_level():` tensors made by make_dual inside carry their tangents through what is computed of them."""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exc: object) -> None:
        exit_dual_level()

    def clone(self) -> dual_level:
        """Another one."""
        return type(self)()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A view of a tensor that carries a tangent of its shape and type.

    Raises TransformError outside a level and for a tensor that carries a tangent of it, TypeError, ShapeError or DTypeError for a tangent that
    does not fit, GradError for integers.
    """
    here = _current_level("make_dual", level)
    check_tangent("make_dual", tensor, tangent)
    if tensor.dtype.kind not in ("float", "complex"):
        raise GradError(f"make_dual: {tensor.dtype.name} has no derivatives; convert with .float() first")
    tensor = settle(tensor)
    if level_of(tensor) is here and tensor._array.tangent is not None:
        raise TransformError(
            "make_dual: the tensor carries a tangent of this level already; take unpack_dual(tensor).primal, or add the two tangents"
        )
    made = dual(tensor, here, settle(tangent), (tensor,))
    made._version_counter = version_of(tensor)  # a view: writes to one are seen by the other
    if tensor._tracked and state.enabled:  # the dual is a step behind the tensor, so that its gradient reaches it
        node = Node(registry["copy"], (engine.edge_of(tensor),), None, None, {}, ((tensor._array.shape, tensor._array.dtype),))
        made._set_node(node)
    return made


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The primal and the tangent of a tensor; the tangent is None for one that carries none, and outside a level."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"unpack_dual: tensor is {described(tensor)}; give a tensor")
    if not _levels:
        return UnpackedDualTensor(settle(tensor), None)
    here = _current_level("unpack_dual", level)
    if level_of(tensor) is not here:
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(below(tensor, here), tensor._array.tangent)


def _current_level(name: str, level: int | None) -> Level:
    if not _levels:
        raise TransformError(f"{name}: no level is entered, so there is nothing for a tangent to last in; use `with dual_level():`")
    if level not in (None, 0):
        raise TransformError(f"{name}: level {level} is not entered; the only one is 0, leave level out")
    return _levels[-1]


def _is_fwd_grad_enabled() -> bool:
    """True: forward mode has no switch of its own."""
    return True
