"""Drawing tensors. Every draw takes its place in a generator's stream, so the same seed gives the same numbers on every device."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tritensor import dtypes
from tritensor import random as generators
from tritensor.array import from_host, to_host
from tritensor.autograd.modes import no_grad
from tritensor.device import as_device, device
from tritensor.errors import DTypeError, ShapeError
from tritensor.random import Generator
from tritensor.table import ops
from tritensor.tensor.core import Tensor, new_tensor
from tritensor.tensor.creation import finished, like_options, numpy_type
from tritensor.tensor.inplace import overwrite
from tritensor.tensor.publish import function
from tritensor.tensor.shaping import sizes

for _name in ("manual_seed", "initial_seed", "seed", "get_rng_state", "set_rng_state"):
    function(getattr(generators, _name), method=False)


def _place(blocks: int, generator: Generator | None) -> tuple[int, int]:
    return (generators.default_generator if generator is None else generator).draw(blocks)


def _words(n: int, bits: int) -> int:
    """Philox blocks that hold n words: four of 32 bits, two of 64 (see kernels/philox.py)."""
    return -(-n * bits // 128)


def _uniform(shape: tuple[int, ...], dtype: np.dtype, on: device, generator: Generator | None) -> Tensor:
    seed, offset = _place(_words(math.prod(shape), 64 if dtype == np.float64 else 32), generator)
    return ops.rand(shape=shape, seed=seed, offset=offset, dtype=dtype, device=on)


def _normal(shape: tuple[int, ...], dtype: np.dtype, on: device, generator: Generator | None) -> Tensor:
    n = math.prod(shape)
    seed, offset = _place(_words(n + n % 2, 64 if dtype == np.float64 else 32), generator)
    return ops.randn(shape=shape, seed=seed, offset=offset, dtype=dtype, device=on)


def _integers(low: int, high: int, shape: tuple[int, ...], dtype: np.dtype, on: device, generator: Generator | None) -> Tensor:
    seed, offset = _place(_words(math.prod(shape), 64), generator)
    return ops.randint(low=low, high=high, shape=shape, seed=seed, offset=offset, dtype=dtype, device=on)


def _given(name: str, given: tuple[Any, ...], size: Any) -> tuple[int, ...]:
    """The shape of `rand(2, 3)`, `rand((2, 3))`, `rand(size=(2, 3))`."""
    return sizes(name, (size,)) if size is not None else sizes(name, given) if given else ()


@function(method=False)
def rand(
    *given: Any, size: Any = None, generator: Generator | None = None, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Uniform numbers of [0, 1) in a shape."""
    return finished(_uniform(_given("rand", given, size), numpy_type(dtype), as_device(device), generator), requires_grad)


@function(method=False)
def randn(
    *given: Any, size: Any = None, generator: Generator | None = None, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Standard normal numbers in a shape."""
    return finished(_normal(_given("randn", given, size), numpy_type(dtype), as_device(device), generator), requires_grad)


@function(method=False)
def randint(
    low: int,
    high: Any = None,
    size: Any = None,
    *,
    generator: Generator | None = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Uniform integers of [low, high): `randint(high, size)` or `randint(low, high, size)`."""
    if size is None:
        low, high, size = 0, low, high
    if size is None or high is None:
        raise TypeError("randint: give high and size, or low, high and size")
    kind = np.dtype(np.int64) if dtype is None else numpy_type(dtype)
    return finished(_integers(int(low), int(high), sizes("randint", (size,)), kind, as_device(device), generator), requires_grad)


@function(method=False)
def randperm(n: int, *, generator: Generator | None = None, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """0 to n - 1 in a random order."""
    seed, offset = _place(_words(max(int(n), 0), 64), generator)
    kind = np.dtype(np.int64) if dtype is None else numpy_type(dtype)
    return finished(ops.randperm(n=int(n), seed=seed, offset=offset, dtype=kind, device=as_device(device)), requires_grad)


@function(method=False)
def rand_like(
    x: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, generator: Generator | None = None
) -> Tensor:
    """rand in x's shape, dtype and device."""
    on, kind = like_options(x, dtype, device)
    return finished(_uniform(tuple(x.array.shape), kind, on, generator), requires_grad)


@function(method=False)
def randn_like(
    x: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, generator: Generator | None = None
) -> Tensor:
    """randn in x's shape, dtype and device."""
    on, kind = like_options(x, dtype, device)
    return finished(_normal(tuple(x.array.shape), kind, on, generator), requires_grad)


@function(method=False)
def randint_like(
    x: Tensor,
    low: int,
    high: int | None = None,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """randint in x's shape, dtype and device."""
    first, last = (0, low) if high is None else (low, high)
    on, kind = like_options(x, dtype, device)
    return finished(_integers(int(first), int(last), tuple(x.array.shape), kind, on, generator), requires_grad)


@function(method=False)
def normal(
    mean: Any, std: Any = 1.0, size: Any = None, *, generator: Generator | None = None, dtype: Any = None, device: Any = None
) -> Tensor:
    """Normal numbers; mean and std are numbers (with a size) or tensors that broadcast."""
    given = [v for v in (mean, std) if isinstance(v, Tensor)]
    if given:
        shape = np.broadcast_shapes(*(tuple(v.array.shape) for v in given))
        return mean + std * _normal(shape, given[0].array.dtype, given[0].device, generator)
    if size is None:
        raise TypeError("normal: give a size with a mean and std that are numbers")
    return mean + std * _normal(sizes("normal", (size,)), numpy_type(dtype), as_device(device), generator)


@function
def bernoulli(x: Tensor, *, generator: Generator | None = None) -> Tensor:
    """1 with probability x, else 0, for each element of x."""
    _need_float("bernoulli", x)
    u = _uniform(tuple(x.array.shape), x.array.dtype, x.device, generator)
    return ops.cast(ops.lt(u, x.detach()), dtype=x.array.dtype)


@function
def multinomial(x: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None) -> Tensor:
    """Indices drawn with probabilities proportional to the last dimension; without replacement each at most once. Waits for the device."""
    weights = to_host(x.array).astype(np.float64)
    rows = weights.reshape(-1, weights.shape[-1]) if weights.ndim else weights.reshape(1, 1)
    if not (np.isfinite(rows).all() and (rows >= 0).all() and (rows.sum(-1) > 0).all()):
        raise ValueError("multinomial: weights must be finite and not negative, with a positive sum")
    if not replacement and num_samples > (rows > 0).sum(-1).min():
        raise ValueError(
            f"multinomial: {num_samples} draws without replacement from {(rows > 0).sum(-1).min()} possible ones; use replacement=True"
        )
    cpu = as_device(None)
    if replacement:
        u = to_host(_uniform((len(rows), num_samples), np.dtype(np.float64), cpu, generator).array)
        edges = np.cumsum(rows, -1)
        last = rows.shape[1] - 1 - np.argmax(rows[:, ::-1] > 0, -1)  # rounding must not pick an index of weight 0 behind it
        drawn = [np.minimum(np.searchsorted(e, v * e[-1], side="right"), k) for e, v, k in zip(edges, u, last, strict=True)]
    else:  # the largest of log w + Gumbel noise
        u = to_host(_uniform(rows.shape, np.dtype(np.float64), cpu, generator).array)
        with np.errstate(divide="ignore"):
            noisy = np.log(rows) - np.log(-np.log1p(-u))
        drawn = list(np.argsort(-noisy, -1, kind="stable")[:, :num_samples])
    found = np.stack(drawn).astype(np.int64).reshape(*weights.shape[:-1], num_samples)
    return new_tensor(from_host(found, x.device))


# -- in place
def _need_float(name: str, x: Tensor) -> None:
    if dtypes.of(x.array.dtype).kind != "float":
        raise DTypeError(f"{name}: {x.dtype.name} cannot hold such numbers; use a floating type")


def _fill(x: Tensor, values: Tensor, name: str) -> Tensor:
    return overwrite(x, values, name)


@function
def uniform_(x: Tensor, a: float = 0.0, b: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Overwrite x with uniform numbers of [a, b)."""
    _need_float("uniform_", x)
    if not a <= b:
        raise ValueError(f"uniform_: a {a} is above b {b}")
    u = _uniform(tuple(x.array.shape), x.array.dtype, x.device, generator)
    with no_grad():
        values = u if (a, b) == (0.0, 1.0) else u * (b - a) + a
    return _fill(x, values, "uniform_")


@function
def normal_(x: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Overwrite x with normal numbers."""
    _need_float("normal_", x)
    if std < 0:
        raise ValueError(f"normal_: std {std} is negative")
    z = _normal(tuple(x.array.shape), x.array.dtype, x.device, generator)
    with no_grad():
        values = z if (mean, std) == (0.0, 1.0) else z * std + mean
    return _fill(x, values, "normal_")


@function
def exponential_(x: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Overwrite x with exponential numbers of rate lambd."""
    _need_float("exponential_", x)
    u = _uniform(tuple(x.array.shape), x.array.dtype, x.device, generator)
    with no_grad():
        values = ops.neg(ops.log(ops.sub(1.0, u))) / lambd
    return _fill(x, values, "exponential_")


@function
def bernoulli_(x: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Overwrite x with 1 of probability p (a number or a tensor), else 0."""
    u = _uniform(tuple(x.array.shape), np.dtype(np.float32), x.device, generator)
    with no_grad():
        values = ops.cast(ops.lt(u, p.detach() if isinstance(p, Tensor) else float(p)), dtype=x.array.dtype)
    return _fill(x, values, "bernoulli_")


@function
def random_(x: Tensor, start: int = 0, end: int | None = None, *, generator: Generator | None = None) -> Tensor:
    """Overwrite x with integers of [start, end); without end up to what x's type holds exactly."""
    kind = x.dtype
    if end is None:
        info = {"float16": 2**11, "bfloat16": 2**8, "float32": 2**24, "float64": 2**53, "bool": 1}
        start, end = (0, start) if start else (0, (info[kind.name] if kind.name in info else int(np.iinfo(x.array.dtype).max)) + 1)
    if end <= start:
        raise ShapeError(f"random_: start {start} is not below end {end}")
    return _fill(
        x,
        ops.cast(_integers(int(start), int(end), tuple(x.array.shape), np.dtype(np.int64), x.device, generator), dtype=x.array.dtype),
        "random_",
    )


@function(method=False)
def dropout(x: Tensor, p: float = 0.5, train: bool = True, *, generator: Generator | None = None) -> Tensor:
    """Zero each element with probability p and scale the others by 1 / (1 - p); x itself when not training or p is 0."""
    if not train or p == 0.0:
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"dropout: p is {p}; it must be between 0 and 1")
        return x
    seed, offset = _place(_words(x.array.size, 32), generator)
    return ops.dropout(x, p=float(p), seed=seed, offset=offset)
