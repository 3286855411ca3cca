"""Interpreter of ops below autograd: each is told to handlers by PyTorch's names, and what they give takes the op's place in the graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tritensor.autograd import node as nodes
from tritensor.dispatch import apply
from tritensor.dispatch.dispatcher import fill_inputs
from tritensor.dispatch.nodes import refuse_written, share, written
from tritensor.func import interpreter
from tritensor.ground.transforms import WrappedArray
from tritensor.ops.table import Op
from tritensor.tensor.core import Tensor, new_output, new_tensor
from tritensor.torch_dispatch import shaping_translations as shaping_translations
from tritensor.torch_dispatch import whole_calls as whole_calls
from tritensor.torch_dispatch.asking import below_autograd, setting
from tritensor.torch_dispatch.instances import LEVEL, is_instance, memory_of, surface
from tritensor.torch_dispatch.overloads import aten, tritensor
from tritensor.torch_dispatch.translations import TRANSLATIONS


def _call_of(op: Op) -> Callable[..., Any]:
    """What tells handlers of an op: the calls of PyTorch's that it is, or itself under its own name."""
    return TRANSLATIONS.get(op.name) or getattr(tritensor, op.name).default


def run(op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> tuple[Tensor, ...]:
    """The results of an op as handlers give them."""
    if setting.off:
        out = apply(op, *[memory_of(x) for x in inputs], **attrs)
        return out if op.public > 1 else (out,)
    given = tuple([surface(x) for x in inputs])
    with below_autograd():
        out = _call_of(op)(*given, **attrs)
    outs = tuple(out) if op.public > 1 else (out,)
    for y in outs:
        if not isinstance(y, Tensor):
            raise TypeError(f"{op.name}: a __torch_dispatch__ gave a {type(y).__name__} where the op gives a tensor")
    return tuple([_twin(y) if y._tracked or any([y is x for x in given]) else y for y in outs])


def run_mutating(op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> None:
    """An op that overwrites inputs."""
    refuse_written(op, inputs)
    with below_autograd():
        _call_of(op)(*[surface(x) for x in inputs], **attrs)
    written(op, inputs)


def run_and_record(op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
    """An op under a mode: told, and recorded as any."""
    if len(inputs) != len(op.inputs) and not op.variadic:
        inputs = fill_inputs(op, inputs)
    if op.mutates:
        return run_mutating(op, inputs, attrs)
    outs = run(op, inputs, attrs)
    interpreter.record(op, LEVEL, inputs, attrs, outs)
    if op.view:
        share(outs[0], inputs[0], op, attrs)
    return outs if op.public > 1 else outs[0]


def _twin(y: Tensor) -> Any:
    """Another object over the same, for a place of its own in the graph: a handler gave what it had been given."""
    return y._array.instance.tensor(y._array) if is_instance(y) else new_tensor(y._array)


def write(target: Any, given: Tensor) -> None:
    """Write in place, where the target or what is written is of a class that dispatches."""
    if setting.off:
        memory_of(new_tensor(target)).copy_(memory_of(given))
        return
    with below_autograd():
        aten.copy_.default(surface(new_tensor(target)), surface(given))


def detached(array: WrappedArray) -> Any:
    """The array that a class's handler gives for aten.detach."""
    if setting.off:
        return array
    with below_autograd():
        return aten.detach.default(surface(new_tensor(array)))._array  # type: ignore[arg-type]


def ones_like(x: Tensor) -> Any:
    """Ones as the class of an instance has them, where its gradient begins."""
    with below_autograd():
        return aten.ones_like.default(surface(x))


def _make_tensor(array: Any) -> Tensor:
    made = new_tensor(array)
    return surface(made) if type(array) is WrappedArray else made  # type: ignore[no-any-return]


def _make_output(array: Any, node: Any) -> Tensor:
    made = surface(new_output(array, node))
    made._node, made._tracked = node, True
    return made  # type: ignore[no-any-return]


def install() -> None:
    """Let gradients and saved tensors be of the class that their arrays are of, and the transforms hand ops on. Once, with the first such class or mode."""
    nodes.make_tensor = _make_tensor  # type: ignore[assignment]
    nodes.make_output = _make_output  # type: ignore[assignment]


install()
