"""Ops of two results, of random numbers, with configs, and what goes wrong between a record's corners; each beside copies with one planted error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import triton
import triton.language as tl

from tests.sabotage.planted import op_kernels as kernels
from tests.sabotage.planted.ops import BLOCK, _squares, planted, rows, rows_by, single, sound, squares, squares_back_by, squares_by
from tritensor.cuda.launch import launch
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.copying import to_c_order, write
from tritensor.kernels.parts.random_words.philox import draw_origin, in_order, kernel_seed, numpy_words, philox
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Sample, Spec, ops
from tritensor.ops.tuning import config_of
from tritensor.random import blocks_used
from tritensor.tensor.core import Tensor


# (y, h) = (x^2, 3 x)
@triton.jit
def pair(x, y, h, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = kernels.held(x, i, i < n)
    tl.store(y + i, v * v, mask=i < n)
    tl.store(h + i, 3 * v, mask=i < n)


@triton.jit
def pair_exchanged(x, y, h, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = kernels.held(x, i, i < n)
    tl.store(h + i, v * v, mask=i < n)
    tl.store(y + i, 3 * v, mask=i < n)


@triton.jit
def pair_back(gy, gh, x, dx, n, Y: tl.constexpr, H: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = kernels.held(x, i, i < n)
    d = tl.zeros_like(v)
    if Y:
        d += 2 * v * kernels.held(gy, i, i < n)
    if H:
        d += 3 * kernels.held(gh, i, i < n)
    tl.store(dx + i, d, mask=i < n)


def pair_by(kernel: Any) -> Callable[..., tuple[CudaArray, CudaArray]]:
    def forward(x: CudaArray) -> tuple[CudaArray, CudaArray]:
        y, h = allocate(x.shape, x.dtype, x), allocate(x.shape, x.dtype, x)
        launch(kernel, (triton.cdiv(x.size, BLOCK),), to_c_order(x), y, h, x.size, BLOCK=BLOCK)
        return y, h

    return forward


def pair_back_by(both: bool) -> Callable[..., CudaArray]:
    def backward(g: tuple[CudaArray | None, CudaArray | None], x: CudaArray) -> CudaArray:
        x, dx = to_c_order(x), allocate(x.shape, x.dtype, x)
        gy, gh = (to_c_order(v) if both or v is not None else x for v in g)  # type: ignore[arg-type]
        launch(
            pair_back, (triton.cdiv(x.size, BLOCK),), gy, gh, x, dx, x.size,
            Y=both or g[0] is not None, H=both or g[1] is not None, BLOCK=BLOCK,
        )  # fmt: skip
        return dx

    return backward


def _pair_rule(g: Any, x: Any) -> Any:
    parts = [ops.mul(ops.mul(g[0], x), 2.0)] if g[0] is not None else []
    parts += [ops.mul(g[1], 3.0)] if g[1] is not None else []
    return parts[0] if len(parts) == 1 else ops.add(*parts) if parts else None


@sound
def square_and_triple() -> dict[str, Any]:
    return {
        "reference": lambda x: ((single(x) * single(x)).astype(x.dtype), (3 * single(x)).astype(x.dtype)),
        "shape": lambda x: (Spec(x.shape, x.dtype), Spec(x.shape, x.dtype)),
        "forward": pair_by(pair),
        "rule": _pair_rule,
        "backward": pair_back_by(False),
        "outputs": ("y", "h"),
        "samples": lambda rng: [Sample(rng.standard_normal(s)) for s in ((5,), (3, 30))],
    }


planted("results in the wrong order", square_and_triple, pair_exchanged, forward=pair_by(pair_exchanged))
planted(
    "a rule that counts on gradients for all results", square_and_triple,
    rule=lambda g, x: ops.add(ops.mul(ops.mul(g[0], x), 2.0), ops.mul(g[1], 3.0)),
)  # fmt: skip
planted("a backward that counts on gradients for all results", square_and_triple, backward=pair_back_by(True))
planted("a rule for the first result alone", square_and_triple, rule=lambda g, x: None if g[0] is None else ops.mul(ops.mul(g[0], x), 2.0))


# y = x + u - 1/2
@triton.jit
def noise(x, y, n, k0, k1, offset, state, BLOCK: tl.constexpr):
    k0, k1, offset = draw_origin(k0, k1, offset, state)
    block = (tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)).to(tl.uint64) + offset
    w0, w1, w2, w3 = philox(block, k0, k1)
    i = tl.program_id(0) * (4 * BLOCK) + tl.arange(0, 4 * BLOCK)
    v = kernels.held(x, i, i < n)
    tl.store(y + i, v + ((in_order(w0, w1, w2, w3) >> 8).to(v.dtype) * 5.9604644775390625e-08 - 0.5), mask=i < n)


def noise_by(drawn: Callable[[int, int], tuple[int, int]]) -> dict[str, Any]:
    """The two forward corners, which draw from what `drawn` makes of seed and offset."""

    def reference(x: np.ndarray, *, seed: int, offset: int) -> np.ndarray:
        wide = single(x)
        words = numpy_words(*drawn(seed, offset), 4 * blocks_used(x.size, 32))[: x.size] >> np.uint32(8)
        return (wide + (words.astype(wide.dtype) * wide.dtype.type(2.0**-24) - wide.dtype.type(0.5)).reshape(x.shape)).astype(x.dtype)

    def forward(x: CudaArray, *, seed: int, offset: int) -> CudaArray:
        y = allocate(x.shape, x.dtype, x)
        launch(
            noise, (triton.cdiv(blocks_used(x.size, 32), BLOCK),), to_c_order(x), y, x.size, *kernel_seed(*drawn(seed, offset)), BLOCK=BLOCK
        )
        return y

    return {"reference": reference, "forward": forward}


@sound
def noisy() -> dict[str, Any]:
    return noise_by(lambda seed, offset: (seed, offset)) | {
        "shape": lambda x, *, seed, offset: Spec(x.shape, x.dtype),
        "rule": lambda g: g,
        "backward": lambda g: g,
        "samples": lambda rng: [Sample(rng.standard_normal(s), seed=2**40 + 3, offset=5) for s in ((7,), (3, 100))],
    }


planted("random numbers that heed no seed", noisy, **noise_by(lambda seed, offset: (7, offset)))
planted("random numbers that heed no offset", noisy, **noise_by(lambda seed, offset: (seed, 0)))


class Width(NamedTuple):
    """A config: elements of a program."""

    block: int


@triton.jit
def halves(x, y, n, PART: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, PART)
    tl.store(y + i, kernels.held(x, i, i < n) * 0.5, mask=i < n)


def halves_by(most: int) -> Callable[..., CudaArray]:
    def forward(x: CudaArray) -> CudaArray:
        y = allocate(x.shape, x.dtype, x)
        block = config_of("halved", (x.size, x.dtype), Width(16)).block
        launch(halves, (triton.cdiv(x.size, block),), to_c_order(x), y, x.size, PART=min(block, most), BLOCK=block)
        return y

    return forward


@sound
def halved() -> dict[str, Any]:
    return {
        "reference": lambda x: (single(x) * 0.5).astype(x.dtype),
        "shape": lambda x: Spec(x.shape, x.dtype),
        "forward": halves_by(1024),
        "rule": lambda g: ops.mul(g, 0.5),
        "backward": halves_by(1024),
        "configs": lambda key: [Width(16), Width(32), Width(64)],
        "samples": lambda rng: [Sample(rng.standard_normal(s)) for s in ((5,), (3, 50))],
    }


planted("a config that is wrong", halved, halves, forward=halves_by(32))
planted("a config that is wrong in the backward", halved, halves, backward=halves_by(32))


# --- between the corners of a record
def _modifies(x: np.ndarray, out: np.ndarray | None = None, *, scale: float = 2.0) -> np.ndarray:
    y = _squares(x, out, scale=scale)
    x *= 1.5
    return y


def _stateful() -> Callable[..., CudaArray]:
    calls = [0]

    def forward(x: CudaArray, out: CudaArray | None = None, *, scale: float = 2.0) -> CudaArray:
        calls[0] += 1
        return squares_by(kernels.squares)(x, out, scale=scale * (1 + calls[0] % 2))

    return forward


def _overwrites_g(g: CudaArray, x: CudaArray, scale: float) -> CudaArray:
    write(g, squares_back_by(kernels.squares_back)(g, x, scale))
    return g


def _flattened(g: CudaArray, x: CudaArray, scale: float) -> CudaArray:
    return squares_back_by(kernels.squares_back)(g, x, scale).reshape((x.size,))


def _through_numpy(g: Any, x: Any, scale: float) -> Any:
    return ops.mul(g, Tensor.wrap(2 * scale * np.asarray(x._array)))


def _in_float32(g: Any, x: Any, scale: float) -> Any:
    narrow = np.dtype(np.float32)
    return ops.cast(ops.mul(ops.mul(ops.cast(g, dtype=narrow), ops.cast(x, dtype=narrow)), 2 * scale), dtype=x._array.dtype)


planted("a reference that modifies its input", squares, reference=_modifies)
planted("a forward that remembers how often it ran", squares, forward=_stateful())
planted("a backward that overwrites the arriving gradient", squares, backward=_overwrites_g)
planted("a gradient of another shape", squares, backward=_flattened)
planted("a rule that leaves the graph", squares, rule=_through_numpy)
planted("a rule in float32", squares, rule=_in_float32)
planted("a rule that is right for one attribute", squares, rule=lambda g, x, scale: ops.mul(ops.mul(g, x), 4.0))
planted("a numpy gradient a little off", squares, cpu_backward=lambda g, x, scale: (g * x * x.dtype.type(2.001 * scale)).astype(x.dtype))
planted("a layout that is not kept", squares, layout="elementwise")
planted("a shape rule that gives a number a dimension", squares, shape=lambda x, *, scale=2.0: Spec(x.shape or (1,), x.dtype))
planted("a shape rule that gives no Spec", squares, shape=lambda x, *, scale=2.0: (x.shape, x.dtype))
planted("samples that change from call to call", squares, samples=lambda rng: [Sample(np.random.standard_normal(5))])
planted("a forward that returns nothing", rows, forward=lambda x, b: None)
planted("a forward that returns a Tensor", rows, forward=lambda x, b: Tensor.wrap(rows_by(kernels.rows)(x, b)))
planted("a sum over the wrong dimension", rows, rule=lambda g, x, b: (ops.mul(g, b), ops.sum(ops.mul(g, x), dim=(1,), keepdim=False)))
planted("a gradient for one of two inputs", rows, rule=lambda g, x, b: (ops.mul(g, b),))
