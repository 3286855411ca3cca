"""Kernels that hold PTX, of the kinds that public Triton code has, with numpy's answers."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import triton
import triton.language as tl

from tests.cuda.emulator.cases import case, out

RNG = np.random.default_rng(1)
V = RNG.standard_normal(64).astype(np.float32)


SOFTPLUS = tl.constexpr("""{ .reg .pred p;
    setp.gt.f32 p, $1, 0f3F800000;  // 1
    @p  mov.f32 $0, $1;
    @!p mul.f32 $0, $1, 1.4426950408889634;
    @!p ex2.approx.ftz.f32 $0, $0;
    @!p add.f32 $0, $0, 1.0;
    @!p lg2.approx.ftz.f32 $0, $0;
    @!p mul.f32 $0, $0, 0.6931471805599453; }""")


@case((V, out(64)), np.where(V > 1, V, np.log1p(np.exp(V))), N=64)
@triton.jit
def ptx_with_predicates(x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(y + i, tl.inline_asm_elementwise(SOFTPLUS, "=r,r", [tl.load(x + i)], dtype=tl.float32, is_pure=True, pack=1))


BYTES = RNG.integers(0, 256, 16).astype(np.uint8)
UNPACK = tl.constexpr("""{
        .reg .b8 part<4>;
        mov.b32 {part0, part1, part2, part3}, $8;
        cvt.u32.u8 $0, part0; cvt.u32.u8 $1, part1; cvt.u32.u8 $2, part2; cvt.u32.u8 $3, part3;
    }
    cvt.rn.f32.s32 $4, $0; cvt.rn.f32.s32 $5, $1; cvt.rn.f32.s32 $6, $2; cvt.rn.f32.s32 $7, $3;
    max.f32 $4, $4, $9; max.f32 $5, $5, $10; max.f32 $6, $6, $11; max.f32 $7, $7, $12;""")


@case((BYTES, V[:16] * 100, out(16, dtype=np.int32), out(16)), BYTES, np.maximum(BYTES, V[:16] * 100), N=16)
@triton.jit
def ptx_of_four_at_a_time(x, floor, whole, above, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.inline_asm_elementwise(
        UNPACK,
        "=r,=r,=r,=r,=r,=r,=r,=r,r,r,r,r,r",
        [tl.load(x + i), tl.load(floor + i)],
        dtype=(tl.int32, tl.float32),
        is_pure=True,
        pack=4,
    )
    tl.store(whole + i, a)
    tl.store(above + i, b)


WORDS = RNG.integers(-(2**31), 2**31, 16).astype(np.int32)
U = WORDS.view(np.uint32)


@case((WORDS, out(16, dtype=np.uint32), out(16, dtype=np.uint32), out(16, dtype=np.uint32), out(16, dtype=ml_dtypes.bfloat16)),
      U << 3 | U >> 29, U & 0x0F0F0F0F | 0x00FF00FF, U.byteswap(), WORDS.astype(np.float32).astype(ml_dtypes.bfloat16), N=16)  # fmt: skip
@triton.jit
def ptx_of_bits(x, turned, logic, swapped, rounded, N: tl.constexpr):
    i = tl.arange(0, N)
    n = tl.load(x + i)
    turn: tl.constexpr = "{ .reg .b32 t; shl.b32 t, $1, 3; shr.u32 $0, $1, 29; or.b32 $0, $0, t; }"
    tl.store(turned + i, tl.inline_asm_elementwise(turn, "=r,r", [n], dtype=tl.uint32, is_pure=True, pack=1))
    lop: tl.constexpr = "lop3.b32 $0, $1, 0x0f0f0f0f, 0x00ff00ff, 0xea;"
    tl.store(logic + i, tl.inline_asm_elementwise(lop, "=r,r", [n], dtype=tl.uint32, is_pure=True, pack=1))
    tl.store(swapped + i, tl.inline_asm_elementwise("prmt.b32 $0, $1, 0, 0x0123;", "=r,r", [n], dtype=tl.uint32, is_pure=True, pack=1))
    two: tl.constexpr = "cvt.rn.bf16x2.f32 $0, $2, $1;"
    tl.store(rounded + i, tl.inline_asm_elementwise(two, "=r,f,f", [n.to(tl.float32)], dtype=tl.bfloat16, is_pure=True, pack=2))
