"""Batch and instance normalisation: by statistics of channels, which may be kept; lazy, and shared among processes."""

from __future__ import annotations

import warnings
from typing import Any

from tritensor.autograd.modes import no_grad
from tritensor.ground import dtypes
from tritensor.ground.errors import ShapeError
from tritensor.ground.providers import provider
from tritensor.nn import functional as F
from tritensor.nn.functional.normalization import add_one, bessel_factor, update_running
from tritensor.nn.fusing import NORMALISED, can_fuse_norm
from tritensor.nn.layers.lazy import LazyModuleMixin
from tritensor.nn.layers.normalization.layernorm import _Affine
from tritensor.nn.module import Module
from tritensor.nn.parameter import UninitializedBuffer, UninitializedParameter
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.constructors import ones, zeros


class _NormBase(_Affine):
    """Parameters and statistics of num_features channels: weight 1 and bias 0 where affine, running_mean 0 and running_var 1 where tracked."""

    _version = 2  # of a state_dict: 1 had no num_batches_tracked
    __constants__ = ["track_running_stats", "momentum", "eps", "num_features", "affine"]  # noqa: RUF012  (PyTorch's is a list)
    _dims: tuple[int, ...] = ()  # numbers of dimensions that are taken; none: a subclass checks by itself
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
        self._make_affine((num_features,), affine, affine and bias, device, dtype)
        kept = track_running_stats  # None is registered as well: PyTorch's scripts ask `layer.running_mean is None`
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
        super().reset_parameters()

    def _check_input_dim(self, input: Tensor) -> None:
        name = type(self).__name__
        if not self._dims:
            raise NotImplementedError(f"{name}: missing _check_input_dim(input); define it, or use the 1d, 2d or 3d layer")
        if input.ndim not in self._dims:
            wanted = " or ".join(f"{n}D" for n in self._dims)
            raise ShapeError(
                f"{name}: expected {wanted} input (got {input.ndim}D input of shape {tuple(input.shape)}); give one, or use the layer for it"
            )

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, missing_keys: Any, unexpected_keys: Any, error_msgs: Any
    ) -> None:
        key = prefix + "num_batches_tracked"
        # files of before have no count: the layer's own, or 0, stands for it
        if (local_metadata.get("version") or 0) < 2 and self.track_running_stats and key not in state_dict:
            state_dict[key] = zeros((), dtype=dtypes.int64) if self.num_batches_tracked is None else self.num_batches_tracked
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)


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

    def _forward_with_activation(self, input: Tensor, activation: str, residual: Tensor | None = None) -> Tensor:
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

    _dims = (2, 3)
    _fuses, _fuses_of = NORMALISED, can_fuse_norm


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of images (batch, channels, h, w) (Ioffe and Szegedy 2015).

    >>> norm = nn.BatchNorm2d(3)
    >>> y = norm(tt.randn(8, 3, 4, 4) * 5 + 2)
    >>> bool(y.mean().abs() < 1e-5), norm.running_mean.shape
    (True, tritensor.Size([3]))
    """

    _dims = (4,)
    _fuses, _fuses_of = NORMALISED, can_fuse_norm


class BatchNorm3d(_BatchNorm):
    """Batch normalisation of volumes (batch, channels, d, h, w) (Ioffe and Szegedy 2015)."""

    _dims = (5,)
    _fuses, _fuses_of = NORMALISED, can_fuse_norm


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
        # in evaluation there is nothing to share: running statistics are every process's own
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
                found.weight, found.bias = module.weight, module.bias  # the same objects: an optimizer that holds them goes on
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                found._buffers[name] = module._buffers[name]
            found.training = module.training  # the constructor trains; a model in evaluation is converted in evaluation
        for name, child in module.named_children():
            found.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return found


class _InstanceNorm(_NormBase):
    """(x - mean) / sqrt(var + eps) for each channel of each instance; with running statistics, which are tracked on request, those in evaluation."""

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False, track_running_stats: bool = False,
        device: Any = None, dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _get_no_batch_dim(self) -> int:
        return self._dims[0]

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        dim = input.ndim - self._get_no_batch_dim()
        if input.shape[dim] != self.num_features:
            said = f"{type(self).__name__}: input {tuple(input.shape)} has {input.shape[dim]} channels at dim {dim}, num_features is {self.num_features}"
            if self.affine:
                raise ShapeError(f"{said}; expected input's size at dim={dim} to match num_features; give such an input")
            warnings.warn(f"{said}, which does not match; it is not used because affine=False", stacklevel=2)
        single = dim == 0
        y = F.instance_norm(
            input.unsqueeze(0) if single else input, self.running_mean, self.running_var, self.weight, self.bias,
            self.training or not self.track_running_stats, 0.0 if self.momentum is None else self.momentum, self.eps,
        )  # fmt: skip
        return y.squeeze(0) if single else y

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, missing_keys: Any, unexpected_keys: Any, error_msgs: Any
    ) -> None:
        # PyTorch 0.3 wrote statistics whether they were tracked or not
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

    _dims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Instance normalisation of images (batch, channels, h, w), or one of them (Ulyanov et al. 2016)."""

    _dims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Instance normalisation of volumes (batch, channels, d, h, w), or one of them (Ulyanov et al. 2016)."""

    _dims = (4, 5)


class _LazyNormBase(LazyModuleMixin, _NormBase):
    """num_features is 0, and the parameters and buffers without a shape, until forward has seen a batch."""

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
        # of an instance without a batch the channels come first
        self.num_features = input.shape[input.ndim - self._dims[0] if isinstance(self, _InstanceNorm) else 1]
        if not self.has_uninitialized_params():
            brought = [member for _, member in self._members() if member is not None and member.ndim]  # of a state_dict
            self.num_features = len(brought[0]) if brought else self.num_features
            return
        with no_grad():
            for _, member in self._members():
                if isinstance(member, UninitializedParameter | UninitializedBuffer):
                    member.materialize((self.num_features,))
            self.reset_parameters()


class LazyBatchNorm1d(_LazyNormBase, _BatchNorm):
    """BatchNorm1d of as many channels as the first input has."""

    cls_to_become = BatchNorm1d
    _dims = BatchNorm1d._dims


class LazyBatchNorm2d(_LazyNormBase, _BatchNorm):
    """BatchNorm2d of as many channels as the first input has."""

    cls_to_become = BatchNorm2d
    _dims = BatchNorm2d._dims


class LazyBatchNorm3d(_LazyNormBase, _BatchNorm):
    """BatchNorm3d of as many channels as the first input has."""

    cls_to_become = BatchNorm3d
    _dims = BatchNorm3d._dims


class LazyInstanceNorm1d(_LazyNormBase, _InstanceNorm):
    """InstanceNorm1d of as many channels as the first input has."""

    cls_to_become = InstanceNorm1d
    _dims = InstanceNorm1d._dims


class LazyInstanceNorm2d(_LazyNormBase, _InstanceNorm):
    """InstanceNorm2d of as many channels as the first input has."""

    cls_to_become = InstanceNorm2d
    _dims = InstanceNorm2d._dims


class LazyInstanceNorm3d(_LazyNormBase, _InstanceNorm):
    """InstanceNorm3d of as many channels as the first input has."""

    cls_to_become = InstanceNorm3d
    _dims = InstanceNorm3d._dims
