"""Neural network functions with PyTorch's names and arguments; every one runs through the op table."""

from tritensor.nn.functional.activation import dropout as dropout
from tritensor.nn.functional.activation import elu as elu
from tritensor.nn.functional.activation import gelu as gelu
from tritensor.nn.functional.activation import leaky_relu as leaky_relu
from tritensor.nn.functional.activation import log_softmax as log_softmax
from tritensor.nn.functional.activation import relu as relu
from tritensor.nn.functional.activation import sigmoid as sigmoid
from tritensor.nn.functional.activation import silu as silu
from tritensor.nn.functional.activation import softmax as softmax
from tritensor.nn.functional.activation import softplus as softplus
from tritensor.nn.functional.activation import tanh as tanh
from tritensor.nn.functional.convolution import conv2d as conv2d
from tritensor.nn.functional.losses import binary_cross_entropy_with_logits as binary_cross_entropy_with_logits
from tritensor.nn.functional.losses import cross_entropy as cross_entropy
from tritensor.nn.functional.losses import l1_loss as l1_loss
from tritensor.nn.functional.losses import mse_loss as mse_loss
from tritensor.nn.functional.losses import nll_loss as nll_loss
from tritensor.nn.functional.normalization import layer_norm as layer_norm
from tritensor.nn.functional.normalization import normalize as normalize
from tritensor.nn.functional.padding import pad as pad
from tritensor.nn.functional.pooling import avg_pool2d as avg_pool2d
from tritensor.nn.functional.pooling import max_pool2d as max_pool2d
from tritensor.nn.functional.products import bilinear as bilinear
from tritensor.nn.functional.products import linear as linear
from tritensor.nn.functional.sparse import embedding as embedding
from tritensor.nn.functional.sparse import one_hot as one_hot
