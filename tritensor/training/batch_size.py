"""Function find_batch_size: the largest batch that a training step has memory for, found by trials."""

from __future__ import annotations

import copy
import gc
import math
import time
import tracemalloc
from collections.abc import Callable
from typing import Any, NamedTuple

from tritensor import cuda
from tritensor.autograd.modes import no_grad
from tritensor.cuda.memory.report import size as in_words
from tritensor.data.collate import default_collate
from tritensor.data.dataset import read_samples
from tritensor.data.loader import DataLoader
from tritensor.ground.device import as_device
from tritensor.ground.errors import ArgumentError, OutOfMemoryError
from tritensor.ground.pytree import tree_map_only
from tritensor.nn import Module
from tritensor.optim import Optimizer
from tritensor.tensor.core import Tensor
from tritensor.training import generators
from tritensor.training.batches import describe
from tritensor.training.trainer import Trainer
from tritensor.utils.progress import Bar

_STEPS = 2  # of a trial: in the second the optimizer's state is there from the beginning


class Trial(NamedTuple):
    """A trial of a batch size: memory and time of a step, and `refusal`, the reason why it is too large, or nothing."""

    batch_size: int
    memory: int
    seconds: float
    refusal: str

    def __str__(self) -> str:
        took = f"{in_words(self.memory)}, {self.seconds:.3f} s" if self.memory else "unknown"
        return f"a batch of {self.batch_size} {self.refusal or f'fits: {took} a step'}"


def find_batch_size(
    step: Trainer | Callable[[int], Any],
    data: Any = None,
    *,
    model: Module | None = None,
    optimizer: Optimizer | None = None,
    start: int = 2,
    limit: int | None = None,
    memory: int | None = None,
    seconds: float | None = None,
    device: Any = None,
    quiet: bool = False,
) -> int:
    """The largest number of samples that a training step has room for: doubled until memory runs out, then bisected.

    Args:
        step: a Trainer, whose steps are tried without its callbacks and its scheduler; or a function of a batch size that takes one step of it.
        data: with a Trainer: the dataset, or a DataLoader, that batches are made of (its first samples, over again where there are too few).
        model, optimizer: with a function: the ones that it changes, to be put back.
        start: the first and least size: 2, of which batch norm can take a variance.
        limit: the largest size to try; with a Trainer, the dataset's length where not given.
        memory: bytes that a step may allocate. None on a GPU: until it has no more; on the CPU: half of what the system has free,
            because Linux stops a process rather than refuse it memory.
        seconds: the longest that a step may take.
        device: with a function, where it computes; the model's device, or else the GPU where there is one.
        quiet: do not write a line for each trial to stderr.

    Afterwards parameters, buffers, gradients, the optimizer's state, the modules' modes and the random generators are as before; memory is
    freed between trials. On the CPU arrays and Python's objects are counted, by tracemalloc, which slows a trial down but not its timing.

    Raises:
        OutOfMemoryError: not even a batch of `start` fits; says why.
        ValueError: sizes below 1, a Trainer without data or with an empty one.
        TypeError: `step` is neither a Trainer nor a function.
    """
    for name, given in {"start": start, "limit": limit}.items():
        if given is not None and (not isinstance(given, int) or isinstance(given, bool) or given < 1):
            raise ArgumentError(f"find_batch_size: {name} is {given!r}; give an integer of at least 1")
    for name, bound in {"memory": memory, "seconds": seconds}.items():
        if bound is not None and (not isinstance(bound, int | float) or not bound > 0):
            raise ArgumentError(f"find_batch_size: {name} is {bound!r}; give a number above 0, or None")
    if isinstance(step, Trainer):
        model, optimizer, device, data = step.model, step.optimizer, step.device, _Samples(data)
        limit = len(data.dataset) if limit is None else limit
        take = _make_step(step, data)
    elif callable(step):
        take = step
    else:
        raise TypeError(
            f"find_batch_size: step is {describe(step)}; give a Trainer, or a function of a batch size that takes a training step"
        )
    if device is None:
        device = next((p.device for p in model.parameters()), None) if model is not None else "cuda" if cuda.is_available() else "cpu"
    device = as_device(device)
    if memory is None and device.type == "cpu":
        memory = _free_memory() // 2
    before = _Snapshot(model, optimizer)
    tried: list[Trial] = []
    bar = Bar("find_batch_size", "sizes", delay=math.inf)  # a line for each is enough

    def fits(size: int) -> bool:
        refused = None
        before.lend_copies()
        try:
            tried.append(_run_trial(take, size, device, memory, seconds))
        except MemoryError:
            refused = "runs out of memory"
        finally:  # here the traceback is gone, and with it what its frames held
            before.restore()
            gc.collect()  # cycles would keep the memory of a trial for the next
            if device.type == "cuda":
                cuda.empty_cache()
        if refused is not None:
            tried.append(Trial(size, 0, 0.0, refused))
        if not quiet:
            bar.say(f"find_batch_size: {tried[-1]}")
        return not tried[-1].refusal

    with bar:
        if not fits(start if limit is None else min(start, limit)):
            raise OutOfMemoryError(
                f"find_batch_size: not even {tried[0]}; give a smaller start, more memory or seconds, or make the model smaller"
            )
        return _search(fits, tried[0].batch_size, limit)


def _search(fits: Callable[[int], bool], low: int, limit: int | None) -> int:
    """The largest size that fits, from one on that does."""
    while low != limit:
        high = 2 * low if limit is None else min(2 * low, limit)
        if not fits(high):
            break
        low = high
    else:
        return low
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)  # memory grows with the size: bisection
    return low


def _run_trial(take: Callable[[int], Any], size: int, device: Any, memory: int | None, seconds: float | None) -> Trial:
    """Some steps of a size, measured: memory first, then the time without tracemalloc."""
    on_gpu = device.type == "cuda"
    traced = on_gpu or tracemalloc.is_tracing()
    if on_gpu:
        cuda.reset_peak_memory_stats(device)
    elif traced:  # the program itself traces: it is left on
        tracemalloc.reset_peak()
    else:
        tracemalloc.start()
    try:
        begun = 0 if on_gpu else tracemalloc.get_traced_memory()[0]
        for _ in range(_STEPS):
            take(size)
        if on_gpu:
            cuda.synchronize(device)
        used = cuda.max_memory_allocated(device) if on_gpu else tracemalloc.get_traced_memory()[1] - begun
    finally:
        if not traced:
            tracemalloc.stop()
    if memory is not None and used > memory:
        return Trial(size, used, 0.0, f"needs {in_words(used)}, allowed are {in_words(memory)}")
    start = time.perf_counter()
    take(size)
    if on_gpu:
        cuda.synchronize(device)
    took = time.perf_counter() - start
    slow = seconds is not None and took > seconds
    return Trial(size, used, took, f"takes {took:.3f} s, allowed are {seconds} s" if slow else "")


def _make_step(trainer: Trainer, samples: _Samples) -> Callable[[int], Any]:
    """A function of a size that takes a trainer's step, without its counts, scaler and callbacks."""

    def take(size: int) -> None:
        other = copy.copy(trainer)  # a shallow copy: the model and the optimizer are the same, counts and callbacks are not
        other.callbacks, other.scheduler, other.scaler = [], None, copy.deepcopy(trainer.scaler)
        other.rehearse(samples.batch(size))

    return take


class _Samples:
    """Batches of any size of a dataset, or of a loader's."""

    def __init__(self, data: Any) -> None:
        self.dataset = data.dataset if isinstance(data, DataLoader) else data
        self.collate = data.collate_fn if isinstance(data, DataLoader) else default_collate
        if not hasattr(self.dataset, "__getitem__") or not hasattr(self.dataset, "__len__") or not len(self.dataset):
            raise ArgumentError(
                f"find_batch_size: data is {describe(data)}, of which no batch can be made; give a dataset with samples, or a DataLoader of one"
            )

    def batch(self, size: int) -> Any:
        """The first samples, over again where there are too few."""
        return self.collate(read_samples(self.dataset, [i % len(self.dataset) for i in range(size)]))


class _Snapshot:
    """Snapshot of all that a step changes."""

    def __init__(self, model: Module | None, optimizer: Optimizer | None) -> None:
        groups = [] if optimizer is None else optimizer.param_groups
        tensors = [p for g in groups for p in g["params"]]
        if model is not None:
            tensors += [*model.parameters(), *model.buffers()]
        self.tensors = list({id(t): t for t in tensors}.values())
        self.values = [t.detach().cpu().clone() for t in self.tensors]  # on the host, where they take no room from the trials
        self.grads = [t.grad if t.is_leaf else None for t in self.tensors]
        self.modes = [] if model is None else [(m, m.training) for m in model.modules()]
        self.optimizer = optimizer
        self.state = None if optimizer is None else optimizer.state  # the object itself is put back: programs may hold it
        self.settings = [dict(g) for g in groups]
        self.rates = [copy.deepcopy(g["lr"]) if isinstance(g.get("lr"), Tensor) else None for g in groups]
        self.steps = 0 if optimizer is None else optimizer._steps
        self.generators = generators.get_state()

    def lend_copies(self) -> None:
        """Take the gradients away, and give the optimizer a copy of its state to write to."""
        for t in self.tensors:
            t.grad = None
        if self.optimizer is not None and self.state is not None:
            self.optimizer.state = copy.copy(self.state)
            for p, entries in self.state.items():
                self.optimizer.state[p] = tree_map_only(Tensor, lambda x: x.detach().clone(), entries)

    def restore(self) -> None:
        """Put everything back."""
        with no_grad():
            for tensor, value, grad in zip(self.tensors, self.values, self.grads, strict=True):
                tensor.copy_(value)
                tensor.grad = grad
            for module, mode in self.modes:
                module.training = mode
            if self.optimizer is not None and self.state is not None:
                for group, settings, rate in zip(self.optimizer.param_groups, self.settings, self.rates, strict=True):
                    group.clear()  # a scheduler of the step may have added keys
                    group.update(settings)
                    if rate is not None:
                        group["lr"].copy_(rate)
                self.optimizer.state, self.optimizer._steps = self.state, self.steps
        generators.set_state(self.generators)


def _free_memory() -> int:
    """Bytes that the system could give without swapping."""
    with open("/proc/meminfo") as file:
        numbers = {line.split(":")[0]: int(line.split()[1]) for line in file}
    return numbers["MemAvailable"] * 1024
