"""Optimizer steps as ops: sgd_step and adam_step update a parameter and its state in place, each in one launch per parameter.

Every operation stands in PyTorch's order, so that trajectories agree. On the CPU a step of many elements is one pass of
machine code, any other runs in blocks that stay in the cache, on two temporaries that are kept; 16-bit parameters compute in float32 and round once.
"""

from __future__ import annotations

import functools
import math
import threading
from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor import dtypes
from tritensor.array import CudaArray
from tritensor.cuda.launch import launch
from tritensor.errors import ArgumentError, ShapeError
from tritensor.kernels.parts import maths
from tritensor.kernels.parts.copying import dense, write
from tritensor.native.functions import maximum, sqrt
from tritensor.native.loops import Loop
from tritensor.table import FLOATS, Sample, Spec, Work, op, refuse_kind, refuse_mixed

BLOCK = 1024
PART = 16384  # elements: p, g, three states and two temporaries of a float32 block fit the second-level cache
_kept = threading.local()


def _temporaries(dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Two scratch blocks of this thread."""
    name = dtype.char
    found = _kept.__dict__.get(name)
    if found is None:
        found = _kept.__dict__[name] = (np.empty(PART, dtype), np.empty(PART, dtype))
    return found


def _in_blocks(update: Any, arrays: tuple[np.ndarray | None, ...], written: tuple[bool, ...], *numbers: Any) -> None:
    """update(s, t, *blocks, *numbers) over flat blocks of the arrays, s and t scratch of a block's size.

    16-bit blocks and blocks of strided arrays are copied out (to float32), and those `written` copied back.
    """
    first = arrays[0]
    assert first is not None
    if first.dtype.itemsize > 2 and all(x is None or x.flags.c_contiguous for x in arrays):
        s, t = _temporaries(first.dtype)
        if first.size <= PART:
            flat = [None if x is None else x.reshape(-1) for x in arrays]
            update(s[: first.size], t[: first.size], *flat, *numbers)
            return
        flat = [None if x is None else x.reshape(-1) for x in arrays]
        for start in range(0, first.size, PART):
            part = slice(start, start + PART)
            blocks = [None if x is None else x[part] for x in flat]
            n = blocks[0].size  # type: ignore[union-attr]
            update(s[:n], t[:n], *blocks, *numbers)
        return
    compute_type = np.dtype(np.float32) if first.dtype.itemsize == 2 else first.dtype
    # order="C" and reshape make a copy of what is strided; results go back through the original window.
    copies = [None if x is None else np.array(x, compute_type, order="C") for x in arrays]
    _in_blocks(update, tuple(copies), written, *numbers)
    for x, y, back in zip(arrays, copies, written, strict=True):
        if back and x is not None:
            x[...] = y


# g' = -g if maximize, + weight_decay p; buf = momentum buf + (1 - dampening) g' (buf = g' at first);
# d = g' + momentum buf (nesterov), buf (momentum) or g'; p -= lr d
def _sgd(
    s: np.ndarray, t: np.ndarray, p: np.ndarray, g: np.ndarray, buf: np.ndarray | None,
    lr: float, momentum: float, dampening: float, weight_decay: float, nesterov: bool, first: bool, maximize: bool,
) -> None:  # fmt: skip
    if maximize:
        g = np.negative(g, out=s)
    if weight_decay:
        np.multiply(p, weight_decay, out=t)
        g = np.add(g, t, out=s)
    if buf is not None:
        if first:
            np.copyto(buf, g)
        else:
            np.multiply(buf, momentum, out=buf)
            np.add(buf, g if dampening == 0 else np.multiply(g, 1 - dampening, out=t), out=buf)
        if nesterov:
            np.multiply(buf, momentum, out=t)
            g = np.add(g, t, out=s)
        else:
            g = buf
    np.multiply(g, lr, out=t)
    np.subtract(p, t, out=p)


@functools.cache
def _machine_sgd(with_momentum: bool, damped: bool, decays: bool, nesterov: bool, first: bool, maximize: bool) -> Loop:
    """The same in one pass over memory; what is not asked for is left out."""

    def formula(p: Any, g: Any, *rest: Any) -> Any:
        lr, momentum, one_dampening, weight_decay = rest[-4:]
        g = -g if maximize else g
        g = g + p * weight_decay if decays else g
        if not with_momentum:
            return p - g * lr
        buf = g if first else rest[0] * momentum + (g * one_dampening if damped else g)
        return p - (g + buf * momentum if nesterov else buf) * lr, buf

    return Loop(formula)


def sgd_reference(
    p: np.ndarray, g: np.ndarray, buf: np.ndarray | None = None, rate: np.ndarray | None = None, *, lr: float = 0.0, momentum: float = 0.0,
    dampening: float = 0.0, weight_decay: float = 0.0, nesterov: bool = False, first: bool = False, maximize: bool = False,
) -> None:  # fmt: skip
    lr = lr if rate is None else rate.item()
    states = () if buf is None else (buf,)
    machine = _machine_sgd(buf is not None, dampening != 0, weight_decay != 0, nesterov, first, maximize)
    if machine((p, g, *states, lr, momentum, 1 - dampening, weight_decay), (p, *states)):
        return
    _in_blocks(_sgd, (p, g, buf), (True, False, True), lr, momentum, dampening, weight_decay, nesterov, first, maximize)


@triton.jit
def _sgd_kernel(
    p, g, buf, rate, n, lr, momentum, keep, weight_decay,
    MOMENTUM: tl.constexpr, NESTEROV: tl.constexpr, FIRST: tl.constexpr, MAXIMIZE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)  # (BLOCK,)
    mask = i < n
    compute_type = tl.float64 if p.dtype.element_ty == tl.float64 else tl.float32
    value = tl.load(p + i, mask=mask, other=0).to(compute_type)
    d = tl.load(g + i, mask=mask, other=0).to(compute_type)
    if MAXIMIZE:
        d = -d
    d += value * weight_decay.to(compute_type)
    if MOMENTUM:
        if FIRST:
            b = d
        else:
            b = tl.load(buf + i, mask=mask, other=0).to(compute_type) * momentum.to(compute_type) + d * keep.to(compute_type)
        tl.store(buf + i, b.to(buf.dtype.element_ty), mask=mask)
        d = d + b * momentum.to(compute_type) if NESTEROV else b
    if rate is not None:
        lr = tl.load(rate)
    value -= d * lr.to(compute_type)
    tl.store(p + i, value.to(p.dtype.element_ty), mask=mask)


def _dense(written: tuple[CudaArray | None, ...]) -> list[CudaArray | None]:
    """Windows to update: the arrays themselves, or C-ordered copies of strided ones."""
    return [None if x is None else dense(x) for x in written]


def _write_back(written: tuple[CudaArray | None, ...], updated: list[CudaArray | None]) -> None:
    for x, y in zip(written, updated, strict=True):
        if x is not None and y is not None and y is not x:
            write(x, y)


def sgd_forward(
    p: CudaArray, g: CudaArray, buf: CudaArray | None = None, rate: CudaArray | None = None, *, lr: float = 0.0, momentum: float = 0.0, dampening: float = 0.0,
    weight_decay: float = 0.0, nesterov: bool = False, first: bool = False, maximize: bool = False,
) -> None:  # fmt: skip
    updated = _dense((p, buf))
    number = np.float64
    launch(
        _sgd_kernel, (triton.cdiv(p.size, BLOCK),), updated[0], dense(g), updated[1] if buf is not None else updated[0], rate, p.size,
        number(lr), number(momentum), number(1 - dampening), number(weight_decay),
        MOMENTUM=buf is not None, NESTEROV=bool(nesterov), FIRST=bool(first), MAXIMIZE=bool(maximize), BLOCK=BLOCK,
    )  # fmt: skip
    _write_back((p, buf), updated)


def _check(name: str, p: Any, **others: Any) -> None:
    refuse_kind(name, p.dtype, ("float",), "the parameter")
    for label, x in others.items():
        if x is None:
            continue
        if tuple(x.shape) != tuple(p.shape):
            raise ShapeError(f"{name}: {label} {tuple(x.shape)} for a parameter of shape {tuple(p.shape)}; both must be the same")
    refuse_mixed(name, ("the parameter", p), *others.items())


def check_rate(name: str, rate: Any) -> None:
    """Refuse a learning rate on the device that is not one number."""
    if rate is not None and (math.prod(rate.shape) != 1 or not dtypes.is_float(rate.dtype)):
        raise ShapeError(f"{name}: rate is {rate.dtype} of shape {tuple(rate.shape)}; a learning rate is one floating number")


def sgd_shape(
    p: Any, g: Any, buf: Any = None, rate: Any = None, *, lr: float = 0.0, momentum: float = 0.0, dampening: float = 0.0, weight_decay: float = 0.0,
    nesterov: bool = False, first: bool = False, maximize: bool = False,
) -> Spec:  # fmt: skip
    _check("sgd_step", p, gradient=g, buf=buf)
    check_rate("sgd_step", rate)
    return Spec(tuple(p.shape), p.dtype)


def sgd_samples(rng: np.random.Generator) -> list[Sample]:
    def draw(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape)

    return [
        Sample(draw(3, 5), draw(3, 5), None, lr=0.1),
        Sample(draw(3, 5), draw(3, 5), None, lr=0.1, weight_decay=0.01, maximize=True),
        Sample(draw(3, 5), draw(3, 5), draw(3, 5), lr=0.1, momentum=0.9, weight_decay=0.01),
        Sample(draw(3, 5), draw(3, 5), draw(3, 5), lr=0.1, momentum=0.9, dampening=0.3, first=True),
        Sample(draw(1100), draw(1100), draw(1100), lr=0.1, momentum=0.9, dampening=0.3),
        Sample(draw(7), draw(7), draw(7), lr=0.1, momentum=0.9, weight_decay=0.1, nesterov=True),
        Sample(draw(), draw(), None, lr=0.1),
        Sample(draw(7), draw(7), None, np.array(0.25)),
        Sample(draw(0), draw(0), draw(0), lr=0.1, momentum=0.9),
    ]


def sgd_sizes(rng: np.random.Generator) -> list[Sample]:
    p = rng.standard_normal((4096, 4096))
    return [Sample(p, p, p, lr=0.1, momentum=0.9)]


def sgd_work(p: Any, g: Any, buf: Any = None, rate: Any = None, **_: Any) -> Work:
    n = int(np.prod(p.shape, dtype=np.int64))
    return Work(4 * n, n * p.dtype.itemsize * (3 if buf is None else 5))


op(
    "sgd_step", sgd_reference, shape=sgd_shape, forward=sgd_forward, samples=sgd_samples, sizes=sgd_sizes, work=sgd_work,
    mutates=("p", "buf"), differentiable=False, dtypes=FLOATS,
    doc="One step of stochastic gradient descent on p and its momentum buffer, in place. `rate`, on the device, stands for lr.",
)  # fmt: skip


# The numbers of a step that change from step to step are (rate, root, shrink), see below; `scalars` holds them where they are made on
# the device, by adam_count, because a recorded launch cannot be given new numbers.
# g' = -g if maximize; decoupled: p *= 1 - lr weight_decay, else g' += weight_decay p; m += (1 - b1) (g' - m);
# v = b2 v + (1 - b2) g'^2; vmax = max(vmax, v); p -= (lr / (1 - b1^t)) m / (sqrt(v or vmax) / sqrt(1 - b2^t) + eps)
def _adam(
    s: np.ndarray, t: np.ndarray, p: np.ndarray, g: np.ndarray, m: np.ndarray, v: np.ndarray, vmax: np.ndarray | None,
    rate: float, root: float, shrink: float, beta1: float, beta2: float, eps: float, weight_decay: float, maximize: bool,
) -> None:  # fmt: skip
    if maximize:
        g = np.negative(g, out=s)
    if shrink != 1:
        np.multiply(p, shrink, out=p)
    if weight_decay:
        np.multiply(p, weight_decay, out=t)
        g = np.add(g, t, out=s)
    np.subtract(g, m, out=t)
    np.multiply(t, 1 - beta1, out=t)
    np.add(m, t, out=m)
    np.multiply(v, beta2, out=v)
    np.multiply(g, g, out=t)
    np.multiply(t, 1 - beta2, out=t)
    np.add(v, t, out=v)
    np.sqrt(v if vmax is None else np.maximum(vmax, v, out=vmax), out=t)
    np.divide(t, root, out=t)
    np.add(t, eps, out=t)
    np.divide(m, t, out=t)
    np.multiply(t, rate, out=t)
    np.subtract(p, t, out=p)


@functools.cache
def _machine_adam(amsgrad: bool, decays: bool, maximize: bool) -> Loop:
    """The same in one pass over memory; what is not asked for is left out."""

    def formula(p: Any, g: Any, m: Any, v: Any, *rest: Any) -> tuple[Any, ...]:
        vmax, numbers = (rest[0], rest[1:]) if amsgrad else (None, rest)
        rate, root, shrink, one_beta1, beta2, one_beta2, eps, weight_decay = numbers
        g = -g if maximize else g
        p = p * shrink
        g = g + p * weight_decay if decays else g
        m = m + (g - m) * one_beta1
        v = v * beta2 + (g * g) * one_beta2
        vmax = None if vmax is None else maximum(vmax, v)
        p = p - m / (sqrt(v if vmax is None else vmax) / root + eps) * rate
        return (p, m, v) if vmax is None else (p, m, v, vmax)

    return Loop(formula)


def step_numbers(lr: float, beta1: float, beta2: float, step: float, weight_decay: float, decoupled: bool) -> tuple[float, float, float]:
    """(rate, root, shrink): lr / (1 - beta1^t), sqrt(1 - beta2^t), and what p is multiplied by first."""
    return lr / (1 - beta1**step), math.sqrt(1 - beta2**step), 1 - lr * weight_decay if decoupled else 1.0


def adam_reference(
    p: np.ndarray, g: np.ndarray, m: np.ndarray, v: np.ndarray, vmax: np.ndarray | None = None, scalars: np.ndarray | None = None, *,
    beta1: float, beta2: float, eps: float, lr: float = 0.0, step: int = 0, weight_decay: float = 0.0, decoupled: bool = False,
    amsgrad: bool = False, maximize: bool = False,
) -> None:  # fmt: skip
    if scalars is None:
        rate, root, shrink = step_numbers(lr, beta1, beta2, step, weight_decay, decoupled)
    else:
        rate, root, shrink = scalars.tolist()
    decay = 0 if decoupled else weight_decay
    states = (m, v) if vmax is None else (m, v, vmax)
    machine = _machine_adam(vmax is not None, decay != 0, maximize)
    if machine((p, g, *states, rate, root, shrink, 1 - beta1, beta2, 1 - beta2, eps, decay), (p, *states)):
        return
    _in_blocks(_adam, (p, g, m, v, vmax), (True, False, True, True, True), rate, root, shrink, beta1, beta2, eps, decay, maximize)


@triton.jit
def _adam_kernel(
    p, g, m, v, vmax, scalars, n, rate, root, shrink, weight_decay, one_beta1, beta2, one_beta2, eps,
    AMSGRAD: tl.constexpr, MAXIMIZE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)  # (BLOCK,)
    mask = i < n
    compute_type = tl.float64 if p.dtype.element_ty == tl.float64 else tl.float32
    value = tl.load(p + i, mask=mask, other=0).to(compute_type)
    d = tl.load(g + i, mask=mask, other=0).to(compute_type)
    first = tl.load(m + i, mask=mask, other=0).to(compute_type)
    second = tl.load(v + i, mask=mask, other=0).to(compute_type)
    if MAXIMIZE:
        d = -d
    if scalars is not None:
        rate = tl.load(scalars)
        root = tl.load(scalars + 1)
        shrink = tl.load(scalars + 2)
    d += value * weight_decay.to(compute_type)
    value *= shrink.to(compute_type)
    first += (d - first) * one_beta1.to(compute_type)
    second = second * beta2.to(compute_type) + d * d * one_beta2.to(compute_type)
    tl.store(m + i, first.to(m.dtype.element_ty), mask=mask)
    tl.store(v + i, second.to(v.dtype.element_ty), mask=mask)
    if AMSGRAD:
        second = tl.maximum(tl.load(vmax + i, mask=mask, other=0).to(compute_type), second)
        tl.store(vmax + i, second.to(vmax.dtype.element_ty), mask=mask)
    size = maths.div(maths.sqrt(second), root) + eps.to(compute_type)
    value -= maths.div(first, size) * rate.to(compute_type)
    tl.store(p + i, value.to(p.dtype.element_ty), mask=mask)


def adam_forward(
    p: CudaArray, g: CudaArray, m: CudaArray, v: CudaArray, vmax: CudaArray | None = None, scalars: CudaArray | None = None, *,
    beta1: float, beta2: float, eps: float, lr: float = 0.0, step: int = 0, weight_decay: float = 0.0, decoupled: bool = False,
    amsgrad: bool = False, maximize: bool = False,
) -> None:  # fmt: skip
    written = (p, m, v, vmax)
    updated = _dense(written)
    number = np.float64
    numbers = step_numbers(lr, beta1, beta2, step, weight_decay, decoupled) if scalars is None else (0.0, 0.0, 0.0)
    launch(
        _adam_kernel, (triton.cdiv(p.size, BLOCK),), updated[0], dense(g), updated[1], updated[2], updated[3] if vmax is not None else updated[2],
        None if scalars is None else dense(scalars), p.size, *map(number, numbers), number(0 if decoupled else weight_decay),
        number(1 - beta1), number(beta2), number(1 - beta2), number(eps),
        AMSGRAD=vmax is not None, MAXIMIZE=bool(maximize), BLOCK=BLOCK,
    )  # fmt: skip
    _write_back(written, updated)


def adam_shape(
    p: Any, g: Any, m: Any, v: Any, vmax: Any = None, scalars: Any = None, *, beta1: float, beta2: float, eps: float, lr: float = 0.0, step: int = 0,
    weight_decay: float = 0.0, decoupled: bool = False, amsgrad: bool = False, maximize: bool = False,
) -> Spec:  # fmt: skip
    _check("adam_step", p, gradient=g, m=m, v=v, vmax=vmax)
    if scalars is None:
        if step < 1:
            raise ArgumentError(f"adam_step: step is {step}; the first step is number 1")
    elif tuple(scalars.shape) != (3,) or not dtypes.is_float(scalars.dtype):
        raise ShapeError(f"adam_step: scalars is {scalars.dtype} of shape {tuple(scalars.shape)}; adam_count makes three floating numbers")
    if amsgrad and vmax is None:
        raise ArgumentError("adam_step: amsgrad needs vmax, the largest v so far")
    return Spec(tuple(p.shape), p.dtype)


def adam_samples(rng: np.random.Generator) -> list[Sample]:
    def draw(*shape: int) -> list[np.ndarray]:
        return [rng.standard_normal(shape), rng.standard_normal(shape), rng.standard_normal(shape), np.asarray(rng.random(shape) + 0.1)]

    usual: dict[str, Any] = {"lr": 0.01, "beta1": 0.9, "beta2": 0.99, "eps": 1e-8}
    return [
        Sample(*draw(3, 5), None, step=1, **usual),
        Sample(*draw(3, 5), None, step=3, weight_decay=0.1, maximize=True, **usual),
        Sample(*draw(3, 5), None, step=3, weight_decay=0.1, decoupled=True, **usual),
        Sample(*draw(1100), rng.random(1100) + 0.1, step=7, amsgrad=True, **usual),
        Sample(*draw(), None, step=2, **usual),
        Sample(*draw(7), None, np.array([0.02, 0.5, 0.75]), beta1=0.9, beta2=0.99, eps=1e-8),
        Sample(*draw(0), None, step=2, **usual),
    ]


def adam_sizes(rng: np.random.Generator) -> list[Sample]:
    p = rng.standard_normal((4096, 4096))
    return [Sample(p, p, p, p, None, lr=0.01, beta1=0.9, beta2=0.99, eps=1e-8, step=7, weight_decay=0.01, decoupled=True)]


def adam_work(p: Any, g: Any, m: Any, v: Any, vmax: Any = None, scalars: Any = None, **_: Any) -> Work:
    n = int(np.prod(p.shape, dtype=np.int64))
    return Work(14 * n, n * p.dtype.itemsize * (7 if vmax is None else 9))


op(
    "adam_step", adam_reference, shape=adam_shape, forward=adam_forward, samples=adam_samples, sizes=adam_sizes, work=adam_work,
    mutates=("p", "m", "v", "vmax"), differentiable=False, dtypes=FLOATS,
    doc="One step of Adam (AdamW where decoupled, AMSGrad with vmax) on p and its moments, in place; `step` counts from 1, or `scalars` from adam_count.",
)  # fmt: skip
