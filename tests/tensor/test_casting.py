"""Complex numbers cast to real ones: the real parts, with one warning in a process, and their gradient."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import tritensor as tt
from tritensor.tensor import casting

WORDS = "Casting complex values to real discards the imaginary part"


@pytest.fixture
def untold(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has not been warned."""
    monkeypatch.setattr(casting, "_warned_at", [])


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has been warned: a second warning would be an error."""
    monkeypatch.setattr(casting, "_warned_at", ["before"])


def test_one_warning_at_the_line_that_casts(untold: None) -> None:
    z = tt.tensor([1 + 2j, 3 - 1j])
    with pytest.warns(UserWarning, match=WORDS) as seen:
        assert z.to(tt.float32).tolist() == [1.0, 3.0]
    assert [w.filename for w in seen] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert z.long().tolist() == [1, 3]


def test_truth_needs_no_warning(untold: None) -> None:
    assert tt.tensor([1j, 0j]).bool().tolist() == [True, False]
    assert tt.tensor([1j]).to(tt.complex128).tolist() == [1j]


def _part(x: tt.Tensor, z: tt.Tensor) -> tt.Tensor:
    x[:] = z
    return x


CASTS: dict[str, Callable[[tt.Tensor, tt.Tensor], Any]] = {
    "to": lambda x, z: z.to(tt.float32), "type": lambda x, z: z.type(tt.float32), "copy_": lambda x, z: x.copy_(z), "setitem": _part,
    "fill_": lambda x, z: x[:1].fill_(z[0]), "sum": lambda x, z: z.cumsum(0, dtype=tt.float32).diff(), "softmax": lambda x, z: z.softmax(0, dtype=tt.float32),
}  # fmt: skip


@pytest.mark.parametrize("name", CASTS)
def test_what_casts_takes_the_real_parts(told: None, name: str) -> None:
    z = tt.tensor([1 + 2j, 3 - 1j])
    have, want = CASTS[name](tt.zeros(2), z), CASTS[name](tt.zeros(2), tt.tensor([1.0, 3.0]))
    assert have.dtype == tt.float32
    assert have.tolist() == want.tolist()


@pytest.mark.parametrize("kind", [tt.float32, tt.float64, tt.bfloat16])
def test_its_gradient_is_real(told: None, kind: tt.dtype) -> None:
    z = tt.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    y = z.to(kind)
    assert y.requires_grad
    (g,) = tt.autograd.grad(y, z, tt.tensor([2.0, 5.0], dtype=kind))
    assert g.dtype == tt.complex64
    assert g.tolist() == [2, 5]


def test_the_result_has_memory_of_its_own(told: None) -> None:
    z = tt.tensor([1 + 2j])
    z.to(tt.float32).zero_()
    assert z.tolist() == [1 + 2j]


@pytest.mark.parametrize("give", [
    lambda x, z: x.add_(z), lambda x, z: tt.exp(z, out=x), lambda x, z: x.index_put_((tt.tensor([0, 1]),), z), lambda x, z: tt.norm(z, dtype=tt.float32),
    lambda x, z: tt.full((2,), 1j, dtype=tt.float32), lambda x, z: x.masked_scatter_(tt.tensor([True, True]), z),
])  # fmt: skip
def test_what_does_not_cast_refuses(give: Callable[[tt.Tensor, tt.Tensor], Any]) -> None:
    with pytest.raises(tt.DTypeError):
        give(tt.zeros(2), tt.tensor([1 + 2j, 3 - 1j]))


def test_a_cast_to_the_same_type_is_the_tensor_itself() -> None:
    for dtype in (tt.float32, tt.complex64, tt.int8):
        x = tt.ones(2, dtype=dtype)
        assert casting.cast(x, x._array.dtype) is x
