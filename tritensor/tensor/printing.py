"""How a tensor prints: values, dtype, device, grad_fn; at most the edge items leave the GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor import dtypes
from tritensor.array import Array, CudaArray, to_host
from tritensor.tensor.core import Tensor

_options: dict[str, Any] = {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None}


def set_printoptions(
    precision: int | None = None, threshold: int | None = None, edgeitems: int | None = None, linewidth: int | None = None,
    profile: str | None = None, sci_mode: bool | None = None,
) -> None:  # fmt: skip
    """How tensors print: digits after the point, from how many elements to abbreviate, items kept at each edge, line width.

    `profile` is "default", "short" or "full". `sci_mode` forces scientific notation on or off; None decides by the values.
    """
    if profile is not None:
        _options.update({"default": {"precision": 4, "threshold": 1000, "edgeitems": 3}, "short": {"precision": 2, "threshold": 1000, "edgeitems": 2},
                         "full": {"precision": 4, "threshold": 2**63 - 1, "edgeitems": 3}}[profile])  # fmt: skip
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth, "sci_mode": sci_mode}
    _options.update({k: v for k, v in given.items() if v is not None})


def _edges(x: Array, edge: int) -> np.ndarray:
    """The values at the edges of every long dimension, one more in the middle of each where the dots will stand."""
    cut: tuple[Any, ...] = ()
    for size in x.shape:
        cut += (slice(None),) if size <= 2 * edge else (None,)
    if isinstance(x, CudaArray):
        for axis, c in enumerate(cut):
            if c is None:  # one strided window per edge: a host copy of the pieces, not of the tensor
                lead = (slice(None),) * axis
                low, high = (
                    _edges(x[(*lead, slice(0, edge + 1))], edge + 1),
                    _edges(x[(*lead, slice(x.shape[axis] - edge, None))], edge + 1),
                )
                return np.concatenate([low, high], axis)
        return to_host(x)
    for axis, c in enumerate(cut):
        if c is None:
            keep = [*range(edge + 1), *range(x.shape[axis] - edge, x.shape[axis])]
            x = np.take(x, keep, axis)
    return x


def _float_format(values: np.ndarray) -> Any:
    """One format for all values, as PyTorch chooses it: integers with a point, fixed, or scientific for wide ranges."""
    precision = _options["precision"]
    finite = np.abs(values[np.isfinite(values)].astype(np.float64))
    nonzero = finite[finite != 0]
    sci = _options["sci_mode"]
    whole = bool(np.all(nonzero == np.ceil(nonzero))) if nonzero.size else True
    if sci is None and nonzero.size:
        low, high = nonzero.min(), nonzero.max()
        sci = bool(high / low > 1000.0 or high > 1e8 or (not whole and low < 1e-4)) if not whole else bool(high > 1e8)

    def show(v: Any) -> str:
        if not np.isfinite(v):
            return str(float(v))
        if sci:
            return f"{float(v):.{precision}e}"
        return f"{float(v):.0f}." if whole else f"{float(v):.{precision}f}"

    width = max((len(show(v)) for v in values.reshape(-1)), default=0)
    return lambda v: show(v).rjust(width)


def format_values(x: Array, indent: int) -> str:
    """The bracketed values."""
    size = int(np.prod(x.shape)) if x.shape else 1
    summarize = size > _options["threshold"]
    host = _edges(x, _options["edgeitems"]) if summarize else to_host(x)
    kind = dtypes.of(x.dtype).kind
    formatter: Any = {}
    if kind in ("float", "float8"):
        host = host.astype(np.float32) if host.dtype.itemsize < 4 else host
        formatter = {"float_kind": _float_format(host)}
    elif kind == "bool":
        width = 5 if host.size and not host.all() else 4
        formatter = {"bool": lambda v: str(bool(v)).rjust(width)}
    elif kind in ("int", "uint"):
        width = max((len(str(v)) for v in host.reshape(-1).tolist()), default=0)
        formatter = {"int_kind": lambda v: str(v).rjust(width)}
    if not host.size:
        return "[]"
    return np.array2string(
        host, separator=", ", prefix=" " * indent, formatter=formatter, threshold=0 if summarize else host.size + 1,
        edgeitems=_options["edgeitems"], max_line_width=_options["linewidth"],
    )  # fmt: skip


def _repr(self: Tensor) -> str:
    """`tensor([[1., 2.]], device='cuda:0', dtype=..., grad_fn=<...>)`, leaving out what goes without saying."""
    opening = "tensor("
    parts = [self.heading + opening + format_values(self.array, len(opening))]
    d = self.dtype
    if self.array.size == 0 and len(self.array.shape) != 1:
        parts.append(f"size={tuple(self.array.shape)}")
    if self.is_cuda:
        parts.append(f"device='{self.device}'")
    if d not in (dtypes.default_float(), dtypes.int64, dtypes.bool_) or (self.array.size == 0 and d is not dtypes.default_float()):
        parts.append(f"dtype={d}")
    if self.node is not None:
        parts.append(f"grad_fn={self.grad_fn!r}")
    elif self.tracked:
        parts.append("requires_grad=True")
    return ", ".join(parts) + ")"


def _str(self: Tensor) -> str:
    return _repr(self)


Tensor.__repr__ = _repr  # type: ignore
Tensor.__str__ = _str  # type: ignore
