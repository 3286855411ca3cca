"""The tests are tested, on numbers: one wrong element among large ones, a small bias everywhere, sums kept in 16 bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tritensor.kernels  # noqa: F401  (fills the table)
from tests.sabotage.test_sabotage import EMULATED, sabotaged
from tritensor.ground.device import cpu, device
from tritensor.ops.array import CudaArray, from_host, to_host
from tritensor.ops.table import Op, registry
from tritensor.testing.questions.backward import backward_is_rule
from tritensor.testing.questions.cases import Case, cases
from tritensor.testing.questions.forward import cpu_is_reference, forward
from tritensor.testing.questions.tolerance import mismatch

HALF = ("float16", "bfloat16")


def plain(record: Op, dtype: str, on: device = cpu) -> list[Case]:
    return [c for c in cases(record, dtype, on) if c.layout == "plain"]


def said(record: Op, dtype: str, on: device = cpu) -> str:
    """What is found of the first case of which anything is."""
    asked = ((cpu_is_reference if on is cpu else forward)(case) + backward_is_rule(case) for case in plain(record, dtype, on))
    return "\n".join(next((found for found in asked if found), []))


def back(host: np.ndarray, like: Any) -> Any:
    return from_host(host, EMULATED) if isinstance(like, CudaArray) else host


# One small element among large ones.
def smallest_off(function: Callable[..., Any], by: float = 1e-3) -> Callable[..., Any]:
    """The function, and its result's smallest element that is not 0 off by a part in a thousand."""

    def wrong(*arrays: Any, **attrs: Any) -> Any:
        out = function(*arrays, **attrs)
        host = to_host(out).copy()
        size = np.where(host == 0, np.inf, np.abs(host))
        if host.size > 7 and np.isfinite(size).any():  # among others: of a few elements any comparison finds it
            at = np.unravel_index(int(np.argmin(size)), host.shape)
            host[at] = host[at] * (1 + by)
        return back(host, out)

    return wrong


@pytest.mark.parametrize("name", ["tanh", "mul", "exp", "sigmoid"])
@pytest.mark.parametrize("on", [cpu, EMULATED], ids=["cpu", "emulated"])
def test_one_wrong_small_element_of_a_result(name: str, on: device) -> None:
    good = registry[name]
    record = sabotaged(name, forward=smallest_off(good.forward)) if on is EMULATED else sabotaged(name, cpu=smallest_off(good.cpu))
    assert "1 of" in said(record, "float32", on)


@pytest.mark.parametrize("name", ["softmax", "layer_norm"])
def test_one_wrong_small_gradient(name: str) -> None:
    good = registry[name].backward
    assert good is not None

    def wrong(*given: Any) -> Any:
        found = good.functions[0](*given)
        first = found[0] if isinstance(found, tuple) else found
        first = None if first is None else smallest_off(lambda: first)()
        return (first, *found[1:]) if isinstance(found, tuple) else first

    corner = _named(wrong, good.names[0])
    record = sabotaged(name, backward=corner if good.joint else (corner,))
    assert "backward_is_rule: gradient of x: 1 of" in said(record, "float32", EMULATED)


def _named(function: Callable[..., Any], names: tuple[str, ...]) -> Callable[..., Any]:
    """A gradient corner that names what another one does."""
    return _spelt(function, ["g", *names], ["g", *names])


def _spelt(function: Callable[..., Any], taken: list[str], passed: list[str]) -> Callable[..., Any]:
    """The function with a signature of names, which is what registration reads."""
    scope: dict[str, Any] = {"function": function}
    exec(f"def corner({', '.join(taken)}):\n    return function({', '.join(passed)})", scope)
    return scope["corner"]


# A small bias everywhere.
def scaled(function: Callable[..., Any], by: float = 1.01) -> Callable[..., Any]:
    def wrong(*arrays: Any, **attrs: Any) -> Any:
        out = function(*arrays, **attrs)
        host = to_host(out)
        return back((host.astype(np.float64) * by).astype(host.dtype), out) if host.dtype.itemsize == 2 else out

    return wrong


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("name", ["tanh", "mul", "softmax", "matmul"])
def test_a_forward_off_by_one_percent(name: str, dtype: str) -> None:
    assert "forward" in said(sabotaged(name, forward=scaled(registry[name].forward)), dtype, EMULATED)
    assert "cpu_is_reference" in said(sabotaged(name, cpu=scaled(registry[name].cpu)), dtype)


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("name", ["tanh", "exp", "softmax"])
def test_a_gradient_off_by_one_percent(name: str, dtype: str) -> None:
    good = registry[name].backward
    assert good is not None
    record = sabotaged(name, backward=(_named(scaled(good.functions[0]), good.names[0]),))
    assert "gradient of" in said(record, dtype, EMULATED)


def test_the_mean_error_by_itself() -> None:
    rng = np.random.default_rng(3)
    exact = rng.standard_normal(200)
    for kind in (np.float16, ml_dtypes.bfloat16):
        right = exact.astype(kind)
        wrong = (exact * 1.01).astype(kind)
        assert mismatch(right, exact, 0.05, dtype=False) is None
        assert "off the same way" in (mismatch(wrong, exact, 0.05, dtype=False) or "")
        noisy = (exact * (1 + 0.005 * rng.standard_normal(200))).astype(kind)  # either way: no bias
        assert mismatch(noisy, exact, 0.05, dtype=False) is None
        same = np.full(200, 0.3).astype(kind)  # one error, many times
        assert mismatch(same, np.full(200, 0.301), 0.05, dtype=False) is None


# Sums kept in 16 bits.
def _sequential(x: np.ndarray, axis: int) -> np.ndarray:
    """A sum along one axis whose running total is rounded to x's type."""
    return np.add.accumulate(x, axis=axis).take(-1, axis=axis) if x.shape[axis] else x.sum(axis=axis)


def _sum(x: Any, *, dim: tuple[int, ...], keepdim: bool) -> Any:
    host = to_host(x)
    if host.dtype.itemsize > 2:
        return registry["sum"].cpu(host, dim=dim, keepdim=keepdim)
    for axis in sorted(dim, reverse=True):
        host = _sequential(host, axis)
    out = host if not keepdim else host.reshape(tuple(1 if a in dim else n for a, n in enumerate(x.shape)))
    return np.asarray(out)


def _product(a: Any, b: Any) -> Any:
    """matmul with one rounding after each step of the sum."""
    a, b = to_host(a), to_host(b)
    if a.dtype.itemsize != 2:
        return np.matmul(a, b)
    if min(a.ndim, b.ndim) < 2 or not a.shape[-1]:
        return registry["matmul"].cpu(a, b)
    out = np.zeros(np.broadcast_shapes(a.shape[:-2], b.shape[:-2]) + (a.shape[-2], b.shape[-1]), a.dtype)
    for k in range(a.shape[-1]):
        out = (out + (a[..., k : k + 1] * b[..., k : k + 1, :]).astype(a.dtype)).astype(a.dtype)
    return out


def _normal(x: np.ndarray, weight: Any = None, bias: Any = None, *, eps: float = 1e-5, axes: int = 1) -> Any:
    """layer_norm whose means are summed in x's type."""
    y, mean, rstd = registry["layer_norm"].cpu(x, weight, bias, eps=eps, axes=axes)
    if x.dtype.itemsize != 2 or axes != 1 or not x.size:
        return y, mean, rstd
    rough = _sequential(x, -1).astype(np.float32) / x.shape[-1]
    again = registry["layer_norm"].cpu(x, weight, bias, eps=eps, axes=axes)
    out = (x.astype(np.float32) - rough[..., None]) * again[2][..., None]
    out = out if weight is None else out * weight.astype(np.float32)
    return (out if bias is None else out + bias.astype(np.float32)).astype(x.dtype), mean, rstd


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize(("name", "rough"), [("sum", _sum), ("matmul", _product), ("layer_norm", _normal)])
def test_a_sum_kept_in_sixteen_bits(name: str, rough: Callable[..., Any], dtype: str) -> None:
    assert "cpu_is_reference" in said(sabotaged(name, cpu=rough), dtype)


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize(("name", "rough"), [("sum", _sum), ("matmul", _product)])
def test_a_kernel_that_keeps_its_sum_in_sixteen_bits(name: str, rough: Callable[..., Any], dtype: str) -> None:
    record = sabotaged(name, forward=lambda *xs, **attrs: from_host(rough(*xs, **attrs), EMULATED))
    assert "forward" in said(record, dtype, EMULATED)


def test_a_gradient_that_keeps_its_sum_in_sixteen_bits() -> None:
    def bias(g: np.ndarray) -> np.ndarray:
        return np.asarray(_sequential(g.reshape(-1, g.shape[-1]), 0)) if g.ndim > 1 else g

    good = registry["linear"].cpu_backward
    assert good is not None
    record = sabotaged("linear", cpu_backward=(*good.functions[:2], bias))
    assert "gradient of bias" in said(record, "bfloat16")
