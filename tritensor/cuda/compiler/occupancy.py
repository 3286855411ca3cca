"""Occupancy: how many blocks of a kernel one multiprocessor holds at a time, from what the kernel uses and what the GPU has."""

from __future__ import annotations

from typing import NamedTuple


class Limits(NamedTuple):
    """What a multiprocessor has: shared memory in bytes, of the whole and of one block at most; tensor memory in columns."""

    shared: int
    shared_per_block: int
    tensor_memory: int
    warps: int = 64
    blocks: int = 32
    registers: int = 65536


LIMITS = {
    80: Limits(164 << 10, 163 << 10, 0),
    90: Limits(228 << 10, 227 << 10, 0),
    100: Limits(228 << 10, 227 << 10, 512),
}
UNIT = 256  # registers: a warp is given a multiple of it, so registers of a thread count in steps of 8
PARTITIONS = 4  # of a multiprocessor: each has a quarter of the registers and runs a quarter of the warps
RESERVED = 1024  # bytes of shared memory that the system takes of every block
SHARED_UNIT = 128


class Occupancy(NamedTuple):
    """Blocks that a multiprocessor holds, and the warps of them together."""

    blocks: int
    warps: int


def occupancy(arch: int, registers: int, shared: int, warps: int, tensor_memory: int = 0) -> Occupancy:
    """Blocks on a multiprocessor of compute capability `arch` (80, 90, 100): the least of what each resource allows.

    `registers` of a thread, `shared` bytes, `warps` and `tensor_memory` columns of a block. With up(x, u), x rounded up to a multiple of u:

    - warps: 64 // warps, and at most 32 blocks
    - registers: 4 * (16384 // up(32 * registers, 256)) // warps: each quarter of the multiprocessor gives registers to whole warps;
      a block that does not fit 65536 with its warps rounded up to 4 cannot run: 0
    - shared memory: that of the multiprocessor // up(shared + 1024, 128); a block that takes more than it may have: 0
    - tensor memory (sm_100): 512 // columns

    Zero blocks mean that the kernel cannot be launched there. Barriers are not counted (a block would need three of them to matter).
    Source: cudaOccMaxActiveBlocksPerMultiprocessor in the CUDA Toolkit's cuda_occupancy.h (13.0), with the limits of the CUDA C++
    Programming Guide, "Technical Specifications per Compute Capability"; tensor memory: PTX ISA, "Tensor Memory" (512 columns, and
    an allocation holds them for the block's life). Raises KeyError for an arch that LIMITS does not list.
    """
    has = LIMITS[arch]
    of_warp = _up(32 * registers, UNIT)
    held = _up(shared + RESERVED, SHARED_UNIT)
    if shared > has.shared_per_block or of_warp * _up(warps, PARTITIONS) > has.registers or tensor_memory > has.tensor_memory:
        return Occupancy(0, 0)
    blocks = min(has.blocks, has.warps // warps, has.shared // held)
    # a kernel without registers is bound by warps alone
    if of_warp:
        blocks = min(blocks, PARTITIONS * (has.registers // PARTITIONS // of_warp) // warps)
    if tensor_memory:
        blocks = min(blocks, has.tensor_memory // tensor_memory)
    return Occupancy(blocks, blocks * warps)


def _up(n: int, unit: int) -> int:
    return -(-n // unit) * unit
