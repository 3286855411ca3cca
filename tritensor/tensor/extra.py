"""What few tensors have: hooks, and what a base knows of its views."""

from __future__ import annotations

import weakref
from typing import Any

from tritensor import dtypes
from tritensor.autograd.hooks import Hooks
from tritensor.autograd.node import Severed


class Kin:
    """The live views of a base, by id: `fresh` ones, whose node leads through the base's node of now, and `stale` ones, which have yet to find
    their way through it (see views.py). `swept` is how many stale ones were alive when the dead were last forgotten; `parted`: the base has left
    the graph, and they have stayed."""

    __slots__ = ("fresh", "parted", "stale", "swept")

    def __init__(self) -> None:
        self.fresh: dict[int, weakref.ref[Any]] = {}
        self.stale: dict[int, weakref.ref[Any]] = {}
        self.swept = 0
        self.parted = False

    def follow(self, tracked: bool) -> None:
        """The base, a leaf, requires grad from now on, or ceases to: so do views that were taken outside the graph."""
        for mark in tuple(self.fresh.values()):
            view = mark()
            if view is not None and tracked and not view.tracked and dtypes.has_gradient(view.array.dtype):
                view.hang_at(Severed())
            elif view is not None and not tracked and type(view.node) is Severed:
                view.hang_at(None)

    def settle(self) -> None:
        """The base is about to leave the graph: stale views find their way through it before."""
        for mark in tuple(self.stale.values()):
            view = mark()
            if view is not None and (view.extra is None or not view.extra.origin):
                _ = view.node
        self.parted = True


class Extra:
    """What few tensors have: hooks, for bases their live views, and for some views why they must not be written.

    `origin` says why a view must not be written while its base is in the graph: "no_grad", "parts" (one of several views that one call
    gave), "function" (a Function returned it), "window" (as_strided took it from outside a view), "gaps" (or on memory that has them); "" for most.
    """

    hooks: Hooks | None = None
    post_hooks: dict[int, Any] | None = None
    kin: Kin | None = None
    origin = ""
    retains = False
