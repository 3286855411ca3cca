"""Probes of backward: every node that the engine runs, by the name that grad_fn shows, and every gradient that a leaf adds."""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from typing import Any

from tritensor.autograd import engine
from tritensor.autograd import walk as walk_module
from tritensor.autograd.names import NAMED_BY_CALL
from tritensor.autograd.node import Branch, Node
from tritensor.autograd.saved import Packed
from tritensor.ops.table import registry
from tritensor.profiler.recording import Patches, Recording, held
from tritensor.profiler.records import ACCUMULATE, BACKWARD, Detail, clock


def backward_probe(recording: Recording, patches: Patches) -> None:
    """Wrap the engine's steps, and a leaf's addition to its gradient."""
    append, options = recording.records.append, recording.options
    detailed = options.memory or options.inputs
    walk, step, add = walk_module.walk_arrays, walk_module.pull_node, engine.accumulate
    walking: dict[int, Any] = {}  # by thread: the node of the plain walk, which it may hand on to a step

    def run_detailed(n: Node, run: Callable[..., Any], args: tuple[Any, ...]) -> None:
        """Run a node, and note all that the options ask for."""
        name, op, needs = known_names.get(n.op.name) or find_name(n), n.op, sum([e is not None for e in n.edges[:2]])
        before = held() if options.memory else None
        start = clock()
        try:
            run(*args)
        finally:
            end = clock()
            detail = Detail(None, None, before, held() if options.memory else None, None, op, needs) if detailed else None
            append((BACKWARD, name, start, end, get_ident(), n.sequence, detail))

    def walk_timed(order: list[Node], pending: dict[Any, Any], *rest: Any) -> None:
        if not recording.on:
            walk(order, pending, *rest)
            return
        now, thread, known, outer = clock, get_ident(), known_names.get, walking.get(get_ident())
        for n in order:
            if n not in pending or type(n) is Branch:  # no gradient has come to it, or it only hands one on: no work to be timed
                walk([n], pending, *rest)
                continue
            walking[thread] = n
            if detailed:
                run_detailed(n, walk, ([n], pending, *rest))
            else:
                name = known(n.op.name) or find_name(n)
                start = now()
                walk([n], pending, *rest)
                append((BACKWARD, name, start, now(), thread, n.sequence, None))
        walking[thread] = outer  # this may have been a backward inside of another's node

    def step_timed(n: Node, *rest: Any) -> None:
        if not recording.on or type(n) is Branch or walking.get(get_ident()) is n:
            step(n, *rest)
        else:
            run_detailed(n, step, (n, *rest))

    def accumulate_timed(leaf: Any, g: Any, own: bool, create_graph: bool) -> None:
        if not recording.on:
            add(leaf, g, own, create_graph)
            return
        before = held() if options.memory else None
        start = clock()
        add(leaf, g, own, create_graph)
        end = clock()
        detail = None if before is None else Detail(None, None, before, held(), None)
        append((ACCUMULATE, "AccumulateGrad", start, end, get_ident(), 0, detail))

    patches.put(walk_module, "walk_arrays", walk_timed)
    patches.put(walk_module, "pull_node", step_timed)
    patches.put(engine, "accumulate", accumulate_timed)
    if options.flops:
        _probe_unpacking(recording, patches)


def _probe_unpacking(recording: Recording, patches: Patches) -> None:
    """Note the times in which hooks unpack saved tensors: a checkpoint computes them anew, which is not the node's own work."""
    unpack = Packed.tensor

    def tensor(self: Packed, record: bool) -> Any:
        start = clock()
        try:
            return unpack(self, record)
        finally:
            recording.unpacked.append((get_ident(), start, clock()))

    patches.put(Packed, "tensor", tensor)  # the one method through which all hooks' values go


known_names: dict[str, str] = {}  # of nodes of ops that have one name whatever the call, by op


def find_name(n: Any) -> str:
    """A node's name; asked before it runs, since some names are read off saved tensors, which are freed then."""
    op = n.op.name
    name = n.name()
    if type(n) is Node and op not in NAMED_BY_CALL and registry.known(op) is n.op:  # a Function of the same name has a node of its own
        known_names[op] = name
    return str(name)
