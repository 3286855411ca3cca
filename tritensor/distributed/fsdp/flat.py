"""FlatShards: this process' rows of some parameters of one type in one piece of memory, gathered and reduced by one message each."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from typing import Any

import numpy as np

from tritensor.autograd.node import version_of
from tritensor.distributed.backends.one_process import copy_into
from tritensor.distributed.collectives import all_gather_into_tensor, all_reduce, reduce_scatter_tensor
from tritensor.distributed.data_parallel.buckets import add_into, divide_into, fill_zeros
from tritensor.distributed.fsdp.sharded_parameter import ShardedParameter, find_rows, get_row_size
from tritensor.distributed.process_group import ProcessGroup
from tritensor.distributed.work import Work
from tritensor.nn.parameter import Parameter
from tritensor.ops.array import Array, CudaArray, device_of, empty, from_host, is_contiguous, to_host
from tritensor.ops.table import registry
from tritensor.tensor.core import Tensor
from tritensor.tensor.host_values import new_instance

ALIGNED = 64  # bytes: where an array in it may begin


class Pages:
    """Anonymous pages of this process. `array` is all of them in bytes.

    An autograd graph holds the arrays of the parameters that it was computed with, so dropping references would free nothing. `give_back`
    lets the system take the pages, whose addresses stay; they come back as zeros when they are next written. No other library may know
    these addresses (one that pins memory for a network card would go on with the old pages), so data comes and goes by copies only.
    """

    def __init__(self, nbytes: int) -> None:
        self._map = mmap.mmap(-1, max(nbytes, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.array = np.frombuffer(self._map, np.uint8)
        self.start = self.array.__array_interface__["data"][0]
        self.end = self.start + self.array.nbytes

    def give_back(self) -> None:
        """Let the system have the memory."""
        self._map.madvise(mmap.MADV_DONTNEED)

    def holds(self, address: int) -> bool:
        """Whether an address lies in it."""
        return self.start <= address < self.end


class Member:
    """One parameter: where modules hold it, its shard, and the whole one. `part` is how many elements a process has of it, padding included."""

    def __init__(self, name: str, places: Sequence[tuple[Any, str]], param: Parameter, group: ProcessGroup, mesh: Any) -> None:
        self.name, self.holders = name, list(places)
        self.shape = tuple(param.shape)
        self.row = get_row_size(self.shape)
        self.start, self.rows = find_rows(self.shape[0], group.size(), group.rank())
        # Rounded up: all_gather and reduce_scatter move pieces of one size.
        self.part = -(-self.shape[0] // group.size()) * self.row
        mine = param._array[self.start : self.start + self.rows]
        self.shard = ShardedParameter(mine, self.shape, self.start, group, mesh, param._tracked)
        self.whole = new_instance(Parameter, param._array)
        version_of(self.whole)
        for made in (self.shard, self.whole):
            made.__dict__.update({k: v for k, v in param.__dict__.items() if k not in made.__dict__})
        self.hooked = False

    def register(self, param: Any) -> None:
        """Let the modules hold this one."""
        for module, name in self.holders:
            module._parameters[name] = param


class Reduction:
    """Gradients on their way to the processes that keep them, `missing` where a process had not all of them, `reached` whose they were."""

    def __init__(self, flat: FlatShards, members: Sequence[Member], out: Array, given: Array, work: Work) -> None:
        self.flat, self.members, self.out, self.given, self.work = flat, members, out, given, work
        self.missing = False
        self.reached: list[Member] = []

    def finish(self, replicas: ProcessGroup | None) -> None:
        """Wait, and add the sums to the shards' gradients. Of a parameter that no process has used nothing is added."""
        self.work.wait()
        if replicas is not None:
            all_reduce(Tensor.wrap(self.out), group=replicas)
        del self.given, self.work
        end = sum(m.part for m in self.members)
        flags = to_host(self.out[end:])
        self.missing = bool(flags[-1] > 0)
        start = 0
        for m, used in zip(self.members, flags[:-1], strict=True):
            if used > 0:
                self.reached.append(m)
                self._add(m, self.out[start : start + m.rows * m.row].reshape(m.shard._array.shape))
            start += m.part

    def _add(self, m: Member, g: Array) -> None:
        if g.dtype != self.flat.dtype:
            g = cast_array(g, self.flat.dtype)
        held = m.shard._grad
        # The first gradient takes the reduced memory as it is: no copy.
        if held is None:
            m.shard._grad = m.shard.like(g)
            return
        add_into(held, g)


def cast_array(array: Array, dtype: np.dtype) -> Array:
    """A copy of another type."""
    if isinstance(array, CudaArray):
        return registry["cast"].forward(array, dtype=dtype)  # type: ignore[misc, no-any-return]
    out = empty(array.shape, dtype, device_of(array))
    np.copyto(out, array, casting="unsafe")  # type: ignore[arg-type]
    return out


class FlatShards:
    """The shards of some parameters of one type, one after the other. Every process' piece is as long, padded where it has fewer rows."""

    def __init__(self, members: Sequence[Member], group: ProcessGroup, compute: np.dtype | None, reduce: np.dtype | None) -> None:
        self.members, self.group = list(members), group
        self.dtype = members[0].shard._array.dtype
        # Mixed precision is of floats: integers would lose values, complex numbers their imaginary part.
        self.compute = compute if compute is not None and self.dtype.kind not in "biuc" else self.dtype
        self.reduce = reduce or self.compute
        self._pages: Pages | None = None
        self._work: Work | None = None
        self._gathered: Array | None = None
        self.lay_out()

    def lay_out(self) -> None:
        """Move the shards, as they are now, into one piece, and make room for the whole parameters. What an older graph has saved is of no more use."""
        first = self.members[0].shard._array
        self.device = device_of(first)
        self.length = sum(m.part for m in self.members)
        self.shard = empty((self.length,), self.dtype, self.device)
        fill_zeros(self.shard)
        self.views: list[Array] = []
        start = 0
        for m in self.members:
            view = self.shard[start : start + m.rows * m.row].reshape((m.rows, *m.shape[1:]))
            # More processes than rows: the last ones hold an empty part.
            if view.size:
                copy_into(view, m.shard._array)
            m.shard._set_array(view)
            self.views.append(view)
            start += m.part
        # Only host pages can be given back while arrays still name their addresses; GPU memory is freed and made anew.
        if self.device.type == "cpu":
            self._make_pages()
        else:
            self.give_back()
        for m in self.members:
            version_of(m.whole).bump("fully_shard")

    def _make_pages(self) -> None:
        step, size = self.compute.itemsize, self.group.size()
        starts, end = [], 0
        for m in self.members:
            starts.append(end)
            end += -(-m.part * size * step // ALIGNED) * ALIGNED
        self._pages = Pages(end)
        for m, at in zip(self.members, starts, strict=True):
            n = m.row * m.shape[0]
            m.whole._set_array(self._pages.array[at : at + n * step].view(self.compute).reshape(m.shape))
        self._rooms = [
            self._pages.array[at : at + m.part * size * step].view(self.compute) for m, at in zip(self.members, starts, strict=True)
        ]

    def is_laid_out(self) -> bool:
        """Whether the shards are still where they were laid: Module.to and the like move them."""
        return all(m.shard._array is view for m, view in zip(self.members, self.views, strict=True))

    @property
    def keeps_address(self) -> bool:
        """Whether the whole parameters can be given back while a graph looks at them."""
        return self._pages is not None

    def holds(self, t: Tensor) -> bool:
        """Whether a tensor lies in the memory of the whole parameters, which is given back."""
        return self._pages is not None and type(t._array) is np.ndarray and self._pages.holds(t._array.__array_interface__["data"][0])

    # whole parameters
    def begin_gather(self) -> None:
        """Ask all processes for their shards."""
        given = self.shard if self.compute == self.dtype else cast_array(self.shard, self.compute)
        # Nobody else has anything: the shard is the whole.
        if self.group.size() == 1:
            self._gathered = given
            return
        self._gathered = empty((self.group.size() * self.length,), self.compute, self.device)
        self._work = all_gather_into_tensor(Tensor.wrap(self._gathered), Tensor.wrap(given), self.group, async_op=True)

    def end_gather(self) -> None:
        """Put the shards, once they are there, together to whole parameters."""
        work, self._work = self._work, None
        if work is not None:
            work.wait()
        assert self._gathered is not None
        size = self.group.size()
        table, self._gathered = self._gathered.reshape((size, self.length)), None
        start = 0
        for i, m in enumerate(self.members):
            # At the same addresses as before, where a graph's saved views look.
            room = self._rooms[i] if self.keeps_address else empty((size * m.part,), self.compute, self.device)
            if m.part:
                copy_into(room.reshape((size, m.part)), table[:, start : start + m.part])
            if not self.keeps_address:
                m.whole._set_array(room[: m.row * m.shape[0]].reshape(m.shape))
            start += m.part

    def cancel_gather(self) -> None:
        """Drop a gather that was begun and is not needed."""
        work, self._work, self._gathered = self._work, None, None
        # A message under way still writes into the memory that is dropped here.
        if work is not None:
            work.wait()

    def give_back(self) -> None:
        """Free the whole parameters."""
        if self._pages is not None:
            self._pages.give_back()
        else:
            for m in self.members:
                m.whole._set_array(empty((0,), self.compute, self.device))

    # gradients
    def begin_reduce(self, factor: float) -> Reduction | None:
        """Send the gradients of the whole parameters, divided by `factor`, to the processes that keep their rows, and free them.

        Behind each process' part stand how many processes had a gradient, for each parameter, and how many had not all.
        """
        members = [m for m in self.members if m.whole._tracked]
        if not members:
            return None
        length, size = sum(m.part for m in members), self.group.size()
        flat = empty((size, length + len(members) + 1), self.reduce, self.device)
        fill_zeros(flat)
        start = 0
        flags = np.zeros(len(members) + 1, np.float32)
        for i, m in enumerate(members):
            g = m.whole._grad
            m.whole._grad = None
            flags[-1 if g is None else i] = 1
            # The zeros stay: all processes send pieces of one size, also for what one of them has not used.
            if g is not None and m.part:
                self._write_gradient(m, g._array, flat[:, start : start + m.part], factor)
            start += m.part
        _write_flags(flat[:, length:], flags)
        out = empty((flat.shape[1],), self.reduce, self.device)
        work = reduce_scatter_tensor(Tensor.wrap(out), Tensor.wrap(flat), group=self.group, async_op=True)
        assert work is not None
        return Reduction(self, members, out, flat, work)

    def _write_gradient(self, m: Member, g: Array, places: Array, factor: float) -> None:
        """A gradient, cut into rows, one part for each process."""
        # Rows for one process must be one run of memory.
        if not is_contiguous(g):
            g = registry["copy"].forward(g) if isinstance(g, CudaArray) else np.ascontiguousarray(g)  # type: ignore[misc]
        # Cast before the division, so that a wider reduce_dtype keeps the low bits.
        if g.dtype != self.reduce:
            g = cast_array(g, self.reduce)
        flat = g.reshape((g.size,))
        full, rest = divmod(flat.size, m.part)
        if full:
            divide_into(flat[: full * m.part].reshape((full, m.part)), factor, places[:full])  # type: ignore[arg-type]
        # The last process with rows may have fewer than a full part.
        if rest:
            divide_into(flat[full * m.part :], factor, places[full, :rest])  # type: ignore[arg-type]


def _write_flags(places: Array, flags: np.ndarray) -> None:
    rows = np.ascontiguousarray(np.broadcast_to(flags.astype(places.dtype), places.shape))
    copy_into(places, from_host(rows, device_of(places)))
