"""Keywords in PyTorch's and numpy's spelling, in calls; what is said about those that no function knows."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tritensor as tt

F = tt.nn.functional


def m() -> tt.Tensor:
    return tt.arange(6.0).reshape(2, 3)


# (the call, what it must equal)
SPELLINGS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "sum(input=)": (lambda: tt.sum(input=m()), lambda: m().sum()),
    "sum(input=, dim=)": (lambda: tt.sum(input=m(), dim=1), lambda: m().sum(1)),
    "sum(x=, axis=)": (lambda: tt.sum(x=m(), axis=1), lambda: m().sum(1)),
    "sum(keepdims=)": (lambda: m().sum(0, keepdims=True), lambda: m().sum(0, True)),
    "add(input=, other=)": (lambda: tt.add(input=m(), other=m()), lambda: m() * 2),
    "add(x1=, x2=)": (lambda: tt.add(x1=m(), x2=m()), lambda: m() * 2),
    "add_(other=, alpha=)": (lambda: m().add_(other=m(), alpha=2), lambda: m() * 3),
    "flip(dims=)": (lambda: m().flip(dims=(0, 1)), lambda: m().flip(0, 1)),
    "flip(input=, dims=)": (lambda: tt.flip(input=m(), dims=[1]), lambda: m().flip(1)),
    "flip(axis=)": (lambda: m().flip(axis=1), lambda: m().flip(1)),
    "permute(dims=)": (lambda: m().permute(dims=(1, 0)), lambda: m().t()),
    "permute(input=, dims=)": (lambda: tt.permute(input=m(), dims=(1, 0)), lambda: m().t()),
    "permute(axes=)": (lambda: m().permute(axes=(1, 0)), lambda: m().t()),
    "expand(size=)": (lambda: m().expand(size=(2, 2, 3)), lambda: m().expand(2, 2, 3)),
    "reshape(shape=)": (lambda: m().reshape(shape=(3, 2)), lambda: m().reshape(3, 2)),
    "view(size=)": (lambda: m().view(size=(3, 2)), lambda: m().view(3, 2)),
    "repeat(repeats=)": (lambda: m().repeat(repeats=(2, 1)), lambda: m().repeat(2, 1)),
    "tile(dims=)": (lambda: tt.tile(input=m(), dims=(2,)), lambda: m().tile(2)),
    "cat(axis=)": (lambda: tt.cat(tensors=(m(), m()), axis=1), lambda: tt.cat((m(), m()), 1)),
    "concat(dim=)": (lambda: tt.concat(tensors=(m(), m()), dim=1), lambda: tt.cat((m(), m()), 1)),
    "unsqueeze(axis=)": (lambda: m().unsqueeze(axis=0), lambda: m().unsqueeze(0)),
    "unsqueeze_(axis=)": (lambda: m().unsqueeze_(axis=0), lambda: m().unsqueeze(0)),
    "softmax(axis=)": (lambda: m().softmax(axis=1), lambda: m().softmax(1)),
    "roll(axis=)": (lambda: tt.roll(m(), 1, axis=0), lambda: m().roll(1, 0)),
    "gather(axis=)": (lambda: m().gather(axis=1, index=tt.tensor([[0], [1]])), lambda: m().gather(1, tt.tensor([[0], [1]]))),
}


@pytest.mark.parametrize("call", SPELLINGS)
def test_every_spelling_reaches_its_parameter(call: str) -> None:
    given, same = (f() for f in SPELLINGS[call])
    assert given.shape == same.shape
    assert given.tolist() == same.tolist()


# (the call, what the message says)
MISFITS: dict[str, tuple[Callable[[], Any], str]] = {
    "a keyword nearly right": (
        lambda: m().sum(kepdim=True),
        r"^sum: no keyword 'kepdim', did you mean 'keepdim'\? sum takes \(input, dim=None",
    ),
    "a keyword of nobody": (lambda: tt.exp(m(), beta=1), r"^exp: no keyword 'beta'; exp takes \(input\)"),
    "a keyword nearly right, in place": (lambda: m().add_(m(), alhpa=2), r"^add_: no keyword 'alhpa', did you mean 'alpha'\?"),
    "two names for one": (lambda: tt.add(m(), other=m(), x2=m()), "^add: other and x2 are two names for one argument; give one"),
    "dim and axis": (lambda: m().unsqueeze(dim=0, axis=1), "^unsqueeze: dim and axis are two names for one argument; give one"),
    "by place and by name": (lambda: tt.exp(m(), input=m()), "^exp: input is given twice, by place and by name"),
    "too few": (lambda: tt.add(m()), r"^add: other missing; add takes \(input, other, \*, alpha=1\)"),
    "too many": (lambda: tt.add(m(), m(), m()), r"^add: 3 arguments by place; add takes \(input, other, \*, alpha=1\)"),
}


@pytest.mark.parametrize("call", MISFITS)
def test_what_fits_no_parameter_is_named_in_one_line(call: str) -> None:
    run, says = MISFITS[call]
    with pytest.raises(TypeError, match=says) as caught:
        run()
    assert "\n" not in str(caught.value)


def test_an_error_inside_a_function_stays_what_it_is() -> None:
    class Odd:
        def __iter__(self) -> None:
            raise AttributeError("odd's own")

    with pytest.raises(AttributeError, match=r"^odd's own$"):
        m().split_with_sizes(Odd())


def test_the_signature_that_a_caller_sees() -> None:
    assert list(inspect.signature(tt.add).parameters) == ["input", "other", "alpha", "out"]
    assert list(inspect.signature(m().add).parameters) == ["other", "alpha", "out"]
    assert list(inspect.signature(tt.permute).parameters) == ["input", "dims"]
    assert inspect.signature(tt.add).replace(return_annotation=None).return_annotation is None
    assert str(inspect.signature(tt.exp)) == "(input: 'Tensor', *, out: 'Tensor | None' = None) -> 'Tensor'"


# (a call that makes a tensor, what it must equal, where that is known)
MAKERS: dict[str, tuple[Callable[..., tt.Tensor], tuple[int, ...]]] = {
    "zeros": (lambda **k: tt.zeros(2, 3, **k), (2, 3)),
    "ones": (lambda **k: tt.ones(size=(2, 3), **k), (2, 3)),
    "empty": (lambda **k: tt.empty(size=(2, 3), **k), (2, 3)),
    "full": (lambda **k: tt.full(size=(2, 3), fill_value=1.5, **k), (2, 3)),
    "arange": (lambda **k: tt.arange(end=6, **k), (6,)),
    "linspace": (lambda **k: tt.linspace(start=0, end=1, steps=6, **k), (6,)),
    "logspace": (lambda **k: tt.logspace(0, 1, 6, base=2, **k), (6,)),
    "eye": (lambda **k: tt.eye(n=2, m=3, **k), (2, 3)),
    "rand": (lambda **k: tt.rand(size=(2, 3), **k), (2, 3)),
    "randn": (lambda **k: tt.randn(2, 3, generator=None, **k), (2, 3)),
    "randint": (lambda **k: tt.randint(high=3, size=(2, 3), **k), (2, 3)),
    "randperm": (lambda **k: tt.randperm(n=6, **k), (6,)),
    "normal": (lambda **k: tt.normal(mean=0.0, std=1.0, size=(2, 3), **k), (2, 3)),
}
LIKE = {
    "zeros_like": lambda **k: tt.zeros_like(input=m(), **k),
    "ones_like": lambda **k: tt.ones_like(m(), **k),
    "empty_like": lambda **k: tt.empty_like(m(), **k),
    "full_like": lambda **k: tt.full_like(m(), fill_value=2, **k),
    "rand_like": lambda **k: tt.rand_like(m(), **k),
    "randn_like": lambda **k: tt.randn_like(m(), **k),
    "randint_like": lambda **k: tt.randint_like(m(), high=5, **k),
    "new_zeros": lambda **k: m().new_zeros(size=(2, 3), **k),
    "new_full": lambda **k: m().new_full(size=(2, 3), fill_value=2, **k),
}


@pytest.mark.parametrize("name", [*MAKERS, *LIKE])
def test_makers_take_type_device_layout_and_gradient(name: str) -> None:
    make, shape = MAKERS[name] if name in MAKERS else (LIKE[name], (2, 3))
    made = make(dtype=tt.float64, device="cpu", layout=tt.strided, requires_grad=True)
    assert (tuple(made.shape), made.dtype, made.layout, made.requires_grad) == (shape, tt.float64, tt.strided, True)
    assert not make(dtype=tt.float64).requires_grad
    with pytest.raises(TypeError, match=r"layout is 'sparse'; tritensor.strided is the only layout"):
        make(layout="sparse")


@pytest.mark.parametrize("name", MAKERS)
def test_makers_write_into_out_in_its_type(name: str) -> None:
    make, shape = MAKERS[name]
    out = tt.empty(shape, dtype=tt.float64)
    address = out.data_ptr()
    assert make(out=out) is out
    assert (out.data_ptr(), out.dtype, tuple(out.shape)) == (address, tt.float64, shape)
    with pytest.raises(TypeError, match=r"dtype is tritensor\.float32, out has tritensor.float64"):
        make(dtype=tt.float32, out=out)


def test_out_takes_as_many_tensors_as_there_are_results() -> None:
    values, places = tt.empty(0), tt.empty(0, dtype=tt.int64)
    found = tt.max(m(), 1, out=(values, places))
    assert found.values is values
    assert found.indices is places
    assert (values.tolist(), places.tolist()) == ([2.0, 5.0], [2, 2])
    with pytest.raises(TypeError, match="max: out is Tensor; max has 2 results, give as many tensors in a tuple"):
        tt.max(m(), 1, out=values)


# (the call without out=)
OUTS: dict[str, Callable[..., Any]] = {
    "argmax": lambda **k: tt.argmax(m(), 1, **k),
    "argmin": lambda **k: tt.argmin(m(), **k),
    "all": lambda **k: tt.all(m(), 1, **k),
    "any": lambda **k: tt.any(m(), **k),
    "norm": lambda **k: tt.norm(m(), **k),
    "softmax": lambda **k: tt.softmax(m(), 1, **k),
    "log_softmax": lambda **k: tt.log_softmax(m(), 1, **k),
    "diag": lambda **k: tt.diag(m(), **k),
    "gather": lambda **k: tt.gather(m(), 1, tt.tensor([[0], [1]]), **k),
    "index_select": lambda **k: tt.index_select(m(), 1, tt.tensor([0, 2]), **k),
    "masked_select": lambda **k: tt.masked_select(m(), m() > 2, **k),
    "nonzero": lambda **k: tt.nonzero(m(), **k),
    "scatter": lambda **k: tt.scatter(m(), 1, tt.tensor([[0]]), 9.0, **k),
    "take": lambda **k: tt.take(m(), tt.tensor([0, 5]), **k),
    "vstack": lambda **k: tt.vstack((m(), m()), **k),
    "tril": lambda **k: tt.tril(m(), **k),
    "tensordot": lambda **k: tt.tensordot(m(), m().t(), 1, **k),
    "max": lambda **k: tt.max(m(), **k),
    "max of two": lambda **k: tt.max(m(), m() + 1, **k),
}


@pytest.mark.parametrize("name", OUTS)
def test_out_receives_the_result(name: str) -> None:
    call = OUTS[name]
    right = call()
    out = tt.empty(tuple(right.shape), dtype=right.dtype)
    assert call(out=out) is out
    assert out.tolist() == right.tolist()


def test_asarray_shares_memory_unless_told_otherwise() -> None:
    data = np.arange(3.0)
    assert tt.asarray(obj=data).data_ptr() == data.ctypes.data
    assert tt.asarray(data, copy=True).data_ptr() != data.ctypes.data
    assert tt.asarray(data, copy=False).data_ptr() == data.ctypes.data
    assert tt.asarray([1.0, 2.0], dtype=tt.float64, requires_grad=True).requires_grad
    graph = m().requires_grad_() * 2
    assert not tt.asarray(graph).requires_grad
    assert graph.requires_grad
    for given, options in (([1.0], {}), (data, {"dtype": tt.float32})):
        with pytest.raises(ValueError, match="asarray: the data cannot be had without a copy"):
            tt.asarray(given, copy=False, **options)


def test_data_from_elsewhere_by_pytorchs_names() -> None:
    data = np.arange(3.0)
    assert tt.from_numpy(ndarray=data).data_ptr() == data.ctypes.data
    assert tt.from_dlpack(ext_tensor=data, device="cpu", copy=False).data_ptr() == data.ctypes.data
    assert tt.from_dlpack(data, copy=True).data_ptr() != data.ctypes.data
    places = ("cpu", "cuda:0", "cuda:1")
    assert [tt.zeros(1, device=on).__dlpack_device__() for on in places] == [(1, 0), (2, 0), (2, 1)]


# (the call, what it must equal)
NAMES: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "split(split_size_or_sections=)": (lambda: m().split(split_size_or_sections=[1, 2], dim=1)[1], lambda: m()[:, 1:]),
    "split(tensor=, split_size=)": (lambda: tt.split(tensor=m(), split_size=1)[1], lambda: m()[1:]),
    "hsplit(sections=)": (lambda: tt.hsplit(m(), sections=3)[2], lambda: m()[:, 2:]),
    "vsplit(indices=)": (lambda: m().vsplit(indices=[1])[1], lambda: m()[1:]),
    "tensor_split(tensor_indices_or_sections=)": (
        lambda: m().tensor_split(tensor_indices_or_sections=tt.tensor([1]))[1], lambda: m()[1:],
    ),
    "pow(exponent=)": (lambda: m().pow(exponent=2), lambda: m() * m()),
    "pow_(exponent=)": (lambda: m().pow_(exponent=2), lambda: m() * m()),
    "pow(input=, exponent=)": (lambda: tt.pow(input=m(), exponent=2), lambda: m() * m()),
    "swapaxes(axis0=, axis1=)": (lambda: m().swapaxes(axis0=0, axis1=1), lambda: m().t()),
    "transpose(dim0=, dim1=)": (lambda: tt.transpose(m(), dim0=0, dim1=1), lambda: m().t()),
    "transpose_(dim0=, dim1=)": (lambda: m().transpose_(dim0=0, dim1=1), lambda: m().t()),
    "view(dtype=)": (lambda: m().view(dtype=tt.int32), lambda: m().view(tt.int32)),
    "expand(implicit=)": (lambda: m().expand(2, 3, implicit=True), lambda: m()),
    "copy_(other=)": (lambda: tt.zeros(2, 3).copy_(other=m()), lambda: m()),
    "to(other=)": (lambda: m().to(other=tt.zeros(1, dtype=tt.float64)), lambda: m().double()),
    "nan_to_num(nan=None)": (lambda: tt.nan_to_num(tt.tensor([float("nan")]), nan=None), lambda: tt.zeros(1)),
    "repeat_interleave(repeats=)": (lambda: tt.repeat_interleave(repeats=tt.tensor([1, 2])), lambda: tt.tensor([0, 1, 1])),
    "repeat_interleave of counts": (lambda: tt.repeat_interleave(tt.tensor([1, 2])), lambda: tt.tensor([0, 1, 1])),
    "std(unbiased=)": (lambda: m().std(unbiased=False), lambda: m().std(False)),
    "std(dim=, correction=)": (lambda: m().std(dim=1, correction=0), lambda: m().std(1, False)),
    "max(other=)": (lambda: tt.max(m(), other=m() + 1), lambda: m() + 1),
    "scatter(value=)": (lambda: m().scatter(dim=1, index=tt.tensor([[0]]), value=9.0), lambda: m().scatter(1, tt.tensor([[0]]), 9.0)),
    "normalize(out=)": (lambda: F.normalize(m(), dim=1, out=tt.empty(2, 3)), lambda: F.normalize(m(), dim=1)),
    "bernoulli(p=)": (lambda: tt.bernoulli(m(), p=1.0), lambda: tt.ones(2, 3)),
    "random_(from=, to=)": (lambda: m().random_(**{"from": 3, "to": 4}), lambda: tt.full((2, 3), 3.0)),
    "random_(to=)": (lambda: m().random_(to=1), lambda: tt.zeros(2, 3)),
    "uniform_(from=, to=)": (lambda: m().uniform_(**{"from": 2.0, "to": 2.0}), lambda: tt.full((2, 3), 2.0)),
    "randint(high=, size=)": (lambda: tt.randint(high=1, size=(2,)), lambda: tt.tensor([0, 0])),
    "randint(high, size=)": (lambda: tt.randint(1, size=(2,)), lambda: tt.tensor([0, 0])),
}  # fmt: skip


@pytest.mark.parametrize("call", NAMES)
def test_pytorchs_names_of_single_arguments(call: str) -> None:
    given, same = (f() for f in NAMES[call])
    assert given.dtype == same.dtype
    assert given.tolist() == same.tolist()


def test_grad_and_backward_take_all_that_pytorchs_do() -> None:
    x = m().requires_grad_()
    (g,) = tt.autograd.grad(outputs=(x * 2).sum(), inputs=x, only_inputs=True, allow_unused=False)
    assert g.tolist() == tt.full((2, 3), 2.0).tolist()
    tt.autograd.backward(tensors=x * 3, grad_variables=tt.ones(2, 3), inputs=x)
    assert x.grad.tolist() == tt.full((2, 3), 3.0).tolist()
    for name, given in (
        ("tensors", {"tensors": 3}),
        ("grad_tensors", {"tensors": x, "grad_tensors": 3}),
        ("inputs", {"tensors": x, "inputs": 3}),
    ):
        with pytest.raises(TypeError, match=rf"^backward: {name} is 3; give a tensor"):
            tt.autograd.backward(**given)
    with pytest.raises(TypeError, match="backward: grad_tensors and grad_variables are two names for one argument"):
        tt.autograd.backward(x * 3, tt.ones(2, 3), grad_variables=tt.ones(2, 3))
    y = tt.ones(2, dtype=tt.float64, requires_grad=True)
    assert tt.autograd.gradcheck(func=lambda v: v**3, inputs=(y,))
    assert tt.autograd.gradgradcheck(func=lambda v: v**3, inputs=(y,), grad_outputs=tt.ones(2, dtype=tt.float64))


def test_a_state_dict_by_place() -> None:
    net, found = tt.nn.Linear(2, 1), {}
    with tt.no_grad():
        assert net.state_dict(found, "a.", True) is found
    assert list(found) == ["a.weight", "a.bias"]
    assert found["a.weight"] is net.weight
    assert list(tt.nn.ParameterDict(parameters={"w": tt.ones(1)}).keys()) == ["w"]


def test_names_and_words_are_the_same_once_autocast_was_on() -> None:
    """It leads functions another way from then on, for the whole process."""
    with tt.amp.autocast("cpu"):
        assert tt.matmul(m(), other=m().t()).dtype is tt.bfloat16
        with pytest.raises(TypeError, match=r"^mm: no keyword 'othr', did you mean 'mat2'|^mm: .*othr"):
            tt.mm(m(), othr=m())
    assert tt.acos(x=tt.ones(2)).tolist() == [0, 0]
    assert tt.sum(m(), axis=0).tolist() == m().sum(0).tolist()
    assert tt.cumsum(m(), axis=1).tolist() == m().cumsum(1).tolist()
    assert tt.nn.functional.softmax(m(), axis=1).tolist() == m().softmax(1).tolist()
    with pytest.raises(TypeError, match=r"^acos: input is a list; give a tensor"):
        tt.acos(input=[1.0])
    with pytest.raises(TypeError, match=r"^acos: input missing; acos takes \(input"):
        tt.acos()


def test_numbers_before_tensors_warn_once_a_line() -> None:
    x = tt.ones(2)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        for step in (1, 2, 3):
            x.add_(step, tt.ones(2))
    assert x.tolist() == [7.0, 7.0]
    assert [str(w.message) for w in told] == [
        "add_: a number before the tensors that it multiplies is PyTorch's old order of arguments; give it by name, as alpha=..."
    ]
    assert told[0].filename == __file__


class _Holder:
    """A class that holds functions as attributes, as PyTorch's programs may: its functions are no Python, and do not bind to the object."""

    activation, convolve, join = tt.tanh, tt.conv2d, tt.cat


def test_functions_that_a_class_holds_do_not_take_the_object() -> None:
    held, x = _Holder(), tt.ones(1, 1, 3, 3)
    assert held.activation(x).tolist() == tt.tanh(x).tolist()
    assert held.convolve(x, weight=x, padding=1).tolist() == tt.conv2d(x, x, padding=1).tolist()
    assert held.join([x, x], 1).shape == (1, 2, 3, 3)
    with pytest.raises(TypeError, match="tanh"):
        tt.tanh(object(), x)
    with pytest.raises(TypeError, match="tanh"):
        held.activation("text")


@pytest.mark.parametrize(
    ("name", "a", "b", "value"),
    [("mul", 5, 4, 20), ("add", True, 3, 4), ("sub", 5, 4.5, 0.5), ("div", 5, 4, 1.25), ("floor_divide", 5, 4, 1), ("multiply", 2j, 2, 4j)],
)
def test_arithmetic_of_two_numbers_is_a_tensor(name: str, a: Any, b: Any, value: Any) -> None:
    found = getattr(tt, name)(a, b)
    assert found.dtype == tt.tensor(value).dtype
    assert found.item() == value
    with pytest.raises(TypeError, match="maximum: input is an int"):
        tt.maximum(5, 4)
