"""Seeds of a backward and stand-ins for nothing, on every device: ones for a scalar, zeros for what takes no part."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tritensor as tt
from tritensor.autograd import grad

DEVICES = ["cpu", "cuda"]


@pytest.mark.parametrize("on", DEVICES)
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_one_element_starts_from_one(shape: tuple[int, ...], on: str) -> None:
    x = tt.full(shape, 3.0, device=on).requires_grad_()
    (x * x).backward()
    assert x.grad.item() == 6.0
    assert x.grad.shape == shape
    (g,) = grad(x * x, x, create_graph=True)
    assert g.item() == 6.0
    (h,) = grad(g, x)
    assert h.item() == 2.0


@pytest.mark.parametrize("on", DEVICES)
def test_two_elements_start_from_what_is_given(on: str) -> None:
    x = tt.ones(2, device=on).requires_grad_()
    with pytest.raises(RuntimeError, match=r"shape \(2,\) is not a scalar"):
        (x * x).backward()
    with pytest.raises(RuntimeError, match=r"shape \(0,\) is not a scalar"):
        (x * x)[:0].backward()


@pytest.mark.parametrize("on", DEVICES)
def test_what_takes_no_part_gets_zeros(on: str) -> None:
    x, y = tt.ones(2, device=on).requires_grad_(), tt.ones(2, 3, dtype=tt.float64, device=on).requires_grad_()
    _, g = grad((x * x).sum(), [x, y], materialize_grads=True)
    assert g.tolist() == [[0.0] * 3] * 2
    assert g.dtype == tt.float64
    assert g.device == y.device


@pytest.mark.parametrize("on", DEVICES)
def test_what_is_overwritten_gets_zeros_to_second_order(on: str) -> None:
    x = tt.tensor([2.0, 3.0], device=on).requires_grad_()
    y = x * x
    y[0] = 5.0
    (g,) = grad((y * y).sum(), x, create_graph=True)
    assert g.tolist() == [0.0, 108.0]
    (h,) = grad(g.sum(), x)
    assert h.tolist() == [0.0, 108.0]


@pytest.mark.parametrize("on", DEVICES)
@pytest.mark.parametrize(
    ("write", "slope"),
    [
        (lambda y, z: y.copy_(z), [1.0, 1.0, 1.0]),
        (lambda y, z: y.copy_(z[:1]), [3.0, 0.0, 0.0]),
        (lambda y, z: y.copy_(z.double()), [1.0, 1.0, 1.0]),
        (lambda y, z: y.fill_(z.sum()), [3.0, 3.0, 3.0]),
    ],
)
def test_what_another_tensor_is_written_over_gets_zeros(write: Callable[..., tt.Tensor], slope: list[float], on: str) -> None:
    x, z = (tt.ones(3, device=on).requires_grad_() for _ in range(2))
    write(x * 2, z).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0.0] * 3
    assert z.grad.tolist() == slope
