"""Instance normalisation: every channel of every instance by its own mean and variance."""

from __future__ import annotations

import warnings
from typing import Any

from tritensor.ground.errors import ShapeError
from tritensor.nn import functional as F
from tritensor.nn.layers.normalization.running import _NormBase, refuse_dims
from tritensor.tensor.core import Tensor


class _InstanceNorm(_NormBase):
    """(x - mean) / sqrt(var + eps) for each channel of each instance; with running statistics, which are tracked on request, those in evaluation."""

    _dims = 0  # of one instance

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False, track_running_stats: bool = False,
        device: Any = None, dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _check_input_dim(self, input: Tensor) -> None:
        refuse_dims(self, input, self._dims, self._dims + 1)

    def _get_no_batch_dim(self) -> int:
        return self._dims

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        dim = input.ndim - self._dims
        if input.shape[dim] != self.num_features:
            said = f"{type(self).__name__}: input {tuple(input.shape)} has {input.shape[dim]} channels at dim {dim}, num_features is {self.num_features}"
            if self.affine:
                raise ShapeError(f"{said}; expected input's size at dim={dim} to match num_features; give such an input")
            warnings.warn(f"{said}, which does not match; it is not used because affine=False", stacklevel=2)
        single = input.ndim == self._dims
        y = F.instance_norm(
            input.unsqueeze(0) if single else input, self.running_mean, self.running_var, self.weight, self.bias,
            self.training or not self.track_running_stats, 0.0 if self.momentum is None else self.momentum, self.eps,
        )  # fmt: skip
        return y.squeeze(0) if single else y

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, missing_keys: Any, unexpected_keys: Any, error_msgs: Any
    ) -> None:
        if local_metadata.get("version") is None and not self.track_running_stats:
            old = [k for k in ("running_mean", "running_var") if prefix + k in state_dict]
            if old:
                error_msgs.append(
                    f"Unexpected running stats buffer(s) {' and '.join(repr(prefix + k) for k in old)} for {type(self).__name__} with "
                    "track_running_stats=False: a checkpoint from before PyTorch 0.4.0 has them; remove these keys, or make the layer with "
                    "track_running_stats=True"
                )
                for k in old:
                    del state_dict[prefix + k]
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)


class InstanceNorm1d(_InstanceNorm):
    """Instance normalisation of (batch, channels, length), or one of a batch (Ulyanov et al. 2016)."""

    _dims = 2


class InstanceNorm2d(_InstanceNorm):
    """Instance normalisation of images (batch, channels, h, w), or one of them (Ulyanov et al. 2016)."""

    _dims = 3


class InstanceNorm3d(_InstanceNorm):
    """Instance normalisation of volumes (batch, channels, d, h, w), or one of them (Ulyanov et al. 2016)."""

    _dims = 4
