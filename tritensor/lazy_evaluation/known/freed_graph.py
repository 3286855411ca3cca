"""Freed graph: the nodes of tensors whose graph was used up before anybody asked for it, made when somebody does."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from tritensor.autograd.engine import collect_nodes
from tritensor.autograd.modes import state
from tritensor.fusion.graph import Value
from tritensor.ground import shortcuts
from tritensor.ground.thread_state import here
from tritensor.lazy_evaluation.known.records import Hand, Several, Source, Trail, View
from tritensor.ops.lazy_array import waiting
from tritensor.tensor.core import Tensor, new_tensor


class FreedGraph:
    """What a run of a path leaves of its graph: its leaves that require grad, and for the tensors of `held` that do how to call again what made them.
    Of other leaves only the form is kept, as a graph that was used up keeps none of their values."""

    def __init__(self, trail: Trail, places: Sequence[tuple[int, int]], held: Sequence[Hand]) -> None:
        self.trail, self.places = trail, list(places)
        self.leaves = {id(leaf): leaf.t for leaf in trail.leaves if leaf.tracked}
        self.held = [(weakref.ref(h.t), h) for h in held if h.tracked]

    def make(self) -> None:
        """Give the tensors their nodes: their calls are made again on tensors that nobody computes."""
        trail, before = self.trail, (here.segment, here.cursor, here.places, state.enabled)
        every: list[Source] = [*trail.leaves, *trail.hands, *trail.views]
        now = [p.t for p in every]
        segment = type(trail.hands[0].cursor.segment)()
        segment.cursor.depth = 1
        here.segment, here.cursor, here.places = segment, segment.cursor, list(self.places)
        made: dict[int, Any] = {}
        try:
            for leaf in trail.leaves:
                leaf.t = self.leaves.get(id(leaf))
                if leaf.t is None:
                    leaf.t = new_tensor(segment.hold(Value(leaf.layout.shape, leaf.layout.dtype, leaf.layout.strides, leaf.layout.device)))
            for record in trail.records:
                if record.freed:
                    break
                state.enabled = record.enabled
                _put(record.out, record.repeat())
            for mark, hand in self.held:
                t = mark()
                if t is not None:
                    made[id(t)] = t, hand.t._node
        finally:
            for place, t in zip(every, now, strict=True):
                place.t = t
            here.segment, here.cursor, here.places, state.enabled = before
            if segment in waiting:
                waiting.discard(segment)
                shortcuts.turn("lazy", -1)
        for node in collect_nodes([node for _, node in made.values()]):
            node.free()
        for t, node in made.values():
            t.__class__ = Tensor
            t._node = node
            t._extra.node = None


def _put(out: Source, result: Any) -> None:
    """Let places hold what a call has made."""
    if type(out) is Several:
        for place, r in zip(out.hands, result, strict=True):
            _put(place, r)
    elif type(out) is Hand or type(out) is View:
        out.t = result
