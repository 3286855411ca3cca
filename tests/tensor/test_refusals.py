"""What a public function refuses, in words that name it: arguments that contradict each other, dims that do not fit, numbers out of range."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tritensor as tt

REDUCTIONS = (
    "sum", "nansum", "mean", "nanmean", "prod", "count_nonzero", "cumsum", "var", "std", "var_mean", "std_mean", "amax", "amin", "max", "min",
    "argmax", "argmin", "any", "all", "logsumexp",
)  # fmt: skip


@pytest.mark.parametrize("name", REDUCTIONS)
def test_two_names_for_one_argument(name: str) -> None:
    with pytest.raises(TypeError, match=rf"^{name}: dim=0 and axis=1 are two names for one argument; give one"):
        getattr(tt, name)(tt.ones(2, 2), dim=0, axis=1)


def test_whole_numbers_that_are_close() -> None:
    a, b = tt.tensor([100, -100, 3, 7]), tt.tensor([101, -101, -3, 7])
    assert tt.isclose(a, b, rtol=0.01).tolist() == [True, True, False, True]
    assert tt.isclose(a, b, rtol=0, atol=0.5).tolist() == [False, False, False, True]
    assert tt.isclose(a, b.double() - 0.25, rtol=0, atol=0.5).tolist() == [False, False, False, True]


@pytest.mark.parametrize(
    "call",
    [
        lambda x, words: x + words,
        lambda x, words: words * x,
        lambda x, words: x.__setitem__(slice(None), words),
        lambda x, words: x.copy_(words),
        lambda x, words: tt.where(x > 0, words, x),
    ],
)
def test_words_are_no_numbers(call: Callable[[tt.Tensor, np.ndarray], object]) -> None:
    x = tt.ones(2)
    with pytest.raises(tt.DTypeError, match="tensors cannot hold <U1; they hold bool, "):
        call(x, np.array(["a", "b"]))
    assert x.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("value", [(2, 2, 3), (3, 1, 3), (3,) * 3])
def test_a_value_of_too_many_dimensions(value: tuple[int, ...]) -> None:
    x = tt.zeros(4, 3)
    with pytest.raises(tt.ShapeError, match=r"^setitem: value \(\d, \d, \d\) does not broadcast to the indexed elements, \(2, 3\)"):
        x[[0, 1]] = tt.ones(value)
    x[[0, 1]] = tt.ones(1, 1, 2, 3)
    assert x.sum().item() == 6


class Ours:
    """A class that knows tensors: its reflected operators are asked."""

    def __radd__(self, other: tt.Tensor) -> str:
        return f"{other.tolist()} added"

    def __rsub__(self, other: tt.Tensor) -> str:
        return f"{other.tolist()} less"

    def __rpow__(self, other: tt.Tensor) -> str:
        return f"{other.tolist()} raised"

    def __gt__(self, other: object) -> str:  # what `x < ours` asks
        return "greater"


def test_another_class_may_answer_an_operator() -> None:
    x = tt.ones(1)
    assert [x + Ours(), x - Ours(), x ** Ours(), x < Ours()] == ["[1.0] added", "[1.0] less", "[1.0] raised", "greater"]
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \*: 'Tensor' and 'Ours'"):
        x * Ours()  # type: ignore[operator]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_lists_and_arrays_are_written_in_place(device: str) -> None:
    x = kept = tt.ones(2, device=device)
    x += [1, 2]
    x *= np.array([2.0, 3.0], np.float32)
    x -= (0, 1)
    assert x is kept
    assert x.tolist() == [4.0, 8.0]
    x += Ours()  # type: ignore[assignment]  # which has no in-place form: the answer takes the name
    assert x == "[4.0, 8.0] added"
    assert kept.tolist() == [4.0, 8.0]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("zero", [0, np.int64(0)])
def test_a_slice_makes_steps(device: str, zero: int) -> None:
    x = tt.ones(3, 2, device=device)
    for index in (slice(None, None, zero), (0, slice(None, None, zero)), (slice(None, None, zero), [0, 1])):
        with pytest.raises(ValueError, match=r"^getitem: a slice's step cannot be 0$"):
            x[index]
        with pytest.raises(ValueError, match=r"a slice's step cannot be 0$"):
            x[index] = 2.0
    assert x.sum().item() == 6
