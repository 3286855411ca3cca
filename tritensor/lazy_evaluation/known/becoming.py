"""Becoming: tensors that were handed out are what the calls have made that they were promised by."""

from __future__ import annotations

import weakref
from typing import Any

from tritensor.lazy_evaluation.known.fresh import FreshTensor
from tritensor.lazy_evaluation.known.records import Hand, Several, Source
from tritensor.ops.lazy_array import LazyArray
from tritensor.tensor.core import Tensor

_SLOTS = [
    (Tensor.__dict__[n].__set__, Tensor.__dict__[n].__get__)
    for n in ("_array", "_node", "_tracked", "_version_counter", "_extra", "_view_path", "_grad")
]


def _transplant(t: Any, made: Any) -> None:
    """Let a fresh tensor be what a call has made, in the place of that."""
    for put, get in _SLOTS:
        put(t, get(made))
    t.__class__ = Tensor  # last: another thread may look at it
    t._layout = None
    if type(t._array) is LazyArray:
        t._array.shown_by(t)
    if made._view_path is not None:  # its base knows it by its id
        views = made._view_path[0]._extra.views
        views.fresh.pop(id(made), None)
        views.fresh[id(t)] = weakref.ref(t)


def become(out: Source, result: Any, writer: Any = None) -> None:
    """Let tensors that were handed out be what a call has made."""
    if type(out) is Several:
        for place, r in zip(out.hands, result, strict=True):
            become(place, r, writer)
    elif isinstance(out, Hand) and type(out.t) is FreshTensor:
        _transplant(out.t, result)
        if writer is not None:
            writer.met(out.t, out)
