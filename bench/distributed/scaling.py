"""Step time of data-parallel training over the number of ranks, of plain numbers: what is computed, what is sent, and what backward hides.

Scaling is weak: every rank keeps its batch, so that a step on p ranks computes as long as one on 1, and efficiency is compute / step(p).

An all_reduce of n bytes takes the least of three algorithms, between which MPI chooses (Thakur, Rabenseifner and Gropp, "Optimization of
Collective Communication Operations in MPICH", 2005), each so many steps of one latency, bytes that a rank sends, and bytes that it adds:

    doubling   log2 p steps of n bytes                      a tree's depth; for few bytes
    halving    2 log2 p steps, 2 (p-1)/p n bytes            reduce_scatter and all_gather by halves; for many bytes
    ring       2 (p-1) steps, 2 (p-1)/p n bytes

For p that is no power of two the first two fold the ranks that are too many into others: two more steps of n bytes. Buckets are averaged
one after the other, each as soon as its gradients are there; a step waits for what is not averaged when backward ends.

Assumed:
  - All ranks compute equally long: no rank is late, so none waits for another (no stragglers, no jitter of the machine).
  - Every rank has a connection of its own that sends and receives at full bandwidth, whoever else sends: no congestion, one level of
    network.
  - Of what is hidden the share `hides` costs the processor nothing: all (1) where a network card moves the bytes, none (0) where the cores
    that compute do, as in memory that ranks share with no core to spare.
  - Where ranks share a core (`Sharing`), each step of an all_reduce waits for the other rank's turn on it, and bytes move at a share of the
    speed.
  - On several ranks a step computes `averaging` seconds longer: gradients are divided and brought into buckets, calls are begun and driven,
    and of ranks that compute equally long on average one is the later. It does not grow with the number of ranks.
  - Reading data, the optimizer and what depends on no other rank are part of the compute.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np


class Network(NamedTuple):
    """Seconds of a message without bytes; bytes a second that a rank sends; bytes a second that it adds (inf: in the bandwidth)."""

    latency: float
    bandwidth: float
    sums: float = math.inf


class Sharing(NamedTuple):
    """A machine whose ranks share its cores where there are more of them: `turn` is how many seconds a message waits there in each step."""

    cores: int
    turn: float


class Bucket(NamedTuple):
    """Gradients that are averaged together, and the seconds of backward that are left when the last of them is there."""

    nbytes: int
    left: float


class Step(NamedTuple):
    """Seconds that one rank alone computes; the buckets, in the order in which they are averaged; seconds that several ranks add."""

    compute: float
    buckets: tuple[Bucket, ...]
    averaging: float = 0.0


class Work(NamedTuple):
    """What one rank does in an all_reduce, one thing after the other: steps, bytes sent, bytes added."""

    steps: int
    sent: float
    added: float


def doubling(nbytes: float, ranks: int) -> Work:
    """Recursive doubling: in every step all bytes go to the other of a pair."""
    steps, folds = _halvings(ranks)
    return Work(steps + folds, (steps + folds) * nbytes, (steps + folds // 2) * nbytes)


def halving(nbytes: float, ranks: int) -> Work:
    """Rabenseifner's: half of the bytes, then a quarter, and so on, each added to the other's; then all the way back."""
    steps, folds = _halvings(ranks)
    part = (1 - 0.5**steps) * nbytes
    return Work(2 * steps + folds, 2 * part + folds * nbytes, part + folds // 2 * nbytes)


def ring(nbytes: float, ranks: int) -> Work:
    """p pieces go round twice: once to be added up, once to be told."""
    part = (ranks - 1) / ranks * nbytes
    return Work(2 * (ranks - 1), 2 * part, part)


ALGORITHMS = (doubling, halving, ring)


def _halvings(ranks: int) -> tuple[int, int]:
    """(how often the ranks can be halved, steps that fold those beyond a power of two into others)."""
    steps = ranks.bit_length() - 1
    return steps, 0 if 1 << steps == ranks else 2


def all_reduce(nbytes: float, ranks: int, network: Network, sharing: Sharing | None = None, algorithms: Sequence = ALGORITHMS) -> float:
    """Seconds of an all_reduce of so many bytes by the fastest of the algorithms."""
    if ranks == 1:
        return 0.0
    share, turn = _crowding(ranks, sharing)
    works = [algorithm(nbytes, ranks) for algorithm in algorithms]
    return min(w.steps * (network.latency + turn) + share * (w.sent / network.bandwidth + w.added / network.sums) for w in works)


def _crowding(ranks: int, sharing: Sharing | None) -> tuple[float, float]:
    """(ranks on each core, seconds that a message waits in each step)."""
    if sharing is None or ranks <= sharing.cores:
        return 1.0, 0.0
    return ranks / sharing.cores, sharing.turn


def exposed(buckets: Iterable[Bucket], communication: Sequence[float], hides: float = 1.0) -> float:
    """Seconds of a step beyond its compute: what is not averaged when backward ends, and of what it hides the share that is not free.

    Args:
        communication: seconds that each bucket is averaged.
        hides: the share of hidden communication that costs the processor nothing.
    """
    end = -math.inf
    for bucket, seconds in zip(buckets, communication, strict=True):
        end = max(end, -bucket.left) + seconds
    waits = max(0.0, end)
    return waits + (1 - hides) * (sum(communication) - waits)


def step_seconds(
    step: Step, ranks: int, network: Network, hides: float = 1.0, sharing: Sharing | None = None, slower: float = 1.0,
    algorithms: Sequence = ALGORITHMS,
) -> float:  # fmt: skip
    """Seconds of a step on so many ranks; `slower` is how many times as long its compute takes on ranks that share cores and memory."""
    buckets = [Bucket(b.nbytes, slower * b.left) for b in step.buckets]
    communication = [all_reduce(b.nbytes, ranks, network, sharing, algorithms) for b in buckets]
    averaging = step.averaging if ranks > 1 else 0.0
    return slower * (step.compute + averaging) + exposed(buckets, communication, hides)


def efficiency(step: Step, ranks: int, network: Network, hides: float = 1.0, algorithms: Sequence = ALGORITHMS) -> float:
    """Compute over step, every rank on a core of its own."""
    return step.compute / step_seconds(step, ranks, network, hides, algorithms=algorithms)


class Timed(NamedTuple):
    """A measured all_reduce."""

    nbytes: int
    ranks: int
    seconds: float


class Fitted(NamedTuple):
    """The network and the sharing of cores that are nearest to what was measured, and for each measurement model / measured - 1."""

    network: Network
    sharing: Sharing
    residuals: list[float]


def fitted(measured: Sequence[Timed], cores: int) -> Fitted:
    """Latency, bandwidth and turn that make the sum of the squares of the relative errors least, none of them negative.

    With the algorithm of each measurement given the time is linear in (latency, 1 / bandwidth, turn); the algorithms are those that the
    found constants make fastest, so both are found in turns, from several beginnings.

    Raises ValueError where measurements of ranks with a core each are of fewer than two sizes: they do not tell latency from bandwidth.
    """
    apart = {m.nbytes for m in measured if 1 < m.ranks <= cores}
    if len(apart) < 2:
        raise ValueError(
            f"fitted: all_reduce was measured at {len(apart)} sizes on ranks with one of {cores} cores each, and latency and bandwidth are "
            "told apart by two; measure two sizes on 2 ranks or more"
        )
    found: list[tuple[float, np.ndarray]] = []
    for latency, bandwidth, turn in itertools.product((1e-7, 1e-5, 1e-3), (1e8, 1e10), (0.0, 1e-3)):
        x = np.array([latency, 1 / bandwidth, turn])
        for _ in range(50):
            before, x = x, _least_squares(_rows(measured, cores, x), np.array([m.seconds for m in measured]))
            if np.allclose(before, x, rtol=1e-9, atol=0):
                break
        errors = _rows(measured, cores, x) @ x / [m.seconds for m in measured] - 1
        found.append((float(errors @ errors), x))
    best = min(found, key=lambda f: f[0])[1]
    network = Network(float(best[0]), 1 / float(best[1]) if best[1] else math.inf)
    sharing = Sharing(cores, float(best[2]))
    return Fitted(network, sharing, [all_reduce(m.nbytes, m.ranks, network, sharing) / m.seconds - 1 for m in measured])


def _rows(measured: Sequence[Timed], cores: int, x: np.ndarray) -> np.ndarray:
    """For each measurement the factors of latency, 1 / bandwidth and turn, by the algorithm that is fastest with those of x."""
    rows = []
    for m in measured:
        share = max(1.0, m.ranks / cores)
        works = [algorithm(m.nbytes, m.ranks) for algorithm in ALGORITHMS]
        options = [(w.steps, share * w.sent, w.steps if m.ranks > cores else 0) for w in works]
        rows.append(min(options, key=lambda o: float(np.dot(o, x))))
    return np.array(rows, float)


def _least_squares(rows: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    """The x >= 0 with the least sum of squares of rows @ x / seconds - 1: the best of those with some of the three held at 0."""
    weighted = rows / seconds[:, None]
    best, least = np.zeros(3), math.inf
    for kept in itertools.product((True, False), repeat=3):
        columns = np.flatnonzero(kept)
        x = np.zeros(3)
        scale = np.linalg.norm(weighted[:, columns], axis=0)
        scale[scale == 0] = 1  # a column of zeros: nothing was measured of it
        x[columns] = np.linalg.lstsq(weighted[:, columns] / scale, np.ones(len(seconds)), rcond=None)[0] / scale
        error = float(np.sum((weighted @ x - 1) ** 2))
        if (x >= 0).all() and error < least:
            best, least = x, error
    return best


def fitted_step(step: Step, measured: Mapping[int, float], seconds: Callable[[Step, int], float]) -> Step:
    """The step with the `averaging`, not negative, that makes the sum of the squares of the relative errors on several ranks least.

    Args:
        measured: seconds of a step on so many ranks.
        seconds: the model: seconds of a step on so many ranks, linear in `averaging`.
    """
    none, one = step._replace(averaging=0.0), step._replace(averaging=1.0)
    several = [(n, seen) for n, seen in measured.items() if n > 1]
    slope = np.array([(seconds(one, n) - seconds(none, n)) / seen for n, seen in several])
    missing = np.array([1 - seconds(none, n) / seen for n, seen in several])
    return step._replace(averaging=max(0.0, float(slope @ missing / (slope @ slope))))
