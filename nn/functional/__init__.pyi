# Written by `python -m tritensor.tools.stubs`; edit the functions themselves.
import builtins as _builtins
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tritensor.random import Generator
from tritensor.tensor.core import Tensor
from tritensor.tensor.size import Size

def adaptive_avg_pool1d(input: Tensor, output_size: _builtins.int | Sequence[_builtins.int]) -> Tensor:
    """Means over windows that divide each row evenly, output o of n over cells floor(o size / n) to ceil((o + 1) size / n): (batch, c, w) -> (batch, c, n)."""

def adaptive_avg_pool2d(input: Tensor, output_size: _builtins.int | Sequence[_builtins.int | None] | None) -> Tensor:
    """Means over windows that divide each axis evenly; None keeps a size: (batch, c, h, w) -> (batch, c, *output_size)."""

def adaptive_avg_pool3d(input: Tensor, output_size: _builtins.int | Sequence[_builtins.int | None] | None) -> Tensor:
    """Means over windows that divide each axis evenly; None keeps a size: (batch, c, d, h, w) -> (batch, c, *output_size)."""

def adaptive_max_pool1d(input: Tensor, output_size: _builtins.int | Sequence[_builtins.int], return_indices: _builtins.bool = False) -> Any:
    """Maxima over windows that divide each axis evenly, and their flat places if return_indices: (batch, c, w) -> (batch, c, n)."""

def adaptive_max_pool1d_with_indices(input: Tensor, output_size: _builtins.int | Sequence[_builtins.int], return_indices: _builtins.bool = False) -> Any:
    """adaptive_max_pool1d with return_indices=True."""

def adaptive_max_pool2d(input: Tensor, output_size: _builtins.int | Sequence[_builtins.int | None] | None, return_indices: _builtins.bool = False) -> Any:
    """Maxima over windows that divide each axis evenly, None keeps a size, and their flat places if return_indices:"""

def adaptive_max_pool2d_with_indices(input: Tensor, output_size: _builtins.int | Sequence[_builtins.int | None] | None, return_indices: _builtins.bool = False) -> Any:
    """adaptive_max_pool2d with return_indices=True."""

def adaptive_max_pool3d(input: Tensor, output_size: _builtins.int | Sequence[_builtins.int | None] | None, return_indices: _builtins.bool = False) -> Any:
    """Maxima over windows that divide each axis evenly, None keeps a size, and their flat places if return_indices:"""

def adaptive_max_pool3d_with_indices(input: Tensor, output_size: _builtins.int | Sequence[_builtins.int | None] | None, return_indices: _builtins.bool = False) -> Any:
    """adaptive_max_pool3d with return_indices=True."""

def affine_grid(theta: Tensor, size: Sequence[_builtins.int], align_corners: _builtins.bool | None = None) -> Tensor:
    """Where an affine map takes the positions of an image of `size`, for grid_sample: theta (batch, 2, 3) or (batch, 3, 4), size (batch, c, h, w)"""

def avg_pool2d(input: Tensor, kernel_size: _builtins.int | Sequence[_builtins.int], stride: _builtins.int | Sequence[_builtins.int] | None = None, padding: _builtins.int | Sequence[_builtins.int] = 0, ceil_mode: _builtins.bool = False, count_include_pad: _builtins.bool = True, divisor_override: _builtins.int | None = None) -> Tensor:
    """Mean of each window; stride defaults to the window. count_include_pad=False divides by the cells inside the input, divisor_override by a number."""

def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """y[k] = input1 @ weight[k] @ input2 + bias[k]: (..., n), (..., m), weight (out, n, m) -> (..., out)."""

def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, reduce: Any = None, reduction: _builtins.str = 'mean', pos_weight: Tensor | None = None) -> Tensor:
    """-(p t log s(x) + (1 - t) log(1 - s(x))), s the sigmoid and p = pos_weight, in the form that does not overflow:"""

def channel_shuffle(input: Tensor, groups: _builtins.int) -> Tensor:
    """(batch, c, ...) with its channels, seen as (groups, c / groups), in the order (c / groups, groups) (Zhang et al. 2018)."""

def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _builtins.int | Sequence[_builtins.int] = 1, padding: _builtins.int | _builtins.str | Sequence[_builtins.int] = 0, dilation: _builtins.int | Sequence[_builtins.int] = 1, groups: _builtins.int = 1) -> Tensor:
    """Cross-correlation: input (batch, in, h, w), weight (out, in / groups, kh, kw), bias (out) -> (batch, out, h', w')."""

def cosine_similarity(x1: Tensor, x2: Tensor, dim: _builtins.int = 1, eps: _builtins.float = 1e-08) -> Tensor:
    """x1 . x2 / (max(|x1|, eps) max(|x2|, eps)) along dim, of inputs that broadcast."""

def cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, ignore_index: _builtins.int = -100, reduce: Any = None, reduction: _builtins.str = 'mean', label_smoothing: _builtins.float = 0.0) -> Tensor:
    """-log softmax(input)[target]: input (batch, classes, ...) and target (batch, ...) of class numbers, or of input's shape holding probabilities."""

def dropout(input: Tensor, p: _builtins.float = 0.5, training: _builtins.bool = True, inplace: _builtins.bool = False) -> Tensor:
    """Each element 0 with probability p, else x / (1 - p); the input itself when not training."""

def elu(input: Tensor, alpha: _builtins.float = 1.0, inplace: _builtins.bool = False) -> Tensor:
    """x where positive, else alpha * (exp(x) - 1) (Clevert et al. 2016)."""

def elu_(input: Tensor, alpha: _builtins.float = 1.0) -> Tensor:
    """elu written over the input."""

def embedding(input: Tensor, weight: Tensor, padding_idx: _builtins.int | None = None, max_norm: _builtins.float | None = None, norm_type: _builtins.float = 2.0, scale_grad_by_freq: _builtins.bool = False, sparse: _builtins.bool = False) -> Tensor:
    """Rows of weight (rows, features) picked by the integers in `input`; row padding_idx gets no gradient."""

def fold(input: Tensor, output_size: _builtins.int | Sequence[_builtins.int], kernel_size: _builtins.int | Sequence[_builtins.int], dilation: _builtins.int | Sequence[_builtins.int] = 1, padding: _builtins.int | Sequence[_builtins.int] = 0, stride: _builtins.int | Sequence[_builtins.int] = 1) -> Tensor:
    """Columns added up to images, each cell the sum over the windows that hold it: (batch, c * kh * kw, windows) -> (batch, c, *output_size)."""

def gelu(input: Tensor, approximate: _builtins.str = 'none') -> Tensor:
    """x * Phi(x), Phi the normal distribution; approximate="tanh" is the usual formula with tanh."""

def grid_sample(input: Tensor, grid: Tensor, mode: _builtins.str = 'bilinear', padding_mode: _builtins.str = 'zeros', align_corners: _builtins.bool | None = None) -> Tensor:
    """input (batch, c, h, w) at grid (batch, h', w', 2), or (batch, c, d, h, w) at (batch, d', h', w', 3): (batch, c, h', w') or with d'."""

def interpolate(input: Tensor, size: _builtins.int | Sequence[_builtins.int] | None = None, scale_factor: _builtins.float | Sequence[_builtins.float] | None = None, mode: _builtins.str = 'nearest', align_corners: _builtins.bool | None = None, recompute_scale_factor: _builtins.bool | None = None, antialias: _builtins.bool = False) -> Tensor:
    """The input (batch, channels, one to three axes) at another size, given as `size` or as a factor."""

def l1_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: _builtins.str = 'mean', weight: Tensor | None = None) -> Tensor:
    """|input - target|, both of one shape, times weight where it is given; "mean" divides by the weights' sum then."""

def layer_norm(input: Tensor, normalized_shape: _builtins.int | Sequence[_builtins.int], weight: Tensor | None = None, bias: Tensor | None = None, eps: _builtins.float = 1e-05) -> Tensor:
    """(x - mean) / sqrt(var + eps) * weight + bias over the trailing dimensions `normalized_shape`; var without Bessel's correction."""

def leaky_relu(input: Tensor, negative_slope: _builtins.float = 0.01, inplace: _builtins.bool = False) -> Tensor:
    """x where positive, else negative_slope * x."""

def leaky_relu_(input: Tensor, negative_slope: _builtins.float = 0.01) -> Tensor:
    """leaky_relu written over the input."""

def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input @ weight.T + bias`: input (..., in), weight (out, in), bias (out) -> (..., out); weight (in,), bias () -> (...)."""

def log_softmax(input: Tensor, dim: _builtins.int | None = None, _stacklevel: _builtins.int = 3, dtype: Any = None) -> Tensor:
    """log(softmax(x)) along dim, computed stably."""

def max_pool2d(input: Tensor, kernel_size: _builtins.int | Sequence[_builtins.int], stride: _builtins.int | Sequence[_builtins.int] | None = None, padding: _builtins.int | Sequence[_builtins.int] = 0, dilation: _builtins.int | Sequence[_builtins.int] = 1, ceil_mode: _builtins.bool = False, return_indices: _builtins.bool = False) -> Any:
    """Maximum of each window; stride defaults to the window. (batch, c, h, w) -> (batch, c, h', w'), and where each maximum stood if return_indices."""

def max_pool2d_with_indices(input: Tensor, kernel_size: _builtins.int | Sequence[_builtins.int], stride: _builtins.int | Sequence[_builtins.int] | None = None, padding: _builtins.int | Sequence[_builtins.int] = 0, dilation: _builtins.int | Sequence[_builtins.int] = 1, ceil_mode: _builtins.bool = False, return_indices: _builtins.bool = False) -> Any:
    """max_pool2d with return_indices=True."""

def mse_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: _builtins.str = 'mean', weight: Tensor | None = None) -> Tensor:
    """(input - target)^2, both of one shape, times weight where it is given; "mean" divides by the weights' sum then."""

def native_channel_shuffle(input: Tensor, groups: _builtins.int) -> Tensor:
    """channel_shuffle under the name of PyTorch's operator."""

def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, ignore_index: _builtins.int = -100, reduce: Any = None, reduction: _builtins.str = 'mean') -> Tensor:
    """-input[target]: input (batch, classes, ...) of log-probabilities, target (batch, ...) of class numbers."""

def normalize(input: Tensor, p: _builtins.float = 2.0, dim: _builtins.int = 1, eps: _builtins.float = 1e-12, out: Tensor | None = None) -> Tensor:
    """x / max(|x|_p, eps) along dim; written into `out` where it is given."""

def one_hot(tensor: Tensor, num_classes: _builtins.int = -1) -> Tensor:
    """int64 (..., num_classes), 1 at the class and 0 elsewhere; num_classes=-1 is one more than the largest class."""

def pad(input: Tensor, pad: Sequence[_builtins.int], mode: _builtins.str = 'constant', value: _builtins.float | None = None) -> Tensor:
    """Surround with more: pad is (left, right) of the last dimension, then of the one before it, and so on; negative cuts off."""

def pairwise_distance(x1: Tensor, x2: Tensor, p: _builtins.float = 2.0, eps: _builtins.float = 1e-06, keepdim: _builtins.bool = False) -> Tensor:
    """|x1 - x2 + eps|_p over the last dimension, of inputs that broadcast."""

def pdist(input: Tensor, p: _builtins.float = 2.0) -> Tensor:
    """p-norm distances of every pair of rows i < j of x (n, columns): (n (n - 1) / 2,), those of row 0 first. See `cdist`."""

def pixel_shuffle(input: Tensor, upscale_factor: _builtins.int) -> Tensor:
    """(..., c r^2, h, w) -> (..., c, h r, w r): r^2 channels become the r x r pixels of one (Shi et al. 2016)."""

def pixel_unshuffle(input: Tensor, downscale_factor: _builtins.int) -> Tensor:
    """(..., c, h r, w r) -> (..., c r^2, h, w): pixel_shuffle undone."""

def relu(input: Tensor, inplace: _builtins.bool = False) -> Tensor:
    """max(x, 0)."""

def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""

def silu(input: Tensor, inplace: _builtins.bool = False) -> Tensor:
    """x * sigmoid(x)."""

def softmax(input: Tensor, dim: _builtins.int | None = None, _stacklevel: _builtins.int = 3, dtype: Any = None) -> Tensor:
    """exp(x) / sum(exp(x)) along dim; the input is cast to dtype first where one is given."""

def softplus(input: Tensor, beta: _builtins.float = 1.0, threshold: _builtins.float = 20.0) -> Tensor:
    """log(1 + exp(beta x)) / beta, x itself where beta x is above `threshold`."""

def tanh(input: Tensor) -> Tensor:
    """Hyperbolic tangent."""

def unfold(input: Tensor, kernel_size: _builtins.int | Sequence[_builtins.int], dilation: _builtins.int | Sequence[_builtins.int] = 1, padding: _builtins.int | Sequence[_builtins.int] = 0, stride: _builtins.int | Sequence[_builtins.int] = 1) -> Tensor:
    """The windows of images as columns: (batch, c, h, w) -> (batch, c * kh * kw, windows), zeros where a window leaves the image (im2col)."""

def upsample(input: Tensor, size: _builtins.int | Sequence[_builtins.int] | None = None, scale_factor: _builtins.float | Sequence[_builtins.float] | None = None, mode: _builtins.str = 'nearest', align_corners: _builtins.bool | None = None) -> Tensor:
    """interpolate under its older name."""

def upsample_bilinear(input: Tensor, size: _builtins.int | Sequence[_builtins.int] | None = None, scale_factor: _builtins.float | Sequence[_builtins.float] | None = None) -> Tensor:
    """interpolate(mode="bilinear", align_corners=True) under its older name."""

def upsample_nearest(input: Tensor, size: _builtins.int | Sequence[_builtins.int] | None = None, scale_factor: _builtins.float | Sequence[_builtins.float] | None = None) -> Tensor:
    """interpolate(mode="nearest") under its older name."""
