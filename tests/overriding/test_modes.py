"""torch.overrides: modes, questions about functions, and functions of a user's own that ask."""

from __future__ import annotations

from typing import Any

import pytest

import tritensor as tt
import tritensor.nn.functional as F
from tritensor import overrides


class Log(overrides.TorchFunctionMode):
    """A mode that notes the names of what is called."""

    def __init__(self) -> None:
        self.names: list[str | None] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(overrides.resolve_name(func))
        return func(*args, **(kwargs or {}))


class Like:
    """No Tensor, which takes everything over."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func


def test_a_mode_sees_what_makes_tensors_too_and_nothing_inside_of_functions() -> None:
    t = tt.ones(2)
    with Log() as log:
        tt.zeros(2)
        t + 1
        t.shape  # noqa: B018
        F.cross_entropy(t, tt.tensor(1))
        tt.is_tensor(t)
        tt.manual_seed(0)
    assert log.names == [
        "torch.zeros", "torch.Tensor.add", "torch.Tensor.shape.__get__", "torch.tensor", "torch.nn.functional.cross_entropy",
    ]  # fmt: skip
    tt.zeros(2)
    assert len(log.names) == 5


def test_modes_nest_from_the_inside() -> None:
    class Twice(overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return tt.mul(func(*args, **(kwargs or {})), 2)

    with Log() as log, Twice():
        made = tt.ones(1)
    assert made.item() == 2
    assert log.names == ["torch.ones", "torch.mul"]


def test_a_mode_is_asked_before_classes_and_may_leave_it_to_them() -> None:
    class Leave(overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            assert types == (Like,)
            return NotImplemented

    with Leave(), overrides.BaseTorchFunctionMode():
        assert tt.exp(Like()) is tt.exp  # type: ignore[arg-type, comparison-overlap]
    with pytest.raises(TypeError, match="of a mode"), Leave2():
        tt.ones(1)


class Leave2(overrides.TorchFunctionMode):
    """A mode that answers nothing."""

    def __torch_function__(self, *args: Any) -> Any:
        return NotImplemented


def test_a_function_of_ones_own_asks() -> None:
    def own(a: Any, b: Any = 1) -> Any:
        if overrides.has_torch_function((a, b)):
            return overrides.handle_torch_function(own, (a, b), a, b=b)
        return "mine"

    assert own(tt.ones(1)) == "mine"
    assert own(Like()) is own
    wrapped = overrides.wrap_torch_function(lambda a: (a,))(lambda a: "mine")
    assert wrapped(1) == "mine"
    assert wrapped(Like()) is wrapped
    assert overrides.has_torch_function_unary(Like())
    assert overrides.has_torch_function_variadic(1, Like())
    assert not overrides.has_torch_function_variadic(1, tt.ones(1), tt.nn.Parameter(tt.ones(1)))
    with Log():
        assert overrides.has_torch_function(())


def test_a_method_that_is_no_classmethod_warns() -> None:
    class Old:
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return self

    old = Old()
    with pytest.warns(DeprecationWarning, match="classmethod"):
        assert overrides.handle_torch_function(tt.exp, (old,), old) is old


def test_names() -> None:
    assert overrides.resolve_name(tt.Tensor.add) == "torch.Tensor.add"
    assert overrides.resolve_name(tt.add) == "torch.add"
    assert overrides.resolve_name(tt.einsum) == "torch.functional.einsum"
    assert overrides.resolve_name(tt.Tensor.shape.__get__) == "torch.Tensor.shape.__get__"  # type: ignore[attr-defined]
    assert overrides.resolve_name(print) is None
    assert overrides.is_tensor_method_or_property(tt.Tensor.add)
    assert not overrides.is_tensor_method_or_property(tt.add)
    assert overrides.is_tensor_method_or_property(tt.Tensor.shape.__get__)  # type: ignore[attr-defined]


def test_every_function_that_can_be_taken_over_is() -> None:
    tested, ignored = overrides.get_testing_overrides(), overrides.get_ignored_functions()
    functions = [f for listed in overrides.get_overridable_functions().values() for f in listed]
    assert len(functions) == len(tested) > 1200
    assert not set(functions) & ignored
    assert tt.add in tested
    assert tt.zeros in ignored
    wrong = []
    for f in overrides.get_overridable_functions()[tt]:
        try:
            if f(Like()) is not f:  # type: ignore[operator]
                wrong.append(f.__name__)
        except TypeError as error:
            wrong.append(f"{f.__name__}: {error}")
    assert not wrong


def test_past_one_hop() -> None:
    depth: list[str] = []

    class Deep(tt.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            depth.append(func.__name__)
            return overrides.redispatch_function(func, types, args, kwargs)

    assert type(tt.ones(1).as_subclass(Deep) * 2) is tt.Tensor
    assert depth == ["mul"]


def test_legacy_spelling() -> None:
    with pytest.warns(UserWarning, match="no longer necessary"), Log.push() as log:
        tt.ones(1)
    assert log.names == ["torch.ones"]  # type: ignore[attr-defined]
    with pytest.raises(NotImplementedError), overrides.TorchFunctionMode():
        tt.ones(1)
