"""Arguments of `export`: the model's inputs by name, and which of their axes are dynamic."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tritensor.ground.errors import ArgumentError, DTypeError
from tritensor.ground.pytree import tree_flatten, tree_unflatten
from tritensor.onnx.element_types import NUMBERS
from tritensor.ops.array import to_host
from tritensor.tensor.core import Tensor, new_tensor
from tritensor.tensor.functions.shaping.moving import to as moved

Axes = dict[int, str]  # of one input: by its axis the name of the size


class Inputs:
    """The tensors among (args, kwargs), in order, under their names; what is no tensor is fixed."""

    def __init__(self, model: Any, args: Any, kwargs: Mapping[str, Any] | None, names: Sequence[str] | None) -> None:
        if isinstance(args, Tensor) or not isinstance(args, tuple | list):
            args = (args,)
        self.args, self.kwargs = tuple(args), dict(kwargs or {})
        # torch.onnx's older form: keywords as a last dict in args
        if kwargs is None and self.args and isinstance(self.args[-1], dict) and _are_keywords(model, self.args):
            self.args, self.kwargs = self.args[:-1], dict(self.args[-1])
        flat, self.spec = tree_flatten((self.args, self.kwargs))
        self.flat = flat
        self.places = [k for k, x in enumerate(flat) if isinstance(x, Tensor)]
        self.tensors = [flat[k] for k in self.places]
        self.owners, own = _name_tensors(model, self.args, self.kwargs)
        for name, x in zip(own, self.tensors, strict=True):
            if x.dtype.name not in NUMBERS or x.dtype.is_complex:
                raise DTypeError(f"onnx.export: args: {name} is {x.dtype.name}, which ONNX's operators do not take; give real numbers")
        for x in flat:
            if isinstance(x, np.ndarray):
                raise TypeError(f"onnx.export: args holds a numpy array {x.shape}; wrap it with tritensor.from_numpy(...)")
        self.names = _complete_names("input_names", names, own)

    def assemble(self, tensors: Sequence[Tensor]) -> tuple[Any, Any]:
        """(args, kwargs) with other tensors in the places of the given ones."""
        flat = list(self.flat)
        for k, x in zip(self.places, tensors, strict=True):
            flat[k] = x
        args, kwargs = tree_unflatten(flat, self.spec)
        return args, kwargs


def _parameters(model: Any) -> list[inspect.Parameter]:
    """The parameters of what a call of the model reaches; none where they cannot be read."""
    try:
        return list(inspect.signature(getattr(model, "forward", model)).parameters.values())
    except (TypeError, ValueError):
        return []


def _are_keywords(model: Any, args: tuple[Any, ...]) -> bool:
    """Whether a dict at the end of args holds keywords, as older scripts write them: its keys name parameters behind the positional ones."""
    named = _parameters(model)
    behind = {p.name for p in named[len(args) - 1 :] if p.kind is not p.VAR_POSITIONAL}
    keys = args[-1].keys()
    own = named[len(args) - 1].name if len(named) >= len(args) else None
    return all(isinstance(k, str) and k in behind for k in keys) and (bool(keys) or own is None)


def _name_tensors(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[str], list[str]]:
    """For each tensor the argument that holds it, and its own name: the argument's, with a number where there are several."""
    named = [p for p in _parameters(model) if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    owners: list[str] = []
    for k, x in enumerate(args):
        owner = named[k].name if k < len(named) else f"input_{k}"
        owners += [owner] * _count_tensors(x)
    for owner, x in kwargs.items():
        owners += [owner] * _count_tensors(x)
    names = []
    for k, owner in enumerate(owners):
        same = [i for i, o in enumerate(owners) if o == owner]
        names.append(owner if len(same) == 1 else f"{owner}_{same.index(k)}")
    return owners, names


def _count_tensors(x: Any) -> int:
    return sum(isinstance(y, Tensor) for y in tree_flatten(x)[0])


def _complete_names(what: str, given: Sequence[str] | None, own: list[str]) -> list[str]:
    """The names of inputs or outputs: those given, then our own."""
    names = list(given or [])
    if isinstance(given, str) or not all(isinstance(n, str) and n for n in names):
        raise TypeError(f"onnx.export: {what} is {given!r}; give a list of names")
    if len(names) > len(own):
        raise ArgumentError(
            f"onnx.export: {what}: {len(names)} names ({', '.join(names)}) for {len(own)} tensors ({', '.join(own) or 'none'}); give a name for each, "
            "or for the first ones"
        )
    found = names + own[len(names) :]
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise ArgumentError(f"onnx.export: {what}: {', '.join(twice)} stands there twice; give each a name of its own")
    # only our own names give way: those given are the caller's to read in the file
    for k in range(len(names), len(found)):
        while found.index(found[k]) < k:
            found[k] += "_"
    return found


def complete_output_names(given: Sequence[str] | None, count: int) -> list[str]:
    """The names of the outputs."""
    return _complete_names("output_names", given, [f"output_{k}" if count > 1 else "output" for k in range(count)])


# -- dynamic axes
def read_dynamic_axes(inputs: Inputs, axes: Any, shapes: Any, outputs: Sequence[str] | None) -> list[Axes]:
    """For each input the axes that vary, and the name of each one's size. Raises ArgumentError for names and axes that are not there."""
    if axes is not None and shapes is not None:
        raise ArgumentError("onnx.export: dynamic_axes and dynamic_shapes say the same; give one of them")
    found: list[Axes] = [{} for _ in inputs.tensors]
    if axes is not None:
        _read_axes(inputs, axes, outputs, found)
    elif shapes is not None:
        _read_shapes(inputs, shapes, found)
    sizes: dict[str, tuple[int, str]] = {}
    for name, x, own in zip(inputs.names, inputs.tensors, found, strict=True):
        for axis, size in own.items():
            n = x.shape[axis]
            if n < 1:
                raise ArgumentError(
                    f"onnx.export: {name} {tuple(x.shape)}: its dynamic axis {axis} has no element in the sample; give some"
                )
            other = sizes.setdefault(size, (n, name))
            if other[0] != n:
                raise ArgumentError(
                    f"onnx.export: the dynamic size {size!r} is {other[0]} in {other[1]} and {n} in {name}; give two sizes two names, or a sample in "
                    "which they agree"
                )
    return found


def _read_axes(inputs: Inputs, axes: Any, outputs: Sequence[str] | None, found: list[Axes]) -> None:
    if not isinstance(axes, Mapping):
        raise TypeError(f"onnx.export: dynamic_axes is a {type(axes).__name__}; give a dict such as {{'input': {{0: 'batch'}}}}")
    for name, own in axes.items():
        if name in inputs.names:
            k = inputs.names.index(name)
            pairs = own.items() if isinstance(own, Mapping) else [(a, f"{name}_dynamic_axes_{i + 1}") for i, a in enumerate(own)]
            for axis, size in pairs:
                found[k][_require_axis(name, inputs.tensors[k], axis)] = str(size)
        elif name not in (outputs or ()):
            raise ArgumentError(
                f"onnx.export: dynamic_axes names {name!r}, which is neither an input ({', '.join(inputs.names) or 'there are none'}) nor an output "
                f"({', '.join(outputs or ()) or 'output_names is not given'}); give a name of these"
            )


def _require_axis(name: str, x: Tensor, axis: Any) -> int:
    if not isinstance(axis, int) or isinstance(axis, bool) or not -x.ndim <= axis < x.ndim:
        raise ArgumentError(f"onnx.export: the dynamic axis {axis!r} of {name} {tuple(x.shape)} is none; give one of 0 to {x.ndim - 1}")
    return axis % x.ndim


def _read_shapes(inputs: Inputs, shapes: Any, found: list[Axes]) -> None:
    """torch.export's form: for each argument, by name or by place, axes to names (or Dim objects); None is fixed."""
    if isinstance(shapes, Mapping):
        unknown = [k for k in shapes if k not in (*inputs.owners, *inputs.names, *inputs.kwargs) and k != "args"]
        if unknown:
            raise ArgumentError(
                f"onnx.export: dynamic_shapes names {', '.join(map(repr, unknown))}; the arguments are {', '.join(dict.fromkeys(inputs.owners))}"
            )
        trees = [(name, shapes[name]) for name in dict.fromkeys((*inputs.owners, *inputs.names)) if name in shapes]
    elif isinstance(shapes, tuple | list):
        order = list(dict.fromkeys(inputs.owners))
        if len(shapes) > len(order):
            raise ArgumentError(
                f"onnx.export: dynamic_shapes has {len(shapes)} entries for {len(order)} arguments with tensors; give one for each"
            )
        trees = list(zip(order, shapes, strict=False))
    else:
        raise TypeError(f"onnx.export: dynamic_shapes is a {type(shapes).__name__}; give a dict or a tuple, an entry for each argument")
    for name, tree in trees:
        places = [k for k, (owner, own) in enumerate(zip(inputs.owners, inputs.names, strict=True)) if name in (owner, own)]
        leaves = _flatten_shapes(tree)
        if len(leaves) != len(places):
            raise ArgumentError(
                f"onnx.export: dynamic_shapes of {name} has {len(leaves)} shapes for {len(places)} tensors; give one for each"
            )
        for k, leaf in zip(places, leaves, strict=True):
            pairs = leaf.items() if isinstance(leaf, Mapping) else enumerate(leaf or ())
            for axis, size in pairs:
                called = _size_name(size, inputs.names[k], axis)
                if called is not None:
                    found[k][_require_axis(inputs.names[k], inputs.tensors[k], axis)] = called


def _flatten_shapes(tree: Any) -> list[Any]:
    """The shapes in a nest of them: None, a dict of axes, a sequence of sizes."""
    if tree is None:
        return [None]
    if isinstance(tree, Mapping):
        return [tree] if all(isinstance(k, int) for k in tree) else [x for v in tree.values() for x in _flatten_shapes(v)]
    if any(isinstance(x, Mapping | tuple | list) for x in tree):
        return [x for v in tree for x in _flatten_shapes(v)]
    return [tree]


def _size_name(size: Any, name: str, axis: Any) -> str | None:
    """What a dynamic size is called; None for a fixed one."""
    if size is None or isinstance(size, int):
        return None
    if isinstance(size, str):
        return size
    called = getattr(size, "__name__", None) or getattr(size, "name", None) or str(size)
    # torch.export.Dim's hints, which scripts hand on; their names are all that is known here
    if called in ("STATIC", "_DimHint.STATIC"):
        return None
    return f"{name}_dim_{axis}" if called in ("AUTO", "DYNAMIC", "_DimHint") else str(called)


# -- samples of other sizes
def resize_sample(x: Tensor, axes: Axes, sizes: Mapping[str, int]) -> Tensor:
    """A sample with other sizes along its dynamic axes: the same elements, repeated or cut."""
    values = to_host(x._array)
    for axis, name in axes.items():
        n = sizes[name]
        if n != values.shape[axis]:
            values = np.take(values, np.arange(n) % values.shape[axis], axis=axis)
    # repeated, and not drawn: token numbers and masks stay among those that the model takes
    made = new_tensor(np.ascontiguousarray(values))
    return made if x.device.type == "cpu" else moved(made, x.device)
