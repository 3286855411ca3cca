"""Attributes that few tensors have: hooks, the live views of a base, and why a view must not be written."""

from __future__ import annotations

import weakref
from typing import Any

from tritensor.autograd.hooks import Hooks
from tritensor.autograd.node import Severed
from tritensor.ground import dtypes
from tritensor.ground.errors import GradError
from tritensor.ground.process import locks


class LiveViews:
    """The live views of a base, by id: `fresh` ones, whose node leads through the base's node of now, and `stale` ones, which have yet to find
    their way through it (see views.py). `swept` is how many stale ones were alive when the dead were last forgotten."""

    __slots__ = ("fresh", "stale", "swept")

    def __init__(self) -> None:
        self.fresh: dict[int, weakref.ref[Any]] = {}
        self.stale: dict[int, weakref.ref[Any]] = {}
        self.swept = 0

    def follow(self, tracked: bool) -> None:
        """The base, a leaf, requires grad from now on, or ceases to: so do views that were taken outside the graph, which lead nowhere until their memory
        is written, and to the base then, as in PyTorch."""
        for mark in tuple(self.fresh.values()):
            view = mark()
            # Only views of types with a gradient can require it: an integer view of a float base stays outside.
            if view is not None and tracked and not view._tracked and dtypes.has_gradient(view._array.dtype):
                view._set_node(Severed())
                if view._extra is None or not view._extra.origin:
                    mark_base_left(view)
            elif view is not None and not tracked and type(view._node) is Severed:
                view._set_node(None)

    def part(self) -> None:
        """The base is about to leave the graph: stale views find their way through it before. Views that have a way back stay, the others leave with it."""
        for mark in tuple(self.stale.values()):
            view = mark()
            if view is not None and (view._extra is None or not view._extra.origin):
                # Reading `node` of a stale view computes it through the base's node, which is still there.
                _ = view._node
        for mark in tuple(self.fresh.values()):
            view = mark()
            if view is not None and type(view._node) is Severed:
                view._set_node(None)
            elif view is not None and view._tracked:
                mark_base_left(view)


def mark_base_left(view: Any) -> None:
    """Let a view keep its way back until its memory is written. Put here by tritensor.tensor.aliasing.views."""
    raise GradError("autograd: the views are not loaded; import tritensor")


class Extra:
    """What few tensors have: hooks, for bases their live views, and for some views why they must not be written.

    `origin` says why a view must not be written while its base is in the graph: "no_grad", "parts" (one of several views that one call
    gave), "function" (a Function returned it), "window" (as_strided took it from outside a view), "gaps" (or on memory that has them), "resized" (its
    base has been); "" for most.
    """

    hooks: Hooks | None = None
    post_hooks: dict[int, Any] | None = None
    views: LiveViews | None = None
    origin = ""
    retains = False
    memory: Any = None  # of a tensor that was resized: all of its memory, a vector
    node: Any = None  # of a tensor of a known path: makes its node (see lazy_evaluation/known/fresh.py)
    base_left_at = 0  # how often a view's memory had been written when its base left the graph


def ensure_extra(t: Any) -> Extra:
    """The tensor's Extra, made at its first use."""
    if t._extra is None:
        with _extra_lock:  # two threads that hook one leaf at once
            if t._extra is None:
                t._extra = Extra()
    return t._extra  # type: ignore[no-any-return]


_extra_lock = locks.lock()


def live_views(root: Any) -> LiveViews:
    """The record of a base's views, made at the first; two threads that view it first at once share one."""
    extra = root._extra
    if extra is not None and extra.views is not None:
        return extra.views  # type: ignore[no-any-return]
    with _extra_lock:
        # Checked again inside the lock: another thread may have made them meanwhile.
        extra = root._extra
        if extra is None:
            extra = root._extra = Extra()
        if extra.views is None:
            extra.views = LiveViews()
        return extra.views


def hooks_set(x: Any) -> dict[int, Any] | None:
    """A tensor's hooks that register_hook has set, None where there are none: libraries look whether there are."""
    owner = x._node if x._node is not None else x._extra
    return (owner.hooks.tensor or None) if owner is not None and owner.hooks is not None else None
