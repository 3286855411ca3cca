"""What `grad_fn` calls a node: PyTorch's name for what the user called, where the op's own name is another."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

_RENAMED = {
    "avg_pool2d": "AvgPool2D", "cast": "ToCopy", "clamp": "Clamp1", "conv2d": "Convolution", "copy": "Clone", "cross_entropy": "NllLoss",
    "index_get": "Index", "layer_norm": "NativeLayerNorm", "max_dim": "Max", "max_pool2d": "MaxPool2DWithIndices", "min_dim": "Min",
    "pad_diagonal": "DiagEmbed", "square": "Pow",
}  # fmt: skip


def name_of(node: Any) -> str:
    """The name of a node, such as MulBackward0. The digit tells apart the forms of one function, as in PyTorch: SumBackward1 has dims."""
    op: str = node.op.name
    special = _BY_CALL.get(op)
    name = special(node) if special is not None else _RENAMED.get(op) or camel(op)
    return name[:-1] + "Backward" + name[-1] if name[-1] in "12" and (special is not None or op in _RENAMED) else name + "Backward0"


def camel(name: str) -> str:
    """leaky_relu -> LeakyRelu, log1p -> Log1P."""
    return re.sub(r"(?:^|_|(?<=\d))([a-z])", lambda m: m.group(1).upper(), name)


def _ndims(node: Any) -> tuple[int, ...]:
    return tuple([0 if m is None else len(m[0]) for m in node.meta or ()])


def _matmul(node: Any) -> str:
    a, b = [len(x.array.shape) for x in node.inputs] if _tensors(node.inputs) else _ndims(node) or (2, 2)
    if a == b == 1:
        return "Dot"
    if b == 1:
        return "Mv" if a == 2 else "UnsafeView"
    return "Mm" if a == b == 2 else "Bmm" if a == b == 3 else "UnsafeView" if a > 1 else "Squeeze1"


def _tensors(inputs: Any) -> bool:
    return bool(inputs) and all(hasattr(x, "array") for x in inputs)


def _reshape(node: Any) -> str:
    ((have, _),), want = node.meta, tuple(node.attrs["shape"])
    edge = node.edges[0]
    if have == want or [n for n in have if n != 1] != [n for n in want if n != 1]:
        copied = edge is not None and getattr(getattr(edge, "op", None), "name", "") == "copy"
        return "UnsafeView" if copied else "View"
    if len(want) == len(have) + 1:
        return "Unsqueeze"
    if len(want) < len(have):
        return "Squeeze" if 1 not in want else "Squeeze1"
    return "View"


def _permute(node: Any) -> str:
    dims = node.attrs["dims"]
    return "Transpose" if sum(d != i for i, d in enumerate(dims)) == 2 else "Permute"


def _index_view(node: Any) -> str:
    """The last of the steps that PyTorch takes an index in."""
    for i in reversed(node.attrs["index"]):
        if i is None:
            return "Unsqueeze"
        if type(i) is not slice:
            return "Select"
        if i != slice(None):
            return "Slice"
    return "Alias"


def _pow(node: Any) -> str:
    base, exponent = node.inputs if node.inputs else (node, node)
    if isinstance(base, int | float):
        return "Pow2"
    return "Pow1" if node.edges[1] is not None or hasattr(exponent, "array") else "Pow"


def _whole(node: Any) -> bool:
    """Whether a reduction is over all dimensions. A node that let its input go is told by its dims alone."""
    dims = tuple(node.attrs["dim"])
    shape = node.meta[0][0] if node.meta else node.inputs[0].array.shape if node.inputs else None
    ndim = len(shape) if shape is not None else max(len(dims), 2)
    return dims == tuple(range(ndim)) and not node.attrs["keepdim"]


def _reduced(name: str) -> Callable[[Any], str]:
    """A sum over all dimensions is another function than one over some."""
    return lambda node: name if _whole(node) else name + "1"


def _largest(name: str) -> Callable[[Any], str]:
    """amax over all dimensions is what max() computes."""
    return lambda node: name + "1" if _whole(node) else "A" + name.lower()


def _linear(node: Any) -> str:
    return "Addmm" if node.edges[-1] is not None else "Mm"


_BY_CALL: dict[str, Callable[[Any], str]] = {
    "matmul": _matmul, "reshape": _reshape, "permute": _permute, "index_view": _index_view, "pow": _pow, "sum": _reduced("Sum"),
    "mean": _reduced("Mean"), "prod": _reduced("Prod"), "amax": _largest("Max"), "amin": _largest("Min"), "linear": _linear,
}  # fmt: skip
