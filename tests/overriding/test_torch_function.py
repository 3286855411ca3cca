"""`__torch_function__`: subclasses of Tensor, classes that are no Tensor, their order, and programs without any of it."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import tritensor as tt
import tritensor.nn.functional as F
from tritensor import nn
from tritensor.tensor.overriding import protocol

HANDLED: dict[Any, str] = {}


class Foreign:
    """No Tensor: says what it was asked."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return HANDLED.get(func, func), types, args, kwargs


HANDLED |= {tt.add: "add", tt.Tensor.add: "Tensor.add", tt.linalg.solve: "solve", tt.Tensor.__rsub__: "rsub", F.softmax: "softmax"}


class Unit(tt.Tensor):
    """A subclass that defines nothing."""


class Logged(tt.Tensor):
    """A subclass that notes what is called."""

    seen: list[Any]

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        Logged.seen.append(func)
        return super().__torch_function__(func, types, args, kwargs)


class Deeper(Logged):
    """A subclass of a subclass."""


class Silent(tt.Tensor):
    """A subclass that answers nothing."""

    @classmethod
    def __torch_function__(cls, *args: Any) -> Any:
        return NotImplemented


def logged(*values: float) -> Logged:
    Logged.seen = []
    return tt.tensor(values).as_subclass(Logged)


def test_a_foreign_class_is_asked_by_functions_methods_and_operators() -> None:
    t, q = tt.ones(2), Foreign()
    assert tt.add(t, q) == ("add", (Foreign,), (t, q), None)
    assert t.add(q) == ("Tensor.add", (Foreign,), (t, q), None)
    assert (t + q)[0] == "Tensor.add"
    assert tt.linalg.solve(q, t)[0] == "solve"
    assert tt.cat([t, q], dim=0)[1:] == ((Foreign,), ([t, q],), {"dim": 0})
    assert tt.add(t, t, out=q)[3] == {"out": q}
    assert t[q][0] is tt.Tensor.__getitem__
    assert F.softmax(q, 1) == ("softmax", (Foreign,), (q,), {"dim": 1, "_stacklevel": 3, "dtype": None})
    assert not tt.is_tensor(q)


def test_a_function_that_was_imported_before_asks() -> None:
    program = """
from tritensor import add, ones
import sys
assert "tritensor.tensor.overriding.interception" not in sys.modules
class Late(__import__("tritensor").Tensor): pass
assert type(add(ones(2).as_subclass(Late), 1)) is Late
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("call", ["tt.sub(t, Q())", "t - Q()", "t[Q()]", "t.__setitem__(0, Q())", "F.linear(t, Q())", "t.mul_(Q())"])
def test_the_first_call_with_a_foreign_class_finds_it(call: str) -> None:
    program = f"""
import tritensor as tt, tritensor.nn.functional as F
class Q:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        print(func.__name__, types == (Q,))
        return 1
t = tt.ones(2)
{call}
"""
    said = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()
    name = {"t -": "sub", "tt.": "sub", "t[Q": "getitem", "t._": "setitem", "F.l": "linear", "t.m": "mul_"}[call[:3]]
    assert said == [name, "True"]


def test_a_program_without_such_a_class_loads_nothing_of_it() -> None:
    program = """
import sys, tritensor as tt
x = tt.ones(2, requires_grad=True)
(tt.nn.Linear(2, 2)(x) + x[0]).sum().backward()
assert "tritensor.tensor.overriding.interception" not in sys.modules
try:
    x + object()
except TypeError:
    pass
assert "tritensor.tensor.overriding.interception" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


SAME_CLASS: dict[str, Callable[[Any], Any]] = {
    "function": tt.exp, "method": lambda x: x.sum(), "operator": lambda x: x + 1, "reflected": lambda x: 1 - x, "plain beside it": lambda x: tt.ones(2) * x,
    "index": lambda x: x[0], "in place": lambda x: x.add_(1), "nn.functional": F.relu, "several": lambda x: x.unbind()[0],
    "named": lambda x: x.max(0).values, "list": lambda x: tt.stack([tt.ones(2), x]), "property": lambda x: x.T, "copy": copy.copy,
    "deepcopy": copy.deepcopy, "pickle": lambda x: pickle.loads(pickle.dumps(x)), "linear": lambda x: nn.Linear(2, 2)(x), "detach": lambda x: x.detach(),
    "data": lambda x: x.data, "where": lambda x: tt.where(x > 0, x, tt.zeros(2)), "einsum": lambda x: tt.einsum("i->", x), "reversed": reversed,
}  # fmt: skip


@pytest.mark.parametrize("what", SAME_CLASS)
def test_results_are_of_the_class(what: str) -> None:
    assert type(SAME_CLASS[what](tt.tensor([1.0, 2.0]).as_subclass(Unit))) is Unit


def test_numbers_sizes_and_gradients_stay_what_they_are() -> None:
    x = tt.ones(2).as_subclass(Unit).requires_grad_()
    assert type(x.shape) is tt.Size
    assert type(x.tolist()) is list
    assert type(tt.tensor(x)) is tt.Tensor
    (x * 2).sum().backward()
    assert type(x.grad) is tt.Tensor
    (y,) = tt.autograd.grad((x * 3).sum(), x)
    assert y.tolist() == [3, 3]


def test_what_a_handler_gets() -> None:
    x = logged(1.0, 2.0)
    x + 1
    1 - x
    _ = x < 2
    _ = x.shape
    x.requires_grad = True
    x[0]
    tt.sub(x, 1)
    F.relu(x)
    expected = [
        tt.Tensor.add, tt.Tensor.__rsub__, tt.Tensor.lt, tt.Tensor.shape.__get__, tt.Tensor.requires_grad.__set__, tt.Tensor.__getitem__, tt.sub, F.relu,  # type: ignore[attr-defined]
    ]  # fmt: skip
    assert Logged.seen == expected
    assert {tt.sub: 1}[Logged.seen[6]] == 1


def test_a_subclass_is_asked_before_its_class_and_else_the_first() -> None:
    order: list[str] = []

    class A(tt.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            order.append(cls.__name__)
            return NotImplemented

    class B(A):
        pass

    class C(A):
        pass

    a, b, c = (tt.ones(1).as_subclass(k) for k in (A, B, C))
    with pytest.raises(TypeError, match=r"no implementation found for 'torch\.stack'"):
        tt.stack([a, c, b, a])
    assert order == ["C", "B", "A"]


def test_not_implemented_of_an_operator_goes_on_to_the_other_operand() -> None:
    silent = tt.ones(1).as_subclass(Silent)

    class Other:
        def __radd__(self, other: Any) -> str:
            return "mine"

    assert silent + Other() == "mine"
    with pytest.raises(TypeError, match="unsupported operand"):
        silent + 1
    with pytest.raises(TypeError, match=r"Multiple dispatch failed for 'torch\.Tensor\.add'"):
        silent.add(1)
    with pytest.raises(TypeError, match=r"shape\.__get__"):
        silent.shape  # noqa: B018


def test_switched_off() -> None:
    x = logged(1.0)
    with protocol.DisableTorchFunctionSubclass():
        assert type(x + 1) is tt.Tensor
    assert not Logged.seen
    assert type(x + 1) is Logged
    assert len(Logged.seen) == 1

    class Quiet(tt.Tensor):
        __torch_function__ = protocol.disabled_torch_function

    assert type(tt.ones(1).as_subclass(Quiet) + 1) is tt.Tensor


def test_a_subclass_made_by_its_own_new() -> None:
    class Labelled(tt.Tensor):
        def __new__(cls, values: Any, label: str) -> Any:
            return super().__new__(cls, values)

        def __init__(self, values: Any, label: str) -> None:
            self.label = label

    class Wrapped(tt.Tensor):
        @staticmethod
        def __new__(cls: Any, values: tt.Tensor, label: str) -> Any:
            made = values.as_subclass(cls)
            made.label = label
            return made

    assert Labelled([1.0, 2.0], "a").label == "a"
    assert Labelled(tt.ones(2), "a").tolist() == [1, 1]
    assert Wrapped(tt.ones(2), "b").label == "b"


def test_parameters_of_other_classes() -> None:
    class Scaled(nn.Parameter):
        def __new__(cls, data: tt.Tensor, scale: float = 1.0) -> Any:
            made = tt.Tensor._make_subclass(cls, data, True)  # type: ignore[attr-defined]
            made.scale = scale
            return made

    p = Scaled(tt.ones(2), scale=3.0)
    assert p.scale == 3
    assert p.requires_grad
    assert type(p * 1) is tt.Tensor, "a Parameter takes nothing over"
    q = nn.Parameter(tt.ones(2).as_subclass(Unit))
    assert type(q) is Unit
    assert isinstance(q, nn.Parameter)
    assert not isinstance(tt.ones(2).as_subclass(Unit), nn.Parameter)
    m = nn.Module()
    m.p, m.q = p, q
    assert [n for n, _ in m.named_parameters()] == ["p", "q"]
    with pytest.raises(RuntimeError, match="Parameter: detach"):
        nn.Parameter(tt.ones(2).as_subclass(type("Plain", (tt.Tensor,), {"detach": lambda self: tt.ones(2)})))


def test_a_warning_names_the_users_line() -> None:
    with pytest.warns(UserWarning, match="uint8") as caught:
        tt.arange(3.0)[tt.tensor([0, 1, 0], dtype=tt.uint8).as_subclass(Unit)]
    assert caught[0].filename == __file__


class Reflecting(tuple[Any, ...]):
    """A tuple with an operator of its own."""

    def __rmul__(self, other: Any) -> str:
        return "mine"

    def __gt__(self, other: Any) -> Any:
        return "greater"


def test_a_tuple_with_an_operator_of_its_own_answers() -> None:
    x = tt.ones(2)
    assert x * Reflecting((1.0, 2.0)) == "mine"
    assert (x < Reflecting((1.0, 2.0))) == "greater"
    y = x
    y *= Reflecting((1.0, 2.0))
    assert y == "mine"
    assert (x * (1.0, 2.0)).tolist() == [1, 2], "a tuple of numbers is a tensor"
    assert (x + Reflecting((1.0, 2.0))).tolist() == [2, 3], "it has no __radd__"


def test_a_distribution_asks_the_class_of_a_value() -> None:
    class Held:
        def __init__(self, values: tt.Tensor) -> None:
            self.values = values

        @property
        def shape(self) -> Any:
            return self.values.shape

        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*[a.values if isinstance(a, cls) else a for a in args], **(kwargs or {}))

    found = tt.distributions.Bernoulli(logits=tt.zeros(2), validate_args=False).log_prob(Held(tt.ones(3, 2)))
    assert found.shape == (3, 2)
    assert tt.allclose(found, tt.tensor(0.5).log())
