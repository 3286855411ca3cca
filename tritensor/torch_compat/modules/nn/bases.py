"""Classes that layers of ours derive from under the names that PyTorch's have: scripts ask `isinstance`, and derive layers of their own; utils.swap_tensors."""

from tritensor.nn.layers.dropout import _DropoutNd as _DropoutNd
from tritensor.nn.layers.losses.base import _Loss as _Loss
from tritensor.nn.layers.losses.base import _WeightedLoss as _WeightedLoss
from tritensor.nn.layers.normalization.batchnorm import _BatchNorm as _BatchNorm
from tritensor.nn.layers.normalization.batchnorm import _InstanceNorm as _InstanceNorm
from tritensor.nn.layers.normalization.batchnorm import _LazyNormBase as _LazyNormBase
from tritensor.nn.layers.normalization.batchnorm import _NormBase as _NormBase
from tritensor.nn.layers.padding import CircularPad1d as _CircularPadNd  # noqa: F401
from tritensor.nn.layers.padding import ReflectionPad1d as _ReflectionPadNd  # noqa: F401
from tritensor.nn.layers.padding import ReplicationPad1d as _ReplicationPadNd  # noqa: F401
from tritensor.nn.layers.padding import _Constant as _ConstantPadNd  # noqa: F401
from tritensor.nn.layers.pooling import _AdaptiveAvgPoolNd as _AdaptiveAvgPoolNd
from tritensor.nn.layers.pooling import _AdaptiveMaxPoolNd as _AdaptiveMaxPoolNd
from tritensor.nn.layers.pooling import _AvgPoolNd as _AvgPoolNd
from tritensor.nn.layers.pooling import _LPPoolNd as _LPPoolNd
from tritensor.nn.layers.pooling import _MaxPoolNd as _MaxPoolNd
from tritensor.nn.layers.pooling import _MaxUnpoolNd as _MaxUnpoolNd
from tritensor.nn.moving import swap_tensors as swap_tensors
