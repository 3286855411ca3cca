"""Windows on memory: as_strided over all that a view was cut from, and the bytes of one type read as another's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as tt

DEVICES = ["cpu", "cuda"]


@pytest.mark.parametrize("on", DEVICES)
@pytest.mark.parametrize(
    ("cut", "size", "stride", "offset", "want"),
    [
        pytest.param(lambda x: x[3:], (2, 2), (3, 1), None, [[3, 4], [6, 7]], id="from the view's own start"),
        pytest.param(lambda x: x[3:], (2, 2), (3, 1), 1, [[1, 2], [4, 5]], id="from the start of the memory"),
        pytest.param(lambda x: x[3:5], (2, 2), (3, 1), 1, [[1, 2], [4, 5]], id="beyond the view"),
        pytest.param(lambda x: x.view(3, 3)[1], (3, 3), (1, 3), 0, [[0, 3, 6], [1, 4, 7], [2, 5, 8]], id="all of it"),
        pytest.param(lambda x: x.view(3, 3).t(), (3,), (1,), None, [0, 1, 2], id="a transposed view"),
        pytest.param(lambda x: x.view(3, 3)[::2, ::2], (3,), (1,), None, [0, 1, 2], id="a view with gaps"),
        pytest.param(lambda x: x[:3].expand(4, 3), (3,), (1,), None, [0, 1, 2], id="a view with repeats"),
        pytest.param(lambda x: x[4], (), (), 3, 3, id="one element"),
        pytest.param(lambda x: x[4], (1, 1), (7, 7), None, [[4]], id="one element with any stride"),
    ],
)
def test_windows(cut: Any, size: Any, stride: Any, offset: int | None, want: Any, on: str) -> None:
    x = tt.arange(9.0, device=on)
    v = cut(x)
    y = v.as_strided(size, stride) if offset is None else tt.as_strided(v, size, stride, storage_offset=offset)
    assert y.tolist() == want
    y.zero_()
    assert sorted(set(x.tolist())) == sorted({0.0, *range(9)} - set(np.ravel(want)) | {0.0})


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_windows_on_memory_with_gaps(device: str) -> None:
    """They read the gaps, write where no graph remembers, and give gradients to what is no gap."""
    whole = tt.arange(12.0, device=device)
    x = whole.reshape(3, 4)[:, ::2].detach()
    y = x.as_strided((5,), (1,), 2)
    assert y.tolist() == [2.0, 3.0, 4.0, 5.0, 6.0]
    assert y._base is x
    y.mul_(10)
    assert x.tolist() == [[0.0, 20.0], [40.0, 60.0], [8.0, 10.0]]
    assert whole.tolist()[2:7] == [20.0, 30.0, 40.0, 50.0, 60.0]
    x.requires_grad_()
    (x.as_strided((5,), (1,), 2) * tt.arange(1.0, 6.0, device=device)).sum().backward()
    assert x.grad.tolist() == [[0.0, 1.0], [3.0, 5.0], [0.0, 0.0]]
    (again,) = tt.autograd.grad((x.as_strided((2, 2), (4, 2)) ** 3).sum(), x, create_graph=True)
    (twice,) = tt.autograd.grad(again.sum(), x)
    assert twice.tolist() == (6 * x * tt.tensor([[1.0], [1.0], [0.0]], device=device)).tolist()
    with pytest.raises(RuntimeError, match=r"storage_offset 7 read elements 7 to 11 of memory whose last element is 10"):
        x.as_strided((5,), (1,), 7)
    with pytest.raises(RuntimeError, match="has gaps or repeats"):
        x.as_strided((5,), (1, 1))
    copy = tt.empty_strided((3, 2), (4, 2), device=device).copy_(x)
    window = copy.as_strided((2,), (4,))
    with pytest.raises(
        RuntimeError, match=r"mul_: this view .* on memory with gaps, or elements that share cells; take contiguous\(\) first"
    ):
        window.mul_(2)
    copy.mul_(2)
    with pytest.raises(RuntimeError, match=r"the base of this view .* was written in place, and the view is a window"):
        window.sum()


def test_offsets_and_bounds() -> None:
    x = tt.arange(9.0)
    assert x[3:].storage_offset() == x.view(3, 3)[1:].storage_offset() == 3
    assert x[3:].as_strided((1,), (1,), 2).storage_offset() == 2
    with pytest.raises(RuntimeError, match="read elements 5 to 9 of input's 9"):
        x[5:].as_strided((5,), (1,))
    with pytest.raises(RuntimeError, match="read elements -1"):
        x[5:].as_strided((1,), (1,), -1)


@pytest.mark.parametrize("on", DEVICES)
@pytest.mark.parametrize(
    ("cut", "size", "stride", "offset", "want"),
    [
        pytest.param(lambda x: x[2:], (2, 2), (1, 1), None, [0, 0, 2, 4, 2, 0], id="read twice"),
        pytest.param(lambda x: x[2:], (2, 2), (1, 1), 0, [0, 0, 2, 0, 0, 0], id="outside the view there is no gradient"),
        pytest.param(lambda x: x.view(2, 3).t(), (2, 2), (1, 1), 1, [0, 2, 4, 2, 0, 0], id="transposed"),
        pytest.param(lambda x: x.view(2, 3)[:, ::2], (2, 2), (2, 1), 0, [2, 0, 2, 2, 0, 0], id="gaps"),
        pytest.param(lambda x: x.expand(2, 6), (2,), (2,), 1, [0, 2, 0, 2, 0, 0], id="repeats share what they get"),
        pytest.param(lambda x: x, (2,), (2,), 1, [0, 2, 0, 2, 0, 0], id="no view at all"),
    ],
)
def test_gradients(cut: Any, size: Any, stride: Any, offset: int | None, want: list[float], on: str) -> None:
    x = tt.arange(6.0, device=on, requires_grad=True)
    y = cut(x * 2).as_strided(size, stride, offset)
    (g,) = tt.autograd.grad((y * y).sum() / 2, x, create_graph=True)
    (again,) = tt.autograd.grad(cut(x * 2).as_strided(size, stride, offset).sum(), x)
    assert again.tolist() == want
    (second,) = tt.autograd.grad(g.sum(), x)
    assert (second != 0).tolist() == [w != 0 for w in want]


def test_written_in_place_inside_a_graph() -> None:
    x = tt.arange(6.0, requires_grad=True)
    y = x * 2
    y[1:].as_strided((2,), (2,)).mul_(5)  # elements 1 and 3
    y.sum().backward()
    assert x.grad.tolist() == [2, 10, 2, 10, 2, 2]
    assert y.tolist() == [0, 10, 4, 30, 8, 10]
    beyond = (x * 2)[3:].as_strided((2,), (2,), 0)
    with pytest.raises(RuntimeError, match=r"mul_: this view .* is a window .* beyond the view"):
        beyond.mul_(5)
    with tt.no_grad():
        beyond.mul_(5)
    assert beyond.tolist() == [0, 20]


def test_only_a_window_on_the_view_itself_is_written_in_the_graph() -> None:
    base = tt.arange(9.0, requires_grad=True) * 1
    corners = base.view(3, 3)[::2, ::2]
    corners.as_strided((2, 2), (6, 2)).mul_(10)
    corners.as_strided((2,), (6,), 2).mul_(10)
    assert base.tolist() == [0, 1, 200, 3, 4, 5, 60, 7, 800]
    for size, stride, offset in (((3,), (1,), None), ((2,), (1,), 0), ((2,), (3,), 2), ((1,), (1,), 1)):
        with pytest.raises(RuntimeError, match="is a window"):
            corners.as_strided(size, stride, offset).mul_(10)


@pytest.mark.parametrize("on", DEVICES)
def test_bytes_of_another_width(on: str) -> None:
    x = tt.tensor([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]], device=on)
    n = np.array(x.cpu().numpy())
    for dtype in ("float64", "int64", "int32", "int16", "float16", "uint8"):
        got = x.view(getattr(tt, dtype))
        assert got.device == x.device
        np.testing.assert_array_equal(got.cpu().numpy(), n.view(dtype))
    np.testing.assert_array_equal(x[:, 2:].view(tt.float64).cpu().numpy(), n[:, 2:].view(np.float64))
    assert x.view(tt.int16).view(dtype=tt.float32).tolist() == n.tolist()
    assert x[1:].view(tt.uint8).shape == (1, 16)
    assert tt.zeros(0, 3, device=on).view(tt.int16).shape == (0, 6)
    assert tt.zeros(3, 0, device=on).view(tt.float64).shape == (3, 0)
    part = x.view(tt.int16)
    before = x._version
    part[0].zero_()
    assert x[0].tolist() == [0] * 4
    assert x._version == before + 1


def test_bytes_that_do_not_lie_there() -> None:
    x = tt.arange(10.0).view(2, 5)
    for bad, says in (
        (lambda: x.view(tt.float64), "multiples of 2 elements"),
        (lambda: x[:, 1:3].view(tt.float64), "multiples of 2 elements"),
        (lambda: x[:, ::2].view(tt.int16), "contiguous"),
        (lambda: x.t().view(tt.int16), "contiguous"),
        (lambda: tt.tensor(1.0).view(tt.float64), "0-d"),
    ):
        with pytest.raises(RuntimeError, match=says):
            bad()
    assert tt.tensor(1.0).view(tt.int32).item() == 0x3F800000
    assert tt.tensor([1 + 2j, 3 + 4j]).view(tt.float32).tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("shape", [(), (3,)])
def test_t_of_what_is_no_matrix_is_a_new_view(shape: tuple[int, ...]) -> None:
    x = tt.ones(shape)
    y = x.t()
    assert y is not x
    assert y.data_ptr() == x.data_ptr()
    y.add_(1)
    assert (x == 2).all()


@pytest.mark.parametrize("on", ["cpu", "cuda"])
def test_strides_of_single_elements(on: str) -> None:
    """PyTorch's: a dimension of one element steps over what is behind it."""
    x = tt.arange(12.0).reshape(3, 4).to(on)
    assert x.unsqueeze(0).stride() == (12, 4, 1)
    assert x.unsqueeze(1).stride() == (4, 4, 1)
    assert x.reshape(-1).view(1, 12).stride() == (12, 1)
    assert x.view(1, 3, 1, 4).stride() == (12, 4, 4, 1)
    assert x.view(12, 1).stride() == (1, 1)


def test_two_spellings_of_the_dims_at_once() -> None:
    with pytest.raises(tt.ShapeError, match="name each"):
        tt.zeros(3, 4).transpose(0, 1, dim0=1)


@pytest.mark.parametrize("on", ["cpu", "cuda"])
def test_strides_of_what_has_no_elements_are_those_of_c_order(on: str) -> None:
    x = tt.zeros(0, 3, 4, device=on)
    assert x.stride() == (x + 1).stride() == (12, 4, 1)
    assert (x.stride(0), x.stride(-1)) == (12, 1)


WRITES = [
    n
    for n in dir(tt.Tensor)
    if n.endswith("_") and not n.endswith("__") and n not in ("detach_", "requires_grad_") and hasattr(tt.ones(1), n)
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # some of the numbers are outside of what a function takes
@pytest.mark.parametrize("step", [2, 3, 4, 5, 8, 16])
@pytest.mark.parametrize("dtype", [tt.float32, tt.float64, tt.int32, tt.int64])
def test_every_write_without_arguments_steps_through_memory(dtype: tt.dtype, step: int) -> None:
    """numpy's negative is wrong from one column into another where a step is 16 bytes, or 64."""
    asked = 0
    for name in WRITES:
        alone = tt.arange(1, 12 * step + 1).to(dtype)[::step].clone()
        tt.manual_seed(0)
        try:
            getattr(alone, name)()
        except (TypeError, tt.ArgumentError, tt.DTypeError, tt.ShapeError):
            continue  # it wants arguments, or other types or shapes
        column = tt.arange(1, 12 * step + 1).to(dtype)[::step]
        tt.manual_seed(0)
        getattr(column, name)()
        np.testing.assert_allclose(column.numpy(), alone.numpy(), err_msg=name)
        asked += 1
    assert asked > 20
    x, y = tt.arange(1, 12 * step + 1).to(dtype)[::step], tt.zeros(12 * step, dtype=dtype)[::step]
    assert tt.neg(x, out=y).tolist() == [-v for v in x.tolist()]


def test_of_a_view_after_many_tensors_that_are_none() -> None:
    for _ in range(100):
        tt.arange(4.0).as_strided((2, 2), (1, 1), 1)
    x = tt.arange(12.0).reshape(3, 4).clone()[1]
    assert x.as_strided((2, 2), (1, 1), 1).tolist() == [[1, 2], [2, 3]]
