"""Functions of overloads that no public function has the name or the arguments of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tritensor.nn import functional as F
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import public

OWN: dict[str, Callable[..., Any]] = {}
_REDUCTIONS = ("none", "mean", "sum")


def _own(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def note(f: Callable[..., Any]) -> Callable[..., Any]:
        OWN[name] = f
        return f

    return note


@_own("_to_copy")
def _to_copy(x: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None, non_blocking: bool = False,
             memory_format: Any = None) -> Any:  # fmt: skip
    asked = {name: value for name, value in (("dtype", dtype), ("device", device), ("memory_format", memory_format)) if value is not None}
    return x.to(**asked, non_blocking=non_blocking, copy=True)


@_own("alias")
def _alias(x: Any) -> Any:
    return x.view(x.shape) if x.is_contiguous() else x.as_strided(x.shape, x.stride(), x.storage_offset())


@_own("view")
@_own("_unsafe_view")
def _view(x: Any, size: Sequence[int]) -> Any:
    return x.reshape(*size) if len(size) else x.reshape(())


@_own("expand")
def _expand(x: Any, size: Sequence[int], *, implicit: bool = False) -> Any:
    return x.expand(*size)


@_own("slice.Tensor")
def _slice(x: Any, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Any:
    d = dim + x.dim() if dim < 0 else dim
    return x[(*[slice(None)] * d, slice(start, end, step))]


@_own("index.Tensor")
def _index(x: Any, indices: Sequence[Any]) -> Any:
    return x[tuple(slice(None) if i is None else i for i in indices)]


@_own("index_put")
def _index_put(x: Any, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Any:
    return _index_put_(x.clone(), indices, values, accumulate)


@_own("index_put_")
@_own("_index_put_impl_")
def _index_put_(x: Any, indices: Sequence[Any], values: Any, accumulate: bool = False, unsafe: bool = False) -> Any:
    at = tuple(slice(None) if i is None else i for i in indices)
    if not accumulate:
        x[at] = values
        return x
    if None not in indices:
        return x.index_put_(at, values, accumulate=True)
    places = public["arange"](x.numel(), device=x.device).reshape(x.shape)[at]
    x.view(-1).index_put_((places,), values.expand(places.shape), accumulate=True)
    return x


@_own("_local_scalar_dense")
def _item(x: Any) -> Any:
    return x.item()


@_own("_softmax")
def _softmax(x: Any, dim: int, half_to_float: bool = False) -> Any:
    return F.softmax(x, dim)


@_own("_log_softmax")
def _log_softmax(x: Any, dim: int, half_to_float: bool = False) -> Any:
    return F.log_softmax(x, dim)


@_own("softplus")
def _softplus(x: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    return F.softplus(x, beta, threshold)


@_own("convolution")
def _convolution(
    x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, output_padding: Any, groups: int
) -> Any:
    n = weight.dim() - 2
    if transposed:
        turned: Any = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[n - 1]
        return turned(x, weight, bias, stride, padding, output_padding, groups, dilation)
    straight: Any = (F.conv1d, F.conv2d, F.conv3d)[n - 1]
    return straight(x, weight, bias, stride, padding, dilation, groups)


@_own("native_layer_norm")
def _native_layer_norm(x: Any, normalized_shape: Sequence[int], weight: Any, bias: Any, eps: float) -> Any:
    dims = tuple(range(-len(normalized_shape), 0))
    mean, var = x.mean(dims, keepdim=True), x.var(dims, correction=0, keepdim=True)
    return F.layer_norm(x, tuple(normalized_shape), weight, bias, eps), mean, (var + eps).rsqrt()


@_own("native_group_norm")
def _native_group_norm(x: Any, weight: Any, bias: Any, n: int, c: int, cells: int, groups: int, eps: float) -> Any:
    rows = x.reshape(n, groups, -1)
    return F.group_norm(x, groups, weight, bias, eps), rows.mean(-1), (rows.var(-1, correction=0) + eps).rsqrt()


@_own("native_batch_norm")
def _native_batch_norm(x: Any, weight: Any, bias: Any, mean: Any, var: Any, training: bool, momentum: float, eps: float) -> Any:
    y = F.batch_norm(x, mean, var, weight, bias, training, momentum, eps)
    if not training:
        return y, x.new_empty(0), x.new_empty(0)
    dims = (0, *range(2, x.dim()))
    return y, x.mean(dims), (x.var(dims, correction=0) + eps).rsqrt()


@_own("nll_loss_forward")
@_own("nll_loss2d_forward")
def _nll_loss_forward(x: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> Any:
    kept = target != ignore_index
    held = x.new_ones(x.shape[min(1, x.dim() - 1)]) if weight is None else weight
    total = public["where"](kept, held[public["where"](kept, target, 0)], 0).sum() if reduction == 1 else x.new_zeros(())
    return F.nll_loss(x, target, weight, ignore_index=ignore_index, reduction=_REDUCTIONS[reduction]), total


def _loss(name: str, *more: str) -> None:
    def call(x: Any, target: Any, reduction: int = 1, *given: Any, **named: Any) -> Any:
        settings = dict(zip(more, given, strict=False)) | named
        return getattr(F, name)(x, target, reduction=_REDUCTIONS[reduction], **settings)

    OWN[name] = call


for _name, *_more in (("mse_loss",), ("l1_loss",), ("smooth_l1_loss", "beta"), ("huber_loss", "delta"), ("soft_margin_loss",)):
    _loss(_name, *_more)


@_own("binary_cross_entropy")
def _binary_cross_entropy(x: Any, target: Any, weight: Any = None, reduction: int = 1) -> Any:
    return F.binary_cross_entropy(x, target, weight, reduction=_REDUCTIONS[reduction])


@_own("binary_cross_entropy_with_logits")
def _bce_with_logits(x: Any, target: Any, weight: Any = None, pos_weight: Any = None, reduction: int = 1) -> Any:
    return F.binary_cross_entropy_with_logits(x, target, weight, reduction=_REDUCTIONS[reduction], pos_weight=pos_weight)


@_own("cross_entropy_loss")
def _cross_entropy(
    x: Any, target: Any, weight: Any = None, reduction: int = 1, ignore_index: int = -100, label_smoothing: float = 0.0
) -> Any:
    return F.cross_entropy(x, target, weight, ignore_index=ignore_index, reduction=_REDUCTIONS[reduction], label_smoothing=label_smoothing)


@_own("embedding")
def _embedding(weight: Any, index: Any, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False) -> Any:
    return ops.embedding(weight, index, padding_idx=None if padding_idx < 0 else padding_idx)


@_own("constant_pad_nd")
def _constant_pad(x: Any, pad: Sequence[int], value: float = 0) -> Any:
    return F.pad(x, list(pad), value=value)


@_own("max_pool2d_with_indices")
def _max_pool2d(x: Any, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False) -> Any:
    return F.max_pool2d(x, kernel, stride or None, padding, dilation, ceil_mode, return_indices=True)


@_own("lift")
@_own("lift_fresh")
@_own("lift_fresh_copy")
def _lift(x: Any) -> Any:
    return x


@_own("empty.memory_format")
def _empty(size: Sequence[int], **settings: Any) -> Any:
    return public["empty"](tuple(size), **settings)


@_own("fill.Scalar")
@_own("fill.Tensor")
def _fill(x: Any, value: Any) -> Any:
    return x.clone().fill_(value)


OWN["sum.dim_IntList"] = lambda x, dim=None, keepdim=False, *, dtype=None: x.sum(dim, keepdim, dtype=dtype)
OWN["mean.dim"] = lambda x, dim=None, keepdim=False, *, dtype=None: x.mean(dim, keepdim, dtype=dtype)
OWN["any.dims"] = lambda x, dim=None, keepdim=False: x.any(dim, keepdim)
OWN["all.dims"] = lambda x, dim=None, keepdim=False: x.all(dim, keepdim)
OWN["detach"] = Tensor.detach
OWN["clone"] = lambda x, *, memory_format=None: x.clone() if memory_format is None else x.clone(memory_format=memory_format)
