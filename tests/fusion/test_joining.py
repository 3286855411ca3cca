"""Arrays laid side by side, which steps take part by part: what cat and stack give is not put together before somebody reads it whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tests.fusion.graphs import Graph

rng = np.random.default_rng(0)
DEVICES = ("cpu", "cuda")


def leaf(*shape: int, device: str = "cpu", dtype: Any = None, grad: bool = False) -> Any:
    return tt.tensor(rng.integers(-4, 5, shape).astype(np.float32), device=device, dtype=dtype, requires_grad=grad)


def turned(x: Any) -> Any:
    half = x.shape[-1] // 2
    return tt.cat([-x[..., half:], x[..., :half]], -1)


def ways(device: str, dtype: Any) -> dict[str, Callable[[], Any]]:
    """Programs that join arrays; all their numbers are whole and small, so that every result is exact."""
    x, y, row, column = (leaf(*s, device=device, dtype=dtype) for s in ((3, 8), (3, 8), (8,), (3, 1)))
    narrow, cube = leaf(3, 1, device=device, dtype=dtype), leaf(2, 3, 4, device=device, dtype=dtype)
    images = leaf(2, 3, 4, 5, device=device, dtype=dtype).to(memory_format=tt.channels_last)
    square = leaf(16, 3, device=device, dtype=dtype)
    return {
        "rotary": lambda: x * row + turned(x) * row,
        "rows": lambda: tt.cat([x + y, y], 0) * row - 1,
        "a column more": lambda: tt.cat([x * 2, narrow], 1) + column,
        "read whole": lambda: tt.cat([x + 1, y * 2], 1) @ square,
        "in memory and by parts": lambda: ((z := tt.cat([x + 1, y * 2], 1)), z * 3),
        "joined parts": lambda: tt.cat([tt.cat([x * 2, y], 0) + 1, tt.cat([y, x - 1], 0)], 1) * 2,
        "of other sizes": lambda: tt.cat([x * 2, x[:, :4]], 1) + tt.cat([x[:, :4], y], 1),
        "cut another way": lambda: tt.cat([x, y], 1).reshape(6, 8) + tt.cat([x, y], 0),
        "summed": lambda: (tt.cat([x + 1, y], 1) * 2).sum(1, keepdim=True) + x,
        "largest of": lambda: tt.cat([x + 1, y], 0).amax(1),
        "a window of it": lambda: (tt.cat([x + 1, y], 1) * 2)[:, 3:11] + x,
        "turned": lambda: (tt.cat([x + 1, y], 1) * 2).t() + 1,
        "bytes": lambda: (tt.cat([x + 1, y], 1) * 2).view(tt.int16 if dtype == tt.bfloat16 else tt.int32),
        "stretched": lambda: tt.cat([narrow * 2, column], 1)[:, :, None] * row,
        "along what is stretched": lambda: tt.cat([row[None] + 1, row[None]], 0)[:, None] * x,
        "stacked": lambda: tt.stack([x + 1, y], 1) * row - x[:, None],
        "stacked last": lambda: tt.stack([x, y * 2], -1).flatten(1) + 1,
        "cube": lambda: cube + turned(cube) * cube,
        "images": lambda: tt.cat([images + 1, images], 1) * 2,
        "a maker that others read": lambda: ((z := x * row), z + turned(x), z.sum(0)),
        "a maker of both": lambda: (z := x * row) * turned(x) + turned(z),
        "one array twice": lambda: tt.cat([x, x], 1) + tt.cat([x, y], 1) * tt.cat([y, y], 1),
        "of truths": lambda: tt.where(tt.cat([x > 0, y > 0], 1), tt.cat([x, y], 1), tt.cat([y * 2, x], 1)),
        "ten": lambda: tt.cat([x[:, k : k + 1] * k for k in range(8)], 1) + y,
    }  # fmt: skip


OF_FLOATS = ("bytes", "read whole")  # a GPU has no products of whole numbers


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("way", "dtype"),
    [(way, t) for way in ways("cpu", tt.float32) for t in (tt.float32, tt.bfloat16, tt.int64) if t is not tt.int64 or way not in OF_FLOATS],
    ids=lambda x: str(x).split(".")[-1],
)
def test_what_is_joined_is_what_the_calls_give(device: str, way: str, dtype: Any) -> None:
    program = ways(device, dtype)[way]
    Graph(program).check(0.0)
    f = tt.compile(program)
    for _ in range(3):
        eager, found = program(), f()
        for a, b in zip(eager if isinstance(eager, tuple) else (eager,), found if isinstance(found, tuple) else (found,), strict=True):
            assert tt.equal(a, b)
            assert (a.shape, a.stride(), a.dtype) == (b.shape, b.stride(), b.dtype)


@pytest.mark.parametrize("device", DEVICES)
def test_gradients_of_two_orders(device: str) -> None:
    def program() -> Any:
        x = tt.tensor(np.arange(24, dtype=np.float32).reshape(3, 8) % 5 - 2, device=device, requires_grad=True)
        y = x * turned(x) + tt.stack([x, x * x], 0).sum(0)
        (g,) = tt.autograd.grad((y * y).sum(), x, create_graph=True)
        (h,) = tt.autograd.grad((g * x).sum(), x)
        return y, g, h

    eager = program()
    with tt.lazy():
        lazily = program()
    assert all(tt.equal(a, b) for a, b in zip(eager, lazily, strict=True))


@pytest.mark.parametrize("device", DEVICES)
def test_a_rotary_embedding_is_one_group(device: str) -> None:
    x, cos, sin = (leaf(*s, device=device) for s in ((2, 3, 5, 8), (5, 8), (5, 8)))
    g = Graph(lambda: x * cos + turned(x) * sin).check()
    (group,) = g.plan.groups
    assert not g.alone
    assert len(group.outs) == 2
    assert len({o.place for o in group.outs}) == 1
    assert sorted(o.first for o in group.outs) == [0, 16]


def test_parts_are_written_where_they_belong() -> None:
    x, y = leaf(4, 6), leaf(4, 6)
    g = Graph(lambda: tt.cat([x + 1, y * 2], 0)).check()
    assert not g.alone
    assert [o.place for group in g.plan.groups for o in group.outs] == [2, 2]


def test_two_programs_that_are_cut_in_other_places() -> None:
    x, y = leaf(4, 6), leaf(4, 6)
    g = Graph(lambda: tt.cat([x[:, :2], y[:, 2:] * 2], 1) + tt.cat([x[:, :3] * 2, y[:, 3:]], 1)).check()
    assert "cat" not in g.alone


def test_a_gpu_joins_memory_in_one_launch() -> None:
    x, y = leaf(4, 6, device="cuda"), leaf(4, 6, device="cuda")
    assert Graph(lambda: tt.cat([x, y], 0) * 2).check().alone[:1] == ["cat"]
    assert Graph(lambda: tt.cat([x * 3, y], 0) * 2).check().alone == []
    assert "cat" in Graph(lambda: tt.cat([x * 3, y * 2, x, y, x], 0) * 2).check().alone


def test_many_arrays_are_joined_by_the_call() -> None:
    x = leaf(2, 3)
    assert Graph(lambda: tt.cat([x] * 17, 0) * 2).check().alone[:1] == ["cat"]
    assert Graph(lambda: tt.cat([x, x[:, :0]], 1) * 2).check().alone[:1] == ["cat"]
