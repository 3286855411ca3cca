"""Reducer: averages a bucket as soon as its last gradient is ready, and lets backward end when all buckets are averaged."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tritensor.autograd.modes import state
from tritensor.distributed.backends.one_process import copy_array, copy_into
from tritensor.distributed.collectives import all_reduce, broadcast
from tritensor.distributed.data_parallel.buckets import Bucket, GradBucket, assign_buckets, divide_into, fill_zeros
from tritensor.distributed.data_parallel.weak_hooks import WeakHook
from tritensor.distributed.process_group import ProcessGroup
from tritensor.distributed.reduce_op import ReduceOp
from tritensor.ground.errors import GradError
from tritensor.ground.process.future import Future
from tritensor.ground.pytree import tree_leaves
from tritensor.ops.array import from_host, to_host
from tritensor.tensor.core import Tensor


class BucketTimes(NamedTuple):
    """When a bucket's gradients were there, and when they were seen to be averaged: seconds since backward's first gradient came."""

    bucket: int
    nbytes: int
    ready: float
    averaged: float


class Reducer:
    """The buckets of some parameters in one group, filled by hooks on the parameters.

    Attributes:
        expects: whether gradients that come are to be averaged (a forward with gradients was run outside of no_sync).
        times: the BucketTimes of the last backward.
        divide: by how much the sum is divided: the size of the group, unless join says otherwise.
    """

    def __init__(
        self, params: Sequence[Tensor], names: Sequence[str], group: ProcessGroup, caps: Sequence[float], finds_unused: bool, is_static: bool
    ) -> None:  # fmt: skip
        self.params, self.names, self.group = list(params), list(names), group
        self.finds_unused, self.is_static = finds_unused, is_static
        self.expects, self.divide = False, group.size()
        self._on_gpu = params[0].is_cuda
        self.hook: tuple[Any, Callable[..., Any]] | None = None
        self.times: list[BucketTimes] = []
        self._caps = caps
        self._rebuilt = False
        self._uses: list[int] | None = None  # static graph: how often each gradient comes in a pass
        self._silent: list[int] = []  # static graph: parameters whose gradient never comes here
        self._anywhere: np.ndarray | None = None  # static graph: whether a parameter is used by any process
        self._unused: list[int] = []
        self._own: set[int] = set()  # parameters whose gradient holds what this process alone has computed, within no_sync
        self._task: Any = None  # the backward at whose end `_end` is called
        self._order: list[int] = []  # parameters as their gradients came in the first pass
        self._build(list(reversed(range(len(self.params)))))
        self._handles = [p.register_post_accumulate_grad_hook(WeakHook(self.on_gradient, i)) for i, p in enumerate(self.params)]

    def _build(self, order: list[int]) -> None:
        self.buckets = assign_buckets(self.params, order, self._caps)
        self._bucket_index = {n: (b, i) for b in self.buckets for i, n in enumerate(b.numbers)}
        self._running = False

    def forget(self) -> None:
        """Take the hooks away."""
        for handle in self._handles:
            handle.remove()

    # a forward
    def expect(self, outputs: Sequence[Tensor]) -> None:
        """A forward was run whose backward is to be averaged; `outputs` are what it gave.

        Raises RuntimeError where the last backward left parameters without a gradient.
        """
        self._refuse_unfinished()
        self.expects, self._running = True, False
        self._unused = list(self._silent)
        # The walk through the graph costs each forward; a static graph has told its unused parameters once.
        if self.finds_unused and not self.is_static:
            used = find_leaves(outputs)
            self._unused = [i for i, p in enumerate(self.params) if id(p) not in used]

    def prepare_for_backward(self, outputs: Sequence[Tensor]) -> None:
        """`expect`, by the name that programs call which begin a backward themselves."""
        self.expect(outputs)

    def _rebuild_buckets(self) -> bool:
        """False: nothing is left to rebuild; it is done at the end of the first backward."""
        return False

    def _refuse_unfinished(self) -> None:
        if not self._running:
            return
        missing = [self.names[n] for b in self.buckets for n in (b.numbers[i] for i in sorted(b.left))]
        if missing:
            raise RuntimeError(
                "DistributedDataParallel: Expected to have finished reduction in the prior iteration before starting a new one: on rank "
                f"{self.group.rank()} these parameters got no gradient: {', '.join(missing)}. Give find_unused_parameters=True where the loss does not "
                "reach all parameters, or let all outputs of forward take part in the loss"
            )

    # a backward
    def on_gradient(self, number: int) -> None:
        """A parameter's gradient has been accumulated."""
        if not self.expects:
            self._own.add(number)
            return
        if not self._running:
            self._begin()
        if state.task is not None and self._task is not (task := state.task.outermost()):
            self._task = task
            task.at_end(self._end)
        self._drive()
        bucket, i = self._bucket_index[number]
        if self.is_static:
            self._counts[number] += 1
            # Reentrant checkpoints bring a shared parameter's gradient in pieces: only the last one completes it.
            if self._uses is not None and self._counts[number] < self._uses[number]:
                return
            # The first pass cannot know how often each gradient comes, so it averages nothing before its end.
            if self._uses is None:
                self._late.setdefault(number, None)
                return
        if i not in bucket.left:
            raise RuntimeError(
                f"DistributedDataParallel: Expected to mark a variable ready only once: the gradient of {self.names[number]} came twice in one backward. "
                "Reentrant checkpoints or a graph that is gone through twice do that; static_graph=True allows it where every step is alike"
            )
        self._ready(bucket, i)

    def _drive(self) -> None:
        """Look at the bucket that was begun last: on the CPU who looks drives the call, for which no core may be to spare."""
        work = self.buckets[self._next - 1].work if self._next else None
        if work is not None and not self._on_gpu:
            work.is_completed()

    def _begin(self) -> None:
        self._running, self._began = True, time.perf_counter()
        self._next = 0
        self._ready_at: dict[int, float] = {}
        self._counts = [0] * len(self.params)
        self._late: dict[int, None] = {}
        self._kept: dict[int, Tensor | None] = {}
        for bucket in self.buckets:
            bucket.begin()
        self._task = None
        self._mark_unused(self._unused)

    def _ready(self, bucket: Bucket, i: int, used: bool = True) -> None:
        self._write_gradient(bucket, i, used)
        bucket.left.discard(i)
        if used and not self._rebuilt:
            self._order.append(bucket.numbers[i])
        if not bucket.left:
            self._ready_at[bucket.index] = time.perf_counter()
        while self._next < len(self.buckets) and not self.buckets[self._next].left:
            self._average(self.buckets[self._next])
            self._next += 1

    def _write_gradient(self, bucket: Bucket, i: int, used: bool) -> None:
        """A gradient into its place in the bucket, divided by the number of processes unless a hook does that."""
        p, place = bucket.params[i], bucket.view(i)
        held = p._grad
        if held is None and not used:
            fill_zeros(place)
            return
        if held is None:
            raise GradError(
                f"DistributedDataParallel: a hook took the gradient of {self.names[bucket.numbers[i]]} away before it was averaged; leave it"
            )
        # The average is written into the gradient's memory, which a graph over gradients would have saved.
        if held._node is not None or held._tracked:
            raise GradError(
                "DistributedDataParallel: backward(create_graph=True) leaves gradients that cannot be averaged in place; use no_sync()"
            )
        # Dividing before the sum keeps 16-bit gradients from overflowing; hooks divide by themselves, as PyTorch's do.
        if self.hook is None and self.divide > 1:
            divide_into(held._array, self.divide, place)
        elif not bucket.holds(i, held._array):
            # From the second pass on the gradient mostly lies in the bucket already: the parameters' gradients are views of it.
            copy_into(place, held._array)
        if used:
            p._grad = Tensor.wrap(place)

    def _average(self, bucket: Bucket) -> None:
        if self.hook is not None:
            state, hook = self.hook
            got = hook(state, GradBucket(bucket, len(self.buckets)))
            if not isinstance(got, Future):
                raise TypeError(
                    f"DistributedDataParallel: the communication hook returned {type(got).__name__}; return a Future of the tensor"
                )
            bucket.future = got
        elif self.group.size() > 1:
            bucket.work = all_reduce(Tensor.wrap(bucket.flat), ReduceOp.SUM, self.group, async_op=True)

    def _end(self) -> None:
        """Backward has come to its end: wait for the averages."""
        if self.is_static and self._uses is None:
            self._begin_static_graph()
        if self._next < len(self.buckets):
            return  # more gradients may come by another backward; the next forward tells if not
        for bucket in self.buckets:
            if bucket.work is not None:
                bucket.work.wait()
            if bucket.future is not None:
                self._copy_result(bucket, bucket.future.wait())
        now = time.perf_counter() - self._began
        self.times = [
            BucketTimes(b.index, b.flat.nbytes, self._ready_at[b.index] - self._began, self._find_end(b, now)) for b in self.buckets
        ]
        if self.finds_unused or self.is_static:
            self._restore_unused()
        self._own.clear()
        self._running = self.expects = False
        self._task = None
        if not self._rebuilt and not (self.finds_unused and not self.is_static):
            self._rebuild()

    def _find_end(self, bucket: Bucket, now: float) -> float:
        ended = bucket.work.ended() if bucket.work is not None else 0.0
        return ended - self._began if ended else now

    def _begin_static_graph(self) -> None:
        """The first pass of a static graph has told which gradients come how often; now they are averaged."""
        self._uses = [max(n, 1) for n in self._counts]
        self._silent = [n for n in range(len(self.params)) if n not in self._late]
        self._mark_unused(self._silent)
        for number in self._late:
            self._ready(*self._bucket_index[number])

    def _mark_unused(self, numbers: Sequence[int]) -> None:
        """Gradients that will not come: what the parameters had, or zeros, in their places; it is remembered."""
        for number in numbers:
            bucket, i = self._bucket_index[number]
            before = self.params[number]._grad
            if before is not None and bucket.holds(i, before._array):  # where the average is about to be
                before = Tensor.wrap(copy_array(before._array))
            self._kept[number] = before
            self._ready(bucket, i, used=False)

    def _copy_result(self, bucket: Bucket, result: Any) -> None:
        tensor = result[0] if isinstance(result, list | tuple) else result
        if tensor._array is not bucket.flat:
            copy_into(bucket.flat, tensor._array.reshape(bucket.flat.shape))

    def _restore_unused(self) -> None:
        """Parameters that no process used since the last averages keep the gradient that they had; those that another used get the average."""
        anywhere = self._anywhere
        if anywhere is None:
            used = np.ones(len(self.params), np.int32)
            used[[n for n in self._kept if n not in self._own]] = 0
            told = Tensor.wrap(from_host(used, self._get_control_device()))
            all_reduce(told, ReduceOp.MAX, self.group)
            anywhere = to_host(told._array)
        if self.is_static:
            self._anywhere = anywhere
        for number, before in self._kept.items():
            bucket, i = self._bucket_index[number]
            self.params[number]._grad = Tensor.wrap(bucket.view(i)) if anywhere[number] else before

    def _rebuild(self) -> None:
        """Buckets in the order in which gradients came, as process 0 saw it."""
        self._rebuilt = True
        order = self._order + [n for n in range(len(self.params)) if n not in set(self._order)]
        told = Tensor.wrap(from_host(np.array(order, np.int64), self._get_control_device()))
        broadcast(told, group=self.group, group_src=0)
        order = [int(n) for n in to_host(told._array)]
        # New buckets are new memory, so they are made only where the order is another.
        if order != [n for b in self.buckets for n in b.numbers]:
            self._build(order)

    def _get_control_device(self) -> Any:
        return self.group.get_control_device(self.params[0].device)

    def shadow(self) -> None:
        """Take part in one backward of the others with nothing to give (join): zeros in every bucket."""
        self._running = False
        for bucket in self.buckets:
            bucket.begin()
            fill_zeros(bucket.flat)
            if self.hook is None:
                bucket.work = all_reduce(Tensor.wrap(bucket.flat), ReduceOp.SUM, self.group, async_op=True)
            else:
                bucket.future = self.hook[1](self.hook[0], GradBucket(bucket, len(self.buckets)))
        for bucket in self.buckets:
            if bucket.work is not None:
                bucket.work.wait()
            if bucket.future is not None:
                self._copy_result(bucket, bucket.future.wait())
            # The others' average: an optimizer that shares states out steps this process' share by it.
            for i, p in enumerate(bucket.params):
                p._grad = Tensor.wrap(bucket.view(i))
        # The others ask all processes which parameters were used: without this call they would wait.
        if self._anywhere is None and (self.finds_unused or self.is_static):
            all_reduce(Tensor.wrap(from_host(np.zeros(len(self.params), np.int32), self._get_control_device())), ReduceOp.MAX, self.group)
        if not self._rebuilt and not (self.finds_unused and not self.is_static):
            self._rebuild()


def find_leaves(outputs: Sequence[Tensor]) -> set[int]:
    """The ids of all leaves that the outputs were computed from."""
    stack: list[Any] = [t._node if t._node is not None else t for t in outputs if t._tracked]
    seen: set[int] = set()
    leaves: set[int] = set()
    while stack:
        e = stack.pop()
        # Graphs share nodes: without the set the walk is exponential in the depth.
        if id(e) in seen:
            continue
        seen.add(id(e))
        if hasattr(e, "edges"):
            stack.extend([x for x in e.edges if x is not None])
        else:
            leaves.add(id(e))
    return leaves


def find_tensors(values: Any) -> list[Tensor]:
    """All tensors in lists, dicts, tuples and dataclasses."""
    found, stack = [], [values]
    # find_unused_parameters and fully_shard's hooks go by these: an output that is missed would make its parameters look unused.
    while stack:
        for leaf in tree_leaves(stack.pop()):
            if isinstance(leaf, Tensor):
                found.append(leaf)
            elif dataclasses.is_dataclass(leaf) and not isinstance(leaf, type):
                # pytrees end at dataclasses, in which models return their outputs (Hugging Face's do).
                stack.extend(getattr(leaf, field.name) for field in dataclasses.fields(leaf))
    return found
