"""gradcheck and gradgradcheck: gradients held against central differences."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tritensor.autograd import node as nodes
from tritensor.autograd.engine import grad
from tritensor.autograd.modes import no_grad
from tritensor.ground.errors import GradcheckError as GradcheckError
from tritensor.ground.providers import provider
from tritensor.ground.strides import repeats
from tritensor.ops.array import element_strides, from_host, to_host
from tritensor.ops.lazy_array import compute_now, run_before_write
from tritensor.ops.table import registry

_DOUBLE = (np.dtype(np.float64), np.dtype(np.complex128))


def gradcheck(
    func: Callable[..., Any], inputs: Any, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3, raise_exception: bool = True,
    nondet_tol: float = 0.0, check_undefined_grad: bool = True, check_grad_dtypes: bool = False, check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False, check_forward_ad: bool = False, check_backward_ad: bool = True, fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:  # fmt: skip
    """Compare the Jacobian of `func(*inputs)` from backward with central differences, entry by entry.

    Args:
        func: tensors to a tensor or a tuple of them. Outputs of fewer bits than float64 are left out where the inputs have them.
        inputs: a tensor or a tuple; those that require grad are checked, and should be float64 or complex128. Complex numbers count as
            two real ones each, the real part first. They are moved in place by eps and put back, so that func may reach them by itself.
        eps: step of the differences. atol, rtol: |analytic - numeric| <= atol + rtol * |numeric|.
        raise_exception: raise GradcheckError naming the entry, instead of returning False.
        nondet_tol: how far two runs of backward may differ.
        check_undefined_grad: accepted: each output is differentiated by itself always, the others' gradients undefined.
        check_grad_dtypes: gradients must have their inputs' types.
        check_batched_grad: autograd.grad with is_grads_batched must give what it gives row by row.
        check_forward_ad, check_batched_forward_grad: forward mode must give the Jacobian, too.
        check_backward_ad: False leaves backward out.
        fast_mode: compare one random combination of rows and columns in place of the whole Jacobian.
        masked: accepted; there are no sparse tensors.
    """
    try:
        check = _Check(func, inputs, eps, atol, rtol, fast_mode)
        if check_backward_ad:
            check.backward(nondet_tol, check_grad_dtypes)
        if check_batched_grad:
            check.batched()
        if check_forward_ad or check_batched_forward_grad:
            check.forward()
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any], inputs: Any, grad_outputs: Any = None, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False, raise_exception: bool = True, nondet_tol: float = 0.0, check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False, check_batched_grad: bool = False, check_fwd_over_rev: bool = False, check_rev_over_rev: bool = True,
    fast_mode: bool = False, masked: bool = False,
) -> bool:  # fmt: skip
    """gradcheck of the gradient of `func`: second derivatives against differences of the first. Options as gradcheck's.

    `grad_outputs` are what the gradient starts from, one tensor for each output; random numbers where they are not given. They are checked
    as inputs of the gradient as well. `check_fwd_over_rev`: forward mode of backward.
    """
    args = _inputs(inputs)
    if not any(_asks(a) for a in args):
        raise ValueError("gradgradcheck: it expects at least one input tensor to require gradient; call requires_grad_() on those to check")
    with no_grad():
        outputs = [y for y in _outputs(func, args) if y._array.dtype.kind in "fcV"]
    if grad_outputs is not None:
        weights = [grad_outputs] if hasattr(grad_outputs, "_array") else list(grad_outputs)
    else:
        rng = np.random.default_rng(0)  # a fixed seed: a check that fails fails again
        weights = [_start(rng, y, gen_non_contig_grad_outputs) for y in outputs]
    n = len(args)

    def first(*given: Any) -> tuple[Any, ...]:
        xs, vs = given[:n], given[n:]
        pairs = [(y, v) for y, v in zip([y for y in _outputs(func, xs) if y._array.dtype.kind in "fcV"], vs, strict=True) if y._tracked]
        if not pairs:
            return ()
        wanted = [x for x in xs if _asks(x)]
        return grad([y for y, _ in pairs], wanted, [v for _, v in pairs], create_graph=True, allow_unused=True, materialize_grads=True)

    return gradcheck(
        first, (*args, *weights), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception, nondet_tol=nondet_tol,
        check_grad_dtypes=check_grad_dtypes, check_batched_grad=check_batched_grad, check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev, fast_mode=fast_mode,
    )  # fmt: skip


def _inputs(given: Any) -> tuple[Any, ...]:
    return tuple(given) if isinstance(given, Sequence) and not hasattr(given, "_array") else (given,)


def _asks(x: Any) -> bool:
    return bool(getattr(x, "_tracked", False))


def _start(rng: np.random.Generator, y: Any, gaps: bool) -> Any:
    """Random numbers for the gradient of an output to start from, every other one of a row where gaps are wanted."""
    shape = y._array.shape
    x = rng.standard_normal((*shape, 2)[: len(shape) + gaps])
    x = x + 1j * rng.standard_normal(x.shape) if y._array.dtype.kind == "c" else x
    made = nodes.make_tensor(from_host(np.asarray(x).astype(y._array.dtype), y.device))
    return (made[..., 0].detach() if gaps else made).requires_grad_()


class _Check:
    """A function and its inputs, checked to be fit for differences."""

    def __init__(self, func: Callable[..., Any], inputs: Any, eps: float, atol: float, rtol: float, fast: bool) -> None:
        self.func, self.args, self.eps, self.atol, self.rtol, self.fast = func, _inputs(inputs), eps, atol, rtol, fast
        self.checked = [i for i, a in enumerate(self.args) if _asks(a)]
        if not self.checked:
            raise ValueError("gradcheck: it expects at least one input tensor to require gradient; call requires_grad_() on those to check")
        for i in self.checked:
            x = self.args[i]._array
            if x.dtype not in _DOUBLE:
                warnings.warn(
                    f"Input #{i} requires gradient and is not a double precision floating point or complex. This check will likely fail if all "
                    f"the inputs are not of double precision floating point or complex. Convert it with .double()",
                    stacklevel=4,
                )
            if x.size and repeats(x.shape, element_strides(x)):
                raise GradcheckError(f"gradcheck: input {i} has a dimension of stride 0, whose elements are one; give a .clone() of it")
        self.outputs = _outputs(func, self.args)
        self.rng = np.random.default_rng(0)  # the same numbers in each run, so that a failure can be looked at
        doubles = all(self.args[i]._array.dtype in _DOUBLE for i in self.checked)
        kinds = [y._array.dtype for y in self.outputs]
        # A step of eps is lost in others.
        places = [o for o, t in enumerate(kinds) if t.kind in "fcV" and (t in _DOUBLE or not doubles)]
        # An output without a gradient beside others is none of the function's differentiable ones (an index, a threshold); alone it must be constant.
        self.places = [o for o in places if self.outputs[o]._tracked] or places

    def backward(self, nondet_tol: float, types: bool) -> None:
        """Backward against differences."""
        for o, i in itertools.product(self.places, self.checked):
            y, x = self.outputs[o], self.args[i]
            if self.fast:
                self._compare_fast(o, i, nondet_tol)
                continue
            numeric = self._numeric(i, o)
            analytic = self._analytic(y, x, types) if y._tracked else np.zeros_like(numeric)
            self._compare(analytic, numeric, o, i, "backward")
            # A second run: backward must give the same again.
            if y._tracked and not np.allclose(analytic, self._analytic(y, x, False), rtol=0, atol=nondet_tol, equal_nan=True):
                raise self._unsteady(nondet_tol)

    def batched(self) -> None:
        """autograd.grad of a batch of gradients against the rows one by one."""
        for o in self.places:
            y = self.outputs[o]
            if not y._tracked:
                continue
            starts = nodes.make_tensor(
                from_host(np.stack([_normal(self.rng, y._array) for _ in range(2)]).astype(y._array.dtype), y.device)
            )
            xs = [self.args[i] for i in self.checked]
            many = grad(y, xs, starts, retain_graph=True, allow_unused=True, is_grads_batched=True)
            for k in range(2):
                one = grad(y, xs, starts[k], retain_graph=True, allow_unused=True)
                for a, b in zip(many, one, strict=True):
                    if (a is None) != (b is None) or (a is not None and not np.allclose(to_host(a[k]._array), to_host(b._array))):
                        raise GradcheckError("gradcheck: is_grads_batched gave another gradient than the row by itself")

    def forward(self) -> None:
        """Forward mode against differences."""
        for i in self.checked:
            for o in self.places:
                numeric = self._numeric(i, o)
                self._compare(self._forward(i, o), numeric, o, i, "forward mode")

    def _forward(self, i: int, o: int) -> np.ndarray:
        """d output o / d input i by forward mode, one tangent for each element of the input, (inputs, outputs)."""
        forward_ad: Any = provider("func.forward_ad")  # which knows the Tensor
        x = self.args[i]
        rows = []
        for k in range(_real_size(x._array)):
            e = np.zeros(x._array.shape, x._array.dtype)
            _real_numbers(e)[k] = 1
            with forward_ad.dual_level():
                dual = forward_ad.make_dual(x.detach(), nodes.make_tensor(from_host(e, x.device)))
                y = _outputs(self.func, (*self.args[:i], dual, *self.args[i + 1 :]))[o]
                tangent = forward_ad.unpack_dual(y).tangent
            given = np.zeros(y._array.shape, y._array.dtype) if tangent is None else to_host(tangent._array)
            rows.append(_real_numbers(np.array(given, order="C")).astype(np.float64))
        return np.array(rows).reshape(len(rows), -1)

    def _compare(self, analytic: np.ndarray, numeric: np.ndarray, o: int, i: int, by: str) -> None:
        wrong = ~(np.abs(analytic - numeric) <= self.atol + self.rtol * np.abs(numeric))
        if wrong.any():
            r, c = np.argwhere(wrong)[0]
            x = self.args[i]
            few = f"; input {i} is {x.dtype.name}, in which a step of {self.eps:g} is lost: convert it with .double()"
            raise GradcheckError(
                f"gradcheck: Jacobian mismatch for output {o} with respect to input {i}: d output {o}[{c}] / d input {i}[{r}] is "
                f"{analytic[r, c]:.6g} by {by} and {numeric[r, c]:.6g} by differences" + (few if x._array.dtype not in _DOUBLE else "")
            )

    def _compare_fast(self, o: int, i: int, nondet_tol: float) -> None:
        """u^T J v of unit vectors, by backward and by differences."""
        y, x = self.outputs[o], self.args[i]
        u = self.rng.standard_normal(_real_size(x._array))
        v = self.rng.standard_normal(_real_size(y._array))
        u /= max(float(np.linalg.norm(u)), 1e-300)  # of no elements the length is 0
        v /= max(float(np.linalg.norm(v)), 1e-300)
        with _moved(x, u * self.eps) as move:
            ends = [self._value(o, move, sign) for sign in (1, -1)]
        numeric = float((ends[0] - ends[1]) @ v / (2 * self.eps))
        analytic = [float(self._row(y, x, v, False) @ u) if y._tracked else 0.0 for _ in range(2)]
        size = float(np.sqrt(u.size * v.size))  # a whole Jacobian of errors of 1 makes no more of a difference than this
        if not abs(analytic[0] - numeric) <= self.atol * size + self.rtol * abs(numeric):
            self.fast = False
            self.backward(nondet_tol, False)  # which names the entry
            raise GradcheckError(
                f"gradcheck: Jacobian mismatch for output {o} with respect to input {i}: u^T J v is {analytic[0]:.6g} by backward and {numeric:.6g} "
                "by differences, while each entry by itself passes; raise atol, or leave fast_mode out"
            )
        if abs(analytic[0] - analytic[1]) > nondet_tol:
            raise self._unsteady(nondet_tol)

    def _unsteady(self, tol: float) -> GradcheckError:
        return GradcheckError(
            "gradcheck: Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives different values, "
            f"although analytical gradient matches numerical gradient. The tolerance for nondeterminism was {tol}; nondet_tol sets it"
        )

    def _value(self, o: int, move: Callable[[int], None], sign: int) -> np.ndarray:
        move(sign)
        y = _outputs(self.func, self.args)[o]
        return _real_numbers(np.array(to_host(y._array), order="C")).astype(np.float64)

    def _numeric(self, i: int, o: int) -> np.ndarray:
        """d output o / d input i by central differences, (inputs, outputs)."""
        x = self.args[i]
        size = _real_size(x._array)
        columns = []
        for k in range(size):
            step = np.zeros(size)
            step[k] = self.eps
            with _moved(x, step) as move:
                columns.append((self._value(o, move, 1) - self._value(o, move, -1)) / (2 * self.eps))
        return np.array(columns).reshape(size, _real_size(_outputs(self.func, self.args)[o]._array) if not size else -1)

    def _analytic(self, y: Any, x: Any, types: bool) -> np.ndarray:
        """d y / d x by one backward per output entry, (inputs, outputs)."""
        size = _real_size(y._array)
        rows = [self._row(y, x, np.eye(1, size, k)[0], types) for k in range(size)]
        return np.array(rows).reshape(size, _real_size(x._array)).T

    def _row(self, y: Any, x: Any, v: np.ndarray, types: bool) -> np.ndarray:
        """v^T J of one output."""
        seed = np.zeros(y._array.shape, y._array.dtype)
        _real_numbers(seed)[:] = v
        (found,) = grad(y, x, nodes.make_tensor(from_host(seed, y.device)), retain_graph=True, allow_unused=True)
        if types and found is not None and found._array.dtype != x._array.dtype:
            raise GradcheckError(f"gradcheck: the gradient is {found.dtype.name}, its input {x.dtype.name}")
        given = np.zeros(x._array.shape, x._array.dtype) if found is None else to_host(found._array)
        return _real_numbers(np.array(given, order="C")).astype(np.float64)


@contextmanager
def _moved(x: Any, step: np.ndarray) -> Iterator[Callable[[int], None]]:
    """`move(sign)` puts x at its values plus sign times the step, in its own memory; afterwards it is as it was."""
    compute_now(x)
    array = x._array
    base = np.array(to_host(array), order="C")

    def write(values: np.ndarray) -> None:
        run_before_write(array)
        if isinstance(array, np.ndarray):
            np.copyto(array, values)
        else:
            registry["copy"].forward(from_host(values, x.device), out=array)  # type: ignore[misc]

    def move(sign: int) -> None:
        moved = base.copy()
        _real_numbers(moved)[:] += (sign * step).astype(_real_numbers(moved).dtype)
        write(moved)

    try:
        yield move
    finally:
        write(base)


def _normal(rng: np.random.Generator, like: Any) -> np.ndarray:
    x = rng.standard_normal(like.shape)
    return np.asarray(x + 1j * rng.standard_normal(like.shape) if like.dtype.kind == "c" else x)


def _real_numbers(x: np.ndarray) -> np.ndarray:
    """The elements in a row, complex ones as two each; in C order, of the memory of x where that has it."""
    flat = x.reshape(-1)
    return flat.view(flat.real.dtype) if x.dtype.kind == "c" else flat


def _real_size(x: Any) -> int:
    return int(x.size) * (2 if x.dtype.kind == "c" else 1)


def _outputs(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, ...]:
    out = function(*args)
    return tuple(out) if isinstance(out, tuple | list) else (out,)
