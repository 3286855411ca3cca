"""Connectionist temporal classification on the CPU: a time step is one pass over all states of all samples (Graves et al. 2006)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import triton

from tritensor.ground import dtypes
from tritensor.ground.errors import OutOfRangeError
from tritensor.kernels.parts import backends, maths
from tritensor.kernels.parts.cpu.blocks import SILENT
from tritensor.kernels.parts.cpu.simd_maths import on_vectors
from tritensor.kernels.parts.indices.error_reports import spot
from tritensor.llvm.row_recurrence import WIDTH, RowRecurrence


# log(e^a + e^b + e^c) + p, where all three may be minus infinity: one step, on both devices
@triton.jit
def step(a, b, c, p):
    m = maths.maximum(maths.maximum(a, b), c)
    m = maths.where(m < -3e38, maths.zeros(m), m)
    return (m + maths.log(maths.exp(a - m) + maths.exp(b - m) + maths.exp(c - m))) + p


_PLAIN = backends.translate(step, backends.on_numpy)
_MACHINE = RowRecurrence(lambda *vectors: backends.translate(step, on_vectors)(*vectors))
_INFINITE = -np.inf


class States(NamedTuple):
    """Blanks and labels in turn, the states of each sample."""

    label: np.ndarray  # (batch, states): the class of a state; blank where the sample has no such state
    inside: np.ndarray  # (batch, states): whether the sample has it
    skip: np.ndarray  # (batch, states): whether it may follow the state two before it


def states_of(targets: np.ndarray, lengths: np.ndarray, blank: int) -> States:
    """The 2 S + 1 states of targets (batch, S)."""
    batch, most = targets.shape
    label = np.full((batch, 2 * most + 1), blank, np.int64)
    label[:, 1::2] = np.where(np.arange(most) < lengths[:, None], targets, blank)
    inside = np.arange(2 * most + 1) < 2 * lengths[:, None] + 1
    skip = np.zeros(label.shape, bool)
    skip[:, 2:] = (label[:, 2:] != blank) & (label[:, 2:] != label[:, :-2])
    return States(label, inside, skip)


def no_class(shape: tuple[int, ...], value: int, position: int, classes: int) -> str:
    """The error's words for a label that is no class, on both devices."""
    return f"ctc_loss: label {value} at position {spot(position, shape)} is no class; there are {classes}, 0 to {classes - 1}; give labels among these"


def check_targets(targets: np.ndarray, lengths: np.ndarray, classes: int) -> None:
    """IndexError for a label that is no class, with its value and position."""
    wrong = ((targets < 0) | (targets >= classes)) & (np.arange(targets.shape[1]) < lengths[:, None])
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise OutOfRangeError(no_class(targets.shape, int(targets.reshape(-1)[at]), at, classes))


def _gathered(log_probs: np.ndarray, states: States) -> np.ndarray:
    """log_probs of every state, (time, batch, states)."""
    index = np.broadcast_to(states.label, (log_probs.shape[0], *states.label.shape))
    found = np.take_along_axis(log_probs, index, 2)
    return np.where(states.inside, found, found.dtype.type(_INFINITE))


def _recursion(p: np.ndarray, skip: np.ndarray, first: np.ndarray) -> np.ndarray:
    """log alpha (time, batch, states + 2): from `first`, log alpha_t = log(sum of its own, the one before, and where skip the one before that) + p_t.

    Two states of minus infinity stand before each sample's, so that all samples are one row and neighbours are that row, shifted.
    """
    time, batch, count = p.shape
    length = batch * (count + 2)
    n = -(-length // WIDTH) * WIDTH
    rows = np.full((time, n), _INFINITE, p.dtype)
    rows[:, :length].reshape(time, batch, count + 2)[:, :, 2:] = p
    bars = np.full(n, _INFINITE, p.dtype)
    bars[:length].reshape(batch, count + 2)[:, 2:][skip] = 0
    alpha = np.full((time, n + 2), _INFINITE, p.dtype)
    alpha[0, 2 : length + 2].reshape(batch, count + 2)[:, 2:] = first
    if not _MACHINE(alpha, bars, rows):
        with SILENT():
            for t in range(1, time):
                before = alpha[t - 1]
                alpha[t, 2:] = _PLAIN(before[2:], before[1:-1], before[:-2] + bars, rows[t])
    return alpha[:, 2 : length + 2].reshape(time, batch, count + 2)[:, :, 2:]


def _last(alpha: np.ndarray, input_lengths: np.ndarray, target_lengths: np.ndarray) -> np.ndarray:
    """-log of the probability of ending in the last blank or the last label, (batch,)."""
    rows = np.arange(alpha.shape[1])
    t = np.maximum(input_lengths - 1, 0)
    end = alpha[t, rows, 2 * target_lengths]
    before = np.where(target_lengths > 0, alpha[t, rows, np.maximum(2 * target_lengths - 1, 0)], end.dtype.type(_INFINITE))
    with SILENT():
        found = -np.logaddexp(end, before)
    return np.where(input_lengths > 0, found, np.where(target_lengths > 0, -end.dtype.type(_INFINITE), end.dtype.type(0)))


def cpu(
    log_probs: np.ndarray, targets: np.ndarray, input_lengths: np.ndarray, target_lengths: np.ndarray, *, blank: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """-log of the probability of each sample's labels, and log alpha (time, batch, states)."""
    check_targets(targets, target_lengths, log_probs.shape[2])
    kind = dtypes.accumulator(log_probs.dtype)
    states = states_of(targets, target_lengths, blank)
    if not log_probs.size:
        alpha = np.full((log_probs.shape[0], *states.label.shape), _INFINITE, kind)
        empty = np.where(target_lengths > 0, np.inf, 0.0)
        return empty.astype(log_probs.dtype), alpha
    p = _gathered(log_probs.astype(kind, copy=False), states)
    first = np.full(states.label.shape, _INFINITE, kind)
    first[:, :2] = p[0, :, :2]
    alpha = np.ascontiguousarray(_recursion(p, states.skip, first))
    alpha[np.arange(len(alpha))[:, None] >= np.maximum(input_lengths, 1)] = _INFINITE
    if (input_lengths <= 0).any():
        alpha[0, input_lengths <= 0] = _INFINITE
    return _last(alpha, input_lengths, target_lengths).astype(log_probs.dtype), alpha


def cpu_backward(
    g: np.ndarray, log_probs: np.ndarray, targets: np.ndarray, input_lengths: np.ndarray, target_lengths: np.ndarray, alpha: np.ndarray, blank: int,
) -> np.ndarray:  # fmt: skip
    """-g times the probability of passing each class at each time: alpha and beta, their common p_t counted once, over the whole."""
    time, batch, classes = log_probs.shape
    if not log_probs.size:
        return np.zeros(log_probs.shape, log_probs.dtype)
    kind = alpha.dtype
    states = states_of(targets, target_lengths, blank)
    p = _gathered(log_probs.astype(kind, copy=False), states)
    beta = _backwards(p, states, input_lengths, target_lengths)
    wholly = -_last(alpha, input_lengths, target_lengths)  # in the accumulator's type
    with SILENT():
        passing = np.exp(alpha + beta - p - wholly[:, None])
        passing = np.where(np.isneginf(p), kind.type(0), passing)
    passing[np.arange(time)[:, None] >= input_lengths] = 0
    up = np.asarray(g, kind)[:, None]
    with SILENT():
        passing = np.where(up == 0, kind.type(0), -up * passing)
    places = np.arange(time * batch).reshape(time, batch, 1) * classes + states.label
    found = np.bincount(places.reshape(-1), passing.reshape(-1), time * batch * classes)
    return found.reshape(log_probs.shape).astype(log_probs.dtype)


def _backwards(p: np.ndarray, states: States, input_lengths: np.ndarray, target_lengths: np.ndarray) -> np.ndarray:
    """log beta (time, batch, states): the recursion on each sample turned around in time and in states, so that its last comes first."""
    time, batch, count = p.shape
    rows = np.arange(batch)
    when = (input_lengths - 1)[None, :] - np.arange(time)[:, None]  # the time that stands at place t, negative behind the sample's first
    which = (2 * target_lengths)[:, None] - np.arange(count)
    turned = p[np.maximum(when, 0)[:, :, None], rows[:, None], np.maximum(which, 0)]
    turned = np.where((when >= 0)[:, :, None] & (which >= 0), turned, p.dtype.type(_INFINITE))
    ahead = np.minimum(which + 2, count - 1)  # the state two after it, in the sample's own order
    skip = np.where(which >= 0, states.skip[rows[:, None], np.maximum(ahead, 0)] & (which + 2 < count), False)
    first = np.full((batch, count), _INFINITE, p.dtype)
    first[:, :2] = turned[0, :, :2]
    made = _recursion(turned, skip, first)
    back_when, back_which = when, which  # the turn is its own inverse
    found = made[np.maximum(back_when, 0)[:, :, None], rows[:, None], np.maximum(back_which, 0)]
    return np.where((back_when >= 0)[:, :, None] & (back_which >= 0), found, p.dtype.type(_INFINITE))
