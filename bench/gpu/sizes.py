"""Calls that `bench gpu` times of each op: the record's timed sizes, tensors of 64 MiB, calls of real networks, sizes for ops whose record names none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bench.gpu.model_sizes import model_calls
from tritensor.ops.table import Op, Sample

LARGE = 64 << 20  # bytes of one tensor from which on the roofline is what counts
SIDE = 4096  # SIDE x SIDE float32 values are 64 MiB
_BLOCK = 1 << 18  # random numbers drawn; larger arrays repeat them: a timing does not see it


_SIZE_AT = {"standard_normal": 0, "random": 0, "normal": 2, "uniform": 2, "integers": 2}  # the place of `size` in numpy's signatures


class Tiled:
    """Stands in for numpy's generator: draws a block of numbers and repeats it, as float32, so that gigabytes take no time.

    `dry`: only shapes matter; every array is one number, repeated without memory.
    """

    def __init__(self, seed: int = 0, dry: bool = False) -> None:
        self._rng = np.random.default_rng(seed)
        self.dry = dry

    def __getattr__(self, name: str) -> Any:
        draw = getattr(self._rng, name)
        place = _SIZE_AT.get(name)
        if place is None:
            return draw

        def tiled(*args: Any, **kwargs: Any) -> Any:
            size = kwargs.pop("size", None)
            if size is None and len(args) > place:
                size, args = args[place], args[:place] + args[place + 1 :]
            if place == 0:  # whatever type is asked for: the row's type is given later
                args, kwargs = (), {}
            count = 1 if size is None else int(np.prod(size))
            found = draw(*args[:2], size=1 if self.dry else min(count, _BLOCK), **kwargs)
            found = found.astype(np.float32) if found.dtype == np.float64 else found
            return found[0] if size is None else self.spread(found, size)

        return tiled

    def spread(self, x: np.ndarray, size: Any) -> np.ndarray:
        """The numbers of x, again and again, in another shape."""
        return np.broadcast_to(x.reshape(-1)[0], size) if self.dry else np.resize(x, size)


class Shape(NamedTuple):
    """One call to be timed: the sample, whether it is one that --quick keeps, and the network that makes it ("": none that is known)."""

    sample: Sample
    largest: bool
    model: str = ""


def label(sample: Sample) -> str:
    """Inputs and attributes in a few words."""
    shown = [f"{list(x.shape)}" if isinstance(x, np.ndarray) else repr(x) for x in sample.inputs if x is not None]
    attrs = [f"{k}={v.name if isinstance(v, np.dtype) else v}" for k, v in sample.attrs.items() if v is not None]
    return ", ".join(shown + attrs)


def shapes(op: Op, dtype: str, side: int = SIDE, dry: bool = False) -> list[Shape]:
    """What an op is timed on in a type; [] for an op whose record has no sizes and which stands not in EXTRA (views).

    Networks' calls have the sizes they have, so a smaller `side` leaves them out.
    """
    rng: Any = Tiled(dry=dry)
    found = _own_shapes(op, dtype, side, rng)
    for where, sample in model_calls(op.name, rng) if side >= SIDE else ():
        known = next((i for i, s in enumerate(found) if label(s.sample) == label(sample)), None)
        if known is None:
            found.append(Shape(sample, False, where))
        else:
            found[known] = found[known]._replace(model=where)
    return found


def _own_shapes(op: Op, dtype: str, side: int, rng: Any) -> list[Shape]:
    """What the record and EXTRA say."""
    found = list(op.sizes(rng)) if op.sizes is not None else []
    if op.broadcasts and found:
        flat = next(s for s in found if all(getattr(x, "ndim", 1) == 1 for x in s.inputs))
        count = side * side * 4 // (2 if dtype in ("float16", "bfloat16") else 4)
        large = Sample(*(rng.spread(x, count) if isinstance(x, np.ndarray) else x for x in flat.inputs), **flat.attrs)
        return [*(Shape(s, False) for s in found), Shape(large, True)]
    if not found and op.name in EXTRA:
        found = EXTRA[op.name](rng, side)
    if not found and op.name.endswith("_numbers") and "weight_decay" in op.attrs:
        found = _step_numbers(op, side)
    return [Shape(s, True) for s in found]


def _square(rng: Any, n: int) -> np.ndarray:
    return rng.standard_normal((n, n))


def _rows(**attrs: Any) -> Callable[[Any, int], list[Sample]]:
    """A square matrix with the attributes given."""
    return lambda rng, n: [Sample(_square(rng, n), **attrs)]


def _each(*dims: Any, **attrs: Any) -> Callable[[Any, int], list[Sample]]:
    """A square matrix, once for each value of `dim`."""
    return lambda rng, n: [Sample(_square(rng, n), dim=dim, **attrs) for dim in dims]


def _made(**attrs: Any) -> Callable[[Any, int], list[Sample]]:
    """A tensor from nothing; an attribute that is a function is given the side."""
    return lambda rng, n: [Sample(**{k: v(n) if callable(v) and not isinstance(v, type) else v for k, v in attrs.items()})]


_F32, _I64 = np.dtype(np.float32), np.dtype(np.int64)


def _pool(axes: int) -> dict[str, Any]:
    """Windows of two without overlap."""
    return {"kernel_size": (2,) * axes, "stride": (2,) * axes, "padding": (0,) * axes}


def _conv(axes: int) -> dict[str, Any]:
    """Windows of three that keep the size."""
    return {"stride": (1,) * axes, "padding": (1,) * axes, "dilation": (1,) * axes, "groups": 1}


def _pooled(rng: Any, n: int, axes: int) -> tuple[np.ndarray, np.ndarray, tuple[int, ...]]:
    """Values and places of a pooled image of side h, or a volume, each place inside its window, and the size before: 2 * h."""
    h = max(n // 64, 2) if axes == 2 else max(n // 256, 2)  # 64 and 16 for a side of 4096
    size = (2 * h,) * axes
    places = np.ravel_multi_index(tuple(2 * np.indices((h,) * axes)), size)
    shape = (32, 64) + (h,) * axes
    return rng.standard_normal(shape), np.ascontiguousarray(np.broadcast_to(places.astype(np.int64), shape)), size


def _scattered(axes: int) -> Callable[[Any, int], list[Sample]]:
    def samples(rng: Any, n: int) -> list[Sample]:
        g, places, size = _pooled(rng, n, axes)
        return [Sample(g, places, size=size, **_pool(axes), dilation=(1,) * axes)]

    return samples


def _gathered(axes: int) -> Callable[[Any, int], list[Sample]]:
    def samples(rng: Any, n: int) -> list[Sample]:
        _, places, size = _pooled(rng, n, axes)
        return [Sample(rng.standard_normal((32, 64, *size)), places, **_pool(axes), dilation=(1,) * axes)]

    return samples


def _spread(axes: int) -> Callable[[Any, int], list[Sample]]:
    def samples(rng: Any, n: int) -> list[Sample]:
        g, _, size = _pooled(rng, n, axes)
        return [Sample(g, size=size, **_pool(axes), ceil_mode=False, count_include_pad=True)]

    return samples


def _convolved(axes: int, to: str) -> Callable[[Any, int], list[Sample]]:
    """What a convolution by windows of 3 of 64 channels sends back to its input, or to its weight."""

    def samples(rng: Any, n: int) -> list[Sample]:
        h = max({1: n // 2, 2: n * 7 // 512, 3: n // 256}[axes], 4)  # 2048, 56 and 16 for a side of 4096
        size, windows = (h,) * axes, (3,) * axes
        image = rng.standard_normal((32, 64, *size))
        if to == "input":
            return [Sample(image, rng.standard_normal((64, 64, *windows)), size=size, **_conv(axes))]
        return [Sample(image, rng.standard_normal((32, 64, *size)), kernel_size=windows, **_conv(axes))]

    return samples


def _step_numbers(op: Op, n: int) -> list[Sample]:
    """An optimizer's numbers of n parameters, and their scalars, by the settings of its formula's example."""
    first = op.samples(np.random.default_rng(0))[0]
    return [Sample(*[np.zeros((n, x.shape[1])) for x in first.inputs], **first.attrs)]


def _indexed(rng: Any, n: int) -> np.ndarray:
    return rng.integers(0, n, (n,))


EXTRA: dict[str, Callable[[Any, int], list[Sample]]] = {
    "cast": lambda rng, n: [Sample(_square(rng, n), dtype=np.dtype(np.float16))],
    **{f"conv{axes}d_{to}": _convolved(axes, to) for axes in (1, 2, 3) for to in ("input", "weight")},
    **{f"max_pool{axes}d_scatter": _scattered(axes) for axes in (2, 3)},
    **{f"max_pool{axes}d_gather": _gathered(axes) for axes in (2, 3)},
    **{f"avg_pool{axes}d_spread": _spread(axes) for axes in (2, 3)},
    "full": _made(shape=lambda n: (n, n), value=1.5, dtype=_F32),
    "arange": _made(start=0, end=lambda n: n * n, step=1, dtype=_F32),
    "linspace": _made(start=0.0, end=1.0, steps=lambda n: n * n, dtype=_F32),
    "eye": _made(rows=lambda n: n, columns=lambda n: n, dtype=_F32),
    "rand": _made(shape=lambda n: (n, n), seed=1, offset=0, dtype=_F32),
    "randn": _made(shape=lambda n: (n, n), seed=1, offset=0, dtype=_F32),
    "randint": _made(low=0, high=1000, shape=lambda n: (n, n), seed=1, offset=0, dtype=_I64),
    "randperm": _made(n=lambda n: n * n // 4, seed=1, offset=0, dtype=_I64),
    "tril": _rows(diagonal=0),
    "triu": _rows(diagonal=0),
    "prod": _each((1,), (0,), keepdim=False),
    "var": _each((1,), (0,), correction=1, keepdim=False),
    "amax": _each((1,), (0,), keepdim=False),
    "amin": _each((1,), (0,), keepdim=False),
    "argmax": _each(1, 0, keepdim=False),
    "argmin": _each(1, 0, keepdim=False),
    "max_dim": _each(1, 0, keepdim=False),
    "min_dim": _each(1, 0, keepdim=False),
    "any": _each((1,), (0,), keepdim=False),
    "all": _each((1,), (0,), keepdim=False),
    "cumsum": _each(1, 0, reverse=False),
    "flip": _rows(dims=(1,)),
    "roll": _rows(shifts=(3,), dims=(1,)),
    "gather": lambda rng, n: [Sample(_square(rng, n), rng.integers(0, n, (n, n)), dim=d) for d in (1, 0)],
    "scatter": lambda rng, n: [Sample(_square(rng, n), rng.integers(0, n, (n, n)), _square(rng, n), dim=1)],
    "scatter_add": lambda rng, n: [Sample(_square(rng, n), rng.integers(0, n, (n, n)), _square(rng, n), dim=d) for d in (1, 0)],
    "scatter_reduce": lambda rng, n: [Sample(_square(rng, n), rng.integers(0, n, (n, n)), _square(rng, n), dim=1, reduce=r) for r in ("prod", "amax")],
    "index_get": lambda rng, n: [Sample(_square(rng, n), _indexed(rng, n), dims=(0,), front=False)],
    "index_put": lambda rng, n: [Sample(_square(rng, n), _square(rng, n), _indexed(rng, n), dims=(0,), front=False, accumulate=a) for a in (False, True)],
    "index_assign": lambda rng, n: [Sample(_square(rng, n), _square(rng, n), _indexed(rng, n), dims=(0,), front=False)],
    "cat": lambda rng, n: [Sample(_square(rng, n), _square(rng, n), dim=d) for d in (0, 1)],
    "stack": lambda rng, n: [Sample(_square(rng, n), _square(rng, n), dim=d) for d in (0, 2)],
    "pad_view": lambda rng, n: [Sample(rng.standard_normal((n // 2, n)), shape=(n, n), index=(slice(0, n // 2), slice(None)))],
    "pad_diagonal": lambda rng, n: [Sample(rng.standard_normal((n,)), shape=(n, n), offset=0, dim1=0, dim2=1)],
    "where": lambda rng, n: [Sample(_square(rng, n) > 0, _square(rng, n), _square(rng, n))],
    "clamp": lambda rng, n: [Sample(_square(rng, n), -0.6, 1.1)],
    "linear_scan": lambda rng, n: [Sample(_square(rng, n), _square(rng, n), dim=d, reverse=False) for d in (1, 0)],
    **{name: _each(1, 0) for name in ("cumprod", "cummax", "cummin", "logcumsumexp")},
    "cdist": lambda rng, n: [Sample(rng.standard_normal((1, n // 4, 64)), rng.standard_normal((1, n // 4, 64)), p=p, fast=False) for p in (1.0, 2.0)],
    "bin_numbers": lambda rng, n: [Sample(rng.uniform(-1, 1, (n * n // 4,)), np.linspace(-1, 1, 101), uniform=u) for u in (True, False)],
    "count_keys": lambda rng, n: [Sample(rng.integers(0, n, (n * n // 4,)), size=n)],
    "nonzero_static": lambda rng, n: [Sample(_square(rng, n), size=n * n, fill_value=-1)],
    "argsort": _each(1, 0, descending=False),
    "sort_values": _each(1, 0),
    "rank_place": _each(1, rank=7),
    "searchsorted": lambda rng, n: [Sample(np.linspace(-3, 3, n), _square(rng, n), right=False, out_int32=False)],
    "run_lengths": lambda rng, n: [Sample(np.sort(rng.integers(0, n, (n * n // 4,))).astype(np.float32)[None])],
    "frexp": lambda rng, n: [Sample(_square(rng, n))],
}  # fmt: skip
