"""The gradient of a mask of numbers, which is as large as the weights: composed of products and a softmax that are held whole."""

from __future__ import annotations

from tritensor.ground import dtypes
from tritensor.kernels.attention.gpu import slope, sum_to, swap, weights_of
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.copying import reshape_or_copy, to_c_order
from tritensor.kernels.parts.gemm import gemm
from tritensor.ops.array import CudaArray, expand
from tritensor.ops.table import registry


def _repeated(x: CudaArray, q: CudaArray) -> CudaArray:
    """Keys or values with each head as often as heads of q share it."""
    if x.shape[:-2] == q.shape[:-2]:
        return x
    *lead, heads, rows, size = x.shape
    wide = expand(x.reshape((*lead, heads, 1, rows, size)), (*lead, heads, q.shape[-3] // heads, rows, size))
    return reshape_or_copy(wide, (*q.shape[:-2], rows, size))


def _dropped(x: CudaArray, p: float, seed: int, offset: int) -> CudaArray:
    """x with what dropout drops as 0, each row from a block of words of its own on."""
    rows, keys = x.shape[:-1], x.shape[-1]
    index = (*(slice(None),) * len(rows), slice(0, keys))
    padded = registry["pad_view"].forward(x, shape=(*rows, -(-keys // 4) * 4), index=index)  # type: ignore[misc]
    return to_c_order(registry["dropout"].forward(padded, p=p, seed=seed, offset=offset)[index])  # type: ignore[misc]


def mask_gradient(
    g: CudaArray, q: CudaArray, k: CudaArray, v: CudaArray, mask: CudaArray, scale: float, causal: bool, p: float, seed: int, offset: int
) -> CudaArray:
    """ds = w (dw - sum w dw), summed to the mask's shape."""
    k, v = _repeated(k, q), _repeated(v, q)
    weights = weights_of(q, k, mask, scale, causal)
    dw = allocate(weights.shape, dtypes.accumulator(q.dtype), q)
    gemm(g, swap(v), dw)
    # the words are drawn again, as in the forward: what was dropped was stored nowhere
    if p:
        dw = _dropped(dw, p, seed, offset)
    return sum_to(slope(weights, dw, 1.0, dw.dtype), mask)
