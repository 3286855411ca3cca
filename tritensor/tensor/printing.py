"""Text of a tensor as PyTorch prints it: values, dtype, device, grad_fn. Of a large one only the edge items leave the GPU."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError, GradError
from tritensor.ground.transforms import JVP, TRACE, WrappedArray
from tritensor.ops.array import Array, to_host
from tritensor.ops.strided_array import MetaArray
from tritensor.tensor.core import Tensor

_PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}
options: dict[str, Any] = {**_PROFILES["default"], "sci_mode": None}


def set_printoptions(
    precision: int | None = None, threshold: float | None = None, edgeitems: int | None = None, linewidth: int | None = None,
    profile: str | None = None, sci_mode: bool | None = None,
) -> None:  # fmt: skip
    """How tensors print: digits after the point, above how many elements to abbreviate, items kept at each edge, line width.

    `profile` is "default", "short" or "full". `sci_mode` forces scientific notation on or off; None, also where it is not given, lets
    the values decide. Raises ValueError for another profile.
    """
    if profile is not None:
        if profile not in _PROFILES:
            raise ArgumentError(f"set_printoptions: {profile!r} is no profile; give one of {', '.join(map(repr, _PROFILES))}")
        options.update(_PROFILES[profile])
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    options.update({k: v for k, v in given.items() if v is not None}, sci_mode=sci_mode)


# -- one number
class _RealFormat:
    """One form for all real numbers of a tensor: whole with a point, fixed or scientific, and a width that right-aligns most of them."""

    def __init__(self, values: np.ndarray) -> None:
        self.precision = options["precision"]
        self.scientific, self.whole, self.width = False, True, 1
        doubles = values.reshape(-1).astype(np.float64)
        counted = doubles[np.isfinite(doubles) & (doubles != 0)]  # zeros, nan and infinities stand as wide as they are
        if counted.size:
            size = np.abs(counted)
            low, high = float(size.min()), float(size.max())
            self.whole = bool((counted == np.ceil(counted)).all())
            # PyTorch's thresholds (torch/_tensor_str.py).
            self.scientific = high / low > 1000.0 or high > 1e8 or (not self.whole and low < 1e-4)
            if options["sci_mode"] is not None:
                self.scientific = options["sci_mode"]
            self.width = max(len(self._bare(v)) for v in (counted.min(), counted.max(), *self._nearest_to_zero(counted)))

    @staticmethod
    def _nearest_to_zero(values: np.ndarray) -> list[float]:
        """Of each sign: with the extremes these are the longest in any form."""
        return [float(part.max() if part[0] < 0 else part.min()) for part in (values[values < 0], values[values > 0]) if part.size]

    def _bare(self, value: float) -> str:
        if self.scientific:
            return f"{value:.{self.precision}e}"
        if self.whole:
            return f"{value:.0f}" + ("." if math.isfinite(value) else "")
        return f"{value:.{self.precision}f}"

    def __call__(self, value: float) -> str:
        return self._bare(value).rjust(self.width)


class _ComplexFormat:
    """A complex number: real and imaginary part each in a form of their own."""

    def __init__(self, values: np.ndarray) -> None:
        self.real, self.imaginary = _RealFormat(values.real), _RealFormat(values.imag)
        self.width = self.real.width + self.imaginary.width + 1

    def __call__(self, value: complex) -> str:
        imaginary = (self.imaginary(value.imag) + "j").lstrip()
        return self.real(value.real) + ("" if imaginary[0] in "+-" else "+") + imaginary


class _IntegerFormat:
    """Integers and booleans, all of one width."""

    def __init__(self, values: np.ndarray) -> None:
        extremes = (values.min(), values.max()) if values.size else ()
        self.width = max((len(str(v.item())) for v in extremes), default=1)

    def __call__(self, value: object) -> str:
        return str(value).rjust(self.width)


# -- all of them
def _edge_values(x: Array, edge: int) -> np.ndarray:
    """The values at both edges of every dimension that is longer than the two, on the host; those between are left out."""
    for axis, size in enumerate(x.shape):
        if size > 2 * edge:  # a strided window on each edge: the pieces are copied to the host, not the tensor
            lead = (slice(None),) * axis
            return np.concatenate([_edge_values(x[(*lead, part)], edge) for part in (slice(0, edge), slice(size - edge, size))], axis)
    return to_host(x)


def _join_row(words: list[str], width: int, indent: int) -> str:
    """One dimension, broken into lines."""
    fits = max(1, (options["linewidth"] - indent) // (width + 2))
    lines = [", ".join(words[i : i + fits]) for i in range(0, len(words), fits)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _join_nested(values: Any, cut: tuple[bool, ...], edge: int, show: Any, indent: int) -> str:
    """Nested lists of as many dimensions as `cut` has flags; a dimension that was cut gets dots in its middle."""
    if not cut:
        return str(show(values))
    if len(cut) == 1:
        parts = [show(v) for v in values]
        return _join_row([*parts[:edge], " ...", *parts[edge:]] if cut[0] else parts, show.width, indent)
    parts = [_join_nested(v, cut[1:], edge, show, indent + 1) for v in values]
    if cut[0]:
        parts[edge:edge] = ["..."]
    return "[" + ("," + "\n" * (len(cut) - 1) + " " * (indent + 1)).join(parts) + "]"


_FORMATS: dict[str, Callable[[np.ndarray], Any]] = {"float": _RealFormat, "float8": _RealFormat, "complex": _ComplexFormat}


def format_values(x: Array, indent: int) -> str:
    """The bracketed values; what follows the first line is indented by `indent`."""
    if x.size == 0:
        return "[]"
    summarize, edge = x.size > options["threshold"], options["edgeitems"]
    # With edgeitems=0 nothing is left to show; PyTorch prints the dots alone.
    if summarize and not edge:
        return "[...]"
    host = _edge_values(x, edge) if summarize else to_host(x)
    kind = dtypes.of(x.dtype).kind
    # numpy formats ml_dtypes' scalars by their own repr; as float32 the digits are those of PyTorch.
    if kind in ("float", "float8") and host.dtype.itemsize < 4:
        host = host.astype(np.float32)
    cut = tuple([summarize and size > 2 * edge for size in x.shape])
    return _join_nested(host.tolist(), cut, edge, _FORMATS.get(kind, _IntegerFormat)(host), indent)


def show(self: Tensor, values: str | None = None) -> str:
    """`tensor([[1., 2.]], device='cuda:0', dtype=..., grad_fn=<...>)`, leaving out what goes without saying; `values` in place of its own."""
    if type(self._array) is WrappedArray:
        if self._array.instance is not None:
            return _instance_repr(self, values)
        # Inside a transform a tensor has no values of its own: the wrapped one is shown.
        return _wrapped_repr(self._array)
    plain = getattr(type(self), "becomes", type(self)) is Tensor or self._heading or vars(type(self)).get("prints_plain")
    opening = "tensor(" if plain else f"{type(self).__name__}("
    d, default = self.dtype, dtypes.default_float()
    notes = []
    size, bare = self._array.size, type(self._array) is MetaArray
    if self.is_cuda or bare:
        notes.append(f"device='{self.device}'")
    # An empty tensor's brackets show no shape; PyTorch adds size=.
    if bare or (len(self._array.shape) != 1 if size == 0 else not options["edgeitems"]):
        notes.append(f"size={tuple(self._array.shape)}")  # the brackets do not show it
    if size == 0 or bare:
        if d is not default:
            notes.append(f"dtype={d}")
    elif d not in (default, dtypes.as_dtype(complex if default is dtypes.float64 else "complex64"), dtypes.int64, dtypes.bool_):
        notes.append(f"dtype={d}")
    try:
        if not self.is_leaf:
            notes.append(f"grad_fn={self.grad_fn!r}")
        elif self._tracked:
            notes.append("requires_grad=True")
    except GradError:  # a view that lost its place in the graph still shows its values
        notes.append("grad_fn=<Invalid>")
    if values is None:
        values = "..." if bare else format_values(self._array, len(opening))
    return self._heading + add_notes(opening + values, notes, len(opening))


def add_notes(out: str, notes: Sequence[str], indent: int, new_line: bool = False) -> str:
    """A text, what is noted behind it, and the closing bracket; a note that does not fit on the line, or the first where asked, begins another."""
    length = len(out) - out.rfind("\n") + 1  # of the last line
    for note in notes:
        if new_line or length + len(note) + 2 > options["linewidth"]:
            out += ",\n" + " " * indent + note
            length = indent + len(note)
            new_line = False
        else:
            out += ", " + note
            length += len(note) + 2
    return out + ")"


def _instance_repr(self: Tensor, values: str | None) -> str:
    """What a tensor of a class with a __torch_dispatch__ shows: values that are given, or those of its own memory, else its shape."""
    array: Any = self._array
    opening, bare = f"{type(self).__name__}(", type(array.value._array) is MetaArray
    notes = [f"size={tuple(array.shape)}"] if values is None and bare else []
    if self.dtype not in (dtypes.default_float(), dtypes.int64, dtypes.bool_):
        notes.append(f"dtype={self.dtype}")
    notes += [f"grad_fn={self.grad_fn!r}"] if not self.is_leaf else ["requires_grad=True"] if self._tracked else []
    if values is None:
        values = "..." if bare else format_values(array.value._array, len(opening))
    return add_notes(opening + values, notes, len(opening))


def _wrapped_repr(x: WrappedArray) -> str:
    """What a tensor inside a transform shows: what lies below it, and its tangent, as PyTorch does."""
    value = repr(x.value)
    if x.level.kind == TRACE:
        return value
    if x.level.kind == JVP and x.tangent is not None:
        return f"{value[:-1]}, tangent={x.tangent!r})"
    name, note = ("BatchedTensor", ", bdim=0") if x.batched else ("GradTrackingTensor", "")
    inner = "\n".join("    " + line for line in value.split("\n"))
    return f"{name}(lvl={x.level.number}{note}, value=\n{inner}\n)"


def _repr(self: Tensor) -> str:
    return show(self)


Tensor.__repr__ = _repr  # type: ignore  # and no __str__, so that str() shows what a subclass's own __repr__ says
