"""PyTorch's torch.autograd.graph: nodes and edges by name, hooks on saved tensors and on the gradients of several tensors at once."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any

from tritensor.autograd import node as nodes
from tritensor.autograd import saved
from tritensor.autograd.engine import edge_of
from tritensor.autograd.hooks import Handle, hooks_of
from tritensor.autograd.modes import state
from tritensor.autograd.task import GradientEdge as GradientEdge
from tritensor.ground.errors import ArgumentError, GradError
from tritensor.ground.process import locks
from tritensor.ops.table import ops


class _AnyNode(type):
    def __instancecheck__(cls, other: object) -> bool:
        return isinstance(other, nodes.Node | nodes.AccumulateGrad)


class Node(metaclass=_AnyNode):
    """What `grad_fn` is: it has name(), next_functions, metadata, register_hook and register_prehook. For isinstance."""

    name, next_functions, metadata = nodes.Node.name, nodes.Node.next_functions, nodes.Node.metadata
    register_hook, register_prehook = nodes.Node.register_hook, nodes.Node.register_prehook


def get_gradient_edge(tensor: Any) -> GradientEdge:
    """The place in the graph where a tensor's gradient goes, for grad and backward. Raises GradError where there is none."""
    if not tensor._tracked:
        raise GradError(
            "get_gradient_edge: It is not possible to get the gradient edge for a Tensor that does not require gradients; set its requires_grad"
        )
    edge = edge_of(tensor)
    node, number = nodes.next_function(edge)
    return GradientEdge(node, number, edge)


def increment_version(tensor: Any) -> None:
    """Count a write that the library did not see, to a tensor or to each of several: a backward that needs the old values then raises."""
    for t in [tensor] if hasattr(tensor, "_tracked") else list(tensor):
        nodes.version_of(t).bump_loosely("increment_version")


class saved_tensors_hooks:
    """Inside, what ops and Functions save for backward is kept as `pack_hook(tensor)` and given back by `unpack_hook(that)`.

    `grad` of the unpacked tensor and in-place writes to the original are the hooks' affair: versions are not compared.
    """

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self) -> None:
        saved.push_hooks((self.pack_hook, self.unpack_hook))

    def __exit__(self, *exc: object) -> None:
        saved.pop_hooks()


class save_on_cpu(saved_tensors_hooks):
    """Inside, what is saved for backward waits in the host's memory, pinned if asked, and goes back to its device when it is needed."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(x: Any) -> tuple[Any, Any]:
            if x.device.type == "cpu":
                return x.device, x.detach().pin_memory() if pin_memory and not x.is_pinned() else x.detach()
            away = x.detach().to("cpu")  # outside the graph: node -> packed -> node would be a cycle
            return x.device, away.pin_memory() if pin_memory else away

        def unpack(packed: tuple[Any, Any]) -> Any:
            device, x = packed
            return x.to(device, non_blocking=pin_memory)

        super().__init__(pack, unpack)


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Inside, whoever sets hooks on saved tensors gets a RuntimeError with this message, at once where such hooks are set already."""
    if state.saving:
        raise GradError(error_message)
    before = state.saving_refused
    state.saving_refused = error_message
    try:
        yield
    finally:
        state.saving_refused = before


class _Copies:
    """What allow_mutation_on_saved_tensors keeps: copies of saved tensors, by number. `clear()` forgets them."""

    def __init__(self) -> None:
        self.copies: dict[int, Any] = {}

    def clear(self) -> None:
        self.copies.clear()


@contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[_Copies]:
    """Inside, what is saved for backward may be written in place: backward sees it as it was. Each saved tensor is copied at once.

    Forward and backward must both run inside. Raises GradError for a backward outside.
    """
    kept, numbers = _Copies(), count()

    def pack(x: Any) -> Any:
        key = next(numbers)
        handle = _Key(key)
        kept.copies[key] = ops.copy(x.detach())
        weakref.finalize(handle, kept.copies.pop, key, None)  # the copy goes as soon as the graph lets go of the handle
        return handle

    def unpack(handle: Any) -> Any:
        if handle.key not in kept.copies:
            raise GradError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which the graph was originally recorded."
            )
        return kept.copies[handle.key]

    saved.push_hooks((pack, unpack))
    try:
        yield kept
    finally:
        saved.pop_hooks()
        kept.clear()


class _Key:
    """Stands for a copy in the graph; the copy goes with it."""

    __slots__ = ("__weakref__", "key")

    def __init__(self, key: int) -> None:
        self.key = key


class _Handles:
    """Removes several hooks at once."""

    def __init__(self, handles: Sequence[Handle]) -> None:
        self._handles = tuple(handles)

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()

    def __enter__(self) -> _Handles:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


def register_multi_grad_hook(tensors: Sequence[Any], fn: Callable[..., None], *, mode: str = "all") -> _Handles:
    """Call a hook once in each backward: with the gradients of all these tensors, None for those that get none ("all"), or with the first ("any").

    Where a backward function gives None for a tensor that the walk reaches, "all" calls the hook when the walk has ended.

    Raises ArgumentError for another mode, GradError for a tensor that does not require grad.
    """
    if mode not in ("all", "any"):
        raise ArgumentError(f"register_multi_grad_hook: mode {mode!r}; give 'all' or 'any'")
    edges = [get_gradient_edge(t).place for t in tensors]
    lock = locks.lock()  # gradients may come from backwards of several threads
    seen: weakref.WeakKeyDictionary[Any, list[Any]] = weakref.WeakKeyDictionary()  # by the backward that runs

    def take(i: int, g: Any) -> None:
        task = state.task
        with lock:
            first = task not in seen
            if first:
                seen[task] = [sum(task.reaches(e) for e in edges), [None] * len(edges)]
                if mode == "all":
                    task.at_end(lambda: finish(task))
            left = seen[task]
            left[0] -= 1
            left[1][i] = g
            done = first if mode == "any" else left[0] == 0
        if done:
            fn(g if mode == "any" else left[1])

    def finish(task: Any) -> None:
        left = seen.pop(task)  # a walk whose backward gave None for a tensor never came to the last one
        if left[0]:
            fn(left[1])

    def hook(i: int) -> Callable[[Any], None]:
        return lambda g: take(i, g)

    owners = [hooks_of(e) if isinstance(e, nodes.Node) else e._leaf_hooks() for e in edges]
    return _Handles([Handle(o.tensor, hook(i)) for i, o in enumerate(owners)])


def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool) -> None:
    """Accepted: gradients are added on the stream that computed them, and nothing is to be warned of."""


def set_override_stale_capture_stream(enabled: bool) -> None:
    """Accepted: a capture holds the streams that it began with."""
