"""The tests are tested: records with one planted fault each, and the question that must find it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tritensor.kernels  # noqa: F401  (fills the table)
from tritensor.ground.device import cpu, device
from tritensor.ground.errors import RegistrationError
from tritensor.ops.array import CudaArray, empty_like, from_host, to_host
from tritensor.ops.table import Op, Partials, Spec, op, registry
from tritensor.testing.questions.ask import ask
from tritensor.testing.questions.cases import cases, copy_inputs

EMULATED = device("cuda", 0)


def corner(partials: Partials | None) -> Any:
    """A gradient corner as it was given to `op`."""
    return None if partials is None else partials.functions[0] if partials.joint else partials.functions


def sabotaged(name: str, **faults: Any) -> Op:
    """A copy of a registered op with some fields replaced, through registration, and out of the table again."""
    good = registry[name]
    fields: dict[str, Any] = {
        k: getattr(good, k)
        for k in (
            "reference",
            "cpu",
            "shape",
            "forward",
            "samples",
            "outputs",
            "residuals",
            "broadcasts",
            "layout",
            "promote",
            "dtypes",
            "tolerance",
            "condition",
            "inputs",
            "into",
        )
    }
    fields |= {k: corner(getattr(good, k)) for k in ("rule", "backward", "cpu_backward")}
    if {"forward", "cpu", "reference"} & faults.keys():
        fields["into"] = False  # what replaces them takes no out=
    if good.attrs:  # their names are read off the reference's signature
        fields.pop("inputs")
    record = op(f"sabotaged_{name}", **{**fields, **faults})
    del registry[record.name]
    return record


def found(record: Op, on: device, dtype: str = "float32") -> str:
    """Everything that the six questions find, in a string."""
    return "\n".join(line for case in cases(record, dtype, on) for line in ask(case))


def nudged(x: Any, by: float = 1e-2) -> Any:
    """An array whose last element is off."""
    host = to_host(x).copy()
    if host.size:
        host.reshape(-1)[-1] += by * (1 + abs(host.reshape(-1)[-1]))
    return from_host(host, EMULATED) if isinstance(x, CudaArray) else host


@pytest.mark.parametrize("name", ["tanh", "mul", "sum", "softmax"])
def test_the_copy_itself_is_sound(name: str) -> None:
    record = sabotaged(name)
    assert not found(record, cpu, "float64")
    assert not found(record, EMULATED)


# question 1
def test_shape_rule_with_a_wrong_type() -> None:
    good = registry["softmax"].shape
    record = sabotaged("softmax", shape=lambda x, *, dim: Spec(good(x, dim=dim).shape, np.dtype(np.float64)))
    assert "shape_rule: the rule says" in found(record, cpu)


def test_shape_rule_with_a_wrong_size() -> None:
    good = registry["sum"].shape
    record = sabotaged("sum", shape=lambda x, *, dim, keepdim: Spec((*good(x, dim=dim, keepdim=keepdim).shape, 1), np.dtype(x.dtype)))
    assert "shape_rule: the rule says" in found(record, cpu)


# question 2
def _strides_ignored(x: CudaArray) -> CudaArray:
    return registry["tanh"].forward(CudaArray(x.storage, x.shape, x.dtype, None, x.offset))


def _last_element_unwritten(x: CudaArray) -> CudaArray:
    y = empty_like(x)
    if x.size > 1:
        whole = registry["tanh"].forward(x)
        y.storage.write(to_host(whole).reshape(-1)[:-1], 0)
    return y


def _writes_its_input(x: CudaArray) -> CudaArray:
    y = registry["tanh"].forward(x)
    if x.size and 0 not in x.strides:
        x.storage.write(np.zeros(1, x.dtype), x.offset * x.itemsize)
    return y


FORWARDS: dict[str, tuple[Callable[[CudaArray], Any], str]] = {
    "wrong value": (lambda x: nudged(registry["tanh"].forward(x)), "elements differ"),
    "another function": (lambda x: registry["sin"].forward(x), "elements differ"),
    "strides ignored": (_strides_ignored, "sliced/cuda: forward"),
    "an element never written": (_last_element_unwritten, "got nan"),
    "input written": (_writes_its_input, "input x was modified"),
    "input returned": (lambda x: x, "shares memory with an input"),
    "wrong type": (
        lambda x: registry["cast"].forward(registry["tanh"].forward(x), dtype=np.dtype(np.float64)),
        "dtype float64, expected float32",
    ),
    "wrong device": (lambda x: to_host(registry["tanh"].forward(x)), "is on cpu"),
    "it raises": (lambda x: 1 / 0, "ZeroDivisionError: division by zero (at test_sabotage.py"),
}


@pytest.mark.parametrize("fault", list(FORWARDS))
def test_forward(fault: str) -> None:
    kernel, message = FORWARDS[fault]
    assert message in found(sabotaged("tanh", forward=kernel), EMULATED)


def test_reference_of_another_function() -> None:
    assert "rule_is_derivative" in found(sabotaged("tanh", reference=lambda x: np.sin(x), inputs=("x",)), cpu, "float64")


def test_cpu_that_spoils_its_input() -> None:
    def cpu_side(x: np.ndarray) -> np.ndarray:
        y = np.tanh(x)
        if x.size and x.flags.writeable:
            x *= 1.5
        return y

    assert "input x was modified" in found(sabotaged("tanh", cpu=cpu_side), cpu)


def test_cpu_that_computes_in_sixteen_bits() -> None:
    def cpu_side(x: np.ndarray, *, dim: tuple[int, ...], keepdim: bool) -> np.ndarray:
        y = np.zeros_like(x.sum(axis=dim, keepdims=keepdim))
        rough = np.add.reduce(x.astype(np.float16), axis=dim, keepdims=keepdim)
        return (y + rough).astype(x.dtype)

    assert "cpu_is_reference" in found(sabotaged("sum", cpu=cpu_side), cpu, "float32")


# question 3
def test_rule_with_a_wrong_factor() -> None:
    record = sabotaged("tanh", rule=lambda g, y: g * (1 - y * y) * 1.001)
    assert "rule_is_derivative: gradient of x" in found(record, cpu, "float64")


def test_rule_wrong_for_one_input_of_two() -> None:
    record = sabotaged("mul", rule=(lambda g, b: g * b, lambda g, a: g * a * a), cpu_backward=None)
    text = found(record, cpu, "float64")
    assert "rule_is_derivative: gradient of b" in text
    assert "rule_is_derivative: gradient of a" not in text


def test_rule_that_returns_nothing() -> None:
    assert "rule_is_derivative" in found(sabotaged("tanh", rule=lambda g: None), cpu, "float64")


def test_rule_that_forgets_the_attribute() -> None:
    record = sabotaged("softmax", rule=lambda g, y: y * (g - (g * y).sum(-1, keepdim=True)))
    assert "rule_is_derivative" in found(record, cpu, "float64")


# question 4
def _spoils(g: CudaArray, y: CudaArray) -> CudaArray:
    out = _tanh_backward(g, y)
    if g.size:
        g.storage.write(np.zeros(1, g.dtype), g.offset * g.itemsize)
    return out


def _tanh_backward(g: CudaArray, y: CudaArray) -> CudaArray:
    mul, sub = registry["mul"].forward, registry["sub"].forward
    return mul(g, sub(1.0, mul(y, y)))


BACKWARDS: dict[str, tuple[Callable[..., Any], str]] = {
    "wrong value": (lambda g, y: nudged(_tanh_backward(g, y)), "gradient of x"),
    "sign": (lambda g, y: registry["neg"].forward(_tanh_backward(g, y)), "gradient of x"),
    "g ignored": (lambda g, y: registry["sub"].forward(1.0, registry["mul"].forward(y, y)), "gradient of x"),
    "strides of g ignored": (
        lambda g, y: _tanh_backward(CudaArray(g.storage, g.shape, g.dtype, None, g.offset), y),
        "sliced/cuda: backward_is_rule",
    ),
    "saved array returned": (lambda g, y: y, "shares memory with a saved array"),
    "g written": (_spoils, "g was modified"),
    "nothing": (lambda g, y: None, "the rule gives an array"),
    "wrong type": (lambda g, y: registry["cast"].forward(_tanh_backward(g, y), dtype=np.dtype(np.float64)), "has dtype float64"),
    "on the host": (lambda g, y: to_host(_tanh_backward(g, y)), "is on cpu"),
}


def test_backward_as_planted_is_sound() -> None:
    assert not found(sabotaged("tanh", backward=_tanh_backward), EMULATED)


@pytest.mark.parametrize("fault", list(BACKWARDS))
def test_backward(fault: str) -> None:
    kernel, message = BACKWARDS[fault]
    assert message in found(sabotaged("tanh", backward=kernel), EMULATED)


def test_cpu_backward() -> None:
    record = sabotaged("tanh", cpu_backward=lambda g, y: g * (1 - y))
    assert "backward_is_rule: gradient of x" in found(record, cpu)


def test_backward_that_confuses_its_inputs() -> None:
    forward = registry["mul"].forward
    record = sabotaged("mul", backward=lambda g, a, b: (forward(g, a), forward(g, b)))
    assert "backward_is_rule: gradient of a" in found(record, EMULATED)


# question 5
def test_rule_that_detaches_silently() -> None:
    record = sabotaged("tanh", rule=lambda g, y: g * (1 - (y * y).detach()))
    text = found(record, cpu, "float64")
    assert "rule_differentiates: second derivative by x" in text
    assert "rule_is_derivative" not in text


def test_rule_that_detaches_g() -> None:
    text = found(sabotaged("tanh", rule=lambda g, y: g.detach() * (1 - y * y)), cpu, "float64")
    assert "rule_differentiates: second derivative by g" in text


def test_rule_that_leaves_the_graph_through_numpy() -> None:
    def rule(g: Any, y: Any) -> Any:
        return g * type(g).wrap(1 - y.detach().numpy() ** 2)

    assert "rule_differentiates: second derivative by x" in found(sabotaged("tanh", rule=rule), cpu, "float64")


# residuals
def _with_residual(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    y = np.tanh(x)
    return y, np.asarray(1 - y * y)


def _residual_kernel(x: CudaArray) -> tuple[CudaArray, CudaArray]:
    y = registry["tanh"].forward(x)
    return y, registry["sub"].forward(1.0, registry["mul"].forward(y, y))


def _residual_record(**faults: Any) -> Op:
    fields: dict[str, Any] = {
        "reference": _with_residual,
        "cpu": None,
        "shape": lambda x: (registry["tanh"].shape(x), registry["tanh"].shape(x)),
        "forward": _residual_kernel,
        "outputs": ("y", "slope"),
        "residuals": ("slope",),
        "promote": None,
        "broadcasts": False,
        "into": False,
        "inputs": ("x",),
        "rule": lambda g, y: g * (1 - y * y),
        "backward": lambda g, slope: registry["mul"].forward(g, slope),
        "cpu_backward": None,
    }
    return sabotaged("tanh", **{**fields, **faults})


def test_residuals_themselves_are_sound() -> None:
    record = _residual_record()
    assert not found(record, cpu, "float64")
    assert not found(record, EMULATED)


def test_residual_in_a_rule_is_refused() -> None:
    with pytest.raises(RegistrationError, match=r"rule names the residual 'slope'.*second order"):
        _residual_record(rule=lambda g, slope: g * slope)


def test_residual_computed_wrongly() -> None:
    def kernel(x: CudaArray) -> tuple[CudaArray, CudaArray]:
        y, slope = _residual_kernel(x)
        return y, nudged(slope)

    text = found(_residual_record(forward=kernel), EMULATED)
    assert "forward: slope: " in text


def test_residual_smuggled_into_a_rule_as_a_constant() -> None:
    # What registration guards against, done behind its back: right at first order, wrong at second.
    def rule(g: Any, x: Any) -> Any:
        return g * type(g).wrap(np.asarray(1 - np.tanh(x.detach().numpy()) ** 2))

    text = found(_residual_record(rule=rule), cpu, "float64")
    assert "rule_differentiates" in text
    assert "rule_is_derivative" not in text


def test_comparison_itself() -> None:
    from tritensor.testing.questions.tolerance import mismatch

    a = np.array([1.0, 2.0, np.nan, np.inf], np.float32)
    assert mismatch(a, a.copy(), 0.0) is None
    for place, value in ((0, 1.001), (2, 0.0), (3, -np.inf), (0, np.nan), (3, 1.0)):
        b = a.copy()
        b[place] = value
        assert mismatch(b, a, 1e-6) is not None, value
    assert "shape" in (mismatch(a, a[:3], 1.0) or "")
    assert "dtype" in (mismatch(a, a.astype(np.float64), 1.0) or "")
    assert mismatch(np.array([1, 2]), np.array([1, 3]), 1.0) is not None
    assert copy_inputs((a, 1))[0] is not a
