"""Global accesses by width and the hot loop of a kernel, read off the machine code in its cubin: a microsecond each, where a disassembler
takes a second."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

# The low twelve bits of an instruction's first word say what it does.
_LOADS = {0x981: "LDG", 0x980: "LD"}
_COPY = 0xFAE  # LDGSTS, a load that goes to shared memory (cp.async)
_STORES = {0x986: "STG", 0x985: "ST"}
_BRANCHES = (0x947, 0x547)  # BRA, and BRA.U of sm_100
_NOTHING = 0x918  # NOP
_BYTES = (1, 1, 2, 2, 4, 8, 16, 16)  # by three bits of the second word: U8, S8, U16, S16, 32, 64, 128
_SHORT = 32  # instructions: a loop of fewer polls a barrier or reduces an angle, as long as there is a longer one
_EXIT, _ALWAYS = 0x94D, 7  # EXIT, and the predicate of an instruction that is not skipped
_APART = 0x945  # BSSY, before lanes of a warp may go ways of their own; its second half says where they meet again
# HMMA, IMMA, DMMA; HGMMA, IGMMA, QGMMA of sm_90 and UTCHMMA of sm_100, the first operand in shared memory or in registers
_TENSOR = (0x23C, 0x237, 0x23F, 0x9F0, 0x9F1, 0x9F3, 0xDF0, 0xDF1, 0xDF3, 0x5EA, 0x9EA)


class Loop(NamedTuple):
    """A loop by its place in the code, first and last + 1: the instructions of the longest way through it, the bytes that a thread
    loads and stores in global memory in one pass, its tensor-core instructions, and of those bytes the ones that go by 16 or more on the way where
    they are most; each with those of loops within it."""

    first: int
    last: int
    instructions: int
    bytes: int
    tensor: int
    wide: int = 0


@dataclass(kw_only=True)
class MachineCode:
    """What stands in a kernel's machine code: accesses to global memory by width in bits, asynchronous copies among the loads;
    instructions in all (without padding); those of the hot loop (0: there is none), and its loads.

    The hot loop is the longest of the innermost ones of `loops`, by backward branches. `longest` counts the instructions of the longest way
    through the code, each loop passed once: of two sides of a branch a warp takes one, unless its lanes may part, when it takes both.
    What is only called is left out: the slow path of a division or a root. `wide`: the bytes that a thread moves by accesses of 16 or more, on the
    way where they are most.
    """

    loads: dict[str, int] = field(default_factory=dict)
    stores: dict[str, int] = field(default_factory=dict)
    instructions: int = 0
    loop: int = 0
    loop_loads: dict[str, int] = field(default_factory=dict)
    loops: list[Loop] = field(default_factory=list)
    longest: int = 0
    wide: int = 0


def read(cubin: bytes, arch: int) -> MachineCode:
    """Decode a cubin for compute capability `arch` (80, 90, 100)."""
    total = MachineCode()
    for name, text in sections(cubin):
        if not name.startswith(b".text."):  # the code of functions
            continue
        words = np.frombuffer(text, "<u8").reshape(-1, 2)
        operation = (words[:, 0] & 0xFFF).astype(np.int64)
        loads = _widths(words, operation, (*_LOADS, _COPY), arch)
        _add(total.loads, loads)
        _add(total.stores, _widths(words, operation, tuple(_STORES), arch))
        real = operation != _NOTHING
        total.instructions += int(real.sum())
        branches = _branches(words, operation, arch)
        backward = sorted({(to, at + 1) for at, to in branches.items() if to < at})
        ways = ways_of(words, operation, branches)
        once, wide = real.astype(np.int64).tolist(), _wide_bytes(words, operation, arch).tolist()
        total.longest += longest_way(ways, once, 0, len(once))
        total.wide += longest_way(ways, wide, 0, len(wide))
        loops = nested(backward, np.flatnonzero((operation == _EXIT) & _always(words)).tolist())
        for loop in loops:
            total.loops.append(_measure_loop(words, operation, arch, loop, longest_way(ways, once, *loop), longest_way(ways, wide, *loop)))
        first, last = hot_loop(loops)
        if int(real[first:last].sum()) > total.loop:
            total.loop = int(real[first:last].sum())
            total.loop_loads = {}
            _add(total.loop_loads, _widths(words[first:last], operation[first:last], (*_LOADS, _COPY), arch))
    return total


def hot_loop(loops: list[tuple[int, int]]) -> tuple[int, int]:
    """(first, last + 1) of the longest innermost loop, short ones left out; (0, 0) where there is none."""
    long = [loop for loop in loops if loop[1] - loop[0] >= _SHORT] or loops
    inner = [a for a in long if not any(b != a and a[0] <= b[0] and b[1] <= a[1] for b in long)]
    return max(inner, key=lambda loop: loop[1] - loop[0], default=(0, 0))


def nested(branches: list[tuple[int, int]], ends: Collection[int]) -> list[tuple[int, int]]:
    """Of backward branches, each as (its target, its own place + 1), those that close loops. `ends`: where the code ends for good.

    Left out is what comes back from behind an end: code that waits for a barrier stands there, and its way back looks like a long loop.
    """
    found: list[tuple[int, int]] = []
    for first, last in sorted(branches, key=lambda loop: loop[1] - loop[0]):
        # loops nest or lie apart; what does neither is a jump back of another kind
        crosses = any(first < a < last < b or a < first < b < last for a, b in found)
        if not crosses and not any(first <= end < last for end in ends):
            found.append((first, last))
    return sorted(found)


def _always(words: np.ndarray) -> np.ndarray:
    """Which instructions no predicate skips."""
    return np.asarray((words[:, 0] >> np.uint64(12) & np.uint64(15)) == _ALWAYS)


def ways_of(words: np.ndarray, operation: np.ndarray, branches: dict[int, int]) -> list[tuple[int, ...]]:
    """Where a warp can go behind each instruction, calls left out. Where lanes may part, nothing is jumped over: some lanes go there."""
    meets = np.zeros(len(operation), np.int64)  # the end of the stretch in which lanes may have parted
    for at in map(int, np.flatnonzero(operation == _APART)):
        end = at + 1 + (int(words[at, 0]) >> 32) // 16
        meets[at:end] = np.maximum(meets[at:end], end)
    always = _always(words)
    found: list[tuple[int, ...]] = [(at + 1,) for at in range(len(operation))]
    for at in map(int, np.flatnonzero(always & (operation == _EXIT))):
        found[at] = ()
    for at, to in branches.items():
        goes_on = meets[at] or not (always[at] and operation[at] == _BRANCHES[0])  # a uniform branch has its condition elsewhere
        jumps = not at < to <= meets[at]
        found[at] = (at + 1,) * bool(goes_on) + (to,) * bool(jumps)
    return found


def longest_way(ways: list[tuple[int, ...]], weights: list[int], first: int, last: int) -> int:
    """The largest sum of instructions' weights on a way from `first` that stays before `last`, loops passed once."""
    longest: dict[int, int] = {}
    met: set[int] = set()
    todo = [first]
    while todo:  # depth first: a way back to what is not done yet closes a loop
        at = todo[-1]
        if at not in met:
            met.add(at)
            todo += [to for to in ways[at] if first <= to < last and to not in met]
            continue
        todo.pop()
        if at not in longest:
            longest[at] = weights[at] + max((longest.get(to, 0) for to in ways[at]), default=0)
    return longest[first]


def _measure_loop(words: np.ndarray, operation: np.ndarray, arch: int, loop: tuple[int, int], instructions: int, wide: int) -> Loop:
    """What one pass of a loop does."""
    words, operation = words[slice(*loop)], operation[slice(*loop)]
    widths = _widths(words, operation, (*_LOADS, _COPY, *_STORES), arch)
    return Loop(*loop, instructions, sum(map(int, widths)) // 8, int(np.isin(operation, _TENSOR).sum()), wide)


def _branches(words: np.ndarray, operation: np.ndarray, arch: int) -> dict[int, int]:
    """Each branch's place and its target's, in instructions. One to itself is the end of the code."""
    found = {}
    for at in map(int, np.flatnonzero(np.isin(operation, _BRANCHES))):
        low = int(words[at, 0])
        signed = low - (1 << 64) if low >> 63 else low
        steps = signed >> 34  # of four bytes; from sm_90 on the low eight bits stand elsewhere
        distance = 4 * (steps if arch < 90 else (steps << 8) | (low >> 16 & 0xFF))
        target = at + 1 + distance // 16
        if 0 <= target < len(operation):
            found[at] = target
    return found


def _widths(words: np.ndarray, operation: np.ndarray, wanted: tuple[int, ...], arch: int) -> list[str]:
    """The widths in bits of the accesses among some instructions."""
    return [str(8 * _size(words, operation, at, arch)) for at in map(int, np.flatnonzero(np.isin(operation, wanted)))]


def _wide_bytes(words: np.ndarray, operation: np.ndarray, arch: int) -> np.ndarray:
    """Of each instruction, the bytes that it moves between a thread and global memory, if they are 16 or more."""
    found = np.zeros(len(operation), np.int64)
    for at in map(int, np.flatnonzero(np.isin(operation, (*_LOADS, _COPY, *_STORES)))):
        size = _size(words, operation, at, arch)
        found[at] = size if size >= 16 else 0
    return found


def _size(words: np.ndarray, operation: np.ndarray, at: int, arch: int) -> int:
    """Bytes of one access."""
    return _BYTES[int(words[at, 1]) >> (10 if operation[at] == _COPY and arch >= 100 else 9) & 7]


def _add(table: dict[str, int], widths: list[str]) -> None:
    for width, count in Counter(widths).items():
        table[width] = table.get(width, 0) + count


def sections(cubin: bytes) -> Iterator[tuple[bytes, bytes]]:
    """(name, content) of an ELF file's sections."""
    (table,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", cubin, table + i * size) for i in range(count)]  # name, type, flags, address, offset, bytes
    for name, _, _, _, offset, nbytes in headers:
        at = headers[names][4] + name
        yield cubin[at : cubin.index(b"\0", at)], cubin[offset : offset + nbytes]
