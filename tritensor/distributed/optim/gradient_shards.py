"""GradientShards: gradients go, as backward brings them, to the process that owns their parameter, and are freed on all others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tritensor.autograd.modes import state
from tritensor.autograd.node import AccumulateGrad
from tritensor.distributed.backends.one_process import copy_into
from tritensor.distributed.collectives import broadcast, reduce
from tritensor.distributed.data_parallel.buckets import add_into, divide_into, fill_groups, fill_zeros
from tritensor.distributed.data_parallel.weak_hooks import WeakHook
from tritensor.distributed.process_group import ProcessGroup
from tritensor.distributed.work import Work
from tritensor.ground.errors import GradError
from tritensor.ops.array import Array, CudaArray, device_of, empty, from_host, is_contiguous, to_host
from tritensor.ops.table import registry
from tritensor.tensor.core import Tensor

CAP = 16 << 20  # bytes of a bucket


class OwnedBucket:
    """Parameters of one owner and type, whose gradients go to it in one message; behind them, for each, how many processes had one."""

    def __init__(self, owner: int, numbers: Sequence[int], params: Sequence[Tensor]) -> None:
        self.owner, self.numbers, self.params = owner, tuple(numbers), tuple(params)
        self.starts = np.cumsum([0, *[p.numel() for p in params]]).tolist()
        self.flat: Array | None = None  # while gradients are in it
        self.left = set(range(len(params)))
        self.work: Work | None = None

    def place(self, i: int) -> Array:
        """Parameter i's gradient in it, in C order."""
        if self.flat is None:
            first = self.params[0]._array
            self.flat = empty((self.starts[-1] + len(self.params),), first.dtype, device_of(first))
            fill_zeros(self.flat)
        return self.flat[self.starts[i] : self.starts[i + 1]].reshape(self.params[i]._array.shape)

    def close(self) -> Array:
        """All gradients that come have come: which ones is noted behind them."""
        self.place(0)
        assert self.flat is not None
        used = np.ones(len(self.params), np.float32)
        used[list(self.left)] = 0
        copy_into(self.flat[self.starts[-1] :], from_host(used.astype(self.flat.dtype), device_of(self.flat)))
        return self.flat

    def used(self) -> np.ndarray:
        """Of a bucket that is reduced, on its owner: whether any process had a gradient, for each parameter."""
        assert self.flat is not None
        return np.ones(len(self.params), bool) if not self.left else to_host(self.flat[self.starts[-1] :]) != 0


class GradientShards:
    """Hooks on parameters that average their gradients and leave each with its owner only.

    Buckets are reduced in one order on all processes, from the first backward on that in which process 0's gradients came; one at a time is on
    its way. At the end of backward the others follow, with zeros for gradients that did not come. Of a parameter that no process used the
    gradient stays what it was.
    """

    def __init__(self, params: Sequence[Tensor], owners: Sequence[int], group: ProcessGroup, cap: int = CAP) -> None:
        self.params, self.owners, self.group, self.cap = list(params), list(owners), group, cap
        self._task: Any = None
        self._kept_for: Any = None  # the backward that put aside
        self._kept: dict[int, Tensor] = {}  # gradients of earlier backwards, of parameters that are owned here
        self._came: list[int] = []
        self._is_ordered = False
        self._build(list(reversed(range(len(self.params)))))
        self._handles = [p.register_post_accumulate_grad_hook(WeakHook(self.on_gradient, i)) for i, p in enumerate(self.params)]
        mine = [i for i, owner in enumerate(self.owners) if owner == group.rank()]
        self._handles += [AccumulateGrad(self.params[i]).register_prehook(WeakHook(self.before_gradient, i)) for i in mine]

    def forget(self) -> None:
        """Take the hooks away."""
        for handle in self._handles:
            handle.remove()

    def refuse_unknown(self, params: Sequence[Tensor]) -> None:
        """Raise GradError for a gradient of a parameter that is none of these: it was frozen when they were made, and nobody has averaged it."""
        known = {id(p) for p in self.params}
        for p in params:
            if p._grad is not None and id(p) not in known:
                raise GradError(
                    f"ZeroRedundancyOptimizer.step: a parameter of shape {tuple(p.shape)} has a gradient and did not require one when the optimizer was "
                    "made, so with shard_gradients it is not averaged; make the optimizer after requires_grad_(True)"
                )

    def _build(self, order: Sequence[int]) -> None:
        found = fill_groups(self.params, order, [self.cap], self.owners)
        self.buckets = [OwnedBucket(self.owners[numbers[0]], numbers, [self.params[n] for n in numbers]) for numbers in found]
        self._bucket_index = {n: (b, i) for b in self.buckets for i, n in enumerate(b.numbers)}

    # a backward
    def before_gradient(self, number: int) -> None:
        """A gradient is about to be added to that of an earlier backward, which is averaged already: it is put aside."""
        assert state.task is not None
        self._keep_for(state.task.outermost())
        p = self.params[number]
        # Accumulation would add this backward's raw gradient to an average, and divide the average again.
        if p._grad is not None and number not in self._kept:
            self._kept[number], p._grad = p._grad, None

    def _keep_for(self, task: Any) -> None:
        """What is put aside is of this backward: what one that failed had put aside is gone, as `.grad` has said since."""
        if self._kept_for is not task:
            self._kept, self._kept_for = {}, task

    def on_gradient(self, number: int) -> None:
        """A gradient has been accumulated."""
        assert state.task is not None
        task = state.task.outermost()
        if self._task is not task:
            self._begin(task)
        p, (bucket, i) = self.params[number], self._bucket_index[number]
        held = p._grad
        # The first piece is averaged and sent: what comes later would be lost on the owner.
        if i not in bucket.left:
            raise RuntimeError(
                "ZeroRedundancyOptimizer: a gradient came twice in one backward (reentrant checkpoints of a shared parameter do that), and shard_gradients "
                "had reduced it; use use_reentrant=False, or leave shard_gradients out"
            )
        if held is None or held._node is not None or held._tracked:
            raise GradError(
                "ZeroRedundancyOptimizer: shard_gradients takes plain gradients: none was taken away by a hook, or recorded by create_graph=True"
            )
        self._write_gradient(held._array, bucket.place(i))
        p._grad = None
        bucket.left.discard(i)
        self._came.append(number)
        while self._next < len(self.buckets) and not self.buckets[self._next].left:
            self._reduce()

    def _write_gradient(self, g: Array, place: Array) -> None:
        if isinstance(g, CudaArray) and not is_contiguous(g):
            g = registry["copy"].forward(g)  # type: ignore[misc]
        divide_into(g, self.group.size(), place)

    def _begin(self, task: Any) -> None:
        self._keep_for(task)
        self._task, self._next = task, 0
        self._came = []
        task.at_end(self._end)
        for bucket in self.buckets:  # of a backward that failed
            if bucket.work is not None:
                bucket.work.wait()
            bucket.work = bucket.flat = None
            bucket.left = set(range(len(bucket.params)))

    def _reduce(self) -> None:
        """Send the next bucket; the one before it is received first, so that memory is bounded."""
        # One message on its way: memory of two buckets at most, whatever the model's size.
        if self._next:
            self._receive(self.buckets[self._next - 1])
        bucket = self.buckets[self._next]
        bucket.work = reduce(Tensor.wrap(bucket.close()), group=self.group, group_dst=bucket.owner, async_op=True)
        self._next += 1

    def _receive(self, bucket: OwnedBucket) -> None:
        work, bucket.work = bucket.work, None
        # Received before: at the end of backward the last bucket is asked for again.
        if work is None:
            return
        work.wait()
        if bucket.owner == self.group.rank():
            for i, used in enumerate(bucket.used()):
                if used:
                    self._add(bucket.numbers[i], bucket.place(i))
        bucket.flat = None

    def _add(self, number: int, g: Array) -> None:
        """An average, to what the parameter had before this backward."""
        p = self.params[number]
        held = self._kept.pop(number, p._grad)
        if held is None:
            p._grad = Tensor.wrap(g)
            return
        add_into(held, g)
        p._grad = held

    def _end(self) -> None:
        while self._next < len(self.buckets):
            self._reduce()
        self._receive(self.buckets[-1])
        self._task = self._kept_for = None
        for bucket in self.buckets:
            bucket.left = set(range(len(bucket.params)))
        # Once: the first backward tells the order, and later ones reduce while gradients still come.
        if not self._is_ordered:
            self._order()

    def _order(self) -> None:
        """Buckets as process 0's gradients came."""
        self._is_ordered = True
        order = self._came + sorted(set(range(len(self.params))) - set(self._came))
        on = self.group.get_control_device(self.params[0].device)
        told = Tensor.wrap(from_host(np.array(order, np.int64), on))
        broadcast(told, group=self.group, group_src=0)
        self._build([int(n) for n in to_host(told._array)])
