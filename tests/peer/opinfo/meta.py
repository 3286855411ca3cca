"""PyTorch's sample database walked on device meta: our answer is its answer, shape, type and strides, and a raise where it hangs on values."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

import tritensor as tt
from tests.peer.opinfo.compare import Difference, same, strides_agree
from tests.peer.opinfo.resolve import resolved
from tests.peer.opinfo.translate import Untranslatable, copied, translated
from tests.peer.opinfo.walk import samples_of

KINDS = ("float32", "int64", "complex64")
MOST = 12  # samples of one type


@dataclass
class Walked:
    """Samples that agree, that were asked, those of equal strides, those that we answer and PyTorch's meta does not; what differs, a line each."""

    agree: int = 0
    asked: int = 0
    strides: int = 0
    raised: int = 0
    beyond: int = 0
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


def _ask(op: Any, mine: Callable[..., Any], sample: Any, found: Walked, where: str) -> None:
    given = (sample.input, sample.args, sample.kwargs)
    first, args, kwargs = copied(given, {})
    real, error = _answer(op.op, first, args, kwargs)
    if error is not None:  # no sample on this build
        return
    try:
        ours = translated(given, {})
    except (Untranslatable, TypeError, RuntimeError):
        return
    want, refused = _answer(op.op, *_to_meta(copied(given, {}), torch.Tensor))
    have, raised = _answer(mine, *_to_meta(ours, tt.Tensor))
    found.asked += 1
    try:
        if refused is not None:
            if raised is not None:
                found.raised += 1
            else:  # we know the shape where PyTorch has no rule: then it is that of the values
                same(op.name, real, have, False)
                found.beyond += 1
        elif raised is not None:
            raise Difference(f"raises {type(raised).__name__}", str(raised))
        else:
            same(op.name, want, have, False)
            found.strides += strides_agree(want, have)
        found.agree += 1
    except Difference as error:
        found.failures.append(f"{where}: {error.kind}: {error.detail[:160]}   {sample.summary()[:120]}")


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
            samples = samples_of(op, kind, False)
            step = max(len(samples) // MOST, 1)
            for sample in samples[::step][:MOST]:
                _ask(op, mine, sample, found, kind)
    return found
