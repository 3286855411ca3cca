"""Functions with an underscore that programs call as torch._NAME: shapes as tensors, draws, the indices of sparse matrices, casts."""

from __future__ import annotations

from typing import Any

from tritensor.random import Generator
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.gammas import sample_dirichlet, standard_gamma
from tritensor.tensor.public_api.publish import public


def _shape_as_tensor(self: Tensor) -> Tensor:
    """The shape as an int64 tensor of one dimension, on the CPU."""
    made: Tensor = public["tensor"](list(self.shape), dtype="int64")
    return made


def _standard_gamma(self: Tensor, generator: Generator | None = None) -> Tensor:
    """Gamma numbers of rate 1, of the concentrations in `self`."""
    return standard_gamma(self, generator=generator)


def _sample_dirichlet(self: Tensor, generator: Generator | None = None) -> Tensor:
    """Points of the simplex along the last dimension, of the concentrations in `self`."""
    return sample_dirichlet(self, generator=generator)


def _convert_indices_from_coo_to_csr(self: Tensor, size: int, *, out_int32: bool = False) -> Tensor:
    """(size + 1,): where each row starts among sorted row numbers (n,). int64, or int32 where asked."""
    made: Tensor = public["searchsorted"](self, public["arange"](size + 1, dtype=self.dtype, device=self.device), out_int32=out_int32)
    return made


def _convert_indices_from_csr_to_coo(
    crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False, transpose: bool = False
) -> Tensor:
    """(2, n): row and column of each value, of the starts of the rows (rows + 1,) and the columns (n,); columns first where transposed."""
    rows = public["arange"](crow_indices.shape[0] - 1, dtype=crow_indices.dtype, device=crow_indices.device)
    pair = [rows.repeat_interleave(crow_indices.diff()), col_indices]
    made: Tensor = public["stack"](pair[::-1] if transpose else pair)
    return made.int() if out_int32 else made


_segment_reduce: Any = public["segment_reduce"]  # its older name


def _cast(name: str) -> Any:
    def cast(self: Tensor, non_blocking: bool = False) -> Tensor:
        made: Tensor = getattr(self, name)()
        return made

    cast.__name__ = cast.__qualname__ = f"_cast_{name.title()}"
    cast.__doc__ = f"x.{name}()."
    return cast


for _name in ("byte", "char", "double", "float", "half", "int", "long", "short"):
    globals()[f"_cast_{_name.title()}"] = _cast(_name)
