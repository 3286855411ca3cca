"""Spaces of iteration: which axes of one space are which of another, found by an array that both step through."""

from __future__ import annotations

from collections.abc import Sequence

Steps = tuple[int, ...]
Unit = tuple[int, int, int]  # an axis of one space, an axis of the other, elements along both


def units(a_sizes: Sequence[int], a: Steps, b_sizes: Sequence[int], b: Steps) -> list[Unit] | None:
    """Parts of the axes along which two spaces step through one array alike, the innermost first; None where they do not.

    a, b: the array's strides along the spaces' axes; axes of stride 0 take no part. A large axis may be several of the other's.
    """
    left = sorted([(s, k) for k, s in enumerate(a) if s], reverse=True)
    right = sorted([(s, k) for k, s in enumerate(b) if s], reverse=True)
    found: list[Unit] = []
    stride = size = i = other_stride = other_size = j = 0
    while left or right or size > 1 or other_size > 1:
        if size <= 1:
            if not left:
                return None
            stride, i = left.pop()
            size = a_sizes[i]
        if other_size <= 1:
            if not right:
                return None
            other_stride, j = right.pop()
            other_size = b_sizes[j]
        if stride != other_stride or stride < 0:
            return None
        step = min(size, other_size)
        if size % step or other_size % step:
            return None
        found.append((i, j, step))
        size, other_size = size // step, other_size // step
        stride, other_stride = stride * step, other_stride * step
    return found


def parts(found: Sequence[Unit], side: int, count: int) -> list[list[int]]:
    """For each axis of a side the sizes of its units, the innermost first."""
    sizes: list[list[int]] = [[] for _ in range(count)]
    for unit in found:
        sizes[unit[side]].append(unit[2])
    return sizes


def split(strides: Steps, cuts: Sequence[Sequence[int]]) -> Steps:
    """Strides along axes each of which has become several: `cuts` are the sizes, the innermost first; one or none leaves an axis as it is."""
    made: list[int] = []
    for stride, sizes in zip(strides, cuts, strict=True):
        if len(sizes) <= 1:
            made.append(stride)
            continue
        steps = []
        for n in sizes:
            steps.append(stride)
            stride *= n
        made += reversed(steps)
    return tuple(made)


class Mapping:
    """The axes of a space as those of another one: each axis becomes several, or one, at places of its own."""

    __slots__ = ("count", "places", "same")

    def __init__(self, places: list[list[tuple[int, int]]], count: int) -> None:
        self.places = places  # per axis (place, size), the innermost first
        self.count = count
        self.same = count == len(places) and all([len(p) == 1 and p[0][0] == k for k, p in enumerate(places)])

    def over(self, strides: Steps) -> Steps:
        """Strides along the other space's axes, 0 along those that this one has not."""
        if self.same:
            return strides
        made = [0] * self.count
        for stride, places in zip(strides, self.places, strict=True):
            for place, size in places:
                made[place] = stride
                stride *= size
        return tuple(made)

    def axes(self, found: frozenset[int] | set[int]) -> frozenset[int]:
        """A set of axes."""
        return frozenset([place for k in found for place, _ in self.places[k]])


def mapping(found: Sequence[Unit], cuts: Sequence[Sequence[int]], count: int, joining: int) -> Mapping:
    """How a space of `joining` axes lies in one whose axes have been cut so, and that has `count` axes now."""
    starts, at = [], 0
    for sizes in cuts:
        starts.append(at)
        at += max(len(sizes), 1)
    used = [0] * len(cuts)
    places: list[list[tuple[int, int]]] = [[] for _ in range(joining)]
    for i, j, size in found:
        inner = used[i]
        used[i] += 1
        places[j].append((starts[i] + max(len(cuts[i]), 1) - 1 - inner, size))
    return Mapping(places, count)


def one_step(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether axes, in order, are one axis of an array: all of stride 0, or each as far as all behind it reach."""
    before = -1
    for n, s in zip(reversed(sizes), reversed(strides), strict=True):
        if before >= 0 and s != before:
            return False
        before = s * n
    return True
