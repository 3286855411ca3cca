"""resize_ and out= of another shape: a tensor, its views and what was detached stay on one memory, which grows where it has to."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import tritensor as tt

ON = pytest.mark.parametrize("on", ["cpu", "cuda"])
pytestmark = pytest.mark.filterwarnings("ignore:add. out has shape")


def six(on: str) -> tt.Tensor:
    return tt.arange(6.0, device=on)


def twos(n: int, out: tt.Tensor) -> tt.Tensor:
    return tt.add(tt.ones(n, device=out.device), 1, out=out)


@ON
@pytest.mark.parametrize("n", [1, 4, 10])
def test_views_see_what_is_stored_in_a_resized_out(on: str, n: int) -> None:
    base = six(on)
    view, inner, aside = base[1:4], base[1:4][1:], base.detach()
    assert twos(n, base) is base
    assert base.tolist() == [2.0] * n
    wanted = ([2.0] * n + [float(i) for i in range(n, 6)])[:6]
    assert aside.tolist() == wanted
    assert view.tolist() == wanted[1:4]
    assert inner.tolist() == wanted[2:4]
    base.fill_(7)
    assert view.tolist() == [7.0 if i < n else wanted[i] for i in (1, 2, 3)]
    aside.zero_()
    assert base.tolist() == ([0.0] * 6 + [7.0] * n)[: min(n, 6)] + [7.0] * max(n - 6, 0)
    assert view.data_ptr() == base.data_ptr() + 4


@ON
def test_memory_that_suffices_stays(on: str) -> None:
    base = six(on)
    before = base.data_ptr()
    for n in (4, 0, 6, 2, 6):
        twos(n, base)
        assert base.shape == (n,)
        assert n == 0 or base.data_ptr() == before
    assert base.untyped_storage().nbytes() == 24


@ON
def test_a_view_is_resized_on_its_base(on: str) -> None:
    base = six(on)
    view = base[1:3]
    twos(4, view)
    assert base.tolist() == [0.0, 2.0, 2.0, 2.0, 2.0, 5.0]
    assert view._base is base
    twos(10, view)
    assert base.tolist() == [0.0] + [2.0] * 5
    view.fill_(3)
    assert base.tolist() == [0.0] + [3.0] * 5
    assert view.storage_offset() == 1


@ON
def test_resize_keeps_what_stood_in_memory(on: str) -> None:
    x = six(on)
    view = x[1:3]
    assert x.resize_(3).tolist() == [0.0, 1.0, 2.0]
    assert x.resize_(2, 3).tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert view.resize_(4).tolist() == [1.0, 2.0, 3.0, 4.0]
    assert x.resize_(3, 3)[:2].tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    x.zero_()
    assert view.tolist() == [0.0] * 4
    assert x._version == view._version


@ON
def test_views_of_a_resized_base_are_in_its_graph(on: str) -> None:
    base = six(on)
    view = base[1:3]
    base.resize_(2, 2)
    w = tt.arange(4.0, device=on).reshape(2, 2).requires_grad_()
    base.mul_(w)
    (g,) = tt.autograd.grad(view.sum(), w, retain_graph=True)
    assert g.tolist() == [[0.0, 1.0], [2.0, 0.0]]
    view.mul_(10)
    (g,) = tt.autograd.grad(base.sum(), w)
    assert g.tolist() == [[0.0, 10.0], [20.0, 3.0]]


def test_a_view_beyond_its_resized_base_says_so_in_the_graph() -> None:
    base = six("cpu")
    view = base[3:5]
    base.resize_(4)
    view.mul_(2)
    assert base.tolist() == [0.0, 1.0, 2.0, 6.0]
    with pytest.raises(
        tt.GradError, match=r"^mul_: this view of shape \(2,\) reaches beyond what its base has been since one of them was resized"
    ):
        view.mul_(tt.ones(2, requires_grad=True))
    base.resize_(6)
    view.mul_(tt.ones(2, requires_grad=True))
    assert base.requires_grad


def test_numpys_neighbours_are_left_alone() -> None:
    numbers = np.arange(10, dtype=np.float32)
    x = tt.from_numpy(numbers[2:5])
    twos(6, x)
    assert x.tolist() == [2.0] * 6
    assert numbers.tolist() == list(range(10))


def test_what_is_read_in_another_way_gets_memory_of_its_own() -> None:
    base = six("cpu")
    bits = base.view(tt.int32)
    first = bits.tolist()
    assert bits.resize_(8)[:6].tolist() == first
    assert base.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    backwards = tt.from_numpy(np.arange(6.0)[::-1])
    assert backwards.resize_(2, 4).flatten()[:6].tolist() == [5.0, 4.0, 3.0, 2.0, 1.0, 0.0]
    fixed = np.arange(3.0)
    fixed.flags.writeable = False
    assert twos(2, tt.from_numpy(fixed)).tolist() == [2.0, 2.0]
    assert fixed.tolist() == [0.0, 1.0, 2.0]


def test_elements_that_share_cells_are_refused() -> None:
    out = tt.zeros(3).expand(2, 3)
    with pytest.raises(tt.ShapeError, match="several elements share one cell"):
        twos(4, out)


def test_nothing_is_kept_of_memory_that_was_left() -> None:
    base = six("cpu")
    view = base[1:]
    old = weakref.ref(base._array.base if base._array.base is not None else base._array)
    twos(10, base)
    gc.collect()
    assert old() is None
    assert view.tolist() == [2.0] * 5
    assert base._extra.memory is None


def test_inside_a_transform_there_is_nothing_to_resize() -> None:
    with pytest.raises(tt.TransformError, match="resize_: inside vmap, grad or jvp a tensor has no memory of its own"):
        tt.func.jvp(lambda x: x.clone().resize_(2), (tt.ones(3),), (tt.ones(3),))
