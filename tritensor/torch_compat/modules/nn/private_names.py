"""Names of torch.nn with a leading underscore that public scripts import: parts of attention, copies of layers, sizes, masks."""

from __future__ import annotations

import copy
import warnings
from collections import OrderedDict as OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from tritensor.ground.dtypes import DType as DType
from tritensor.nn import functional as F
from tritensor.nn.container import ModuleList
from tritensor.nn.functional.attention import canonical_mask, to_additive_mask
from tritensor.nn.functional.normalization import refuse_single
from tritensor.nn.layers.attention.transformer import _find_activation
from tritensor.nn.layers.attention.transformer import square_subsequent_mask as square_subsequent_mask
from tritensor.nn.module import Module
from tritensor.tensor.core import Tensor
from tritensor.torch_compat.modules.private import nn_reduction as _Reduction  # noqa: F401

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"
GRID_SAMPLE_INTERPOLATION_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
GRID_SAMPLE_PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}


def _get_clones(module: Module, N: int) -> ModuleList:
    """N copies of a module, each with parameters of its own."""
    return ModuleList([copy.deepcopy(module) for _ in range(N)])


def _get_activation_fn(activation: str) -> Callable[[Tensor], Tensor]:
    """F.relu or F.gelu by its name. Raises for another."""
    return _find_activation("_get_activation_fn", activation)


def _generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
    """(sz, sz): -inf above the diagonal, 0 elsewhere."""
    return square_subsequent_mask(sz, device, dtype)


def _addindent(s_: str, numSpaces: int) -> str:
    """A text with every line after the first moved to the right; empty lines stay."""
    first, *others = s_.split("\n")
    return "\n".join([first, *[" " * numSpaces + line if line.strip() else "" for line in others]])


def apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    """tensor.index_select(dim, permutation), which the warning says, too."""
    warnings.warn("apply_permutation is deprecated, please use tensor.index_select(dim, permutation) instead", FutureWarning, stacklevel=2)
    return tensor.index_select(dim, permutation)


def _get_softmax_dim(name: str, ndim: int, stacklevel: int) -> int:
    """The dimension that softmax goes along where none is given: 0 for 0, 1 or 3 dimensions, else 1. Warns."""
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.", stacklevel=stacklevel
    )
    return 0 if ndim in (0, 1, 3) else 1  # PyTorch's guess: 3 is a sequence first


def _list_with_default(out_size: Sequence[int | None] | int, defaults: Sequence[int]) -> Any:
    """Sizes with the last of `defaults` in the place of None."""
    if isinstance(out_size, int | Tensor):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}; _list_with_default: give as many defaults")
    # Counted from the last, as sizes of images are.
    return [d if v is None else v for v, d in zip(out_size, defaults[-len(out_size) :], strict=True)]


def _verify_batch_size(size: Sequence[int]) -> None:
    """Raises ValueError where a normalisation in training would see one value for a channel."""
    refuse_single("batch_norm", size)


def assert_int_or_pair(arg: Any, arg_name: str, message: str) -> None:
    """Raises AssertionError for what is no int and no pair."""
    if not (isinstance(arg, int) or len(arg) == 2):
        raise AssertionError(message.format(arg_name))


def _none_or_dtype(input: Tensor | None) -> DType | None:
    """The type of a tensor, None of none."""
    if input is None:
        return None
    if isinstance(input, Tensor):
        return input.dtype
    raise RuntimeError(f"input to _none_or_dtype() must be None or a Tensor, not a {type(input).__name__}")


def _canonical_mask(
    mask: Tensor | None, mask_name: str, other_type: DType | None, other_name: str, target_type: DType, check_other: bool = True
) -> Tensor | None:
    """A mask as numbers of target_type to add: True becomes -inf. Warns where the other mask is of another type; AssertionError for integers."""
    found = canonical_mask(mask, mask_name, None, other_name, target_type)
    if mask is not None and check_other and other_type is not None and mask.dtype != other_type:
        warnings.warn(f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for both instead.", stacklevel=2)
    return found if mask is None else to_additive_mask(mask, target_type)


def _mha_shape_check(
    query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None, attn_mask: Tensor | None, num_heads: int
) -> bool:
    """Whether there is a batch; AssertionError for numbers of dimensions that do not go together."""
    from tritensor.nn.functional.attention import _check_dims

    return _check_dims(query, key, value, key_padding_mask, attn_mask, num_heads)


def _in_projection_packed(q: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Tensor | None = None) -> list[Tensor]:
    """Queries, keys and values of one weight (3 E, E): [q, k, v]. One product where they are one tensor."""
    size = q.shape[-1]
    if k is v and q is k:  # self-attention: one product of a weight three times as high
        return list(F.linear(q, w, b).unflatten(-1, (3, size)).unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous())
    weights = w.chunk(3)
    biases = (None, None, None) if b is None else b.chunk(3)
    return [F.linear(x, u, c) for x, u, c in zip((q, k, v), weights, biases, strict=True)]


def _in_projection(
    q: Tensor, k: Tensor, v: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, b_q: Tensor | None = None, b_k: Tensor | None = None, b_v: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Queries, keys and values of a weight each: (E, E), (E, size of keys), (E, size of values)."""
    return F.linear(q, w_q, b_q), F.linear(k, w_k, b_k), F.linear(v, w_v, b_v)


def _unpool_output_size(
    input: Tensor, kernel_size: Sequence[int], stride: Sequence[int], padding: Sequence[int], output_size: Sequence[int] | None
) -> list[int]:
    """The size that unpooling gives, or the one asked for. Raises ValueError for one that is further off than a step."""
    axes = len(kernel_size)
    usual = [(n - 1) * s + k - 2 * p for n, k, s, p in zip(input.shape[-axes:], kernel_size, stride, padding, strict=True)]
    if output_size is None:
        return usual
    asked = list(output_size)[2:] if len(output_size) == axes + 2 else list(output_size)
    if len(asked) != axes:
        raise ValueError(
            f"output_size should be a sequence containing {axes} or {axes + 2} elements, but it has a length of '{len(asked)}'"
        )
    for d, (n, m, s) in enumerate(zip(asked, usual, stride, strict=True)):
        if not m - s < n < m + s:
            raise ValueError(f'invalid output_size "{asked}" (dim {d} must be between {m - s} and {m + s})')
    return asked
