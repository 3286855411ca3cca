"""gradcheck and gradgradcheck: gradients held against central differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tritensor.array import from_host, to_host
from tritensor.autograd import node as nodes
from tritensor.autograd.engine import grad
from tritensor.autograd.modes import no_grad
from tritensor.errors import GradError
from tritensor.table import ops


def gradcheck(
    func: Callable[..., Any], inputs: Any, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3, raise_exception: bool = True
) -> bool:
    """Compare the Jacobian of `func(*inputs)` from backward with central differences, entry by entry.

    Args:
        func: tensors to a tensor or a tuple of them.
        inputs: a tensor or a tuple; those that require grad are checked, and should be float64 or complex128. Complex numbers count as
            two real ones each, the real part first.
        eps: step of the differences. atol, rtol: |analytic - numeric| <= atol + rtol * |numeric|.
        raise_exception: raise GradError naming the entry, instead of returning False.
    """
    args = tuple(inputs) if isinstance(inputs, Sequence) else (inputs,)
    checked = [i for i, a in enumerate(args) if getattr(a, "tracked", False)]
    if not checked:
        raise GradError("gradcheck: no input requires grad; call requires_grad_() on those to check")
    for i in checked:
        if args[i].array.dtype not in (np.float64, np.complex128):
            raise GradError(f"gradcheck: input {i} is {args[i].dtype.name}; differences need float64, convert with .double()")
    for o, y in enumerate(_outputs(func, args)):
        if y.array.dtype not in (np.float64, np.complex128):
            continue
        for i in checked:
            numeric = _numeric(func, args, i, o, eps)
            analytic = _analytic(y, args[i]) if y.tracked else np.zeros_like(numeric)
            wrong = ~(np.abs(analytic - numeric) <= atol + rtol * np.abs(numeric))
            if wrong.any():
                if not raise_exception:
                    return False
                r, c = np.argwhere(wrong)[0]
                raise GradError(
                    f"gradcheck: d output {o}[{c}] / d input {i}[{r}] is {analytic[r, c]:.6g} by backward and {numeric[r, c]:.6g} by differences"
                )
    return True


def gradgradcheck(
    func: Callable[..., Any], inputs: Any, grad_outputs: Any = None, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
    raise_exception: bool = True,
) -> bool:  # fmt: skip
    """gradcheck of the gradient of `func`: second derivatives against differences of the first. Options as gradcheck's.

    `grad_outputs` are what the gradient starts from, one tensor for each output; random numbers where they are not given.
    """
    args = tuple(inputs) if isinstance(inputs, Sequence) else (inputs,)
    checked = [i for i, a in enumerate(args) if getattr(a, "tracked", False)]
    rng = np.random.default_rng(0)
    if grad_outputs is not None:
        weights = [grad_outputs] if hasattr(grad_outputs, "array") else list(grad_outputs)
    else:
        with no_grad():
            weights = [nodes.make_tensor(from_host(_normal(rng, y.array), y.device)) for y in _outputs(func, args)]

    def first(*xs: Any) -> tuple[Any, ...]:
        ys = _outputs(func, xs)
        total = None
        for y, w in zip(ys, weights, strict=True):
            term = ops.sum(ops.mul(y, w), dim=tuple(range(len(y.array.shape))), keepdim=False)
            term = ops.real(term) if term.array.dtype.kind == "c" else term
            total = term if total is None else ops.add(total, term)
        return grad(total, [xs[i] for i in checked], create_graph=True, allow_unused=True, materialize_grads=True)

    return gradcheck(first, args, eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception)


def _normal(rng: np.random.Generator, like: Any) -> np.ndarray:
    x = rng.standard_normal(like.shape)
    return np.asarray(x + 1j * rng.standard_normal(like.shape) if like.dtype.kind == "c" else x)


def _real_numbers(x: np.ndarray) -> np.ndarray:
    """The elements in a row, complex ones as two each; in C order, of the memory of x where that has it."""
    flat = x.reshape(-1)
    return flat.view(np.float64) if x.dtype.kind == "c" else flat


def _outputs(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, ...]:
    out = function(*args)
    return tuple(out) if isinstance(out, tuple | list) else (out,)


def _numeric(function: Callable[..., Any], args: tuple[Any, ...], i: int, o: int, eps: float) -> np.ndarray:
    """d output o / d input i by central differences, (inputs, outputs). Runs on copies, the arguments stay as they are."""
    base = np.array(to_host(args[i].array), order="C")
    columns = []
    size = _real_numbers(base).size
    for k in range(size):
        ends = []
        for step in (eps, -eps):
            moved = base.copy()
            _real_numbers(moved)[k] += step
            leaf = nodes.make_tensor(from_host(moved, args[i].device)).requires_grad_()
            y = _outputs(function, (*args[:i], leaf, *args[i + 1 :]))[o]
            ends.append(_real_numbers(np.array(to_host(y.array), order="C")))
        columns.append((ends[0] - ends[1]) / (2 * eps))
    return np.array(columns).reshape(size, -1)


def _analytic(y: Any, x: Any) -> np.ndarray:
    """d y / d x by one backward per output entry, (inputs, outputs)."""
    size = int(np.prod(y.array.shape)) * (2 if y.array.dtype.kind == "c" else 1)
    rows = []
    for k in range(size):
        seed = np.zeros(y.array.shape, y.array.dtype)
        _real_numbers(seed)[k] = 1
        (found,) = grad(y, x, nodes.make_tensor(from_host(seed, y.device)), retain_graph=True, allow_unused=True)
        given = np.zeros(x.array.shape, x.array.dtype) if found is None else to_host(found.array)
        rows.append(_real_numbers(np.array(given, order="C")))
    return np.array(rows).reshape(size, -1).T
