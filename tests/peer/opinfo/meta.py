"""PyTorch's sample database walked on device meta: our answer is its answer, shape, type and strides, and a raise where it hangs on values."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

import tritensor as tt
from tests.peer.opinfo.compare import Difference, same, strides_agree, tensors
from tests.peer.opinfo.resolve import resolved
from tests.peer.opinfo.translate import Untranslatable, copied, translated
from tests.peer.opinfo.walk import samples_of

KINDS = ("float32", "int64", "complex64")
MOST = 12  # samples of one type
RANDOM_LAYOUT = ("empty_like", "new_empty", "empty", "new_empty_strided")


@dataclass
class Walked:
    """Counts of samples, and what differs, a line each."""

    agree: int = 0
    asked: int = 0
    strides: int = 0  # of those that both answer: equal ones
    raised: int = 0  # both refuse
    beyond: int = 0  # PyTorch has no rule for meta, and our answer has its CPU's shapes
    gradients: int = 0  # asked for gradients, which agree
    failures: list[str] = field(default_factory=list)


def _to_meta(value: Any, kind: type) -> Any:
    """A value with every tensor, and every device that is named, on meta."""
    if isinstance(value, kind):
        return value.to("meta").requires_grad_(value.requires_grad)
    if isinstance(value, torch.device | tt.device):
        return type(value)("meta")
    if isinstance(value, slice):
        return slice(*[_to_meta(v, kind) for v in (value.start, value.stop, value.step)])
    if isinstance(value, dict):
        return {k: "meta" if k == "device" else _to_meta(v, kind) for k, v in value.items()}
    if type(value) in (tuple, list):
        return type(value)(_to_meta(v, kind) for v in value)
    return value


def _answer(f: Callable[..., Any], first: Any, args: Any, kwargs: Any) -> tuple[Any, Exception | None]:
    try:
        return f(first, *args, **kwargs), None
    except Exception as error:
        return None, error


def _layouts(value: Any) -> list[Any]:
    return [[s for n, s in zip(t.shape, t.stride(), strict=True) if n > 1] if t.numel() else [] for t in tensors(value, tt.Tensor)]


def _ask(op: Any, mine: Callable[..., Any], sample: Any, found: Walked, where: str) -> None:
    given = (sample.input, sample.args, sample.kwargs)
    real, error = _answer(op.op, *copied(given, {}))
    if error is not None:  # no sample on this build
        return
    try:
        here, there = translated(given, {}), translated(given, {})
    except (Untranslatable, TypeError, RuntimeError):
        return
    theirs = _to_meta(copied(given, {}), torch.Tensor)
    want, refused = _answer(op.op, *theirs)
    bare = _to_meta(there, tt.Tensor)
    have, raised = _answer(mine, *bare)
    found.asked += 1
    try:
        if refused is not None and raised is not None:
            found.raised += 1
        elif refused is not None:  # we know the shape where PyTorch has no rule: then it is that of the values
            same(op.name, real, have, False)
            found.beyond += 1
        elif raised is not None:
            raise Difference(f"raises {type(raised).__name__}", str(raised))
        else:
            same(op.name, want, have, False)
            found.strides += strides_agree(want, have)
            if sample_tracks(theirs):
                _same_gradients(want, theirs, have, bare, found)
        if raised is None and op.name not in RANDOM_LAYOUT:
            cpu, error = _answer(mine, *here)
            if error is None and _layouts(cpu) != _layouts(have):
                raise Difference("strides", f"{_layouts(have)} on meta, {_layouts(cpu)} on the CPU")
        found.agree += 1
    except Difference as error:
        found.failures.append(f"{where}: {error.kind}: {error.detail[:160]}   {sample.summary()[:120]}")


def sample_tracks(given: Any) -> bool:
    """Whether a tensor of a sample requires grad."""
    return any(t.requires_grad for t in tensors(given, torch.Tensor))


def _same_gradients(want: Any, theirs: Any, have: Any, ours: Any, found: Walked) -> None:
    """Raise Difference unless the gradients of all results have PyTorch's shapes and types; where it has none on meta, nothing is asked."""
    found_theirs, refused = _gradients(torch, want, theirs)
    if refused is not None or not found_theirs:
        return
    found_ours, raised = _gradients(tt, have, ours)
    if raised is not None:
        raise Difference(f"backward raises {type(raised).__name__}", str(raised))
    for a, b in zip(found_theirs, found_ours, strict=True):
        if a is not None and b is not None:  # a gradient that is all zeros may be none, on either side
            same("", a, b, False)
    found.gradients += 1


def _gradients(library: Any, results: Any, given: Any) -> tuple[list[Any], Exception | None]:
    outs = [t for t in tensors(results, library.Tensor) if t.requires_grad]
    leaves = list({id(t): t for t in tensors(given, library.Tensor) if t.requires_grad}.values())
    if not outs or not leaves:
        return [], None
    try:
        return list(library.autograd.grad(outs, leaves, [library.ones_like(t) for t in outs], allow_unused=True)), None
    except Exception as error:
        return [], error


def walk_meta(op: Any) -> Walked:
    """One entry of the database."""
    found = Walked()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mine, _ = resolved(op)
        if mine is None:
            return found
        for kind in KINDS:
            if getattr(torch, kind) not in op.dtypes:
                continue
            samples = samples_of(op, kind, op.supports_autograd and kind != "int64")
            step = max(len(samples) // MOST, 1)
            for sample in samples[::step][:MOST]:
                _ask(op, mine, sample, found, kind)
    return found
