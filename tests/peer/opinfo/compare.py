"""Comparison of our answer with PyTorch's: kind, fields, shape, type, values; strides apart."""

from __future__ import annotations

from typing import Any

import torch

import tritensor as tt
from tests.peer.opinfo.freedom import TOLERANCE, WIDER
from tests.peer.opinfo.translate import back


class Difference(Exception):
    """What differs (`kind`, without numbers: it stands in the table) and how (`detail`)."""

    def __init__(self, kind: str, detail: str = "") -> None:
        super().__init__(kind, detail)
        self.kind, self.detail = kind, detail


def tensors(value: Any, kind: type) -> list[Any]:
    """The tensors of a result, in order."""
    if isinstance(value, kind):
        return [value]
    if isinstance(value, tuple | list):
        return [t for v in value for t in tensors(v, kind)]
    if isinstance(value, dict):
        return [t for v in value.values() for t in tensors(v, kind)]
    return []


def same(name: str, theirs: Any, ours: Any, values: bool = True) -> None:
    """Raise Difference unless ours is theirs."""
    if isinstance(theirs, torch.Tensor):
        _same_tensor(name, theirs, ours, values)
    elif isinstance(theirs, tuple | list):
        if not isinstance(ours, tuple | list):
            raise Difference("kind", f"{type(theirs).__name__} in PyTorch, {type(ours).__name__} here")
        if len(theirs) != len(ours):
            raise Difference("length", f"{len(theirs)} in PyTorch, {len(ours)} here")
        fields = [f for f in getattr(type(theirs), "__match_args__", ()) if hasattr(type(theirs), "n_fields")]
        if any(not hasattr(ours, f) for f in fields):
            raise Difference("fields", f"no .{', .'.join(f for f in fields if not hasattr(ours, f))}")
        for one, other in zip(theirs, ours, strict=True):
            same(name, one, other, values)
    elif isinstance(theirs, torch.dtype | torch.device):
        if str(theirs).removeprefix("torch.") != str(ours).rpartition(".")[2]:
            raise Difference("value", f"{theirs} in PyTorch, {ours} here")
    elif isinstance(theirs, bool | int | str | None) or not values:
        if type(theirs) is not type(ours) or (values and theirs != ours):
            raise Difference("value", f"{theirs!r} in PyTorch, {ours!r} here")
    elif isinstance(theirs, float | complex):
        if type(theirs) is not type(ours):
            raise Difference("kind", f"{theirs!r} in PyTorch, {ours!r} here")
        kind = torch.complex64 if isinstance(theirs, complex) else torch.float32
        _close(name, torch.tensor(theirs, dtype=kind), torch.tensor(ours, dtype=kind))
    else:
        raise Difference("kind", f"{type(theirs).__name__} in PyTorch, which the walk cannot compare")


def _same_tensor(name: str, theirs: torch.Tensor, ours: Any, values: bool) -> None:
    if not isinstance(ours, tt.Tensor):
        raise Difference("kind", f"Tensor in PyTorch, {type(ours).__name__} here")
    if theirs.layout != torch.strided or theirs.is_quantized:
        raise Difference("layout", f"{theirs.layout} in PyTorch, strided here")
    if tuple(theirs.shape) != tuple(ours.shape):
        raise Difference("shape", f"{tuple(theirs.shape)} in PyTorch, {tuple(ours.shape)} here")
    if str(theirs.dtype).removeprefix("torch.") != ours.dtype.name:
        raise Difference("dtype", f"{theirs.dtype} in PyTorch, {ours.dtype} here")
    if values:
        _close(name, theirs.detach().resolve_conj().resolve_neg(), back(ours))


def _close(name: str, theirs: torch.Tensor, ours: torch.Tensor) -> None:
    kind = str(theirs.dtype).removeprefix("torch.")
    if kind in TOLERANCE:
        factor = WIDER.get(name, (1.0, ""))[0]
        relative, absolute = (factor * t for t in TOLERANCE[kind])
        wrong = ~torch.isclose(ours, theirs, rtol=relative, atol=absolute, equal_nan=True)
    else:
        wrong = ours != theirs
    if bool(wrong.any()):
        places = wrong.nonzero()
        first = tuple(places[0].tolist())
        one, other = (f"{t[first].item():.6g}" if kind in TOLERANCE else repr(t[first].item()) for t in (theirs, ours))
        raise Difference("values", f"{len(places)} of {theirs.numel()}, first at {first}: {one} in PyTorch, {other} here")


def strides_agree(theirs: Any, ours: Any) -> bool:
    """Whether the tensors of two results have the same strides; of a dimension with less than two elements it says nothing."""

    def told(t: Any) -> list[int]:
        return [s for n, s in zip(t.shape, t.stride(), strict=True) if n > 1] if t.numel() else []

    pairs = zip(tensors(theirs, torch.Tensor), tensors(ours, tt.Tensor), strict=True)
    return all(told(a) == told(b) for a, b in pairs)


def tracking_agrees(theirs: Any, ours: Any) -> None:
    """Raise Difference unless the same results carry a gradient."""
    one = [t.requires_grad for t in tensors(theirs, torch.Tensor)]
    other = [bool(t.requires_grad) for t in tensors(ours, tt.Tensor)]
    if one != other:
        raise Difference("requires_grad", f"{one} in PyTorch, {other} here")
