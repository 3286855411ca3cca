"""Graphs of models for tensorboard: one forward call's ops, in boxes that are the paths of the modules that called them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tritensor.autograd.modes import enable_grad
from tritensor.autograd.node import AccumulateGrad, next_sequence
from tritensor.ground.errors import GradError
from tritensor.ground.extras import extra
from tritensor.ground.pytree import tree_leaves, tree_map_only
from tritensor.io.protobuf import integer, message, text
from tritensor.nn.inspection import preserve_state, watch_calls
from tritensor.nn.module import Module
from tritensor.tensor.core import Tensor
from tritensor.utils.tensorboard.values import describe, encode_shape


def encode_node(name: str, op: str, inputs: list[str], shape: Any = None, attributes: str = "") -> bytes:
    """A NodeDef, in its field of a GraphDef."""
    attrs = message(5, text(1, "attr"), message(2, message(2, attributes.encode()))) if attributes else b""
    if shape is not None:
        attrs += message(5, text(1, "_output_shapes"), message(2, message(1, message(7, encode_shape(shape)))))
    return message(1, text(1, name), text(2, op), *[text(3, i) for i in inputs], attrs)


_VERSIONS = message(4, integer(1, 22))  # of the producer: the last one that tensorboard knows


def trace_graph(model: Any, given: Any, verbose: bool) -> bytes:
    """The GraphDef of one call of a module, in eval mode; its modes, buffers, hooks, gradients and the random numbers are as before afterwards.

    Ops that nothing can be differentiated through, such as argmax, do not appear. Raises TypeError for what is no module, GradError where
    the outputs have no graph.
    """
    if not isinstance(model, Module):
        raise TypeError(f"SummaryWriter.add_graph: model is {describe(model)}; give a tritensor.nn.Module")
    if given is None:
        raise TypeError("SummaryWriter.add_graph: input_to_model is None; give the tensors that one call of the model takes")
    args = tuple(given) if isinstance(given, list | tuple) else (given,)
    args = tree_map_only(Tensor, lambda t: t.detach().requires_grad_(t.is_floating_point()), args)  # so that every op leaves a node
    calls = _CallRecorder(model)
    outputs = calls.run(args)
    if not any(t.grad_fn is not None for t in outputs):  # there is nothing to be drawn
        raise GradError("SummaryWriter.add_graph: the outputs have no graph; look for detach(), no_grad() or numpy in the model's forward")
    found = _Graph(calls, args, outputs)
    if verbose:
        print(found.format_nodes())
    return found.message()


class _CallRecorder:
    """Recorder of a call: the module that ran when each node of the graph was made, by the nodes' numbers."""

    def __init__(self, model: Module) -> None:
        self.model = model
        self.paths = {id(m): name for name, m in model.named_modules()}
        self.kinds = {name: type(m).__name__ for name, m in model.named_modules()}
        self.spans: list[tuple[int, str]] = []  # from this number on, the path of the innermost module
        self.results: list[tuple[Any, Any]] = []  # (node, shape) of each result of a module
        self._open: list[str] = []

    def run(self, args: tuple[Any, ...]) -> list[Tensor]:
        """The tensors of the outputs."""
        frozen = [p for p in self.model.parameters() if not p.requires_grad and p.is_floating_point()]
        try:
            for p in frozen:  # else they, and the ops before them, would have no node
                p.requires_grad_(True)
            with preserve_state(self.model), enable_grad(), watch_calls(self.model, self._enter, self._leave):
                self.model.eval()
                return [t for t in tree_leaves(self.model(*args)) if isinstance(t, Tensor)]
        finally:
            for p in frozen:
                p.requires_grad_(False)

    def _enter(self, module: Module, args: Any, kwargs: Any) -> None:
        self._open.append(self.paths.get(id(module), type(module).__name__))
        self.spans.append((next_sequence(), self._open[-1]))

    def _leave(self, module: Module, given: Any, result: Any) -> None:
        self._open.pop()
        self.results += [(t.grad_fn, t.shape) for t in tree_leaves(result) if isinstance(t, Tensor) and t.grad_fn is not None]
        self.spans.append((next_sequence(), self._open[-1] if self._open else ""))

    def scope(self, path: str) -> str:
        """A path as tensorboard's boxes: Net/Sequential[features]/Linear[0], as PyTorch writes them."""
        words, at = [self.kinds[""]], ""
        for part in path.split(".") if path else ():
            at = f"{at}.{part}" if at else part
            words.append(f"{self.kinds.get(at, 'Module')}[{part}]")
        return "/".join(words)


class _Graph:
    """The nodes behind some outputs, named and in the order in which they were made."""

    def __init__(self, calls: _CallRecorder, args: Any, outputs: list[Tensor]) -> None:
        self.lines: list[tuple[str, str, list[str], Any, str]] = []
        names = {id(p): name for name, p in calls.model.named_parameters()}
        inputs = [t for t in tree_leaves(args) if isinstance(t, Tensor)]
        self._leaf_names = {id(t): f"input/input.{i}" for i, t in enumerate(inputs, 1)}
        for i, t in enumerate(inputs, 1):
            self.lines.append((f"input/input.{i}", "IO Node", [], t.shape, t.dtype.name))
        functions = _sort_nodes(outputs)
        shapes = _find_shapes(functions, [*calls.results, *[(t.grad_fn, t.shape) for t in outputs]])
        scopes = _find_scopes(functions, calls)
        named: dict[int, str] = {}
        for i, fn in enumerate(functions):
            if isinstance(fn, AccumulateGrad):
                leaf = fn.variable
                if id(leaf) in self._leaf_names:
                    named[id(fn)] = self._leaf_names[id(leaf)]
                    continue
                path, _, last = names.get(id(leaf), "").rpartition(".")
                named[id(fn)] = f"{calls.scope(path)}/{last or f'constant.{i}'}"
                self.lines.append((named[id(fn)], "Parameter", [], leaf.shape, leaf.dtype.name))
                continue
            kind = fn.name().rstrip("0123456789").removesuffix("Backward").rstrip("0123456789") or fn.name()
            named[id(fn)] = f"{scopes[id(fn)]}/{kind.lower()}.{i}"
            sources = [named[id(f)] for f, _ in fn.next_functions if f is not None and id(f) in named]
            self.lines.append(
                (named[id(fn)], f"tritensor::{kind}", [*sources, *self._untracked(fn, inputs)], shapes.get(id(fn)), _format_attrs(fn))
            )
        for i, t in enumerate(outputs, 1):
            if t.grad_fn is not None:
                self.lines.append((f"output/output.{i}", "IO Node", [named[id(t.grad_fn)]], t.shape, t.dtype.name))

    def _untracked(self, fn: Any, inputs: list[Tensor]) -> list[str]:
        """The inputs without a gradient, such as indices, that a node keeps: no edge of the graph leads to them."""
        kept = [v for _, v in fn.saved() if isinstance(v, Tensor)] if hasattr(fn, "saved") else []
        return [self._leaf_names[id(t)] for t in inputs if not t.requires_grad and any(k._array is t._array for k in kept)]

    def message(self) -> bytes:
        return b"".join([encode_node(*line) for line in self.lines]) + _VERSIONS

    def format_nodes(self) -> str:
        return "\n".join(f"{name} = {op}({', '.join(inputs)})" for name, op, inputs, _, _ in self.lines)


def _format_attrs(fn: Any) -> str:
    return ", ".join(f"{k}={v}" for k, v in (getattr(fn, "attrs", None) or {}).items())[:500]


def _sort_nodes(outputs: list[Tensor]) -> list[Any]:
    """The nodes of some outputs, each after those that it takes its inputs from."""
    order: list[Any] = []
    seen: set[int] = set()
    stack: list[tuple[Any, bool]] = [(t.grad_fn, False) for t in outputs if t.grad_fn is not None]
    while stack:
        fn, done = stack.pop()
        if done:
            order.append(fn)
        elif id(fn) not in seen:
            seen.add(id(fn))
            stack.append((fn, True))
            stack.extend([(f, False) for f, _ in fn.next_functions if f is not None])
    return order


def _find_shapes(functions: list[Any], known: list[tuple[Any, Any]]) -> dict[int, Any]:
    """The shapes of nodes' results, as far as modules returned them, or nodes keep their own outputs or inputs."""
    found: dict[int, Any] = {}
    for fn in functions:
        kept = getattr(fn, "outputs", None) or ()
        if kept and kept[0] is not None:
            found[id(fn)] = kept[0][0].shape
        sources = [f for f, _ in fn.next_functions]
        for given in (getattr(fn, "meta", None), getattr(fn, "inputs", None)):
            for source, x in zip(sources, given or (), strict=False):
                if source is not None and x is not None:
                    found[id(source)] = x[0] if isinstance(x, tuple) else x.shape
    return found | {id(fn): shape for fn, shape in known if fn is not None}


def _find_scopes(functions: list[Any], calls: _CallRecorder) -> dict[int, str]:
    """The scope of each node, by its number and those at which modules were entered and left."""
    numbered = sorted([(f._sequence_nr(), f) for f in functions if hasattr(f, "_sequence_nr")], key=lambda pair: pair[0])
    found, at, path = {}, 0, ""
    for number, fn in numbered:
        while at < len(calls.spans) and calls.spans[at][0] <= number:
            path = calls.spans[at][1]
            at += 1
        found[id(fn)] = calls.scope(path)
    whole = calls.scope("")
    return {id(f): found.get(id(f), whole) for f in functions}


def read_onnx_graph(path: Any) -> bytes:
    """The GraphDef of an ONNX file."""
    onnx = extra("onnx", "SummaryWriter.add_onnx_graph", "onnx", "tritensor[onnx]")
    graph = onnx.load(path).graph
    made: dict[str, str] = {}
    out = b""
    known: Mapping[str, list[int]] = {
        v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in [*graph.input, *graph.output, *graph.value_info]
    }
    for v in graph.input:
        made[v.name] = v.name
        out += encode_node(v.name, "Variable", [], known[v.name])
    for i, n in enumerate(graph.node):
        name = n.name or f"{n.op_type}_{i}"
        made.update(dict.fromkeys(n.output, name))
        attributes = ", ".join(f"{a.name}={onnx.helper.get_attribute_value(a)}" for a in n.attribute)[:500]
        out += encode_node(
            name, n.op_type, [made.get(x, x) for x in n.input if x], known.get(n.output[0]) if n.output else None, attributes
        )
    for v in graph.output:
        out += encode_node(f"output/{v.name}", "IO Node", [made[v.name]], known[v.name])
    return out + _VERSIONS
