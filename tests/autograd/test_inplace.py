"""In-place writes inside a graph: bases and views, second order, and what stays apart; each against a closed form."""

from __future__ import annotations

import threading

import pytest

import tritensor as tt
from tritensor.autograd import grad


def leaf(*values: float) -> tt.Tensor:
    return tt.tensor(list(values), dtype=tt.float64, requires_grad=True)


def test_second_order_through_a_written_view() -> None:
    x = leaf(2.0, 3.0, 5.0)
    a = x * 1
    a[1:].mul_(x[0])
    f = (a * a).sum()  # x0^2 + x0^2 (x1^2 + x2^2)
    (first,) = grad(f, x, create_graph=True)
    assert first.tolist() == pytest.approx([2 * 2 * 35, 2 * 4 * 3, 2 * 4 * 5])
    (second,) = grad(first[0] + 2 * first[1], x)
    # d/dx of 2 x0 (1 + x1^2 + x2^2) + 4 x0^2 x1
    assert second.tolist() == pytest.approx([2 * 35 + 8 * 2 * 3, 4 * 2 * 3 + 4 * 4, 4 * 2 * 5])


def test_a_copied_tensor_and_its_source_stay_apart() -> None:
    x = leaf(1.0)
    y = x * 1
    z = tt.zeros(1, dtype=tt.float64)
    z.copy_(y)
    out = z * 2 + y * 3
    gz, gy = grad(out, [z, y], retain_graph=True)
    assert gz.item() == 2.0
    assert gy.item() == 5.0  # 3 by itself, 2 through z


def test_a_hook_on_a_copy_is_not_on_its_source() -> None:
    x = leaf(1.0)
    y = x * 1
    z = tt.zeros(1, dtype=tt.float64)
    z.copy_(y)
    seen: list[float] = []
    z.register_hook(lambda g: seen.append(g.item()))
    (y * 3).sum().backward()
    assert seen == []


def test_a_buffer_filled_row_by_row() -> None:
    x = leaf(1.0, 2.0, 3.0)
    out = tt.zeros(2, 3, dtype=tt.float64)
    out[0] = x * 2
    out[1] = x * x
    (out * out).sum().backward()  # 4 x^2 + x^4
    assert x.grad.tolist() == [8.0 + 4.0, 16.0 + 32.0, 24.0 + 108.0]


def test_a_chain_of_writes_on_one_view() -> None:
    x = leaf(1.0, 2.0)
    a = x * 1
    v = a[1:]
    v.mul_(3)
    v.add_(x[:1])
    a.mul_(2)  # a = [2 x0, 2 (3 x1 + x0)]
    a.sum().backward()
    assert x.grad.tolist() == [4.0, 6.0]


def test_a_written_view_of_a_transpose() -> None:
    x = tt.arange(6, dtype=tt.float64).view(2, 3).requires_grad_()
    a = x.clone()
    a.t()[0] *= 10
    (a * a).sum().backward()
    assert x.grad.tolist() == [[0.0, 2.0, 4.0], [600.0, 8.0, 10.0]]


def test_fill_and_zero_cut_the_gradient() -> None:
    x = leaf(1.0, 2.0)
    a = x * 3
    a.zero_()
    (a + x).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_an_index_with_a_mask() -> None:
    x = leaf(-1.0, 2.0, -3.0)
    a = x * 2
    a[a < 0] = 0.0
    (a * a).sum().backward()
    assert x.grad.tolist() == [0.0, 16.0, 0.0]


def test_expanded_memory_is_not_written() -> None:
    x = tt.zeros(3, 1).expand(3, 4)
    with pytest.raises(RuntimeError, match=r"clone|contiguous"):
        x.add_(1)


def test_under_no_grad_the_graph_does_not_move() -> None:
    x = leaf(1.0, 2.0)
    y = x + 1
    with tt.no_grad():
        y.mul_(5)
    y.sum().backward()  # add saves nothing: the write is not the graph's
    assert x.grad.tolist() == [1.0, 1.0]


def test_two_outputs_one_of_them_an_index() -> None:
    x = leaf(3.0, 1.0, 2.0)
    values, indices = x.view(1, 3).max(1)
    assert values.requires_grad
    assert not indices.requires_grad
    (values * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 0.0, 0.0]


def test_modes_belong_to_their_thread() -> None:
    seen: list[bool] = []
    with tt.no_grad():
        other = threading.Thread(target=lambda: seen.append(tt.is_grad_enabled()))
        other.start()
        other.join()
    assert seen == [True]


def test_a_mode_holds_only_while_its_generator_runs() -> None:
    @tt.no_grad()
    def steps():
        yield tt.is_grad_enabled()
        yield tt.is_grad_enabled()

    for inside in steps():
        assert not inside
        assert tt.is_grad_enabled()


def test_backward_from_many_threads() -> None:
    w = tt.ones(4, dtype=tt.float64)
    grads: list[list[float]] = []

    def work(k: int) -> None:
        x = (w * k).requires_grad_()
        (x * x).sum().backward()
        grads.append(x.grad.tolist())

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(grads) == [[2.0 * k] * 4 for k in range(8)]


@pytest.mark.parametrize("on", ["cpu", "cuda"])
def test_overwritten_whole_by_a_constant_stays_in_the_graph(on: str) -> None:
    x = tt.ones(4, device=on, requires_grad=True)
    y = x * 3
    part = y[:2]
    y.fill_(2.0)
    assert y.requires_grad
    assert part.requires_grad
    (part * part).sum().backward()
    assert x.grad.tolist() == [0.0] * 4
    z = x * 3
    z.copy_(tt.zeros(4, device=on)).add_(x)
    assert grad((z * z).sum(), x)[0].tolist() == [2.0] * 4


@pytest.mark.parametrize("on", ["cpu", "cuda"])
def test_writing_to_nothing(on: str) -> None:
    x = tt.zeros(2, 0, 3, device=on)
    x.add_(1).fill_(2.0)
    x[0] = 1.0
    x[:] = tt.ones(3, device=on)
    assert x.shape == (2, 0, 3)
    y = tt.ones(3, 2, device=on)
    y[3:] = 5.0
    y[:, tt.zeros(0, dtype=tt.int64, device=on)] = 7.0
    assert y.sum().item() == 6.0


# -- views and their bases
def test_write_on_a_view_reaches_the_base() -> None:
    x = leaf(1.0, 2.0, 3.0)
    a = x * 2
    a[1:].mul_(10)
    (a * a).sum().backward()  # 4 x0^2 + 400 x1^2 + 400 x2^2
    assert x.grad.tolist() == [8.0, 1600.0, 2400.0]


def test_write_on_the_base_reaches_the_view() -> None:
    x = leaf(1.0, 2.0, 3.0)
    a = x * 2
    v = a[1:]
    a.mul_(10)
    (v * v).sum().backward()
    assert x.grad.tolist() == [0.0, 1600.0, 2400.0]


def test_a_leaf_written_into_a_plain_buffer() -> None:
    w = leaf(1.0, 2.0)
    buffer = tt.zeros(3, dtype=tt.float64)
    buffer[:2] = w * 3
    assert buffer.requires_grad
    (buffer * buffer).sum().backward()
    assert w.grad.tolist() == [18.0, 36.0]


def test_overwritten_elements_get_no_gradient() -> None:
    x = leaf(1.0, 2.0, 3.0)
    a = x * 2
    a[0] = 7.0
    (a * a).sum().backward()
    assert x.grad.tolist() == [0.0, 16.0, 24.0]


def test_views_of_views() -> None:
    x = tt.arange(6, dtype=tt.float64).requires_grad_()
    a = x * 1
    m = a.view(2, 3)
    m.t()[2].zero_()
    (a * a).sum().backward()
    assert x.grad.tolist() == [0.0, 2.0, 0.0, 6.0, 8.0, 0.0]


def test_in_place_arithmetic_in_a_graph() -> None:
    x = leaf(3.0)
    y = x * 2
    y += x
    y *= 2  # 2 (2x + x) = 6x
    y.backward()
    assert x.grad.item() == 6.0
