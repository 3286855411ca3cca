"""Base of batch and instance normalisation: one weight, bias, running mean and variance for each channel."""

from __future__ import annotations

from typing import Any

from tritensor.ground import dtypes
from tritensor.ground.errors import ShapeError
from tritensor.nn import init
from tritensor.nn.module import Module
from tritensor.nn.parameter import Parameter, empty_parameter
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.constructors import ones, zeros


def refuse_dims(layer: Module, input: Tensor, *wanted: int) -> None:
    """Raise ShapeError for an input of another number of dimensions."""
    if input.ndim not in wanted:
        names = " or ".join(f"{n}D" for n in wanted)
        raise ShapeError(
            f"{type(layer).__name__}: expected {names} input (got {input.ndim}D input of shape {tuple(input.shape)}); give one, or use the layer for it"
        )


class _NormBase(Module):
    """Parameters and statistics of num_features channels: weight 1 and bias 0 where affine, running_mean 0 and running_var 1 where tracked."""

    _version = 2  # of a state_dict: 1 had no num_batches_tracked
    __constants__ = ["track_running_stats", "momentum", "eps", "num_features", "affine"]  # noqa: RUF012  (PyTorch's is a list)
    weight: Parameter | None
    bias: Parameter | None
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True, track_running_stats: bool = True,
        device: Any = None, dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(name, empty_parameter(num_features, device=device, dtype=dtype) if wanted else None)
        kept = track_running_stats
        self.register_buffer("running_mean", zeros(num_features, device=device, dtype=dtype) if kept else None)
        self.register_buffer("running_var", ones(num_features, device=device, dtype=dtype) if kept else None)
        self.register_buffer("num_batches_tracked", zeros((), device=device, dtype=dtypes.int64) if kept else None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forget what was seen: mean 0, variance 1, no batches."""
        if self.track_running_stats:
            for name, value in (("running_mean", 0), ("running_var", 1), ("num_batches_tracked", 0)):
                getattr(self, name).fill_(value)

    def reset_parameters(self) -> None:
        """Weight 1, bias 0, and nothing seen."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        raise NotImplementedError(f"{type(self).__name__}: missing _check_input_dim(input); define it, or use the 1d, 2d or 3d layer")

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, missing_keys: Any, unexpected_keys: Any, error_msgs: Any
    ) -> None:
        key = prefix + "num_batches_tracked"
        if (local_metadata.get("version") or 0) < 2 and self.track_running_stats and key not in state_dict:
            state_dict[key] = zeros((), dtype=dtypes.int64) if self.num_batches_tracked is None else self.num_batches_tracked
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
