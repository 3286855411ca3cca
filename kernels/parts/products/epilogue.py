"""The epilogue of a matrix product: what becomes of each element, its bias added, before it is rounded and stored."""

from __future__ import annotations

from typing import Any, NamedTuple

import triton
import triton.language as tl

from tritensor.ops.array import CudaArray


class Epilogue(NamedTuple):
    """c = activation(z) * scale + residual of a product z with its bias.

    activation: a jitted formula of one value, of float32 where elements have 16 bits; None leaves z. residual: an array like c, in C order.
    kept: one in which z is stored, rounded, for the activation's gradient.
    """

    activation: Any = None
    scale: float = 1.0
    residual: CudaArray | None = None
    kept: CudaArray | None = None

    @property
    def number(self) -> float | None:
        """The scale as a kernel takes it: none where it is 1."""
        return None if self.scale == 1 else float(self.scale)

    @property
    def form(self) -> str:
        """What of it there is, for the key of a config."""
        if self is NOTHING:  # most products
            return ""
        parts = (("act", self.activation), ("res", self.residual), ("kept", self.kept), ("scale", self.scale != 1))
        return "".join([f" {name}" for name, there in parts if there])


NOTHING = Epilogue()


# A tile z of the product whose elements lie at first + down + across in c, kept and residual: kept is written, what c gets comes back. Rows' and
# columns' shares come apart, so that addresses are sums of few
@triton.jit
def apply_epilogue(z, first, down, across, mask, residual, kept, scale, ACTIVATION: tl.constexpr):
    if kept is not None:
        tl.store(kept + first + down + across, z.to(kept.dtype.element_ty), mask=mask)
    if ACTIVATION is not None:
        z = ACTIVATION(z)
    if scale is not None:
        z = z * scale
    if residual is not None:
        z = z + tl.load(residual + first + down + across, mask=mask, other=0).to(z.dtype)
    return z
