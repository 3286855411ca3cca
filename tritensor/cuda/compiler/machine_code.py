"""Global accesses by width and the hot loop of a kernel, read off the machine code in its cubin: a microsecond each, where a disassembler
takes a second."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
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
# HMMA, IMMA, DMMA; HGMMA, IGMMA, QGMMA of sm_90 and UTCHMMA of sm_100, the first operand in shared memory or in registers
_TENSOR = (0x23C, 0x237, 0x23F, 0x9F0, 0x9F1, 0x9F3, 0xDF0, 0xDF1, 0xDF3, 0x5EA, 0x9EA)


class Loop(NamedTuple):
    """A loop by its place in the code, first and last + 1: its instructions (without those that are only called), the bytes that a thread
    loads and stores in global memory in one pass, and its tensor-core instructions, each with those of loops within it."""

    first: int
    last: int
    instructions: int
    bytes: int
    tensor: int


@dataclass
class MachineCode:
    """What stands in a kernel's machine code: accesses to global memory by width in bits, asynchronous copies among the loads;
    instructions in all (without padding); those of the hot loop (0: there is none), and its loads.

    The hot loop is the longest of the innermost ones, by backward branches. `loops` are all that are nested properly. `reached` counts
    the instructions without those that are only called: the slow path of a division or a root.
    """

    loads: dict[str, int] = field(default_factory=dict)
    stores: dict[str, int] = field(default_factory=dict)
    instructions: int = 0
    loop: int = 0
    loop_loads: dict[str, int] = field(default_factory=dict)
    loops: list[Loop] = field(default_factory=list)
    reached: int = 0


def read(cubin: bytes, arch: int) -> MachineCode:
    """Decode a cubin for compute capability `arch` (80, 90, 100)."""
    total = MachineCode()
    for text in _sections(cubin):
        words = np.frombuffer(text, "<u8").reshape(-1, 2)
        operation = (words[:, 0] & 0xFFF).astype(np.int64)
        loads = _widths(words, operation, (*_LOADS, _COPY), arch)
        _add(total.loads, loads)
        _add(total.stores, _widths(words, operation, tuple(_STORES), arch))
        real = operation != _NOTHING
        total.instructions += int(real.sum())
        branches = _branches(words, operation, arch)
        backward = sorted({(to, at + 1) for at, to in branches.items() if to < at})
        reached = real & _reached(words, operation, branches)
        total.reached += int(reached.sum())
        total.loops += [_measured(words, operation, reached, arch, loop) for loop in _nested(backward, words, operation)]
        first, last = hot_loop(backward)
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


def _nested(branches: list[tuple[int, int]], words: np.ndarray, operation: np.ndarray) -> list[tuple[int, int]]:
    """The backward branches that close loops: not those from waiting code behind the kernel's end back into it."""
    ends = np.flatnonzero((operation == _EXIT) & _always(words))
    found: list[tuple[int, int]] = []
    for first, last in sorted(branches, key=lambda loop: loop[1] - loop[0]):
        crosses = any(first < a < last < b or a < first < b < last for a, b in found)
        if not crosses and not np.any((ends >= first) & (ends < last)):
            found.append((first, last))
    return sorted(found)


def _always(words: np.ndarray) -> np.ndarray:
    """Which instructions no predicate skips."""
    return np.asarray((words[:, 0] >> np.uint64(12) & np.uint64(15)) == _ALWAYS)


def _reached(words: np.ndarray, operation: np.ndarray, branches: dict[int, int]) -> np.ndarray:
    """Which instructions a thread can come to without a call."""
    always = _always(words)
    reached = np.zeros(len(operation), bool)
    todo = [0]
    while todo:
        at = todo.pop()
        while 0 <= at < len(operation) and not reached[at]:
            reached[at] = True
            if at in branches:
                todo.append(branches[at])
            if always[at] and (operation[at] in (_EXIT, *_BRANCHES[:1])):  # a uniform branch has its condition elsewhere
                break
            at += 1
    return reached


def _measured(words: np.ndarray, operation: np.ndarray, reached: np.ndarray, arch: int, loop: tuple[int, int]) -> Loop:
    """What one pass of a loop does."""
    words, operation, reached = words[slice(*loop)], operation[slice(*loop)], reached[slice(*loop)]
    widths = _widths(words, operation, (*_LOADS, _COPY, *_STORES), arch)
    return Loop(*loop, int(reached.sum()), sum(map(int, widths)) // 8, int(np.isin(operation, _TENSOR).sum()))


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
    found = []
    for at in np.flatnonzero(np.isin(operation, wanted)):
        shift = 10 if operation[at] == _COPY and arch >= 100 else 9
        found.append(str(8 * _BYTES[int(words[at, 1]) >> shift & 7]))
    return found


def _add(table: dict[str, int], widths: list[str]) -> None:
    for width, count in Counter(widths).items():
        table[width] = table.get(width, 0) + count


def _sections(cubin: bytes) -> Iterator[bytes]:
    """The code of an ELF file's functions."""
    (table,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", cubin, table + i * size) for i in range(count)]  # name, type, flags, address, offset, bytes
    for name, _, _, _, offset, nbytes in headers:
        at = headers[names][4] + name
        if cubin[at : cubin.index(b"\0", at)].startswith(b".text."):
            yield cubin[offset : offset + nbytes]
