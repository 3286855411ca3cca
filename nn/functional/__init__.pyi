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

def add_layer_norm(input: Tensor, residual: Tensor, normalized_shape: _builtins.int | Sequence[_builtins.int], weight: Tensor | None = None, bias: Tensor | None = None, eps: _builtins.float = 1e-05) -> tuple[Tensor, Tensor]:
    """`(layer_norm(total, normalized_shape, weight, bias, eps), total)` with `total = input + residual`, in one pass; so is its gradient."""

def add_rms_norm(input: Tensor, residual: Tensor, normalized_shape: _builtins.int | Sequence[_builtins.int], weight: Tensor | None = None, eps: _builtins.float | None = None) -> tuple[Tensor, Tensor]:
    """`(rms_norm(total, normalized_shape, weight, eps), total)` with `total = input + residual`, in one pass: see add_layer_norm. eps None: the type's own."""

def affine_grid(theta: Tensor, size: Sequence[_builtins.int], align_corners: _builtins.bool | None = None) -> Tensor:
    """Where an affine map takes the positions of an image of `size`, for grid_sample: theta (batch, 2, 3) or (batch, 3, 4), size (batch, c, h, w)"""

def alpha_dropout(input: Tensor, p: _builtins.float = 0.5, training: _builtins.bool = False, inplace: _builtins.bool = False) -> Tensor:
    """Dropout that keeps mean 0 and variance 1, to go with selu (Klambauer et al. 2017)."""

def avg_pool1d(input: Tensor, kernel_size: _builtins.int | Sequence[_builtins.int], stride: _builtins.int | Sequence[_builtins.int] | None = None, padding: _builtins.int | Sequence[_builtins.int] = 0, ceil_mode: _builtins.bool = False, count_include_pad: _builtins.bool = True) -> Tensor:
    """Mean of each window; stride defaults to the window. count_include_pad=False divides by the cells inside the input."""

def avg_pool2d(input: Tensor, kernel_size: _builtins.int | Sequence[_builtins.int], stride: _builtins.int | Sequence[_builtins.int] | None = None, padding: _builtins.int | Sequence[_builtins.int] = 0, ceil_mode: _builtins.bool = False, count_include_pad: _builtins.bool = True, divisor_override: _builtins.int | None = None) -> Tensor:
    """Mean of each window; stride defaults to the window. count_include_pad=False divides by the cells inside the input, divisor_override by a number."""

def avg_pool3d(input: Tensor, kernel_size: _builtins.int | Sequence[_builtins.int], stride: _builtins.int | Sequence[_builtins.int] | None = None, padding: _builtins.int | Sequence[_builtins.int] = 0, ceil_mode: _builtins.bool = False, count_include_pad: _builtins.bool = True, divisor_override: _builtins.int | None = None) -> Tensor:
    """Mean of each window; stride defaults to the window. count_include_pad=False divides by the cells inside the input, divisor_override by a number."""

def batch_norm(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None, bias: Tensor | None = None, training: _builtins.bool = False, momentum: _builtins.float = 0.1, eps: _builtins.float = 1e-05) -> Tensor:
    """(x - mean) / sqrt(var + eps) * weight + bias for each channel (dimension 1)."""

def batch_norm_activation(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor, bias: Tensor, residual: Tensor | None = None, training: _builtins.bool = False, momentum: _builtins.float = 0.1, eps: _builtins.float = 1e-05, *, activation: _builtins.str = 'relu') -> Tensor:
    """`activation(batch_norm(input, ...) + residual)` without what is between them in memory; its gradient takes it from input again."""

def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """y[k] = input1 @ weight[k] @ input2 + bias[k]: (..., n), (..., m), weight (out, n, m) -> (..., out)."""

def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, reduce: Any = None, reduction: _builtins.str = 'mean') -> Tensor:
    """-(t log x + (1 - t) log(1 - x)) of probabilities x, both of one shape, logarithms held above -100."""

def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, reduce: Any = None, reduction: _builtins.str = 'mean', pos_weight: Tensor | None = None) -> Tensor:
    """-(p t log s(x) + (1 - t) log(1 - s(x))), s the sigmoid and p = pos_weight, in the form that does not overflow:"""

def celu(input: Tensor, alpha: _builtins.float = 1.0, inplace: _builtins.bool = False) -> Tensor:
    """x where positive, else alpha (exp(x / alpha) - 1) (Barron 2017)."""

def channel_shuffle(input: Tensor, groups: _builtins.int) -> Tensor:
    """(batch, c, ...) with its channels, seen as (groups, c / groups), in the order (c / groups, groups) (Zhang et al. 2018)."""

def conv1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _builtins.int | Sequence[_builtins.int] = 1, padding: _builtins.int | _builtins.str | Sequence[_builtins.int] = 0, dilation: _builtins.int | Sequence[_builtins.int] = 1, groups: _builtins.int = 1) -> Tensor:
    """Cross-correlation: input (batch, in, w), weight (out, in / groups, kw), bias (out) -> (batch, out, w')."""

def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _builtins.int | Sequence[_builtins.int] = 1, padding: _builtins.int | _builtins.str | Sequence[_builtins.int] = 0, dilation: _builtins.int | Sequence[_builtins.int] = 1, groups: _builtins.int = 1) -> Tensor:
    """Cross-correlation: input (batch, in, h, w), weight (out, in / groups, kh, kw), bias (out) -> (batch, out, h', w')."""

def conv3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _builtins.int | Sequence[_builtins.int] = 1, padding: _builtins.int | _builtins.str | Sequence[_builtins.int] = 0, dilation: _builtins.int | Sequence[_builtins.int] = 1, groups: _builtins.int = 1) -> Tensor:
    """Cross-correlation: input (batch, in, d, h, w), weight (out, in / groups, kd, kh, kw), bias (out) -> (batch, out, d', h', w')."""

def conv_relu(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _builtins.int | Sequence[_builtins.int] = 1, padding: _builtins.int | _builtins.str | Sequence[_builtins.int] = 0, dilation: _builtins.int | Sequence[_builtins.int] = 1, groups: _builtins.int = 1) -> Tensor:
    """`relu(conv(input, weight, bias, ...))` in one kernel, over as many axes as weight (out, in / groups, *kernel) has: that of conv1d, conv2d, conv3d."""

def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: _builtins.int = 0) -> Tensor:
    """conv1d of sequences with the time first: input (time, batch, in), weight (kw, in, out), bias (out) -> (time', batch, out)."""

def conv_transpose1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _builtins.int | Sequence[_builtins.int] = 1, padding: _builtins.int | Sequence[_builtins.int] = 0, output_padding: _builtins.int | Sequence[_builtins.int] = 0, groups: _builtins.int = 1, dilation: _builtins.int | Sequence[_builtins.int] = 1) -> Tensor:
    """Each cell times a window of weights, added up: input (batch, in, w), weight (in, out / groups, kw), bias (out) -> (batch, out, w')."""

def conv_transpose2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _builtins.int | Sequence[_builtins.int] = 1, padding: _builtins.int | Sequence[_builtins.int] = 0, output_padding: _builtins.int | Sequence[_builtins.int] = 0, groups: _builtins.int = 1, dilation: _builtins.int | Sequence[_builtins.int] = 1) -> Tensor:
    """Each pixel times a window of weights, added up: input (batch, in, h, w), weight (in, out / groups, kh, kw), bias (out) -> (batch, out, h', w')."""

def conv_transpose3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _builtins.int | Sequence[_builtins.int] = 1, padding: _builtins.int | Sequence[_builtins.int] = 0, output_padding: _builtins.int | Sequence[_builtins.int] = 0, groups: _builtins.int = 1, dilation: _builtins.int | Sequence[_builtins.int] = 1) -> Tensor:
    """Each cell times a window of weights, added up: input (batch, in, d, h, w), weight (in, out / groups, kd, kh, kw) -> (batch, out, d', h', w')."""

def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: _builtins.float = 0, size_average: Any = None, reduce: Any = None, reduction: _builtins.str = 'mean') -> Tensor:
    """1 - cos(x1, x2) where the target is 1, max(0, cos - margin) where it is -1: inputs (batch, features) and target (batch,), or (features,) and ()."""

def cosine_similarity(x1: Tensor, x2: Tensor, dim: _builtins.int = 1, eps: _builtins.float = 1e-08) -> Tensor:
    """x1 . x2 / (max(|x1|, eps) max(|x2|, eps)) along dim, of inputs that broadcast."""

def cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, ignore_index: _builtins.int = -100, reduce: Any = None, reduction: _builtins.str = 'mean', label_smoothing: _builtins.float = 0.0) -> Tensor:
    """-log softmax(input)[target]: input (batch, classes, ...) and target (batch, ...) of class numbers, or of input's shape holding probabilities."""

def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: _builtins.int = 0, reduction: _builtins.str = 'mean', zero_infinity: _builtins.bool = False) -> Tensor:
    """-log of the probability of each target over all ways to place its labels among blanks in time (Graves et al. 2006)."""

def dropout(input: Tensor, p: _builtins.float = 0.5, training: _builtins.bool = True, inplace: _builtins.bool = False) -> Tensor:
    """Each element 0 with probability p, else x / (1 - p); the input itself when not training."""

def dropout1d(input: Tensor, p: _builtins.float = 0.5, training: _builtins.bool = True, inplace: _builtins.bool = False) -> Tensor:
    """dropout of whole channels of (batch, channels, length), or of (channels, length)."""

def dropout2d(input: Tensor, p: _builtins.float = 0.5, training: _builtins.bool = True, inplace: _builtins.bool = False) -> Tensor:
    """dropout of whole channels of (batch, channels, height, width). Of three dimensions the first two are batch and channels, as in PyTorch."""

def dropout3d(input: Tensor, p: _builtins.float = 0.5, training: _builtins.bool = True, inplace: _builtins.bool = False) -> Tensor:
    """dropout of whole channels of (batch, channels, depth, height, width), or of one without a batch."""

def elu(input: Tensor, alpha: _builtins.float = 1.0, inplace: _builtins.bool = False) -> Tensor:
    """x where positive, else alpha * (exp(x) - 1) (Clevert et al. 2016)."""

def elu_(input: Tensor, alpha: _builtins.float = 1.0) -> Tensor:
    """elu written over the input."""

def embedding(input: Tensor, weight: Tensor, padding_idx: _builtins.int | None = None, max_norm: _builtins.float | None = None, norm_type: _builtins.float = 2.0, scale_grad_by_freq: _builtins.bool = False, sparse: _builtins.bool = False) -> Tensor:
    """Rows of weight (rows, features) picked by the integers in `input`; row padding_idx gets no gradient."""

def embedding_bag(input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: _builtins.float | None = None, norm_type: _builtins.float = 2, scale_grad_by_freq: _builtins.bool = False, mode: _builtins.str = 'mean', sparse: _builtins.bool = False, per_sample_weights: Tensor | None = None, include_last_offset: _builtins.bool = False, padding_idx: _builtins.int | None = None) -> Tensor:
    """The sum, mean or maximum of the rows that each bag of indices names: (bags, features); an empty bag gives 0."""

def feature_alpha_dropout(input: Tensor, p: _builtins.float = 0.5, training: _builtins.bool = False, inplace: _builtins.bool = False) -> Tensor:
    """alpha_dropout of whole channels of (batch, channels, ...)."""

def fold(input: Tensor, output_size: _builtins.int | Sequence[_builtins.int], kernel_size: _builtins.int | Sequence[_builtins.int], dilation: _builtins.int | Sequence[_builtins.int] = 1, padding: _builtins.int | Sequence[_builtins.int] = 0, stride: _builtins.int | Sequence[_builtins.int] = 1) -> Tensor:
    """Columns added up to images, each cell the sum over the windows that hold it: (batch, c * kh * kw, windows) -> (batch, c, *output_size)."""

def fractional_max_pool2d(input: Tensor, kernel_size: _builtins.int | Sequence[_builtins.int], output_size: _builtins.int | Sequence[_builtins.int] | None = None, output_ratio: _builtins.float | Sequence[_builtins.float] | None = None, return_indices: _builtins.bool = False, _random_samples: Tensor | None = None) -> Any:
    """Maxima of windows at drawn steps, one step for each image and channel: (batch, c, h, w) -> (batch, c, *output_size), or output_ratio times h and w."""

def fractional_max_pool2d_with_indices(input: Tensor, kernel_size: _builtins.int | Sequence[_builtins.int], output_size: _builtins.int | Sequence[_builtins.int] | None = None, output_ratio: _builtins.float | Sequence[_builtins.float] | None = None, return_indices: _builtins.bool = False, _random_samples: Tensor | None = None) -> Any:
    """fractional_max_pool2d with return_indices=True."""

def fractional_max_pool3d(input: Tensor, kernel_size: _builtins.int | Sequence[_builtins.int], output_size: _builtins.int | Sequence[_builtins.int] | None = None, output_ratio: _builtins.float | Sequence[_builtins.float] | None = None, return_indices: _builtins.bool = False, _random_samples: Tensor | None = None) -> Any:
    """Maxima of windows at drawn steps, for each volume and channel: (batch, c, d, h, w) -> (batch, c, *output_size), as fractional_max_pool2d."""

def fractional_max_pool3d_with_indices(input: Tensor, kernel_size: _builtins.int | Sequence[_builtins.int], output_size: _builtins.int | Sequence[_builtins.int] | None = None, output_ratio: _builtins.float | Sequence[_builtins.float] | None = None, return_indices: _builtins.bool = False, _random_samples: Tensor | None = None) -> Any:
    """fractional_max_pool3d with return_indices=True."""

def gaussian_nll_loss(input: Tensor, target: Tensor, var: Tensor | _builtins.float, full: _builtins.bool = False, eps: _builtins.float = 1e-06, reduction: _builtins.str = 'mean') -> Tensor:
    """(log var + (input - target)^2 / var) / 2, var held above eps (which has no gradient); full adds log(2 pi) / 2."""

def gelu(input: Tensor, approximate: _builtins.str = 'none') -> Tensor:
    """x * Phi(x), Phi the normal distribution; approximate="tanh" is the usual formula with tanh."""

def glu(input: Tensor, dim: _builtins.int = -1) -> Tensor:
    """a sigmoid(b), a and b the halves of the input along dim (Dauphin et al. 2017)."""

def grid_sample(input: Tensor, grid: Tensor, mode: _builtins.str = 'bilinear', padding_mode: _builtins.str = 'zeros', align_corners: _builtins.bool | None = None) -> Tensor:
    """input (batch, c, h, w) at grid (batch, h', w', 2), or (batch, c, d, h, w) at (batch, d', h', w', 3): (batch, c, h', w') or with d'."""

def group_norm(input: Tensor, num_groups: _builtins.int, weight: Tensor | None = None, bias: Tensor | None = None, eps: _builtins.float = 1e-05) -> Tensor:
    """(x - mean) / sqrt(var + eps) * weight + bias, mean and variance those of each of num_groups groups of channels (Wu and He 2018)."""

def group_norm_activation(input: Tensor, num_groups: _builtins.int, weight: Tensor, bias: Tensor, eps: _builtins.float = 1e-05, *, activation: _builtins.str = 'silu') -> Tensor:
    """`activation(group_norm(input, num_groups, weight, bias, eps))` without what is between them in memory; its gradient takes it from input again."""

def grouped_mm(mat_a: Tensor, mat_b: Tensor, *, offs: Tensor | None = None, bias: Tensor | None = None, out_dtype: Any = None) -> Tensor:
    """Matrix products of groups, as of a mixture of experts: `offs` (groups,), int32, says where each group of a 2D operand ends."""

def gumbel_softmax(logits: Tensor, tau: _builtins.float = 1, hard: _builtins.bool = False, eps: _builtins.float = 1e-10, dim: _builtins.int = -1) -> Tensor:
    """softmax((logits + Gumbel noise) / tau): a relaxed draw of a class along dim; hard=True gives the one-hot draw with the relaxed one's gradient"""

def hardshrink(input: Tensor, lambd: _builtins.float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """0 where |x| <= lambd, as x's type holds it, else x."""

def hardsigmoid(input: Tensor, inplace: _builtins.bool = False) -> Tensor:
    """min(max(x + 3, 0), 6) / 6."""

def hardswish(input: Tensor, inplace: _builtins.bool = False) -> Tensor:
    """x min(max(x + 3, 0), 6) / 6 (Howard et al. 2019)."""

def hardtanh(input: Tensor, min_val: _builtins.float = -1.0, max_val: _builtins.float = 1.0, inplace: _builtins.bool = False) -> Tensor:
    """x held between min_val and max_val."""

def hardtanh_(input: Tensor, min_val: _builtins.float = -1.0, max_val: _builtins.float = 1.0) -> Tensor:
    """hardtanh written over the input."""

def hinge_embedding_loss(input: Tensor, target: Tensor, margin: _builtins.float = 1.0, size_average: Any = None, reduce: Any = None, reduction: _builtins.str = 'mean') -> Tensor:
    """x where the target is 1, max(0, margin - x) where it is -1."""

def huber_loss(input: Tensor, target: Tensor, reduction: _builtins.str = 'mean', delta: _builtins.float = 1.0, weight: Tensor | None = None) -> Tensor:
    """d^2 / 2 where d = |input - target| is at most delta, else delta (d - delta / 2), times weight where it is given; "mean" divides by the elements."""

def instance_norm(input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: Tensor | None = None, bias: Tensor | None = None, use_input_stats: _builtins.bool = True, momentum: _builtins.float = 0.1, eps: _builtins.float = 1e-05) -> Tensor:
    """batch_norm of each channel of each instance by itself (Ulyanov et al. 2016); the running statistics follow the instances' mean."""

def interpolate(input: Tensor, size: _builtins.int | Sequence[_builtins.int] | None = None, scale_factor: _builtins.float | Sequence[_builtins.float] | None = None, mode: _builtins.str = 'nearest', align_corners: _builtins.bool | None = None, recompute_scale_factor: _builtins.bool | None = None, antialias: _builtins.bool = False) -> Tensor:
    """The input (batch, channels, one to three axes) at another size, given as `size` or as a factor."""

def kl_div(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: _builtins.str = 'mean', log_target: _builtins.bool = False) -> Tensor:
    """t (log t - input), input a log-probability and t the target (log_target: its logarithm is given). "batchmean" divides the sum by the batch, which"""

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

def linear_activation(input: Tensor, weight: Tensor, bias: Tensor | None = None, residual: Tensor | None = None, *, activation: _builtins.str = 'none', scale: _builtins.float = 1.0) -> Tensor:
    """`activation(input @ weight.T + bias) * scale + residual` in one kernel, rounded once; PyTorch has it as functions one after the other."""

def linear_cross_entropy(input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None, weight: Tensor | None = None, reduction: _builtins.str = 'mean', ignore_index: _builtins.int | None = None, label_smoothing: _builtins.float = 0.0, options: Any = None) -> Tensor:
    """cross_entropy of linear(input, linear_weight, linear_bias): input (batch, features), linear_weight (classes, ..., features)."""

def local_response_norm(input: Tensor, size: _builtins.int, alpha: _builtins.float = 0.0001, beta: _builtins.float = 0.75, k: _builtins.float = 1.0) -> Tensor:
    """x / (k + alpha mean(x^2))^beta, the mean over the `size` channels around each (Krizhevsky et al. 2012)."""

def log_softmax(input: Tensor, dim: _builtins.int | None = None, _stacklevel: _builtins.int = 3, dtype: Any = None) -> Tensor:
    """log(softmax(x)) along dim, computed stably."""

def logsigmoid(input: Tensor) -> Tensor:
    """log(sigmoid(x)), without overflow."""

def lp_pool1d(input: Tensor, norm_type: _builtins.int | _builtins.float, kernel_size: _builtins.int, stride: _builtins.int | Sequence[_builtins.int] | None = None, ceil_mode: _builtins.bool = False) -> Tensor:
    """(sum of x^p)^(1/p) over each window, p = norm_type; the stride defaults to the window: (batch, c, w) -> (batch, c, w')."""

def lp_pool2d(input: Tensor, norm_type: _builtins.int | _builtins.float, kernel_size: _builtins.int | Sequence[_builtins.int], stride: _builtins.int | Sequence[_builtins.int] | None = None, ceil_mode: _builtins.bool = False) -> Tensor:
    """(sum of x^p)^(1/p) over each window, p = norm_type; the stride defaults to the window: (batch, c, h, w) -> (batch, c, h', w')."""

def lp_pool3d(input: Tensor, norm_type: _builtins.int | _builtins.float, kernel_size: _builtins.int | Sequence[_builtins.int], stride: _builtins.int | Sequence[_builtins.int] | None = None, ceil_mode: _builtins.bool = False) -> Tensor:
    """(sum of x^p)^(1/p) over each window, p = norm_type; the stride defaults to the window: (batch, c, d, h, w) -> (batch, c, d', h', w')."""

def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: _builtins.float = 0, size_average: Any = None, reduce: Any = None, reduction: _builtins.str = 'mean') -> Tensor:
    """max(0, margin - t (x1 - x2)): t = 1 wants the first the larger, -1 the second."""

def max_pool1d(input: Tensor, kernel_size: _builtins.int | Sequence[_builtins.int], stride: _builtins.int | Sequence[_builtins.int] | None = None, padding: _builtins.int | Sequence[_builtins.int] = 0, dilation: _builtins.int | Sequence[_builtins.int] = 1, ceil_mode: _builtins.bool = False, return_indices: _builtins.bool = False) -> Any:
    """Maximum of each window; stride defaults to the window. (batch, c, w) -> (batch, c, w'), and where each maximum stood if return_indices."""

def max_pool1d_with_indices(input: Tensor, kernel_size: _builtins.int | Sequence[_builtins.int], stride: _builtins.int | Sequence[_builtins.int] | None = None, padding: _builtins.int | Sequence[_builtins.int] = 0, dilation: _builtins.int | Sequence[_builtins.int] = 1, ceil_mode: _builtins.bool = False, return_indices: _builtins.bool = False) -> Any:
    """max_pool1d with return_indices=True."""

def max_pool2d(input: Tensor, kernel_size: _builtins.int | Sequence[_builtins.int], stride: _builtins.int | Sequence[_builtins.int] | None = None, padding: _builtins.int | Sequence[_builtins.int] = 0, dilation: _builtins.int | Sequence[_builtins.int] = 1, ceil_mode: _builtins.bool = False, return_indices: _builtins.bool = False) -> Any:
    """Maximum of each window; stride defaults to the window. (batch, c, h, w) -> (batch, c, h', w'), and where each maximum stood if return_indices."""

def max_pool2d_with_indices(input: Tensor, kernel_size: _builtins.int | Sequence[_builtins.int], stride: _builtins.int | Sequence[_builtins.int] | None = None, padding: _builtins.int | Sequence[_builtins.int] = 0, dilation: _builtins.int | Sequence[_builtins.int] = 1, ceil_mode: _builtins.bool = False, return_indices: _builtins.bool = False) -> Any:
    """max_pool2d with return_indices=True."""

def max_pool3d(input: Tensor, kernel_size: _builtins.int | Sequence[_builtins.int], stride: _builtins.int | Sequence[_builtins.int] | None = None, padding: _builtins.int | Sequence[_builtins.int] = 0, dilation: _builtins.int | Sequence[_builtins.int] = 1, ceil_mode: _builtins.bool = False, return_indices: _builtins.bool = False) -> Any:
    """Maximum of each window; stride defaults to the window. (batch, c, d, h, w) -> (batch, c, d', h', w'), and where each maximum stood if return_indices."""

def max_pool3d_with_indices(input: Tensor, kernel_size: _builtins.int | Sequence[_builtins.int], stride: _builtins.int | Sequence[_builtins.int] | None = None, padding: _builtins.int | Sequence[_builtins.int] = 0, dilation: _builtins.int | Sequence[_builtins.int] = 1, ceil_mode: _builtins.bool = False, return_indices: _builtins.bool = False) -> Any:
    """max_pool3d with return_indices=True."""

def max_unpool1d(input: Tensor, indices: Tensor, kernel_size: _builtins.int | Sequence[_builtins.int], stride: _builtins.int | Sequence[_builtins.int] | None = None, padding: _builtins.int | Sequence[_builtins.int] = 0, output_size: Sequence[_builtins.int] | None = None) -> Tensor:
    """Maxima back to the places that max_pool1d noted in `indices`, zeros elsewhere: (batch, c, w) -> (batch, c, w'), w' = (w - 1) stride + kernel_size"""

def max_unpool2d(input: Tensor, indices: Tensor, kernel_size: _builtins.int | Sequence[_builtins.int], stride: _builtins.int | Sequence[_builtins.int] | None = None, padding: _builtins.int | Sequence[_builtins.int] = 0, output_size: Sequence[_builtins.int] | None = None) -> Tensor:
    """Maxima back to the places that max_pool2d noted in `indices`, zeros elsewhere: (batch, c, h, w) -> (batch, c, h', w'), as max_unpool1d."""

def max_unpool3d(input: Tensor, indices: Tensor, kernel_size: _builtins.int | Sequence[_builtins.int], stride: _builtins.int | Sequence[_builtins.int] | None = None, padding: _builtins.int | Sequence[_builtins.int] = 0, output_size: Sequence[_builtins.int] | None = None) -> Tensor:
    """Maxima back to the places that max_pool3d noted in `indices`, zeros elsewhere: (batch, c, d, h, w) -> (batch, c, d', h', w'), as max_unpool1d."""

def mish(input: Tensor, inplace: _builtins.bool = False) -> Tensor:
    """x tanh(log(1 + exp(x))) (Misra 2019)."""

def mse_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: _builtins.str = 'mean', weight: Tensor | None = None) -> Tensor:
    """(input - target)^2, both of one shape, times weight where it is given; "mean" divides by the weights' sum then."""

def multi_head_attention_forward(query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: _builtins.int, num_heads: _builtins.int, in_proj_weight: Tensor | None, in_proj_bias: Tensor | None, bias_k: Tensor | None, bias_v: Tensor | None, add_zero_attn: _builtins.bool, dropout_p: _builtins.float, out_proj_weight: Tensor, out_proj_bias: Tensor | None, training: _builtins.bool = True, key_padding_mask: Tensor | None = None, need_weights: _builtins.bool = True, attn_mask: Tensor | None = None, use_separate_proj_weight: _builtins.bool = False, q_proj_weight: Tensor | None = None, k_proj_weight: Tensor | None = None, v_proj_weight: Tensor | None = None, static_k: Tensor | None = None, static_v: Tensor | None = None, average_attn_weights: _builtins.bool = True, is_causal: _builtins.bool = False) -> tuple[Tensor, Tensor | None]:
    """What nn.MultiheadAttention computes: (outputs (L, N, E), weights (N, L, S) or None) of query (L, N, E), key (S, N, Ek), value (S, N, Ev)."""

def multi_margin_loss(input: Tensor, target: Tensor, p: _builtins.int = 1, margin: _builtins.float = 1.0, weight: Tensor | None = None, size_average: Any = None, reduce: Any = None, reduction: _builtins.str = 'mean') -> Tensor:
    """sum over classes j but the target y of weight[y] max(0, margin - x[y] + x[j])^p, by the number of classes: input (batch, classes), target (batch)."""

def multilabel_margin_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: _builtins.str = 'mean') -> Tensor:
    """sum over targets y and classes i that are none of max(0, 1 - x[y] + x[i]), by the number of classes: input and target (batch, classes), a row of the"""

def multilabel_soft_margin_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, reduce: Any = None, reduction: _builtins.str = 'mean') -> Tensor:
    """binary_cross_entropy_with_logits of every class, its mean over the classes (the last dimension)."""

def native_channel_shuffle(input: Tensor, groups: _builtins.int) -> Tensor:
    """channel_shuffle under the name of PyTorch's operator."""

def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, ignore_index: _builtins.int = -100, reduce: Any = None, reduction: _builtins.str = 'mean') -> Tensor:
    """-input[target]: input (batch, classes, ...) of log-probabilities, target (batch, ...) of class numbers; "mean" divides by the targets' weights."""

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

def poisson_nll_loss(input: Tensor, target: Tensor, log_input: _builtins.bool = True, full: _builtins.bool = False, size_average: Any = None, eps: _builtins.float = 1e-08, reduce: Any = None, reduction: _builtins.str = 'mean') -> Tensor:
    """exp(x) - t x for counts t and x the logarithm of their mean; log_input=False: x - t log(x + eps). full adds Stirling's approximation of log t!,"""

def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x where positive, else weight x; weight holds one number, or one for each channel (dim 1 of x). Both of one type."""

def relu(input: Tensor, inplace: _builtins.bool = False) -> Tensor:
    """max(x, 0)."""

def relu6(input: Tensor, inplace: _builtins.bool = False) -> Tensor:
    """min(max(x, 0), 6)."""

def rms_norm(input: Tensor, normalized_shape: _builtins.int | Sequence[_builtins.int], weight: Tensor | None = None, eps: _builtins.float | None = None) -> Tensor:
    """x / sqrt(mean(x^2) + eps) * weight over the trailing dimensions `normalized_shape` (Zhang and Sennrich 2019). eps None: the type's own."""

def rrelu(input: Tensor, lower: _builtins.float = 0.125, upper: _builtins.float = 0.3333333333333333, training: _builtins.bool = False, inplace: _builtins.bool = False) -> Tensor:
    """x where positive, else a x: a is drawn from [lower, upper) for each element in training, else halfway between."""

def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: _builtins.float = 0.0, is_causal: _builtins.bool = False, scale: _builtins.float | None = None, enable_gqa: _builtins.bool = False) -> Tensor:
    """softmax(query @ key^T * scale + mask) @ value (Vaswani et al. 2017), scale 1 / sqrt(E) unless given."""

def selu(input: Tensor, inplace: _builtins.bool = False) -> Tensor:
    """1.0507 x where positive, else 1.7581 (exp(x) - 1): keeps mean 0 and variance 1 through layers (Klambauer et al. 2017)."""

def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""

def silu(input: Tensor, inplace: _builtins.bool = False) -> Tensor:
    """x * sigmoid(x)."""

def smooth_l1_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: _builtins.str = 'mean', beta: _builtins.float = 1.0) -> Tensor:
    """d^2 / (2 beta) where d = |input - target| is below beta, else d - beta / 2 (Girshick 2015); beta=0 is l1_loss."""

def soft_margin_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: _builtins.str = 'mean') -> Tensor:
    """log(1 + exp(-t x)), targets t of 1 and -1."""

def softmax(input: Tensor, dim: _builtins.int | None = None, _stacklevel: _builtins.int = 3, dtype: Any = None) -> Tensor:
    """exp(x) / sum(exp(x)) along dim; the input is cast to dtype first where one is given."""

def softmin(input: Tensor, dim: _builtins.int | None = None, _stacklevel: _builtins.int = 3, dtype: Any = None) -> Tensor:
    """softmax(-x) along dim."""

def softplus(input: Tensor, beta: _builtins.float = 1.0, threshold: _builtins.float = 20.0) -> Tensor:
    """log(1 + exp(beta x)) / beta, x itself where beta x is above `threshold`."""

def softshrink(input: Tensor, lambd: _builtins.float = 0.5) -> Tensor:
    """x - lambd above lambd, x + lambd below -lambd, else 0."""

def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|)."""

def tanh(input: Tensor) -> Tensor:
    """Hyperbolic tangent."""

def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)."""

def threshold(input: Tensor, threshold: _builtins.float, value: _builtins.float, inplace: _builtins.bool = False) -> Tensor:
    """x where it is above the threshold, else the value."""

def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: _builtins.float = 1.0, p: _builtins.float = 2, eps: _builtins.float = 1e-06, swap: _builtins.bool = False, size_average: Any = None, reduce: Any = None, reduction: _builtins.str = 'mean') -> Tensor:
    """max(0, margin + d(anchor, positive) - d(anchor, negative)), d = |a - b + eps|_p over the last dimension. swap: the positive stands for the anchor"""

def triplet_margin_with_distance_loss(anchor: Tensor, positive: Tensor, negative: Tensor, *, distance_function: Callable[[Tensor, Tensor], Tensor] | None = None, margin: _builtins.float = 1.0, swap: _builtins.bool = False, reduction: _builtins.str = 'mean') -> Tensor:
    """triplet_margin_loss by any distance function of two tensors; pairwise_distance where none is given."""

def unfold(input: Tensor, kernel_size: _builtins.int | Sequence[_builtins.int], dilation: _builtins.int | Sequence[_builtins.int] = 1, padding: _builtins.int | Sequence[_builtins.int] = 0, stride: _builtins.int | Sequence[_builtins.int] = 1) -> Tensor:
    """The windows of images as columns: (batch, c, h, w) -> (batch, c * kh * kw, windows), zeros where a window leaves the image (im2col)."""

def upsample(input: Tensor, size: _builtins.int | Sequence[_builtins.int] | None = None, scale_factor: _builtins.float | Sequence[_builtins.float] | None = None, mode: _builtins.str = 'nearest', align_corners: _builtins.bool | None = None) -> Tensor:
    """interpolate under its older name."""

def upsample_bilinear(input: Tensor, size: _builtins.int | Sequence[_builtins.int] | None = None, scale_factor: _builtins.float | Sequence[_builtins.float] | None = None) -> Tensor:
    """interpolate(mode="bilinear", align_corners=True) under its older name."""

def upsample_nearest(input: Tensor, size: _builtins.int | Sequence[_builtins.int] | None = None, scale_factor: _builtins.float | Sequence[_builtins.float] | None = None) -> Tensor:
    """interpolate(mode="nearest") under its older name."""
