"""Function summary: a table of a model's layers with their shapes, parameters and multiply-adds, for terminals and notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from tritensor.ground.dtypes import as_dtype
from tritensor.ground.errors import ArgumentError
from tritensor.nn.module import Module
from tritensor.nn.parameter import is_lazy
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import public
from tritensor.viz.calls import Line as Line
from tritensor.viz.calls import find_tensors, list_modules, run_model

_COLUMNS = ("Layer", "Input shape", "Output shape", "Parameters", "Mult-adds")
_MIB = 2**20


class Summary:
    """The lines of the table, and the sums below it. Printing shows all; a notebook shows a table.

    Attributes:
        lines: one for each call of a module, down to `depth`.
        total_params, trainable_params, param_bytes: of the model; what several modules share counts once.
        total_mult_adds: of all layers' products.
        input_bytes, output_bytes: of the inputs, and of the results of layers without inner ones: twice that, values and gradients, is about the
            memory that a training step keeps.
    """

    def __init__(self, lines: list[Line], model: Module, input_bytes: int, depth: int | None) -> None:
        params = [p for p in model.parameters() if not is_lazy(p)]
        self.total_params = sum(p.numel() for p in params)
        self.trainable_params = sum(p.numel() for p in params if p.requires_grad)
        self.param_bytes = sum(p.nbytes for p in params)
        self.total_mult_adds = sum(x.mult_adds for x in lines)
        self.input_bytes, self.output_bytes = input_bytes, sum(x.bytes_out for x in lines)
        self.lines = lines if depth is None else _fold_lines(lines, depth)
        self._ran = any(x.output for x in lines)

    def _format_rows(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = []
        outer = [""]
        for x in self.lines:
            outer[x.depth :] = [x.path]
            above = outer[x.depth - 1] if x.depth else ""
            name = x.path[len(above) + 1 :] if above and x.path.startswith(above + ".") else x.path
            parameters = f"{x.parameters:,}" if x.parameters else "--"
            if x.again:
                parameters = "(again)" if x.parameters else "--"
            elif x.parameters and not x.learned:
                parameters += " frozen"
            output = x.output if x.called else "(not called)"
            layer = "  " * x.depth + (f"{name}: " if name else "") + x.kind
            rows.append((layer, x.input, output, parameters, f"{x.mult_adds:,}" if x.mult_adds else "--"))
        return rows

    def _format_sums(self) -> list[str]:
        sums = [
            f"Parameters: {self.total_params:,}, of which learned: {self.trainable_params:,}",
            f"Their size: {self.param_bytes / _MIB:.2f} MiB",
        ]
        if self._ran:
            kept = 2 * self.output_bytes
            whole = self.input_bytes + kept + self.param_bytes
            sums.insert(1, f"Mult-adds: {self.total_mult_adds:,}")
            sums += [
                f"Inputs: {self.input_bytes / _MIB:.2f} MiB, layers' outputs and their gradients: {kept / _MIB:.2f} MiB",
                f"Together: {whole / _MIB:.2f} MiB",
            ]
        return sums

    def __str__(self) -> str:
        shown = [0, 1, 2, 3, 4] if self._ran else [0, 3]
        rows: list[tuple[str, ...]] = [_COLUMNS, *self._format_rows()]
        widths = [max(len(row[i]) for row in rows) for i in range(5)]
        lines = ["  ".join([f"{row[i]:>{widths[i]}}" if i > 2 else f"{row[i]:<{widths[i]}}" for i in shown]).rstrip() for row in rows]
        rule = "-" * max(map(len, lines))
        return "\n".join([lines[0], rule, *lines[1:], rule, *self._format_sums()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = "".join([f"<th>{c}</th>" for c in _COLUMNS])
        body = []
        for x, row in zip(self.lines, self._format_rows(), strict=True):
            first = f'<td style="text-align:left;padding-left:{x.depth * 1.2 + 0.5:g}em">{escape(row[0].strip())}</td>'
            body.append(f"<tr>{first}{''.join([f'<td>{escape(cell)}</td>' for cell in row[1:]])}</tr>")
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table><p>{'<br>'.join(map(escape, self._format_sums()))}</p>"


def _fold_lines(lines: list[Line], depth: int) -> list[Line]:
    """Lines down to a depth; deeper ones are counted in the last one above."""
    from dataclasses import replace

    found: list[Line] = []
    for line in lines:
        if line.depth <= depth:
            found.append(replace(line))
            continue
        last = found[-1]
        last.mult_adds += line.mult_adds
        if not line.again:  # shared parameters are counted once
            last.parameters += line.parameters
            last.learned += line.learned
    return found


def summary(
    model: Module, input_size: Any = None, input_data: Any = None, dtype: Any = None, device: Any = None, depth: int | None = None,
    dtypes: Any = None, mode: str = "eval", **kwargs: Any,
) -> Summary:  # fmt: skip
    """Run a model once and list its modules with their shapes. The model is afterwards as it was before.

    Args:
        input_size: a shape, with the batch, or several in a list, or in a dict by the model's arguments: zeros of them are passed.
        input_data: a tensor, or several in a list, tuple or dict, in its where. Without both nothing runs: modules and parameters are listed.
        dtype: of the zeros; `dtypes`, a list, where they differ.
        device: where the zeros are; None: where the model is.
        depth: the deepest lines that are shown, 0 for the model alone; what lies below is counted in them.
        mode: "eval" or "train", the mode in which the model runs.
        kwargs: further arguments of the call.

    Raises:
        ValueError: where both are given, or sizes that are none. What the model raises carries a note of how far it came.

    >>> print(tt.viz.summary(nn.Sequential(nn.Linear(4, 8), nn.ReLU()), (1, 4)))
    Layer        Input shape  Output shape  Parameters  Mult-adds
    -------------------------------------------------------------
    Sequential   [1, 4]       [1, 8]                --         --
      0: Linear  [1, 4]       [1, 8]                40         32
      1: ReLU    [1, 8]       [1, 8]                --         --
    -------------------------------------------------------------
    Parameters: 40, of which learned: 40
    ...
    """
    if not isinstance(model, Module):
        raise TypeError(f"summary: model is {type(model).__name__}; give a tritensor.nn.Module")
    if input_size is not None and input_data is not None:
        raise ArgumentError("summary: input_size and input_data are given; give a shape, with the batch, or tensors: one of the two")
    if mode not in ("eval", "train") or (depth is not None and depth < 0):
        raise ArgumentError(f"summary: mode={mode!r}, depth={depth!r}; give 'eval' or 'train', and a depth of 0 or more")
    if input_size is None and input_data is None and not kwargs:
        return Summary(list_modules(model), model, 0, depth)
    given = input_data if input_data is not None else () if input_size is None else _make_inputs(input_size, dtypes or dtype, device, model)
    if isinstance(given, Mapping):
        args, kwargs = (), {**given, **kwargs}
    else:
        args = tuple(given) if isinstance(given, list | tuple) else (given,)
    lines, ran = run_model(model, args, kwargs, mode)
    return Summary(lines, ran, sum(t.nbytes for t in find_tensors([args, kwargs])), depth)


def _make_inputs(size: Any, dtype: Any, device: Any, model: Module) -> Any:
    """Zeros of a shape, of several, or of those of a dict."""
    first = next((p for p in model.parameters() if not is_lazy(p)), None)  # inputs go where the model is
    where = device if device is not None else None if first is None else first.device
    if isinstance(size, Mapping):
        by_name = dtype if isinstance(dtype, Mapping) else dict.fromkeys(size, dtype)
        return {name: _make_zeros(shape, by_name.get(name), where) for name, shape in size.items()}
    shapes = [size] if all(isinstance(n, int) for n in size) else list(size)
    kinds = list(dtype) if isinstance(dtype, list | tuple) else [dtype] * len(shapes)
    if len(kinds) != len(shapes):
        raise ArgumentError(f"summary: {len(kinds)} dtypes for {len(shapes)} shapes; give one for each")
    return tuple([_make_zeros(s, k, where) for s, k in zip(shapes, kinds, strict=True)])


def _make_zeros(shape: Any, dtype: Any, device: Any) -> Tensor:
    if not isinstance(shape, list | tuple) or not all(isinstance(n, int) for n in shape):
        raise ArgumentError(f"summary: input_size has {shape!r}; give a shape such as (1, 3, 224, 224), or a list of shapes")
    return public["zeros"](tuple(shape), dtype=None if dtype is None else as_dtype(dtype), device=device)  # type: ignore[no-any-return]
