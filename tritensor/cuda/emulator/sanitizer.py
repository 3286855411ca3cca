"""Sanitizer of the emulated device: accesses outside a tensor, racing programs and masked lanes that are read raise here; a GPU would go on."""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tritensor.cuda.emulator import last_writer
from tritensor.cuda.emulator.address_overflow import KEY, Exact
from tritensor.cuda.emulator.instructions.arithmetic import rounded_to_tf32
from tritensor.cuda.emulator.local_stores import OwnStores
from tritensor.cuda.emulator.source_lines import kernel_line, shown
from tritensor.ground.errors import LaunchError
from tritensor.ground.strides import memory_extent

_GUARDED = -2  # in place of a program's number: stored to by one that held a lock
_MEANT = "; narrow the mask or the grid, or say that it is meant: check_kernel(..., repeats=...), TRITENSOR_EQUAL_STORES=pass"
_PATIENCE = 2_000  # compare-and-swaps: programs run one after another, so that nobody else will change the value


class SanitizerError(LaunchError):
    """A kernel touched what it must not; names kernel, program, argument and element."""


class Window(NamedTuple):
    """The memory an array argument spans: bytes low..high-1 hold its elements, `start` its first one.

    `base` and `nbytes` are the allocation it lies in.
    """

    name: str
    start: int
    low: int
    high: int
    itemsize: int
    base: int
    nbytes: int
    text: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @classmethod
    def of(cls, name: str, x: Any) -> Window:
        """The span between the first and the last element of a strided array."""
        start, item = x.data_ptr(), x.dtype.itemsize
        low = high = start
        if 0 not in x.shape:
            first, last = memory_extent(x.shape, x.strides)
            # A descriptor may claim more than its tensor's memory: what lies beyond is outside all the same.
            low = max(low + item * first, x.storage.pointer)
            high = min(high + item * (1 + last), x.storage.pointer + x.storage.nbytes)
        text = f"{x.dtype.name}{list(x.shape)} with strides {list(x.strides)}"
        return cls(name, start, low, high, item, x.storage.pointer, x.storage.nbytes, text, tuple(x.shape), tuple(x.strides))

    def cell(self, address: int) -> str:
        """ "x[3, 17]": the element at an address, in the array's own coordinates; one beyond its end counts on along the dimension of the
        longest stride, and one between its elements is said to lie so many behind the element before it."""
        left = (address - self.start) // self.itemsize
        index = [0] * len(self.shape)
        dims = [d for d, (n, s) in enumerate(zip(self.shape, self.strides, strict=True)) if n > 1 and s]
        dims = dims or [d for d, s in enumerate(self.strides) if s][-1:]
        left -= sum(self.strides[d] * (self.shape[d] - 1) for d in dims if self.strides[d] < 0)
        for k, d in enumerate(sorted(dims, key=lambda d: -abs(self.strides[d]))):
            steps = left // abs(self.strides[d])
            steps = steps if k == 0 else max(0, min(steps, self.shape[d] - 1))
            index[d] = steps if self.strides[d] > 0 else self.shape[d] - 1 - steps
            left -= steps * abs(self.strides[d])
        where = f"{self.name}{index}" if index else self.name
        return where if not left else f"{where} {'+' if left > 0 else '-'} {abs(left)}"

    def extent(self) -> str:
        """What elements there are: "elements 0 to 36"."""
        if 0 in self.shape:
            return "no elements"
        if not self.shape:
            return "one element"
        first, last = ([0 for _ in self.shape], [n - 1 for n in self.shape])
        return f"elements {first[0]} to {last[0]}" if len(self.shape) == 1 else f"elements {first} to {last}"

    def mend(self, low: int, high: int) -> str:
        """What to do about addresses that lie outside, where they would lie inside if the array were contiguous, or had the memory that it claims."""
        if self.base + self.nbytes < high <= self.start + self.itemsize * (1 + memory_extent(self.shape, self.strides)[1]):
            return "; it was described as larger than the memory of its tensor is: give the descriptor that one's shape"
        if self.start <= low and high <= self.start + math.prod(self.shape) * self.itemsize:
            return f"; the kernel takes it for contiguous, which it is not: give {self.name}.contiguous(), or its strides"
        return ""


class Sanitizer:
    """Watches one launch of the programs `points`. `number` is the place among them, counted from 1, of the program that runs now.

    - A lane outside the span of the argument its pointer came from is an error; a pointer of unknown origin (read from
      memory) must lie in a live allocation. `allocation(address)` finds it: (base, nbytes) or None.
    - A cell that two programs store different values to is an error; where stores are recorded, which is where a test asks, also one that they store
      the same value to (see `equal_stores_pass`). So is a cell that one stores and another loads, in whichever order. Atomics are exempt, and once a
      launch has used one, its loads are too (the last one sums). Stores of programs that hold a lock, which is a cell that they have compared
      and swapped, are no error among themselves.
    - `error_records` are those allocations (see device_errors.py), which all programs share: only a program whose
      compare-and-swap claimed one may write there, nobody loads them, and they make no launch a synchronised one.
    - An offset that came out of int32 arithmetic which wrapped around (see address_overflow.py) is an error where it is used.
    - Lanes of one store that put different values into one cell are an error.
    - Where stores are recorded, a lane that loads what another lane of its program stored, without tl.debug_barrier() between (see local_stores.py).
      One warp is in step with itself. An atomic is taken for a barrier.
    - A masked-off lane of a load without `other` holds NaN, inf or -inf in turn (an integer its largest or smallest
      value) instead of 0: sums show the first, maxima and minima the others.
    """

    def __init__(
        self, kernel: str, points: Sequence[tuple[int, ...]], warps: int, allocation: Callable[[int], tuple[int, int] | None],
        error_records: frozenset[int] = frozenset(),
    ) -> None:  # fmt: skip
        self.kernel = kernel
        self.allocation = allocation
        self.error_records = error_records
        self._locks: set[int] = set()  # addresses of the cells that a program swapped and has not written to since
        self._locks_of = 0  # the number of that program
        self._waited = 0  # its compare-and-swaps that found another value, one after another
        self._claimed = 0  # the number of the program that claimed the error record
        self.points = points
        self.number = 0
        self.many = len(points) > 1
        self.synchronised = False
        self._shadows: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self._turn = len(kernel) + len(points)
        self.record = last_writer.current()
        self.equal_pass = equal_stores_pass(self.record is not None)
        self._own = OwnStores() if self.record is not None and warps > 1 else None

    @property
    def program(self) -> tuple[int, ...]:
        """The program that runs now."""
        return self.points[self.number - 1] if self.number else (0, 0, 0)

    def begin(self, number: int) -> None:
        """The program of this number runs from now on."""
        self.number = number
        self.barrier()

    def barrier(self) -> None:
        """All threads of the program have come here."""
        if self._own is not None:
            self._own.barrier()

    def load(self, ptrs: Any, mask: np.ndarray) -> None:
        for part in self._parts(ptrs, mask):
            self._load(ptrs, part)

    def _load(self, ptrs: Any, mask: np.ndarray) -> None:
        lanes, active, base, nbytes, window = self._lanes("load", ptrs, mask)
        if base in self.error_records and lanes.size:
            raise self.error("loads an error record; only the host reads it")
        if self._own is not None and lanes.size:
            self._refuse_unseen(lanes, active, base, window)
        # a launch of one program races with nobody
        if not self.many or lanes.size == 0 or self.synchronised:
            return
        writers, readers = self._shadow(base, nbytes)
        at = lanes - base
        self._refuse(at, writers[at], "loads", "stored to", base, window)
        seen = readers[at]
        readers[at] = np.where((seen == 0) | (seen == self.number), self.number, -1)

    def store(self, ptrs: Any, values: np.ndarray, mask: np.ndarray) -> None:
        for part in self._parts(ptrs, mask):
            self._store(ptrs, values, part)

    def _store(self, ptrs: Any, values: np.ndarray, mask: np.ndarray) -> None:
        lanes, active, base, nbytes, window = self._lanes("store", ptrs, mask)
        if lanes.size > 1:
            self._one_value_each(lanes, values, active, window)
        if base in self.error_records:
            self._as_claimed(lanes)
            return
        if lanes.size and self._own is not None:
            self._own.stored(lanes - base, np.flatnonzero(active), active.size, base, nbytes)
        if not self.many or lanes.size == 0:
            self._note(lanes, base, nbytes)
            return
        writers, readers = self._shadow(base, nbytes)
        at = lanes - base
        others = writers[at]
        if ((others != 0) & (others != self.number)).any():
            differ = _changed(lanes, _stored_bits(values, active))
            self._refuse(at, np.where(differ, others, 0), "stores to", "stored to", base, window)
            # first what makes results depend on the order, which nothing excuses; then what only costs bandwidth
            passes = self.equal_pass or (window is not None and self.record is not None and window.name in self.record.repeated)
            others = np.zeros_like(others) if passes else others
            self._refuse(at, others, "stores to", "stored the same value to", base, window, _MEANT)
        if not self.synchronised:
            self._refuse(at, readers[at], "stores to", "loaded", base, window)
        self._note(lanes, base, nbytes)
        writers[at] = _GUARDED if self._locks_of == self.number and self._locks else self.number
        self._release(lanes)

    def _note(self, lanes: np.ndarray, base: int, nbytes: int) -> None:
        """Record who stored, after the store has been found to be no clash: until then the record says who was there before."""
        if lanes.size and self.record is not None:
            self.record.note(self.kernel, self.program, lanes, base, nbytes)

    def atomic(self, ptrs: Any, mask: np.ndarray) -> None:
        self.barrier()
        for part in self._parts(ptrs, mask):
            lanes, _, base, nbytes, _ = self._lanes("atomic", ptrs, part)
            if base in self.error_records:
                self._as_claimed(lanes)
            else:
                self.synchronised = True
                self._release(lanes)
                self._note(lanes, base, nbytes)

    def swap(self, ptrs: Any) -> None:
        """A compare-and-swap is about to be made."""
        self.barrier()
        for part in self._parts(ptrs, np.ones(ptrs.data.shape, bool)):
            _, _, base, _, _ = self._lanes("atomic", ptrs, part)
            self.synchronised |= base not in self.error_records

    def swapped(self, ptrs: Any, done: np.ndarray) -> None:
        """It was made, in the lanes where `done`: who swaps the first field of an error record has claimed it; who swaps any other cell holds a lock there
        until it writes to that cell again."""
        lanes = np.broadcast_to(ptrs.data, done.shape)[done].astype(np.int64)
        if lanes.size and (found := self.allocation(int(lanes[0]))) is not None and found[0] not in self.error_records:
            held = self._locks if self._locks_of == self.number else set()
            self._locks, self._locks_of, self._waited = held ^ set(lanes.tolist()), self.number, 0
        elif lanes.size:
            self._claimed = self.number
        else:
            self._waited += 1
            if self._waited > _PATIENCE:
                raise self.error(f"waits for ever: {_PATIENCE} compare-and-swaps one after another found another value")

    def _release(self, lanes: np.ndarray) -> None:
        if self._locks:
            self._locks.difference_update(lanes.tolist())

    def _parts(self, ptrs: Any, mask: np.ndarray) -> Iterator[np.ndarray]:
        """The mask, taken apart by allocation where pointers do not say which argument they came from: they may go into several."""
        if "argument" in ptrs.attr or not mask.any():
            yield mask
            return
        addresses, active = np.broadcast_arrays(ptrs.data, mask)
        left = active.copy()
        while left.any():
            found = self.allocation(int(addresses[left].min()))
            part = left if found is None else left & (addresses < sum(found))
            yield part
            left = left & ~part

    def _as_claimed(self, lanes: np.ndarray) -> None:
        """Raise when a program writes to an error record that it has not claimed."""
        if lanes.size and self._claimed != self.number:
            raise self.error("writes to an error record that it has not claimed by a compare-and-swap of its first field")

    def poison(self, like: np.ndarray) -> np.ndarray:
        """What masked-off lanes of a load without `other` hold."""
        if like.dtype.kind in "iu":
            kinds = np.array([np.iinfo(like.dtype).max, np.iinfo(like.dtype).min], like.dtype)
        else:
            kinds = np.array([np.nan, np.inf, -np.inf]).astype(like.dtype)
        # another of the three at each load, so that no kernel is right by chance
        self._turn += 1
        return kinds[(np.arange(like.size) + self._turn) % len(kinds)].reshape(like.shape)

    def to_tensor_cores(self, x: np.ndarray) -> np.ndarray:
        """A float32 operand as tensor cores take it where a kernel does not say input_precision="ieee": rounded to tf32. Only where a test asks, since
        a program that trains means it."""
        if self.record is None:
            return x
        self.record.rounding.add(self.kernel)
        return rounded_to_tf32(x)

    def _lanes(self, what: str, ptrs: Any, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray, int, int, Window | None]:
        """Addresses of the active lanes, all checked; which lanes they are; their allocation; the argument they belong to."""
        addresses, active = (ptrs.data, mask) if mask.shape == ptrs.data.shape else np.broadcast_arrays(ptrs.data, mask)
        active = active.reshape(-1)
        lanes = addresses.reshape(-1)[active].view(np.int64)
        window: Window | None = ptrs.attr.get("argument")
        base, nbytes = (window.base, window.nbytes) if window is not None else (0, 0)
        if lanes.size:
            self._refuse_wrapped(what, ptrs, active, window)
            size = max(1, ptrs.get_element_ty().primitive_bitwidth // 8)
            low, high = int(lanes.min()), int(lanes.max()) + size
            if window is None:
                found = self.allocation(low)
                if found is None or high > sum(found):
                    raise self.error(f"{what} at address {low:#x}, which is in no live tensor (or reaches past its end)")
                base, nbytes = found
            elif low < window.low or high > window.high:
                bad = low if low < window.low else high - size
                raise self.error(
                    f"{what} of {window.cell(bad)}, but {window.name} has {window.extent()} ({window.text}){window.mend(low, high)}"
                )
        return lanes, active, base, nbytes, window

    def _refuse_wrapped(self, what: str, ptrs: Any, active: np.ndarray, window: Window | None) -> None:
        """Raise when the offset of an active lane is the result of int32 arithmetic that wrapped around."""
        wrapped: Exact | None = ptrs.attr.get(KEY)
        if wrapped is not None and (np.broadcast_to(wrapped.values, ptrs.data.shape).reshape(-1) & active).any():
            whose = window.name if window is not None else "memory"
            raise self.error(f"{what} of {whose} at an offset that wrapped around int32 ({wrapped.where}); compute it in int64")

    def _shadow(self, base: int, nbytes: int) -> tuple[np.ndarray, np.ndarray]:
        """Per byte of an allocation: the program that stored to it, and the one that loaded it (-1: several)."""
        found = self._shadows.get(base)
        if found is None:
            found = self._shadows[base] = (np.zeros(nbytes, np.int32), np.zeros(nbytes, np.int32))
        return found

    def _refuse(self, at: np.ndarray, seen: np.ndarray, does: str, did: str, base: int, window: Window | None, mend: str = "") -> None:
        """Raise when another program touched one of the cells before."""
        clash = (seen != 0) & (seen != self.number)
        if self._locks and self._locks_of == self.number:
            clash &= seen != _GUARDED
        if clash.any():
            cell, other = int(at[clash][0]) + base, int(seen[clash][0])
            who = f"program {self.points[other - 1]}" if other > 0 else "several programs"
            where = self._stored_elsewhere(base, cell) if did != "loaded" else ""
            raise self.error(f"{does} {self._cell(cell, window)}, which {who} of this launch {did} as well{where}{mend}")

    def _stored_elsewhere(self, base: int, cell: int) -> str:
        """ ", in softmax.py:31: tl.store(y, v)": the line that stored to a cell, where it is recorded and not the one that runs now."""
        store = self.record.of(base, cell) if self.record is not None else None
        return f", in {said}" if store is not None and (said := shown(store.lines)) != kernel_line() else ""

    def _refuse_unseen(self, lanes: np.ndarray, active: np.ndarray, base: int, window: Window | None) -> None:
        """Raise when a lane loads what another of the same program stored, and no barrier stands between."""
        assert self._own is not None
        foreign = self._own.foreign(lanes - base, np.flatnonzero(active), active.size, base)
        if foreign.any():
            cell = int(lanes[foreign][0])
            raise self.error(
                f"loads {self._cell(cell, window)}, which another thread of this program stores{self._stored_elsewhere(base, cell)}, perhaps later; "
                "put tl.debug_barrier() between, or keep the tile in registers"
            )

    def _one_value_each(self, lanes: np.ndarray, values: np.ndarray, active: np.ndarray, window: Window | None) -> None:
        """Raise when lanes of one store disagree on what goes into a cell."""
        # stable: of equal addresses the first lane stays first, which is the one that a message names
        order = np.argsort(lanes, kind="stable")
        twice = lanes[order[1:]] == lanes[order[:-1]]
        if not twice.any():
            return
        bits = _stored_bits(values, active)[order]
        differ = twice & (bits[1:] != bits[:-1])
        if differ.any():
            cell = int(lanes[order[1:]][differ][0])
            raise self.error(f"two lanes of one store put different values into {self._cell(cell, window)}")

    def _cell(self, address: int, window: Window | None) -> str:
        return f"address {address:#x}" if window is None else window.cell(address)

    def error(self, text: str) -> SanitizerError:
        """The error that says what the running program did, and in which line."""
        return SanitizerError(f"{self.kernel}: program {self.program}: {text} ({kernel_line()})")


def equal_stores_pass(tested: bool) -> bool:
    """Whether programs may store the same value, bit for bit, to one cell: it is there in whichever order they run, and on a GPU it costs bandwidth alone.
    Where a test asks it mostly shows a tile that is too wide, which other numbers would make wrong. TRITENSOR_EQUAL_STORES is pass or refuse for
    both; ValueError for anything else."""
    asked = os.environ.get("TRITENSOR_EQUAL_STORES") or ("refuse" if tested else "pass")
    if asked not in ("pass", "refuse"):
        raise ValueError(f"TRITENSOR_EQUAL_STORES={asked}: it is pass or refuse")
    return asked == "pass"


def _stored_bits(values: np.ndarray, active: np.ndarray) -> np.ndarray:
    """What the active lanes of a store put into memory, as unsigned integers."""
    every = np.broadcast_to(values.reshape(-1), active.shape) if values.size == 1 else values.reshape(-1)
    stored = np.ascontiguousarray(every[active])
    return stored.view(f"u{stored.dtype.itemsize}")


def _changed(lanes: np.ndarray, bits: np.ndarray) -> np.ndarray:
    """Which of the elements at these addresses, all in live memory, hold other bits now."""
    low, size = int(lanes.min()), bits.dtype.itemsize
    # read by address: a pointer loaded from memory has no array behind it
    memory = np.ctypeslib.as_array((ctypes.c_uint8 * (int(lanes.max()) + size - low)).from_address(low))
    held = memory[(lanes - low)[:, None] + np.arange(size)]
    return np.ascontiguousarray(held).view(bits.dtype).reshape(-1) != bits
