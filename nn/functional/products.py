"""linear, linear_activation, bilinear and grouped_mm: products with weights."""

from __future__ import annotations

import itertools
from typing import Any

from tritensor.autograd.modes import is_grad_enabled
from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError, DTypeError, ShapeError
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.shaping.joining import cat, stack
from tritensor.tensor.overriding.protocol import awaken
from tritensor.tensor.public_api.arguments import public_error
from tritensor.tensor.public_api.publish import checked, exported


@exported
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input @ weight.T + bias`: input (..., in), weight (out, in), bias (out) -> (..., out); weight (in,), bias () -> (...)."""
    try:
        if isinstance(weight, Tensor) and (weight._array.ndim == 1 or weight._array.dtype.kind in "biuc"):
            return _compose_single_output(input, weight, bias) if weight._array.ndim == 1 else _compose_linear(input, weight, bias)
        return ops.linear(input, weight, bias)
    except (TypeError, AttributeError, ValueError) as error:  # `checked`, which would be seen in the time of so short a call
        if awaken((input, weight, bias)):
            return linear(input, weight) if bias is None else linear(input, weight, bias)
        raise public_error(linear, (input, weight, bias), error) from None


@checked
def linear_activation(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, residual: Tensor | None = None, *, activation: str = "none",
    scale: float = 1.0,
) -> Tensor:  # fmt: skip
    """`activation(input @ weight.T + bias) * scale + residual` in one kernel, rounded once; PyTorch has it as functions one after the other.

    input (..., in), weight (out, in), bias (out,), residual (..., out) -> (..., out), all of one floating type.

    activation: "none", "relu", "gelu", "gelu_tanh" (`gelu(approximate="tanh")`), "silu", "sigmoid" or "tanh". For the gradient the
    activation's input is kept as well, of "relu", "sigmoid" and "tanh" without scale and residual only the result. Under autocast all goes
    down to its type, the residual too. Raises ShapeError, DTypeError, and ArgumentError for an activation that is none of these.

    >>> x, w = tt.tensor([[1.0, -2.0]]), tt.tensor([[1.0, 1.0], [1.0, 0.0]])
    >>> F.linear_activation(x, w, activation="relu")
    tensor([[0., 1.]])
    """
    if activation in ("relu", "sigmoid", "tanh") and residual is None and scale == 1:
        return ops.linear_activation_by_result(input, weight, bias, activation=activation)  # type: ignore[no-any-return]
    if activation in ("sigmoid", "tanh"):
        y = ops.linear_activation_by_result(input, weight, bias, activation=activation)
        y = y if scale == 1 else ops.mul(y, scale)
        return y if residual is None else ops.add(y, residual)  # type: ignore[no-any-return]
    keep = is_grad_enabled() and any(t is not None and t.requires_grad for t in (input, weight, bias, residual))
    return ops.linear_activation(input, weight, bias, residual, activation=activation, scale=float(scale), keep=keep)  # type: ignore[no-any-return]


def _compose_linear(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Of integers and complex numbers, for which there is no kernel of product and sum."""
    if weight.ndim != 2 or not input.ndim or input.shape[-1] != weight.shape[1]:
        raise ShapeError(f"linear: input {tuple(input.shape)}, weight {tuple(weight.shape)}: give (..., in) and (out, in)")
    y = ops.matmul(input, weight.t())
    return y if bias is None else ops.add(y, bias)


def _compose_single_output(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    y = ops.matmul(input, weight)
    if bias is None:
        return y
    if bias.ndim:
        raise ShapeError(f"linear: weight {tuple(weight.shape)}, bias {tuple(bias.shape)}: a weight of one output takes a bias of shape ()")
    return ops.add(y, bias)


@checked
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """y[k] = input1 @ weight[k] @ input2 + bias[k]: (..., n), (..., m), weight (out, n, m) -> (..., out)."""
    given = f"bilinear: input1 {tuple(input1.shape)}, input2 {tuple(input2.shape)}, weight {tuple(weight.shape)}"
    if weight.ndim != 3 or not input1.ndim or input1.shape[:-1] != input2.shape[:-1]:
        raise ShapeError(f"{given}: give (..., n), (..., m) with the same leading sizes, and (out, n, m)")
    for k, x in enumerate((input1, input2), 1):
        if x.shape[-1] != weight.shape[k]:
            raise ShapeError(
                f"{given}: input{k}'s last size {x.shape[-1]} is not weight's {weight.shape[k]}; give input{k} (..., {weight.shape[k]})"
            )
    if bias is not None and tuple(bias.shape) != (weight.shape[0],):
        raise ShapeError(f"{given}, bias {tuple(bias.shape)}: bias must have one value for each output, ({weight.shape[0]},)")
    left = ops.matmul(input1.unsqueeze(-2).unsqueeze(-2), weight)  # (..., out, 1, m)
    y = ops.matmul(left, input2.unsqueeze(-1).unsqueeze(-3)).squeeze(-1).squeeze(-1)  # (..., out)
    return y if bias is None else ops.add(y, bias)


@checked
def grouped_mm(mat_a: Tensor, mat_b: Tensor, *, offs: Tensor | None = None, bias: Tensor | None = None, out_dtype: Any = None) -> Tensor:
    """Matrix products of groups, as of a mixture of experts: `offs` (groups,), int32, says where each group of a 2D operand ends.

    mat_a (rows, k), mat_b (groups, k, n): rows offs[i - 1] to offs[i] of mat_a @ mat_b[i] -> (rows, n).
    mat_a (groups, m, k), mat_b (k, columns): mat_a[i] @ those columns of mat_b -> (m, columns).
    mat_a (m, k), mat_b (k, n): each group is a stretch of the common k -> (groups, m, n).
    mat_a (groups, m, k), mat_b (groups, k, n), without offs: `bmm`.

    Rows and columns behind offs[-1] are zeros. Raises ShapeError and DTypeError, and ArgumentError of a bias or another out_dtype.

    >>> a, b = tt.ones(3, 2), tt.stack([tt.eye(2), 2 * tt.eye(2)])
    >>> F.grouped_mm(a, b, offs=tt.tensor([1, 3], dtype=tt.int32))
    tensor([[1., 1.],
            [2., 2.],
            [2., 2.]])
    """
    given = f"grouped_mm: mat_a {tuple(mat_a.shape)} of {mat_a.dtype.name}, mat_b {tuple(mat_b.shape)} of {mat_b.dtype.name}"
    if mat_a.ndim not in (2, 3) or mat_b.ndim not in (2, 3) or mat_a.shape[-1] != mat_b.shape[-2]:
        raise ShapeError(f"{given}: give (rows, k) or (groups, m, k), and (k, n) or (groups, k, n), of the same k")
    if mat_a.dtype != mat_b.dtype or not mat_a.is_floating_point():
        raise DTypeError(f"{given}: give both in one floating type")
    if bias is not None or out_dtype not in (None, mat_a.dtype):
        raise ArgumentError(f"{given}: bias and another out_dtype are not supported, as in PyTorch; add the bias, or convert, afterwards")
    if (offs is None) != (mat_a.ndim == mat_b.ndim == 3):
        raise ArgumentError(
            f"{given}: {'give offs, where each group of a 2D operand ends' if offs is None else '3D operands take no offs'}"
        )
    if offs is None:
        return mat_a.bmm(mat_b)
    many = mat_a if mat_a.ndim == 3 else mat_b if mat_b.ndim == 3 else None  # whose groups are whole matrices
    sizes = _sizes_of_groups(given, offs, mat_b.shape[-1] if many is mat_a else mat_a.shape[-1 if many is None else 0], many)
    if many is None:
        groups = zip(mat_a.split(sizes, -1)[:-1], mat_b.split(sizes, 0)[:-1], strict=True)
        return stack([a @ b for a, b in groups])
    if many is mat_b:
        *stretches, rest = mat_a.split(sizes, 0)
        return cat([a @ b for a, b in zip(stretches, mat_b, strict=True)] + [rest.new_zeros(rest.shape[0], mat_b.shape[-1])])
    *stretches, rest = mat_b.split(sizes, -1)
    return cat([a @ b for a, b in zip(mat_a, stretches, strict=True)] + [rest.new_zeros(mat_a.shape[1], rest.shape[-1])], -1)


def _sizes_of_groups(given: str, offs: Tensor, size: int, many: Tensor | None) -> list[int]:
    """The length of each group of a size, and of what lies behind the last."""
    if offs.ndim != 1 or offs.dtype != dtypes.int32 or (many is not None and len(offs) != many.shape[0]):
        groups = "groups" if many is None else many.shape[0]
        raise ArgumentError(f"{given}: offs {tuple(offs.shape)} of {offs.dtype.name}: give ({groups},) of int32")
    ends = [0, *offs.tolist(), size]
    if ends != sorted(ends):
        raise ArgumentError(f"{given}: offs {ends[1:-1]}: give where each group ends, from 0 to {size}, in rising order")
    return [end - begin for begin, end in itertools.pairwise(ends)]
