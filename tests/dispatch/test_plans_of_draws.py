"""Plans that draw: the numbers of the default generator's next blocks, as by the long way, wherever it stands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tritensor as tt
from tests.dispatch.at_once import learns_at_once, plans_of  # noqa: F401
from tritensor.ground import shortcuts
from tritensor.nn import functional as F
from tritensor.random import default_generator

pytestmark = pytest.mark.quick

X = tt.arange(12.0).reshape(3, 4)
DRAWS: dict[str, tuple[Any, Callable[[], tt.Tensor]]] = {
    "rand": (tt.rand, lambda: tt.rand(3, 5)),
    "randn": (tt.randn, lambda: tt.randn(3, 5)),
    "randn of float64": (tt.randn, lambda: tt.randn(3, 5, dtype=tt.float64)),
    "randn of many": (tt.randn, lambda: tt.randn(3000)),
    "randint": (tt.randint, lambda: tt.randint(-3, 9, (5,))),
    "randperm": (tt.randperm, lambda: tt.randperm(9)),
    "randn_like": (tt.randn_like, lambda: tt.randn_like(X)),
    "rand_like": (tt.rand_like, lambda: tt.rand_like(X)),
    "dropout": (F.dropout, lambda: F.dropout(X, 0.5)),
}


@pytest.fixture(autouse=True)
def _own_stream() -> Iterator[None]:
    with tt.random.fork_rng():
        yield


def _three(draw: Callable[[], tt.Tensor]) -> tuple[list[tt.Tensor], int]:
    """What three calls from one seed draw, and where the generator stands then."""
    tt.manual_seed(5)
    drawn = [draw().clone() for _ in range(3)]
    return drawn, default_generator.offset


@pytest.mark.parametrize("name", DRAWS)
def test_the_numbers_are_those_of_the_long_way(name: str) -> None:
    of, draw = DRAWS[name]
    with shortcuts.suspended():
        expected, end = _three(draw)
    for _ in range(2):  # learning, and by the plan
        found, stands = _three(draw)
        assert stands == end
        assert all(map(tt.equal, expected, found))
    assert plans_of(of) == 1
    assert not any(a.data_ptr() == b.data_ptr() for a, b in zip(found, expected, strict=True))


def test_dropped_gradients_are_those_of_the_mask_drawn() -> None:
    x = tt.ones(64, requires_grad=True)
    for _ in range(3):
        y = F.dropout(x, 0.5)
        (g,) = tt.autograd.grad(y, x, tt.ones(64))
        assert tt.equal(g, y)


def test_another_generator_and_another_seed_have_numbers_of_their_own() -> None:
    own = tt.Generator().manual_seed(1)
    tt.manual_seed(1)
    for _ in range(3):
        assert tt.equal(tt.randn(4), tt.randn(4, generator=own))
    tt.manual_seed(2)
    assert not tt.equal(tt.randn(4), tt.randn(4, generator=own))


def test_examples_of_vmap_draw_apart() -> None:
    def draw(x: tt.Tensor) -> tt.Tensor:
        return x + tt.randn(3)

    for _ in range(3):
        tt.randn(3)
        different = tt.vmap(draw, randomness="different")(tt.zeros(4, 3))
        same = tt.vmap(draw, randomness="same")(tt.zeros(4, 3))
        assert len({tuple(r) for r in different.tolist()}) == 4
        assert len({tuple(r) for r in same.tolist()}) == 1
        with pytest.raises(RuntimeError, match="randomness"):
            tt.vmap(draw)(tt.zeros(4, 3))


def test_what_is_written_to_one_draw_is_not_in_the_next() -> None:
    tt.manual_seed(3)
    first = tt.randn(4)
    expected = first.clone()
    first.zero_()
    for _ in range(3):
        tt.manual_seed(3)
        drawn = tt.randn(4)
        assert tt.equal(drawn, expected)
        drawn.zero_()


@pytest.mark.parametrize("draw", [lambda x: F.dropout(x, 0.5), lambda x: tt.rand_like(x)], ids=["dropout", "rand_like"])
def test_draws_on_a_gpu_go_by_their_recordings(draw: Callable[[tt.Tensor], tt.Tensor]) -> None:
    x = tt.arange(1.0, 13.0, device="cuda", requires_grad=True)
    with shortcuts.suspended():
        expected, end = _three(lambda: draw(x))
    for _ in range(2):
        found, stands = _three(lambda: draw(x))
        assert stands == end
        assert all(map(tt.equal, expected, found))
    y = draw(x)
    if y.requires_grad:
        (g,) = tt.autograd.grad(y, x, x.detach())
        assert tt.equal(g, y)
    assert plans_of(F.dropout if y.requires_grad else tt.rand_like) == 1
