"""Gradient clipping: by the common norm, or by value."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Iterable
from types import GeneratorType
from typing import Any

import numpy as np

from tritensor.autograd.modes import no_grad
from tritensor.autograd.node import version_of
from tritensor.autograd.saved import copy_for_borrowers
from tritensor.ground.dtypes import bfloat16, float16
from tritensor.ground.errors import EmptyError
from tritensor.nn.utils.gradients import norms, scale_
from tritensor.ops.table import ops, registry
from tritensor.tensor.aliasing.views import is_write_recorded
from tritensor.tensor.core import Tensor
from tritensor.tensor.parsing.data import as_tensor
from tritensor.tensor.public_api.publish import checked

_HALVES = {float16, bfloat16}


def _list_grads(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    listed = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [p.grad for p in listed if p.grad is not None]


def _to_magnitudes(t: Tensor) -> Tensor:
    """Real numbers of the same sizes whose squares can be added up: those of 16 bits go beyond their range above 255, and below 0.001 to 0."""
    if t.is_complex():
        return ops.abs(t)
    return t.float() if t.dtype in _HALVES else t


# -- Norms of several tensors are made of parts. For an order p that is a number a part is a sum of |x|^p; for inf and -inf it is the largest and
# the smallest |x|. For 0 it is 1 for each tensor with an element that is not 0: PyTorch takes the norm of the tensors' norms, which is that number.
def read_order(name: str, norm_type: float) -> float:
    """The order as a number. Raises ValueError for NaN."""
    p = float(norm_type)
    if math.isnan(p):
        raise ValueError(f"{name}: norm_type is {norm_type!r}; give a number, inf or -inf")
    return p


def empty_part(p: float) -> float:
    """The part of no element, which changes no other part."""
    return math.inf if p == -math.inf else 0.0


def compute_part(t: Tensor, p: float) -> Tensor:
    """What a real tensor adds, 0-d, of its type."""
    if not t._array.size:
        return ops.full(shape=(), value=empty_part(p), dtype=t._array.dtype, device=t.device)  # type: ignore[no-any-return]
    every = tuple(range(t.ndim))
    # the usual norm in one pass, without a tensor of sizes between
    if p == 2:
        return ops.sum_of_squares(t, dim=every, keepdim=False)  # type: ignore[no-any-return]
    size = ops.abs(t)
    if math.isinf(p):
        return (ops.amax if p > 0 else ops.amin)(size, dim=every, keepdim=False)  # type: ignore[no-any-return]
    if p == 0:
        return ops.ne(ops.amax(size, dim=every, keepdim=False), 0.0).to(t.dtype)  # type: ignore[no-any-return]
    return ops.sum(ops.pow(size, p), dim=every, keepdim=False)  # type: ignore[no-any-return]


def join_parts(a: Tensor, b: Tensor, p: float) -> Tensor:
    """The part of two tensors together, where the first is."""
    return (ops.add if math.isfinite(p) else ops.maximum if p > 0 else ops.minimum)(a, b.to(a.device))  # type: ignore[no-any-return]


def norm_from_part(part: Tensor, p: float) -> Tensor:
    """The norm that a part makes."""
    return part if p == 0 or math.isinf(p) else ops.sqrt(part) if p == 2 else ops.pow(part, 1 / p)  # type: ignore[no-any-return]


def part_from_norm(norm: Tensor, p: float) -> Tensor:
    """The part whose norm is this one."""
    return norm if p == 0 or math.isinf(p) else ops.pow(norm, p)  # type: ignore[no-any-return]


def _compute_norm(tensors: Iterable[Tensor], p: float) -> Tensor:
    """The norm of all elements of some tensors, 0-d, where the first of them is."""
    return norm_from_part(functools.reduce(functools.partial(join_parts, p=p), [compute_part(t, p) for t in tensors]), p)


@checked
@no_grad()
def get_total_norm(
    tensors: Tensor | Iterable[Tensor], norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """The norm of all tensors taken as one vector: (sum |x|^p)^(1/p), or the largest |x| for inf, the smallest for -inf; for 0 the number of
    tensors that are not all 0. A 0-d tensor. `foreach` changes nothing.

    Of shards, parts of tensors that several processes hold, it is the norm over all processes, which must all call it. Raises EmptyError for
    an order below 0 of tensors of no elements.
    """
    p = read_order("get_total_norm", norm_type)
    listed = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    if not listed:
        return as_tensor(0.0)
    for t in listed:
        if getattr(type(t), "norms", None) is not None:
            return t.norms(listed, norm_type, error_if_nonfinite)  # type: ignore[no-any-return,attr-defined]
    if p < 0 and not any(t.numel() for t in listed):
        raise EmptyError(f"get_total_norm: none of the tensors has an element, and norm_type {norm_type} needs one; give 0 or more")
    # on a GPU one launch for all tensors of a type; the rest goes tensor by tensor
    parts, others = norms(listed, p)
    if others:
        parts.append(_compute_norm(map(_to_magnitudes, others), p))
    norm = parts[0] if len(parts) == 1 else _compute_norm(parts, p)
    kinds = {x.dtype for x in listed}
    if len(kinds) == 1 and kinds <= _HALVES:
        norm = norm.to(listed[0].dtype)
    if error_if_nonfinite:
        refuse_nonfinite("clip_grad_norm_", norm, norm_type)
    return norm


def refuse_nonfinite(name: str, norm: Tensor, norm_type: float) -> None:
    """Raise RuntimeError for a norm that is NaN or infinite."""
    if not math.isfinite(norm.item()):
        raise RuntimeError(
            f"{name}: the total norm of order {norm_type} is {norm.item()}; pass error_if_nonfinite=False to scale by it all the same"
        )


@checked
@no_grad()
def clip_grads_with_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor, foreach: bool | None = None) -> None:
    """Scale all gradients by min(1, max_norm / (total_norm + 1e-6)), in place. `foreach` changes nothing."""
    scale = ops.clamp(ops.div(float(max_norm), ops.add(total_norm, 1e-6)), None, 1.0)  # stays on the device: no wait
    by_kind: dict[Any, list[Tensor]] = {}
    for g in _list_grads(parameters):
        by_kind.setdefault(g.dtype, []).append(g)
    # the factor is cast once for a type, and not once for each gradient
    for kind, grads in by_kind.items():
        factor = scale.to(kind)
        for g in scale_(grads, factor):
            g.mul_(factor.to(g.device))


@checked
@no_grad()
def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:  # fmt: skip
    """Scale all gradients by min(1, max_norm / (their common norm + 1e-6)), in place; returns the norm before. `foreach` changes nothing.

    Args:
        parameters: a tensor, or several; those without a gradient are left out.
        norm_type: the p of the norm of all gradients' elements together; inf for the largest, -inf for the smallest, 0 for the number of
            gradients that are not all 0.
        error_if_nonfinite: raise RuntimeError where the norm is NaN or infinite, before anything is scaled.

    >>> p = nn.Parameter(tt.zeros(2))
    >>> p.grad = tt.tensor([3.0, 4.0])
    >>> nn.utils.clip_grad_norm_([p], max_norm=1.0)
    tensor(5.)
    >>> p.grad
    tensor([0.6000, 0.8000])
    """
    listed = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    if not listed and isinstance(parameters, GeneratorType):
        warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=3)
    for p in listed:
        if getattr(type(p), "clips", None) is not None:  # a part of a parameter: the norm is that over all processes that have the others
            return p.clips(listed, max_norm, norm_type, error_if_nonfinite)  # type: ignore[no-any-return,attr-defined]
    norm = get_total_norm(_list_grads(listed), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(listed, max_norm, norm)
    return norm


def clip_grad_norm(
    parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:  # fmt: skip
    """clip_grad_norm_, under the name that it had before."""
    warnings.warn("`nn.utils.clip_grad_norm` is now deprecated in favor of `nn.utils.clip_grad_norm_`.", FutureWarning, stacklevel=2)
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)  # type: ignore[no-any-return]


@checked
@no_grad()
def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None) -> None:
    """Bring every element of every gradient into [-clip_value, clip_value], in place. `foreach` changes nothing."""
    most = float(clip_value)
    for g in _list_grads(parameters):
        a = g._array
        # a write that no graph records: the op's CPU side writes at once, without its dispatch
        if type(a) is np.ndarray and a.dtype.char in "fd" and a.flags.c_contiguous and a.flags.writeable and not is_write_recorded(g):
            copy_for_borrowers(g)
            registry["clamp"].cpu(a, -most, most, out=a)
            version_of(g).bump("clamp_")
        else:
            g.clamp_(-most, most)
