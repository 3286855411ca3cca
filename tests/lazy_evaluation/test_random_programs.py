"""Random programs show lazily what they show eagerly: values, versions, strides, errors, and which memory is shared."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lazy_evaluation.instructions import EXACT, ROUGH, WRITES, Step
from tests.lazy_evaluation.programs import TALKS, ask

LITTLE = st.integers(0, 7)


def steps(makers: dict[str, object], longest: int) -> st.SearchStrategy[list[Step]]:
    """Programs of some instructions: half of them make values, the rest writes and talks."""
    kinds = st.one_of(
        st.sampled_from(sorted(makers)), st.sampled_from(sorted(makers)), st.sampled_from(sorted(WRITES)), st.sampled_from(TALKS)
    )
    return st.lists(st.builds(Step, kinds, LITTLE, LITTLE, st.integers(0, 3), st.booleans()), min_size=1, max_size=longest)


@settings(max_examples=60, deadline=None)
@given(steps(EXACT, 14), st.integers(2, 4), st.integers(0, 5))
def test_exact_programs(program: list[Step], runs: int, seed: int) -> None:
    ask(program, runs, seed)


@settings(max_examples=30, deadline=None)
@given(steps(ROUGH, 12), st.integers(2, 3), st.integers(0, 5))
def test_smooth_programs(program: list[Step], runs: int, seed: int) -> None:
    ask(program, runs, seed, 1e-3)


@settings(max_examples=4, deadline=None)
@given(steps({**EXACT, **ROUGH}, 7), st.integers(2, 3), st.integers(0, 5))
def test_programs_on_a_gpu(program: list[Step], runs: int, seed: int) -> None:
    ask(program, runs, seed, device="cuda", ways=("one region",))


@pytest.mark.slow
@settings(max_examples=1500, deadline=None)
@given(steps(EXACT, 24), st.integers(2, 4), st.integers(0, 99))
def test_many_exact_programs(program: list[Step], runs: int, seed: int) -> None:
    ask(program, runs, seed)


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@given(steps(ROUGH, 24), st.integers(2, 4), st.integers(0, 99))
def test_many_smooth_programs(program: list[Step], runs: int, seed: int) -> None:
    ask(program, runs, seed, 1e-3)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(steps({**EXACT, **ROUGH}, 12), st.integers(2, 3), st.integers(0, 99))
def test_many_programs_on_a_gpu(program: list[Step], runs: int, seed: int) -> None:
    ask(program, runs, seed, device="cuda")
