"""Policies of fully_shard: the types to compute and to reduce in, and the memory that holds shards."""

from __future__ import annotations

from dataclasses import dataclass

from tritensor.ground.dtypes import DType


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """Types in which a sharded module computes; shards and optimizers keep their own.

    Attributes:
        param_dtype: type of the whole parameters, in which they are also sent; None for their own.
        reduce_dtype: type in which gradients are reduced; None for that of the whole parameters.
        output_dtype: type to which floating outputs of forward are cast; None leaves them.
        cast_forward_inputs: cast floating inputs of forward to param_dtype.
    """

    param_dtype: DType | None = None
    reduce_dtype: DType | None = None
    output_dtype: DType | None = None
    cast_forward_inputs: bool = True

    def __post_init__(self) -> None:
        """Raises TypeError for what is no type of tensors."""
        for name in ("param_dtype", "reduce_dtype", "output_dtype"):
            given = getattr(self, name)
            if given is not None and not isinstance(given, DType):
                raise TypeError(f"MixedPrecisionPolicy: {name} is {given!r}; give a type of tensors, as tritensor.bfloat16, or None")


@dataclass
class OffloadPolicy:
    """Shards stay on the device of their parameters."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Shards on the CPU of a module that computes on a GPU: not built; fully_shard raises NotImplementedError for it."""

    pin_memory: bool = True
