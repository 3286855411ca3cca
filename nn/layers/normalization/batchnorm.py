"""Batch normalisation: layers of 1 to 3 dimensions, and the one that shares its statistics among processes."""

from __future__ import annotations

from typing import Any

from tritensor.autograd.modes import no_grad
from tritensor.ground.errors import ShapeError
from tritensor.ground.providers import provider
from tritensor.nn import functional as F
from tritensor.nn.functional.normalization import add_one, bessel_factor, update_running
from tritensor.nn.fusing import NORMALISED, can_fuse_norm
from tritensor.nn.layers.normalization.running import _NormBase, refuse_dims
from tritensor.nn.module import Module
from tritensor.tensor.core import Tensor


class _BatchNorm(_NormBase):
    """(x - mean) / sqrt(var + eps) * weight + bias for each channel, dimension 1.

    In training, and without running statistics, by the batch's mean and variance; in evaluation by the running ones, which in training move by
    `momentum` towards each batch's. momentum=None: they are the mean over all batches seen.

    Args:
        num_features: channels.
        eps: added to the variance.
        affine: learn weight and bias, which start at 1 and 0.
        track_running_stats: keep running_mean and running_var; False always goes by the batch.
    """

    def forward(self, input: Tensor) -> Tensor:
        mean, var, by_batch, momentum = self._statistics(input)
        return F.batch_norm(input, mean, var, self.weight, self.bias, by_batch, momentum, self.eps)

    def _forward_then(self, input: Tensor, activation: str, residual: Tensor | None = None) -> Tensor:
        """activation(forward() + residual) without what is between them in memory, for Sequential and residual blocks."""
        mean, var, by_batch, momentum = self._statistics(input)
        vectors = mean, var, self.weight, self.bias
        return F.batch_norm_activation(input, *vectors, residual, by_batch, momentum, self.eps, activation=activation)  # type: ignore[arg-type]

    def _statistics(self, input: Tensor) -> tuple[Tensor | None, Tensor | None, bool, float]:
        """(running mean and variance where they count, whether to go by the batch, momentum); counts the batch."""
        self._check_input_dim(input)
        tracks = self.training and self.track_running_stats
        momentum = 0.0 if self.momentum is None else self.momentum
        if tracks and self.num_batches_tracked is not None:
            add_one(self.num_batches_tracked)
            if self.momentum is None:
                # the weight that makes the running statistics the plain mean over all batches
                momentum = 1.0 / self.num_batches_tracked.item()
        # a layer in training that does not track must not move the statistics that it may have
        mean, var = (self.running_mean, self.running_var) if tracks or not self.training else (None, None)
        by_batch = self.training or (self.running_mean is None and self.running_var is None)
        return mean, var, by_batch, momentum


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of (batch, channels) or (batch, channels, length) (Ioffe and Szegedy 2015)."""

    _fuses, _fuses_of = NORMALISED, can_fuse_norm

    def _check_input_dim(self, input: Tensor) -> None:
        refuse_dims(self, input, 2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of images (batch, channels, h, w) (Ioffe and Szegedy 2015).

    >>> norm = nn.BatchNorm2d(3)
    >>> y = norm(tt.randn(8, 3, 4, 4) * 5 + 2)
    >>> bool(y.mean().abs() < 1e-5), norm.running_mean.shape
    (True, tritensor.Size([3]))
    """

    _fuses, _fuses_of = NORMALISED, can_fuse_norm

    def _check_input_dim(self, input: Tensor) -> None:
        refuse_dims(self, input, 4)


class BatchNorm3d(_BatchNorm):
    """Batch normalisation of volumes (batch, channels, d, h, w) (Ioffe and Szegedy 2015)."""

    _fuses, _fuses_of = NORMALISED, can_fuse_norm

    def _check_input_dim(self, input: Tensor) -> None:
        refuse_dims(self, input, 5)


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation whose statistics, in training, are those of the batches of all processes of a group; on any device.

    Without a process group, or in one of one process, they are the batch's own.
    """

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True, track_running_stats: bool = True,
        process_group: Any = None, device: Any = None, dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim < 2:
            raise ShapeError(f"SyncBatchNorm: expected at least 2D input (got {input.ndim}D input); give (batch, channels, ...)")
        if input.shape[1] == 0:
            raise ShapeError("SyncBatchNorm: number of input channels should be non-zero; give (batch, channels, ...)")
        if input.shape[1] != self.num_features:  # of which the other processes would hear last
            raise ShapeError(
                f"SyncBatchNorm: input {tuple(input.shape)} has {input.shape[1]} channels in dimension 1, the layer num_features={self.num_features}; "
                "make them agree"
            )

    def forward(self, input: Tensor) -> Tensor:
        distributed = provider("distributed")  # few programs need it
        shares = self.training and distributed.is_initialized() and distributed.get_world_size(self.process_group) > 1
        if not shares:
            return super().forward(input)
        mean, var, _, momentum = self._statistics(input)
        shared = provider("distributed.shared_batch_norm").SharedBatchNorm
        group = provider("distributed.process_group").require_group("SyncBatchNorm", self.process_group)

        def follow(batch_mean: Tensor, batch_var: Tensor, n: int) -> None:
            update_running(mean, batch_mean, momentum)
            update_running(var, batch_var, momentum, bessel_factor(n))

        return shared.apply(input, self.weight, self.bias, self.eps, group, follow)  # type: ignore[no-any-return]

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """The module with a SyncBatchNorm, of the same parameters and buffers, in place of each BatchNorm layer; itself one, a new layer."""
        found = module
        if isinstance(module, _BatchNorm):
            found = SyncBatchNorm(
                module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats, process_group,
                bias=module.bias is not None,
            )  # fmt: skip
            with no_grad():
                found.weight, found.bias = module.weight, module.bias
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                found._buffers[name] = module._buffers[name]
            found.training = module.training
        for name, child in module.named_children():
            found.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return found
