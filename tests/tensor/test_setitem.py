"""x[index] = value: lists, ranges and arrays as indices and as values, what fits, and what is refused without a trace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tritensor.ground.errors import ShapeError

DEVICES = ["cpu", "cuda"]
CASES: list[tuple[Any, Any]] = [
    (np.array([0, 2]), np.array([5.0, 6.0, 7.0])),
    ([0, 1], [1.0, 2.0, 3.0]),
    (0, [7, 8, 9]),
    ([True, False, False, True], 0),
    (np.array([True, False, False, True]), np.zeros((2, 3))),
    (np.array([[True, False, True]] * 4), 3),
    ((slice(None), [0, 2]), np.ones((4, 2))),
    (([0, 1], [1, 2]), [10.0, 20.0]),
    (np.int64(1), np.float32(2)),
    (slice(1, 3), [[1], [2]]),
    (np.array(1), 3),
    (np.array([-1, 0]), -2.5),
    (slice(None, None, 2), np.arange(3)),
    ((..., 1), np.array([1, 2, 3, 4], np.int32)),
    ((None, 1), [[4, 5, 6]]),
]


@pytest.mark.parametrize("on", DEVICES)
@pytest.mark.parametrize("tracked", [False, True])
def test_what_numpy_would_do(tracked: bool, on: str) -> None:
    for index, value in CASES:
        want = np.arange(12.0).reshape(4, 3)
        want[index] = value
        leaf = tt.arange(12.0, dtype=tt.float64, device=on).reshape(4, 3).clone().requires_grad_(tracked)
        x = leaf * 1
        x[index] = value
        assert x.tolist() == want.tolist(), (index, value)
        if tracked:
            x.sum().backward()
            hole = np.ones((4, 3))
            hole[index] = 0
            assert leaf.grad.tolist() == hole.tolist(), (index, value)


def test_ranges_and_empty_lists() -> None:
    x = tt.zeros(4, 3)
    x[[]] = 1
    assert x.sum().item() == 0.0
    x[range(2)] = 1
    assert x.sum(1).tolist() == [3.0, 3.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("index", "value", "error"),
    [
        (0, [1, 2], "does not fit"),
        ([5], 1, "out of range"),
        (4, 1, "out of range"),
        ((0, 0, 0), 1, "3 indices"),
        ([0.5], 1, "use integers or booleans"),
        (["a"], 1, "cannot hold"),
        (0, "a", "cannot hold"),
        (0, None, "cannot hold"),
        (0, 1j, "complex"),
        (slice(0.5, None), 1, "slice's bound is a float"),
    ],
)
def test_what_is_refused_leaves_no_trace(index: Any, value: Any, error: str) -> None:
    x = tt.arange(12.0).reshape(4, 3).clone()
    with pytest.raises((TypeError, ValueError, IndexError, RuntimeError), match=error):
        x[index] = value
    assert x.tolist() == np.arange(12.0).reshape(4, 3).tolist()
    assert x._version == 0


def test_a_refused_write_leaves_what_was_saved_usable() -> None:
    x, w = tt.ones(3), tt.ones(3, requires_grad=True)
    y = x * w
    with pytest.raises(IndexError):
        x[[5]] = 1
    y.sum().backward()
    assert w.grad.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("on", DEVICES)
def test_out_of_another_shape_than_the_operands(on: str) -> None:
    row, column = tt.tensor([1.0, 2.0, 3.0], device=on), tt.tensor([[10.0], [20.0]], device=on)
    out = tt.zeros(2, 3, device=on)
    tt.add(row, column, out=out)  # neither has the result's shape
    assert out.tolist() == [[11.0, 12.0, 13.0], [21.0, 22.0, 23.0]]
    with pytest.warns(UserWarning, match=r"shape \(2, 3\) and was resized to \(3,\)"):
        tt.add(row, row, out=out)
    assert out.tolist() == [2.0, 4.0, 6.0]
    with pytest.raises(RuntimeError, match="does not fit"):
        row.add_(column)
    assert row.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("value", [2.0, tt.tensor(2.0), tt.tensor([2.0], device="cuda")], ids=["number", "from the CPU", "from the GPU"])
@pytest.mark.parametrize("mask_on", ["cpu", "cuda"])
def test_a_mask_from_either_device(mask_on: str, value: Any) -> None:
    x = tt.zeros(3, device="cuda")
    x[tt.tensor([True, False, True], device=mask_on)] = value
    assert x.tolist() == [2.0, 0.0, 2.0]
    assert x.is_cuda


@pytest.mark.parametrize("on", ["cpu", "cuda"])
def test_setitem_by_one_number_of_another_device(on: str) -> None:
    x = tt.zeros(2, 3, device=on)
    x[0] = tt.tensor(2.0, device="cpu" if on == "cuda" else "cuda")
    assert x.tolist() == [[2.0] * 3, [0.0] * 3]
    x[[1]] = tt.tensor(3.0, device="cpu" if on == "cuda" else "cuda")
    assert x.tolist() == [[2.0] * 3, [3.0] * 3]
    x[1] = np.arange(3.0)
    assert x.tolist() == [[2.0] * 3, [0.0, 1.0, 2.0]]


@pytest.mark.parametrize("on", ["cpu", "cuda"])
def test_indices_that_do_not_broadcast_are_refused_by_name(on: str) -> None:
    x = tt.zeros(3, 3, device=on)
    pair = ([0, 0], [0, 0, 0])
    places = tuple(tt.tensor(p, device=on) for p in pair)
    with pytest.raises(IndexError, match=r"setitem: indices of shapes \(2,\), \(3,\) do not broadcast together"):
        x[pair] = 0.5
    with pytest.raises(IndexError, match=r"index_put_: indices of shapes \(2,\), \(3,\) do not broadcast together"):
        x.index_put_(places, tt.tensor(0.5, device=on))
    with pytest.raises(ShapeError, match=r"take_along_dim: .* sizes 2 and 3 at dim -2 do not broadcast"):
        tt.take_along_dim(tt.ones(2, 3, device=on), tt.zeros(3, 2, dtype=tt.int64, device=on), 1)


@pytest.mark.parametrize(
    ("shape", "index"),
    [
        ((1, 0), ([0],)),
        ((2,), []),
        ((2,), np.zeros(0, np.int64)),
        ((2, 2), ([], [])),
        ((2, 2), (slice(0, 0), [0])),
        ((2,), np.array([False, False])),
    ],
)
def test_a_leaf_refuses_a_write_of_nothing_as_well(shape: tuple[int, ...], index: Any) -> None:
    """As in PyTorch, where only a bare False asks nothing, not even of what is given."""
    x = tt.zeros(shape, requires_grad=True)
    for value in (0.5, tt.tensor(0.5), tt.tensor(0.5, requires_grad=True)):
        with pytest.raises(tt.GradError, match="leaf that requires grad"):
            x[index] = value
        x[False] = value
    with tt.no_grad():
        x[index] = 0.5
    y = x * 1
    y[index] = 0.5
    y.sum().backward()
    assert x.grad.tolist() == tt.ones_like(x).tolist()
