"""Tiles of memory in a kernel: descriptors made there, of arguments and of addresses that the kernel read, and block pointers where Triton has them."""

from __future__ import annotations

import pytest
import triton
import triton.language as tl

import tritensor as tt
from tritensor.cuda.emulator.sanitizer import SanitizerError
from tritensor.ground.errors import LaunchError

VERSION = tuple(int(n) for n in triton.__version__.split(".")[:2])


@triton.jit
def sum_of_rows(addresses, sizes, out, BLOCK: tl.constexpr):
    which = tl.program_id(0)
    rows, columns = tl.load(sizes + 2 * which), tl.load(sizes + 2 * which + 1)
    pointer = tl.load(addresses + which).to(tl.pointer_type(tl.float32))
    matrix = tl.make_tensor_descriptor(pointer, shape=[rows, columns], strides=[columns, 1], block_shape=[BLOCK, BLOCK])
    tl.store(out + which, tl.sum(tl.sum(matrix.load([0, 0]), 1), 0))


@triton.jit
def doubled(x, y, rows, columns, BLOCK: tl.constexpr):
    source = tl.make_block_ptr(x, (rows, columns), (columns, 1), (0, 0), (BLOCK, BLOCK), (1, 0))
    target = tl.make_block_ptr(y, (rows, columns), (columns, 1), (0, 0), (BLOCK, BLOCK), (1, 0))
    for _ in range(0, columns, BLOCK):
        tl.store(target, tl.load(source, boundary_check=(0, 1)) * 2, boundary_check=(0, 1))
        source, target = tl.advance(source, (0, BLOCK)), tl.advance(target, (0, BLOCK))


@triton.jit
def unchecked(x, y, rows, columns, BLOCK: tl.constexpr):
    source = tl.make_block_ptr(x, (rows, columns), (columns, 1), (0, 0), (BLOCK, BLOCK), (1, 0))
    tl.store(y, tl.sum(tl.sum(tl.load(source), 1), 0))


def test_matrices_by_address() -> None:
    a, b = tt.ones(6, 16, device="cuda"), tt.full((8, 4), 2.0, device="cuda")
    out = tt.zeros(2, device="cuda")
    addresses = tt.tensor([a.data_ptr(), b.data_ptr()], device="cuda")
    sum_of_rows[(2,)](addresses, tt.tensor([[6, 16], [8, 4]], dtype=tt.int32, device="cuda"), out, BLOCK=16)
    assert out.tolist() == [96.0, 64.0]
    with pytest.raises(SanitizerError, match=r"which is in no live tensor \(or reaches past its end\)"):
        sum_of_rows[(2,)](addresses, tt.tensor([[6, 16], [8, 16]], dtype=tt.int32, device="cuda"), out, BLOCK=16)


def test_block_pointers() -> None:
    x, y = tt.randn(6, 20, device="cuda"), tt.zeros(6, 20, device="cuda")
    if VERSION >= (3, 9):
        with pytest.raises(LaunchError, match="Block pointers have been removed"):
            doubled[(1,)](x, y, 6, 20, BLOCK=8)
        return
    doubled[(1,)](x, y, 6, 20, BLOCK=8)
    assert y.tolist() == (2 * x).tolist()
    with pytest.raises(SanitizerError, match=r"load of x\[7, 7\], but x has elements \[0, 0\] to \[5, 19\]"):
        unchecked[(1,)](x, y, 8, 20, BLOCK=8)
