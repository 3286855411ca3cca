# Written by `python -m tritensor.tools.stubs`; edit the functions themselves.
import builtins as _builtins
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tritensor.random import Generator
from tritensor.tensor.core import Tensor
from tritensor.tensor.size import Size

ArgumentError: Any

DTypeError: Any

ShapeError: Any

def _batched(name: _builtins.str, input: Tensor) -> tuple[Tensor, _builtins.bool]:
    """The input as (batch, channels, height, width), and whether it came without a batch."""

def _dropout(input: Tensor, p: _builtins.float = 0.5, train: _builtins.bool = True, *, generator: Generator | None = None) -> Tensor:
    """Zero each element with probability p and scale the others by 1 / (1 - p); x itself when not training or p is 0."""

def _implicit_dim(name: _builtins.str, ndim: _builtins.int) -> _builtins.int: ...

def _named_padding(x: Tensor, weight: Tensor, padding: _builtins.str, stride: tuple[_builtins.int, _builtins.int], dilation: tuple[_builtins.int, _builtins.int]) -> tuple[Tensor, tuple[_builtins.int, _builtins.int]]: ...

def _one_output(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor: ...

def _same_shape(name: _builtins.str, input: Tensor, target: Tensor) -> None: ...

def _stride(name: _builtins.str, stride: _builtins.int | Sequence[_builtins.int] | None, kernel: tuple[_builtins.int, _builtins.int]) -> tuple[_builtins.int, _builtins.int]:
    """The steps of a pooling's windows: None or an empty sequence lays them side by side."""

def _weighted(name: _builtins.str, loss: Tensor, weight: Tensor) -> Tensor: ...

def _written(input: Tensor, y: Tensor, inplace: _builtins.bool, name: _builtins.str) -> Tensor: ...

def as_dtype(x: Any) -> Any:
    """The DType meant by a DType, a numpy dtype or scalar type, a name, or Python's bool, int, float, complex."""

as_index: Any

def avg_pool2d(input: Tensor, kernel_size: _builtins.int | Sequence[_builtins.int], stride: _builtins.int | Sequence[_builtins.int] | None = None, padding: _builtins.int | Sequence[_builtins.int] = 0, ceil_mode: _builtins.bool = False, count_include_pad: _builtins.bool = True, divisor_override: _builtins.int | None = None) -> Tensor:
    """Mean of each window; stride defaults to the window. count_include_pad=False divides by the cells inside the input, divisor_override by a number."""

def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """y[k] = input1 @ weight[k] @ input2 + bias[k]: (..., n), (..., m), weight (out, n, m) -> (..., out)."""

def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, reduce: Any = None, reduction: _builtins.str = 'mean', pos_weight: Tensor | None = None) -> Tensor:
    """-(p t log s(x) + (1 - t) log(1 - s(x))), s the sigmoid and p = pos_weight, in the form that does not overflow:"""

def checked(f: Callable[..., Any], name: _builtins.str = '', quick: Callable[..., Any] | None = None) -> Any:
    """f behind the door: keywords in other spellings reach it, and arguments that do not fit are told so in one line."""

def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _builtins.int | Sequence[_builtins.int] = 1, padding: _builtins.int | _builtins.str | Sequence[_builtins.int] = 0, dilation: _builtins.int | Sequence[_builtins.int] = 1, groups: _builtins.int = 1) -> Tensor:
    """Cross-correlation: input (batch, in, h, w), weight (out, in / groups, kh, kw), bias (out) -> (batch, out, h', w')."""

def cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, ignore_index: _builtins.int = -100, reduce: Any = None, reduction: _builtins.str = 'mean', label_smoothing: _builtins.float = 0.0) -> Tensor:
    """-log softmax(input)[target]: input (batch, classes, ...) and target (batch, ...) of class numbers, or of input's shape holding probabilities."""

def dropout(input: Tensor, p: _builtins.float = 0.5, training: _builtins.bool = True, inplace: _builtins.bool = False) -> Tensor:
    """Each element 0 with probability p, else x / (1 - p); the input itself when not training."""

def elu(input: Tensor, alpha: _builtins.float = 1.0, inplace: _builtins.bool = False) -> Tensor:
    """x where positive, else alpha * (exp(x) - 1) (Clevert et al. 2016)."""

def embedding(input: Tensor, weight: Tensor, padding_idx: _builtins.int | None = None, max_norm: _builtins.float | None = None, norm_type: _builtins.float = 2.0, scale_grad_by_freq: _builtins.bool = False, sparse: _builtins.bool = False) -> Tensor:
    """Rows of weight (rows, features) picked by the integers in `input`; row padding_idx gets no gradient."""

def gelu(input: Tensor, approximate: _builtins.str = 'none') -> Tensor:
    """x * Phi(x), Phi the normal distribution; approximate="tanh" is the usual formula with tanh."""

int64: Any

def l1_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: _builtins.str = 'mean', weight: Tensor | None = None) -> Tensor:
    """|input - target|, both of one shape, times weight where it is given; "mean" divides by the weights' sum then."""

def layer_norm(input: Tensor, normalized_shape: _builtins.int | Sequence[_builtins.int], weight: Tensor | None = None, bias: Tensor | None = None, eps: _builtins.float = 1e-05) -> Tensor:
    """(x - mean) / sqrt(var + eps) * weight + bias over the trailing dimensions `normalized_shape`; var without Bessel's correction."""

def leaky_relu(input: Tensor, negative_slope: _builtins.float = 0.01, inplace: _builtins.bool = False) -> Tensor:
    """x where positive, else negative_slope * x."""

def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input @ weight.T + bias`: input (..., in), weight (out, in), bias (out) -> (..., out); weight (in,), bias () -> (...)."""

def log_softmax(input: Tensor, dim: _builtins.int | None = None, _stacklevel: _builtins.int = 3, dtype: Any = None) -> Tensor:
    """log(softmax(x)) along dim, computed stably."""

def max_pool2d(input: Tensor, kernel_size: _builtins.int | Sequence[_builtins.int], stride: _builtins.int | Sequence[_builtins.int] | None = None, padding: _builtins.int | Sequence[_builtins.int] = 0, dilation: _builtins.int | Sequence[_builtins.int] = 1, ceil_mode: _builtins.bool = False, return_indices: _builtins.bool = False) -> Any:
    """Maximum of each window; stride defaults to the window. (batch, c, h, w) -> (batch, c, h', w'), and where each maximum stood if return_indices."""

def mse_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: _builtins.str = 'mean', weight: Tensor | None = None) -> Tensor:
    """(input - target)^2, both of one shape, times weight where it is given; "mean" divides by the weights' sum then."""

def named(size_average: _builtins.bool | None, reduce: _builtins.bool | None, reduction: _builtins.str) -> _builtins.str:
    """The reduction meant by all three: the flags, which PyTorch has long deprecated, win where one is given."""

def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, ignore_index: _builtins.int = -100, reduce: Any = None, reduction: _builtins.str = 'mean') -> Tensor:
    """-input[target]: input (batch, classes, ...) of log-probabilities, target (batch, ...) of class numbers."""

def no_view(y: Tensor) -> Tensor:
    """A view of what nobody else has, as the tensor that owns its memory."""

def normal_dim(name: _builtins.str, dim: _builtins.int, ndim: _builtins.int) -> _builtins.int:
    """A dimension counted from the front; raises IndexError naming op, dim and range. A 0-d tensor has dims -1 and 0."""

def normalize(input: Tensor, p: _builtins.float = 2.0, dim: _builtins.int = 1, eps: _builtins.float = 1e-12, out: Tensor | None = None) -> Tensor:
    """x / max(|x|_p, eps) along dim; written into `out` where it is given."""

def one_hot(tensor: Tensor, num_classes: _builtins.int = -1) -> Tensor:
    """int64 (..., num_classes), 1 at the class and 0 elsewhere; num_classes=-1 is one more than the largest class."""

ops: Any

def overwrite(x: Tensor, value: Any, name: _builtins.str, since: _builtins.int | None = None) -> Tensor:
    """Make `value` (a tensor that broadcasts to x, or a number) the contents of x, in memory and in the graph."""

def pad(input: Tensor, pad: Sequence[_builtins.int], mode: _builtins.str = 'constant', value: _builtins.float | None = None) -> Tensor:
    """Surround with more: pad is (left, right) of the last dimension, then of the one before it, and so on; negative cuts off."""

def pair(name: _builtins.str, what: _builtins.str, value: _builtins.int | Sequence[_builtins.int]) -> tuple[_builtins.int, _builtins.int]:
    """(height, width) from one number or two."""

def pdist(input: Tensor, p: _builtins.float = 2.0) -> Tensor:
    """p-norm distances of every pair of rows i < j of x (n, columns): (n (n - 1) / 2,), those of row 0 first. See `cdist`."""

def reduced(name: _builtins.str, loss: Tensor, reduction: _builtins.str, weight: Tensor | None = None) -> Tensor:
    """A loss reduced: "none", "sum", or "mean", which divides by the weights' sum where there are weights."""

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

def told(f: Callable[..., Any], args: tuple[Any, ...], error: Any) -> Any:
    """The error for users instead of one that a call of f has led to; what f itself can say without the door of `checked`."""

def write_out(out: Tensor, value: Any, name: _builtins.str) -> Tensor:
    """Store a result in `out=`: resized with a warning when its shape differs. Raises GradError inside a graph."""
