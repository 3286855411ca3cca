"""Indexing, get and set, on random indices of every kind and on both devices, against numpy in two steps; its errors; its gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tritensor.kernels.parts.indices.rows_by_key import keys_of, numpy_add_rows, take_rows
from tritensor.ops.array import to_host

DEVICES = ["cpu", "cuda"]


def random_index(rng: np.random.Generator, shape: tuple[int, ...], unique: bool = False) -> tuple[Any, ...]:
    """An index as numpy takes it; with `unique` no element is named twice."""
    common = [(), (3,), (2, 3), (1, 3), (1,)][rng.integers(5)]
    entries: list[Any] = []
    ellipsis = False
    d = 0
    while d < len(shape):
        n, kind = shape[d], rng.integers(9)
        if kind == 0:
            entries.append(int(rng.integers(-n, n)))
        elif kind in (1, 2):
            step = [1, 2, -1, -3, None][rng.integers(5)]
            ends = [None if rng.random() < 0.4 else int(rng.integers(-n - 2, n + 3)) for _ in range(2)]
            entries.append(slice(*ends, step))
        elif kind == 3:
            entries.append(None)
            d -= 1
        elif kind == 4 and not ellipsis:
            entries.append(Ellipsis)
            ellipsis = True
            d += int(rng.integers(0, len(shape) - d))
            d -= 1
        elif kind == 5:
            m = int(rng.integers(1, min(2, len(shape) - d) + 1))
            entries.append(rng.random(shape[d : d + m]) < 0.5)
            if not entries[-1].any():
                entries[-1].flat[0] = True
            d += m - 1
        elif kind == 6 and not unique:
            entries.append(rng.integers(-n, n, common).tolist() if common else int(rng.integers(n)))
        elif not unique:
            entries.append(rng.integers(-n, n, common).astype([np.int64, np.int32, np.uint8][rng.integers(2)]))
        else:
            entries.append(rng.permutation(n)[: rng.integers(1, n + 1)])
        d += 1
        if rng.random() < 0.15:
            break
    return tuple(entries)


def split(x: np.ndarray, index: tuple[Any, ...]) -> tuple[np.ndarray, tuple[Any, ...]]:
    """x after its ints, slices and new axes, as a view, and what is left for numpy to index: PyTorch's order, not numpy's."""
    used = sum(i.ndim if isinstance(i, np.ndarray) and i.dtype == bool else i is not None and i is not Ellipsis for i in index)
    first: list[Any] = []
    then: list[Any] = []
    for i in index:
        if i is Ellipsis:
            first += [slice(None)] * (x.ndim - used)
            then += [slice(None)] * (x.ndim - used)
        elif isinstance(i, int) or (isinstance(i, np.ndarray) and not i.ndim):
            first.append(int(i))
        elif i is None or isinstance(i, slice):
            first.append(i)
            then.append(slice(None))
        else:
            first += [slice(None)] * (i.ndim if isinstance(i, np.ndarray) and i.dtype == bool else 1)
            then.append(i)
    return x[(*first, ...)], tuple(then)


def picked(x: np.ndarray, index: tuple[Any, ...]) -> np.ndarray:
    """What x[index] is."""
    view, then = split(x, index)
    return np.asarray(view[then])


def spoken(index: tuple[Any, ...], on: str) -> tuple[Any, ...]:
    """The same index with its arrays as tensors."""
    return tuple(tt.tensor(i, device=on) if isinstance(i, np.ndarray) else i for i in index)


def attempts(count: int, seed: int, unique: bool = False) -> list[tuple[np.ndarray, tuple[Any, ...]]]:
    """Arrays with indices that can be read."""
    rng = np.random.default_rng(seed)
    found: list[tuple[np.ndarray, tuple[Any, ...]]] = []
    while len(found) < count:
        shape = tuple(rng.integers(1, 5, rng.integers(1, 5)).tolist())
        x = rng.standard_normal(shape)
        index = random_index(rng, shape, unique)
        try:
            picked(x, index)
        except IndexError:
            continue
        found.append((x, index))
    return found


@pytest.mark.parametrize(("on", "count"), [("cpu", 3000), ("cuda", 150)])
def test_get(on: str, count: int) -> None:
    for x, index in attempts(count, 1):
        got = tt.tensor(x, device=on)[spoken(index, on)]
        np.testing.assert_array_equal(got.cpu().numpy(), picked(x, index), err_msg=repr(index))


@pytest.mark.parametrize(("on", "count"), [("cpu", 2000), ("cuda", 100)])
def test_set(on: str, count: int) -> None:
    rng = np.random.default_rng(5)
    for x, index in attempts(count, 2):
        taken = picked(x, index)
        value = rng.standard_normal(taken.shape if rng.random() < 0.7 else taken.shape[1:] if rng.random() < 0.5 else ())
        want, got = x.copy(), tt.tensor(x, device=on)
        view, then = split(want, index)
        view[then] = value
        got[spoken(index, on)] = tt.tensor(value, device=on) if rng.random() < 0.8 or value.ndim else float(value)
        np.testing.assert_array_equal(got.cpu().numpy(), want, err_msg=repr(index))


def test_set_through_a_strided_view() -> None:
    for on in DEVICES:
        x = tt.arange(24.0, device=on).view(4, 6)
        x.t()[::2][tt.tensor([2, 0], device=on)] = -1.0
        want = np.arange(24.0).reshape(4, 6)
        want.T[::2][[2, 0]] = -1
        np.testing.assert_array_equal(x.cpu().numpy(), want)


def test_gradients_of_get_and_set() -> None:
    rng = np.random.default_rng(9)
    for x, index in attempts(300, 3, unique=True):
        g = rng.standard_normal(picked(x, index).shape)
        leaf = tt.tensor(x, requires_grad=True)
        (leaf[spoken(index, "cpu")] * tt.tensor(g)).sum().backward()
        want = np.zeros_like(x)
        np.add.at(*split(want, index), g)
        np.testing.assert_allclose(leaf.grad.numpy(), want, atol=1e-12)
        base, value = tt.tensor(x, requires_grad=True), tt.tensor(g, requires_grad=True)
        y = base * 2
        y[spoken(index, "cpu")] = value
        weight = rng.standard_normal(x.shape)
        (y * tt.tensor(weight)).sum().backward()
        np.testing.assert_allclose(value.grad.numpy(), picked(weight, index))
        kept = 2 * weight
        view, then = split(kept, index)
        view[then] = 0
        np.testing.assert_allclose(base.grad.numpy(), kept)


def test_second_derivative_of_a_gather() -> None:
    x = tt.tensor([1.0, 2.0, 3.0], dtype=tt.float64, requires_grad=True)
    y = (x[tt.tensor([0, 2, 2])] ** 3).sum()
    (g,) = tt.autograd.grad(y, x, create_graph=True)
    np.testing.assert_allclose(g.detach().numpy(), [3, 0, 54])
    (h,) = tt.autograd.grad(g.sum(), x)
    np.testing.assert_allclose(h.numpy(), [6, 0, 36])


@pytest.mark.parametrize(
    ("index", "says"),
    [
        (4, "index 4 is out of range for dim 0 of size 4"),
        ((0, -6), "index -6 is out of range for dim 1 of size 5"),
        ((0, 0, 0), "3 indices for a 2-dimensional tensor"),
        ([0, 7], "index 7 at position 1 is out of range for dim 0 of size 4"),
        ((slice(None), [0, -6]), "index -6 at position 1 is out of range for dim 1 of size 5"),
        (np.ones((3, 5), bool), "a mask of shape"),
        ([0.5], "an index of float"),
        ("a", "str is no index"),
    ],
)
def test_refused(index: Any, says: str) -> None:
    x = tt.zeros(4, 5)
    with pytest.raises(IndexError, match=says):
        x[index]
    with pytest.raises(IndexError, match="setitem: .*" + says if "range for dim" not in says else says):
        x[index] = 1.0
    assert x.sum().item() == 0


def test_a_value_that_does_not_fit() -> None:
    x = tt.zeros(4, 5)
    with pytest.raises(ValueError, match="does not broadcast"):
        x[tt.tensor([0, 1])] = tt.ones(3)
    with pytest.raises(ValueError, match="does not fit"):
        x[0] = tt.ones(3)


def test_out_of_range_values_are_named() -> None:
    """On the CPU at once; tests/cuda/test_device_errors.py asks the same of the device, where they are known later."""
    x = tt.arange(1.0, 5.0)
    bad = tt.tensor([0, 9, 3])
    for call in (
        lambda: x[bad],
        lambda: tt.gather(x, 0, bad),
        lambda: x.index_add(0, bad, tt.ones(3)),
        lambda: x.scatter_add(0, bad, tt.ones(3)),
        lambda: x.__setitem__(bad, 1.0),
        lambda: tt.nn.functional.embedding(bad, x.reshape(4, 1)),
    ):
        with pytest.raises(IndexError, match=r"index 9 at position 1 is out of range for dim 0 of size 4$"):
            call()
    assert x.tolist() == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("bad", [-1, 4])
def test_a_gather_takes_no_index_beyond_either_end(turned: bool, bad: int) -> None:
    x = tt.arange(12.0).reshape(3, 4).t() if turned else tt.arange(12.0).reshape(4, 3)
    with pytest.raises(IndexError, match=rf"^gather: index {bad} at position \(1, 0\) is out of range for dim 0 of size 4$"):
        tt.gather(x, 0, tt.tensor([[0, 1], [bad, 3]]))


def test_the_kernels_do_not_follow_a_key_out_of_range() -> None:
    """Nothing outside the tensor is touched (the sanitizer watches): it is skipped, and reads 0."""
    x, bad = tt.arange(1.0, 5.0, device="cuda")._array, tt.tensor([0, 9, -7, 3], device="cuda")._array
    keys = keys_of((bad,), (4,), (4,))
    assert to_host(take_rows(x.reshape((1, 4, 1)), keys)).reshape(-1).tolist() == [1.0, 0.0, 0.0, 4.0]


@pytest.mark.parametrize("on", DEVICES)
def test_rows_that_are_65536_apart_are_two(on: str) -> None:
    rows = tt.tensor([3, 65539, 3, 65539, 3], device=on)
    y = tt.zeros(70_000, 2, device=on).index_add(0, rows, tt.ones(5, 2, device=on))
    assert (y[3].tolist(), y[65539].tolist(), y.sum().item()) == ([3.0, 3.0], [2.0, 2.0], 10.0)


@pytest.mark.parametrize("on", DEVICES)
def test_repeated_positions(on: str) -> None:
    """Adding counts all of them in a fixed order; writing keeps the last."""
    rng = np.random.default_rng(0)
    index = rng.integers(0, 5, 700)
    values = rng.standard_normal((700, 3)).astype(np.float32)
    x = tt.zeros(5, 3, device=on)
    first, second = (x.index_add(0, tt.tensor(index, device=on), tt.tensor(values, device=on)).cpu().numpy() for _ in range(2))
    np.testing.assert_array_equal(first, second)
    want = np.zeros((5, 3))
    np.add.at(want, index, values)
    np.testing.assert_allclose(first, want, rtol=1e-5, atol=1e-5)
    x[tt.tensor(index, device=on)] = tt.tensor(values, device=on)
    want[index] = values
    np.testing.assert_array_equal(x.cpu().numpy(), want.astype(np.float32))


@pytest.mark.parametrize("on", DEVICES)
def test_functions_by_index(on: str) -> None:
    x = tt.arange(12.0, device=on).view(3, 4)
    n = x.cpu().numpy()
    mask = x > 6
    assert x.masked_select(mask).tolist() == n[n > 6].tolist()
    assert x.masked_fill(mask, -1).tolist() == np.where(n > 6, -1, n).tolist()
    assert mask.nonzero().tolist() == np.argwhere(n > 6).tolist()
    assert [i.tolist() for i in mask.nonzero(as_tuple=True)] == [i.tolist() for i in np.nonzero(n > 6)]
    assert x.take(tt.tensor([[0, 5], [11, -1]], device=on)).tolist() == n.take([[0, 5], [11, -1]]).tolist()
    order = tt.tensor([[3], [0], [1]], device=on)
    assert x.take_along_dim(order, 1).tolist() == np.take_along_axis(n, np.array([[3], [0], [1]]), 1).tolist()
    assert x.index_select(1, tt.tensor([2, 0], device=on)).tolist() == n[:, [2, 0]].tolist()
    assert x.scatter(1, order, -5.0).tolist() == [[0, 1, 2, -5], [-5, 5, 6, 7], [8, -5, 10, 11]]
    assert x.index_fill(0, tt.tensor([1], device=on), 0.0)[1].tolist() == [0.0] * 4
    assert x.index_copy(0, tt.tensor([2], device=on), tt.ones(1, 4, device=on))[2].tolist() == [1.0] * 4
    assert x.masked_scatter(mask, tt.arange(-10.0, 0.0, device=on)).tolist() == [[0, 1, 2, 3], [4, 5, 6, -10], [-9, -8, -7, -6]]


@pytest.mark.parametrize("on", ["cpu", "cuda"])
def test_whole_numbers_are_added_as_such(on: str) -> None:
    large = 2**60 + 1
    found = tt.zeros(3, dtype=tt.int64, device=on).index_add(0, tt.tensor([0, 2, 0], device=on), tt.tensor([large, 5, 1], device=on))
    assert found.tolist() == [large + 1, 0, 5]
    found = tt.zeros(3, dtype=tt.int64, device=on).scatter_add(0, tt.tensor([0, 2, 0], device=on), tt.tensor([large, 5, 1], device=on))
    assert found.tolist() == [large + 1, 0, 5]


def test_a_long_run_of_one_key_keeps_its_digits_on_the_cpu() -> None:
    """300,000 rows of tenths onto one row: added one after the other in float32 they are off by a thousandth."""
    source = np.full((1, 300_000, 3), 0.1, np.float32)
    target = np.zeros((1, 2, 3), np.float32)
    numpy_add_rows(target, np.ones(300_000, np.int64), source)
    np.testing.assert_allclose(target[0, 1], np.float64(np.float32(0.1)) * 300_000, rtol=1e-5)
    assert not target[0, 0].any()
