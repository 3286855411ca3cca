"""Ways through machine code: which instructions a warp can execute one after the other, and the longest way."""

from __future__ import annotations

import numpy as np

from tritensor.cuda.compiler.sass import longest_way, ways_of

EXIT, BRANCH, APART, MEET, WORK = 0x94D, 0x947, 0x945, 0x941, 0x221  # of the last it only matters that it is none of the others
ALWAYS, IF = 7 << 12, 0


def code(*instructions: tuple[int, int] | int) -> tuple[np.ndarray, np.ndarray, dict[int, int]]:
    """Words, operations and branches of instructions, each an operation or (operation, where it jumps or where lanes meet)."""
    words = np.zeros((len(instructions), 2), np.uint64)
    branches = {}
    for at, one in enumerate(instructions):
        operation, to = one if isinstance(one, tuple) else (one, None)
        if operation & 0xFFF == APART:
            operation |= 16 * (to - at - 1) << 32
        elif to is not None:
            branches[at] = to
        words[at, 0] = operation
    return words, (words[:, 0] & np.uint64(0xFFF)).astype(np.int64), branches


def longest(*instructions: tuple[int, int] | int) -> int:
    words, operation, branches = code(*instructions)
    return longest_way(ways_of(words, operation, branches), [1] * len(words), 0, len(words))


W = WORK | ALWAYS


def test_of_two_sides_the_longer_counts() -> None:
    assert longest(W, (BRANCH | IF, 4), W, EXIT | ALWAYS, W, W, W, EXIT | ALWAYS) == 6
    assert longest(W, (BRANCH | IF, 6), W, W, W, EXIT | ALWAYS, W, EXIT | ALWAYS) == 6
    assert longest(W, (BRANCH | IF, 5), W, W, (BRANCH | ALWAYS, 6), W, W, EXIT | ALWAYS) == 7  # both sides meet again


def test_lanes_that_may_part_take_both_sides() -> None:
    apart = ((APART | ALWAYS, 7), (BRANCH | IF, 5), W, W, (BRANCH | ALWAYS, 7), W, W, MEET | ALWAYS, EXIT | ALWAYS)
    assert longest(*apart) == len(apart)


def test_an_end_that_a_predicate_skips_ends_nothing() -> None:
    assert longest(W, EXIT | IF, W, W, EXIT | ALWAYS) == 5
    assert longest(W, EXIT | ALWAYS, W, W, EXIT | ALWAYS) == 2  # what is only called is no part of the way


def test_loops_are_passed_once() -> None:
    looping = (W, W, W, (BRANCH | IF, 1), W, EXIT | ALWAYS)
    assert longest(*looping) == 6
    words, operation, branches = code(*looping)
    assert longest_way(ways_of(words, operation, branches), [1] * 6, 1, 4) == 3
    assert (
        longest(W, W, (BRANCH | IF, 6), W, EXIT | ALWAYS, W, W, W, W, (BRANCH | ALWAYS, 3)) == 9
    )  # a side that stands behind the end comes back


def test_weights_are_summed() -> None:
    words, operation, branches = code(W, (BRANCH | IF, 3), W, W, EXIT | ALWAYS)
    assert longest_way(ways_of(words, operation, branches), [0, 0, 16, 16, 0], 0, 5) == 32


def test_the_end_of_the_code_is_no_way_on() -> None:
    words, operation, branches = code(W, EXIT | ALWAYS, (BRANCH | ALWAYS, 2))
    assert ways_of(words, operation, branches)[1:] == [(), (2,)]
