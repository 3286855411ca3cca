"""Drawing tensors. Every draw takes its place in a generator's stream, so the same seed gives the same numbers on every device."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from tritensor import random as generators
from tritensor.autograd.engine import is_followed
from tritensor.autograd.function import Function
from tritensor.autograd.modes import no_grad
from tritensor.ground import dtypes
from tritensor.ground.device import as_device, cpu, device, meta
from tritensor.ground.errors import ArgumentError, DeviceError, DTypeError
from tritensor.ground.thread_state import here
from tritensor.ground.transforms import running, transform
from tritensor.ops.array import all_values, empty, to_host
from tritensor.ops.table import broadcast, ops
from tritensor.random import Generator
from tritensor.tensor.aliasing.inplace import overwrite
from tritensor.tensor.casting import to_dtype
from tritensor.tensor.core import Tensor, new_tensor
from tritensor.tensor.functions.creation.constructors import make_in_layout, numpy_type, options_like
from tritensor.tensor.functions.shaping.reshaping import parse_sizes, to_c_order
from tritensor.tensor.public_api.publish import function

for _name in ("manual_seed", "initial_seed", "seed", "get_rng_state", "set_rng_state"):
    function(getattr(generators, _name), method=False)


def next_position(blocks: int, generator: Generator | None, on: device | None = None) -> tuple[int, int]:
    """(seed, offset) of the next so many blocks of a generator, the default one unless one is given. For device meta nothing is drawn."""
    if generator is None:
        generator = generators.default_generator
    if on is not meta:
        return generator.draw(blocks)
    if here.noting is not None:
        here.noting.note_draw(blocks if generator is generators.default_generator else None, (0, 0))
    return 0, 0


def _draw_complex(draw: Any, shape: tuple[int, ...], dtype: np.dtype, on: device, generator: Generator | None) -> np.ndarray:
    """Complex numbers whose parts are drawn one after the other."""
    if on.type == "cuda":
        raise DeviceError(f"rand: {dtypes.of(dtype).name} lives on the CPU only; draw it there, or its parts")
    if on.type == "meta":
        return empty(shape, dtype, on)  # type: ignore[no-any-return]
    parts: np.ndarray = draw((*shape, 2), dtypes.of(dtype).to_real().numpy, on, generator)._array
    return parts.view(dtype).reshape(shape)


def draw_uniform(shape: tuple[int, ...], dtype: np.dtype, on: device, generator: Generator | None) -> Tensor:
    """Numbers of [0, 1) from a generator's stream; of a complex type both parts."""
    if dtype.kind == "c":
        return new_tensor(_draw_complex(draw_uniform, shape, dtype, on, generator))
    seed, offset = next_position(generators.blocks_used(math.prod(shape), 64 if dtype == np.float64 else 32), generator, on)
    return ops.rand(shape=shape, seed=seed, offset=offset, dtype=dtype, device=on)


def draw_on_host(draw: Callable[..., Tensor], shape: tuple[int, ...], generator: Generator | None) -> np.ndarray:
    """float64 numbers of draw_uniform or draw_normal on the host, whatever device they are for: so all devices get the same."""
    if draw is draw_uniform and generator is None and not running.levels:
        return rand(shape, dtype=dtypes.float64, device=cpu)._array  # type: ignore[no-any-return]  # which has plans
    return to_host(draw(shape, np.dtype(np.float64), cpu, generator)._array)


def compute_type(dtype: np.dtype) -> np.dtype:
    """The type that draws of a floating type are computed in, to be rounded once: of 16 bits float32."""
    return np.dtype(np.float32) if dtypes.of(dtype).itemsize == 2 else dtype


def smallest_positive(dtype: np.dtype) -> float:
    """What stands for numbers that a floating type would round to 0, where 0 has no probability: its least positive number, or normal number
    where processors may take smaller ones for 0."""
    return 2.0**-24 if dtype == np.float16 else float(ml_dtypes.finfo(dtype).tiny)


def to_positive_dtype(values: Tensor, dtype: np.dtype) -> Tensor:
    """Positive numbers in a type, in which none of them is 0."""
    return to_dtype(ops.clamp(values, smallest_positive(dtype), None), dtype)


def draw_uniform_between(a: float, b: float, shape: tuple[int, ...], dtype: np.dtype, on: device, generator: Generator | None) -> Tensor:
    """Numbers of [a, b), none of them rounded up to b; of a complex type both parts."""
    if dtype.kind == "c":
        return new_tensor(_draw_complex(functools.partial(draw_uniform_between, a, b), shape, dtype, on, generator))
    # The numbers are of [0, 1) already: scaling would round some of them.
    if (a, b) == (0.0, 1.0):
        return draw_uniform(shape, dtype, on, generator)
    with no_grad():
        u = draw_uniform(shape, compute_type(dtype), on, generator)
        values = to_dtype(ops.add(ops.mul(u, float(b) - float(a)), float(a)), dtype)
        # a + u (b - a) may round up to b, which the range does not hold.
        return ops.clamp(values, None, _largest_below(b, dtype)) if a < b else values


def _largest_below(b: float, dtype: np.dtype) -> float:
    """The largest number of a type that is less than b."""
    nearest = dtype.type(b)
    return float(nearest if float(nearest) < b else np.nextafter(nearest, dtype.type(-np.inf)))


def _draw_standard_normal(shape: tuple[int, ...], dtype: np.dtype, on: device, generator: Generator | None) -> Tensor:
    if dtype.kind == "c":  # of variance 1 together
        parts = _draw_complex(_draw_standard_normal, shape, dtype, on, generator)
        if on.type == "meta":
            return new_tensor(parts)
        parts *= dtypes.of(dtype).to_real().numpy.type(math.sqrt(0.5))  # in place: numpy makes a scalar of what has no dimensions
        return new_tensor(parts)
    seed, offset = next_position(generators.blocks_used(math.prod(shape), 64 if dtype == np.float64 else 32), generator, on)
    return ops.randn(shape=shape, seed=seed, offset=offset, dtype=dtype, device=on)


def draw_normal(
    shape: tuple[int, ...], dtype: np.dtype, on: device, generator: Generator | None, mean: float = 0.0, std: float = 1.0
) -> Tensor:
    """Normal numbers of a mean and a standard deviation."""
    if (mean, std) == (0.0, 1.0):
        return _draw_standard_normal(shape, dtype, on, generator)
    with no_grad():
        z = _draw_standard_normal(shape, dtype if dtype.kind == "c" else compute_type(dtype), on, generator)
        return to_dtype(z * std + mean, dtype)


def draw_exponential(shape: tuple[int, ...], dtype: np.dtype, on: device, generator: Generator | None = None, rate: float = 1.0) -> Tensor:
    """Exponential numbers of a rate, above 0: -log(1 - u) / rate, where u is 0 the mean of what is less than for the next u."""
    kind = compute_type(dtype)
    u = draw_uniform(shape, kind, on, generator)
    with no_grad():
        first = (2.0**-54 if kind == np.float64 else 2.0**-25) / rate
        # An infinite rate makes all numbers 0, which is right there alone.
        least = 0.0 if math.isinf(rate) else max(first, smallest_positive(dtype))
        return to_dtype(ops.clamp(ops.div(ops.log(ops.sub(1.0, u)), -float(rate)), least, None), dtype)


class Drawn(Function):
    """What was drawn for parameters, as their function, whose gradient is 0."""

    generate_vmap_rule = True

    @staticmethod
    def forward(drawn: Tensor, *parameters: Tensor) -> Tensor:  # type: ignore[override]
        return new_tensor(drawn._array)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.like = [(tuple(p._array.shape), p._array.dtype) for p in inputs[1:]]

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:  # type: ignore[override]
        return None, *[ops.full(shape=s, value=0, dtype=d, device=g.device) for s, d in ctx.like]


# -- what a draw takes
def require_float(name: str, dtype: np.dtype) -> None:
    if dtypes.of(dtype).kind != "float":
        raise DTypeError(f"{name}: {dtypes.of(dtype).name} cannot hold such numbers; use a floating type")


def _require_inexact(name: str, dtype: np.dtype) -> None:
    if dtypes.of(dtype).kind not in ("float", "complex"):
        raise DTypeError(f"{name}: {dtypes.of(dtype).name} cannot hold such numbers; use a floating type")


def _require_probability(name: str, p: Any) -> None:
    """Refuse what is no probability. Values on a GPU are not looked at: that would wait for them."""
    if isinstance(p, Tensor):
        require_float(name, p._array.dtype)
        # Looking at values of a GPU would wait for all that is queued.
        if not p.is_cpu:
            return
        values = all_values(p._array)
        if not ((values >= 0) & (values <= 1)).all():
            raise ArgumentError(f"{name}: a probability is not between 0 and 1: they go from {values.min()} to {values.max()}")
    elif not 0 <= p <= 1:
        raise ArgumentError(f"{name}: p is {p}; it must be between 0 and 1")


def _require_deviation(name: str, std: Any) -> None:
    """Refuse a standard deviation below 0, or nan. Values on a GPU are not looked at."""
    if isinstance(std, Tensor):
        if std.is_cpu and not ((values := all_values(std._array)) >= 0).all():
            raise ArgumentError(f"{name}: all elements of std must be 0 or more; the least is {values.min()}")
    elif not std >= 0:
        raise ArgumentError(f"{name}: std is {std}; it must be 0 or more")


def to_integers(name: str, *numbers: Any) -> list[int]:
    try:
        return [operator.index(n) for n in numbers]
    except TypeError:
        raise TypeError(f"{name}: {', '.join(map(repr, numbers))}: bounds and counts are integers") from None


def _require_range(name: str, low: int, high: int, dtype: np.dtype) -> None:
    """Refuse bounds in the wrong order, and integers of [low, high) that dtype cannot hold."""
    if low >= high:
        raise ArgumentError(f"{name}: low {low} is not below high {high}; give a range that is not empty")
    kind = dtypes.of(dtype)
    if kind.kind not in ("bool", "int", "uint", "float"):
        raise DTypeError(f"{name}: {kind.name} is not drawn; use an integer or floating type")
    if kind.kind == "float":
        limits = -float(ml_dtypes.finfo(dtype).max), float(ml_dtypes.finfo(dtype).max)
    else:
        limits = (0, 1) if kind.kind == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    # Words are int64: beyond, uint64's own range cannot be drawn.
    if low < limits[0] or high - 1 > min(limits[1], 2**63 - 1):
        raise ArgumentError(f"{name}: {low} to {high - 1} does not fit {kind.name}; choose a wider dtype")


def _draw_integers(low: int, high: int, shape: tuple[int, ...], dtype: np.dtype, on: device, generator: Generator | None) -> Tensor:
    seed, offset = next_position(generators.blocks_used(math.prod(shape), generators.integer_bits(high - low)), generator, on)
    return ops.randint(low=low, high=high, shape=shape, seed=seed, offset=offset, dtype=dtype, device=on)


def _parse_shape(name: str, size: tuple[Any, ...]) -> tuple[int, ...]:
    return parse_sizes(name, size) if size else ()


@function(method=False, maker=True, out=True)
def rand(*size: Any, generator: Generator | None = None, dtype: Any = None, device: Any = None) -> Tensor:
    """Uniform numbers of [0, 1) in a shape.

    >>> draw = lambda: tt.rand(3, generator=tt.Generator().manual_seed(0))
    >>> tt.equal(draw(), draw())
    True
    """
    return draw_uniform(_parse_shape("rand", size), numpy_type(dtype), as_device(device), generator)


@function(method=False, maker=True, out=True)
def randn(*size: Any, generator: Generator | None = None, dtype: Any = None, device: Any = None) -> Tensor:
    """Standard normal numbers in a shape."""
    return _draw_standard_normal(_parse_shape("randn", size), numpy_type(dtype), as_device(device), generator)


@function(method=False, maker=True, out=True)
def randint(
    low: Any = 0, high: Any = None, size: Any = None, *, generator: Generator | None = None, dtype: Any = None, device: Any = None
) -> Tensor:
    """Uniform integers of [low, high): `randint(high, size)` or `randint(low, high, size)`."""
    if size is None:
        if not isinstance(high, tuple | list):
            raise TypeError("randint: give high and size, or low, high and size")
        # The overload randint(high, size).
        low, high, size = 0, low, high
    elif high is None:
        low, high = 0, low
    kind = np.dtype(np.int64) if dtype is None else numpy_type(dtype)
    first, last = to_integers("randint", low, high)
    _require_range("randint", first, last, kind)
    return _draw_integers(first, last, parse_sizes("randint", (size,)), kind, as_device(device), generator)


@function(method=False, maker=True, out=True)
def randperm(n: int, *, generator: Generator | None = None, dtype: Any = None, device: Any = None) -> Tensor:
    """0 to n - 1 in a random order."""
    kind = np.dtype(np.int64) if dtype is None else numpy_type(dtype)
    (n,) = to_integers("randperm", n)
    if dtypes.of(kind).kind not in ("int", "uint", "float"):
        raise DTypeError(f"randperm: {dtypes.of(kind).name} is not drawn; use an integer or floating type")
    exact = 2 ** (ml_dtypes.finfo(kind).nmant + 1) if dtypes.of(kind).kind == "float" else int(np.iinfo(kind).max)
    # A type that rounds two integers to one would give no permutation.
    if n - 1 > exact:
        raise ArgumentError(f"randperm: {dtypes.of(kind).name} cannot tell {n} integers apart; choose a wider dtype")
    seed, offset = next_position(generators.blocks_used(max(n, 0), 64), generator, on := as_device(device))
    return ops.randperm(n=n, seed=seed, offset=offset, dtype=kind, device=on)


@function(method=False, maker=True)
def rand_like(x: Tensor, *, generator: Generator | None = None, dtype: Any = None, device: Any = None, memory_format: Any = None) -> Tensor:
    """rand in x's shape, dtype, device and layout, or in a memory format."""
    on, kind = options_like(x, dtype, device)
    return make_in_layout(x, memory_format, lambda shape: draw_uniform(shape, kind, on, generator))


@function(method=False, maker=True)
def randn_like(
    x: Tensor, *, generator: Generator | None = None, dtype: Any = None, device: Any = None, memory_format: Any = None
) -> Tensor:
    """randn in x's shape, dtype, device and layout, or in a memory format."""
    on, kind = options_like(x, dtype, device)
    return make_in_layout(x, memory_format, lambda shape: _draw_standard_normal(shape, kind, on, generator))


@function(method=False, maker=True)
def randint_like(
    x: Tensor, low: int = 0, high: int | None = None, *, generator: Generator | None = None, dtype: Any = None, device: Any = None,
    memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """randint in x's shape, dtype, device and layout, or in a memory format."""
    first, last = to_integers("randint_like", *((0, low) if high is None else (low, high)))
    on, kind = options_like(x, dtype, device)
    _require_range("randint_like", first, last, kind)
    return make_in_layout(x, memory_format, lambda shape: _draw_integers(first, last, shape, kind, on, generator))


@function(method=False, maker=True, out=True)
def normal(
    mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Generator | None = None, dtype: Any = None, device: Any = None
) -> Tensor:
    """Normal numbers; mean and std are numbers (with a size) or tensors that broadcast, of mean's type where it is a tensor.

    Raises ValueError for a std below 0, ShapeError for shapes that do not broadcast.
    """
    _require_deviation("normal", std)
    given = [v for v in (mean, std) if isinstance(v, Tensor)]
    if given:
        labels = [label for label, v in (("mean", mean), ("std", std)) if isinstance(v, Tensor)]
        shape = broadcast("normal", *[tuple(v._array.shape) for v in given], labels=labels)
        kind = given[0]._array.dtype
        require_float("normal", kind)
        z = _draw_standard_normal(shape, compute_type(kind), given[0].device, generator)
        drawn = to_c_order(mean + (std.to(kind) if isinstance(std, Tensor) else std) * z)
        return to_dtype(drawn, kind)
    if size is None:
        raise TypeError("normal: give a size with a mean and std that are numbers")
    return draw_normal(parse_sizes("normal", (size,)), numpy_type(dtype), as_device(device), generator, mean, std)


@function(out=True)
def bernoulli(x: Tensor, p: float | None = None, *, generator: Generator | None = None) -> Tensor:
    """1 with probability x (or p, where it is given), else 0, for each element of x."""
    if p is not None:
        return ops.copy(transform.current.spread(x.detach()) if running.levels else x.detach()).bernoulli_(p, generator=generator)
    # x holds the probabilities themselves.
    _require_probability("bernoulli", x)
    u = draw_uniform(tuple(x._array.shape), x._array.dtype, x.device, generator)
    drawn = ops.cast(ops.lt(u, x.detach()), dtype=x._array.dtype)
    return Drawn.apply(drawn, x) if is_followed(x) else drawn


# -- in place
@function(also={"from": "a", "to": "b"})
def uniform_(x: Tensor, a: float = 0.0, b: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Overwrite x with uniform numbers of [a, b)."""
    _require_inexact("uniform_", x._array.dtype)
    largest = float(ml_dtypes.finfo(x.dtype.to_real().numpy).max)
    if not (-largest <= a <= b <= largest and b - a <= largest):
        raise ArgumentError(f"uniform_: [{a}, {b}) is no range of {x.dtype.name}; give a <= b, no further apart than {largest:g}")
    return overwrite(x, draw_uniform_between(a, b, tuple(x._array.shape), x._array.dtype, x.device, generator), "uniform_")


@function
def normal_(x: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Overwrite x with normal numbers."""
    _require_inexact("normal_", x._array.dtype)
    _require_deviation("normal_", std)
    return overwrite(x, draw_normal(tuple(x._array.shape), x._array.dtype, x.device, generator, mean, std), "normal_")


@function
def exponential_(x: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Overwrite x with exponential numbers of rate lambd."""
    require_float("exponential_", x._array.dtype)
    if not lambd > 0:
        raise ArgumentError(f"exponential_: lambd is {lambd}; it must be above 0")
    return overwrite(x, draw_exponential(tuple(x._array.shape), x._array.dtype, x.device, generator, lambd), "exponential_")


@function
def bernoulli_(x: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Overwrite x with 1 of probability p (a number or a tensor), else 0."""
    _require_probability("bernoulli_", p)
    fine = p._array.dtype == np.float64 if isinstance(p, Tensor) else p < 2.0**-10  # of 24 bits few are left to a small probability
    u = draw_uniform(tuple(x._array.shape), np.dtype(np.float64 if fine else np.float32), x.device, generator)
    with no_grad():
        values = ops.cast(ops.lt(u, p.detach() if isinstance(p, Tensor) else float(p)), dtype=x._array.dtype)
    return overwrite(x, values, "bernoulli_")


_NO_START, _NO_END = object(), object()  # what random_ was not given; None means something there


@function(also={"from": "start", "to": "end"})
def random_(x: Tensor, start: Any = _NO_START, end: Any = _NO_END, *, generator: Generator | None = None) -> Tensor:
    """Overwrite x with integers: `random_(from, to)` of [from, to), `random_(to)` of [0, to), `random_()` up to what x's type holds exactly,
    `random_(from, None)` from there on."""
    exact = {"float16": 2**11, "bfloat16": 2**8, "float32": 2**24, "float64": 2**53, "bool": 1}
    # random_(to): the one number that is given is the end.
    if end is _NO_END and start is not _NO_START:
        low, high = to_integers("random_", 0, start)
    elif end is None or end is _NO_END:
        largest = exact[x.dtype.name] if x.dtype.name in exact else np.iinfo(x._array.dtype).max
        low, high = to_integers("random_", 0 if start is _NO_START else start, int(largest) + 1)
    else:
        low, high = to_integers("random_", 0 if start is _NO_START else start, end)
    _require_range("random_", low, high, x._array.dtype)
    drawn = _draw_integers(low, high, tuple(x._array.shape), np.dtype(np.int64), x.device, generator)
    return overwrite(x, ops.cast(drawn, dtype=x._array.dtype), "random_")
