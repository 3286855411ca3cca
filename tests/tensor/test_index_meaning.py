"""Meaning of an index, in PyTorch's order: ints select first, neighbours stay in place, uint8 masks, a 0-d integer is an int."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as tt

DEVICES = ["cpu", "cuda"]
N = np.arange(60).reshape(3, 4, 5)


def x3(on: str) -> tt.Tensor:
    return tt.arange(60, device=on).reshape(3, 4, 5)


@pytest.mark.parametrize("on", DEVICES)
@pytest.mark.parametrize(
    ("index", "want"),
    [
        pytest.param(([0, 1], ..., [1, 2], [0, 3]), N[[0, 1], [1, 2], [0, 3]], id="an Ellipsis that stands for nothing"),
        pytest.param((0, slice(None), [1, 2]), N[0][:, [1, 2]], id="an int selects first"),
        pytest.param((0, ..., [1, 2]), N[0][:, [1, 2]], id="an int, an Ellipsis, a list"),
        pytest.param(([0, 2], slice(None), 1), N[:, :, 1][[0, 2]], id="an int behind"),
        pytest.param((None, slice(None), [0, 1], None, 0), N[:, :, 0][None, :, [0, 1], None], id="an int behind a new axis"),
        pytest.param(([0, 1], None, [1, 2]), N[[0, 1], [1, 2]][:, None], id="a new axis parts two lists"),
        pytest.param((slice(None), True, [0, 1]), N[:, None][:, [0], [0, 1]], id="True is a dimension of its own"),
        pytest.param((..., 0, ...), N[..., 0], id="a second Ellipsis stands for nothing"),
        pytest.param([[0, 1], [1, 2]], N[[0, 1], [1, 2]], id="a list of lists is a tuple of them"),
        pytest.param([slice(0, 2), 1], N[0:2, 1], id="a list with a slice is a tuple"),
        pytest.param(np.array([[0, 1], [1, 2]]), N[[[0, 1], [1, 2]]], id="an array of two dimensions is one index"),
        pytest.param(np.array(1), N[1], id="an array without dimensions is an int"),
        pytest.param(np.array([True, False, True]), N[[0, 2]], id="an array of booleans"),
        pytest.param(([[0], [2]], [1, 3]), N[[[0], [2]], [1, 3]], id="lists that broadcast"),
        pytest.param(range(1, 3), N[1:3], id="a range"),
    ],
)
def test_get(index: Any, want: np.ndarray, on: str) -> None:
    got = x3(on)[index]
    assert tuple(got.shape) == want.shape
    np.testing.assert_array_equal(got.cpu().numpy(), want)


@pytest.mark.parametrize("on", DEVICES)
def test_uint8_is_a_mask(on: str) -> None:
    x = tt.arange(3, device=on)
    with pytest.warns(UserWarning, match="uint8 is a mask") as caught:
        assert x[tt.tensor([1, 0, 1], dtype=tt.uint8, device=on)].tolist() == [0, 2]
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="uint8"):
        assert x[np.array([1, 0, 1], np.uint8)].tolist() == [0, 2]
    with pytest.warns(UserWarning, match="uint8"):
        assert x[tt.tensor(1, dtype=tt.uint8, device=on)].tolist() == [[0, 1, 2]]
    with pytest.warns(UserWarning, match="uint8"):
        x[tt.tensor([0, 1, 0], dtype=tt.uint8, device=on)] = 7
    assert x.tolist() == [0, 7, 2]


@pytest.mark.parametrize("on", DEVICES)
@pytest.mark.parametrize("rest", [(), (slice(None),), (..., None)])
def test_an_index_tensor_without_dimensions_gives_a_view(rest: tuple[Any, ...], on: str) -> None:
    x = tt.arange(9.0, device=on).reshape(3, 3)
    view = x[(tt.tensor(1, device=on), *rest)]
    assert view._base is not None
    view.add_(10)
    assert x.tolist() == [[0, 1, 2], [13, 14, 15], [6, 7, 8]]
    x[(tt.tensor(-1, device=on), *rest)] = 0
    assert x[2].tolist() == [0, 0, 0]
    with pytest.raises(IndexError, match="index 3 is out of range for dim 0 of size 3"):
        x[tt.tensor(3, device=on)]


@pytest.mark.parametrize("on", DEVICES)
def test_numbers_written_at_an_index_become_the_type(on: str) -> None:
    whole = tt.zeros(3, dtype=tt.int64, device=on)
    whole[0] = 1.7
    whole[[1]] = -1.7
    whole[whole == 0] = True
    assert whole.tolist() == [1, -1, 1]
    truth = tt.zeros(2, dtype=tt.bool, device=on)
    truth[0] = 2
    assert truth.tolist() == [True, False]
    for index in (0, [0], tt.tensor([True, False], device=on)):
        with pytest.raises(TypeError, match="imaginary"):
            tt.zeros(2, device=on)[index] = 1 + 2j
        with pytest.raises(OverflowError, match="300 does not fit uint8"):
            tt.zeros(2, dtype=tt.uint8, device=on)[index] = 300
    with pytest.raises(OverflowError, match="inf does not fit int64"):
        whole[0] = float("inf")


@pytest.mark.parametrize("on", DEVICES)
def test_index_put_at_a_part_returns_the_whole(on: str) -> None:
    x = tt.arange(9.0, device=on).reshape(3, 3)
    at = (tt.tensor([0, 1], device=on), tt.tensor(1, device=on))
    assert x.index_put(at, tt.tensor(5.0, device=on)).tolist() == [[0, 5, 2], [3, 5, 5], [6, 7, 8]]
    assert x.index_put(at, tt.tensor(5.0, device=on), accumulate=True).tolist() == [[0, 6, 2], [3, 9, 5], [6, 7, 8]]
    one = (tt.tensor(1, device=on),)
    assert x.index_put(one, tt.tensor(5.0, device=on), accumulate=True).tolist() == [[0, 1, 2], [8, 9, 10], [6, 7, 8]]
    x.index_put_(at, tt.tensor(5.0, device=on))
    assert x.tolist() == [[0, 5, 2], [3, 5, 5], [6, 7, 8]]


def test_gradient_of_index_put_at_a_part() -> None:
    x = tt.zeros(3, 3, requires_grad=True)
    v = tt.tensor([2.0, 3.0], requires_grad=True)
    y = x.index_put((tt.tensor([0, 1]), tt.tensor(1)), v)
    (y * tt.arange(9.0).reshape(3, 3)).sum().backward()
    assert v.grad.tolist() == [1, 4]
    assert x.grad.tolist() == [[0, 0, 2], [3, 0, 5], [6, 7, 8]]


@pytest.mark.parametrize("on", DEVICES)
def test_arrays_and_lists_as_operands(on: str) -> None:
    x = tt.arange(3.0, device=on)
    n = np.array([1, 2, 3])
    for got, want in ((x + n, [1, 3, 5]), (n + x, [1, 3, 5]), (x - [1, 2, 3], [-1, -1, -1]), ([1, 2, 3] - x, [1, 1, 1])):
        assert isinstance(got, tt.Tensor)
        assert (got.dtype, got.device, got.tolist()) == (tt.float32, x.device, want)
    assert (x * n.astype(np.float64)).dtype == tt.float64
    assert (x * np.array(2.0)).dtype == tt.float32  # without dimensions it is weak
    assert (n == x).tolist() == (x == n).tolist() == [False, False, False]
    assert (x < n).tolist() == [True, True, True]
    assert (n / tt.ones(3, device=on)).tolist() == [1, 2, 3]
    assert (x @ n.astype(np.float32)).item() == 8
    y = x
    y += n
    assert y is x
    assert x.tolist() == [1, 3, 5]
    assert (n & tt.tensor([1, 1, 1], device=on)).tolist() == [1, 0, 1]
