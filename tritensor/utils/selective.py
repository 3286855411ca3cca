"""Selective checkpointing: the results of chosen ops of a checkpointed function are kept, and only the others are computed again."""

from __future__ import annotations

import dataclasses
import enum
import threading
from collections import defaultdict
from collections.abc import Callable
from types import FunctionType
from typing import Any

from tritensor.autograd.node import version_of
from tritensor.dispatch.dispatcher import apply
from tritensor.ground import shortcuts
from tritensor.ground.call_site import wrapper
from tritensor.ground.errors import GradError
from tritensor.ops.lazy_array import at_once
from tritensor.ops.table import Op, Ops, ops, registry
from tritensor.ops.table.lookup import changing
from tritensor.tensor.core import Tensor
from tritensor.torch_dispatch.overloads import Overload, Packet, aten


class CheckpointPolicy(enum.Enum):
    """The fate of an op's result: kept, or computed again. MUST and PREFER are the same here; one to be offloaded is kept on its device."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


class SelectiveCheckpointContext:
    """The context of a policy's call: `op_output` is the op's result; `is_recompute` is False always, as a policy is asked in the first run alone."""

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute, self.op_output = is_recompute, op_output


_SAVED = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE, CheckpointPolicy.MUST_CPU_OFFLOAD, CheckpointPolicy.PREFER_CPU_OFFLOAD)
_ATEN_NAMES = {"conv1d": "convolution", "conv2d": "convolution", "conv3d": "convolution",
          "conv1d_relu": "convolution", "conv2d_relu": "convolution", "conv3d_relu": "convolution", "layer_norm": "native_layer_norm", "softmax": "_softmax",
          "log_softmax": "_log_softmax", "batch_norm": "native_batch_norm", "group_norm": "native_group_norm", "dropout": "native_dropout"}  # fmt: skip
_OVERLOADS = {
    "add": "Tensor",
    "sub": "Tensor",
    "mul": "Tensor",
    "div": "Tensor",
    "sum": "dim_IntList",
    "mean": "dim",
    "pow": "Tensor_Scalar",
}
_NONDETERMINISTIC = (
    "This can happen if the operations in the checkpointed region are nondeterministic or depend on global state that changed between forward "
    "and backward."
)
_RECOMPUTED = object()
_CONSUMED = object()


def aten_name(op: Op, args: tuple[Any, ...]) -> Overload:
    """PyTorch's name of an op of the table: matrix products have one for each number of dimensions."""
    name = op.name
    if name in ("linear", "linear_activation", "linear_activation_by_result"):
        name = "mm" if len(args) < 3 or args[2] is None else "addmm"
    elif name == "matmul":
        a, b = (len(x._array.shape) for x in args[:2])
        name = {(1, 1): "dot", (2, 1): "mv"}.get((a, b)) or ("mm" if b <= 2 else "bmm")  # PyTorch's matmul runs these
    return getattr(getattr(aten, _ATEN_NAMES.get(name, name)), _OVERLOADS.get(name, "default"))  # type: ignore[no-any-return]


class _CachedResult:
    """The arrays of an op's results, and the tensors' write counters, which show whether they were written over since."""

    def __init__(self, result: Any, out: Any) -> None:
        self.result = result
        self.versions = [(version_of(t), t._version) for t in (out if isinstance(out, tuple) else (out,)) if isinstance(t, Tensor)]

    def take(self, name: Overload, mutated: bool) -> Any:
        if not mutated and any(v.value != seen for v, seen in self.versions):
            raise RuntimeError(
                f"Tensor cached during selective activation checkpoint has been mutated: the result of {name} was written in place; clone() it first, or give "
                "allow_cache_entry_mutation=True"
            )
        return self.result


def _run_with(op: Op, compute: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run an op through dispatch with another computation: it leaves in the graph what the op itself would."""
    with at_once(*[x for x in args if hasattr(x, "_array")]):
        return apply(dataclasses.replace(op, cpu=compute, host=compute), *args, **kwargs)


class _Mode:
    """Mode that every op of this thread goes through while it is entered."""

    def __init__(self, storage: dict[Overload, dict[int, Any]]) -> None:
        self.storage = storage
        self.counts: defaultdict[Overload, int] = defaultdict(int)
        self.before: Any = None

    def __enter__(self) -> _Mode:
        self.counts.clear()
        self.before = _thread.mode
        _count_watchers(1)
        _thread.mode = self
        return self

    def __exit__(self, *exc: object) -> None:
        _thread.mode = self.before
        _count_watchers(-1)

    def number_call(self, op: Op, args: tuple[Any, ...]) -> tuple[Overload, int]:
        name = aten_name(op, args)
        self.counts[name] += 1
        return name, self.counts[name] - 1

    def run_op(self, op: Op, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        raise NotImplementedError


class _CachingMode(_Mode):
    """The first run: asks the policy about each op, and keeps the results that it wants."""

    def __init__(self, policy: Callable[..., Any], storage: dict[Overload, dict[int, Any]]) -> None:
        super().__init__(storage)
        self.policy = policy

    def run_op(self, op: Op, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        found: list[Any] = []

        def compute(*arrays: Any, **attrs: Any) -> Any:
            on_host = op.host is None and not any(hasattr(a, "storage") for a in arrays)
            # the arrays are kept, not the tensors: those hold the graph
            found[:] = [(op.cpu if on_host else op.host or op.forward)(*arrays, **attrs)]  # type: ignore[misc]
            return found[0]

        name, index = self.number_call(op, args)
        out = _run_with(op, compute, args, kwargs)
        wanted = self.policy(SelectiveCheckpointContext(is_recompute=False, op_output=out), name, *args, **kwargs)
        if isinstance(wanted, bool):
            wanted = CheckpointPolicy.MUST_SAVE if wanted else CheckpointPolicy.PREFER_RECOMPUTE
        self.storage[name][index] = _CachedResult(found[0], out) if wanted in _SAVED and found else _RECOMPUTED
        return out


class _CachedMode(_Mode):
    """The second run: takes the results that were kept."""

    def __init__(self, storage: dict[Overload, dict[int, Any]], mutated: bool) -> None:
        super().__init__(storage)
        self.mutated = mutated

    def run_op(self, op: Op, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name, index = self.number_call(op, args)
        entry = self.storage.get(name, {}).get(index)
        if entry is None:
            raise RuntimeError(f"{name} invocation index {index} encountered during backward but not found in storage. {_NONDETERMINISTIC}")
        if entry is _CONSUMED:
            raise GradError(
                "Trying to backward an extra time. You are only allowed to backward once on any region computed under selective activation checkpoint."
            )
        if entry is _RECOMPUTED:
            return call(*args, **kwargs)
        self.storage[name][index] = _CONSUMED  # its memory is freed with the first use
        kept = entry.take(name, self.mutated)
        return _run_with(op, lambda *arrays, **attrs: kept, args, kwargs)


class _ThreadState(threading.local):
    mode: _Mode | None = None


_thread = _ThreadState()
_watching = 0


def _wrap_call(op: Op, call: Callable[..., Any]) -> Callable[..., Any]:
    """A call of `ops` that goes through the mode."""
    # not asked about: views and writes, whose results are no memory of their own, and ops without inputs, which draw or fill
    if op.view or op.mutates or not op.inputs:
        return call

    @wrapper
    def seen(*args: Any, **kwargs: Any) -> Any:
        mode = _thread.mode
        if mode is None:
            return call(*args, **kwargs)
        _thread.mode = None  # ops inside the op are its own business
        try:
            return mode.run_op(op, call, args, kwargs)
        finally:
            _thread.mode = mode

    seen.__name__ = seen.__qualname__ = op.name
    seen.unwatched = call  # type: ignore[attr-defined]
    return seen


def _count_watchers(more: int) -> None:
    """Wrap all calls of `ops` while a mode is entered: programs without one pay nothing."""
    global _watching, _bind
    with changing:
        _watching += more
        shortcuts.turn("watching", more)
        registry.edition += 1  # another thread may be binding an op just now, unwrapped
        if _watching == 1 and more == 1:
            _bind, Ops.bind = Ops.bind, staticmethod(_bind_watched)  # type: ignore[assignment]
            for name, call in tuple(vars(ops).items()):
                record = registry.known(name)
                if record is not None:
                    ops.__dict__[name] = _wrap_call(record, call)
        elif _watching == 0:
            if Ops.bind is _bind_watched:
                Ops.bind = staticmethod(_bind)  # type: ignore[assignment]
            for name, call in tuple(vars(ops).items()):
                if isinstance(call, FunctionType) and "unwatched" in vars(call):  # autocast may have put its own call there
                    ops.__dict__[name] = vars(call)["unwatched"]


_bind: Callable[[Op], Callable[..., Any]]


def _bind_watched(op: Op) -> Callable[..., Any]:
    return _wrap_call(op, _bind(op))


def create_selective_checkpoint_contexts(policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False) -> tuple[Any, Any]:
    """Two contexts for `checkpoint(..., use_reentrant=False, context_fn=functools.partial(create_selective_checkpoint_contexts, policy))`.

    Args:
        policy_fn_or_list: ops whose results are kept, `[ops.aten.mm.default, ...]`, or `policy(ctx, op, *args, **kwargs)`, which gives a CheckpointPolicy (or
            True to keep). Views, writes in place, and what draws or fills are not asked about: they run again.
        allow_cache_entry_mutation: take a kept result also where somebody wrote over it since.

    Raises:
        ValueError: a list with something else than overloads. TypeError: neither a function nor a list. RuntimeError, in backward: a kept result that was
            written over, other ops in the second run than in the first, a second backward through what was kept.
    """
    if isinstance(policy_fn_or_list, list):
        for op in policy_fn_or_list:
            if not isinstance(op, Overload):
                said = f": give a specific one, ops.{op}.default" if isinstance(op, Packet) else ", such as ops.aten.mm.default"
                raise ValueError(
                    f"create_selective_checkpoint_contexts: Expected op in `op_list` to be an OpOverload but got {op} of type {type(op).__name__}{said}"
                )
        chosen = {op.overloadpacket for op in policy_fn_or_list}  # an op here has one form, whatever overload of its name is given
        return create_selective_checkpoint_contexts(
            lambda ctx, op, *args, **kwargs: op.overloadpacket in chosen, allow_cache_entry_mutation
        )
    if not callable(policy_fn_or_list):
        raise TypeError(
            f"create_selective_checkpoint_contexts: policy_fn_or_list must be either a function or a list of ops, not a {type(policy_fn_or_list).__name__}"
        )
    storage: dict[Overload, dict[int, Any]] = defaultdict(dict)
    return _CachingMode(policy_fn_or_list, storage), _CachedMode(storage, allow_cache_entry_mutation)
