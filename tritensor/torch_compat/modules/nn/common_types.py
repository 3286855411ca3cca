"""nn.common_types: names for annotations of sizes, one number or one for each dimension."""

from typing import Any, TypeVar

from tritensor.tensor.core import Tensor as Tensor

T = TypeVar("T")
_scalar_or_tuple_any_t = Any | tuple[Any, ...]
_size_any_t = _size_1_t = _size_2_t = _size_3_t = _size_4_t = _size_5_t = _size_6_t = int | tuple[int, ...]
_size_any_opt_t = _size_2_opt_t = _size_3_opt_t = int | tuple[int | None, ...]
_ratio_any_t = _ratio_2_t = _ratio_3_t = float | tuple[float, ...]
_tensor_list_t = Tensor | list[Tensor]
_maybe_indices_t = Tensor | tuple[Tensor, Tensor]
