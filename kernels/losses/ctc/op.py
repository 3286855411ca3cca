"""Connectionist temporal classification: the probability of labels over all ways to place them in time. One program takes a sample."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError, DTypeError, ShapeError
from tritensor.kernels.losses.ctc.cpu import cpu, cpu_backward, no_class, step
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.copying import to_c_order
from tritensor.kernels.parts.indices.error_reports import first, report, watch
from tritensor.kernels.parts.launch_rules import cdiv, next_power_of_2
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Sample, Spec, Work, op, ops, refuse_kind

CLASSES = 32  # a tile of the gradient
_I64 = np.dtype(np.int64)


# The class of state s: a blank where s is even, else label s // 2.
@triton.jit
def _label(targets, n, s, most, labels, blank):
    odd = (s % 2 == 1) & (s < 2 * labels)
    found = tl.load(targets + n * most + s // 2, mask=odd & (s > 0), other=0).to(tl.int64)
    return tl.where(odd & (s > 0), found, blank)


@triton.jit
def _row(t, batch, length):
    """The distance from the rows of time 0 to those of time t, each of `length` elements."""
    return tl.cast(t, tl.int64) * batch * length


# alpha_t[s] = log(e^alpha_(t-1)[s] + e^alpha_(t-1)[s-1] + [s may follow s-2] e^alpha_(t-1)[s-2]) + log p_t[label of s]
@triton.jit(do_not_specialize=["most", "states", "classes", "blank", "time"])
def _forward_kernel(
    p, targets, input_lengths, target_lengths, nll, alpha, time, batch, most, states, classes, blank, errors, site, STATES: tl.constexpr
):
    n = tl.program_id(0).to(tl.int64)
    s = tl.arange(0, STATES)
    kind: tl.constexpr = alpha.dtype.element_ty
    times, labels = tl.load(input_lengths + n).to(tl.int32), tl.load(target_lengths + n).to(tl.int32)
    here = s < 2 * labels + 1
    label = _label(targets, n, s, most, labels, blank)
    known = (label >= 0) & (label < classes)  # any other is reported, and never followed
    bad = first(here & ~known, STATES)
    if bad < STATES:
        wrong = n * most + bad // 2
        report(errors, site, tl.load(targets + wrong), wrong, classes)
    here &= known
    skip = (s > 1) & (label != blank) & (label != _label(targets, n, s - 2, most, labels, blank))
    low = tl.full((STATES,), float("-inf"), kind)
    own = tl.load(p + n * classes + label, mask=here & (s < 2) & (times > 0), other=float("-inf")).to(kind)
    row = alpha + n * states
    tl.store(row + s, own, mask=s < states)
    for t in range(1, times):
        tl.debug_barrier()
        before = row + _row(t - 1, batch, states)
        one = tl.load(before + s - 1, mask=here & (s > 0), other=float("-inf"))
        two = tl.load(before + s - 2, mask=here & skip, other=float("-inf"))
        now = tl.load(p + _row(t, batch, classes) + n * classes + label, mask=here, other=float("-inf")).to(kind)
        own = tl.where(here, step(own, one, two, now), low)
        tl.store(row + _row(t, batch, states) + s, own, mask=s < states)
    ends = tl.where((s == 2 * labels) | ((s == 2 * labels - 1) & (labels > 0)), own, low)
    top = tl.max(ends, 0)
    safe = tl.where(top < -3e38, 0.0, top)
    found = -(safe + tl.log(tl.sum(tl.exp(ends - safe), 0)))
    found = tl.where(times > 0, found, tl.where(labels > 0, float("inf"), 0.0))
    tl.store(nll + n, found.to(nll.dtype.element_ty))
    for t in range(tl.maximum(times, 1), time):
        tl.store(row + _row(t, batch, states) + s, low, mask=s < states)


# passing_t[s] = -g e^(alpha_t[s] + beta_t[s] - log p_t[label of s] + nll), beta the same recursion from the end
@triton.jit(do_not_specialize=["most", "states", "classes", "blank", "time"])
def _passing_kernel(
    g, p, targets, input_lengths, target_lengths, alpha, beta, passing, time, batch, most, states, classes, blank, STATES: tl.constexpr
):
    n = tl.program_id(0).to(tl.int64)
    s = tl.arange(0, STATES)
    kind: tl.constexpr = alpha.dtype.element_ty
    times, labels = tl.load(input_lengths + n).to(tl.int32), tl.load(target_lengths + n).to(tl.int32)
    up = tl.load(g + n).to(kind)
    here = s < 2 * labels + 1
    label = _label(targets, n, s, most, labels, blank)
    here &= (label >= 0) & (label < classes)
    after = _label(targets, n, s + 2, most, labels, blank)
    skip = (s + 2 < 2 * labels + 1) & (after != blank) & (label != after)
    low = tl.full((STATES,), float("-inf"), kind)
    final = (s == 2 * labels) | ((s == 2 * labels - 1) & (labels > 0))
    at = n * states + s
    ends = tl.load(alpha + _row(tl.maximum(times - 1, 0), batch, states) + at, mask=final & (times > 0), other=float("-inf"))
    top = tl.max(ends, 0)
    safe = tl.where(top < -3e38, 0.0, top)
    whole = safe + tl.log(tl.sum(tl.exp(ends - safe), 0))
    own = low
    for back in range(times):
        t = times - 1 - back
        tl.debug_barrier()
        after_row = beta + _row(t + 1, batch, states) + at
        more = back > 0
        one = tl.load(after_row + 1, mask=here & (s < 2 * labels) & more, other=float("-inf"))
        two = tl.load(after_row + 2, mask=skip & more, other=float("-inf"))
        now = tl.load(p + _row(t, batch, classes) + n * classes + label, mask=here, other=float("-inf")).to(kind)
        own = tl.where(here, tl.where(more, step(own, one, two, now), tl.where(final, now, low)), low)
        tl.store(beta + _row(t, batch, states) + at, own, mask=s < states)
        a = tl.load(alpha + _row(t, batch, states) + at, mask=here, other=float("-inf"))
        y = tl.where(here & (now > float("-inf")) & (up != 0), -up * tl.exp(a + own - now - whole), 0.0)
        tl.store(passing + _row(t, batch, states) + at, y, mask=s < states)
    for t in range(times, time):
        tl.store(passing + _row(t, batch, states) + at, tl.zeros((STATES,), kind), mask=s < states)


# dp[t, n, c] = the sum of passing_t[s] over the states s of class c
@triton.jit(do_not_specialize=["most", "states", "classes", "blank"])
def _classes_kernel(passing, targets, target_lengths, dp, batch, most, states, classes, blank, CLASSES: tl.constexpr, STATES: tl.constexpr):
    tiles = tl.cdiv(classes, CLASSES)
    row = tl.program_id(0).to(tl.int64) // tiles
    c = (tl.program_id(0) % tiles) * CLASSES + tl.arange(0, CLASSES)
    n = row % batch
    kind: tl.constexpr = passing.dtype.element_ty
    labels = tl.load(target_lengths + n).to(tl.int32)
    found = tl.zeros((CLASSES,), kind)
    for start in range(0, 2 * labels + 1, STATES):
        s = start + tl.arange(0, STATES)
        label = _label(targets, n, s, most, labels, blank)
        y = tl.load(passing + row * states + s, mask=s < 2 * labels + 1, other=0.0)
        found += tl.sum(tl.where(label[None, :] == c[:, None], y[None, :], 0.0), 1)
    tl.store(dp + row * classes + c, found.to(dp.dtype.element_ty), mask=c < classes)


def _shape(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, *, blank: int = 0) -> tuple[Spec, Spec]:
    refuse_kind("ctc_loss", log_probs.dtype, ("float",))
    if len(log_probs.shape) != 3 or len(targets.shape) != 2:
        raise ShapeError(
            f"ctc_loss: log_probs {tuple(log_probs.shape)} and targets {tuple(targets.shape)}: give (time, batch, classes) and (batch, labels)"
        )
    time, batch, classes = log_probs.shape
    for label, x, wanted in (
        ("targets", targets, (batch, targets.shape[1])),
        ("input_lengths", input_lengths, (batch,)),
        ("target_lengths", target_lengths, (batch,)),
    ):
        if tuple(x.shape) != wanted:
            raise ShapeError(f"ctc_loss: {label} {tuple(x.shape)} for log_probs {tuple(log_probs.shape)}: give {wanted}")
        if dtypes.of(x.dtype).kind not in ("int", "uint"):
            raise DTypeError(f"ctc_loss: {label} is {dtypes.of(x.dtype).name}; it is made of integers, cast it with .long()")
    if not 0 <= blank < classes:
        raise ArgumentError(f"ctc_loss: blank is {blank}; it must be one of the {classes} classes, 0 to {classes - 1}")
    kept = dtypes.accumulator(log_probs.dtype)
    return Spec((batch,), log_probs.dtype), Spec((time, batch, 2 * targets.shape[1] + 1), kept)


def _forward(log_probs: CudaArray, targets: CudaArray, input_lengths: CudaArray, target_lengths: CudaArray, *, blank: int = 0) -> Any:
    time, batch, classes = log_probs.shape
    most = targets.shape[1]
    states = 2 * most + 1
    errors, site = watch("ctc_loss", log_probs, no_class, targets.shape)
    nll = allocate((batch,), log_probs.dtype, log_probs)
    alpha = allocate((time, batch, states), dtypes.accumulator(log_probs.dtype), log_probs)
    launch(
        _forward_kernel, (batch,), to_c_order(log_probs), to_c_order(targets), to_c_order(input_lengths), to_c_order(target_lengths), nll, alpha,
        time, batch, most, states, classes, np.int64(blank), errors, site, STATES=next_power_of_2(states),
    )  # fmt: skip
    return nll, alpha


def _backward(
    g: CudaArray, log_probs: CudaArray, targets: CudaArray, input_lengths: CudaArray, target_lengths: CudaArray, alpha: CudaArray,
    blank: int,
) -> CudaArray:  # fmt: skip
    time, batch, classes = log_probs.shape
    most = targets.shape[1]
    states = 2 * most + 1
    targets, target_lengths = to_c_order(targets), to_c_order(target_lengths)
    beta, passing = (allocate(alpha.shape, alpha.dtype, alpha) for _ in range(2))
    launch(
        _passing_kernel, (batch,), to_c_order(g), to_c_order(log_probs), targets, to_c_order(input_lengths), target_lengths, alpha, beta, passing,
        time, batch, most, states, classes, np.int64(blank), STATES=next_power_of_2(states),
    )  # fmt: skip
    dp = allocate(log_probs.shape, log_probs.dtype, log_probs)
    launch(
        _classes_kernel, (time * batch * cdiv(classes, CLASSES),), passing, targets, target_lengths, dp, batch, most, states, classes, np.int64(blank),
        CLASSES=CLASSES, STATES=min(next_power_of_2(states), 128),
    )  # fmt: skip
    return dp


# the same recursions in our own ops, state by state: minus infinity is -1e30 there, so that no difference of infinities arises
def _rule(g: Any, log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int) -> Any:
    time, batch, classes = log_probs.shape
    if not log_probs._array.size:
        return ops.mul(log_probs, 0.0)
    low, given, kind = -1e30, log_probs._array.dtype, dtypes.accumulator(log_probs._array.dtype)
    log_probs, g = ops.cast(log_probs, dtype=kind), ops.cast(g, dtype=kind)
    label, here, skip, final = _states(targets, target_lengths, blank)
    count = label.shape[1]
    index = ops.expand(label.unsqueeze(0), shape=(time, batch, count))
    p = ops.where(here, ops.gather(log_probs, index, dim=2), low)
    side = ops.full(shape=(batch, 2), value=low, dtype=log_probs._array.dtype, device=log_probs.device)

    def shifted(x: Any, by: int) -> Any:
        return ops.cat(side[:, : abs(by)], x[:, :-by], dim=1) if by > 0 else ops.cat(x[:, -by:], side[:, : abs(by)], dim=1)

    def merged(a: Any, b: Any, c: Any) -> Any:
        top = ops.maximum(ops.maximum(a, b), c).detach()  # no power overflows then
        return ops.add(top, ops.log(ops.add(ops.add(ops.exp(ops.sub(a, top)), ops.exp(ops.sub(b, top))), ops.exp(ops.sub(c, top)))))

    numbers = ops.arange(start=0, end=count, step=1, dtype=_I64, device=log_probs.device)
    alpha = [ops.where(ops.lt(numbers, 2), p[0], low)]
    for t in range(1, time):
        before = alpha[-1]
        alpha.append(ops.add(merged(before, shifted(before, 1), ops.where(skip, shifted(before, 2), low)), p[t]))
    beta, own = [], None
    for t in range(time - 1, -1, -1):
        start = ops.where(final, p[t], low)
        if own is None:
            own = start
        else:
            leap = shifted(ops.where(skip, own, low), -2)
            own = ops.where(ops.eq(input_lengths.unsqueeze(1), t + 1), start, ops.add(merged(own, shifted(own, -1), leap), p[t]))
        beta.append(own)
    both = ops.stack(*[ops.add(a, b) for a, b in zip(alpha, reversed(beta), strict=True)], dim=0)
    times = ops.arange(start=0, end=time, step=1, dtype=_I64, device=log_probs.device).reshape((time, 1, 1))
    counts = ops.logical_and(ops.lt(times, input_lengths.reshape((1, batch, 1))), here)
    ends = ops.gather(
        ops.stack(*alpha, dim=0), ops.expand((input_lengths - 1).clamp(min=0).reshape((1, batch, 1)), shape=(1, batch, count)), dim=0
    )
    whole = ops.where(final, ends[0], low).logsumexp(1, keepdim=True)
    passing = ops.where(counts, ops.exp(ops.where(counts, ops.sub(ops.sub(both, p), whole), low)), 0.0)
    passing = ops.neg(ops.mul(passing, g.reshape((1, batch, 1))))
    zeros = ops.full(shape=(time, batch, classes), value=0, dtype=log_probs._array.dtype, device=log_probs.device)
    return ops.cast(zeros.scatter_add(2, index, passing), dtype=given)


def _states(targets: Any, target_lengths: Any, blank: int) -> tuple[Any, Any, Any, Any]:
    """Of Tensors: the class of each state, whether the sample has it, whether it may follow the one two before it, whether it may be the last."""
    batch, most = targets.shape
    device = targets.device
    lengths = target_lengths.long().unsqueeze(1)
    numbers = ops.arange(start=0, end=2 * most + 1, step=1, dtype=_I64, device=device)
    labels = ops.where(ops.lt(ops.arange(start=0, end=most, step=1, dtype=_I64, device=device), lengths), targets.long(), blank)
    blanks = ops.full(shape=(batch, most), value=blank, dtype=_I64, device=device)
    label = ops.cat(
        ops.stack(blanks, labels, dim=2).reshape((batch, 2 * most)),
        ops.full(shape=(batch, 1), value=blank, dtype=_I64, device=device),
        dim=1,
    )
    here = ops.lt(numbers, 2 * lengths + 1)
    before = ops.cat(ops.full(shape=(batch, 2), value=blank, dtype=_I64, device=device), label, dim=1)[:, : 2 * most + 1]
    skip = ops.logical_and(ops.ne(label, blank), ops.logical_and(ops.ne(label, before), ops.ge(numbers, 2)))
    final = ops.logical_or(ops.eq(numbers, 2 * lengths), ops.logical_and(ops.eq(numbers, 2 * lengths - 1), ops.gt(lengths, 0)))
    return label, here, skip, final


def _alphas(log_probs: np.ndarray, labels: list[int], blank: int) -> np.ndarray:
    """log of the probability of ending in each state at each time, (time, states): blanks and labels in turn, of which any may be skipped that is a
    blank between two different labels."""
    states = [blank, *[s for label in labels for s in (label, blank)]]
    alpha = np.full((len(log_probs), len(states)), -np.inf)
    for t, p in enumerate(log_probs):
        for s, label in enumerate(states):
            skips = s > 1 and label not in (blank, states[s - 2])
            before = alpha[t - 1, max(s - 1 - skips, 0) : s + 1] if t else [0.0 if s < 2 else -np.inf]
            alpha[t, s] = np.logaddexp.reduce(before) + p[label]
    return alpha


def reference(
    log_probs: np.ndarray, targets: np.ndarray, input_lengths: np.ndarray, target_lengths: np.ndarray, *, blank: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """-log of the probability of each sample's labels, over all ways to place them: log_probs (time, batch, classes), targets (batch, S)."""
    time, batch, _ = log_probs.shape
    alpha = np.full((time, batch, 2 * targets.shape[1] + 1), -np.inf)
    nll = np.where(np.asarray(target_lengths) > 0, np.inf, 0.0)  # of no time
    for n, (steps, count) in enumerate(zip(input_lengths, target_lengths, strict=True)):
        if steps > 0 and time:
            alpha[:steps, n, : 2 * count + 1] = _alphas(log_probs[:steps, n], list(targets[n, :count]), blank)
            nll[n] = -np.logaddexp.reduce(alpha[steps - 1, n, max(2 * count - 1, 0) : 2 * count + 1])
    return nll, alpha


def _gradient_scales(g: np.ndarray, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> tuple[Any, ...]:
    """Each step rounds alpha and beta, logarithms that grow to the whole's: a random walk of that length in what is raised to e."""
    log_probs, targets, input_lengths, target_lengths = inputs
    nll, alpha = cpu(*inputs, **attrs)
    walk = np.where(np.isfinite(nll), np.abs(nll), 0.0) * np.sqrt(np.maximum(input_lengths, 1))
    return (
        np.abs(cpu_backward(g, log_probs, targets, input_lengths, target_lengths, alpha, attrs["blank"])) * (1.0 + walk[:, None]),
        None,
        None,
        None,
    )


def _samples(rng: np.random.Generator) -> list[Sample]:
    def log_probs(*shape: int) -> np.ndarray:
        x = rng.normal(size=shape)
        return x - np.log(np.exp(x).sum(2, keepdims=True))

    some = np.array([[1, 2, 2], [3, 0, 0], [0, 0, 0]])
    return [
        Sample(log_probs(5, 3, 4), some, np.array([5, 3, 2]), np.array([3, 1, 0]), blank=0),
        Sample(log_probs(3, 2, 3), np.array([[0, 1], [1, 0]], np.int32), np.array([3, 3], np.int32), np.array([2, 2], np.int32), blank=2),
        Sample(log_probs(3, 1, 40), rng.integers(1, 40, (1, 1)), np.array([3]), np.array([1]), blank=0),
    ]


op(
    "ctc_loss", reference, cpu=cpu, shape=_shape, forward=_forward, rule=(_rule, None, None, None), backward=(_backward, None, None, None),
    cpu_backward=(cpu_backward, None, None, None), outputs=("nll", "alpha"), residuals=("alpha",), samples=_samples, reports=True,
    sizes=lambda rng: [
        Sample(
            np.log(rng.dirichlet(np.ones(64), (256, 32))), rng.integers(1, 64, (32, 48)), np.full(32, 256), np.full(32, 48), blank=0
        )
    ],
    work=lambda log_probs, targets, *lengths, blank: Work(20 * log_probs.shape[0] * targets.size, 2 * log_probs.nbytes),
    condition=("measured", _gradient_scales),
)  # fmt: skip
