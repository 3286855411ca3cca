"""One entry of PyTorch's sample database walked over both libraries; what comes of it is the entry's line in the table."""

from __future__ import annotations

import contextlib
import random
import signal
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

import tritensor as tt
from tests.peer.opinfo.compare import Difference, same, strides_agree, tensors, tracking_agrees
from tests.peer.opinfo.freedom import PHASE, values_matter
from tests.peer.opinfo.resolve import missing_aliases, resolved, variant
from tests.peer.opinfo.ties import settled
from tests.peer.opinfo.translate import Untranslatable, copied, function, translated

FORWARD = ("float32", "int64", "bool", "complex64")
BACKWARD = ("float64", "complex128")
CAP = 60  # samples of one type that are walked; of more, so many are chosen evenly
SECONDS = 30  # for one sample in our library; after one that takes longer the rest of its type is not tried
VARIANTS = 3  # samples on which the method and the method in place are tried
SLOW = "takes too long"


@dataclass
class Failure:
    """A sample on which we answer otherwise: where (`float32`), which, what differs, how, and the sample itself."""

    where: str
    index: int
    kind: str
    detail: str
    sample: str = ""


@dataclass
class Count:
    """Samples that passed, that were walked, that there are."""

    passed: int = 0
    walked: int = 0
    there: int = 0

    def __str__(self) -> str:
        return f"{self.passed}/{self.walked}" + (f" of {self.there}" if self.there > CAP else "")


@dataclass
class Found:
    """All that a walk over one entry found."""

    missing: str = ""
    counts: dict[str, Count] = field(default_factory=dict)
    variants: dict[str, str] = field(default_factory=dict)
    aliases: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    classes: list[str] = field(default_factory=list)
    strides: Count = field(default_factory=Count)


class _TooLong(BaseException):
    """A sample that ran past its time; no Exception, so that nothing on the way takes it for one of its own."""


@contextlib.contextmanager
def _limit(seconds: int) -> Iterator[None]:
    def ring(*_: Any) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _seeded() -> None:
    torch.manual_seed(0)
    tt.manual_seed(0)
    random.seed(0)
    np.random.seed(0)


def samples_of(op: Any, kind: str, requires_grad: bool) -> list[Any]:
    """An entry's samples of one type, the same in every run."""
    _seeded()
    with torch.no_grad():
        return list(op.sample_inputs("cpu", getattr(torch, kind), requires_grad=requires_grad))


def _chosen(n: int) -> list[int]:
    return list(range(n)) if n <= CAP else [i * n // CAP for i in range(CAP)]


def _theirs(f: Callable[..., Any], sample: Any) -> tuple[Any, Any, list[torch.Tensor]]:
    """PyTorch's answer on fresh copies of a sample's arguments: the first argument as it is afterwards, the result, the tensors given."""
    memo: dict[int, torch.Tensor] = {}
    first, args, kwargs = copied((sample.input, sample.args, sample.kwargs), memo)
    torch.manual_seed(0)
    return first, f(first, *args, **kwargs), list(memo.values())


def _ours(f: Callable[..., Any], sample: Any) -> tuple[Any, Any, list[tt.Tensor]]:
    """Our answer to the same; an exception becomes a Difference."""
    try:
        memo: dict[int, tt.Tensor] = {}
        first, args, kwargs = translated((sample.input, sample.args, sample.kwargs), memo)
    except Untranslatable as error:
        raise Difference("asks for what is not here", str(error)) from error
    except Exception as error:  # such as a type that cannot require a gradient
        raise Difference(f"given, raises {type(error).__name__}", str(error)) from error
    tt.manual_seed(0)
    return first, _running(f, first, *args, **kwargs), list(memo.values())


def _running(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    try:
        with _limit(SECONDS):
            return f(*args, **kwargs)
    except _TooLong as error:
        raise Difference(SLOW, f"more than {SECONDS} s") from error
    except Exception as error:
        raise Difference(f"raises {type(error).__name__}", str(error)) from error


def _forward(op: Any, mine: Callable[..., Any], sample: Any, found: Found) -> bool | None:
    """Whether an answer is PyTorch's; None where PyTorch has none. Raises Difference."""
    try:
        _, want, _ = _theirs(op.op, sample)
    except Exception:  # what PyTorch refuses on this build is no sample
        return None
    _, have, _ = _ours(mine, sample)
    same(op.name, want, settled(op.name, sample, want, have), values_matter(op.name, sample) and op.name not in PHASE)
    if op.name in PHASE:
        same(op.name, sample.output_process_fn_grad(want), _processed(sample, have))
    found.strides.walked += 1
    found.strides.passed += strides_agree(want, have)
    return True


def _processed(sample: Any, have: Any) -> Any:
    try:
        f = function(sample.output_process_fn_grad)
    except Untranslatable as error:
        raise Difference("asks for what is not here", str(error)) from error
    return _running(f, have)


def _weights(t: torch.Tensor) -> torch.Tensor:
    """What a result's elements are multiplied by before they are summed."""
    w = torch.cos(torch.arange(1, t.numel() + 1, dtype=torch.float64)).reshape(t.shape)
    return (torch.complex(w, w.flip(0) if w.ndim else w) if t.is_complex() else w).to(t.dtype)


def _backward(op: Any, mine: Callable[..., Any], sample: Any, found: Found) -> bool | None:
    """Whether the gradients of a weighted sum of all results are PyTorch's."""
    try:
        _, raw, given = _theirs(op.op, sample)
        want = sample.output_process_fn_grad(raw)
        results = [t for t in tensors(want, torch.Tensor) if t.requires_grad and (t.is_floating_point() or t.is_complex())]
        leaves = [t for t in given if t.requires_grad]
        weights = [_weights(t) for t in results]
        if not results or not leaves:
            return None
        gradients = torch.autograd.grad(results, leaves, weights, allow_unused=True)
    except Exception:  # as above
        return None
    _, mine_raw, mine_given = _ours(mine, sample)
    have = _processed(sample, mine_raw)
    values = values_matter(op.name, sample)
    same(op.name, want, have, values)
    tracking_agrees(raw, mine_raw)
    outputs = [o for t, o in zip(tensors(want, torch.Tensor), tensors(have, tt.Tensor), strict=True) if any(t is r for r in results)]
    inputs = [t for t in mine_given if t.requires_grad]
    got = _running(tt.autograd.grad, outputs, inputs, [translated(w, {}) for w in weights], allow_unused=True)
    for g, ours, leaf in zip(gradients, got, leaves, strict=True):
        _same_gradient(op.name, g, ours, leaf, values)
    return True


def _same_gradient(name: str, theirs: Any, ours: Any, leaf: torch.Tensor, values: bool) -> None:
    """A gradient that is all zeros may be none, on either side."""
    if theirs is None and ours is None:
        return
    theirs = torch.zeros_like(leaf) if theirs is None else theirs
    ours = translated(torch.zeros_like(leaf), {}) if ours is None else ours
    try:
        same(name, theirs, ours, values)
    except Difference as error:
        raise Difference(f"gradient's {error.kind}", error.detail) from error


def _walk(op: Any, mine: Callable[..., Any], kind: str, found: Found, backward: bool) -> None:
    """All samples of one type, forward or backward."""
    where = f"{kind} backward" if backward else kind
    samples = samples_of(op, kind, backward)
    count = found.counts[where] = Count(there=len(samples))
    slow = False
    for i in _chosen(len(samples)):
        try:
            if slow:
                raise Difference(SLOW, "an earlier sample did")
            passed = (_backward if backward else _forward)(op, mine, samples[i], found)
            if passed is None:
                continue
            count.passed += 1
        except Difference as error:
            slow = slow or error.kind == SLOW
            found.failures.append(Failure(where, i, error.kind, error.detail, samples[i].summary()))
        count.walked += 1
    if not count.walked:
        del found.counts[where]


def _walk_errors(op: Any, mine: Callable[..., Any], found: Found) -> None:
    """Samples that PyTorch refuses: so must we."""
    _seeded()
    refused = list(op.error_inputs("cpu"))
    count = found.counts["errors"] = Count(there=len(refused))
    for i in _chosen(len(refused)):
        sample = refused[i].sample_input
        try:
            _theirs(op.op, sample)
            continue  # not refused by the function: by the method, or on another device
        except Exception as error:
            wanted = error
        count.walked += 1
        try:
            _ours(mine, sample)
        except Difference as error:
            raised = error.__cause__
            if error.kind == SLOW:
                found.failures.append(Failure("errors", i, error.kind, error.detail, sample.summary()))
                continue
            count.passed += 1
            if not isinstance(raised, Untranslatable) and not isinstance(raised, type(wanted)):
                found.classes.append(f"{i}: {type(raised).__name__}, in PyTorch {type(wanted).__name__}")
            continue
        found.failures.append(Failure("errors", i, "accepted", f"PyTorch: {str(wanted).splitlines()[0][:200]}", sample.summary()))
    if not count.walked:
        del found.counts["errors"]


def _walk_variant(op: Any, theirs: Any, suffix: str, found: Found) -> None:
    """The method, or the method in place, on the first few samples that PyTorch takes."""
    where = "in-place" if suffix else "method"
    mine, why = variant(op, theirs, suffix)
    if mine is None:
        found.variants[where] = why
        return
    kinds = [str(d).removeprefix("torch.") for d in op.dtypes]
    kind = next(k for k in (*FORWARD, *sorted(kinds)) if k in kinds)
    found.variants[where] = "yes"
    tried = 0
    for i, sample in enumerate(samples_of(op, kind, False)):
        if tried == VARIANTS:
            break
        if not isinstance(sample.input, torch.Tensor):
            continue
        try:
            first, want, _ = _theirs(theirs, sample)
        except Exception:  # a sample of the function only
            continue
        tried += 1
        values = values_matter(op.name, sample) and op.name not in PHASE
        try:
            mine_first, have, _ = _ours(mine, sample)
            same(op.name, want, settled(op.name, sample, want, have), values)
            if suffix:
                same(op.name, first, mine_first, values)
        except Difference as error:
            found.variants[where] = "no"
            found.failures.append(Failure(where, i, error.kind, error.detail, sample.summary()))


def walked(op: Any) -> Found:
    """Everything about one entry."""
    found = Found()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mine, found.missing = resolved(op)
        if mine is None:
            return found
        for kind in FORWARD:
            if getattr(torch, kind) in op.dtypes:
                _walk(op, mine, kind, found, False)
        for kind in BACKWARD:
            if op.supports_autograd and getattr(torch, kind) in op.supported_backward_dtypes("cpu"):
                _walk(op, mine, kind, found, True)
        if op.error_inputs_func is not None:
            _walk_errors(op, mine, found)
        for theirs, suffix in ((op.get_method(), ""), (op.get_inplace(), "_")):
            if theirs is not None:
                _walk_variant(op, theirs, suffix, found)
        found.aliases = missing_aliases(op)
    return found
