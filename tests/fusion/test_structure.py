"""Structure of graphs: which share a plan, and that a plan runs with another graph's arrays and numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

import tritensor as tt
from tests.fusion.graphs import Graph
from tritensor.fusion.tapes import Fused

rng = np.random.default_rng(1)


def leaf(*shape: int, grad: bool = False) -> Any:
    return tt.tensor(rng.normal(size=shape).astype(np.float32), requires_grad=grad)


def step(shape: tuple[int, ...] = (4, 5), rate: float = 0.1, power: int = 2) -> Graph:
    p, g = leaf(*shape), leaf(*shape)
    return Graph(lambda: p - rate * g + p**power).check()


def test_other_arrays_and_numbers_share_a_plan() -> None:
    first = step()
    other = step(rate=0.7)
    assert other.plan is first.plan
    assert not np.allclose(first.by_plan[0], other.by_plan[0])


def test_other_shapes_types_and_numbers_that_say_which_formula_do_not() -> None:
    first = step()
    assert step((5, 4)).plan is not first.plan
    assert step(power=3).plan is not first.plan
    assert step(rate=1).plan is not first.plan  # type: ignore[arg-type]  # an integer


def test_sizes_do_not_change_the_tape() -> None:
    assert step((3, 4)).plan.groups[0].tape == step((7, 2)).plan.groups[0].tape
    assert hash(step((3, 4)).plan.groups[0].tape) == hash(step((7, 2)).plan.groups[0].tape)

    def normed(rows: int, n: int) -> Any:
        x = leaf(rows, n)
        return Graph(lambda: (x - x.mean(1, keepdim=True)) * tt.rsqrt(x.var(1, keepdim=True) + 1e-5)).check().plan.groups

    assert [g.tape for g in normed(3, 8)] == [g.tape for g in normed(5, 16)]


def test_what_is_wanted_is_part_of_the_structure() -> None:
    x = leaf(3, 4)

    def program(both: bool) -> Any:
        y = tt.exp(x) + 1
        z = y * 2
        return (y, z) if both else z

    assert Graph(lambda: program(True)).check().plan is not Graph(lambda: program(False)).check().plan


def test_an_array_given_twice_is_another_structure() -> None:
    x, y = leaf(3, 4), leaf(3, 4)
    once, twice = Graph(lambda: x * y + 1).check(), Graph(lambda: x * x + 1).check()
    assert once.plan is not twice.plan
    assert len(once.plan.groups[0].inputs) == 2
    assert len(twice.plan.groups[0].inputs) == 1


def test_strides_are_part_of_the_structure() -> None:
    x, y = leaf(4, 4), leaf(4, 4).transpose(0, 1)
    a, b = Graph(lambda: x * 2 + 1).check(), Graph(lambda: y * 2 + 1).check()
    assert a.plan is not b.plan


def test_seeds_are_numbers_of_the_plan() -> None:
    x = leaf(50, 4)

    def program() -> Any:
        return tt.nn.functional.dropout(tt.exp(x) + 1, 0.5) * 2

    tt.manual_seed(3)
    first, other = Graph(program).check(), Graph(program).check()
    assert other.plan is first.plan
    assert not np.array_equal(first.by_plan[0], other.by_plan[0])
    tt.manual_seed(3)
    assert np.array_equal(Graph(program).by_plan[0], first.by_plan[0])


def test_memory_is_let_go_and_taken_over() -> None:
    w = leaf(6, 6)
    x = leaf(6, 6)

    def program() -> Any:
        y = tt.exp(x) * 2  # stored: a product reads it
        z = (y @ w) + 1
        a = tt.sin(z) * z
        return (a @ w) + a

    g = Graph(program).check()
    wanted = {v.place for v in g.plan.wanted}
    gone = [k for last in g.plan.last for k in last]
    assert len(gone) == len(set(gone))
    assert not wanted & set(gone)
    assert set(gone) == set(range(g.plan.places)) - wanted


def test_a_result_takes_the_memory_of_an_array_that_dies() -> None:
    many = [leaf(3, 5) for _ in range(40)]

    def program() -> Any:  # more arrays than one group reads
        y = many[0]
        for x in many[1:]:
            y = y + x
        return y

    g = Graph(program).check()
    first, last = [i for i in g.plan.items if type(i) is Fused]
    assert g.plan.donors == {last.outs[0].place: first.outs[0].place}


def test_a_value_that_a_call_reads_gives_no_memory_away() -> None:
    x, w = leaf(4, 4), leaf(4, 4)

    def program() -> Any:
        y = tt.exp(x) + 1
        return (y @ w) * y * y

    assert not Graph(program).check().plan.donors
