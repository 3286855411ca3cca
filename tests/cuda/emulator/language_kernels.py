"""Kernels of the kinds that public Triton code holds, each with arguments and numpy's answer: interpreted by test_emulator_language.py,
compiled for sm_90 by `python -m tests.cuda.emulator.language_kernels` in a process without TRITON_INTERPRET."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import triton
import triton.language as tl
from triton.language.core import _aggregate
from triton.language.extra import libdevice

import tritensor  # noqa: F401  # an aggregate that is made before would not know its @triton.jit methods
from tests.cuda.emulator import inline_ptx_kernels  # noqa: F401  # registers its own
from tests.cuda.emulator.cases import CASES, case, out

RNG = np.random.default_rng(0)
V = RNG.standard_normal(64).astype(np.float32)
A = RNG.standard_normal((16, 16)).astype(np.float32)
E4M3 = ml_dtypes.float8_e4m3fn


# Atomics
@case((out(2, dtype=ml_dtypes.bfloat16), out(4, dtype=ml_dtypes.bfloat16)), [6, 6], [0, 0, 1.5, 1.5], N=8)
@triton.jit
def bfloat16_atomics(x, first, N: tl.constexpr):
    i = tl.arange(0, N)
    old = tl.atomic_add(x + i % 2, tl.full((N,), 1.5, tl.bfloat16))
    tl.store(first + i, old * (i // 2), mask=i < 4)


@case((out(1, dtype=np.int32), out(1)), [0], [10], grid=(5,))
@triton.jit
def under_a_lock(lock, total):
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(total, tl.load(total) + tl.program_id(0))
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@case((A, out(16, 16), 16, 16), 2 * A, M=16, N=16)
@triton.jit
def descriptor_atomics(x, y, rows, columns, M: tl.constexpr, N: tl.constexpr):
    source = tl.make_tensor_descriptor(x, shape=[rows, columns], strides=[columns, 1], block_shape=[M, N])
    target = tl.make_tensor_descriptor(y, shape=[rows, columns], strides=[columns, 1], block_shape=[M, N])
    for _ in range(2):
        target.atomic_add([0, 0], source.load([0, 0]))


# Pointers
@case((V[:8], V[8:16], out(16)), np.concatenate([np.where(np.arange(8) % 2, V[8:16], V[:8]), V[:16:2]]), N=8)
@triton.jit
def pointers_into_several_tensors(x, y, z, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(z + i, tl.load(tl.where(i % 2 == 0, x + i, y + i)))
    tl.store(z + N + i, tl.load(tl.where(i < N // 2, x + 2 * i, y + 2 * i - N)))


@case((V, out(3)), [V[2], V[3], 20.0])
@triton.jit
def pointers_as_integers(x, y):
    address = x.to(tl.int64)
    tl.store(y, tl.load((address + 8).to(tl.pointer_type(tl.float32))))
    tl.store(y + 1, tl.load((x + 3).to(tl.pointer_type(tl.int32), bitcast=True)).to(tl.float32, bitcast=True))
    tl.store(y + 2, ((x + 5).to(tl.int64) - address).to(tl.float32))


# Products of scaled small floats
SCALES = RNG.integers(125, 130, (2, 32, 2)).astype(np.uint8)
LEFT, RIGHT = RNG.standard_normal((32, 64)).astype(E4M3), RNG.standard_normal((64, 32)).astype(E4M3)
FACTORS = np.repeat(2.0 ** (SCALES.astype(float) - 127), 32, axis=2)
CODES = RNG.integers(0, 256, (32, 32)).astype(np.uint8)
FOUR = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])[np.stack([CODES & 15, CODES >> 4], -1).reshape(32, 64)]


@case((LEFT, RIGHT, CODES, SCALES, out(2, 32, 32)),
      [(LEFT * FACTORS[0]) @ (RIGHT * FACTORS[1].T), (FOUR * FACTORS[0]) @ (RIGHT * FACTORS[1].T)], N=32, K=64)  # fmt: skip
@triton.jit
def scaled_products(a, b, codes, scales, y, N: tl.constexpr, K: tl.constexpr):
    i = tl.arange(0, N)
    k = tl.arange(0, K)
    s = scales + i[:, None] * (K // 32) + tl.arange(0, K // 32)[None, :]
    right, left_scale, right_scale = tl.load(b + k[:, None] * N + i[None, :]), tl.load(s), tl.load(s + N * (K // 32))
    to = y + i[:, None] * N + i[None, :]
    tl.store(to, tl.dot_scaled(tl.load(a + i[:, None] * K + k[None, :]), left_scale, "e4m3", right, right_scale, "e4m3"))
    half = tl.load(codes + i[:, None] * (K // 2) + tl.arange(0, K // 2)[None, :])
    tl.store(to + N * N, tl.dot_scaled(half, left_scale, "e2m1", right, right_scale, "e4m3"))


# Whole blocks
@case((RNG.integers(-2, 12, 64).astype(np.int32), out(8, dtype=np.int32)), np.zeros(8), N=64)
@triton.jit
def histogram_drops_what_is_outside(x, y, N: tl.constexpr):
    tl.store(y + tl.arange(0, 8), tl.histogram(tl.load(x + tl.arange(0, N)), 8))


CASES[-1] = CASES[-1]._replace(
    want=(np.bincount(CASES[-1].args[0].clip(0), minlength=8)[:8] - np.eye(8)[0] * (CASES[-1].args[0] < 0).sum(),)
)
BYTES = RNG.integers(0, 256, 8).astype(np.uint8)


@case((BYTES, out(32, dtype=np.uint8)), np.concatenate([~BYTES, BYTES + BYTES, BYTES - np.uint8(200), (BYTES >> 1) | (BYTES << 7)]), N=8)
@triton.jit
def bytes_wrap(x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(y + i, ~v)
    tl.store(y + N + i, v + v)
    tl.store(y + 2 * N + i, v - 200)
    tl.store(y + 3 * N + i, (v >> 1) | (v << 7))


@triton.jit
def _collatz(n, most):
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return min(steps, most)


@case((np.array([1, 6, 7, 27], np.int32), out(4, dtype=np.int32)), [0, 8, 16, 100], N=4)
@triton.jit
def control_flow_in_every_lane(x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(y + i, tl.map_elementwise(_collatz, tl.load(x + i), tl.full((N,), 100, tl.int32)))


@triton.jit
def _larger(a, i, b, j):
    first = (a > b) | ((a == b) & (i < j))
    return tl.where(first, a, b), tl.where(first, i, j)


@case((V, out(64), out(64, dtype=np.int32)), np.maximum.accumulate(V), [V[: n + 1].argmax() for n in range(64)], N=64)
@triton.jit
def running_maximum_and_place(x, y, place, N: tl.constexpr):
    i = tl.arange(0, N)
    most, at = tl.associative_scan((tl.load(x + i), i), 0, _larger)
    tl.store(y + i, most)
    tl.store(place + i, at)


@case((V, out(1)), [np.log(np.exp(V[:50].astype(float)).sum())], N=16)
@triton.jit
def online_softmax(x, y, N: tl.constexpr):
    most, total = -float("inf"), 0.0
    for k in range(0, 50, N):
        v = tl.load(x + k + tl.arange(0, N), mask=k + tl.arange(0, N) < 50, other=-float("inf"))
        new = tl.maximum(most, tl.max(v, 0))
        total = total * tl.exp(most - new) + tl.sum(tl.exp(v - new), 0)
        most = new
    tl.store(y, most + tl.log(total))


# The machine
@case((out(3, dtype=np.int32),), [4, 128, 1])
@triton.jit
def what_runs_it(y):
    tl.store(y, tl.extra.cuda.num_warps())
    tl.store(y + 1, tl.extra.cuda.num_threads())
    tl.store(y + 2, (tl.extra.cuda.globaltimer() > 0) & (tl.extra.cuda.smid() >= 0))


# The library
WHOLE = np.array([0, 1, -1, 12, 2**31 - 1, -(2**31), 255, 1 << 20], np.int32)
BITS = [format(int(n) & 0xFFFFFFFF, "032b") for n in WHOLE]


@case((WHOLE, out(40, dtype=np.int32)),
      np.concatenate([[32 - len(b.lstrip("0")) for b in BITS], [(len(b) - b.rfind("1")) if "1" in b else 0 for b in BITS],
                      np.array([int(b[::-1], 2) for b in BITS], np.uint32).view(np.int32), WHOLE.astype(object) ** 2 >> 32,
                      WHOLE.view(np.uint32).byteswap().view(np.int32)]), N=8)  # fmt: skip
@triton.jit
def library_of_bits(x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    n = tl.load(x + i)
    tl.store(y + i, libdevice.clz(n))
    tl.store(y + N + i, libdevice.ffs(n))
    tl.store(y + 2 * N + i, libdevice.brev(n))
    tl.store(y + 3 * N + i, libdevice.mulhi(n, n))
    tl.store(y + 4 * N + i, libdevice.byte_perm(n, n, 0x0123))


HALVES = np.array([0.5, 1.5, -0.5, -1.5, 2.25, -2.75, 7.0, 1e9], np.float32)


@case((HALVES, out(32, dtype=np.int32)), np.concatenate([np.rint(HALVES), np.trunc(HALVES), np.floor(HALVES), np.ceil(HALVES)]), N=8)
@triton.jit
def library_of_conversions(x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(y + i, libdevice.float2int_rn(v))
    tl.store(y + N + i, libdevice.float2int_rz(v))
    tl.store(y + 2 * N + i, libdevice.float2int_rd(v))
    tl.store(y + 3 * N + i, libdevice.float2int_ru(v))


POSITIVE = np.linspace(0.1, 0.9, 8)


@case((POSITIVE, out(32, dtype=np.float64)),
      np.concatenate([np.i0(POSITIVE), [math.exp(v * v) * math.erfc(v) for v in POSITIVE], POSITIVE, np.sqrt(3 * POSITIVE**2)]), N=8)  # fmt: skip
@triton.jit
def library_of_special_functions(x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(y + i, libdevice.cyl_bessel_i0(v))
    tl.store(y + N + i, libdevice.erfcx(v))
    tl.store(y + 2 * N + i, libdevice.normcdf(libdevice.normcdfinv(v)) + libdevice.j0(v) * 0)
    tl.store(y + 3 * N + i, libdevice.norm3d(v, v, v))


# What is out of range, and directed roundings
EDGES = np.array([0.0, -1.0, np.inf, 8.0], np.float64)
BELOW_EIGHT = np.nextafter(8.0, 0.0)


@case((np.array([130.75, -129.5, 300.0, -1e9], np.float32), out(4, dtype=np.int8), out(4, dtype=np.uint8)),
      np.array([130, -129, 300, -32768]).astype(np.int8), np.array([130, 0, 300, 0]).astype(np.uint8), N=4)  # fmt: skip
@triton.jit
def floats_to_bytes(x, signed, unsigned, N: tl.constexpr):
    """By way of 16 bits, whose upper half is lost."""
    i = tl.arange(0, N)
    tl.store(signed + i, tl.load(x + i).to(tl.int8))
    tl.store(unsigned + i, tl.load(x + i).to(tl.uint8))


@case((EDGES, out(16, dtype=np.float64)),
      [np.inf, np.inf, np.inf, math.lgamma(8), np.inf, np.nan, np.inf, 5040, -np.inf, 0, np.inf, 3, -(2.0**31), 0, 2.0**31 - 1, 3], N=4)  # fmt: skip
@triton.jit
def library_at_its_edges(x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(y + i, libdevice.lgamma(v))
    tl.store(y + N + i, libdevice.tgamma(v))
    tl.store(y + 2 * N + i, libdevice.logb(v))
    tl.store(y + 3 * N + i, libdevice.ilogb(v).to(tl.float64))


@case((np.array([BELOW_EIGHT, 2.0, 9.0, 1e-300]), out(16, dtype=np.float64)),
      [2, 1, 3, -997, math.sqrt(8), math.sqrt(2), 3, 1e-150, 1 / 8, 0.5, 1 / 9, 1e300, 9, 3, 10, 1], N=4)  # fmt: skip
@triton.jit
def library_of_directed_roundings(x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(y + i, libdevice.logb(v))
    tl.store(y + N + i, libdevice.sqrt_ru(v))
    tl.store(y + 2 * N + i, libdevice.rcp_rd(v))
    tl.store(y + 3 * N + i, libdevice.add_rz(v, tl.full((N,), 1.0, tl.float64)))


# Exchanges of floats, and tiles of a descriptor's array changed in place
@case((V[:8].copy(), out(8), out(8)), V[:8], V[:8] + 3, N=8)
@triton.jit
def exchanges_of_floats(x, old, new, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(old + i, tl.atomic_xchg(x + i, tl.load(x + i) + 3))
    tl.store(new + i, tl.load(x + i))


STEPS = np.arange(64, dtype=np.float16).reshape(4, 16)


@case((STEPS.copy(), out(4, 16, dtype=np.float16)), np.clip(STEPS, 10, 40))
@triton.jit
def extremes_of_float16_tiles(x, y):
    tile = tl.make_tensor_descriptor(x, [4, 16], [16, 1], [4, 16])
    tile.atomic_max([0, 0], tl.full((4, 16), 10, tl.float16))
    tile.atomic_min([0, 0], tl.full((4, 16), 40, tl.float16))
    tl.debug_barrier()
    i = tl.arange(0, 4)[:, None] * 16 + tl.arange(0, 16)[None]
    tl.store(y + i, tl.load(x + i))


# A product whose operands are cut into bfloat16 parts; here it is float32's
@case((A, out(16, 16)), A @ A, N=16)
@triton.jit
def product_in_bfloat16_parts(x, y, N: tl.constexpr):
    i = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None]
    tl.store(y + i, tl.dot(tl.load(x + i), tl.load(x + i), input_precision="bf16x3"))


# Kernels that take names of the function around them
def powers(function: Any, times: int) -> Any:
    """A kernel of a function and a number."""
    factor = tl.constexpr(times)

    @triton.jit
    def of_its_surroundings(x, y, N: tl.constexpr):
        """Its docstring holds
        def another
        """
        i = tl.arange(0, N)
        tl.store(y + i, function(tl.load(x + i)) * factor)

    return of_its_surroundings


@triton.jit
def _cube(x):
    return x * x * x


case((V, out(64)), V**3 * 2, N=64)(powers(_cube, 2))
case((V, out(64)), np.abs(V) * 3, N=64)(powers(tl.abs, 3))


# Values with methods
@_aggregate
class Scaled:
    """A block and what it is multiplied by."""

    __annotations__ = {"block": tl.tensor, "factor": tl.constexpr}  # classes, which Triton 3.6 does not make of texts

    @triton.constexpr_function
    def __init__(self, block, factor):
        self.block = block
        self.factor = tl.constexpr(factor)

    @triton.jit
    def plus(self, more):
        return self.block * self.factor + more


@case((V, out(64)), V * 3 + 1, N=64)
@triton.jit
def aggregates_with_methods(x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(y + i, Scaled(tl.load(x + i), 3).plus(1.0))


def main() -> None:
    """Compile every case for sm_90; raises LaunchError at the first that does not compile."""
    from tritensor.cuda.compiler.compile import compile
    from tritensor.cuda.launch import launch
    from tritensor.cuda.runtime import active
    from tritensor.cuda.virtual.recording_runtime import RecordingRuntime
    from tritensor.ground.device import device
    from tritensor.ops.array import from_host

    recorder = RecordingRuntime()
    active.use(recorder)
    for one in CASES:
        args = [from_host(x, device("cuda", 0)) if isinstance(x, np.ndarray) else x for x in one.args]
        launch(one.kernel, one.grid, *args, **one.constants)
    for spec in recorder.launches:
        compile(spec, 90)
    print(len(recorder.launches))


if __name__ == "__main__":
    main()
