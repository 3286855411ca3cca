"""Activation checkpointing: a part of a network keeps its inputs alone, and is computed again in backward, as far as gradients need it."""

from __future__ import annotations

import threading
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from tritensor.autograd import saved
from tritensor.autograd.engine import backward
from tritensor.autograd.function import Function, Saved
from tritensor.autograd.modes import enable_grad, state
from tritensor.dispatch.autocast import settings
from tritensor.ground.errors import ArgumentError, GradError
from tritensor.nn.container import Sequential
from tritensor.random import default_generator
from tritensor.tensor.core import Tensor
from tritensor.utils.selective import CheckpointPolicy as CheckpointPolicy
from tritensor.utils.selective import SelectiveCheckpointContext as SelectiveCheckpointContext
from tritensor.utils.selective import create_selective_checkpoint_contexts as create_selective_checkpoint_contexts

__all__ = [
    "CheckpointError", "CheckpointFunction", "CheckpointPolicy", "DefaultDeviceType", "GraphExecGroup", "SelectiveCheckpointContext",
    "check_backward_validity", "checkpoint", "checkpoint_sequential", "create_selective_checkpoint_contexts", "detach_variable",
    "get_device_states", "noop_context_fn", "set_checkpoint_debug_enabled", "set_checkpoint_early_stop", "set_device_states",
]  # fmt: skip


class CheckpointError(GradError):
    """A function did not compute in backward the same as before."""


class _StopError(Exception):
    """Raised inside a function that runs again, once everything needed is computed. Checkpoints nest: `frame` is the one that ends."""

    def __init__(self, frame: _Frame) -> None:
        super().__init__("checkpoint: everything that backward needs is computed; let this exception pass")
        self.frame = frame


_forced: dict[str, bool | None] = {"stop": None}  # by set_checkpoint_early_stop


def noop_context_fn() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """Two contexts that do nothing."""
    return nullcontext(), nullcontext()


@contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Inside, whether checkpoints stop computing again as soon as all that backward needs is there, whatever their early_stop says."""
    before, _forced["stop"] = _forced["stop"], bool(enable)
    try:
        yield
    finally:
        _forced["stop"] = before


@contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Accepted: errors name the tensor and its shapes always."""
    yield


class DefaultDeviceType:
    """The kind of device that PyTorch's reentrant checkpoints keep random states of; kept, as one generator serves all devices here."""

    _default = "cuda"

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Set it."""
        DefaultDeviceType._default = device

    @staticmethod
    def get_device_type() -> str:
        """The kind that was set last; "cuda" before."""
        return DefaultDeviceType._default


class _Group(threading.local):
    now: GraphExecGroup | None = None


_group = _Group()


class GraphExecGroup:
    """`with GraphExecGroup():` around several backwards: a checkpointed function is computed again once for all of them, which share no part of the graph.

    Raises RuntimeError inside another one.
    """

    def __init__(self) -> None:
        self.frames: list[_Frame] = []

    def __enter__(self) -> GraphExecGroup:
        if _group.now is not None:
            raise RuntimeError("GraphExecGroup contexts cannot be nested: this thread is inside one; leave it first")
        _group.now = self
        return self

    def __exit__(self, *exc: object) -> None:
        _group.now = None
        while self.frames:
            self.frames.pop().forget()


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """(numbers, random states) of the GPUs that tensors among the arguments are on."""
    from tritensor.cuda.random import get_rng_state

    found = [x.get_device() for x in args if isinstance(x, Tensor) and x.is_cuda]
    return found, [get_rng_state(i) for i in found]


def set_device_states(devices: Sequence[int], states: Sequence[Tensor], *, device_type: str | None = None) -> None:
    """Set the random states that get_device_states gave."""
    from tritensor.cuda.random import set_rng_state

    for device, seen in zip(devices, states, strict=False):
        set_rng_state(seen, device)


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Tensors cut off their graph, asking for gradients as they did. Raises RuntimeError for what is no tuple."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"detach_variable: only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    return tuple([x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs])


def check_backward_validity(inputs: Any) -> None:
    """Warn where no input asks for a gradient: a reentrant checkpoint of it gives none."""
    if not any(x.requires_grad for x in inputs if isinstance(x, Tensor)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=3)


class _RunState:
    """The random state (if `preserve`) and the autocast settings in which a function ran, for its second run."""

    def __init__(self, preserve: bool) -> None:
        self.random = (default_generator.key, default_generator.offset) if preserve else None
        self.casting = settings.snapshot()

    @contextmanager
    def restore(self) -> Iterator[None]:
        now = default_generator.key, default_generator.offset
        if self.random is not None:
            default_generator.key, default_generator.offset = self.random
        try:
            with enable_grad(), settings.as_of(self.casting):
                yield
        finally:
            if self.random is not None:
                default_generator.key, default_generator.offset = now


class CheckpointFunction(Function):
    """The reentrant form: forward leaves no graph, and backward runs a backward of its own through a second run."""

    @staticmethod
    def forward(ctx: Any, run_function: Callable[..., Any], preserve_rng_state: bool, *args: Any) -> Any:
        check_backward_validity(args)
        ctx.run, ctx.run_state = run_function, _RunState(preserve_rng_state)
        ctx.others = [None if isinstance(x, Tensor) else x for x in args]
        ctx.asking = [isinstance(x, Tensor) and x.requires_grad for x in args]
        ctx.save_for_backward(*[x if isinstance(x, Tensor) else None for x in args])
        return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if state.task is not None and not state.task.plain:  # its own backward adds to .grad, which autograd.grad does not read
            raise GradError(
                "checkpoint: with use_reentrant=True it does not go with autograd.grad or backward(inputs=...); give use_reentrant=False"
            )
        inputs = [
            o if x is None else x.detach().requires_grad_(asks)
            for x, o, asks in zip(ctx.saved_tensors, ctx.others, ctx.asking, strict=True)
        ]
        with ctx.run_state.restore():
            outputs = ctx.run(*inputs)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        pairs = [(y, g) for y, g in zip(outputs, grads, strict=True) if isinstance(y, Tensor) and y.requires_grad]
        if not pairs:
            raise GradError(
                "checkpoint: none of output has requires_grad=True, this checkpoint() is not necessary; call the function itself"
            )
        backward([y for y, _ in pairs], [g for _, g in pairs], keep_graph=False, create_graph=False, inputs=None)
        return None, None, *[x.grad if isinstance(x, Tensor) else None for x in inputs]


class _Placeholder:
    """Stand-in in the graph for a tensor that will be computed again: the `index`-th that the function saved."""

    __slots__ = ("__weakref__", "index")

    def __init__(self, index: int) -> None:
        self.index = index


class _Frame:
    """A checkpointed call: the shapes, types and devices of the tensors that it saved, and the function that computes them again.

    A tensor of the second run is kept until the node that needs it has run (its placeholder dies with it), or backward has ended.
    """

    def __init__(self, run: Callable[[], Any], early: bool, check: bool) -> None:
        self.run, self.early, self.check = run, early, check
        self.holders: list[weakref.ref[_Placeholder]] = []
        self.kinds: list[tuple[Any, ...]] = []
        self.values: weakref.WeakKeyDictionary[_Placeholder, Any] = weakref.WeakKeyDictionary()
        self.task: Any = None

    def pack(self, x: Tensor) -> _Placeholder:
        holder = _Placeholder(len(self.holders))
        self.holders.append(weakref.ref(holder))
        self.kinds.append(_metadata_of(x))
        return holder

    def unpack(self, holder: _Placeholder) -> Tensor:
        group = _group.now
        whole = state.task if group is None else group  # the values go when it ends
        if self.task is not whole or holder not in self.values:  # another backward, or one value that has been used
            self.forget()
            self.compute()
            self.task = whole
            if group is not None:
                group.frames.append(self)
            elif self.task is not None:
                self.task.at_end(self.forget)
        value: Tensor = self.values[holder]
        if self.task is None:
            self.forget()
        return value

    def forget(self) -> None:
        self.values.clear()
        self.task = None

    def compute(self) -> None:
        """Run the function again and keep the tensors that it saves."""
        count = 0

        def pack(x: Tensor) -> Tensor:
            nonlocal count
            if count < len(self.holders):
                holder = self.holders[count]()
                if self.check and _metadata_of(x) != self.kinds[count]:
                    raise CheckpointError(
                        f"checkpoint: Recomputed values for the following tensors have different metadata than during the forward pass: tensor {count} "
                        f"was {_format_metadata(self.kinds[count])} and is {_format_metadata(_metadata_of(x))}; the function must do the same twice "
                        "(determinism_check='none' lets it)"
                    )
                if holder is not None:  # the node that needed it has run, or is gone
                    self.values[holder] = x.detach()
            count += 1
            if self.early and count == len(self.holders):
                raise _StopError(self)
            return x

        saved.push_hooks((pack, lambda x: x))  # the tensors that the second run saves are taken by their number
        try:
            self.run()
        except _StopError as stop:
            if stop.frame is not self:  # an outer checkpoint computes again, too
                raise
        finally:
            saved.pop_hooks()
        if count != len(self.holders):
            raise CheckpointError(
                "checkpoint: A different number of tensors was saved during the original forward and recomputation: "
                f"{len(self.holders)} and then {count}; the function must do the same twice"
            )


def _metadata_of(x: Tensor) -> tuple[Any, ...]:
    return tuple(x._array.shape), x.dtype, x.device


def _format_metadata(kind: tuple[Any, ...]) -> str:
    shape, dtype, device = kind
    return f"{dtype.name}{list(shape)} on {device}"


def checkpoint(
    function: Callable[..., Any], *args: Any, use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple[Any, Any]] = noop_context_fn, determinism_check: str = "default", debug: bool = False,
    early_stop: bool = True, **kwargs: Any,
) -> Any:  # fmt: skip
    """`function(*args, **kwargs)`, of which the graph keeps the arguments alone; backward runs it a second time for its gradients.

    Args:
        use_reentrant: False: any function and any backward. True, with a warning the default, as in PyTorch: the old form, whose backward runs a
            backward of its own; no keyword arguments, no autograd.grad, and an argument must ask for a gradient.
        preserve_rng_state: (a keyword, True) the second run draws the same random numbers.
        context_fn: gives two contexts, for the first run and for the second.
        determinism_check: "default" compares shapes, types and devices of what the runs save, "none" does not.
        early_stop: end the second run as soon as all that backward needs is there.
        debug: accepted; errors name the tensor always.

    Raises:
        CheckpointError: in backward, where the second run saves something else than the first.
    """
    if use_reentrant is None:
        warnings.warn(
            "checkpoint: the use_reentrant parameter should be passed explicitly; use_reentrant=False is recommended, use_reentrant=True is what "
            "it is without",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = bool(kwargs.pop("preserve_rng_state", True))
    if use_reentrant:
        if kwargs:
            raise ArgumentError(
                "checkpoint: Unexpected keyword arguments: " + ", ".join(kwargs) + "; give use_reentrant=False to pass them on"
            )
        if context_fn is not noop_context_fn or debug:
            raise ArgumentError("checkpoint: Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, preserve, *args)
    if debug and context_fn is not noop_context_fn:
        raise ArgumentError("checkpoint: debug=True is incompatible with non-default context_fn; leave one of them out")
    if determinism_check not in ("default", "none"):
        raise ArgumentError(f"checkpoint: determinism_check {determinism_check!r}; give 'default' or 'none'")
    first, second = context_fn()
    if not state.enabled:  # no graph: nothing to be computed again
        with first:
            return function(*args, **kwargs)
    run_state = _RunState(preserve)
    # a write to an argument before backward is noticed
    kept = {k: Saved(x, None) if isinstance(x, Tensor) else x for k, x in [*enumerate(args), *kwargs.items()]}

    def run() -> None:
        given = {k: x.unpacked(None) if type(x) is Saved else x for k, x in kept.items()}
        with run_state.restore(), second:
            function(*[given[i] for i in range(len(args))], **{k: x for k, x in given.items() if isinstance(k, str)})

    frame = _Frame(run, early_stop if _forced["stop"] is None else _forced["stop"], determinism_check == "default")
    saved.push_hooks((frame.pack, frame.unpack))
    try:
        with first:
            return function(*args, **kwargs)
    finally:
        saved.pop_hooks()


def checkpoint_sequential(functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any) -> Any:
    """A Sequential, or a list of modules, in `segments` parts of which all but the last are checkpointed.

    `use_reentrant` and `preserve_rng_state` (a keyword, True) as of checkpoint. Raises ValueError for other keywords.
    """
    preserve_rng_state = bool(kwargs.pop("preserve_rng_state", True))
    if kwargs:
        raise ArgumentError("checkpoint_sequential: Unexpected keyword arguments: " + ", ".join(kwargs) + "; give preserve_rng_state alone")
    modules: Sequence[Any] = list(functions.children()) if isinstance(functions, Sequential) else list(functions)
    if not 1 <= segments <= max(len(modules), 1):
        raise ArgumentError(f"checkpoint_sequential: {segments} segments of {len(modules)} modules; give 1 to as many as there are")

    def run(start: int, end: int) -> Callable[[Any], Any]:
        def part(x: Any) -> Any:
            for module in modules[start:end]:
                x = module(x)
            return x

        return part

    size = len(modules) // segments
    start = 0
    for _ in range(segments - 1):
        input = checkpoint(run(start, start + size), input, use_reentrant=use_reentrant, preserve_rng_state=preserve_rng_state)
        start += size
    return run(start, len(modules))(input)
