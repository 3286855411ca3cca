"""One entry of PyTorch's sample database: what may be written between a call and its backward, and which results hang in the graph."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

import tritensor as tt
from tests.autograd.written import RIGHT, WRONG, Call, Write, flags, gradients, outcome, writes
from tests.peer.opinfo.freedom import RANDOM, UNDEFINED
from tests.peer.opinfo.resolve import resolved
from tests.peer.opinfo.translate import Untranslatable, copied, translated
from tests.peer.opinfo.walk import samples_of

CAP = 5  # samples that are walked; of more, so many are chosen evenly
FEWER = {"svd_lowrank": 1, "pca_lowrank": 1}  # of entries whose calls take long, which are made of functions that are walked anyway

# Where PyTorch keeps a copy of an argument for reasons of its own, and this library the argument: what and why.
KEPT = {
    "matmul": "of a matrix times a batch PyTorch folds the batch into one matrix, which is a copy",
    "__rmatmul__": "as matmul",
}

# Results of no consequence, of which one library says that they hang in the graph and the other that they do not: what and why.
FLAGS = {
    "native_group_norm": "mean and rstd do not depend on weight and bias; PyTorch hangs them at the node of all three results",
    "masked.prod": "over no dimension PyTorch gives the tensor itself",
    "triangular_solve": "the copy of the matrix does not depend on the right side; PyTorch hangs it at the node of both results",
}

UNREPEATABLE = RANDOM | UNDEFINED  # of which two calls do not give the same


def _leaves_of(sample: Any) -> list[tuple[int, ...]]:
    """Which tensors of a sample require grad: all that can, and each alone."""
    memo: dict[int, torch.Tensor] = {}
    copied((sample.input, sample.args, sample.kwargs), memo)
    can = [i for i, t in enumerate(memo.values()) if t.requires_grad]
    return [tuple(can), *([(i,) for i in can] if len(can) > 1 else [])]


def _asking(given: list[Any], leaves: tuple[int, ...]) -> list[Any]:
    for i, t in enumerate(given):
        t.requires_grad_(i in leaves)
    return given


def _call(library: Any, f: Callable[..., Any], sample: Any) -> Call:
    """A sample's call in one of the libraries."""
    copy = copied if library is torch else translated

    def make(leaves: tuple[int, ...]) -> tuple[Any, list[Any]]:
        memo: dict[int, Any] = {}
        first, args, kwargs = copy((sample.input, sample.args, sample.kwargs), memo)
        given = _asking(list(memo.values()), leaves)
        library.manual_seed(0)
        return f(first, *args, **kwargs), given

    return Call(library, make)


def _chosen(op: Any) -> Iterator[tuple[int, Any]]:
    found = samples_of(op, "float64", True)
    most = FEWER.get(op.name, CAP)
    for i in range(len(found)) if len(found) <= most else [i * len(found) // most for i in range(most)]:
        yield i, found[i]


def pairs(op: Any) -> Iterator[tuple[str, Call, Call, tuple[int, ...]]]:
    """Calls of an entry's samples in both libraries, with what requires grad."""
    if not op.supports_autograd or torch.float64 not in op.supported_backward_dtypes("cpu"):
        return
    f, _ = resolved(op)
    if f is None:
        return
    for i, sample in _chosen(op):
        for leaves in _leaves_of(sample):
            one, other = _call(torch, op.op, sample), _call(tt, f, sample)
            try:
                if gradients(one, leaves) is None:
                    continue
                other.make(leaves)
            except (RuntimeError, Untranslatable):  # PyTorch has no answer, or the sample holds what is not here
                continue
            yield f"sample {i}, grad of {leaves}", one, other, leaves


def written(op: Any) -> list[str]:
    """Writes that PyTorch's backward stands and ours does not, or that ours takes without a word and gives wrong numbers."""
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for where, one, other, leaves in pairs(op):
            for order in (1, 2):
                for write in writes(other, leaves):
                    mine = outcome(other, leaves, [write], order)
                    if mine == RIGHT or (mine != WRONG and not _allowed(one, leaves, write, order)):
                        continue
                    wrong.append(f"{where}, order {order}: {write.what} {write.place} written: {mine}")
    return wrong


def _allowed(call: Call, leaves: tuple[int, ...], write: Write, order: int) -> bool:
    """Whether PyTorch's gradients stand a write."""
    try:
        return outcome(call, leaves, [write], order) == RIGHT
    except (RuntimeError, IndexError):  # no second derivative; no such result
        return False


def hung(op: Any) -> list[str]:
    """Results of which the two libraries say otherwise whether they require grad, are leaves, have a node: those without a derivative as well, and what an
    entry's form in place has written."""
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for form, f, g in _forms(op):
            for i, sample in _chosen(op):
                for leaves in filter(None, _leaves_of(sample)):
                    one, other = _call(torch, f, sample), _call(tt, g, sample)
                    try:
                        a, b = flags(one, leaves), flags(other, leaves)
                    except (RuntimeError, TypeError, Untranslatable):  # no answer there, or none here, which the walk of all samples tells
                        continue
                    if a != b:
                        wrong.append(f"{form}sample {i}, grad of {leaves}: {a} in PyTorch, {b} here")
    return wrong


def _forms(op: Any) -> Iterator[tuple[str, Callable[..., Any], Callable[..., Any]]]:
    """An entry's function in both libraries, and its form that writes over the first argument, which is given a copy of a leaf."""
    f, _ = resolved(op)
    if f is None or torch.float64 not in op.dtypes:
        return
    yield "", op.op, f
    name = getattr(op.inplace_variant, "__name__", "")
    mine = getattr(tt.Tensor, name, None) if name else None
    if mine is not None:
        over = lambda call: lambda x, *args, **kwargs: call(x.clone(), *args, **kwargs)  # noqa: E731
        yield f"{name}, ", over(op.inplace_variant), over(mine)
