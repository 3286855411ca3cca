"""nn.modules.conv: the layers of convolution and their bases, which scripts ask modules for before they initialise them."""

from tritensor.nn.layers.convolution.base import _ConvNd as _ConvNd
from tritensor.nn.layers.convolution.lazy import LazyConv1d as LazyConv1d
from tritensor.nn.layers.convolution.lazy import LazyConv2d as LazyConv2d
from tritensor.nn.layers.convolution.lazy import LazyConv3d as LazyConv3d
from tritensor.nn.layers.convolution.lazy import LazyConvTranspose1d as LazyConvTranspose1d
from tritensor.nn.layers.convolution.lazy import LazyConvTranspose2d as LazyConvTranspose2d
from tritensor.nn.layers.convolution.lazy import LazyConvTranspose3d as LazyConvTranspose3d
from tritensor.nn.layers.convolution.plain import Conv1d as Conv1d
from tritensor.nn.layers.convolution.plain import Conv2d as Conv2d
from tritensor.nn.layers.convolution.plain import Conv3d as Conv3d
from tritensor.nn.layers.convolution.transposed import ConvTranspose1d as ConvTranspose1d
from tritensor.nn.layers.convolution.transposed import ConvTranspose2d as ConvTranspose2d
from tritensor.nn.layers.convolution.transposed import ConvTranspose3d as ConvTranspose3d
from tritensor.nn.layers.convolution.transposed import _ConvTransposeNd as _ConvTransposeNd
