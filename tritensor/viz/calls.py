"""Record of a model's call: the modules that ran, inside which others, shapes in and out, multiplications."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tritensor.autograd.modes import no_grad
from tritensor.nn.inspection import preserve_state, watch_calls
from tritensor.nn.module import Module
from tritensor.nn.parameter import is_lazy
from tritensor.tensor.core import Tensor


@dataclass
class Line:
    """A call of a module: its path, type, depth, shapes in and out, and its own parameters and multiply-adds.

    `again`: the module has an earlier line as well. `called`: False for one that has parameters and was not called.
    """

    path: str
    kind: str
    depth: int
    output: str
    parameters: int
    input: str = ""
    learned: int = 0
    mult_adds: int = 0
    again: bool = False
    called: bool = True
    bytes_out: int = field(default=0, repr=False)  # of the results of a module without inner calls
    inner: bool = field(default=False, repr=False)  # whether it called others


def run_model(model: Module, args: Sequence[Any], kwargs: Mapping[str, Any], mode: str) -> tuple[list[Line], Module]:
    """Call a model once; modes, buffers, hooks and random numbers are as before afterwards. An error carries a note of how far the call came.

    A model with lazy parameters is copied first, and stays lazy. Returns the lines and the model that ran.
    """
    if any(is_lazy(p) for p in [*model.parameters(), *model.buffers()]):
        model = copy.deepcopy(model)  # the call would make the lazy parameters real
    calls = _Calls(model)
    with preserve_state(model), no_grad(), watch_calls(model, calls.enter, calls.leave):
        model.train(mode == "train")
        try:
            model(*args, **kwargs)
        except Exception as error:
            error.add_note(f"summary: the call came as far as {calls.describe_position()}")
            raise
    return calls.all_lines(), model


class _Calls:
    """The lines of a call, in the order in which modules were entered."""

    def __init__(self, model: Module) -> None:
        self.model = model
        self.names = {id(m): name for name, m in model.named_modules()}
        self.lines: list[Line] = []
        self._open: list[Line] = []
        self._seen: set[int] = set()

    def enter(self, module: Module, args: Any, kwargs: Any) -> None:
        line = self._make_line(module, len(self._open))
        line.input = format_shapes([*args, *kwargs.values()])
        for outer in self._open[-1:]:
            outer.inner = True
        self.lines.append(line)
        self._open.append(line)

    def leave(self, module: Module, args: Any, result: Any) -> None:
        line = self._open.pop()
        line.output = format_shapes(result)
        # a container returns the tensors of its last layer: counted there
        line.bytes_out = 0 if line.inner else sum(t.nbytes for t in find_tensors(result))
        line.mult_adds = count_multiply_adds(module, args, result)

    def _make_line(self, module: Module, depth: int, called: bool = True) -> Line:
        own = [p for p in module._parameters.values() if p is not None and not is_lazy(p)]
        again = id(module) in self._seen
        self._seen.add(id(module))
        return Line(
            self.names.get(id(module), ""), type(module).__name__, depth, "", sum(p.numel() for p in own),
            learned=sum(p.numel() for p in own if p.requires_grad), again=again, called=called,
        )  # fmt: skip

    def describe_position(self) -> str:
        at = self._open[-1] if self._open else None
        return "its first module" if at is None else f"{at.path or 'the model'} ({at.kind}), given {at.input}"

    def all_lines(self) -> list[Line]:
        """The lines, with those of modules that have parameters and were not called, behind the lines of their owners."""
        for name, module in self.model.named_modules():
            if id(module) in self._seen or not any(p is not None for p in module._parameters.values()):
                continue
            owners = [i for i, x in enumerate(self.lines) if x.called and (not x.path or name.startswith(x.path + "."))]
            at = max(owners, key=lambda i: (len(self.lines[i].path), -i), default=-1)
            depth = self.lines[at].depth + 1 if at >= 0 else 0
            end = next((i for i in range(at + 1, len(self.lines)) if self.lines[i].depth < depth), len(self.lines))
            self.lines.insert(end, self._make_line(module, depth, called=False))
        return self.lines


def list_modules(model: Module) -> list[Line]:
    """A line for each module, by its path, without a call."""
    calls = _Calls(model)
    for name, module in model.named_modules(remove_duplicate=False):
        line = calls._make_line(module, name.count(".") + 1 if name else 0)
        line.path = name
        calls.lines.append(line)
    return calls.lines


def find_tensors(value: Any) -> list[Tensor]:
    """The tensors of nested data."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, Mapping):
        value = list(value.values())
    return [t for v in value for t in find_tensors(v)] if isinstance(value, list | tuple) else []


def format_shapes(value: Any) -> str:
    """The shapes of nested data, as text."""
    if isinstance(value, Tensor):
        return str(list(value.shape))
    if isinstance(value, Mapping):
        return ", ".join(f"{k}: {format_shapes(v)}" for k, v in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(format_shapes(v) for v in value)
    return type(value).__name__


def count_multiply_adds(module: Module, args: Any, result: Any) -> int:
    """Multiply-adds of a layer's products, biases not counted: linear, convolutions, recurrent layers, attention, and a layer of the user's
    with a matrix `weight`; 0 for others."""
    outs, ins = find_tensors(result), find_tensors(args)
    if not outs or not ins:
        return 0
    kinds = {c.__name__ for c in type(module).__mro__}
    m: Any = module
    if "Linear" in kinds:
        return int(outs[0].numel() * m.in_features)
    if "Bilinear" in kinds:
        return int(outs[0].numel() * m.in1_features * m.in2_features)
    if any(k.startswith("ConvTranspose") for k in kinds):
        # each input element is added into out_channels kernels
        return int(ins[0].numel() * m.out_channels // m.groups * math.prod(m.kernel_size))
    if kinds & {"Conv1d", "Conv2d", "Conv3d"}:
        return int(outs[0].numel() * m.in_channels // m.groups * math.prod(m.kernel_size))
    if kinds & {"RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell"}:
        width = m.input_size if "Cell" in type(module).__name__ else ins[0].shape[-1]  # a cell takes one step, (batch, size) or (size,)
        positions = ins[0].numel() // width  # steps of all sequences
        return int(positions * sum(p.numel() for n, p in module._parameters.items() if p is not None and "weight" in n))
    if "MultiheadAttention" in kinds:
        query, key = ins[0], ins[1] if len(ins) > 1 else ins[0]  # four projections, then scores and their product with the values
        width = m.embed_dim
        rows, keys = query.numel() // width, key.numel() // key.shape[-1]
        length = key.shape[1 if m.batch_first else 0] if key.ndim == 3 else key.shape[0]
        value = ins[2].shape[-1] if len(ins) > 2 else width
        return int(2 * rows * width * width + keys * width * (key.shape[-1] + value) + 2 * rows * length * width)
    weight = module._parameters.get("weight")
    if weight is not None and weight.ndim == 2 and outs[0].ndim and tuple(weight.shape) in _matrix_shapes(ins[0], outs[0]):
        return int(outs[0].numel() * ins[0].shape[-1])
    return 0


def _matrix_shapes(x: Tensor, y: Tensor) -> list[tuple[int, int]]:
    """The shapes of a matrix that x is multiplied by to give y: both orders; none where their rows differ."""
    if not x.ndim or not y.ndim or not x.is_floating_point() or x.shape[:-1] != y.shape[:-1]:
        return []
    return [(x.shape[-1], y.shape[-1]), (y.shape[-1], x.shape[-1])]
