"""Which kernel a convolution on a GPU takes."""

from __future__ import annotations

from tritensor.array import CudaArray
from tritensor.kernels.convolution.geometry import Geometry
from tritensor.kernels.convolution.gpu import gathered
from tritensor.kernels.convolution.gpu.folding import Gradients


def correlate(x: CudaArray, weight: CudaArray, bias: CudaArray | None, s: Geometry, transposed: bool) -> CudaArray:
    """The convolution of x with weight (O, C / G, *kernel), or, transposed, the gradient that a g (given as x) sends to its input."""
    return gathered.correlate(x, weight, bias, s, transposed)


def weight_gradient(x: CudaArray, g: CudaArray, s: Geometry, bias: bool = False) -> Gradients:
    """The gradients to the weight and, where asked, to the bias."""
    return gathered.weight_gradient(x, g, s, bias)
