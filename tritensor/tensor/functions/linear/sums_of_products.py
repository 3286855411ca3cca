"""Sums of products: addmm and its kin, beta * input + alpha * product."""

from __future__ import annotations

from typing import Any

from tritensor.autograd.modes import state
from tritensor.ground import dtypes
from tritensor.ground.errors import DTypeError, ShapeError
from tritensor.ops.table import ops
from tritensor.tensor.aliasing.inplace import broadcasts_to, overwrite, resize
from tritensor.tensor.core import Tensor
from tritensor.tensor.derivatives import make_constant
from tritensor.tensor.functions.linear.products import outer, require_ndim, require_same_batch
from tritensor.tensor.functions.shaping.reshaping import reshape_to
from tritensor.tensor.public_api.publish import checked, function

_FLOATING = ("float", "complex")


def _scale(x: Tensor, factor: Any) -> Tensor:
    return x if factor == 1 else ops.mul(x, factor)


def _are_16_bit(*given: Tensor) -> bool:
    """Whether all are of one type whose products are summed in a wider one."""
    first = given[0]._array.dtype
    return first.itemsize == 2 and dtypes.is_float(first) and all(x._array.dtype == first for x in given)


def _add_product(name: str, input: Tensor, a: Tensor, b: Tensor, beta: Any, alpha: Any) -> Tensor:
    """beta * input + alpha * (a @ b) of matrices or batches of as many, rounded once."""
    # Wider types are exact enough in two steps; 16-bit ones would be rounded twice.
    if not _are_16_bit(input, a, b):
        return _add_scaled(name, input, ops.matmul(a, b), beta, alpha)
    shape = (*a.shape[:-1], b.shape[-1])
    _require_broadcast(name, input, shape)
    c = None if beta == 0 else input if tuple(input.shape) == shape else ops.expand(input, shape=shape)
    # beta 0: input is not read, and yet the result requires grad where it does.
    found = ops.add_product(a, b, c, beta=float(beta), alpha=float(alpha))
    return found if c is not None else make_constant(name, found, input)


def _require_broadcast(name: str, input: Tensor, shape: tuple[int, ...]) -> None:
    own = input._array.shape
    if own != shape and own != shape[-1:] and not broadcasts_to(own, shape):
        raise ShapeError(f"{name}: input {tuple(input.shape)} does not broadcast to the product's shape {shape}")


def _add_scaled(name: str, input: Tensor, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    """beta * input + alpha * product; with beta 0 input is not read, so its NaN does not spread. Numbers for integers are cut to whole ones."""
    _require_broadcast(name, input, product._array.shape)
    if beta != 1 or alpha != 1:
        kind = dtypes.result_type([product._array, input._array], name)
        beta, alpha = dtypes.as_factor(kind, beta, name), dtypes.as_factor(kind, alpha, name)
        product = _scale(product, alpha)
        if beta == 0:
            return make_constant(name, product, input)
    terms = product, _scale(input, beta)  # the first says how the sum lies: in C order; but addr is elementwise
    return ops.add(*(terms[::-1] if name == "addr" else terms))


@function(inplace=True, out=True)
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2); input broadcasts to the product's shape. Of integers beta and alpha are cut to whole numbers."""
    require_ndim("addmm", mat1=(mat1, 2), mat2=(mat2, 2))
    # A bias: the linear layer's kernel adds it while the product is in registers.
    if beta == alpha == 1 and tuple(input.shape) == (mat2.shape[1],) and _are_16_bit(input, mat1, mat2):
        return ops.linear(mat1, ops.permute(mat2, dims=(1, 0)), input)
    return _add_product("addmm", input, mat1, mat2, beta, alpha)


@function(inplace=True, out=True)
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * input + alpha * (mat @ vec)."""
    require_ndim("addmv", mat=(mat, 2), vec=(vec, 1))
    if not _are_16_bit(input, mat, vec):
        return _add_scaled("addmv", input, ops.matmul(mat, vec), beta, alpha)
    _require_broadcast("addmv", input, (mat.shape[0],))
    column = reshape_to(ops.expand(input, shape=(mat.shape[0],)), (mat.shape[0], 1))
    return ops.reshape(_add_product("addmv", column, mat, reshape_to(vec, (vec.shape[0], 1)), beta, alpha), shape=(mat.shape[0],))


@function(inplace=True, out=True)
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * input + alpha * outer(vec1, vec2); of bools (beta and input) or (alpha and vec1 and vec2). Raises DTypeError for fractions and integers."""
    kinds = {x.dtype.kind for x in (input, vec1, vec2)}
    # PyTorch refuses fractions here, while addmm cuts them.
    if not kinds & set(_FLOATING):
        for label, number in (("beta", beta), ("alpha", alpha)):
            if isinstance(number, float):
                raise DTypeError(f"addr: {label} is {number!r}, and the tensors hold integers; give an int")
    if _are_16_bit(input, vec1, vec2):
        column, row = reshape_to(vec1, (vec1.shape[0], 1)), reshape_to(vec2, (1, vec2.shape[0]))
        return _add_product("addr", input, column, row, beta, alpha)
    if kinds != {"bool"}:
        alpha = dtypes.as_factor(dtypes.result_type([x._array for x in (input, vec1, vec2)], "addr"), alpha, "addr")
        return _add_scaled("addr", input, outer(_scale(vec1, alpha), vec2), beta, 1)
    product = outer(vec1, vec2)
    _require_broadcast("addr", input, tuple(product.shape))
    return ops.logical_or(ops.logical_and(input, bool(beta)), ops.logical_and(product, bool(alpha)))


@function(inplace=True, out=True)
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * input + alpha * bmm(batch1, batch2)."""
    require_same_batch("baddbmm", batch1=batch1, batch2=batch2)
    return _add_product("baddbmm", input, batch1, batch2, beta, alpha)


@function(out=True)
def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * input + alpha * the sum over the batch of bmm(batch1, batch2), as one product: of rows of all matrices by columns of all."""
    require_ndim("addbmm", batch1=(batch1, 3), batch2=(batch2, 3))
    (b1, m, k1), (b2, k2, n) = batch1.shape, batch2.shape
    if b1 != b2 or k1 != k2:
        raise ShapeError(f"addbmm: batch1 {tuple(batch1.shape)}, batch2 {tuple(batch2.shape)}: batches and inner sizes must be equal")
    # sum over b of A_b B_b = [A_1 ... A_n] [B_1; ...; B_n]: one product, summed in float32.
    wide = reshape_to(ops.permute(batch1, dims=(1, 0, 2)), (m, b1 * k1))
    return _add_product("addbmm", input, wide, reshape_to(batch2, (b1 * k1, n)), beta, alpha)


@checked
def addbmm_(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """addbmm in place; a tensor that no graph remembers, and that is smaller than the sum, gets its shape, as in PyTorch."""
    value = addbmm(input, batch1, batch2, beta=beta, alpha=alpha)
    # In the graph the shape may not change.
    if tuple(value.shape) == tuple(input.shape) or (state.enabled and (input._tracked or value._tracked)):
        return overwrite(input, value, "addbmm_")
    resize(input, value, "addbmm_")
    return input


Tensor.addbmm_ = addbmm_  # type: ignore[method-assign]
