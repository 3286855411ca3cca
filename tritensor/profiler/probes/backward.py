"""The probes of backward: every node that the engine runs, by the name that grad_fn shows, and every gradient that a leaf adds."""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from typing import Any

from tritensor.autograd import engine
from tritensor.autograd.names import NAMED_BY_CALL
from tritensor.autograd.node import Branch, Node
from tritensor.autograd.saved import Packed
from tritensor.ops.table import registry
from tritensor.profiler.patches import Patches
from tritensor.profiler.recording import Recording, held
from tritensor.profiler.records import ACCUMULATE, BACKWARD, Detail, clock


def backward_probe(recording: Recording, patches: Patches) -> None:
    """Stand around the engine's steps, and around a leaf's addition to its gradient."""
    append, options = recording.records.append, recording.options
    detailed = options.memory or options.inputs
    walk, step, add = engine._walk_plain, engine._step, engine.accumulate
    walking: dict[int, Any] = {}  # by thread the node that the plain walk is at, which it may hand on to a step

    def watched(n: Node, run: Callable[..., Any], args: tuple[Any, ...]) -> None:
        """Run a node with all that is asked for."""
        name, op, needs = names.get(n.op.name) or name_of(n), n.op, sum([e is not None for e in n.edges[:2]])
        before = held() if options.memory else None
        start = clock()
        try:
            run(*args)
        finally:
            end = clock()
            detail = Detail(None, None, before, held() if options.memory else None, None, op, needs) if detailed else None
            append((BACKWARD, name, start, end, get_ident(), n.sequence, detail))

    def walked(order: list[Node], pending: dict[Any, Any], result: dict[Any, Any], keep_graph: bool) -> None:
        if not recording.on:
            walk(order, pending, result, keep_graph)
            return
        now, thread, known, outer = clock, get_ident(), names.get, walking.get(get_ident())
        for n in order:
            if n not in pending or type(n) is Branch:
                walk([n], pending, result, keep_graph)
                continue
            walking[thread] = n
            if detailed:
                watched(n, walk, ([n], pending, result, keep_graph))
            else:
                name = known(n.op.name) or name_of(n)
                start = now()
                walk([n], pending, result, keep_graph)
                append((BACKWARD, name, start, now(), thread, n.sequence, None))
        walking[thread] = outer  # a backward inside of another's node goes on with that

    def stepped(n: Node, *rest: Any) -> None:
        if not recording.on or type(n) is Branch or walking.get(get_ident()) is n:
            step(n, *rest)
        else:
            watched(n, step, (n, *rest))

    def added(leaf: Any, g: Any, own: bool, create_graph: bool) -> None:
        if not recording.on:
            add(leaf, g, own, create_graph)
            return
        before = held() if options.memory else None
        start = clock()
        add(leaf, g, own, create_graph)
        end = clock()
        detail = None if before is None else Detail(None, None, before, held(), None)
        append((ACCUMULATE, "AccumulateGrad", start, end, get_ident(), 0, detail))

    patches.put(engine, "_walk_plain", walked)
    patches.put(engine, "_step", stepped)
    patches.put(engine, "accumulate", added)
    if options.flops:
        _unpacking(recording, patches)


def _unpacking(recording: Recording, patches: Patches) -> None:
    """Note when hooks give back what was saved: a checkpoint computes it anew, which is not the node's own work."""
    unpack = Packed.tensor

    def tensor(self: Packed, record: bool) -> Any:
        start = clock()
        try:
            return unpack(self, record)
        finally:
            recording.unpacked.append((get_ident(), start, clock()))

    patches.put(Packed, "tensor", tensor)


names: dict[str, str] = {}  # of nodes of ops that have one name whatever the call, by op


def name_of(n: Any) -> str:
    """A node's name. Before it runs: some names are read off what it saved."""
    op = n.op.name
    name = n.name()
    if type(n) is Node and op not in NAMED_BY_CALL and registry.known(op) is n.op:  # a Function of the same name has a node of its own
        names[op] = name
    return str(name)
