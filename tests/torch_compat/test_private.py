"""torch._utils' lists of tensors, torch.__future__, and the bases that older Functions derive from."""

from __future__ import annotations

import importlib

import pytest

import tritensor as tt

lists = importlib.import_module("tritensor._utils")


def given() -> list[tt.Tensor]:
    return [tt.arange(6.0).view(2, 3), tt.zeros(0, 3), tt.tensor(5.0)]


def test_a_list_becomes_one_buffer_and_views_of_it() -> None:
    flat = lists._flatten_dense_tensors(given())
    assert flat.tolist() == [0, 1, 2, 3, 4, 5, 5]
    parts = lists._unflatten_dense_tensors(flat, given())
    assert isinstance(parts, tuple)
    assert [t.shape for t in parts] == [t.shape for t in given()]
    flat.mul_(2)
    assert [t.tolist() for t in parts] == [[[0, 2, 4], [6, 8, 10]], [], 10]


def test_one_tensor_is_flattened_without_a_copy() -> None:
    x = tt.ones(2, 3)
    assert lists._flatten_dense_tensors([x]).data_ptr() == x.data_ptr()


def test_the_gradient_of_the_buffer_reaches_the_list() -> None:
    xs = [tt.ones(2, requires_grad=True), tt.ones(1, 2, requires_grad=True)]
    (lists._flatten_dense_tensors(xs) * tt.arange(4.0)).sum().backward()
    assert [x.grad.tolist() for x in xs] == [[0, 1], [[2, 3]]]


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: lists._flatten_dense_tensors([]), ValueError, "is empty; give at least one"),
        (lambda: lists._flatten_dense_tensors([1]), TypeError, r"tensors\[0\] is of type int"),
        (lambda: lists._flatten_dense_tensors(tt.ones(2)), TypeError, "one tensor of shape"),
        (
            lambda: lists._unflatten_dense_tensors(tt.ones(3), given()),
            tt.ShapeError,
            "flat is of shape .3,., and the tensors have 7 elements",
        ),
        (lambda: lists._reorder_tensors_as([tt.ones(1)], [tt.ones(1), tt.ones(1)]), ValueError, r"ordered_tensors\[1\]"),
    ],
)
def test_what_does_not_fit_is_refused(call, error, said) -> None:
    with pytest.raises(error, match=said):
        call()


def test_chunks_are_of_one_type_and_size() -> None:
    a, c = tt.ones(6), tt.ones(1, dtype=tt.float64)
    xs = [a, a + 1, c, a + 2, a + 3, a + 4]
    chunks = list(lists._take_tensors(xs, 48))
    assert [[t[0].item() for t in chunk] for chunk in chunks] == [[1, 2], [3, 4], [5], [1]]
    back = lists._reorder_tensors_as([t for chunk in chunks for t in chunk], xs)
    assert all(x is y for x, y in zip(xs, back, strict=True))


def test_an_old_function_derives_from_inplace_function() -> None:
    from tritensor.autograd.function import InplaceFunction, NestedIOFunction

    class Binarize(InplaceFunction):
        @staticmethod
        def forward(ctx, x):
            return x.sign()

        @staticmethod
        def backward(ctx, g):
            return g

    x = tt.tensor([-2.0, 3.0], requires_grad=True)
    Binarize.apply(x).sum().backward()
    assert x.grad.tolist() == [1, 1]
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        assert InplaceFunction(True).inplace
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        old = NestedIOFunction()
    for run in (old, NestedIOFunction.apply):
        with pytest.raises(tt.GradError, match="NestedIOFunction runs no more"):
            run(x)


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("/x/torchaudio/lib/libtorchaudio.so", "use instead: tritensor.audio"),
        ("libmine.so", "libmine.so (which is not there, either) is compiled against PyTorch's C++ library"),
    ],
)
def test_an_extension_compiled_against_pytorch_is_refused_with_what_to_use(file: str, said: str) -> None:
    with pytest.raises(OSError, match=r"^ops[.]load_library: ") as raised:
        tt.ops.load_library(file)
    assert said in str(raised.value)
