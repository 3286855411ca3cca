"""Probes of forward calls: ops by whatever path they are called, views, writes in place, autograd Functions."""

from __future__ import annotations

import functools
import operator
from threading import get_ident
from typing import Any

from tritensor.autograd.function import Function
from tritensor.ground import shortcuts
from tritensor.ground.call_site import wrapper
from tritensor.ops.table import Ops, ops, registry
from tritensor.profiler.probes.timed import find_sequence, time_call, time_op
from tritensor.profiler.recording import Patches, Recording
from tritensor.profiler.records import FUNCTION, NAMED, clock
from tritensor.tensor.aliasing import inplace


def forward_probe(recording: Recording, patches: Patches) -> None:
    """Wrap every way in which a forward call begins."""
    _probe_lookup(recording, patches)
    shortcuts.turn("watching", 1)
    patches.at_end(lambda: shortcuts.turn("watching", -1))
    patches.replace_everywhere({
        inplace.compute_into: time_call(recording, NAMED, lambda name, target, operands, who: who, inplace.compute_into, operator.truth),
        inplace._fill_directly: time_call(recording, NAMED, lambda x, value, name: name, inplace._fill_directly, operator.truth),
    })  # fmt: skip
    _probe_functions(recording, patches)


def _probe_lookup(recording: Recording, patches: Patches) -> None:
    """Wrap the calls of ops.<name>: those that are bound, and those that will be."""
    table: dict[str, Any] = ops.__dict__
    before = dict(table)
    wrapped: dict[str, Any] = {}
    find = Ops.__getattr__

    def wrap(name: str) -> None:
        record = registry.known(name)
        if record is not None:
            table[name] = wrapped[name] = time_op(recording, record, table[name])

    def find_timed(self: Any, name: str) -> Any:
        found = find(self, name)
        if not recording.on:  # a profile that is over
            return found
        wrap(name)
        return table[name]

    for name in before:
        wrap(name)
    patches.put(Ops, "__getattr__", find_timed)

    def restore() -> None:
        for name, call in tuple(table.items()):
            if call is wrapped.get(name):
                table[name] = wrapped[name].profiled
            elif name in wrapped:  # autocast has wrapped the timed call: both are dropped, and bound anew when asked for
                del table[name]

    patches.at_end(restore)


def _probe_functions(recording: Recording, patches: Patches) -> None:
    """Wrap autograd.Function.apply; calls are named after the class."""
    append, plain = recording.records.append, Function.__dict__["apply"].__func__

    @wrapper
    @functools.wraps(plain)
    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if not recording.on:
            return plain(cls, *args, **kwargs)
        start, sequence = clock(), 0
        try:
            out = plain(cls, *args, **kwargs)
            node = getattr(out, "_node", None)
            sequence = find_sequence(out) if node is None else node.sequence
            return out
        finally:
            append((FUNCTION, cls.__name__, start, clock(), get_ident(), sequence, None))

    patches.put(Function, "apply", classmethod(apply))
