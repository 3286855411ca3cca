"""Samples of PyTorch's database turned around: their tensors in other layouts. Results lie as PyTorch lays them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

import tritensor as tt
from tests.peer.opinfo.compare import Difference, same, tensors
from tests.peer.opinfo.freedom import values_matter
from tests.peer.opinfo.resolve import resolved
from tests.peer.opinfo.ties import settled
from tests.peer.opinfo.translate import _rebuilt
from tests.peer.opinfo.walk import PHASE, _ours, _theirs, samples_of

SAMPLES = 4  # of an entry, chosen evenly
KINDS = ("float32", "int64", "bool", "complex64")


class Varied:
    """A sample with other tensors."""

    def __init__(self, sample: Any, swapped: dict[int, torch.Tensor]) -> None:
        self.input, self.args, self.kwargs = _swap((sample.input, sample.args, sample.kwargs), swapped)

    def __str__(self) -> str:
        shown = [f"{tuple(t.shape)} {t.stride()}" for t in _given(self)]
        return f"{', '.join(shown)}; {[a for a in self.args if not isinstance(a, torch.Tensor)]} {list(self.kwargs)}"[:240]


def _swap(value: Any, swapped: dict[int, torch.Tensor]) -> Any:
    return swapped.get(id(value), value) if isinstance(value, torch.Tensor) else _rebuilt(value, lambda v: _swap(v, swapped))


def _given(sample: Any) -> list[torch.Tensor]:
    found = tensors((sample.input, sample.args, list(sample.kwargs.values())), torch.Tensor)
    return [t for t in {id(t): t for t in found}.values() if t.layout == torch.strided and not t.is_conj() and not t.is_neg()]


def _in_order(t: torch.Tensor, order: list[int]) -> torch.Tensor:
    """The same values with dimensions lying in `order`, the outermost first."""
    return t.detach().permute(order).contiguous().permute([order.index(d) for d in range(t.ndim)])


def _with_gaps(t: torch.Tensor) -> torch.Tensor:
    wide = torch.zeros([2 * n for n in t.shape], dtype=t.dtype)
    return wide[tuple(slice(None, None, 2) for _ in t.shape)].copy_(t.detach())


LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "transposed": lambda t: _in_order(t, list(range(t.ndim))[::-1]),
    "channels last": lambda t: _in_order(t, [0, *range(2, t.ndim), 1] if t.ndim > 2 else list(range(t.ndim))[::-1]),
    "gaps": lambda t: _with_gaps(t) if t.ndim else t,
}


def _laid_out(sample: Any) -> Iterator[Varied]:
    """All tensors in another layout, and the first alone."""
    given = _given(sample)
    if not any(t.ndim > 1 and t.numel() for t in given):
        return
    for layout in LAYOUTS.values():
        yield Varied(sample, {id(t): layout(t) for t in given})
        if len(given) > 1 and given[0].ndim > 1:
            yield Varied(sample, {id(given[0]): layout(given[0])})


def _chosen(op: Any) -> list[Any]:
    kind = next((k for k in KINDS if getattr(torch, k) in op.dtypes), None)
    samples = [] if kind is None else samples_of(op, kind, False)
    return samples[:: max(1, -(-len(samples) // SAMPLES))]


def strides_differ(op: Any) -> list[str]:
    """Samples in other layouts whose results lie otherwise than PyTorch's, or whose values are others."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mine, _ = resolved(op)
        for sample in _chosen(op) if mine is not None else ():
            for varied in _laid_out(sample):
                try:
                    _, want, _ = _theirs(op.op, varied)
                except Exception:  # PyTorch has no answer
                    continue
                found += [f"{varied}: {said}" for said in _laid_otherwise(op, mine, varied, want)]
    return found


def _laid_otherwise(op: Any, mine: Any, varied: Varied, want: Any) -> list[str]:
    try:
        _, have, _ = _ours(mine, varied)
        same(op.name, want, settled(op.name, varied, want, have), values_matter(op.name, varied) and op.name not in PHASE)
    except Difference as error:
        return [f"{error.kind}: {error.detail[:120]}"]
    pairs = zip(tensors(want, torch.Tensor), tensors(have, tt.Tensor), strict=True)
    return [f"{tuple(a.shape)} strides {a.stride()} in PyTorch, {b.stride()} here" for a, b in pairs if _told(a) != _told(b)]


def _told(t: Any) -> list[int]:
    """Strides of the dimensions that have several elements."""
    return [s for n, s in zip(t.shape, t.stride(), strict=True) if n > 1] if t.numel() else []
