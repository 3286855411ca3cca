"""Collectives, messages, objects and groups on 2 and 4 ranks of MPI, each program against numpy."""

from __future__ import annotations

import pytest

from tests.distributed.ranks import succeed

TWO = pytest.param(2, marks=pytest.mark.quick)


@pytest.mark.crossed
@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("part", ["odd", "shared", "moves", "reductions", "large"])
def test_every_collective(part: str, ranks: int) -> None:
    succeed("every_collective.py", ranks, part)


@pytest.mark.parametrize("ranks", [TWO, 4])
def test_messages_objects_groups_and_asynchronous_calls(ranks: int) -> None:
    succeed("messages.py", ranks)


@pytest.mark.parametrize("ranks", [2, 3])
def test_mistakes_are_told_before_anything_is_sent(ranks: int) -> None:
    succeed("mistakes.py", ranks)


def test_every_call_compared() -> None:
    succeed("messages.py", 3, TRITENSOR_DISTRIBUTED_DEBUG="DETAIL")


@pytest.mark.parametrize("ranks", [TWO, 4])
def test_gradients_go_through_collectives(ranks: int) -> None:
    succeed("gradients.py", ranks)
