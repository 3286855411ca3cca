"""Results of a Function of the user: at their node, an input that comes out again as a view of it, what was written in place."""

from __future__ import annotations

import numpy as np

from tritensor.autograd import node as nodes
from tritensor.autograd.modes import state
from tritensor.autograd.node import Node, version_of
from tritensor.ground import shortcuts
from tritensor.ops.table import ops, registry
from tritensor.tensor.aliasing.views import is_write_recorded, mark_views_stale, rebase_history, refuse_write
from tritensor.tensor.core import Tensor, ensure_extra, new_output, new_tensor

OFF = False  # see ground/shortcuts.py
shortcuts.read_by(globals())


def view_of(x: Tensor) -> Tensor:
    """The same memory as another tensor, one that must not be written in the graph."""
    y: Tensor
    array = x._array
    if type(array) is np.ndarray and not OFF:
        y = new_tensor(array.view())
        y._layout, y._version_counter = x._layout, version_of(x)
        y._record_view_of(x, (registry["reshape"], {"shape": array.shape}, ((array.shape, array.dtype),)), False)
    else:
        before, state.enabled = state.enabled, False  # as no_grad() does
        try:
            y = ops.reshape(x, shape=array.shape)
        finally:
            state.enabled = before
    ensure_extra(y).origin = "function"
    return y


def refuse_dirty(x: Tensor, who: str) -> None:
    """Raise GradError for a tensor in the graph that cannot be written, but a Function wrote."""
    if is_write_recorded(x):
        refuse_write(x, who)


def hang_written(x: Tensor, node: Node, who: str) -> None:
    """Hang a tensor that a Function wrote, its base and its views at the Function's node."""
    refuse_write(x, who)  # a constant view, too, that enters the graph here
    if x._view_path is not None:
        # A write through a view changes its base: the base's history gets the Function's node too.
        rebase_history(x, new_output(x._array, node), who)
    else:
        x._set_node(node)
        mark_views_stale(x)


def hang_result(x: Tensor, node: Node, several: bool) -> Tensor:
    """Hang what a Function made at its node; a view, whatever it is of, cannot be written any more."""
    x._set_node(node)
    if x._view_path is not None:
        ensure_extra(x).origin = "parts" if several else "function"
    return x


nodes.view_of, nodes.refuse_dirty = view_of, refuse_dirty  # type: ignore[assignment]
nodes.hang_written, nodes.hang_result = hang_written, hang_result  # type: ignore[assignment]
