"""Names of nodes, as `grad_fn` shows them: PyTorch's name for what the user called, where the op's own name is another."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

_RENAMED = {
    "attention": "ScaledDotProductFlashAttentionForCpu", "avg_pool2d": "AvgPool2D", "batch_norm": "NativeBatchNorm", "batch_norm_by": "NativeBatchNorm",
    "bce_with_logits": "BinaryCrossEntropyWithLogits", "cholesky": "LinalgCholeskyEx", "clamp": "Clamp1",
    "constant_pad": "ConstantPadNd", "conv1d": "Convolution", "conv2d": "Convolution", "conv3d": "Convolution", "copy": "Clone",
    "cross_entropy": "NllLoss", "det": "LinalgDet", "dropout": "Mul", "eigh": "LinalgEigh", "entr": "SpecialEntr",
    "flash_attention": "ScaledDotProductFlashAttention", "grid_sample": "GridSampler2D",
    "group_norm": "NativeGroupNorm", "imag": "Select", "index_get": "Index", "inv": "LinalgInvEx", "kl_div": "Mean", "l1_loss": "Mean",
    "layer_norm": "NativeLayerNorm", "matrix_exp": "LinalgMatrixExp", "max_dim": "Max", "max_pool2d": "MaxPool2DWithIndices", "min_dim": "Min",
    "pad_diagonal": "DiagEmbed", "pinv": "LinalgPinv", "prelu": "PreluKernel", "qr": "LinalgQr", "real": "Select", "selu": "Elu", "slogdet": "LinalgSlogdet",
    "solve_triangular": "LinalgSolveTriangular", "square": "Pow", "svd": "LinalgSvd", "xlog1py": "SpecialXlog1Py",
}  # fmt: skip


def name_of(node: Any) -> str:
    """The name of a node, such as MulBackward0. The digit tells apart the forms of one function, as in PyTorch: SumBackward1 has dims."""
    op: str = node.op.name
    special = _BY_CALL.get(op)
    name = special(node) if special is not None else _RENAMED.get(op) or camel(op)
    return name[:-1] + "Backward" + name[-1] if name[-1] in "12" and (special is not None or op in _RENAMED) else name + "Backward0"


def shown(node: Any) -> Any:
    """The node, of a subclass of its class that bears its name: programs that draw a graph read `type(y.grad_fn).__name__`."""
    kind = type(node)
    if "recorded" not in vars(kind):
        key = kind, node.name()
        named = _named.get(key)
        if named is None:
            named = _named[key] = type(key[1], (kind,), {"__slots__": (), "recorded": kind, "__doc__": kind.__doc__})
        node.__class__ = named  # when somebody looks, so that making a node costs nothing for it
    return node


_named: dict[tuple[type, str], type] = {}


def camel(name: str) -> str:
    """leaky_relu -> LeakyRelu, log1p -> Log1P."""
    return re.sub(r"(?:^|_|(?<=\d))([a-z])", lambda m: m.group(1).upper(), name)


def _ndims(node: Any) -> tuple[int, ...]:
    return tuple([0 if m is None else len(m[0]) for m in node.meta or ()])


def _matmul(node: Any) -> str:
    a, b = [len(x._array.shape) for x in node.inputs] if _tensors(node.inputs) else _ndims(node) or (2, 2)
    if a == b == 1:
        return "Dot"
    if b == 1:
        return "Mv" if a == 2 else "UnsafeView"
    return "Mm" if a == b == 2 else "Bmm" if a == b == 3 else "UnsafeView" if a > 1 else "Squeeze1"


def _tensors(inputs: Any) -> bool:
    return bool(inputs) and all(hasattr(x, "_array") for x in inputs)


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
    return "Pow1" if node.edges[1] is not None or hasattr(exponent, "_array") else "Pow"


def _whole(node: Any) -> bool:
    """True where a reduction is over all dimensions. A node that let its input go is told by its dims alone."""
    dims = tuple(node.attrs["dim"])
    shape = node.meta[0][0] if node.meta else node.inputs[0]._array.shape if node.inputs else None
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


_ROOTS = {"sum_of_squares": "LinalgVectorNorm", "var": "Std"}  # what a root of them is


def _sqrt(node: Any) -> str:
    return _ROOTS.get(getattr(getattr(node.edges[0], "op", None), "name", ""), "Sqrt")


def _where(node: Any) -> str:
    """A norm and a standard deviation are roots with a gradient of their own at 0; a fill keeps what is elsewhere."""
    steps: list[str] = []
    at = node
    while len(steps) < 3 and getattr(at, "edges", None):
        at = at.edges[-1]
        steps.append(getattr(getattr(at, "op", None), "name", ""))
    if steps[:2] != ["sqrt", "where"]:
        return "Where"
    return _ROOTS.get(steps[-1], "Where")


def _cast(node: Any) -> str:
    """A standard deviation that float32 does not hold the squares of is computed in float64, and brought back."""
    rounded = getattr(getattr(node.edges[0], "op", None), "name", "") in ("sqrt", "where") and name_of(node.edges[0]) == "StdBackward0"
    return "Std" if rounded else "ToCopy"


_BY_CALL: dict[str, Callable[[Any], str]] = {
    "matmul": _matmul, "reshape": _reshape, "permute": _permute, "index_view": _index_view, "pow": _pow, "sum": _reduced("Sum"),
    "mean": _reduced("Mean"), "prod": _reduced("Prod"), "amax": _largest("Max"), "amin": _largest("Min"), "linear": _linear, "sqrt": _sqrt,
    "where": _where, "cast": _cast,
}  # fmt: skip
NAMED_BY_CALL = frozenset(_BY_CALL)  # ops whose nodes' names depend on the call


class SavedValue:
    """`node._saved_self`: one of what a node keeps. A `__getattr__` would make every other attribute of a node slower."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, node: Any, owner: type) -> Any:
        for name, value in () if node is None else node.saved():
            if name == self.name:
                return value
        raise AttributeError(f"'{owner.__name__}' object has no attribute '_saved_{self.name}'")
