"""Spaces: the axes that two ways of stepping through one array share, against the addresses that they reach."""

from __future__ import annotations

import itertools
import math

from hypothesis import given, settings
from hypothesis import strategies as st

from tritensor.fusion.spaces import mapping, one_step, parts, split, units
from tritensor.ground.strides import contiguous_strides


def addresses(sizes: tuple[int, ...], strides: tuple[int, ...]) -> list[int]:
    """The addresses of all elements, in C order of the axes."""
    return [sum(i * s for i, s in zip(at, strides, strict=True)) for at in itertools.product(*map(range, sizes))]


def factors(n: int, draw: st.DrawFn) -> tuple[int, ...]:
    """A factorization of a number, without ones."""
    found = []
    while n > 1:
        k = draw(st.sampled_from([d for d in range(2, n + 1) if n % d == 0]))
        found.append(k)
        n //= k
    return tuple(found)


@st.composite
def two_ways(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Two shapes of as many elements with the strides of dense memory, each with its axes in some order."""
    n = draw(st.sampled_from([1, 2, 6, 8, 12, 24, 36]))
    found = []
    for _ in range(2):
        sizes = factors(n, draw)
        order = draw(st.permutations(range(len(sizes))))
        strides = contiguous_strides(sizes)
        found += [tuple(sizes[k] for k in order), tuple(strides[k] for k in order)]
    return tuple(found)  # type: ignore[return-value]


@settings(deadline=None)
@given(two_ways())
def test_shared_axes_reach_the_same_addresses(ways: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]) -> None:
    a_sizes, a, b_sizes, b = ways
    found = units(a_sizes, a, b_sizes, b)
    if found is None:  # cuts of neither are cuts of the other
        ends = [{math.prod(s[:k]) for k in range(len(s) + 1)} for s in (sorted_sizes(a_sizes, a), sorted_sizes(b_sizes, b))]
        merged = sorted(ends[0] | ends[1])
        assert any(y % x for x, y in itertools.pairwise(merged))
        return
    cuts = parts(found, 0, len(a_sizes))
    cut_sizes = tuple(n for sizes, c in zip(a_sizes, cuts, strict=True) for n in (reversed(c) if len(c) > 1 else [sizes]))
    cut = split(a, cuts)
    assert addresses(cut_sizes, cut) == addresses(a_sizes, a)
    how = mapping(found, cuts, len(cut_sizes), len(b_sizes))
    assert how.over(b) == cut
    other = contiguous_strides(b_sizes)  # another array of the second space
    assert sorted(zip(addresses(cut_sizes, how.over(b)), addresses(cut_sizes, how.over(other)), strict=True)) == sorted(
        zip(addresses(b_sizes, b), addresses(b_sizes, other), strict=True)
    )


def sorted_sizes(sizes: tuple[int, ...], strides: tuple[int, ...]) -> list[int]:
    """Sizes from the innermost axis on."""
    return [n for _, n in sorted(zip(strides, sizes, strict=True))]


def test_gaps_and_repeats() -> None:
    assert units((4, 3), (8, 1), (3, 4), (1, 8)) == [(1, 0, 3), (0, 1, 4)]
    assert units((4, 3), (8, 1), (12,), (1,)) is None
    assert units((4, 3), (1, 0), (4,), (1,)) == [(0, 0, 4)]
    assert units((4,), (-1,), (4,), (-1,)) is None
    assert units((), (), (), ()) == []


def test_one_axis() -> None:
    assert one_step((2, 3), (3, 1))
    assert one_step((2, 3), (0, 0))
    assert not one_step((2, 3), (0, 1))
    assert not one_step((2, 3), (4, 1))
    assert one_step((), ())
