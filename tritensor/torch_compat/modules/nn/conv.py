"""nn.modules.conv: the layers of convolution and their bases, which scripts ask modules for before they initialise them."""

from tritensor.nn.layers.convolution import Conv1d as Conv1d
from tritensor.nn.layers.convolution import Conv2d as Conv2d
from tritensor.nn.layers.convolution import Conv3d as Conv3d
from tritensor.nn.layers.convolution import ConvTranspose1d as ConvTranspose1d
from tritensor.nn.layers.convolution import ConvTranspose2d as ConvTranspose2d
from tritensor.nn.layers.convolution import ConvTranspose3d as ConvTranspose3d
from tritensor.nn.layers.convolution import LazyConv1d as LazyConv1d
from tritensor.nn.layers.convolution import LazyConv2d as LazyConv2d
from tritensor.nn.layers.convolution import LazyConv3d as LazyConv3d
from tritensor.nn.layers.convolution import LazyConvTranspose1d as LazyConvTranspose1d
from tritensor.nn.layers.convolution import LazyConvTranspose2d as LazyConvTranspose2d
from tritensor.nn.layers.convolution import LazyConvTranspose3d as LazyConvTranspose3d
from tritensor.nn.layers.convolution import _ConvNd as _ConvNd
from tritensor.nn.layers.convolution import _ConvTransposeNd as _ConvTransposeNd
