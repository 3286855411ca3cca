"""Registration checks a record whole and its messages teach; nothing unfinished enters the table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor.kernels  # noqa: F401  (fills the table)
from tritensor.ground.errors import RegistrationError
from tritensor.ops.table import Sample, Spec, op, ops, registry


def reference(x, y=None, *, scale=1.0):
    return x * scale


GOOD: dict[str, Any] = {
    "shape": lambda x, y=None, *, scale=1.0: Spec(x.shape, x.dtype),
    "forward": lambda x, y=None, *, scale=1.0: x,
    "rule": lambda g, scale: (g * scale, None),
    "backward": lambda g, scale: (g, None),
    "samples": lambda rng: [Sample(np.ones(2), scale=2.0)],
}


def register(**changes: Any) -> Any:
    fields = {k: v for k, v in {**GOOD, **changes}.items() if v is not ...}
    try:
        return op("registration_test", fields.pop("reference", reference), **fields)
    finally:
        registry.pop("registration_test", None)


def test_a_whole_record_enters() -> None:
    record = register()
    assert record.inputs == ("x", "y")
    assert record.required == 1
    assert record.attrs == {"scale": 1.0}
    assert record.keep((True, False)) == ((False, False), (False,), False)


def test_what_a_corner_names_is_what_is_kept() -> None:
    corner = (lambda g, y: g, lambda g, x_shape: g)
    record = register(rule=corner, backward=corner, outputs=("out",))
    assert record.keep((True, False))[0] == (False, True)
    assert record.keep((False, True)) == ((False, False), (False,), True)


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "no forward": ({"forward": None}, "forward is missing.*Triton kernel"),
    "no rule": ({"rule": None, "backward": None}, "rule is missing.*differentiable=False"),
    "no backward": ({"backward": None}, "backward is missing.*backward kernel"),
    "backward without a rule": ({"rule": None, "differentiable": False}, "a backward without a rule"),
    "rule and not differentiable": ({"differentiable": False}, "keep one"),
    "a name that is nothing": ({"rule": lambda g, scael: g}, "names 'scael'.*did you mean 'scale'"),
    "a name that is two things": ({"rule": lambda g, y: (g, None)}, "names 'y', which is an input and an output; rename one"),
    "too few functions": ({"rule": (lambda g: g,)}, "rule has 1 functions for 2 inputs"),
    "a residual that is no output": ({"residuals": ("lse",)}, "residual 'lse' is not among the outputs"),
    "a residual in the rule": (
        {"outputs": ("out", "lse"), "residuals": ("lse",), "rule": lambda g, lse: (g, None)},
        "rule names the residual 'lse'.*second order",
    ),
    "a view with a kernel": ({"view": True}, "a view has no kernels"),
    "a view of several outputs": (
        {"view": True, "forward": None, "backward": None, "outputs": ("a", "b"), "rule": lambda g: (None, None)},
        "a view op gives one view",
    ),
    "mutates nothing": ({"mutates": ("z",), "rule": None, "backward": None}, "mutates names 'z'"),
    "mutates with a rule": ({"mutates": ("x",)}, "has no rule"),
    "promote": ({"promote": "double"}, "promote is 'double'"),
    "an attribute that is positional": ({"reference": lambda x, scale=1.0: x}, "make an attribute keyword-only"),
    "attributes unnamed": ({"reference": lambda x, **kw: x}, r"takes \*\*kw"),
    "types that are no names": ({"dtypes": (np.float32,)}, "give names such as 'float32'"),
    "a type that does not exist": ({"dtypes": ("float33",)}, "dtypes holds 'float33'"),
    "no reference": ({"reference": None}, "reference is None"),
    "no shape": ({"shape": None}, "shape is None; it must be a function"),
    "no samples": ({"samples": None}, "samples is None; it must be a function"),
    "a forward that cannot be called": ({"forward": 3}, "forward is 3; it must be a function"),
    "a forward without an attribute": ({"forward": lambda x, y=None: x}, r"forward takes the attributes \[\], reference \['scale'\]"),
    "a forward with another default": (
        {"forward": lambda x, y=None, *, scale=2.0: x},
        r"forward takes scale=2.0 when it is left out, reference 1.0; give both the same",
    ),
    "a shape with fewer inputs": ({"shape": lambda x, *, scale=1.0: x}, "shape takes 1 arrays, reference 2"),
    "sizes without work": ({"sizes": lambda rng: []}, "sizes without work"),
    "a tolerance without its reason": ({"tolerance": {"float32": 1e-3}}, "tolerance has 'float32'"),
}


@pytest.mark.parametrize("fault", list(FAULTS))
def test_refused(fault: str) -> None:
    changes, message = FAULTS[fault]
    before = set(registry)
    with pytest.raises(RegistrationError, match=message):
        register(**changes)
    assert set(registry) == before


def test_all_faults_at_once() -> None:
    with pytest.raises(RegistrationError) as caught:
        register(forward=None, rule=lambda g, nothing: g, promote="x")
    assert str(caught.value).count("\n  - ") == 3


def test_a_name_is_taken_once() -> None:
    with pytest.raises(RegistrationError, match="the name is taken by"):
        op("add", reference, **GOOD)
    with pytest.raises(RegistrationError, match="must be a Python identifier"):
        op("my-op", reference, **GOOD)


def test_lookup_of_an_op_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="no op is called 'softmaxx'; did you mean 'softmax'"):
        ops.softmaxx  # noqa: B018


def test_a_third_party_op_runs_and_differentiates() -> None:
    import tritensor as tt

    def cube(x):
        return x * x * x

    record = op(
        "registration_test", cube, shape=lambda x: Spec(x.shape, x.dtype), forward=lambda x: ops, samples=lambda rng: [Sample(rng.standard_normal(3))],
        rule=lambda g, x: 3 * g * x * x, backward=lambda g, x: g,
    )  # fmt: skip
    try:
        x = tt.tensor([2.0], requires_grad=True)
        (first,) = tt.autograd.grad(ops.registration_test(x).sum(), x, create_graph=True)
        (second,) = tt.autograd.grad(first.sum(), x)
        assert first.item() == 12.0
        assert second.item() == 12.0
    finally:
        del registry[record.name]
        ops.__dict__.pop(record.name, None)


def test_the_rule_of_an_op_with_two_outputs_serves_numpy_as_well() -> None:
    import tritensor as tt

    def rule(g):
        double, triple = g
        parts = [factor * v for factor, v in ((2, double), (3, triple)) if v is not None]
        return sum(parts[1:], parts[0])

    record = op(
        "registration_test", lambda x: (x * 2, x * 3), shape=lambda x: (Spec(x.shape, x.dtype),) * 2, forward=lambda x: (x, x), rule=rule,
        backward=lambda g: g[0], outputs=("double", "triple"), samples=lambda rng: [Sample(rng.standard_normal(3))],
    )  # fmt: skip
    try:
        x = tt.tensor([1.0, 2.0], requires_grad=True)
        double, triple = ops.registration_test(x)
        found = [tt.autograd.grad(y.sum(), x, retain_graph=True)[0].tolist() for y in (double, triple, double * triple)]
        assert found == [[2.0, 2.0], [3.0, 3.0], [12.0, 24.0]]
    finally:
        del registry[record.name]
        ops.__dict__.pop(record.name, None)
