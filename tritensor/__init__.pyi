# Written by `python -m tritensor.tools.stubs`; edit the functions themselves.
import builtins as _builtins
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tritensor.ground.dtypes import DType as _DType
from tritensor.ground.strides import MemoryFormat as _MemoryFormat
from math import e as e
from math import inf as inf
from math import nan as nan
from math import pi as pi
from tritensor import autograd as autograd
from tritensor import cuda as cuda
from tritensor import data as data
from tritensor import fft as fft
from tritensor import io as io
from tritensor import kernels as kernels
from tritensor import linalg as linalg
from tritensor import masked as masked
from tritensor import nn as nn
from tritensor import optim as optim
from tritensor import random as random
from tritensor import special as special
from tritensor import utils as utils
from tritensor.autograd import enable_grad as enable_grad
from tritensor.autograd import inference_mode as inference_mode
from tritensor.autograd import no_grad as no_grad
from tritensor.autograd import set_grad_enabled as set_grad_enabled
from tritensor.autograd.anomaly_mode import is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled
from tritensor.autograd.anomaly_mode import is_anomaly_enabled as is_anomaly_enabled
from tritensor.autograd.modes import is_grad_enabled as is_grad_enabled
from tritensor.autograd.modes import is_inference_mode_enabled as is_inference_mode_enabled
from tritensor.ground.device import device as device
from tritensor.ground.errors import ArgumentError as ArgumentError
from tritensor.ground.errors import CaptureError as CaptureError
from tritensor.ground.errors import CheckpointError as CheckpointError
from tritensor.ground.errors import DeviceError as DeviceError
from tritensor.ground.errors import DivisionByZeroError as DivisionByZeroError
from tritensor.ground.errors import DTypeError as DTypeError
from tritensor.ground.errors import EmptyError as EmptyError
from tritensor.ground.errors import GradError as GradError
from tritensor.ground.errors import LaunchError as LaunchError
from tritensor.ground.errors import LinAlgError as LinAlgError
from tritensor.ground.errors import MissingFileError as MissingFileError
from tritensor.ground.errors import NoDerivativeError as NoDerivativeError
from tritensor.ground.errors import NoValuesError as NoValuesError
from tritensor.ground.errors import NumberRangeError as NumberRangeError
from tritensor.ground.errors import OutOfMemoryError as OutOfMemoryError
from tritensor.ground.errors import OutOfRangeError as OutOfRangeError
from tritensor.ground.errors import RegistrationError as RegistrationError
from tritensor.ground.errors import ShapeError as ShapeError
from tritensor.ground.errors import TransformError as TransformError
from tritensor.ground.strides import channels_last as channels_last
from tritensor.ground.strides import channels_last_3d as channels_last_3d
from tritensor.ground.strides import contiguous_format as contiguous_format
from tritensor.ground.strides import contiguous_format as legacy_contiguous_format
from tritensor.ground.strides import preserve_format as preserve_format
from tritensor.io import load as load
from tritensor.io import save as save
from tritensor.ops.matmul_precision import get_float32_matmul_precision as get_float32_matmul_precision
from tritensor.ops.matmul_precision import set_float32_matmul_precision as set_float32_matmul_precision
from tritensor.ops.table import Op as Op
from tritensor.ops.table import Sample as Sample
from tritensor.ops.table import Spec as Spec
from tritensor.ops.table import Work as Work
from tritensor.ops.table import op as op
from tritensor.ops.table import ops as ops
from tritensor.random import Generator as Generator
from tritensor.random import default_generator as default_generator
from tritensor.random import get_rng_state as get_rng_state
from tritensor.random import initial_seed as initial_seed
from tritensor.random import manual_seed as manual_seed
from tritensor.random import seed as seed
from tritensor.random import set_rng_state as set_rng_state
from tritensor.tensor.core import Tensor as Tensor
from tritensor.tensor.functions.types.storages import TypedStorage as TypedStorage
from tritensor.tensor.functions.types.storages import UntypedStorage as UntypedStorage
from tritensor.tensor.printing import set_printoptions as set_printoptions
from tritensor.tensor.public_api.layout import layout as layout
from tritensor.tensor.public_api.layout import strided as strided
from tritensor.tensor.size import Size as Size
from tritensor.torch_compat.autocast import clear_autocast_cache as clear_autocast_cache
from tritensor.torch_compat.autocast import get_autocast_cpu_dtype as get_autocast_cpu_dtype
from tritensor.torch_compat.autocast import get_autocast_dtype as get_autocast_dtype
from tritensor.torch_compat.autocast import get_autocast_gpu_dtype as get_autocast_gpu_dtype
from tritensor.torch_compat.autocast import is_autocast_cache_enabled as is_autocast_cache_enabled
from tritensor.torch_compat.autocast import is_autocast_cpu_enabled as is_autocast_cpu_enabled
from tritensor.torch_compat.autocast import is_autocast_enabled as is_autocast_enabled
from tritensor.torch_compat.autocast import set_autocast_cache_enabled as set_autocast_cache_enabled
from tritensor.torch_compat.autocast import set_autocast_cpu_dtype as set_autocast_cpu_dtype
from tritensor.torch_compat.autocast import set_autocast_cpu_enabled as set_autocast_cpu_enabled
from tritensor.torch_compat.autocast import set_autocast_dtype as set_autocast_dtype
from tritensor.torch_compat.autocast import set_autocast_enabled as set_autocast_enabled
from tritensor.torch_compat.autocast import set_autocast_gpu_dtype as set_autocast_gpu_dtype
from tritensor.torch_compat.settings import are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled
from tritensor.torch_compat.settings import get_deterministic_debug_mode as get_deterministic_debug_mode
from tritensor.torch_compat.settings import get_device_module as get_device_module
from tritensor.torch_compat.settings import get_num_interop_threads as get_num_interop_threads
from tritensor.torch_compat.settings import get_num_threads as get_num_threads
from tritensor.torch_compat.settings import is_deterministic_algorithms_warn_only_enabled as is_deterministic_algorithms_warn_only_enabled
from tritensor.torch_compat.settings import is_vulkan_available as is_vulkan_available
from tritensor.torch_compat.settings import is_warn_always_enabled as is_warn_always_enabled
from tritensor.torch_compat.settings import set_deterministic_debug_mode as set_deterministic_debug_mode
from tritensor.torch_compat.settings import set_flush_denormal as set_flush_denormal
from tritensor.torch_compat.settings import set_num_interop_threads as set_num_interop_threads
from tritensor.torch_compat.settings import set_num_threads as set_num_threads
from tritensor.torch_compat.settings import set_warn_always as set_warn_always
from tritensor.torch_compat.settings import use_deterministic_algorithms as use_deterministic_algorithms
from tritensor.torch_compat.symbolic_sizes import sym_float as sym_float
from tritensor.torch_compat.symbolic_sizes import sym_int as sym_int
from tritensor.torch_compat.symbolic_sizes import sym_ite as sym_ite
from tritensor.torch_compat.symbolic_sizes import sym_max as sym_max
from tritensor.torch_compat.symbolic_sizes import sym_min as sym_min
from tritensor.torch_compat.symbolic_sizes import sym_not as sym_not
from tritensor.torch_compat.symbolic_sizes import sym_sqrt as sym_sqrt
from tritensor.torch_compat.symbolic_sizes import sym_sum as sym_sum
from tritensor import array_api as array_api
from tritensor import debug as debug
from tritensor import distributions as distributions
from tritensor import fft as fft
from tritensor import func as func
from tritensor import linalg as linalg
from tritensor import masked as masked
from tritensor import onnx as onnx
from tritensor import special as special
from tritensor import testing as testing
from tritensor import training as training

__version__: str
__all__: list[str]
newaxis: None
dtype = _DType
memory_format = _MemoryFormat
amp: Any
audio: Any
distributed: Any
hub: Any
models: Any
profiler: Any
signal: Any
tuning: Any
vision: Any
viz: Any
GradScaler: Any
accelerator: Any
autocast: Any
backends: Any
compiler: Any
jit: Any
multiprocessing: Any
types: Any
version: Any
from tritensor.compilation.compile import compile as compile
from tritensor.kernels.parts.elementwise import elementwise as elementwise
from tritensor.lazy_evaluation.modes import evaluate as evaluate
from tritensor.cuda.launch import launch as launch
from tritensor.lazy_evaluation.modes import lazy as lazy
from tritensor.kernels import parts as parts
from tritensor.kernels.parts.reduction import reduction as reduction
from tritensor.func import vmap as vmap
from tritensor.training import Trainer as Trainer
bfloat: dtype
bfloat16: dtype
bool: dtype
cdouble: dtype
cfloat: dtype
complex128: dtype
complex64: dtype
double: dtype
float: dtype
float16: dtype
float32: dtype
float64: dtype
float8_e4m3fn: dtype
float8_e5m2: dtype
half: dtype
int: dtype
int16: dtype
int32: dtype
int64: dtype
int8: dtype
long: dtype
short: dtype
uint16: dtype
uint32: dtype
uint64: dtype
uint8: dtype

def BFloat16Tensor(*data: Any, device: Any = None) -> Tensor:
    """Tensors of bfloat16."""

def BoolTensor(*data: Any, device: Any = None) -> Tensor:
    """Tensors of bool."""

def ByteTensor(*data: Any, device: Any = None) -> Tensor:
    """Tensors of uint8."""

def CharTensor(*data: Any, device: Any = None) -> Tensor:
    """Tensors of int8."""

def DoubleTensor(*data: Any, device: Any = None) -> Tensor:
    """Tensors of float64."""

def FloatTensor(*data: Any, device: Any = None) -> Tensor:
    """Tensors of float32."""

def HalfTensor(*data: Any, device: Any = None) -> Tensor:
    """Tensors of float16."""

def IntTensor(*data: Any, device: Any = None) -> Tensor:
    """Tensors of int32."""

def LongTensor(*data: Any, device: Any = None) -> Tensor:
    """Tensors of int64."""

def ShortTensor(*data: Any, device: Any = None) -> Tensor:
    """Tensors of int16."""

def _chunk_cat(tensors: Any, dim: _builtins.int, num_chunks: _builtins.int, *, out: Tensor | None = None) -> Tensor:
    """Each tensor filled up with zeros to `num_chunks` equal chunks along dim, a chunk's elements in a row, joined: (..., num_chunks, all chunks)."""

def _native_batch_norm_legit(input: Tensor, weight: Any, bias: Any, *args: Any) -> tuple[Tensor, Tensor, Tensor]:
    """native_batch_norm; also (input, weight, bias, training, momentum, eps), without running statistics."""

def _safe_softmax(input: Tensor, dim: _builtins.int, dtype: Any = None) -> Tensor:
    """softmax along dim, 0 where a whole row is -inf; `dtype`: cast x first."""

def _softmax_backward_data(grad_output: Tensor, output: Tensor, dim: _builtins.int, input_dtype: Any) -> Tensor:
    """The gradient of softmax by its input, y (g - sum g y) along dim, of its result y = output; in `input_dtype`."""

def _unsafe_masked_index(input: Tensor, mask: Tensor, indices: Any, fill: _builtins.float) -> Tensor:
    """x[indices] where mask is True, fill elsewhere, where indices may be out of range."""

def _unsafe_masked_index_put_accumulate(input: Tensor, mask: Tensor, indices: Any, values: Tensor) -> Tensor:
    """A copy of x with values added at indices where mask is True, where they may be out of range elsewhere."""

def abs(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The absolute value; its gradient at 0 is 0."""

def abs_(input: Tensor) -> Tensor:
    """The absolute value; its gradient at 0 is 0."""

def absolute(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The absolute value; its gradient at 0 is 0."""

def acos(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse cosine."""

def acos_(input: Tensor) -> Tensor:
    """The inverse cosine."""

def acosh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic cosine."""

def acosh_(input: Tensor) -> Tensor:
    """The inverse hyperbolic cosine."""

def adaptive_avg_pool1d(input: Tensor, output_size: _builtins.int | Sequence[_builtins.int]) -> Tensor:
    """Means over windows that divide each row evenly, output o of n over cells floor(o size / n) to ceil((o + 1) size / n): (batch, c, w) -> (batch, c, n)."""

def adaptive_max_pool1d(input: Tensor, output_size: _builtins.int | Sequence[_builtins.int]) -> tuple[Tensor, Tensor]:
    """nn.functional.adaptive_max_pool1d with its indices, always: (maxima, places)."""

def add(input: Tensor, other: Any, *, alpha: _builtins.float = 1, out: Tensor | None = None) -> Tensor:
    """x + alpha * other."""

def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: _builtins.float = 1, alpha: _builtins.float = 1, out: Tensor | None = None) -> Tensor:
    """beta * input + alpha * the sum over the batch of bmm(batch1, batch2), as one product: of rows of all matrices by columns of all."""

def addcdiv(input: Tensor, tensor1: Any, tensor2: Any, *, value: _builtins.float = 1, out: Tensor | None = None) -> Tensor:
    """x + value * tensor1 / tensor2."""

def addcmul(input: Tensor, tensor1: Any, tensor2: Any, *, value: _builtins.float = 1, out: Tensor | None = None) -> Tensor:
    """x + value * tensor1 * tensor2; of integers value is cut to a whole number."""

def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: _builtins.float = 1, alpha: _builtins.float = 1, out: Tensor | None = None) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2); input broadcasts to the product's shape. Of integers beta and alpha are cut to whole numbers."""

def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: _builtins.float = 1, alpha: _builtins.float = 1, out: Tensor | None = None) -> Tensor:
    """beta * input + alpha * (mat @ vec)."""

def addmv_(input: Tensor, mat: Tensor, vec: Tensor, *, beta: _builtins.float = 1, alpha: _builtins.float = 1) -> Tensor:
    """beta * input + alpha * (mat @ vec)."""

def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: _builtins.float = 1, alpha: _builtins.float = 1, out: Tensor | None = None) -> Tensor:
    """beta * input + alpha * outer(vec1, vec2); of bools (beta and input) or (alpha and vec1 and vec2). Raises DTypeError for fractions and integers."""

def adjoint(input: Tensor) -> Tensor:
    """The last two dimensions exchanged, complex numbers conjugated."""

def affine_grid_generator(theta: Tensor, size: Sequence[_builtins.int], align_corners: _builtins.bool) -> Tensor:
    """affine_grid under the name of PyTorch's operator."""

def alias_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy of x."""

def all(input: Tensor, dim: _builtins.int | Sequence[_builtins.int] | None = None, keepdim: _builtins.bool = False, *, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _builtins.bool | None = None, out: Tensor | None = None) -> Tensor:
    """Whether all elements over dims are not zero; True over none; over dim=() each element's own truth. uint8 stays uint8."""

def allclose(input: Tensor, other: Tensor, rtol: _builtins.float = 1e-05, atol: _builtins.float = 1e-08, equal_nan: _builtins.bool = False) -> _builtins.bool:
    """Whether all elements are close (see isclose)."""

def alpha_dropout(input: Tensor, p: _builtins.float, train: _builtins.bool) -> Tensor:
    """Dropout that keeps mean 0 and variance 1: what is dropped becomes selu's lowest value (Klambauer et al. 2017)."""

def alpha_dropout_(input: Tensor, p: _builtins.float, train: _builtins.bool) -> Tensor:
    """alpha_dropout written over x; x untouched when not training or p is 0."""

def amax(input: Tensor, dim: _builtins.int | Sequence[_builtins.int] | None = None, keepdim: _builtins.bool = False, *, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _builtins.bool | None = None, out: Tensor | None = None) -> Tensor:
    """Largest over dims; the gradient is shared evenly among equals. ShapeError over no elements."""

def amin(input: Tensor, dim: _builtins.int | Sequence[_builtins.int] | None = None, keepdim: _builtins.bool = False, *, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _builtins.bool | None = None, out: Tensor | None = None) -> Tensor:
    """Smallest over dims; the gradient is shared evenly among equals. ShapeError over no elements."""

def aminmax(input: Tensor, *, dim: _builtins.int | Sequence[_builtins.int] | None = None, keepdim: _builtins.bool = False, out: Tensor | None = None) -> Any:
    """(min, max): smallest and largest over dims; gradients as those of amin and amax."""

def angle(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The angle of complex numbers in (-pi, pi]; of real ones 0, pi below 0, NaN of NaN. The gradient of a real x is 0."""

def any(input: Tensor, dim: _builtins.int | Sequence[_builtins.int] | None = None, keepdim: _builtins.bool = False, *, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _builtins.bool | None = None, out: Tensor | None = None) -> Tensor:
    """Whether any element over dims is not zero (NaN is not); over dim=() each element's own truth. uint8 stays uint8."""

def arange(start: Any = 0, end: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None, out: Tensor | None = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """start, start + step, ... before end; `arange(n)` counts from 0. int64 for integers, else the default floating type."""

def arccos(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse cosine."""

def arccos_(input: Tensor) -> Tensor:
    """The inverse cosine."""

def arccosh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic cosine."""

def arccosh_(input: Tensor) -> Tensor:
    """The inverse hyperbolic cosine."""

def arcsin(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse sine."""

def arcsin_(input: Tensor) -> Tensor:
    """The inverse sine."""

def arcsinh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic sine."""

def arcsinh_(input: Tensor) -> Tensor:
    """The inverse hyperbolic sine."""

def arctan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse tangent."""

def arctan2(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The angle of the point (other, x), in (-pi, pi]."""

def arctan_(input: Tensor) -> Tensor:
    """The inverse tangent."""

def arctanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic tangent."""

def arctanh_(input: Tensor) -> Tensor:
    """The inverse hyperbolic tangent."""

def argmax(input: Tensor, dim: _builtins.int | None = None, keepdim: _builtins.bool = False, *, axis: _builtins.int | None = None, keepdims: _builtins.bool | None = None, out: Tensor | None = None) -> Tensor:
    """Index (int64) of the first largest along dim, or in the flattened tensor."""

def argmin(input: Tensor, dim: _builtins.int | None = None, keepdim: _builtins.bool = False, *, axis: _builtins.int | None = None, keepdims: _builtins.bool | None = None, out: Tensor | None = None) -> Tensor:
    """Index (int64) of the first smallest along dim, or in the flattened tensor."""

def argsort(input: Tensor, dim: _builtins.int = -1, descending: _builtins.bool = False, *, stable: _builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """The indices (int64) that sort x along dim; equal elements keep their order, whatever `stable` says."""

def argwhere(input: Tensor) -> Tensor:
    """Positions of the elements that are not 0: (count, ndim)."""

def as_strided(input: Tensor, size: Any, stride: Any, storage_offset: _builtins.int | None = None) -> Tensor:
    """A view of any shape and strides, in elements, on the whole memory of which x is a view."""

def as_strided_(input: Tensor, size: Any, stride: Any, storage_offset: _builtins.int | None = None) -> Tensor:
    """as_strided, in place: the memory stays, this tensor's window on it changes."""

def as_strided_copy(input: Tensor, size: Any, stride: Any, storage_offset: _builtins.int | None = None, *, out: Tensor | None = None) -> Tensor:
    """x.as_strided(size, stride, storage_offset) as a copy."""

def as_strided_scatter(input: Tensor, src: Tensor, size: Any, stride: Any, storage_offset: _builtins.int | None = None) -> Tensor:
    """A copy of x, of x's strides, in which src stands in the window x.as_strided(size, stride, storage_offset)."""

def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Data as a tensor, without a copy where it is a tensor, or a numpy array for the CPU, of the type asked for."""

def asarray(obj: Any, *, dtype: Any = None, device: Any = None, copy: _builtins.bool | None = None, requires_grad: _builtins.bool = False) -> Tensor:
    """Data as a tensor, without a copy where that can be."""

def asin(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse sine."""

def asin_(input: Tensor) -> Tensor:
    """The inverse sine."""

def asinh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic sine."""

def asinh_(input: Tensor) -> Tensor:
    """The inverse hyperbolic sine."""

def astype(input: Tensor, dtype: Any, copy: _builtins.bool = True) -> Tensor:
    """x as another dtype (the array API's name of `to`)."""

def atan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse tangent."""

def atan2(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The angle of the point (other, x), in (-pi, pi]."""

def atan_(input: Tensor) -> Tensor:
    """The inverse tangent."""

def atanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic tangent."""

def atanh_(input: Tensor) -> Tensor:
    """The inverse hyperbolic tangent."""

def atleast_1d(*tensors: Tensor) -> Any:
    """With at least one dimension; several tensors give a tuple."""

def atleast_2d(*tensors: Tensor) -> Any:
    """With at least two dimensions; several tensors give a tuple."""

def atleast_3d(*tensors: Tensor) -> Any:
    """With at least three dimensions; several tensors give a tuple."""

def avg_pool1d(input: Tensor, kernel_size: _builtins.int | Sequence[_builtins.int], stride: _builtins.int | Sequence[_builtins.int] | None = None, padding: _builtins.int | Sequence[_builtins.int] = 0, ceil_mode: _builtins.bool = False, count_include_pad: _builtins.bool = True) -> Tensor:
    """Mean of each window; stride defaults to the window. count_include_pad=False divides by the cells inside the input."""

def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: _builtins.float = 1, alpha: _builtins.float = 1, out: Tensor | None = None) -> Tensor:
    """beta * input + alpha * bmm(batch1, batch2)."""

def bartlett_window(window_length: _builtins.int, periodic: _builtins.bool = True, *, dtype: Any = None, device: Any = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """1 - |2k / N - 1|."""

def batch_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None, training: _builtins.bool, momentum: _builtins.float, eps: _builtins.float, cudnn_enabled: _builtins.bool) -> Tensor:
    """nn.functional.batch_norm, also of channels of one value; cudnn_enabled changes nothing."""

def batch_norm_backward_elemt(grad_out: Tensor, input: Tensor, mean: Tensor, invstd: Tensor, weight: Tensor | None, sum_dy: Tensor, sum_dy_xmu: Tensor, count: Tensor) -> Tensor:
    """The gradient of the input, of the sums of batch_norm_backward_reduce over all batches and the numbers of their elements."""

def batch_norm_backward_reduce(grad_out: Tensor, input: Tensor, mean: Tensor, invstd: Tensor, weight: Tensor | None, input_g: _builtins.bool, weight_g: _builtins.bool, bias_g: _builtins.bool) -> tuple[Any, Any, Any, Any]:
    """(sum g, sum g (x - mean), gradient of weight, gradient of bias) of each channel; None for what is not asked for."""

def batch_norm_elemt(input: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, invstd: Tensor, eps: _builtins.float, *, out: Tensor | None = None) -> Tensor:
    """(x - mean) invstd weight + bias for each channel; eps is in invstd already."""

def batch_norm_gather_stats(input: Tensor, mean: Tensor, invstd: Tensor, running_mean: Tensor | None, running_var: Tensor | None, momentum: _builtins.float, eps: _builtins.float, count: _builtins.int) -> Any:
    """batch_norm_gather_stats_with_counts of batches of `count` elements each."""

def batch_norm_gather_stats_with_counts(input: Tensor, mean: Tensor, invstd: Tensor, running_mean: Tensor | None, running_var: Tensor | None, momentum: _builtins.float, eps: _builtins.float, counts: Tensor) -> Any:
    """(mean, 1 / sqrt(var + eps)) of several batches together, of theirs (batches, channels) and their numbers of elements (batches,); the running ones"""

def batch_norm_stats(input: Tensor, eps: _builtins.float) -> Any:
    """(mean, 1 / sqrt(var + eps)) of each channel of (batch, channels, ...)."""

def batch_norm_update_stats(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, momentum: _builtins.float) -> Any:
    """(mean, var) of each channel, towards which the running ones move by momentum, the variance with Bessel's correction."""

def bernoulli(input: Tensor, p: _builtins.float | None = None, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor:
    """1 with probability x (or p, where it is given), else 0, for each element of x."""

def bernoulli_(input: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Overwrite x with 1 of probability p (a number or a tensor), else 0."""

def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """y[k] = input1 @ weight[k] @ input2 + bias[k]: (..., n), (..., m), weight (out, n, m) -> (..., out)."""

def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = None, pos_weight: Tensor | None = None, reduction: _builtins.int = 0) -> Tensor:
    """nn.functional.binary_cross_entropy_with_logits, the reduction as a number: 0 none, 1 the mean, 2 the sum. 0"""

def bincount(input: Tensor, weights: Tensor | None = None, minlength: _builtins.int = 0) -> Tensor:
    """How often each of 0, 1, ..., max(x) stands in a 1-d x of integers, int64; with `weights` their sums, in float32 if they are, else float64."""

def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """Successes among `count` trials of probability `prob` each, which broadcast, of their type. Waits for the device."""

def bitwise_and(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Bits set in both."""

def bitwise_invert(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Every bit flipped; `not` of booleans."""

def bitwise_left_shift(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Bits shifted up by other."""

def bitwise_not(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Every bit flipped; `not` of booleans."""

def bitwise_or(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Bits set in one or both."""

def bitwise_right_shift(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Bits shifted down by other."""

def bitwise_xor(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Bits set in one only."""

def blackman_window(window_length: _builtins.int, periodic: _builtins.bool = True, *, dtype: Any = None, device: Any = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """0.42 - cos(2 pi k / N) / 2 + 0.08 cos(4 pi k / N)."""

def block_diag(*tensors: Tensor) -> Tensor:
    """Matrices along the diagonal of one, zeros elsewhere, of the type they promote to; a vector counts as a row."""

def bmm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """(b, m, k) @ (b, k, n), one product for each of b, without broadcasting."""

def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that shapes broadcast to."""

def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """All tensors expanded to the shape they broadcast to."""

def broadcast_to(input: Tensor, *shape: Any) -> Tensor:
    """numpy's name for expand."""

def bucketize(input: Any, boundaries: Tensor, *, out_int32: _builtins.bool = False, right: _builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """The number of the bucket between ascending boundaries (a vector) that each element falls into; with `right` a boundary belongs to the upper one."""

def can_cast(from_: Any, to: Any) -> _builtins.bool:
    """Whether an in-place result of one type may be stored as another: the kind (bool, integer, floating, complex) must not fall."""

def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All ways to take one element of each vector, in the order of nested loops: (count, vectors). One vector is returned as it is."""

def cat(tensors: Any, dim: _builtins.int = 0, *, out: Tensor | None = None) -> Tensor:
    """Tensors joined along an existing dimension, in the type they promote to; empty ones of shape (0,) add no elements, as in PyTorch."""

def cdist(x1: Tensor, x2: Tensor, p: _builtins.float = 2.0, compute_mode: _builtins.str | None = 'use_mm_for_euclid_dist_if_necessary') -> Tensor:
    """p-norm distances (..., points, others) of points x1 (..., points, n) to others x2 (..., others, n); batches broadcast."""

def ceil(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The smallest whole number not below x. Integers come back copied. Raises DTypeError for complex numbers."""

def ceil_(input: Tensor) -> Tensor:
    """The smallest whole number not below x. Integers come back copied. Raises DTypeError for complex numbers."""

def celu(input: Tensor, alpha: _builtins.float = 1.0) -> Tensor:
    """x where positive, else alpha (exp(x / alpha) - 1) (Barron 2017)."""

def celu_(input: Tensor, alpha: _builtins.float = 1.0) -> Tensor:
    """x where positive, else alpha (exp(x / alpha) - 1) (Barron 2017)."""

def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """The product of several matrices, in the order that takes the fewest multiplications."""

def channel_shuffle(input: Tensor, groups: _builtins.int) -> Tensor:
    """(batch, c, ...) with its channels, seen as (groups, c / groups), in the order (c / groups, groups) (Zhang et al. 2018)."""

def cholesky(input: Tensor, upper: _builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
    """The Cholesky factor of positive definite matrices, the upper one if `upper`; see linalg.cholesky."""

def cholesky_inverse(L: Tensor, upper: _builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
    """The inverse of A from its Cholesky factor L (its upper one if `upper`). Raises LinAlgError where L has a 0 on its diagonal."""

def cholesky_solve(B: Tensor, L: Tensor, upper: _builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
    """X with A X = B, for the Cholesky factor L of A (its upper one if `upper`); batches broadcast."""

def chunk(input: Tensor, chunks: _builtins.int, dim: _builtins.int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` parts of equal size, the last smaller where they do not divide."""

def clamp(input: Tensor, min: Any | None = None, max: Any | None = None, *, out: Tensor | None = None) -> Tensor:
    """x, but at least min and at most max (tensors that broadcast, numbers, or None); max wins where min exceeds it."""

def clamp_(input: Tensor, min: Any | None = None, max: Any | None = None) -> Tensor:
    """x, but at least min and at most max (tensors that broadcast, numbers, or None); max wins where min exceeds it."""

def clamp_max(input: Tensor, max: Any, *, out: Tensor | None = None) -> Tensor:
    """x, but at most max."""

def clamp_max_(input: Tensor, max: Any) -> Tensor:
    """x, but at most max."""

def clamp_min(input: Tensor, min: Any, *, out: Tensor | None = None) -> Tensor:
    """x, but at least min."""

def clamp_min_(input: Tensor, min: Any) -> Tensor:
    """x, but at least min."""

def clip(input: Tensor, min: Any | None = None, max: Any | None = None, *, out: Tensor | None = None) -> Tensor:
    """x, but at least min and at most max (tensors that broadcast, numbers, or None); max wins where min exceeds it."""

def clip_(input: Tensor, min: Any | None = None, max: Any | None = None) -> Tensor:
    """x, but at least min and at most max (tensors that broadcast, numbers, or None); max wins where min exceeds it."""

def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy in fresh memory, in the graph; laid out as x is where x has no gaps, or in another memory format."""

def column_stack(tensors: Any, *, out: Tensor | None = None) -> Tensor:
    """Joined side by side, vectors as columns."""

def combinations(input: Tensor, r: _builtins.int = 2, with_replacement: _builtins.bool = False) -> Tensor:
    """All choices of r elements of a vector, as itertools.combinations orders them: (count, r)."""

def complex(real: Tensor, imag: Tensor, *, out: Tensor | None = None) -> Tensor:
    """real + i imag, of two tensors of float32, or of float64, that broadcast. Raises DTypeError for other types, and an `out` of another one."""

def concat(tensors: Any, dim: _builtins.int = 0, *, out: Tensor | None = None) -> Tensor:
    """Tensors joined along an existing dimension, in the type they promote to; empty ones of shape (0,) add no elements, as in PyTorch."""

def concatenate(tensors: Any, dim: _builtins.int = 0, *, out: Tensor | None = None) -> Tensor:
    """Tensors joined along an existing dimension, in the type they promote to; empty ones of shape (0,) add no elements, as in PyTorch."""

def conj(input: Tensor) -> Tensor:
    """The complex conjugate, computed at once (no lazy view, as PyTorch's is); a real x itself."""

def conj_physical(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The complex conjugate in memory of its own; a real x itself."""

def conj_physical_(input: Tensor) -> Tensor:
    """The complex conjugate in memory of its own; a real x itself."""

def constant_pad_nd(input: Tensor, pad: Sequence[_builtins.int], value: Any = 0) -> Tensor:
    """x with `value` around it: pad is (before, after) of the last dimension, then of the one before it, and so on; negative cuts off."""

def conv1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _builtins.int | Sequence[_builtins.int] = 1, padding: _builtins.int | _builtins.str | Sequence[_builtins.int] = 0, dilation: _builtins.int | Sequence[_builtins.int] = 1, groups: _builtins.int = 1) -> Tensor:
    """Cross-correlation: input (batch, in, w), weight (out, in / groups, kw), bias (out) -> (batch, out, w')."""

def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _builtins.int | Sequence[_builtins.int] = 1, padding: _builtins.int | _builtins.str | Sequence[_builtins.int] = 0, dilation: _builtins.int | Sequence[_builtins.int] = 1, groups: _builtins.int = 1) -> Tensor:
    """Cross-correlation: input (batch, in, h, w), weight (out, in / groups, kh, kw), bias (out) -> (batch, out, h', w')."""

def conv3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _builtins.int | Sequence[_builtins.int] = 1, padding: _builtins.int | _builtins.str | Sequence[_builtins.int] = 0, dilation: _builtins.int | Sequence[_builtins.int] = 1, groups: _builtins.int = 1) -> Tensor:
    """Cross-correlation: input (batch, in, d, h, w), weight (out, in / groups, kd, kh, kw), bias (out) -> (batch, out, d', h', w')."""

def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: _builtins.int = 0) -> Tensor:
    """conv1d of sequences with the time first: input (time, batch, in), weight (kw, in, out), bias (out) -> (time', batch, out)."""

def conv_transpose1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _builtins.int | Sequence[_builtins.int] = 1, padding: _builtins.int | Sequence[_builtins.int] = 0, output_padding: _builtins.int | Sequence[_builtins.int] = 0, groups: _builtins.int = 1, dilation: _builtins.int | Sequence[_builtins.int] = 1) -> Tensor:
    """Each cell times a window of weights, added up: input (batch, in, w), weight (in, out / groups, kw), bias (out) -> (batch, out, w')."""

def conv_transpose2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _builtins.int | Sequence[_builtins.int] = 1, padding: _builtins.int | Sequence[_builtins.int] = 0, output_padding: _builtins.int | Sequence[_builtins.int] = 0, groups: _builtins.int = 1, dilation: _builtins.int | Sequence[_builtins.int] = 1) -> Tensor:
    """Each pixel times a window of weights, added up: input (batch, in, h, w), weight (in, out / groups, kh, kw), bias (out) -> (batch, out, h', w')."""

def conv_transpose3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _builtins.int | Sequence[_builtins.int] = 1, padding: _builtins.int | Sequence[_builtins.int] = 0, output_padding: _builtins.int | Sequence[_builtins.int] = 0, groups: _builtins.int = 1, dilation: _builtins.int | Sequence[_builtins.int] = 1) -> Tensor:
    """Each cell times a window of weights, added up: input (batch, in, d, h, w), weight (in, out / groups, kd, kh, kw) -> (batch, out, d', h', w')."""

def convolution(input: Tensor, weight: Tensor, bias: Tensor | None, stride: Sequence[_builtins.int], padding: Sequence[_builtins.int], dilation: Sequence[_builtins.int], transposed: _builtins.bool, output_padding: Sequence[_builtins.int], groups: _builtins.int) -> Tensor:
    """conv1d, conv2d or conv3d, as weight has dimensions, or transposed the conv_transpose of as many."""

def copysign(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
    """|x| with the sign of other, also that of -0 and of NaN; integers give floats."""

def corrcoef(input: Tensor) -> Tensor:
    """Correlation coefficients (variables, variables) of x (variables, observations), in -1..1; NaN for a variable that does not vary."""

def cos(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The cosine of x in radians."""

def cos_(input: Tensor) -> Tensor:
    """The cosine of x in radians."""

def cosh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The hyperbolic cosine."""

def cosh_(input: Tensor) -> Tensor:
    """The hyperbolic cosine."""

def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: _builtins.float = 0.0, reduction: _builtins.int = 0) -> Tensor:
    """nn.functional.cosine_embedding_loss, the reduction as a number: 0 none, 1 the mean, 2 the sum."""

def cosine_similarity(x1: Tensor, x2: Tensor, dim: _builtins.int = 1, eps: _builtins.float = 1e-08) -> Tensor:
    """x1 . x2 / (max(|x1|, eps) max(|x2|, eps)) along dim, of inputs that broadcast."""

def count_nonzero(input: Tensor, dim: _builtins.int | Sequence[_builtins.int] | None = None, *, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _builtins.bool = False) -> Tensor:
    """How many elements over dims are not zero, int64."""

def cov(input: Tensor, *, correction: _builtins.int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Tensor:
    """Covariance matrix (variables, variables) of x (variables, observations); of one row of observations its variance."""

def cross(input: Tensor, other: Tensor, dim: _builtins.int | None = None, *, out: Tensor | None = None) -> Tensor:
    """The vector product along dim, which has size 3; without dim the first dimension of size 3. Batches broadcast."""

def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: _builtins.int = 0, reduction: _builtins.int = 0, zero_infinity: _builtins.bool = False) -> Tensor:
    """nn.functional.ctc_loss, the reduction as a number: 0 none, 1 the mean, 2 the sum."""

def cummax(input: Tensor, dim: _builtins.int | None = None, *, axis: _builtins.int | None = None, out: Tensor | None = None) -> Any:
    """(values, indices): the largest so far along dim, and where it stood last (int64). NaN counts as largest; the gradient goes to the index."""

def cummin(input: Tensor, dim: _builtins.int | None = None, *, axis: _builtins.int | None = None, out: Tensor | None = None) -> Any:
    """(values, indices): the smallest so far along dim, and where it stood last (int64). NaN counts as smallest; the gradient goes to the index."""

def cumprod(input: Tensor, dim: _builtins.int | None = None, *, dtype: Any = None, axis: _builtins.int | None = None, out: Tensor | None = None) -> Tensor:
    """Running product along dim (a 1-d tensor needs none); integers and bools in int64. The gradient is exact where elements are zero."""

def cumsum(input: Tensor, dim: _builtins.int | None = None, *, dtype: Any = None, axis: _builtins.int | None = None, out: Tensor | None = None) -> Tensor:
    """Running sum along dim (a 1-d tensor needs none); integers and bools in int64."""

def cumulative_prod(input: Tensor, dim: _builtins.int | None = None, *, dtype: Any = None, axis: _builtins.int | None = None, out: Tensor | None = None) -> Tensor:
    """Running product along dim (a 1-d tensor needs none); integers and bools in int64. The gradient is exact where elements are zero."""

def cumulative_sum(input: Tensor, dim: _builtins.int | None = None, *, dtype: Any = None, axis: _builtins.int | None = None, out: Tensor | None = None) -> Tensor:
    """Running sum along dim (a 1-d tensor needs none); integers and bools in int64."""

def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: _builtins.int = -1) -> Tensor:
    """The integral of y up to each sample but the first along dim, by the trapezoid rule (see `trapezoid`)."""

def deg2rad(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Degrees as radians."""

def deg2rad_(input: Tensor) -> Tensor:
    """Degrees as radians."""

def det(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Determinants of square matrices (..., n, n). Its gradient, the cofactors, exists for singular matrices too."""

def detach(input: Tensor) -> Tensor:
    """x.detach(): the same memory outside the graph."""

def detach_(input: Tensor) -> Tensor:
    """x.detach_(): x itself cut off its graph. Raises GradError for a view."""

def detach_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy of x, in the graph, as in PyTorch; x.detach().clone() is outside."""

def diag(input: Tensor, diagonal: _builtins.int = 0, *, out: Tensor | None = None) -> Tensor:
    """The diagonal of a matrix (a copy; `diagonal` gives a view), or the matrix with a vector on its diagonal."""

def diag_embed(input: Tensor, offset: _builtins.int = 0, dim1: _builtins.int = -2, dim2: _builtins.int = -1) -> Tensor:
    """Zeros with x's last dimension on the diagonal of dim1 and dim2."""

def diagflat(input: Tensor, offset: _builtins.int = 0) -> Tensor:
    """A matrix with x's elements, in C order, on a diagonal: `offset` above (positive) or below the main one."""

def diagonal(input: Tensor, offset: _builtins.int = 0, dim1: _builtins.int = 0, dim2: _builtins.int = 1) -> Tensor:
    """The diagonal of two dimensions as the last one; `offset` above (positive) or below the main one."""

def diagonal_copy(input: Tensor, offset: _builtins.int = 0, dim1: _builtins.int = 0, dim2: _builtins.int = 1, *, out: Tensor | None = None) -> Tensor:
    """x.diagonal(offset, dim1, dim2) as a copy."""

def diagonal_scatter(input: Tensor, src: Tensor, offset: _builtins.int = 0, dim1: _builtins.int = 0, dim2: _builtins.int = 1) -> Tensor:
    """A copy of x in which src stands on a diagonal of two dimensions."""

def diff(input: Tensor, n: _builtins.int = 1, dim: _builtins.int = -1, prepend: Tensor | None = None, append: Tensor | None = None, *, out: Tensor | None = None) -> Tensor:
    """The n-th difference along dim, x[i + 1] - x[i] taken n times, of x with what `prepend` and `append` put before and behind it."""

def digamma(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The derivative of lgamma; NaN at -1, -2, ..."""

def dist(input: Tensor, other: Tensor, p: _builtins.float = 2) -> Tensor:
    """The p-norm of x - other."""

def div(input: Tensor, other: Any, *, rounding_mode: _builtins.str | None = None, out: Tensor | None = None) -> Tensor:
    """x / other."""

def divide(input: Tensor, other: Any, *, rounding_mode: _builtins.str | None = None, out: Tensor | None = None) -> Tensor:
    """x / other."""

def dot(input: Tensor, tensor: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Sum of products of two vectors of one length, a 0-d tensor."""

def dropout(input: Tensor, p: _builtins.float = 0.5, train: _builtins.bool = True, *, generator: Generator | None = None) -> Tensor:
    """Zero each element with probability p and scale the others by 1 / (1 - p); x itself when not training or p is 0."""

def dropout_(input: Tensor, p: _builtins.float, train: _builtins.bool) -> Tensor:
    """dropout written over x; x untouched when not training or p is 0."""

def dsmm(input: Tensor, mat2: Tensor) -> Tensor:
    """mm, of matrices that PyTorch also takes as sparse ones: (m, k) @ (k, n)."""

def dsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Parts along dim 2."""

def dstack(tensors: Any, *, out: Tensor | None = None) -> Tensor:
    """Joined along dim 2, after vectors and matrices got one."""

def eig(input: Any, eigenvectors: _builtins.bool = False, *, e: Any = None, v: Any = None) -> Any:
    """Removed: linalg.eig gives complex (eigenvalues, eigenvectors). Raises RuntimeError."""

def einsum(equation: Any, *operands: Any) -> Tensor:
    """Sum of products in Einstein's notation: `einsum("bij,bjk->bik", x, y)`; "..." stands for broadcast dimensions."""

def embedding(weight: Tensor, indices: Tensor, padding_idx: _builtins.int = -1, scale_grad_by_freq: _builtins.bool = False, sparse: _builtins.bool = False) -> Tensor:
    """Rows of weight (rows, features) picked by integers: nn.functional.embedding with the table first. Row padding_idx gets no gradient, a"""

def embedding_bag(weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: _builtins.bool = False, mode: _builtins.int = 0, sparse: _builtins.bool = False, per_sample_weights: Tensor | None = None, include_last_offset: _builtins.bool = False, padding_idx: _builtins.int | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """nn.functional.embedding_bag with the table first and the mode as a number: 0 sum, 1 mean, 2 max."""

def embedding_renorm_(input: Tensor, indices: Tensor, max_norm: _builtins.float, norm_type: _builtins.float) -> Tensor:
    """Scale those rows of input (rows, features) that the indices name and whose norm_type-norm is above max_norm to that norm, in place."""

def empty(*size: Any, dtype: Any = None, device: Any = None, pin_memory: _builtins.bool = False, memory_format: Any = None, out: Tensor | None = None, layout: Any = None, requires_grad: _builtins.bool = False) -> Tensor:
    """Uninitialised memory of a shape, in C order or another memory format."""

def empty_like(input: Tensor, *, dtype: Any = None, device: Any = None, memory_format: Any = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """Uninitialised memory of x's shape, dtype, device and layout, or in a memory format."""

def empty_permuted(size: Any, physical_layout: Any, *, dtype: Any = None, device: Any = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """Uninitialised memory of a shape without gaps, its dimensions from the outermost in memory to the innermost as listed."""

def empty_strided(size: Any, stride: Any, *, dtype: Any = None, device: Any = None, pin_memory: _builtins.bool = False, layout: Any = None, requires_grad: _builtins.bool = False) -> Tensor:
    """Uninitialised memory of a shape and strides, in elements."""

def eq(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Whether x == other, element by element."""

def equal(input: Tensor, other: Tensor) -> _builtins.bool:
    """Whether both have the same shape and elements."""

def erf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The error function."""

def erf_(input: Tensor) -> Tensor:
    """The error function."""

def erfc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """1 - erf(x), accurate where erf is near 1."""

def erfc_(input: Tensor) -> Tensor:
    """1 - erf(x), accurate where erf is near 1."""

def erfinv(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of erf: infinite at 1 and -1, NaN beyond."""

def exp(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """e to the power x."""

def exp2(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """2 to the power x."""

def exp2_(input: Tensor) -> Tensor:
    """2 to the power x."""

def exp_(input: Tensor) -> Tensor:
    """e to the power x."""

def expand(input: Tensor, *size: Any, implicit: _builtins.bool = False) -> Tensor:
    """Dimensions of size 1 stretched, new ones put in front, without copying; -1 keeps a size. `implicit` changes nothing."""

def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """x.expand(other.shape)."""

def expand_copy(input: Tensor, size: Any, *, implicit: _builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """x.expand(size) as a copy. `implicit` changes nothing."""

def expand_dims(input: Tensor, dim: Any = 0) -> Tensor:
    """numpy's name for unsqueeze; several dims as a tuple."""

def expit(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """1 / (1 + exp(-x))."""

def expm1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """exp(x) - 1, accurate near 0."""

def expm1_(input: Tensor) -> Tensor:
    """exp(x) - 1, accurate near 0."""

def exponential_(input: Tensor, lambd: _builtins.float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Overwrite x with exponential numbers of rate lambd."""

def eye(n: _builtins.int, m: _builtins.int | None = None, *, dtype: Any = None, device: Any = None, out: Tensor | None = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """Ones on the diagonal of an (n, m) matrix; m is n where not given."""

def feature_alpha_dropout(input: Tensor, p: _builtins.float, train: _builtins.bool) -> Tensor:
    """alpha_dropout of whole channels of x (batch, channels, ...)."""

def feature_alpha_dropout_(input: Tensor, p: _builtins.float, train: _builtins.bool) -> Tensor:
    """feature_alpha_dropout written over x; x untouched when not training or p is 0."""

def feature_dropout(input: Tensor, p: _builtins.float, train: _builtins.bool) -> Tensor:
    """dropout of whole channels of x (batch, channels, ...)."""

def feature_dropout_(input: Tensor, p: _builtins.float, train: _builtins.bool) -> Tensor:
    """feature_dropout written over x; x untouched when not training or p is 0."""

def fill(input: Tensor, value: Any) -> Tensor:
    """A tensor of x's shape, dtype, device and layout with one value, a number or a 0-d tensor, everywhere."""

def fill_(input: Tensor, value: Any) -> Tensor:
    """Write one value, a number or a 0-d tensor, everywhere; returns x."""

def finfo(type: Any = None) -> None:
    """Limits of a floating type, without one of the default type: `bits`, `eps`, `max`, `min`, `tiny`, `smallest_normal`, `resolution`, `dtype`."""

def fix(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x without its fraction. Integers come back copied. Raises DTypeError for complex numbers."""

def fix_(input: Tensor) -> Tensor:
    """x without its fraction. Integers come back copied. Raises DTypeError for complex numbers."""

def flatten(input: Tensor, start_dim: _builtins.int = 0, end_dim: _builtins.int = -1) -> Tensor:
    """Dimensions start_dim to end_dim joined into one; copies only where strides need that."""

def flip(input: Tensor, *dims: Any) -> Tensor:
    """The elements in reverse order along dimensions: `x.flip(0, 1)`; a copy. None named: along all."""

def fliplr(input: Tensor) -> Tensor:
    """Columns in reverse order."""

def flipud(input: Tensor) -> Tensor:
    """Rows in reverse order."""

def float_power(input: Any, exponent: Any, *, out: Tensor | None = None) -> Tensor:
    """x to the power exponent in float64 (complex128 for complex numbers), whatever their types."""

def floor(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The largest whole number not above x. Integers come back copied. Raises DTypeError for complex numbers."""

def floor_(input: Tensor) -> Tensor:
    """The largest whole number not above x. Integers come back copied. Raises DTypeError for complex numbers."""

def floor_divide(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """floor(x / other) in x's type; integers on the CPU divided by 0 raise DivisionByZeroError, on a GPU nothing is said."""

def fmax(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The larger of x and other, the other one where one is NaN; at a tie the gradient is x's."""

def fmin(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The smaller of x and other, the other one where one is NaN; at a tie the gradient is x's."""

def fmod(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
    """x - trunc(x / other) * other: it has the sign of x."""

def frac(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x - trunc(x)."""

def frac_(input: Tensor) -> Tensor:
    """x - trunc(x)."""

def frexp(input: Tensor, *, out: Tensor | None = None) -> Any:
    """(mantissa, exponent) with x = mantissa * 2^exponent and 1/2 <= |mantissa| < 1; the exponent is int32. Raises DTypeError for integers."""

def frobenius_norm(input: Tensor, dim: _builtins.int | Sequence[_builtins.int], keepdim: _builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
    """The root of the sum of squares along one dim or two; along all for an empty tuple. linalg.matrix_norm and vector_norm are its newer names."""

def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: _builtins.bool | None = None) -> Tensor:
    """A tensor on the memory of anything that speaks DLPack, or of a capsule, on the CPU or a GPU; on `device`, or a copy, where one is asked for."""

def from_file(filename: Any, shared: _builtins.bool | None = None, size: _builtins.int | None = 0, *, dtype: Any = None, device: Any = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """A vector of `size` elements on a file mapped into memory. shared=True: writes reach the file, which is made or grows where it is too small;"""

def from_numpy(ndarray: Any) -> Tensor:
    """A tensor on the memory of a numpy array: writes are seen on both sides."""

def frombuffer(buffer: Any, *, dtype: Any, count: _builtins.int = -1, offset: _builtins.int = 0, requires_grad: _builtins.bool = False) -> Tensor:
    """A vector on the memory of anything with Python's buffer protocol; writes are seen on both sides."""

def full(size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, out: Tensor | None = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """One value in a shape; without dtype, bool, int64 or the default floating type as the value is."""

def full_like(input: Tensor, fill_value: Any, *, dtype: Any = None, device: Any = None, memory_format: Any = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """One value in x's shape, dtype, device and layout, or in a memory format."""

def gather(input: Tensor, dim: _builtins.int, index: Tensor, *, sparse_grad: _builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """y[.., i, ..] = x[.., index[.., i, ..], ..] along `dim`; y has index's shape. `sparse_grad` is accepted; gradients are dense."""

def gcd(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The greatest common divisor of integers; gcd(0, 0) is 0."""

def gcd_(input: Tensor, other: Tensor) -> Tensor:
    """The greatest common divisor of integers; gcd(0, 0) is 0."""

def ge(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Whether x >= other."""

def geqrf(input: Tensor, *, out: Tensor | None = None) -> Any:
    """(a, tau): QR as LAPACK keeps it, R on and above a's diagonal, the reflectors 1 - tau v v^H below it. A derivative raises NoDerivativeError."""

def ger(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """input[i] * vec2[j]: (n,), (m,) to (n, m)."""

def get_default_device() -> Any:
    """The device on which tensors are made where none is asked for."""

def get_default_dtype() -> Any:
    """The floating type of `tensor(1.5)` and `rand(3)`; float32 unless set_default_dtype changed it."""

def get_device(input: Tensor) -> _builtins.int:
    """The number of a tensor's GPU, -1 on the CPU."""

def gradient(input: Tensor, *, spacing: Any = 1, dim: Any = None, edge_order: _builtins.int = 1) -> tuple[Tensor, ...]:
    """Estimates of dx/dt along dims, a tensor of x's shape for each, from three neighbours (second order; at the edges of `edge_order`)."""

def greater(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Whether x > other."""

def greater_equal(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Whether x >= other."""

def grid_sampler(input: Tensor, grid: Tensor, interpolation_mode: _builtins.int, padding_mode: _builtins.int, align_corners: _builtins.bool) -> Tensor:
    """grid_sample with its modes by number: bilinear, nearest, bicubic; zeros, border, reflection."""

def grid_sampler_2d(input: Tensor, grid: Tensor, interpolation_mode: _builtins.int, padding_mode: _builtins.int, align_corners: _builtins.bool) -> Tensor:
    """grid_sampler of images (batch, c, h, w)."""

def grid_sampler_3d(input: Tensor, grid: Tensor, interpolation_mode: _builtins.int, padding_mode: _builtins.int, align_corners: _builtins.bool) -> Tensor:
    """grid_sampler of volumes (batch, c, d, h, w)."""

def group_norm(input: Tensor, num_groups: _builtins.int, weight: Tensor | None = None, bias: Tensor | None = None, eps: _builtins.float = 1e-05, cudnn_enabled: _builtins.bool = True) -> Tensor:
    """nn.functional.group_norm, also of groups of one value; cudnn_enabled changes nothing."""

def gru(input: Tensor, hx: Any, params: Any, has_biases: Any, num_layers: Any, dropout: Any, train: Any, bidirectional: Any, batch_first: Any = None) -> tuple[Tensor, Tensor]:
    """Gated recurrent units over all layers, as torch.gru: of a padded batch (input, hx, params, has_biases, num_layers, dropout, train, bidirectional,"""

def gru_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None) -> Tensor:
    """h after one step of a gated recurrent unit: input (batch, in), hx (batch, size), weights (3 size, in) and (3 size, size)."""

def gt(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Whether x > other."""

def hamming_window(window_length: _builtins.int, periodic: _builtins.bool = True, alpha: _builtins.float = 0.54, beta: _builtins.float = 0.46, *, dtype: Any = None, device: Any = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """alpha - beta cos(2 pi k / N)."""

def hann_window(window_length: _builtins.int, periodic: _builtins.bool = True, *, dtype: Any = None, device: Any = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """(1 - cos(2 pi k / N)) / 2; N is the length, or one less where the window is not periodic."""

def hardshrink(input: Tensor, lambd: _builtins.float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """0 where |x| <= lambd, as x's type holds it, else x."""

def hash_tensor(input: Tensor, dim: Any = (), *, keepdim: _builtins.bool = False, mode: _builtins.int = 0, out: Tensor | None = None) -> Tensor:
    """The exclusive or over dims of the elements' 64 bits, as uint64: of integers' own value, of floats as float64. All dims unless given."""

def heaviside(input: Tensor, values: Tensor, *, out: Tensor | None = None) -> Tensor:
    """0 below 0, `values` at 0, 1 above; constant in x. Raises DTypeError for two types, and for complex numbers."""

def hinge_embedding_loss(input: Tensor, target: Tensor, margin: _builtins.float = 1.0, reduction: _builtins.int = 0) -> Tensor:
    """nn.functional.hinge_embedding_loss, the reduction as a number: 0 none, 1 the mean, 2 the sum."""

def histc(input: Tensor, bins: _builtins.int = 100, min: _builtins.float = 0, max: _builtins.float = 0, *, out: Tensor | None = None) -> Tensor:
    """How many elements fall in each of so many bins of one width between min and max (if both are equal: of the elements), in x's type."""

def histogram(input: Tensor, bins: Any = 100, *, range: Sequence[_builtins.float] | None = None, weight: Tensor | None = None, density: _builtins.bool = False, out: Tensor | None = None) -> Any:
    """(hist, bin_edges): how many elements, or how much weight, fall between neighbouring edges, in x's type; the last bin is closed."""

def histogramdd(input: Tensor, bins: Any, range: Sequence[_builtins.float] | None = None, weight: Tensor | None = None, density: _builtins.bool = False) -> Any:
    """(hist, bin_edges) of points x (..., n) in n dimensions: how many points, or how much weight, fall in each cell of the grid."""

def hsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Parts along dim 1, along dim 0 of a vector."""

def hstack(tensors: Any, *, out: Tensor | None = None) -> Tensor:
    """Joined side by side: along dim 1, vectors along dim 0."""

def hypot(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """sqrt(x^2 + other^2), whose squares neither overflow nor vanish; inf where one is infinite, NaN beside it or not. Its gradient at the origin is 0."""

def i0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function I0."""

def i0_(input: Tensor) -> Tensor:
    """The modified Bessel function I0."""

def igamma(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The regularised lower incomplete gamma function P(x, other). Raises GradError for a gradient by x; there is that by other alone."""

def igammac(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The regularised upper incomplete gamma function 1 - P(x, other). Raises GradError for a gradient by x; there is that by other alone."""

def iinfo(type: Any) -> None:
    """Limits of an integer type: `bits`, `max`, `min`, `dtype`. Raises TypeError for other types."""

def imag(input: Tensor) -> Tensor:
    """The imaginary parts, a view. Raises DTypeError for real numbers, which have none to look at."""

def index_add(input: Tensor, dim: _builtins.int, index: Tensor, source: Tensor, *, alpha: _builtins.float = 1, out: Tensor | None = None) -> Tensor:
    """A copy of x with alpha * source's slices added at the indices of a dimension, in a fixed order; of integers alpha is cut to a whole number."""

def index_copy(input: Tensor, dim: _builtins.int, index: Tensor, source: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy of x with source's slices written at the indices of a dimension; of repeated indices the last one stays."""

def index_fill(input: Tensor, dim: _builtins.int, index: Tensor, value: Any) -> Tensor:
    """A copy of x with one value, a number or a 0-d tensor, written at the indices of a dimension; negative ones count from the end."""

def index_put(input: Tensor, indices: Any, values: Tensor, accumulate: _builtins.bool = False) -> Tensor:
    """A copy of x with values written, or added with `accumulate`, at a tuple of index tensors; None among them stands for a whole dimension."""

def index_put_(input: Tensor, indices: Any, values: Tensor, accumulate: _builtins.bool = False) -> Tensor:
    """A copy of x with values written, or added with `accumulate`, at a tuple of index tensors; None among them stands for a whole dimension."""

def index_reduce(input: Tensor, dim: _builtins.int, index: Tensor, source: Tensor, reduce: _builtins.str, *, include_self: _builtins.bool = True, out: Tensor | None = None) -> Tensor:
    """A copy of x in which the `reduce` of source's slices, and of x's own unless include_self is False, stands at the indices of a dimension."""

def index_select(input: Tensor, dim: _builtins.int, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The slices of a dimension that a vector of indices names. Raises IndexError for a negative index, too."""

def inner(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Sum of products over the last dimension of both; with a 0-d operand, their product."""

def instance_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None, use_input_stats: _builtins.bool, momentum: _builtins.float, eps: _builtins.float, cudnn_enabled: _builtins.bool) -> Tensor:
    """nn.functional.instance_norm, also of instances of one value; cudnn_enabled changes nothing."""

def inverse(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of square matrices, another name of linalg.inv. Raises LinAlgError where there is none."""

def is_complex(input: Tensor) -> _builtins.bool:
    """Whether a tensor's type is a complex one."""

def is_conj(input: Tensor) -> _builtins.bool:
    """Whether x is conjugated lazily: never, here."""

def is_distributed(input: Tensor) -> _builtins.bool:
    """False: a tensor is in one process."""

def is_floating_point(input: Tensor) -> _builtins.bool:
    """Whether a tensor's type is a floating one."""

def is_inference(input: Tensor) -> _builtins.bool:
    """False: a tensor made in inference_mode is an ordinary one."""

def is_neg(input: Tensor) -> _builtins.bool:
    """Whether x is negated lazily: never, here."""

def is_nonzero(input: Tensor) -> _builtins.bool:
    """Whether the one element of a tensor is not 0; waits for the device. Raises ShapeError for more or fewer elements."""

def is_same_size(input: Tensor, other: Tensor) -> _builtins.bool:
    """Whether two tensors have one shape."""

def is_signed(input: Tensor) -> _builtins.bool:
    """Whether a tensor's type holds negative numbers."""

def is_storage(obj: Any) -> _builtins.bool:
    """Whether obj is what a tensor's storage() or untyped_storage() gave."""

def is_tensor(x: _builtins.object) -> _builtins.bool:
    """Whether x is a Tensor."""

def isclose(input: Tensor, other: Tensor, rtol: _builtins.float = 1e-05, atol: _builtins.float = 1e-08, equal_nan: _builtins.bool = False) -> Tensor:
    """|x - other| <= atol + rtol * |other|, element by element; equal infinities are close, NaN to NaN only with `equal_nan`."""

def isfinite(input: Tensor) -> Tensor:
    """Whether x is neither infinite nor NaN."""

def isin(elements: Any, test_elements: Any, *, assume_unique: _builtins.bool = False, invert: _builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """Whether each element is among test_elements (one of the two may be a number); with `invert` whether it is not. NaN is in nothing."""

def isinf(input: Tensor) -> Tensor:
    """Whether x is infinite."""

def isnan(input: Tensor) -> Tensor:
    """Whether x is NaN."""

def isneginf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether x is -inf. Raises DTypeError for complex numbers."""

def isposinf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether x is inf. Raises DTypeError for complex numbers."""

def isreal(input: Tensor) -> Tensor:
    """Whether the imaginary part is 0: true of every number that is not complex."""

def istft(input: Tensor, n_fft: _builtins.int, hop_length: _builtins.int | None = None, win_length: _builtins.int | None = None, window: Tensor | None = None, center: _builtins.bool = True, normalized: _builtins.bool = False, onesided: _builtins.bool | None = None, length: _builtins.int | None = None, return_complex: _builtins.bool = False) -> Tensor:
    """The signal whose spectra are nearest, in the squared error, to those given: the inverse of `stft`, with the same arguments."""

def kaiser_window(window_length: _builtins.int, periodic: _builtins.bool = True, beta: _builtins.float = 12.0, *, dtype: Any = None, device: Any = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """I0(beta sqrt(1 - (2k / N - 1)^2)) / I0(beta)."""

def kl_div(input: Tensor, target: Tensor, reduction: _builtins.int = 0, *, log_target: _builtins.bool = False) -> Tensor:
    """nn.functional.kl_div, the reduction as a number: 0 none, 1 the mean over all elements, 2 the sum."""

def kron(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Kronecker product: each element of x times all of other, laid side by side. Dimensions count from the last."""

def kthvalue(input: Tensor, k: _builtins.int, dim: _builtins.int = -1, keepdim: _builtins.bool = False, *, out: Tensor | None = None) -> Any:
    """(value, index) of the k-th smallest element along dim, k from 1; of equal elements in the order of their places."""

def layer_norm(input: Tensor, normalized_shape: Sequence[_builtins.int], weight: Tensor | None = None, bias: Tensor | None = None, eps: _builtins.float = 1e-05, cudnn_enable: _builtins.bool = True) -> Tensor:
    """nn.functional.layer_norm; cudnn_enable changes nothing."""

def lcm(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The least common multiple of integers, 0 where one of them is 0."""

def lcm_(input: Tensor, other: Tensor) -> Tensor:
    """The least common multiple of integers, 0 where one of them is 0."""

def ldexp(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x * 2^other in the type of both, integers as floating; of a large other in steps that do not overflow before the result does."""

def ldexp_(input: Tensor, other: Tensor) -> Tensor:
    """x * 2^other in the type of both, integers as floating; of a large other in steps that do not overflow before the result does."""

def le(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Whether x <= other."""

def lerp(input: Tensor, end: Any, weight: Any, *, out: Tensor | None = None) -> Tensor:
    """x + weight * (end - x), from the nearer end: exactly x where weight is 0 and end where it is 1."""

def less(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Whether x < other."""

def less_equal(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Whether x <= other."""

def lgamma(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """log |gamma(x)|, infinite at 0, -1, -2, ..."""

def linspace(start: Any, end: Any, steps: _builtins.int, *, dtype: Any = None, device: Any = None, out: Tensor | None = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """`steps` numbers from start to end, both included; numbers or 0-d tensors, which a type of integers truncates first."""

def lobpcg(A: Tensor, k: _builtins.int | None = None, B: Tensor | None = None, X: Tensor | None = None, n: _builtins.int | None = None, iK: Tensor | None = None, niter: _builtins.int | None = None, tol: _builtins.float | None = None, largest: _builtins.bool | None = None, method: _builtins.str | None = None, tracker: Any = None, ortho_iparams: Any = None, ortho_fparams: Any = None, ortho_bparams: Any = None) -> tuple[Tensor, Tensor]:
    """(E, X): the k largest (or smallest) eigenvalues of symmetric matrices A (..., m, m), E (..., k), and their vectors, the columns of X (..., m, k)."""

def log(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The natural logarithm; NaN below 0."""

def log10(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm to base 10."""

def log10_(input: Tensor) -> Tensor:
    """The logarithm to base 10."""

def log1p(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """log(1 + x), accurate near 0."""

def log1p_(input: Tensor) -> Tensor:
    """log(1 + x), accurate near 0."""

def log2(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm to base 2."""

def log2_(input: Tensor) -> Tensor:
    """The logarithm to base 2."""

def log_(input: Tensor) -> Tensor:
    """The natural logarithm; NaN below 0."""

def log_softmax(input: Tensor, dim: _builtins.int | None = None, dtype: Any = None, *, axis: _builtins.int | None = None, out: Tensor | None = None) -> Tensor:
    """x - log sum e^x along dim; `dtype`: cast x first."""

def logaddexp(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """log(exp(x) + exp(other)) without overflow. Between two equal infinities its gradient is NaN."""

def logaddexp2(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """log2(2^x + 2^other) without overflow."""

def logcumsumexp(input: Tensor, dim: _builtins.int | None = None, *, axis: _builtins.int | None = None, out: Tensor | None = None) -> Tensor:
    """log of the running sum of e^x along dim, from the largest so far down, so that nothing overflows. DTypeError for types that are not floating."""

def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant: NaN where a real one is negative, -inf where it is 0."""

def logical_and(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether neither is 0."""

def logical_not(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether x is 0."""

def logical_or(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether one of them is not 0."""

def logical_xor(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether exactly one of them is 0."""

def logit(input: Tensor, eps: _builtins.float | None = None, *, out: Tensor | None = None) -> Tensor:
    """log(x / (1 - x)), NaN outside [0, 1] as is its gradient; x first clamped to [eps, 1 - eps] where eps is given."""

def logit_(input: Tensor, eps: _builtins.float | None = None) -> Tensor:
    """log(x / (1 - x)), NaN outside [0, 1] as is its gradient; x first clamped to [eps, 1 - eps] where eps is given."""

def logspace(start: Any, end: Any, steps: _builtins.int, base: _builtins.float = 10.0, *, dtype: Any = None, device: Any = None, out: Tensor | None = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """base ** linspace(start, end, steps), computed on the host; ends as in linspace."""

def logsumexp(input: Tensor, dim: _builtins.int | Sequence[_builtins.int] | None = None, keepdim: _builtins.bool = False, *, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _builtins.bool | None = None, out: Tensor | None = None) -> Tensor:
    """log sum e^x over dims, from the largest element down, so that nothing overflows; -inf over no elements."""

def lstm(input: Tensor, hx: Any, params: Any, has_biases: Any, num_layers: Any, dropout: Any, train: Any, bidirectional: Any, batch_first: Any = None) -> tuple[Tensor, Tensor, Tensor]:
    """Long short-term memory over all layers, as torch.lstm: of a padded batch (input, hx, params, has_biases, num_layers, dropout, train, bidirectional,"""

def lstm_cell(input: Tensor, hx: Any, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """(h, c) after one step of long short-term memory: input (batch, in), hx = (h, c), each (batch, size), weights (4 size, in) and (4 size, size)."""

def lstsq(input: Any, A: Any, *, out: Any = None) -> Any:
    """Removed: linalg.lstsq, whose arguments go the other way round. Raises RuntimeError."""

def lt(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Whether x < other."""

def lu(input: Tensor, pivot: _builtins.bool = True, get_infos: _builtins.bool = False, *, out: Tensor | None = None) -> tuple[Tensor, ...]:
    """(LU, pivots), or with info if `get_infos`; see linalg.lu_factor_ex."""

def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Tensor | None = None) -> Tensor:
    """X with A X = b, A given by its LU; see linalg.lu_solve."""

def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: _builtins.bool = True, unpack_pivots: _builtins.bool = True, *, out: Tensor | None = None) -> Any:
    """(P, L, U) of what lu_factor gave; empty tensors for those that are not unpacked."""

def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: _builtins.float = 0.0, reduction: _builtins.int = 0) -> Tensor:
    """nn.functional.margin_ranking_loss, the reduction as a number: 0 none, 1 the mean, 2 the sum."""

def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """x with `value`, a number or 0-d tensor, where mask is True; the number becomes one of x's type. The result is contiguous."""

def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """x with its elements where mask is True replaced by the first elements of source, in order; x and mask broadcast to each other."""

def masked_select(input: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements where mask (which broadcasts with x) is True, as a vector. Waits for the device."""

def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Matrix product with numpy's rules: (..., m, k) @ (..., k, n), batches broadcast, a 1-d operand is a row or a column."""

def matrix_exp(input: Tensor) -> Tensor:
    """The exponential 1 + x + x^2 / 2 + ... of square matrices (..., n, n), by scaling and squaring (Higham 2005)."""

def matrix_power(input: Tensor, n: _builtins.int, *, out: Tensor | None = None) -> Tensor:
    """x to the power of an int: the identity for 0, powers of the inverse below, by repeated squaring. Raises LinAlgError for a singular x and n < 0."""

def matrix_rank(input: Any, tol: _builtins.float | None = None, symmetric: _builtins.bool = False, *, out: Any = None) -> Any:
    """Removed: linalg.matrix_rank, whose tol is relative or absolute by name. Raises RuntimeError."""

def matrix_transpose(input: Tensor) -> Tensor:
    """The last two dimensions exchanged."""

def max(input: Tensor, dim: Any = None, keepdim: _builtins.bool = False, *, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _builtins.bool | None = None, other: Tensor | None = None, out: Tensor | None = None) -> Any:
    """max(x): the largest element. max(x, dim): (values, indices). max(x, other): the larger of each pair."""

def max_pool1d(input: Tensor, kernel_size: _builtins.int | Sequence[_builtins.int], stride: _builtins.int | Sequence[_builtins.int] = (), padding: _builtins.int | Sequence[_builtins.int] = 0, dilation: _builtins.int | Sequence[_builtins.int] = 1, ceil_mode: _builtins.bool = False) -> Tensor:
    """nn.functional.max_pool1d without its indices."""

def max_pool1d_with_indices(input: Tensor, kernel_size: _builtins.int | Sequence[_builtins.int], stride: _builtins.int | Sequence[_builtins.int] = (), padding: _builtins.int | Sequence[_builtins.int] = 0, dilation: _builtins.int | Sequence[_builtins.int] = 1, ceil_mode: _builtins.bool = False) -> tuple[Tensor, Tensor]:
    """nn.functional.max_pool1d with its indices, always: (maxima, places)."""

def max_pool2d(input: Tensor, kernel_size: _builtins.int | Sequence[_builtins.int], stride: _builtins.int | Sequence[_builtins.int] = (), padding: _builtins.int | Sequence[_builtins.int] = 0, dilation: _builtins.int | Sequence[_builtins.int] = 1, ceil_mode: _builtins.bool = False) -> Tensor:
    """nn.functional.max_pool2d without its indices."""

def max_pool3d(input: Tensor, kernel_size: _builtins.int | Sequence[_builtins.int], stride: _builtins.int | Sequence[_builtins.int] = (), padding: _builtins.int | Sequence[_builtins.int] = 0, dilation: _builtins.int | Sequence[_builtins.int] = 1, ceil_mode: _builtins.bool = False) -> Tensor:
    """nn.functional.max_pool3d without its indices."""

def maximum(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The larger of x and other, NaN where either is; at a tie each gets half of the gradient."""

def mean(input: Tensor, dim: _builtins.int | Sequence[_builtins.int] | None = None, keepdim: _builtins.bool = False, *, dtype: Any = None, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _builtins.bool | None = None, out: Tensor | None = None) -> Tensor:
    """Mean over dims, of floating types (DTypeError for others; cast them or give dtype). NaN over no elements."""

def median(input: Tensor, dim: _builtins.int | None = None, keepdim: _builtins.bool = False, *, out: Tensor | None = None) -> Any:
    """median(x): the middle element, the lower one of two; its gradient is shared evenly among equals. median(x, dim): (value, index)."""

def meshgrid(*tensors: Tensor, indexing: _builtins.str = 'ij') -> tuple[Tensor, ...]:
    """Coordinates of the grid that vectors span, as views; indexing "ij" (matrix) or "xy" (Cartesian)."""

def min(input: Tensor, dim: Any = None, keepdim: _builtins.bool = False, *, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _builtins.bool | None = None, other: Tensor | None = None, out: Tensor | None = None) -> Any:
    """min(x): the smallest element. min(x, dim): (values, indices). min(x, other): the smaller of each pair. NaN counts as smallest."""

def minimum(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The smaller of x and other, NaN where either is; at a tie each gets half of the gradient."""

def mm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """(m, k) @ (k, n), without broadcasting."""

def mode(input: Tensor, dim: _builtins.int = -1, keepdim: _builtins.bool = False, *, out: Tensor | None = None) -> Any:
    """(value, index) of the most frequent element along dim, of several the smallest; the index is that of its last occurrence."""

def moveaxis(input: Tensor, source: Any, destination: Any) -> Tensor:
    """Dimensions `source` moved to `destination`; the others keep their order."""

def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """Dimensions `source` moved to `destination`; the others keep their order."""

def msort(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x in ascending order along its first dim."""

def mul(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
    """x * other."""

def multinomial(input: Tensor, num_samples: _builtins.int, replacement: _builtins.bool = False, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor:
    """Indices drawn with probabilities proportional to the weights in x, (n,) or (rows, n). Without replacement each comes at most once,"""

def multiply(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
    """x * other."""

def mv(input: Tensor, vec: Tensor, *, out: Tensor | None = None) -> Tensor:
    """(m, k) @ (k,)."""

def mvlgamma(input: Tensor, p: _builtins.int, *, out: Tensor | None = None) -> Tensor:
    """log of the multivariate gamma function of p dimensions: p (p - 1) / 4 log(pi) + sum of lgamma(x - k / 2) for k < p (DLMF 35.3.4)."""

def nan_to_num(input: Tensor, nan: _builtins.float | None = None, posinf: _builtins.float | None = None, neginf: _builtins.float | None = None, *, out: Tensor | None = None) -> Tensor:
    """x with NaN (by 0) and infinities replaced, infinities by the type's largest and smallest values unless given; so both parts of complex numbers."""

def nan_to_num_(input: Tensor, nan: _builtins.float | None = None, posinf: _builtins.float | None = None, neginf: _builtins.float | None = None) -> Tensor:
    """x with NaN (by 0) and infinities replaced, infinities by the type's largest and smallest values unless given; so both parts of complex numbers."""

def nanmean(input: Tensor, dim: _builtins.int | Sequence[_builtins.int] | None = None, keepdim: _builtins.bool = False, *, dtype: Any = None, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _builtins.bool | None = None, out: Tensor | None = None) -> Tensor:
    """Mean over dims of what is not NaN."""

def nanmedian(input: Tensor, dim: _builtins.int | None = None, keepdim: _builtins.bool = False, *, out: Tensor | None = None) -> Any:
    """As `median`, of what is not NaN; NaN where there is nothing else."""

def nanquantile(input: Tensor, q: Any, dim: _builtins.int | None = None, keepdim: _builtins.bool = False, *, interpolation: _builtins.str = 'linear', out: Tensor | None = None) -> Tensor:
    """As `quantile`, of what is not NaN; NaN where there is nothing else."""

def nansum(input: Tensor, dim: _builtins.int | Sequence[_builtins.int] | None = None, keepdim: _builtins.bool = False, *, dtype: Any = None, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _builtins.bool | None = None, out: Tensor | None = None) -> Tensor:
    """Sum over dims of what is not NaN."""

def narrow(input: Tensor, dim: _builtins.int, start: _builtins.int, length: _builtins.int) -> Tensor:
    """Elements start to start + length - 1 of a dimension."""

def narrow_copy(input: Tensor, dim: _builtins.int, start: _builtins.int, length: _builtins.int, *, out: Tensor | None = None) -> Tensor:
    """Elements start to start + length - 1 of a dimension, as a copy."""

def native_batch_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None, training: _builtins.bool, momentum: _builtins.float, eps: _builtins.float, *, out: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """(the input normalized by channel, mean, 1 / sqrt(var + eps)): input (batch, channels, ...), statistics (channels,), without a gradient."""

def native_channel_shuffle(input: Tensor, groups: _builtins.int) -> Tensor:
    """channel_shuffle under the name of PyTorch's operator."""

def native_dropout(input: Tensor, p: _builtins.float, train: _builtins.bool | None) -> tuple[Tensor, Tensor]:
    """(dropout's result, whether each element was kept); all are kept when `train` is False. x is floating."""

def native_group_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, N: _builtins.int, C: _builtins.int, HxW: _builtins.int, group: _builtins.int, eps: _builtins.float) -> tuple[Tensor, Tensor, Tensor]:
    """(the input normalized within each of `group` groups of channels, mean, 1 / sqrt(var + eps)): input (N, C, ...), statistics (N, group)."""

def native_layer_norm(input: Tensor, normalized_shape: Sequence[_builtins.int], weight: Tensor | None, bias: Tensor | None, eps: _builtins.float) -> tuple[Tensor, Tensor, Tensor]:
    """(layer_norm, mean, 1 / sqrt(var + eps)) over the trailing dimensions `normalized_shape`; the two statistics have no gradient."""

def ne(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Whether x != other."""

def neg(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """-x."""

def neg_(input: Tensor) -> Tensor:
    """-x."""

def negative(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """-x."""

def negative_(input: Tensor) -> Tensor:
    """-x."""

def nextafter(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The next number after x towards other. Floating types only; its gradient is x's, none where they are equal."""

def nonzero(input: Tensor, *, as_tuple: _builtins.bool = False, out: Tensor | None = None) -> Any:
    """Positions of the elements that are not 0: (count, ndim), or a vector per dimension. Waits for the device."""

def nonzero_static(input: Tensor, *, size: _builtins.int, fill_value: _builtins.int = -1, out: Tensor | None = None) -> Tensor:
    """The first `size` positions of elements that are not 0, (size, ndim); rows that are left over hold fill_value. Waits for nothing."""

def norm(input: Tensor, p: _builtins.float | _builtins.str | None = 'fro', dim: _builtins.int | Sequence[_builtins.int] | None = None, keepdim: _builtins.bool = False, dtype: Any = None, *, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _builtins.bool | None = None, out: Tensor | None = None) -> Tensor:
    """The p-norm over dims, (sum |x|^p)^(1/p): p = 2 (or "fro", None), 1, 0 (how many are not zero), inf, -inf, or any number."""

def norm_except_dim(v: Tensor, pow: _builtins.int = 2, dim: _builtins.int = 0) -> Tensor:
    """The pow-norm over all dims but one, which and whose neighbours' places are kept: (n, ...) -> (n, 1, ...). dim=-1 is over all dims, with none kept."""

def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Generator | None = None, dtype: Any = None, device: Any = None, out: Tensor | None = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """Normal numbers; mean and std are numbers (with a size) or tensors that broadcast, of mean's type where it is a tensor."""

def normal_(input: Tensor, mean: _builtins.float = 0.0, std: _builtins.float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Overwrite x with normal numbers."""

def not_equal(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Whether x != other."""

def nuclear_norm(input: Tensor, dim: Any = None, keepdim: _builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
    """The sum of the singular values of matrices, of the last two dims or of `dim`; `nuclear_norm(x, True)` keeps the dims."""

def numel(input: Tensor) -> _builtins.int:
    """How many elements a tensor has."""

def ones(*size: Any, dtype: Any = None, device: Any = None, out: Tensor | None = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """Ones of a shape."""

def ones_like(input: Tensor, *, dtype: Any = None, device: Any = None, memory_format: Any = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """Ones of x's shape, dtype, device and layout, or in a memory format."""

def orgqr(input: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Another name of linalg.householder_product."""

def ormqr(input: Tensor, tau: Tensor, other: Tensor, left: _builtins.bool = True, transpose: _builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
    """Q other, or other Q unless `left`, for Q = H_1 ... H_k of geqrf's reflectors; Q^H in its place if `transpose`."""

def outer(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """input[i] * vec2[j]: (n,), (m,) to (n, m)."""

def pairwise_distance(x1: Tensor, x2: Tensor, p: _builtins.float = 2.0, eps: _builtins.float = 1e-06, keepdim: _builtins.bool = False) -> Tensor:
    """|x1 - x2 + eps|_p over the last dimension, of inputs that broadcast."""

def pca_lowrank(A: Tensor, q: _builtins.int | None = None, center: _builtins.bool = True, niter: _builtins.int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """(U, S, V) of the q principal components of A (..., samples, features), columns centred first; by svd_lowrank. q is at most 6 if not given."""

def pdist(input: Tensor, p: _builtins.float = 2.0) -> Tensor:
    """p-norm distances of every pair of rows i < j of x (n, columns): (n (n - 1) / 2,), those of row 0 first. See `cdist`."""

def permute(input: Tensor, *dims: Any) -> Tensor:
    """Dimensions in the order given: `x.permute(2, 0, 1)`."""

def permute_copy(input: Tensor, dims: Any, *, out: Tensor | None = None) -> Tensor:
    """x.permute(dims) as a copy."""

def permute_dims(input: Tensor, *dims: Any) -> Tensor:
    """Dimensions in the order given: `x.permute(2, 0, 1)`."""

def pinverse(input: Tensor, rcond: _builtins.float = 1e-15) -> Tensor:
    """The pseudo-inverse of matrices; singular values at most rcond times the largest count as 0."""

def pixel_shuffle(input: Tensor, upscale_factor: _builtins.int) -> Tensor:
    """(..., c r^2, h, w) -> (..., c, h r, w r): r^2 channels become the r x r pixels of one (Shi et al. 2016)."""

def pixel_unshuffle(input: Tensor, downscale_factor: _builtins.int) -> Tensor:
    """(..., c, h r, w r) -> (..., c r^2, h, w): pixel_shuffle undone."""

def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Numbers of events where x says how many are expected, of x's type. Waits for the device."""

def poisson_nll_loss(input: Tensor, target: Tensor, log_input: _builtins.bool, full: _builtins.bool, eps: _builtins.float, reduction: _builtins.int) -> Tensor:
    """nn.functional.poisson_nll_loss, the reduction as a number: 0 none, 1 the mean, 2 the sum."""

def polar(abs: Tensor, angle: Tensor, *, out: Tensor | None = None) -> Tensor:
    """abs (cos angle + i sin angle), of two tensors of float32, or of float64, that broadcast."""

def polygamma(n: _builtins.int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The n-th derivative of digamma. Raises ArgumentError for n below 0."""

def positive(input: Tensor) -> Tensor:
    """x itself. Raises DTypeError for bool."""

def pow(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """x to the power other; integers stay integers."""

def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x where positive, else weight x; weight holds one number, or one for each channel (dim 1 of x). Both of one type."""

def prod(input: Tensor, dim: _builtins.int | Sequence[_builtins.int] | None = None, keepdim: _builtins.bool = False, *, dtype: Any = None, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _builtins.bool | None = None, out: Tensor | None = None) -> Tensor:
    """Product over dims; integers and bools in int64. The gradient is exact where elements are zero."""

def promote_types(type1: Any, type2: Any) -> Any:
    """The smallest type of the higher kind that holds what both hold. Raises DTypeError where there is none."""

def put(input: Tensor, index: Tensor, source: Tensor, accumulate: _builtins.bool = False) -> Tensor:
    """A copy of x with source's elements written, or added, at places of the flattened x; index and source have as many elements."""

def qr(input: Tensor, some: _builtins.bool = True, *, out: Tensor | None = None) -> Any:
    """(Q, R) with x = Q R; see linalg.qr, whose mode is "reduced" if `some`, else "complete"."""

def quantile(input: Tensor, q: Any, dim: _builtins.int | None = None, keepdim: _builtins.bool = False, *, interpolation: _builtins.str = 'linear', out: Tensor | None = None) -> Tensor:
    """The element at q (n - 1) of the sorted elements over dim (None: all), interpolated between two neighbours; NaN where there is one."""

def rad2deg(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Radians as degrees."""

def rad2deg_(input: Tensor) -> Tensor:
    """Radians as degrees."""

def rand(*size: Any, generator: Generator | None = None, dtype: Any = None, device: Any = None, out: Tensor | None = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """Uniform numbers of [0, 1) in a shape."""

def rand_like(input: Tensor, *, generator: Generator | None = None, dtype: Any = None, device: Any = None, memory_format: Any = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """rand in x's shape, dtype, device and layout, or in a memory format."""

def randint(low: Any = 0, high: Any = None, size: Any = None, *, generator: Generator | None = None, dtype: Any = None, device: Any = None, out: Tensor | None = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """Uniform integers of [low, high): `randint(high, size)` or `randint(low, high, size)`."""

def randint_like(input: Tensor, low: _builtins.int = 0, high: _builtins.int | None = None, *, generator: Generator | None = None, dtype: Any = None, device: Any = None, memory_format: Any = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """randint in x's shape, dtype, device and layout, or in a memory format."""

def randn(*size: Any, generator: Generator | None = None, dtype: Any = None, device: Any = None, out: Tensor | None = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """Standard normal numbers in a shape."""

def randn_like(input: Tensor, *, generator: Generator | None = None, dtype: Any = None, device: Any = None, memory_format: Any = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """randn in x's shape, dtype, device and layout, or in a memory format."""

def random_(input: Tensor, start: Any = ..., end: Any = ..., *, generator: Generator | None = None) -> Tensor:
    """Overwrite x with integers: `random_(from, to)` of [from, to), `random_(to)` of [0, to), `random_()` up to what x's type holds exactly,"""

def randperm(n: _builtins.int, *, generator: Generator | None = None, dtype: Any = None, device: Any = None, out: Tensor | None = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """0 to n - 1 in a random order."""

def range(start: Any = 0, end: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None, out: Tensor | None = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """start, start + step, ... up to end, which is included; of the default floating type. Deprecated: arange is what Python's range is."""

def ravel(input: Tensor) -> Tensor:
    """x in one dimension; a copy unless x is contiguous."""

def real(input: Tensor) -> Tensor:
    """The real parts: of complex numbers a view, of real ones x itself."""

def reciprocal(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """1 / x."""

def reciprocal_(input: Tensor) -> Tensor:
    """1 / x."""

def relu(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """max(x, 0); the gradient at 0 is 0."""

def relu_(input: Tensor) -> Tensor:
    """max(x, 0); the gradient at 0 is 0."""

def remainder(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """x - floor(x / other) * other: it has the sign of other."""

def renorm(input: Tensor, p: _builtins.float, dim: _builtins.int, maxnorm: _builtins.float, *, out: Tensor | None = None) -> Tensor:
    """x with each slice along dim whose p-norm is larger than maxnorm scaled down to it. Raises ArgumentError for p <= 0 and maxnorm < 0."""

def repeat(input: Tensor, *repeats: Any) -> Tensor:
    """x laid side by side, `repeats` times along each dimension (new ones in front); always a copy."""

def repeat_interleave(input: Any = None, repeats: Any = None, dim: _builtins.int | None = None, *, output_size: _builtins.int | None = None) -> Tensor:
    """Each element (or slice along `dim`) repeated in place: so many times, or as often as a tensor of counts says."""

def reshape(input: Tensor, *shape: Any) -> Tensor:
    """x's elements in C order under another shape, one size may be -1; a view where x's strides allow one, else a copy."""

def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """x.reshape(other.shape)."""

def resize_as_(input: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    """x.resize_(the_template.shape), laid out as the template where memory_format is preserve_format."""

def resolve_conj(input: Tensor) -> Tensor:
    """x itself: no tensor here is conjugated lazily."""

def resolve_neg(input: Tensor) -> Tensor:
    """x itself: no tensor here is negated lazily."""

def result_type(tensor: Any, other: Any) -> Any:
    """The type of an elementwise result of two tensors or numbers: dimensions outrank single values, those outrank Python's numbers."""

def rms_norm(input: Tensor, normalized_shape: Sequence[_builtins.int], weight: Tensor | None = None, eps: _builtins.float | None = None) -> Tensor:
    """nn.functional.rms_norm."""

def rnn_relu(input: Tensor, hx: Any, params: Any, has_biases: Any, num_layers: Any, dropout: Any, train: Any, bidirectional: Any, batch_first: Any = None) -> tuple[Tensor, Tensor]:
    """A simple recurrent net with relu over all layers, as torch.rnn_relu: of a padded batch (input, hx, params, has_biases, num_layers, dropout, train, bidirectional,"""

def rnn_relu_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None) -> Tensor:
    """relu(input @ w_ih^T + b_ih + hx @ w_hh^T + b_hh): input (batch, in), hx (batch, size)."""

def rnn_tanh(input: Tensor, hx: Any, params: Any, has_biases: Any, num_layers: Any, dropout: Any, train: Any, bidirectional: Any, batch_first: Any = None) -> tuple[Tensor, Tensor]:
    """A simple recurrent net with tanh over all layers, as torch.rnn_tanh: of a padded batch (input, hx, params, has_biases, num_layers, dropout, train, bidirectional,"""

def rnn_tanh_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None) -> Tensor:
    """tanh(input @ w_ih^T + b_ih + hx @ w_hh^T + b_hh): input (batch, in), hx (batch, size)."""

def roll(input: Tensor, shifts: Any, dims: Any = None) -> Tensor:
    """Elements shifted along dimensions, coming back at the other end; over the flattened tensor where none is named."""

def rot90(input: Tensor, k: _builtins.int = 1, dims: Any = (0, 1)) -> Tensor:
    """Turned k times by 90 degrees from the first of two dimensions towards the second."""

def round(input: Tensor, *, decimals: _builtins.int = 0, out: Tensor | None = None) -> Tensor:
    """x rounded to `decimals` places, halves to the even neighbour; integers come back copied."""

def round_(input: Tensor, *, decimals: _builtins.int = 0) -> Tensor:
    """x rounded to `decimals` places, halves to the even neighbour; integers come back copied."""

def row_stack(tensors: Any, *, out: Tensor | None = None) -> Tensor:
    """Joined row by row: vectors count as rows."""

def rrelu(input: Tensor, lower: _builtins.float = 0.125, upper: _builtins.float = 0.3333333333333333, training: _builtins.bool = False, generator: Generator | None = None) -> Tensor:
    """x where positive, else a x: a is drawn from [lower, upper) for each element in training, else halfway between (Xu et al. 2015)."""

def rrelu_(input: Tensor, lower: _builtins.float = 0.125, upper: _builtins.float = 0.3333333333333333, training: _builtins.bool = False, generator: Generator | None = None) -> Tensor:
    """x where positive, else a x: a is drawn from [lower, upper) for each element in training, else halfway between (Xu et al. 2015)."""

def rsqrt(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """1 / sqrt(x)."""

def rsqrt_(input: Tensor) -> Tensor:
    """1 / sqrt(x)."""

def rsub(input: Tensor, other: Any, *, alpha: _builtins.float = 1) -> Tensor:
    """other - alpha * x."""

def scalar_tensor(s: Any, *, dtype: Any = None, device: Any = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """A 0-d tensor, floating unless dtype says otherwise."""

def scatter(input: Tensor, dim: _builtins.int, index: Tensor, src: Any = None, *, value: Any = None, reduce: _builtins.str | None = None, out: Tensor | None = None) -> Tensor:
    """A copy of x with src[.., j, ..] (or a number) written at [.., index[.., j, ..], ..]; of repeated positions the last one stays."""

def scatter_add(input: Tensor, dim: _builtins.int, index: Tensor, src: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy of x with src[.., j, ..] added at [.., index[.., j, ..], ..] along `dim`, in a fixed order."""

def scatter_reduce(input: Tensor, dim: _builtins.int, index: Tensor, src: Tensor, reduce: _builtins.str, *, include_self: _builtins.bool = True, out: Tensor | None = None) -> Tensor:
    """A copy of x in which the `reduce` of src[.., j, ..], and of x itself unless include_self is False, stands at [.., index[.., j, ..], ..]."""

def searchsorted(sorted_sequence: Tensor, input: Any, *, out_int32: _builtins.bool = False, right: _builtins.bool = False, side: _builtins.str | None = None, sorter: Tensor | None = None, out: Tensor | None = None) -> Tensor:
    """Where `input` would be put in ascending rows so that they stay so: before equal elements, with right (side="right") behind them."""

def segment_reduce(data: Tensor, reduce: _builtins.str, *, lengths: Tensor | None = None, indices: Tensor | None = None, offsets: Tensor | None = None, axis: _builtins.int = 0, unsafe: _builtins.bool = False, initial: _builtins.float | None = None) -> Tensor:
    """The `reduce` ("sum", "mean", "max" or "amax", "min" or "amin", "prod") of each segment of `axis`: data (.., n, ..) becomes"""

def select(input: Tensor, dim: _builtins.int, index: _builtins.int) -> Tensor:
    """x at one index of a dimension, which goes."""

def select_copy(input: Tensor, dim: _builtins.int, index: _builtins.int, *, out: Tensor | None = None) -> Tensor:
    """x.select(dim, index) as a copy."""

def select_scatter(input: Tensor, src: Tensor, dim: _builtins.int, index: _builtins.int) -> Tensor:
    """A copy of x in which src stands where x.select(dim, index) is."""

def selu(input: Tensor) -> Tensor:
    """1.0507 x where positive, else 1.0507 * 1.6733 (exp(x) - 1): keeps mean 0 and variance 1 through layers (Klambauer et al. 2017)."""

def selu_(input: Tensor) -> Tensor:
    """1.0507 x where positive, else 1.0507 * 1.6733 (exp(x) - 1): keeps mean 0 and variance 1 through layers (Klambauer et al. 2017)."""

def set_default_device(device: Any) -> None:
    """Make tensors on `device`, where none is asked for, on this thread; None is the CPU again. `with device(...)` does so for a block."""

def set_default_dtype(dtype: Any) -> None:
    """Make `dtype` (float16, bfloat16, float32 or float64) the floating type of `tensor(1.5)` and `rand(3)`."""

def set_default_tensor_type(t: Any) -> None:
    """Make a typed class (or its name) say the default floating type, and on which device tensors are made."""

def sgn(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x / |x| of complex numbers, 0 at 0; the sign of real ones."""

def sigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """1 / (1 + exp(-x))."""

def sigmoid_(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""

def sign(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """1, 0 or -1 by the sign of x; its gradient is 0. Raises DTypeError for complex numbers, which `sgn` takes."""

def signbit(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether the sign's bit is set: of negative numbers, -0 and -NaN."""

def sin(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The sine of x in radians."""

def sin_(input: Tensor) -> Tensor:
    """The sine of x in radians."""

def sinc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """sin(pi x) / (pi x), 1 at 0."""

def sinc_(input: Tensor) -> Tensor:
    """sin(pi x) / (pi x), 1 at 0."""

def sinh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The hyperbolic sine."""

def sinh_(input: Tensor) -> Tensor:
    """The hyperbolic sine."""

def slice_copy(input: Tensor, dim: _builtins.int = 0, start: _builtins.int | None = None, end: _builtins.int | None = None, step: _builtins.int = 1, *, out: Tensor | None = None) -> Tensor:
    """Elements start to end - 1 of a dimension, every `step`-th, as a copy. Raises ValueError for a step below 1."""

def slice_scatter(input: Tensor, src: Tensor, dim: _builtins.int = 0, start: _builtins.int | None = None, end: _builtins.int | None = None, step: _builtins.int = 1, *, out: Tensor | None = None) -> Tensor:
    """A copy of x in which src stands at start:end:step of a dimension."""

def slogdet(input: Tensor, *, out: Tensor | None = None) -> Any:
    """(sign, logabsdet) with det = sign e^logabsdet; see linalg.slogdet."""

def softmax(input: Tensor, dim: _builtins.int | None = None, dtype: Any = None, *, axis: _builtins.int | None = None, out: Tensor | None = None) -> Tensor:
    """e^x / sum e^x along dim; `dtype`: cast x first."""

def solve(input: Any, A: Any, *, out: Any = None) -> Any:
    """Removed: linalg.solve, whose arguments go the other way round. Raises RuntimeError."""

def sort(input: Tensor, dim: _builtins.int = -1, descending: _builtins.bool = False, *, stable: _builtins.bool = False, out: Tensor | None = None) -> Any:
    """(values, indices) in ascending order along dim, or in descending order; equal elements keep their order, whatever `stable` says."""

def split(input: Tensor, split_size_or_sections: Any, dim: _builtins.int = 0) -> tuple[Tensor, ...]:
    """Parts of a size (the last may be smaller), or of the sizes listed."""

def split_copy(input: Tensor, split_size: Any, dim: _builtins.int = 0, *, out: Tensor | None = None) -> tuple[Tensor, ...]:
    """Copies of the parts that split gives."""

def split_with_sizes(input: Tensor, split_sizes: Any, dim: _builtins.int = 0) -> tuple[Tensor, ...]:
    """Parts of the sizes listed."""

def split_with_sizes_copy(input: Tensor, split_sizes: Any, dim: _builtins.int = 0, *, out: Tensor | None = None) -> tuple[Tensor, ...]:
    """Copies of the parts that split_with_sizes gives."""

def spmm(input: Tensor, mat2: Tensor) -> Tensor:
    """mm, of matrices that PyTorch also takes as sparse ones: (m, k) @ (k, n)."""

def sqrt(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The square root, correctly rounded; NaN below 0."""

def sqrt_(input: Tensor) -> Tensor:
    """The square root, correctly rounded; NaN below 0."""

def square(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x * x; whole numbers of bools."""

def square_(input: Tensor) -> Tensor:
    """x * x; whole numbers of bools."""

def squeeze(input: Tensor, dim: Any = None) -> Tensor:
    """Without dimensions of size 1: all of them, or those named (others stay)."""

def squeeze_copy(input: Tensor, dim: Any = None, *, out: Tensor | None = None) -> Tensor:
    """x.squeeze(dim) as a copy."""

def stack(tensors: Any, dim: _builtins.int = 0, *, out: Tensor | None = None) -> Tensor:
    """Tensors of one shape joined along a new dimension."""

def std(input: Tensor, dim: Any = None, unbiased: _builtins.bool | None = None, keepdim: _builtins.bool = False, *, correction: _builtins.float | None = None, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _builtins.bool | None = None, out: Tensor | None = None) -> Tensor:
    """Standard deviation over dims: the square root of `var`, with gradient 0 where it is 0."""

def std_mean(input: Tensor, dim: Any = None, unbiased: _builtins.bool | None = None, keepdim: _builtins.bool = False, *, correction: _builtins.float | None = None, axis: _builtins.int | Sequence[_builtins.int] | None = None) -> tuple[Tensor, Tensor]:
    """(standard deviation, mean) over dims."""

def stft(input: Tensor, n_fft: _builtins.int, hop_length: _builtins.int | None = None, win_length: _builtins.int | None = None, window: Tensor | None = None, center: _builtins.bool = True, pad_mode: _builtins.str = 'reflect', normalized: _builtins.bool = False, onesided: _builtins.bool | None = None, return_complex: _builtins.bool | None = None, align_to_window: _builtins.bool | None = None) -> Tensor:
    """Spectra of windows of a signal: (length) or (batch, length) to (batch, frequencies, windows), complex."""

def sub(input: Tensor, other: Any, *, alpha: _builtins.float = 1, out: Tensor | None = None) -> Tensor:
    """x - alpha * other."""

def subtract(input: Tensor, other: Any, *, alpha: _builtins.float = 1, out: Tensor | None = None) -> Tensor:
    """x - alpha * other."""

def sum(input: Tensor, dim: _builtins.int | Sequence[_builtins.int] | None = None, keepdim: _builtins.bool = False, *, dtype: Any = None, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _builtins.bool | None = None, out: Tensor | None = None) -> Tensor:
    """Sum over dims. Integers and bools give int64, unless dtype says another type; 16-bit floats accumulate in float32."""

def svd(input: Tensor, some: _builtins.bool = True, compute_uv: _builtins.bool = True, *, out: Tensor | None = None) -> Any:
    """(U, S, V) with x = U diag(S) V^H, V and not V^H; U and V have all columns unless `some`, and are zero unless `compute_uv`."""

def svd_lowrank(A: Tensor, q: _builtins.int | None = 6, niter: _builtins.int | None = 2, M: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """(U, S, V) with U diag(S) V^H near A (near A - M), of rank q: a random projection, improved by `niter` power steps (Halko et al. 2009)."""

def swapaxes(input: Tensor, *dims: Any, dim0: _builtins.int | None = None, dim1: _builtins.int | None = None) -> Tensor:
    """Two dimensions exchanged: `x.transpose(0, 1)`. Also numpy's forms: a permutation as one sequence, or nothing to reverse all."""

def swapdims(input: Tensor, *dims: Any, dim0: _builtins.int | None = None, dim1: _builtins.int | None = None) -> Tensor:
    """Two dimensions exchanged: `x.transpose(0, 1)`. Also numpy's forms: a permutation as one sequence, or nothing to reverse all."""

def symeig(input: Any, eigenvectors: _builtins.bool = False, upper: _builtins.bool = True, *, out: Any = None) -> Any:
    """Removed: linalg.eigh, which reads the lower triangle unless UPLO="U". Raises RuntimeError."""

def t(input: Tensor) -> Tensor:
    """The transpose of a matrix; a view of all of x with fewer dimensions."""

def t_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x.t() as a copy."""

def take(input: Tensor, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Elements of the flattened tensor, in index's shape; negative indices count from the end."""

def take_along_axis(input: Tensor, indices: Tensor, axis: _builtins.int | None = -1) -> Tensor:
    """numpy's name for take_along_dim, and numpy's default: the last axis."""

def take_along_dim(input: Tensor, indices: Tensor, dim: _builtins.int | None = None, *, out: Tensor | None = None) -> Tensor:
    """gather with broadcasting: x and indices stretch to each other outside `dim`, where negative ones count from the end."""

def tan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The tangent of x in radians."""

def tan_(input: Tensor) -> Tensor:
    """The tangent of x in radians."""

def tanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The hyperbolic tangent."""

def tanh_(input: Tensor) -> Tensor:
    """The hyperbolic tangent."""

def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: _builtins.bool = False, pin_memory: _builtins.bool = False) -> Tensor:
    """A copy of data: a number, nested lists, a numpy array, a tensor."""

def tensor_split(input: Tensor, indices_or_sections: Any, dim: _builtins.int = 0) -> tuple[Tensor, ...]:
    """So many parts (sizes differ by one at most), or the parts between the indices listed."""

def tensordot(a: Tensor, b: Tensor, dims: _builtins.int | Tensor | Sequence[Any] = 2, *, out: Tensor | None = None) -> Tensor:
    """Sum of products over `dims`: the last `dims` of a with the first of b, or a pair of lists that name them."""

def threshold(input: Tensor, threshold: _builtins.float, value: _builtins.float, *, out: Tensor | None = None) -> Tensor:
    """x where it is above the threshold, else the value."""

def threshold_(input: Tensor, threshold: _builtins.float, value: _builtins.float) -> Tensor:
    """x where it is above the threshold, else the value."""

def tile(input: Tensor, *dims: Any) -> Tensor:
    """numpy's repeat: `dims` may be shorter than x's shape."""

def to_dlpack(input: Tensor) -> Any:
    """A DLPack capsule on x's memory, to be taken once by another library's from_dlpack. Raises BufferError for a tensor that requires grad."""

def topk(input: Tensor, k: _builtins.int, dim: _builtins.int = -1, largest: _builtins.bool = True, sorted: _builtins.bool = True, *, out: Tensor | None = None) -> Any:
    """(values, indices) of the k largest elements along dim, or the k smallest; always in order, whatever `sorted` says."""

def trace(input: Tensor) -> Tensor:
    """The sum of a matrix's diagonal; int64 of integers. Raises ShapeError for what is no matrix, DTypeError for bools."""

def transpose(input: Tensor, *dims: Any, dim0: _builtins.int | None = None, dim1: _builtins.int | None = None) -> Tensor:
    """Two dimensions exchanged: `x.transpose(0, 1)`. Also numpy's forms: a permutation as one sequence, or nothing to reverse all."""

def transpose_copy(input: Tensor, dim0: _builtins.int, dim1: _builtins.int, *, out: Tensor | None = None) -> Tensor:
    """x.transpose(dim0, dim1) as a copy."""

def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: _builtins.int = -1) -> Tensor:
    """The integral of y over dim by the trapezoid rule, sum of (y[i] + y[i + 1]) / 2 times the width: x[i + 1] - x[i], or dx (1). 0 of no samples."""

def trapz(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: _builtins.int = -1) -> Tensor:
    """The integral of y over dim by the trapezoid rule, sum of (y[i] + y[i + 1]) / 2 times the width: x[i + 1] - x[i], or dx (1). 0 of no samples."""

def triangular_solve(b: Tensor, A: Tensor, upper: _builtins.bool = True, transpose: _builtins.bool = False, unitriangular: _builtins.bool = False, *, out: Tensor | None = None) -> Any:
    """(solution, cloned_coefficient): X with T X = b, T a triangle of A, T^T in its place if `transpose`; and a copy of A."""

def tril(input: Tensor, diagonal: _builtins.int = 0, *, out: Tensor | None = None) -> Tensor:
    """The lower triangle of the last two dimensions, zeros elsewhere."""

def tril_indices(row: _builtins.int, col: _builtins.int, offset: _builtins.int = 0, *, dtype: Any = None, device: Any = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """Row and column numbers of the lower triangle: (2, count)."""

def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: _builtins.float = 1.0, p: _builtins.float = 2, eps: _builtins.float = 1e-06, swap: _builtins.bool = False, reduction: _builtins.int = 0) -> Tensor:
    """nn.functional.triplet_margin_loss, the reduction as a number: 0 none, 1 the mean, 2 the sum."""

def triu(input: Tensor, diagonal: _builtins.int = 0, *, out: Tensor | None = None) -> Tensor:
    """The upper triangle of the last two dimensions, zeros elsewhere."""

def triu_indices(row: _builtins.int, col: _builtins.int, offset: _builtins.int = 0, *, dtype: Any = None, device: Any = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """Row and column numbers of the upper triangle: (2, count)."""

def true_divide(input: Tensor, other: Any, *, rounding_mode: _builtins.str | None = None, out: Tensor | None = None) -> Tensor:
    """x / other."""

def trunc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x without its fraction. Integers come back copied. Raises DTypeError for complex numbers."""

def trunc_(input: Tensor) -> Tensor:
    """x without its fraction. Integers come back copied. Raises DTypeError for complex numbers."""

def typename(obj: Any) -> _builtins.str:
    """The name of a tensor's type, or of an object's class with its module."""

def unbind(input: Tensor, dim: _builtins.int = 0) -> tuple[Tensor, ...]:
    """All slices along a dimension."""

def unbind_copy(input: Tensor, dim: _builtins.int = 0, *, out: Tensor | None = None) -> tuple[Tensor, ...]:
    """Copies of all slices along a dimension."""

def unflatten(input: Tensor, dim: _builtins.int, sizes: Any) -> Tensor:
    """Dimension `dim` split into `sizes`, one of which may be -1."""

def unfold(input: Tensor, dimension: _builtins.int, size: _builtins.int, step: _builtins.int) -> Tensor:
    """All windows of `size` elements along a dimension, `step` apart, in a new last dimension."""

def unfold_copy(input: Tensor, dimension: _builtins.int, size: _builtins.int, step: _builtins.int, *, out: Tensor | None = None) -> Tensor:
    """x.unfold(dimension, size, step) as a copy."""

def uniform_(input: Tensor, a: _builtins.float = 0.0, b: _builtins.float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Overwrite x with uniform numbers of [a, b)."""

def unique(input: Tensor, sorted: _builtins.bool = True, return_inverse: _builtins.bool = False, return_counts: _builtins.bool = False, dim: _builtins.int | None = None) -> Any:
    """The distinct elements, or the distinct slices along dim, in ascending order whatever `sorted` says. Each NaN is one of its own."""

def unique_consecutive(input: Tensor, return_inverse: _builtins.bool = False, return_counts: _builtins.bool = False, dim: _builtins.int | None = None) -> Any:
    """The first of every run of equal elements (of equal slices along dim), in order. NaN equals nothing."""

def unravel_index(indices: Tensor, shape: _builtins.int | Sequence[_builtins.int]) -> tuple[Tensor, ...]:
    """Flat positions as coordinates in a C-ordered tensor of `shape`, a tensor for each dimension (int64); positions beyond it wrap around."""

def unsafe_chunk(input: Tensor, chunks: _builtins.int, dim: _builtins.int = 0) -> tuple[Tensor, ...]:
    """chunk, whose parts may each be written in place in the graph."""

def unsafe_split(input: Tensor, split_size: Any, dim: _builtins.int = 0) -> tuple[Tensor, ...]:
    """split, whose parts may each be written in place in the graph."""

def unsafe_split_with_sizes(input: Tensor, split_sizes: Any, dim: _builtins.int = 0) -> tuple[Tensor, ...]:
    """split_with_sizes, whose parts may each be written in place in the graph."""

def unsqueeze(input: Tensor, dim: _builtins.int) -> Tensor:
    """With a new dimension of size 1 at `dim`."""

def unsqueeze_copy(input: Tensor, dim: _builtins.int, *, out: Tensor | None = None) -> Tensor:
    """x.unsqueeze(dim) as a copy."""

def vander(input: Tensor, N: _builtins.int | None = None, increasing: _builtins.bool = False) -> Tensor:
    """Powers of a vector's elements, a row for each: N of them (as many as elements), the highest first unless `increasing`. int64 of integers."""

def var(input: Tensor, dim: Any = None, unbiased: _builtins.bool | None = None, keepdim: _builtins.bool = False, *, correction: _builtins.float | None = None, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _builtins.bool | None = None, out: Tensor | None = None) -> Tensor:
    """Variance over dims, sum((x - mean)^2) / max(0, n - correction); correction is 1 unless given (unbiased=False: 0)."""

def var_mean(input: Tensor, dim: Any = None, unbiased: _builtins.bool | None = None, keepdim: _builtins.bool = False, *, correction: _builtins.float | None = None, axis: _builtins.int | Sequence[_builtins.int] | None = None) -> tuple[Tensor, Tensor]:
    """(variance, mean) over dims."""

def vdot(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """dot of two vectors, the first conjugated."""

def view(input: Tensor, *shape: Any) -> Tensor:
    """x's memory in another shape, one size may be -1: `x.view(-1, 8)`. `x.view(dtype)` reads the bytes as another type,"""

def view_as(input: Tensor, other: Tensor) -> Tensor:
    """x.view(other.shape)."""

def view_as_complex(input: Tensor) -> Tensor:
    """Pairs (..., 2) of float32 or float64 as complex numbers (...), a view. Raises ShapeError where the strides allow none."""

def view_as_complex_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """view_as_complex(x) as a copy: (..., 2) -> (...)."""

def view_as_real(input: Tensor) -> Tensor:
    """Complex numbers (...) as pairs of real ones (..., 2), a view."""

def view_as_real_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """view_as_real(x) as a copy: (..., 2)."""

def view_copy(input: Tensor, size: Any, *, out: Tensor | None = None) -> Tensor:
    """x.view(size), or of a type x.view(dtype), as a copy, which needs no view of that size."""

def vsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Parts along dim 0."""

def vstack(tensors: Any, *, out: Tensor | None = None) -> Tensor:
    """Joined row by row: vectors count as rows."""

def where(condition: Tensor, input: Any | None = None, other: Any | None = None, *, out: Tensor | None = None) -> Any:
    """input where condition holds, else other: tensors that broadcast, or numbers. With condition alone: where it holds, as `nonzero(as_tuple=True)`."""

def xlogy(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """x * log(other), 0 where x is 0 and other no NaN; integers give floats. One of them may be a number."""

def xlogy_(input: Any, other: Any) -> Tensor:
    """x * log(other), 0 where x is 0 and other no NaN; integers give floats. One of them may be a number."""

def zero_(input: Tensor) -> Tensor:
    """Write zeros; returns x."""

def zeros(*size: Any, dtype: Any = None, device: Any = None, out: Tensor | None = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """Zeros of a shape: `zeros(2, 3)` or `zeros((2, 3))`."""

def zeros_like(input: Tensor, *, dtype: Any = None, device: Any = None, memory_format: Any = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """Zeros of x's shape, dtype, device and layout, or in a memory format."""
