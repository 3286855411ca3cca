"""Memory report of a GPU: statistics, the table by size and by line, the text of an out-of-memory error."""

from __future__ import annotations

import gc
import linecache
import sys
from types import CodeType
from typing import Any, NamedTuple, Protocol

from tritensor.cuda.memory.size_classes import LARGE, Row
from tritensor.ground.call_site import file_and_line, line_of

_SHOWN = 6  # lines of the user's program that an error names


class Accounts(Protocol):
    """What a report asks of a device's books: `CachingAllocator` keeps them for a GPU, `Ledger` for the emulated device."""

    index: int
    live: int
    peak: int
    limbo_bytes: int
    limit: int | None
    retries: int
    ooms: int
    source_allocations: int
    source_frees: int
    large: dict[int, tuple[int, CodeType, int]]

    @property
    def reserved(self) -> int: ...

    @property
    def peak_reserved(self) -> int: ...

    def info(self) -> tuple[int, int]: ...

    def rows(self) -> list[Row]: ...

    def uncut_bytes(self) -> int: ...

    def mapped(self) -> list[tuple[int, int, int, int | None]]: ...

    def empty_cache(self) -> None: ...

    def reset_peaks(self) -> None: ...


class Holding(NamedTuple):
    """The live allocations that one line of the user's program has made."""

    place: str  # file:line
    function: str
    text: str  # the line itself, where the file is there
    nbytes: int
    times: int


def size(nbytes: int) -> str:
    """Bytes for people: 512 B, 1.50 KiB, 12.00 GiB."""
    if nbytes < 1024:
        return f"{nbytes} B"
    step = min((nbytes.bit_length() - 1) // 10, 4)
    return f"{nbytes / 1024**step:.2f} {('', 'KiB', 'MiB', 'GiB', 'TiB')[step]}"


def place_of(code: CodeType, instruction: int) -> str:
    """`file:line` of an instruction of a code object."""
    return file_and_line(*line_of(code, instruction))


def holdings(accounts: Accounts) -> list[Holding]:
    """Who asked for what is live, the largest first. On a GPU only blocks of 1 MiB and more are attributed."""
    by_line: dict[tuple[str, int, str, str], list[int]] = {}
    for nbytes, code, instruction in tuple(accounts.large.values()):
        key = (*line_of(code, instruction), code.co_qualname, place_of(code, instruction))
        found = by_line.setdefault(key, [0, 0])
        found[0] += nbytes
        found[1] += 1
    out = [
        Holding(place, function, linecache.getline(name, line).strip(), nbytes, count)
        for (name, line, function, place), (nbytes, count) in by_line.items()
    ]
    return sorted(out, key=lambda h: (-h.nbytes, h.place))


def free_bytes(accounts: Accounts) -> int:
    """Bytes of blocks that lie on free lists."""
    return sum([r.size * r.free for r in accounts.rows()])


def stats(accounts: Accounts) -> dict[str, int]:
    """Counters under PyTorch's names; bytes by size class, as reserved for a tensor. What is not counted has no key.

    allocated: held by live tensors. active: the same and blocks freed that other streams may still use. reserved: taken from the
    driver. inactive: reserved and free to be handed out. allocation, segment: blocks and driver allocations that exist.
    small_pool: blocks under 1 MiB, large_pool: the others.
    """
    rows = accounts.rows()
    small = [r for r in rows if r.size < LARGE]
    large = [r for r in rows if r.size >= LARGE]
    slabs = accounts.mapped()
    out: dict[str, int] = {}
    for name, part in (("all", rows), ("small_pool", small), ("large_pool", large)):
        out[f"allocation.{name}.current"] = sum([r.live for r in part])
        out[f"allocated_bytes.{name}.current"] = sum([r.size * r.live for r in part])
        out[f"active.{name}.current"] = sum([r.live + r.limbo for r in part])
        out[f"active_bytes.{name}.current"] = sum([r.size * (r.live + r.limbo) for r in part])
        out[f"inactive_bytes.{name}.current"] = sum([r.size * r.free for r in part])
    out["allocated_bytes.all.current"] = accounts.live
    out["allocated_bytes.all.peak"] = accounts.peak
    out["active_bytes.all.current"] = accounts.live + accounts.limbo_bytes
    out["reserved_bytes.all.current"] = accounts.reserved
    out["reserved_bytes.all.peak"] = accounts.peak_reserved
    out["reserved_bytes.small_pool.current"] = sum([n for _, n, _, _ in slabs])
    out["reserved_bytes.large_pool.current"] = accounts.reserved - out["reserved_bytes.small_pool.current"]
    out["segment.small_pool.current"] = len(slabs)
    out["segment.large_pool.current"] = sum([r.made for r in large])
    out["segment.all.current"] = accounts.source_allocations - accounts.source_frees
    out["uncut_bytes.all.current"] = accounts.uncut_bytes()
    out["num_alloc_retries"] = accounts.retries
    out["num_ooms"] = accounts.ooms
    out["num_device_alloc"] = accounts.source_allocations
    out["num_device_free"] = accounts.source_frees
    return out


def summary(accounts: Accounts, abbreviated: bool = False) -> str:
    """A table of the numbers, of blocks by size class, and of the lines whose allocations live."""
    free, total = accounts.info()
    cached = free_bytes(accounts)
    out = [f"memory of cuda:{accounts.index}"]
    for name, now, peak in (
        ("allocated (live tensors)", accounts.live, size(accounts.peak)),
        ("cached, free to be used", cached, ""),
        ("waiting for other streams", accounts.limbo_bytes, ""),
        ("not cut into blocks yet", accounts.uncut_bytes(), ""),
        ("reserved by this process", accounts.reserved, size(accounts.peak_reserved)),
        ("others and the driver", max(0, total - free - accounts.reserved), ""),
        ("free on the device", free, ""),
        ("the device", total, ""),
    ):
        out.append(f"  {name:<26}{size(now):>12}{'   peak ' + peak if peak else ''}")
    out.append(f"  allocations from the driver {accounts.source_allocations}, returned {accounts.source_frees}")
    out.append(f"  cache given back to serve a request {accounts.retries} times, out of memory {accounts.ooms} times")
    if abbreviated:
        return "\n".join(out)
    by_class: dict[int, list[int]] = {}
    for r in accounts.rows():
        sums = by_class.setdefault(r.size, [0, 0, 0])
        for i, n in enumerate((r.live, r.free, r.limbo)):
            sums[i] += n
    out.append(f"  {'block of':>12}{'live':>10}{'free':>10}{'waiting':>10}{'bytes live':>14}")
    for block, (live, lying, waiting) in sorted(by_class.items()):
        out.append(f"  {size(block):>12}{live:>10}{lying:>10}{waiting:>10}{size(block * live):>14}")
    found = holdings(accounts)
    if found:
        out.append("  live, by the line that asked:")
        out += _lines(found, len(found))
    rest = accounts.live - sum([h.nbytes for h in found])
    if rest > 0:
        out.append(f"  {size(rest):>12} in blocks under 1 MiB, whose lines are not recorded")
    return "\n".join(out)


def _lines(found: list[Holding], most: int) -> list[str]:
    out = []
    for h in found[:most]:
        times = f" in {h.times} allocations" if h.times > 1 else ""
        out.append(f"  {size(h.nbytes):>12}{times} at {h.place} in {h.function}{': ' + h.text if h.text else ''}")
    if len(found) > most:
        out.append(f"  {size(sum([h.nbytes for h in found[most:]])):>12} at {len(found) - most} other lines")
    return out


def snapshot(accounts: Accounts) -> list[dict[str, Any]]:
    """Live blocks of known origin (see `holdings`), one dict each: address, size, frames, as in PyTorch's snapshots."""
    out = []
    for pointer, (nbytes, code, instruction) in sorted(accounts.large.items()):
        name, line = line_of(code, instruction)
        frames = [{"filename": name, "line": line, "name": code.co_qualname}]
        out.append({"device": accounts.index, "address": pointer, "size": nbytes, "state": "active_allocated", "frames": frames})
    return out


def saved_for_backward(index: int) -> int:
    """Bytes of a GPU that recorded ops have saved for their gradients; counted by a walk over all Python objects."""
    node = getattr(sys.modules.get("tritensor.autograd.node"), "Node", None)
    if node is None:
        return 0
    storages: dict[int, int] = {}
    for found in [o for o in gc.get_objects() if isinstance(o, node)]:
        kept = [getattr(x, "_array", x) for x in found.inputs or ()] + [x[0] for x in found.outputs or () if x]
        for array in kept:
            storage = getattr(array, "storage", None)
            if storage is not None and (storage.device.index or 0) == index:
                storages[storage.pointer] = storage.nbytes
    return sum(storages.values())


# out of memory
def out_of_memory(accounts: Accounts, asked: int, capturing: bool = False) -> str:
    """The text of an OutOfMemoryError: asked, there, who holds it, and what would help in this case."""
    free, total = accounts.info()
    cached = accounts.reserved - accounts.live - accounts.limbo_bytes
    others = max(0, total - free - accounts.reserved)
    saved = saved_for_backward(accounts.index)
    out = [
        f"cuda:{accounts.index}: out of memory: {size(asked)} ({asked} bytes) asked, {size(free)} of {size(total)} are free on the device; "
        f"this process has reserved {size(accounts.reserved)} (live tensors hold {size(accounts.live)}, {size(cached)} are cached"
        + (f", {size(accounts.limbo_bytes)} wait for other streams" if accounts.limbo_bytes else "")
        + f"), other processes and the driver have {size(others)}"
    ]
    if accounts.limit is not None:
        out[0] += f"; set_per_process_memory_fraction allows this process {size(accounts.limit)}"
    found = holdings(accounts)
    if found:
        out.append("the largest live allocations, by the line that asked:")
        out += _lines(found, _SHOWN)
    advice = _advice(accounts, asked, free, total, cached, others, saved, capturing)
    out += [f"{'what may help: ' if i == 0 else '               '}{line}" for i, line in enumerate(advice)]
    return "\n".join(out)


def _advice(
    accounts: Accounts, asked: int, free: int, total: int, cached: int, others: int, saved: int, capturing: bool
) -> list[str]:  # fmt: skip
    """What fits the case, the surest first."""
    out = []
    limit = accounts.limit
    if capturing:
        out.append("a graph is being captured, and the cache cannot be given back meanwhile: call empty_cache() before the capture")
    if asked > total:
        out.append(f"no device of {size(total)} can hold {size(asked)} at once: check the shape, or compute it in parts")
        return out
    if limit is not None and accounts.reserved + asked > limit and free >= asked:
        out.append("the limit, not the device, refuses: raise it with set_per_process_memory_fraction")
    elif others >= asked - free and others > total // 10:
        out.append(f"other processes hold {size(others)} of this device; nvidia-smi shows which")
    if cached + accounts.uncut_bytes() >= asked or (cached > total // 10 and not capturing):
        private = sum([r.size * (r.made - r.live) for r in accounts.rows() if r.pool is not None])
        if private:
            out.append(f"{size(private)} of the cache belong to captured graphs: drop graphs that are not replayed any more")
        if cached - private > asked:
            where = "lie in slabs of 2 MiB of which some small tensor still lives"
            out.append(f"{size(cached - private)} are cached but in pieces: they {where}; make long-lived small tensors first")
    if free >= asked and limit is None:
        out.append(f"{size(free)} are free but not in one piece, or the driver keeps them back: ask for smaller pieces")
    if saved >= max(asked // 2, LARGE):
        out.append(
            f"{size(saved)} are saved for backward: no_grad() where no gradient is needed, .item() or .detach() on losses that are "
            "kept, a smaller batch, or checkpointing"
        )
    elif accounts.live:
        out.append("a smaller batch, or del of tensors that are not needed any more; tritensor.cuda.why_alive() tells who holds them")
    return out or [f"a smaller request: {size(free)} are free"]
