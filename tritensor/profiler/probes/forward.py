"""The probes of forward calls: ops by whatever lane they are called, views, writes in place, autograd Functions."""

from __future__ import annotations

import functools
import operator
from threading import get_ident
from typing import Any

from tritensor.autograd.function import Function
from tritensor.ground.call_site import wrapper
from tritensor.ops.table import Ops, ops, registry
from tritensor.ops.table.lookup import Proven, proven
from tritensor.profiler.patches import Patches
from tritensor.profiler.probes.timed import number_of, timed_call, timed_op
from tritensor.profiler.recording import Recording
from tritensor.profiler.records import FUNCTION, NAMED, clock
from tritensor.tensor.aliasing import fast_views, inplace
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.pointwise.operators import OPERATORS
from tritensor.tensor.functions.reductions import fast_reductions


def forward_probe(recording: Recording, patches: Patches) -> None:
    """Every way in which a forward call begins."""
    for lookup, cls in ((ops, Ops), (proven, Proven)):
        _bound(recording, patches, lookup, cls)
    for python, name in OPERATORS.items():
        _operator(recording, patches, f"__{python}__", name)
    # Few elements are reduced past the table, in functions that no name leads to: none is few enough while somebody looks.
    patches.put(fast_reductions, "FEW", -1)
    patches.everywhere({
        fast_views.new_view: timed_call(recording, NAMED, lambda x, shape, array, name, attrs: name, fast_views.new_view),
        inplace.compute_into: timed_call(recording, NAMED, lambda name, target, operands, who: who, inplace.compute_into, operator.truth),
        inplace._fill_directly: timed_call(recording, NAMED, lambda x, value, name: name, inplace._fill_directly, operator.truth),
    })  # fmt: skip
    _functions(recording, patches)


def _bound(recording: Recording, patches: Patches, lookup: Any, cls: Any) -> None:
    """The calls that ops.<name> gives: those that are bound, and those that will be."""
    table: dict[str, Any] = lookup.__dict__
    before = dict(table)
    ours: dict[str, Any] = {}
    find = cls.__getattr__

    def around(name: str) -> None:
        record = registry.known(name)
        if record is not None:
            table[name] = ours[name] = timed_op(recording, record, table[name])

    def look(self: Any, name: str) -> Any:
        found = find(self, name)
        if self is not lookup or not recording.on:
            return found
        around(name)
        return table[name]

    for name in before:
        around(name)
    patches.put(cls, "__getattr__", look)

    def back() -> None:
        for name, call in tuple(table.items()):
            if call is ours.get(name):
                table[name] = ours[name].profiled
            elif name in ours:  # somebody stands around our call, autocast: it is bound anew, and theirs with it
                del table[name]

    patches.at_end(back)


def _operator(recording: Recording, patches: Patches, python: str, name: str) -> None:
    """Tensor's operator, whose lane does not go by ops.<name>. At its first call it finds the lane, and puts it in its own place."""
    record = registry.known(name)
    found = vars(Tensor).get(python)
    if record is None or found is None:
        return
    if found.__name__ != "first":
        patches.put(Tensor, python, timed_op(recording, record, found))
        return
    timed = timed_op(recording, record, found)

    @functools.wraps(found)
    def first(self: Any, other: Any) -> Any:
        out = timed(self, other)
        lane = vars(Tensor)[python]
        if lane is not first and recording.on and getattr(lane, "recording", None) is not recording:
            around = timed_op(recording, record, lane)
            around.recording = recording  # type: ignore[attr-defined]
            patches.put(Tensor, python, around)
        return out

    patches.put(Tensor, python, first)


def _functions(recording: Recording, patches: Patches) -> None:
    """autograd.Function.apply, by the name of the class."""
    append, plain = recording.records.append, Function.__dict__["apply"].__func__

    @wrapper
    @functools.wraps(plain)
    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if not recording.on:
            return plain(cls, *args, **kwargs)
        start, sequence = clock(), 0
        try:
            out = plain(cls, *args, **kwargs)
            node = getattr(out, "node", None)
            sequence = number_of(out) if node is None else node.sequence
            return out
        finally:
            append((FUNCTION, cls.__name__, start, clock(), get_ident(), sequence, None))

    patches.put(Function, "apply", classmethod(apply))
