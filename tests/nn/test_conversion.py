"""Conversion of parameters: the two flags of __future__, swap_tensors, and loading under them."""

from __future__ import annotations

import importlib
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

import tritensor as tt
from tritensor.nn import Linear, Parameter
from tritensor.utils import swap_tensors

future = importlib.import_module("tritensor.__future__")


@pytest.fixture(autouse=True)
def flags_as_before() -> Iterator[None]:
    yield
    future.set_overwrite_module_params_on_conversion(False)
    future.set_swap_module_params_on_conversion(False)


def with_gradient() -> Linear:
    model = Linear(2, 2)
    model(tt.ones(1, 2)).sum().backward()
    return model


def test_the_flags_are_off_and_reached_as_an_attribute() -> None:
    assert tt.__future__ is future
    assert not future.get_overwrite_module_params_on_conversion()
    assert not future.get_swap_module_params_on_conversion()


@pytest.mark.parametrize(
    ("overwrite", "swap", "same"), [(False, False, True), (True, False, False), (False, True, True), (True, True, True)]
)
def test_which_object_a_converted_parameter_is(overwrite: bool, swap: bool, same: bool) -> None:
    future.set_overwrite_module_params_on_conversion(overwrite)
    future.set_swap_module_params_on_conversion(swap)
    model = with_gradient()
    weight = model.weight
    model.double()
    assert (model.weight is weight) == same
    assert model.weight.dtype == model.weight.grad.dtype == tt.float64
    assert isinstance(model.weight, Parameter)
    assert model.weight.is_leaf
    assert model.weight.requires_grad
    assert weight.dtype == (tt.float64 if same else tt.float32)


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_gradient_stays_the_object_that_its_parameter_has(overwrite: bool) -> None:
    future.set_overwrite_module_params_on_conversion(overwrite)
    model = with_gradient()
    weight, held = model.weight, model.weight.grad
    model.double()
    assert weight.grad is held
    assert held.dtype == weight.dtype == (tt.float32 if overwrite else tt.float64)
    assert held.tolist() == model.weight.grad.tolist() == [[1.0, 1.0]] * 2


def test_under_swap_an_assigned_parameter_keeps_its_identity() -> None:
    future.set_swap_module_params_on_conversion(True)
    model, given = Linear(2, 2), Linear(2, 2).state_dict()
    weight = model.weight
    model.load_state_dict(given, assign=True)
    assert model.weight is weight
    assert weight.data_ptr() == given["weight"].data_ptr()


def test_an_assigned_parameter_asks_for_gradients_as_the_one_before() -> None:
    model, p = Linear(2, 2), Parameter(tt.zeros(2, 2))
    model.weight.requires_grad_(False)
    model.load_state_dict({"weight": p, "bias": tt.zeros(2)}, assign=True)
    assert model.weight is p
    assert not p.requires_grad


def test_one_element_is_loaded_into_a_parameter_without_dimensions() -> None:
    class Scale(tt.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = Parameter(tt.tensor(1.0))

    model = Scale()
    model.load_state_dict({"a": tt.ones(1) * 3})
    assert model.a.item() == 3
    assert model.a.shape == ()


def test_two_tensors_exchange_everything_but_their_identity() -> None:
    a, b = Parameter(tt.ones(2)), Parameter(tt.zeros(3, dtype=tt.float64), requires_grad=False)
    b.note = 3
    (a * a).sum().backward()
    swap_tensors(a, b)
    assert (a.tolist(), a.dtype, a.requires_grad, a.grad, a.note) == ([0, 0, 0], tt.float64, False, None, 3)
    assert (b.tolist(), b.dtype, b.requires_grad, b.grad.tolist()) == ([1, 1], tt.float32, True, [2, 2])
    assert not hasattr(b, "note")
    (b * b).sum().backward()
    assert b.grad.tolist() == [4, 4]


def test_a_tensor_becomes_a_parameter() -> None:
    a, b = tt.ones(2), Parameter(tt.zeros(3))
    swap_tensors(a, b)
    assert (type(a), type(b), a.tolist(), a.requires_grad) == (Parameter, tt.Tensor, [0, 0, 0], True)


def test_a_graph_that_saved_a_swapped_tensor_says_so() -> None:
    a, b = Parameter(tt.ones(2)), Parameter(tt.zeros(2))
    y = (a * a).sum()
    swap_tensors(a, b)
    with pytest.raises(tt.GradError, match="swap_tensors then overwrote"):
        y.backward()


def test_what_others_hold_is_not_swapped() -> None:
    a, b = Parameter(tt.ones(2)), Parameter(tt.ones(2))
    view = a.view(2, 1)
    held = weakref.ref(b)
    for one, said in ((a, "has views that are alive"), (view, "computed by"), (a * 2, "computed by"), (b, "weakref")):
        with pytest.raises(RuntimeError, match=said):
            swap_tensors(one, Parameter(tt.zeros(2)))

    class Slotted(tt.Tensor):
        __slots__ = ("unit",)

    with pytest.raises(RuntimeError, match=r"Tensor has \[\], Slotted \['unit'\]; keep such values as plain"):
        swap_tensors(tt.ones(2), tt.ones(2).as_subclass(Slotted))
    with pytest.raises(TypeError, match="t2 is of type int"):
        swap_tensors(tt.ones(2), 1)
    assert held() is b


def test_a_container_holds_modules_by_name_and_says_what_is_newer() -> None:
    with pytest.warns(FutureWarning, match="nn.Container is deprecated"):
        made = tt.nn.Container(a=tt.nn.ReLU())
    assert repr(made) == "Container(\n  (a): ReLU()\n)"


def test_a_modules_own_to_may_be_made_of_cpu_and_cuda() -> None:
    class Own(Linear):
        def to(self, device: Any) -> Any:  # type: ignore[override]
            return self.cpu() if str(device) == "cpu" else self.cuda()

    m = Own(1, 1)
    assert m.to("cuda") is m
    assert m.weight.is_cuda
    assert not m.to("cpu").weight.is_cuda
