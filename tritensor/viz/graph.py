"""Function make_dot: a picture of a result's graph, from its leaves down to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tritensor.autograd.node import AccumulateGrad
from tritensor.ground.errors import GradError
from tritensor.nn.module import Module
from tritensor.tensor.core import Tensor
from tritensor.viz.picture import Picture


def make_dot(var: Any, params: Any = None, show_attrs: bool = False, show_saved: bool = False, max_attr_chars: int = 50) -> Picture:
    """Draw the graph that backward walks: results green, functions grey, leaves blue (with their names from `params`), saved tensors orange.

    Args:
        var: a tensor with a graph, or several in a list, tuple or dictionary.
        params: names of leaves: a module, or {name: tensor}, or pairs of them, such as `model.named_parameters()`.
        show_attrs: the attributes that functions keep, such as `dim`.
        show_saved: the tensors that they keep.

    Raises:
        GradError: for a tensor that has no graph.

    >>> w = tt.ones(3, requires_grad=True)
    >>> picture = tt.viz.make_dot((2 * w).sum(), params={"w": w})
    >>> [label for label, kind in picture.boxes.values()]
    [['()'], ['SumBackward0'], ['MulBackward0'], ['w', '(3,)']]
    >>> path = picture.save("graph.svg")
    """
    found = list(var.values()) if isinstance(var, Mapping) else list(var) if isinstance(var, list | tuple) else [var]
    for t in found:
        if not isinstance(t, Tensor) or t.grad_fn is None:
            what = "has no graph behind it" if isinstance(t, Tensor) else "is no tensor"
            raise GradError(f"make_dot: {type(t).__name__} {what}; give a result that was computed from tensors that require grad")
    drawing = _Drawing(_names_by_id(params), show_attrs, show_saved, max_attr_chars)
    for t in found:
        drawing.add_result(t)
    return drawing.picture


def _names_by_id(params: Any) -> dict[int, str]:
    if params is None:
        return {}
    pairs = params.named_parameters() if isinstance(params, Module) else params.items() if isinstance(params, Mapping) else params
    names = {}
    for name, t in pairs:
        if not isinstance(t, Tensor):
            raise TypeError(f"make_dot: params[{name!r}] is a {type(t).__name__}; give tensors by their names")
        names[id(t)] = name
    return names


class _Drawing:
    def __init__(self, names: dict[int, str], attrs: bool, saved: bool, letters: int) -> None:
        self.picture = Picture()
        self.names, self.attrs, self.saved, self.letters = names, attrs, saved, letters
        self.seen: set[int] = set()
        self.held: list[Any] = []  # the objects stay alive, so that their ids stay their own

    def add_result(self, t: Tensor) -> None:
        self._add_tensor(t, "output", t)
        if t._base is not None and t._base.grad_fn is not None:  # a view written in place: its gradient goes by the base
            self._add_tensor(t._base, "view", t._base)
            self.picture.edge(id(t._base), id(t), dashed=True)
        self.picture.edge(id(t.grad_fn), id(t))
        self._add_functions(t.grad_fn)

    def _add_tensor(self, t: Tensor, kind: str, key: Any) -> None:
        self.held.append(key)
        name = self.names.get(id(t), "")
        self.picture.box(id(key), f"{name}\n{tuple(t.shape)}" if name else f"{tuple(t.shape)}", kind)

    def _add_functions(self, root: Any) -> None:
        stack = [root]
        while stack:
            fn = stack.pop()
            if id(fn) in self.seen:
                continue
            self.seen.add(id(fn))
            self.held.append(fn)
            if isinstance(fn, AccumulateGrad):
                self._add_tensor(fn.variable, "leaf", fn)
                continue
            self.picture.box(id(fn), self._format_label(fn), "function")
            for above, _ in fn.next_functions:
                if above is not None:
                    self.picture.edge(id(above), id(fn))
                    stack.append(above)
            if self.saved:
                self._add_saved(fn)

    def _format_label(self, fn: Any) -> str:
        attrs = getattr(fn, "attrs", None) if self.attrs else None
        if not attrs:
            return str(fn.name())
        shown = [f"{k}: {v!r}"[: self.letters] for k, v in attrs.items()]
        return "\n".join([fn.name(), "-" * max(len(fn.name()), 8), *shown])

    def _add_saved(self, fn: Any) -> None:
        leaves = {id(f.variable) for f, _ in fn.next_functions if isinstance(f, AccumulateGrad)}  # drawn as leaves already
        for name, value in fn.saved() if hasattr(fn, "saved") else ():
            if isinstance(value, Tensor) and id(value) not in leaves:
                self._add_tensor(value, "saved", value)
                label, kind = self.picture.boxes[id(value)]
                self.picture.boxes[id(value)] = ([name, *label[-1:]], kind)  # its role in the formula says more than its own name
                self.picture.edge(id(value), id(fn), dashed=True)
