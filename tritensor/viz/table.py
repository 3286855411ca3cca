"""summary: the layers of a model with the shapes that pass and the parameters, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tritensor.autograd.modes import no_grad
from tritensor.dtypes import as_dtype
from tritensor.nn.module import Module
from tritensor.tensor.core import Tensor
from tritensor.tensor.publishing.publish import public


@dataclass
class Line:
    """A module as it was called: its path, type, depth, the shape that came out, parameters of its own."""

    path: str
    kind: str
    depth: int
    output: str
    parameters: int


class Summary:
    """The lines of the table, and the sums below it. Printing shows all."""

    def __init__(self, lines: list[Line], total: int, trainable: int, size: int) -> None:
        self.lines = lines
        self.total_params, self.trainable_params, self.param_bytes = total, trainable, size

    def __str__(self) -> str:
        rows = [("Layer", "Output shape", "Parameters")]
        rows += [("  " * x.depth + (f"{x.path.rpartition('.')[2]}: " if x.path else "") + x.kind, x.output, f"{x.parameters:,}" if x.parameters else "--")
                 for x in self.lines]  # fmt: skip
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        shown = [f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c:>{widths[2]}}" for a, b, c in rows]
        rule = "-" * len(shown[0])
        sums = [
            f"Parameters: {self.total_params:,}, of which learned: {self.trainable_params:,}",
            f"Their size: {self.param_bytes / 2**20:.2f} MiB",
        ]
        return "\n".join([shown[0], rule, *shown[1:], rule, *sums])

    __repr__ = __str__


def summary(model: Module, input_size: Any = None, input_data: Any = None, dtype: Any = None, device: Any = None) -> Summary:
    """Run a model once and tell what each of its modules gives.

    Args:
        input_size: a shape, with the batch, or several in a list: zeros of them are passed. input_data: a tensor, or several, in its place.

    Raises:
        ValueError: where neither or both are given.
    """
    if (input_size is None) == (input_data is None):
        raise ValueError("summary: give input_size (a shape, with the batch) or input_data (a tensor), one of the two")
    args = (
        _inputs(input_size, dtype, device, model)
        if input_data is None
        else tuple(input_data)
        if isinstance(input_data, list | tuple)
        else (input_data,)
    )
    names = {id(m): name for name, m in model.named_modules()}
    lines: list[Line] = []
    open_: list[Line] = []

    def before(module: Module, given: Any) -> None:
        own = sum(p.numel() for p in module._parameters.values() if p is not None)
        line = Line(names[id(module)], type(module).__name__, len(open_), "", own)
        lines.append(line)
        open_.append(line)

    def after(module: Module, given: Any, result: Any) -> None:
        open_.pop().output = _shape(result)

    handles = [h for m in model.modules() for h in (m.register_forward_pre_hook(before), m.register_forward_hook(after))]
    training = model.training
    try:
        with no_grad():
            model.eval()
            model(*args)
    finally:
        model.train(training)
        for handle in handles:
            handle.remove()
    params = list(model.parameters())
    return Summary(lines, sum(p.numel() for p in params), sum(p.numel() for p in params if p.requires_grad), sum(p.nbytes for p in params))


def _inputs(size: Any, dtype: Any, device: Any, model: Module) -> tuple[Any, ...]:
    first = next(model.parameters(), None)
    kind = as_dtype(dtype) if dtype is not None else None
    place = device if device is not None else None if first is None else first.device
    shapes = [size] if all(isinstance(n, int) for n in size) else list(size)
    return tuple([public["zeros"](tuple(s), dtype=kind, device=place) for s in shapes])


def _shape(result: Any) -> str:
    if isinstance(result, Tensor):
        return str(list(result.shape))
    if isinstance(result, Sequence) and not isinstance(result, str):
        return ", ".join(_shape(r) for r in result)
    return type(result).__name__
