"""Batch and instance normalisation of as many channels as the first batch has."""

from __future__ import annotations

from typing import Any

from tritensor.autograd.modes import no_grad
from tritensor.ground import dtypes
from tritensor.nn.layers.lazy import LazyModuleMixin
from tritensor.nn.layers.normalization import batchnorm, instancenorm
from tritensor.nn.layers.normalization.running import _NormBase
from tritensor.nn.parameter import UninitializedBuffer, UninitializedParameter
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.constructors import zeros


class _LazyNormBase(LazyModuleMixin, _NormBase):
    """num_features is 0, and the parameters and buffers without a shape, until forward has seen a batch."""

    _dims = 0  # of one instance, where it may come without a batch

    def __init__(
        self, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True, track_running_stats: bool = True, device: Any = None,
        dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(0, eps, momentum, False, False)  # affine and tracking are made here, without a shape
        self.affine, self.track_running_stats = affine, track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            if bias:
                self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = zeros((), device=device, dtype=dtypes.int64)

    def reset_parameters(self) -> None:
        """Weight 1, bias 0, and nothing seen, once there are channels."""
        if self.num_features and not self.has_uninitialized_params():
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:  # type: ignore[override]
        """Give parameters and buffers one number for each channel of the input."""
        self.num_features = input.shape[input.ndim - self._dims if self._dims else 1]
        if not self.has_uninitialized_params():
            brought = [member for _, member in self._members() if member is not None and member.ndim]  # of a state_dict
            self.num_features = len(brought[0]) if brought else self.num_features
            return
        with no_grad():
            for _, member in self._members():
                if isinstance(member, UninitializedParameter | UninitializedBuffer):
                    member.materialize((self.num_features,))
            self.reset_parameters()


class LazyBatchNorm1d(_LazyNormBase, batchnorm._BatchNorm):
    """BatchNorm1d of as many channels as the first input has."""

    cls_to_become = batchnorm.BatchNorm1d
    _check_input_dim = batchnorm.BatchNorm1d._check_input_dim


class LazyBatchNorm2d(_LazyNormBase, batchnorm._BatchNorm):
    """BatchNorm2d of as many channels as the first input has."""

    cls_to_become = batchnorm.BatchNorm2d
    _check_input_dim = batchnorm.BatchNorm2d._check_input_dim


class LazyBatchNorm3d(_LazyNormBase, batchnorm._BatchNorm):
    """BatchNorm3d of as many channels as the first input has."""

    cls_to_become = batchnorm.BatchNorm3d
    _check_input_dim = batchnorm.BatchNorm3d._check_input_dim


class LazyInstanceNorm1d(_LazyNormBase, instancenorm._InstanceNorm):
    """InstanceNorm1d of as many channels as the first input has."""

    cls_to_become = instancenorm.InstanceNorm1d
    _dims = 2


class LazyInstanceNorm2d(_LazyNormBase, instancenorm._InstanceNorm):
    """InstanceNorm2d of as many channels as the first input has."""

    cls_to_become = instancenorm.InstanceNorm2d
    _dims = 3


class LazyInstanceNorm3d(_LazyNormBase, instancenorm._InstanceNorm):
    """InstanceNorm3d of as many channels as the first input has."""

    cls_to_become = instancenorm.InstanceNorm3d
    _dims = 4
