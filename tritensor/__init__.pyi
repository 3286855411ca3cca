# Written by `python -m tritensor.tools.stubs`; edit the functions themselves.
import builtins as _builtins
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tritensor.dtypes import DType as _DType
from tritensor.strides import MemoryFormat as _MemoryFormat
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
from tritensor import nn as nn
from tritensor import optim as optim
from tritensor import random as random
from tritensor import utils as utils
from tritensor.autograd import enable_grad as enable_grad
from tritensor.autograd import inference_mode as inference_mode
from tritensor.autograd import no_grad as no_grad
from tritensor.autograd import set_grad_enabled as set_grad_enabled
from tritensor.autograd.modes import is_grad_enabled as is_grad_enabled
from tritensor.autograd.modes import is_inference_mode_enabled as is_inference_mode_enabled
from tritensor.device import device as device
from tritensor.errors import ArgumentError as ArgumentError
from tritensor.errors import CaptureError as CaptureError
from tritensor.errors import CheckpointError as CheckpointError
from tritensor.errors import DeviceError as DeviceError
from tritensor.errors import DivisionByZeroError as DivisionByZeroError
from tritensor.errors import DTypeError as DTypeError
from tritensor.errors import EmptyError as EmptyError
from tritensor.errors import GradError as GradError
from tritensor.errors import LaunchError as LaunchError
from tritensor.errors import OutOfMemoryError as OutOfMemoryError
from tritensor.errors import OutOfRangeError as OutOfRangeError
from tritensor.errors import RegistrationError as RegistrationError
from tritensor.errors import ShapeError as ShapeError
from tritensor.io import load as load
from tritensor.io import save as save
from tritensor.matmul_precision import get_float32_matmul_precision as get_float32_matmul_precision
from tritensor.matmul_precision import set_float32_matmul_precision as set_float32_matmul_precision
from tritensor.paths.settings import are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled
from tritensor.paths.settings import get_deterministic_debug_mode as get_deterministic_debug_mode
from tritensor.paths.settings import get_num_interop_threads as get_num_interop_threads
from tritensor.paths.settings import get_num_threads as get_num_threads
from tritensor.paths.settings import is_deterministic_algorithms_warn_only_enabled as is_deterministic_algorithms_warn_only_enabled
from tritensor.paths.settings import set_deterministic_debug_mode as set_deterministic_debug_mode
from tritensor.paths.settings import set_flush_denormal as set_flush_denormal
from tritensor.paths.settings import set_num_interop_threads as set_num_interop_threads
from tritensor.paths.settings import set_num_threads as set_num_threads
from tritensor.paths.settings import use_deterministic_algorithms as use_deterministic_algorithms
from tritensor.random import Generator as Generator
from tritensor.random import get_rng_state as get_rng_state
from tritensor.random import initial_seed as initial_seed
from tritensor.random import manual_seed as manual_seed
from tritensor.random import seed as seed
from tritensor.random import set_rng_state as set_rng_state
from tritensor.strides import channels_last as channels_last
from tritensor.strides import channels_last_3d as channels_last_3d
from tritensor.strides import contiguous_format as contiguous_format
from tritensor.strides import preserve_format as preserve_format
from tritensor.table import Op as Op
from tritensor.table import Sample as Sample
from tritensor.table import Spec as Spec
from tritensor.table import Work as Work
from tritensor.table import op as op
from tritensor.table import ops as ops
from tritensor.tensor.core import Tensor as Tensor
from tritensor.tensor.printing import set_printoptions as set_printoptions
from tritensor.tensor.publishing.layout import layout as layout
from tritensor.tensor.publishing.layout import strided as strided
from tritensor.tensor.size import Size as Size
from tritensor import debug as debug
from tritensor import fft as fft
from tritensor import testing as testing

__version__: str
__all__: list[str]
newaxis: None
dtype = _DType
memory_format = _MemoryFormat
GradScaler: Any
accelerator: Any
amp: Any
autocast: Any
backends: Any
compiler: Any
jit: Any
multiprocessing: Any
types: Any
version: Any
bfloat: dtype
bfloat16: dtype
bool: dtype
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

def abs(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The absolute value; its gradient at 0 is 0."""

def absolute(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The absolute value; its gradient at 0 is 0."""

def acos(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse cosine."""

def acosh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic cosine."""

def add(input: Tensor, other: Any, *, alpha: _builtins.float = 1, out: Tensor | None = None) -> Tensor:
    """x + alpha * other."""

def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: _builtins.float = 1, alpha: _builtins.float = 1, out: Tensor | None = None) -> Tensor:
    """beta * input + alpha * the sum over the batch of bmm(batch1, batch2)."""

def addcdiv(input: Tensor, tensor1: Any, tensor2: Any, *, value: _builtins.float = 1, out: Tensor | None = None) -> Tensor:
    """x + value * tensor1 / tensor2."""

def addcmul(input: Tensor, tensor1: Any, tensor2: Any, *, value: _builtins.float = 1, out: Tensor | None = None) -> Tensor:
    """x + value * tensor1 * tensor2."""

def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: _builtins.float = 1, alpha: _builtins.float = 1, out: Tensor | None = None) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2); input broadcasts to the product's shape."""

def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: _builtins.float = 1, alpha: _builtins.float = 1, out: Tensor | None = None) -> Tensor:
    """beta * input + alpha * (mat @ vec)."""

def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: _builtins.float = 1, alpha: _builtins.float = 1, out: Tensor | None = None) -> Tensor:
    """beta * input + alpha * outer(vec1, vec2)."""

def adjoint(input: Tensor) -> Tensor:
    """The last two dimensions exchanged, complex numbers conjugated."""

def affine_grid_generator(theta: Tensor, size: Sequence[_builtins.int], align_corners: _builtins.bool) -> Tensor:
    """affine_grid under the name of PyTorch's operator."""

def all(input: Tensor, dim: _builtins.int | Sequence[_builtins.int] | None = None, keepdim: _builtins.bool = False, *, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _builtins.bool | None = None, out: Tensor | None = None) -> Tensor:
    """Whether all elements over dims are not zero; True over none; over dim=() each element's own truth. uint8 stays uint8."""

def allclose(input: Tensor, other: Tensor, rtol: _builtins.float = 1e-05, atol: _builtins.float = 1e-08, equal_nan: _builtins.bool = False) -> _builtins.bool:
    """Whether all elements are close (see isclose)."""

def amax(input: Tensor, dim: _builtins.int | Sequence[_builtins.int] | None = None, keepdim: _builtins.bool = False, *, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _builtins.bool | None = None, out: Tensor | None = None) -> Tensor:
    """Largest over dims; the gradient is shared evenly among equals. ShapeError over no elements."""

def amin(input: Tensor, dim: _builtins.int | Sequence[_builtins.int] | None = None, keepdim: _builtins.bool = False, *, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _builtins.bool | None = None, out: Tensor | None = None) -> Tensor:
    """Smallest over dims; the gradient is shared evenly among equals. ShapeError over no elements."""

def aminmax(input: Tensor, *, dim: _builtins.int | Sequence[_builtins.int] | None = None, keepdim: _builtins.bool = False, out: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """(smallest, largest) over dims."""

def angle(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The angle of complex numbers in (-pi, pi]; of real ones 0, pi below 0, NaN of NaN. The gradient of a real x is 0."""

def any(input: Tensor, dim: _builtins.int | Sequence[_builtins.int] | None = None, keepdim: _builtins.bool = False, *, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _builtins.bool | None = None, out: Tensor | None = None) -> Tensor:
    """Whether any element over dims is not zero (NaN is not); over dim=() each element's own truth. uint8 stays uint8."""

def arange(start: Any = 0, end: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None, out: Tensor | None = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """start, start + step, ... before end; `arange(n)` counts from 0. int64 for integers, else the default floating type."""

def arccos(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse cosine."""

def arccosh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic cosine."""

def arcsin(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse sine."""

def arcsinh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic sine."""

def arctan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse tangent."""

def arctan2(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """The angle of the point (other, x), in (-pi, pi]."""

def arctanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic tangent."""

def argmax(input: Tensor, dim: _builtins.int | None = None, keepdim: _builtins.bool = False, *, axis: _builtins.int | None = None, keepdims: _builtins.bool | None = None, out: Tensor | None = None) -> Tensor:
    """Index (int64) of the first largest along dim, or in the flattened tensor."""

def argmin(input: Tensor, dim: _builtins.int | None = None, keepdim: _builtins.bool = False, *, axis: _builtins.int | None = None, keepdims: _builtins.bool | None = None, out: Tensor | None = None) -> Tensor:
    """Index (int64) of the first smallest along dim, or in the flattened tensor."""

def argwhere(input: Tensor) -> Tensor:
    """Positions of the elements that are not 0: (count, ndim)."""

def as_strided(input: Tensor, size: Any, stride: Any, storage_offset: _builtins.int | None = None) -> Tensor:
    """A view of any shape and strides, in elements, on the whole memory of which x is a view."""

def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Data as a tensor, without a copy where it is a tensor, or a numpy array for the CPU, of the type asked for."""

def asarray(obj: Any, *, dtype: Any = None, device: Any = None, copy: _builtins.bool | None = None, requires_grad: _builtins.bool = False) -> Tensor:
    """Data as a tensor, without a copy where that can be."""

def asin(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse sine."""

def asinh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic sine."""

def astype(input: Tensor, dtype: Any, copy: _builtins.bool = True) -> Tensor:
    """x as another dtype (the array API's spelling)."""

def atan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse tangent."""

def atan2(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """The angle of the point (other, x), in (-pi, pi]."""

def atanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic tangent."""

def atleast_1d(*tensors: Tensor) -> Any:
    """With at least one dimension; several tensors give a tuple."""

def atleast_2d(*tensors: Tensor) -> Any:
    """With at least two dimensions; several tensors give a tuple."""

def atleast_3d(*tensors: Tensor) -> Any:
    """With at least three dimensions; several tensors give a tuple."""

def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: _builtins.float = 1, alpha: _builtins.float = 1, out: Tensor | None = None) -> Tensor:
    """beta * input + alpha * bmm(batch1, batch2)."""

def bernoulli(input: Tensor, p: _builtins.float | None = None, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor:
    """1 with probability x (or p, where it is given), else 0, for each element of x."""

def bernoulli_(input: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Overwrite x with 1 of probability p (a number or a tensor), else 0."""

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

def bmm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """(b, m, k) @ (b, k, n), one product for each of b, without broadcasting."""

def broadcast_shapes(*shapes: Any) -> tuple[_builtins.int, ...]:
    """The shape that shapes broadcast to."""

def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """All tensors expanded to the shape they broadcast to."""

def broadcast_to(input: Tensor, *shape: Any) -> Tensor:
    """numpy's name for expand."""

def cat(tensors: Any, dim: _builtins.int = 0, *, out: Tensor | None = None) -> Tensor:
    """Tensors joined along an existing dimension; empty ones of shape (0,) are left out, as in PyTorch."""

def ceil(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The smallest whole number not below x."""

def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """The product of several matrices, left to right."""

def channel_shuffle(input: Tensor, groups: _builtins.int) -> Tensor:
    """(batch, c, ...) with its channels, seen as (groups, c / groups), in the order (c / groups, groups) (Zhang et al. 2018)."""

def chunk(input: Tensor, chunks: _builtins.int, dim: _builtins.int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` parts of equal size, the last smaller where they do not divide."""

def clamp(input: Tensor, min: Any | None = None, max: Any | None = None, *, out: Tensor | None = None) -> Tensor:
    """x, but at least min and at most max (tensors that broadcast, numbers, or None); max wins where min exceeds it."""

def clamp_max(input: Tensor, max: Any, *, out: Tensor | None = None) -> Tensor:
    """x, but at most max."""

def clamp_min(input: Tensor, min: Any, *, out: Tensor | None = None) -> Tensor:
    """x, but at least min."""

def clip(input: Tensor, min: Any | None = None, max: Any | None = None, *, out: Tensor | None = None) -> Tensor:
    """x, but at least min and at most max (tensors that broadcast, numbers, or None); max wins where min exceeds it."""

def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy in fresh memory, in the graph; laid out as x is where x has no gaps, or in another memory format."""

def column_stack(tensors: Any, *, out: Tensor | None = None) -> Tensor:
    """Joined side by side, vectors as columns."""

def complex(real: Tensor, imag: Tensor, *, out: Tensor | None = None) -> Tensor:
    """real + i imag, of two tensors of float32, or of float64, that broadcast."""

def concat(tensors: Any, dim: _builtins.int = 0, *, out: Tensor | None = None) -> Tensor:
    """Tensors joined along an existing dimension; empty ones of shape (0,) are left out, as in PyTorch."""

def concatenate(tensors: Any, dim: _builtins.int = 0, *, out: Tensor | None = None) -> Tensor:
    """Tensors joined along an existing dimension; empty ones of shape (0,) are left out, as in PyTorch."""

def conj(input: Tensor) -> Tensor:
    """The complex conjugate, computed at once (no lazy view, as PyTorch's is); a real x itself."""

def conj_physical(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The complex conjugate in memory of its own; of a real x a copy."""

def constant_pad_nd(input: Tensor, pad: Sequence[_builtins.int], value: Any = 0) -> Tensor:
    """x with `value` around it: pad is (before, after) of the last dimension, then of the one before it, and so on; negative cuts off."""

def cos(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The cosine of x in radians."""

def cosh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The hyperbolic cosine."""

def cosine_similarity(x1: Tensor, x2: Tensor, dim: _builtins.int = 1, eps: _builtins.float = 1e-08) -> Tensor:
    """x1 . x2 / (max(|x1|, eps) max(|x2|, eps)) along dim, of inputs that broadcast."""

def count_nonzero(input: Tensor, dim: _builtins.int | Sequence[_builtins.int] | None = None, *, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _builtins.bool = False) -> Tensor:
    """How many elements over dims are not zero, int64."""

def cumsum(input: Tensor, dim: _builtins.int | None = None, *, dtype: Any = None, axis: _builtins.int | None = None, out: Tensor | None = None) -> Tensor:
    """Running sum along dim (a 1-d tensor needs none); integers and bools in int64."""

def cumulative_sum(input: Tensor, dim: _builtins.int | None = None, *, dtype: Any = None, axis: _builtins.int | None = None, out: Tensor | None = None) -> Tensor:
    """Running sum along dim (a 1-d tensor needs none); integers and bools in int64."""

def deg2rad(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Degrees as radians."""

def diag(input: Tensor, diagonal: _builtins.int = 0, *, out: Tensor | None = None) -> Tensor:
    """The diagonal of a matrix (a copy; `diagonal` gives a view), or the matrix with a vector on its diagonal."""

def diag_embed(input: Tensor, offset: _builtins.int = 0, dim1: _builtins.int = -2, dim2: _builtins.int = -1) -> Tensor:
    """Zeros with x's last dimension on the diagonal of dim1 and dim2."""

def diagonal(input: Tensor, offset: _builtins.int = 0, dim1: _builtins.int = 0, dim2: _builtins.int = 1) -> Tensor:
    """The diagonal of two dimensions as the last one; `offset` above (positive) or below the main one."""

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

def dsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Parts along dim 2."""

def dstack(tensors: Any, *, out: Tensor | None = None) -> Tensor:
    """Joined along dim 2, after vectors and matrices got one."""

def einsum(equation: Any, *operands: Any) -> Tensor:
    """Sum of products in Einstein's notation: `einsum("bij,bjk->bik", x, y)`; "..." stands for broadcast dimensions."""

def empty(*size: Any, dtype: Any = None, device: Any = None, pin_memory: _builtins.bool = False, memory_format: Any = None, out: Tensor | None = None, layout: Any = None, requires_grad: _builtins.bool = False) -> Tensor:
    """Uninitialised memory of a shape, in C order or another memory format."""

def empty_like(input: Tensor, *, dtype: Any = None, device: Any = None, memory_format: Any = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """Uninitialised memory of x's shape, dtype, device and layout, or in a memory format."""

def eq(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Whether x == other, element by element."""

def equal(input: Tensor, other: Tensor) -> _builtins.bool:
    """Whether both have the same shape and elements."""

def erf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The error function."""

def erfc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """1 - erf(x), accurate where erf is near 1."""

def exp(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """e to the power x."""

def exp2(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """2 to the power x."""

def expand(input: Tensor, *size: Any, implicit: _builtins.bool = False) -> Tensor:
    """Dimensions of size 1 stretched, new ones put in front, without copying; -1 keeps a size. `implicit` changes nothing."""

def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """x.expand(other.shape)."""

def expand_dims(input: Tensor, dim: Any = 0) -> Tensor:
    """numpy's name for unsqueeze; several dims as a tuple."""

def expit(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """1 / (1 + exp(-x))."""

def expm1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """exp(x) - 1, accurate near 0."""

def exponential_(input: Tensor, lambd: _builtins.float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Overwrite x with exponential numbers of rate lambd."""

def eye(n: _builtins.int, m: _builtins.int | None = None, *, dtype: Any = None, device: Any = None, out: Tensor | None = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """Ones on the diagonal of an (n, m) matrix; m is n where not given."""

def fix(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x without its fraction."""

def flatten(input: Tensor, start_dim: _builtins.int = 0, end_dim: _builtins.int = -1) -> Tensor:
    """Dimensions start_dim to end_dim joined into one; copies only where strides need that."""

def flip(input: Tensor, *dims: Any) -> Tensor:
    """The elements in reverse order along dimensions: `x.flip(0, 1)`; a copy. None named: along all."""

def fliplr(input: Tensor) -> Tensor:
    """Columns in reverse order."""

def flipud(input: Tensor) -> Tensor:
    """Rows in reverse order."""

def floor(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The largest whole number not above x."""

def floor_divide(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """floor(x / other) in x's type; integers on the CPU divided by 0 raise DivisionByZeroError."""

def fmod(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """x - trunc(x / other) * other: it has the sign of x."""

def frac(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x - trunc(x)."""

def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: _builtins.bool | None = None) -> Tensor:
    """A tensor on the memory of anything that speaks DLPack, or of a capsule, on the CPU or a GPU; on `device`, or a copy, where one is asked for."""

def from_numpy(ndarray: Any) -> Tensor:
    """A tensor on the memory of a numpy array: writes are seen on both sides."""

def full(size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, out: Tensor | None = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """One value in a shape; without dtype, bool, int64 or the default floating type as the value is."""

def full_like(input: Tensor, fill_value: Any, *, dtype: Any = None, device: Any = None, memory_format: Any = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """One value in x's shape, dtype, device and layout, or in a memory format."""

def gather(input: Tensor, dim: _builtins.int, index: Tensor, *, sparse_grad: _builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """y[.., i, ..] = x[.., index[.., i, ..], ..] along `dim`; y has index's shape. `sparse_grad` is accepted; gradients are dense."""

def ge(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Whether x >= other."""

def ger(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """input[i] * vec2[j]: (n,), (m,) to (n, m)."""

def get_default_dtype() -> Any:
    """The floating type of `tensor(1.5)` and `rand(3)`; float32 unless set_default_dtype changed it."""

def greater(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Whether x > other."""

def greater_equal(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Whether x >= other."""

def grid_sampler(input: Tensor, grid: Tensor, interpolation_mode: _builtins.int, padding_mode: _builtins.int, align_corners: _builtins.bool) -> Tensor:
    """grid_sample with its modes by number: bilinear, nearest, bicubic; zeros, border, reflection."""

def grid_sampler_2d(input: Tensor, grid: Tensor, interpolation_mode: _builtins.int, padding_mode: _builtins.int, align_corners: _builtins.bool) -> Tensor:
    """grid_sampler of images (batch, c, h, w)."""

def grid_sampler_3d(input: Tensor, grid: Tensor, interpolation_mode: _builtins.int, padding_mode: _builtins.int, align_corners: _builtins.bool) -> Tensor:
    """grid_sampler of volumes (batch, c, d, h, w)."""

def gt(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Whether x > other."""

def heaviside(input: Tensor, values: Tensor, *, out: Tensor | None = None) -> Tensor:
    """0 below 0, `values` at 0, 1 above."""

def hsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Parts along dim 1, along dim 0 of a vector."""

def hstack(tensors: Any, *, out: Tensor | None = None) -> Tensor:
    """Joined side by side: along dim 1, vectors along dim 0."""

def hypot(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
    """sqrt(x^2 + other^2), whose squares neither overflow nor vanish; inf where one is infinite, NaN beside it or not. Its gradient at the origin is 0."""

def imag(input: Tensor) -> Tensor:
    """The imaginary parts, a view. Raises DTypeError for real numbers, which have none to look at."""

def index_add(input: Tensor, dim: _builtins.int, index: Tensor, source: Tensor, *, alpha: _builtins.float = 1, out: Tensor | None = None) -> Tensor:
    """A copy of x with alpha * source's slices added at the indices of a dimension."""

def index_copy(input: Tensor, dim: _builtins.int, index: Tensor, source: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy of x with source's slices written at the indices of a dimension."""

def index_fill(input: Tensor, dim: _builtins.int, index: Tensor, value: Any) -> Tensor:
    """A copy of x with one value written at the indices of a dimension."""

def index_put(input: Tensor, indices: Any, values: Tensor, accumulate: _builtins.bool = False) -> Tensor:
    """A copy of x with values written, or added with `accumulate`, at a tuple of index tensors."""

def index_select(input: Tensor, dim: _builtins.int, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The slices of a dimension that a vector of indices names."""

def inner(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Sum of products over the last dimension of both; with a 0-d operand, their product."""

def is_conj(input: Tensor) -> _builtins.bool:
    """Whether x is conjugated lazily: never, here."""

def is_floating_point(input: Tensor) -> _builtins.bool:
    """Whether a tensor's type is a floating one."""

def is_neg(input: Tensor) -> _builtins.bool:
    """Whether x is negated lazily: never, here."""

def is_tensor(x: _builtins.object) -> _builtins.bool:
    """Whether x is a Tensor."""

def isclose(input: Tensor, other: Tensor, rtol: _builtins.float = 1e-05, atol: _builtins.float = 1e-08, equal_nan: _builtins.bool = False) -> Tensor:
    """|x - other| <= atol + rtol * |other|, element by element; equal infinities are close, NaN to NaN only with `equal_nan`."""

def isfinite(input: Tensor) -> Tensor:
    """Whether x is neither infinite nor NaN."""

def isinf(input: Tensor) -> Tensor:
    """Whether x is infinite."""

def isnan(input: Tensor) -> Tensor:
    """Whether x is NaN."""

def istft(input: Tensor, n_fft: _builtins.int, hop_length: _builtins.int | None = None, win_length: _builtins.int | None = None, window: Tensor | None = None, center: _builtins.bool = True, normalized: _builtins.bool = False, onesided: _builtins.bool | None = None, length: _builtins.int | None = None, return_complex: _builtins.bool = False) -> Tensor:
    """The signal whose spectra are nearest, in the squared error, to those given: the inverse of `stft`, with the same arguments."""

def le(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Whether x <= other."""

def lerp(input: Tensor, end: Any, weight: Any, *, out: Tensor | None = None) -> Tensor:
    """x + weight * (end - x)."""

def less(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Whether x < other."""

def less_equal(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Whether x <= other."""

def linspace(start: Any, end: Any, steps: _builtins.int, *, dtype: Any = None, device: Any = None, out: Tensor | None = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """`steps` numbers from start to end, both included."""

def log(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The natural logarithm; NaN below 0."""

def log10(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm to base 10."""

def log1p(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """log(1 + x), accurate near 0."""

def log2(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm to base 2."""

def log_softmax(input: Tensor, dim: _builtins.int | None = None, dtype: Any = None, *, axis: _builtins.int | None = None, out: Tensor | None = None) -> Tensor:
    """x - log sum e^x along dim; `dtype`: cast x first."""

def logaddexp(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """log(exp(x) + exp(other)) without overflow. Between two equal infinities its gradient is NaN."""

def logical_and(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Whether neither is 0."""

def logical_not(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether x is 0."""

def logical_or(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Whether one of them is not 0."""

def logical_xor(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Whether exactly one of them is 0."""

def logit(input: Tensor, eps: _builtins.float | None = None, *, out: Tensor | None = None) -> Tensor:
    """log(x / (1 - x)), NaN outside [0, 1] as is its gradient; x first clamped to [eps, 1 - eps] where eps is given."""

def logspace(start: Any, end: Any, steps: _builtins.int, base: _builtins.float = 10.0, *, dtype: Any = None, device: Any = None, out: Tensor | None = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """base ** linspace(start, end, steps)."""

def logsumexp(input: Tensor, dim: _builtins.int | Sequence[_builtins.int] | None = None, keepdim: _builtins.bool = False, *, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _builtins.bool | None = None, out: Tensor | None = None) -> Tensor:
    """log sum e^x over dims, from the largest element down, so that nothing overflows; -inf over no elements."""

def lt(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Whether x < other."""

def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """x with `value`, a number or 0-d tensor, where mask is True; the number becomes one of x's type."""

def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """x with its elements where mask is True replaced by the first elements of source, in order; x and mask broadcast to each other."""

def masked_select(input: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements where mask (which broadcasts with x) is True, as a vector."""

def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Matrix product with numpy's rules: (..., m, k) @ (..., k, n), batches broadcast, a 1-d operand is a row or a column."""

def matrix_transpose(input: Tensor) -> Tensor:
    """The last two dimensions exchanged."""

def max(input: Tensor, dim: Any = None, keepdim: _builtins.bool = False, *, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _builtins.bool | None = None, other: Tensor | None = None, out: Tensor | None = None) -> Any:
    """max(x): the largest element. max(x, dim): (values, indices). max(x, other): the larger of each pair."""

def maximum(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
    """The larger of x and other, NaN where either is; at a tie each gets half of the gradient."""

def mean(input: Tensor, dim: _builtins.int | Sequence[_builtins.int] | None = None, keepdim: _builtins.bool = False, *, dtype: Any = None, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _builtins.bool | None = None, out: Tensor | None = None) -> Tensor:
    """Mean over dims, of floating types (DTypeError for others; cast them or give dtype). NaN over no elements."""

def meshgrid(*tensors: Tensor, indexing: _builtins.str = 'ij') -> tuple[Tensor, ...]:
    """Coordinates of the grid that vectors span, as views; indexing "ij" (matrix) or "xy" (Cartesian)."""

def min(input: Tensor, dim: Any = None, keepdim: _builtins.bool = False, *, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _builtins.bool | None = None, other: Tensor | None = None, out: Tensor | None = None) -> Any:
    """min(x): the smallest element. min(x, dim): (values, indices). min(x, other): the smaller of each pair. NaN counts as smallest."""

def minimum(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
    """The smaller of x and other, NaN where either is; at a tie each gets half of the gradient."""

def mm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """(m, k) @ (k, n), without broadcasting."""

def moveaxis(input: Tensor, source: Any, destination: Any) -> Tensor:
    """Dimensions `source` moved to `destination`; the others keep their order."""

def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """Dimensions `source` moved to `destination`; the others keep their order."""

def mul(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
    """x * other."""

def multinomial(input: Tensor, num_samples: _builtins.int, replacement: _builtins.bool = False, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor:
    """Indices drawn with probabilities proportional to the weights in x, (n,) or (rows, n). Without replacement each comes at most once,"""

def multiply(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
    """x * other."""

def mv(input: Tensor, vec: Tensor, *, out: Tensor | None = None) -> Tensor:
    """(m, k) @ (k,)."""

def nan_to_num(input: Tensor, nan: _builtins.float | None = None, posinf: _builtins.float | None = None, neginf: _builtins.float | None = None, *, out: Tensor | None = None) -> Tensor:
    """x with NaN (by 0) and infinities replaced, infinities by the type's largest and smallest values unless given."""

def nanmean(input: Tensor, dim: _builtins.int | Sequence[_builtins.int] | None = None, keepdim: _builtins.bool = False, *, dtype: Any = None, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _builtins.bool | None = None, out: Tensor | None = None) -> Tensor:
    """Mean over dims of what is not NaN."""

def nansum(input: Tensor, dim: _builtins.int | Sequence[_builtins.int] | None = None, keepdim: _builtins.bool = False, *, dtype: Any = None, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _builtins.bool | None = None, out: Tensor | None = None) -> Tensor:
    """Sum over dims of what is not NaN."""

def narrow(input: Tensor, dim: _builtins.int, start: _builtins.int, length: _builtins.int) -> Tensor:
    """Elements start to start + length - 1 of a dimension."""

def native_channel_shuffle(input: Tensor, groups: _builtins.int) -> Tensor:
    """channel_shuffle under the name of PyTorch's operator."""

def ne(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Whether x != other."""

def neg(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """-x."""

def negative(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """-x."""

def nonzero(input: Tensor, *, as_tuple: _builtins.bool = False, out: Tensor | None = None) -> Any:
    """Positions of the elements that are not 0: (count, ndim), or a vector per dimension. Waits for the device."""

def norm(input: Tensor, p: _builtins.float | _builtins.str | None = 'fro', dim: _builtins.int | Sequence[_builtins.int] | None = None, keepdim: _builtins.bool = False, dtype: Any = None, *, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _builtins.bool | None = None, out: Tensor | None = None) -> Tensor:
    """The p-norm over dims, (sum |x|^p)^(1/p): p = 2 (or "fro", None), 1, 0 (how many are not zero), inf, -inf, or any number."""

def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Generator | None = None, dtype: Any = None, device: Any = None, out: Tensor | None = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """Normal numbers; mean and std are numbers (with a size) or tensors that broadcast, of mean's type where it is a tensor."""

def normal_(input: Tensor, mean: _builtins.float = 0.0, std: _builtins.float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Overwrite x with normal numbers."""

def not_equal(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Whether x != other."""

def numel(input: Tensor) -> _builtins.int:
    """How many elements a tensor has."""

def ones(*size: Any, dtype: Any = None, device: Any = None, out: Tensor | None = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """Ones of a shape."""

def ones_like(input: Tensor, *, dtype: Any = None, device: Any = None, memory_format: Any = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """Ones of x's shape, dtype, device and layout, or in a memory format."""

def outer(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """input[i] * vec2[j]: (n,), (m,) to (n, m)."""

def pairwise_distance(x1: Tensor, x2: Tensor, p: _builtins.float = 2.0, eps: _builtins.float = 1e-06, keepdim: _builtins.bool = False) -> Tensor:
    """|x1 - x2 + eps|_p over the last dimension, of inputs that broadcast."""

def permute(input: Tensor, *dims: Any) -> Tensor:
    """Dimensions in the order given: `x.permute(2, 0, 1)`."""

def permute_dims(input: Tensor, *dims: Any) -> Tensor:
    """Dimensions in the order given: `x.permute(2, 0, 1)`."""

def pixel_shuffle(input: Tensor, upscale_factor: _builtins.int) -> Tensor:
    """(..., c r^2, h, w) -> (..., c, h r, w r): r^2 channels become the r x r pixels of one (Shi et al. 2016)."""

def pixel_unshuffle(input: Tensor, downscale_factor: _builtins.int) -> Tensor:
    """(..., c, h r, w r) -> (..., c r^2, h, w): pixel_shuffle undone."""

def polar(abs: Tensor, angle: Tensor, *, out: Tensor | None = None) -> Tensor:
    """abs (cos angle + i sin angle), of two tensors of float32, or of float64, that broadcast."""

def positive(input: Tensor) -> Tensor:
    """x itself. Raises DTypeError for bool."""

def pow(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """x to the power other; integers stay integers."""

def prod(input: Tensor, dim: _builtins.int | Sequence[_builtins.int] | None = None, keepdim: _builtins.bool = False, *, dtype: Any = None, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _builtins.bool | None = None, out: Tensor | None = None) -> Tensor:
    """Product over dims; integers and bools in int64. The gradient is exact where elements are zero."""

def rad2deg(input: Tensor, *, out: Tensor | None = None) -> Tensor:
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

def ravel(input: Tensor) -> Tensor:
    """x in one dimension; copies only where its strides need that."""

def real(input: Tensor) -> Tensor:
    """The real parts: of complex numbers a view, of real ones x itself."""

def reciprocal(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """1 / x."""

def relu(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """max(x, 0); the gradient at 0 is 0."""

def remainder(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """x - floor(x / other) * other: it has the sign of other."""

def repeat(input: Tensor, *repeats: Any) -> Tensor:
    """x laid side by side, `repeats` times along each dimension (new ones in front); always a copy."""

def repeat_interleave(input: Any = None, repeats: Any = None, dim: _builtins.int | None = None, *, output_size: _builtins.int | None = None) -> Tensor:
    """Each element (or slice along `dim`) repeated in place: so many times, or as often as a tensor of counts says."""

def reshape(input: Tensor, *shape: Any) -> Tensor:
    """x's elements in C order under another shape, one size may be -1; a view where x's strides allow one, else a copy."""

def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """x.reshape(other.shape)."""

def resolve_conj(input: Tensor) -> Tensor:
    """x itself: no tensor here is conjugated lazily."""

def resolve_neg(input: Tensor) -> Tensor:
    """x itself: no tensor here is negated lazily."""

def roll(input: Tensor, shifts: Any, dims: Any = None) -> Tensor:
    """Elements shifted along dimensions, coming back at the other end; over the flattened tensor where none is named."""

def rot90(input: Tensor, k: _builtins.int = 1, dims: Any = (0, 1)) -> Tensor:
    """Turned k times by 90 degrees from the first of two dimensions towards the second."""

def round(input: Tensor, *, decimals: _builtins.int = 0, out: Tensor | None = None) -> Tensor:
    """x rounded to `decimals` places, halves to the even neighbour; integers come back copied."""

def row_stack(tensors: Any, *, out: Tensor | None = None) -> Tensor:
    """Joined row by row: vectors count as rows."""

def rsqrt(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """1 / sqrt(x)."""

def rsub(input: Tensor, other: Any, *, alpha: _builtins.float = 1) -> Tensor:
    """other - alpha * x."""

def scalar_tensor(s: Any, *, dtype: Any = None, device: Any = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """A 0-d tensor, floating unless dtype says otherwise."""

def scatter(input: Tensor, dim: _builtins.int, index: Tensor, src: Any = None, *, value: Any = None, reduce: _builtins.str | None = None, out: Tensor | None = None) -> Tensor:
    """A copy of x with src[.., j, ..] (or a number) written at [.., index[.., j, ..], ..]; of repeated positions the last one stays."""

def scatter_add(input: Tensor, dim: _builtins.int, index: Tensor, src: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy of x with src[.., j, ..] added at [.., index[.., j, ..], ..] along `dim`, in a fixed order."""

def select(input: Tensor, dim: _builtins.int, index: _builtins.int) -> Tensor:
    """x at one index of a dimension, which goes."""

def set_default_dtype(dtype: Any) -> None:
    """Make `dtype` (float16, bfloat16, float32 or float64) the floating type of `tensor(1.5)` and `rand(3)`."""

def sgn(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x / |x| of complex numbers, 0 at 0; the sign of real ones."""

def sigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """1 / (1 + exp(-x))."""

def sign(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """1, 0 or -1 by the sign of x; its gradient is 0. Raises DTypeError for complex numbers, which `sgn` takes."""

def sin(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The sine of x in radians."""

def sinh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The hyperbolic sine."""

def softmax(input: Tensor, dim: _builtins.int | None = None, dtype: Any = None, *, axis: _builtins.int | None = None, out: Tensor | None = None) -> Tensor:
    """e^x / sum e^x along dim; `dtype`: cast x first."""

def split(input: Tensor, split_size_or_sections: Any, dim: _builtins.int = 0) -> tuple[Tensor, ...]:
    """Parts of a size (the last may be smaller), or of the sizes listed."""

def split_with_sizes(input: Tensor, split_sizes: Any, dim: _builtins.int = 0) -> tuple[Tensor, ...]:
    """Parts of the sizes listed."""

def sqrt(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The square root, correctly rounded; NaN below 0."""

def square(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x * x."""

def squeeze(input: Tensor, dim: Any = None) -> Tensor:
    """Without dimensions of size 1: all of them, or those named (others stay)."""

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

def swapaxes(input: Tensor, *dims: Any, dim0: _builtins.int | None = None, dim1: _builtins.int | None = None) -> Tensor:
    """Two dimensions exchanged: `x.transpose(0, 1)`. Also numpy's forms: a permutation as one sequence, or nothing to reverse all."""

def swapdims(input: Tensor, *dims: Any, dim0: _builtins.int | None = None, dim1: _builtins.int | None = None) -> Tensor:
    """Two dimensions exchanged: `x.transpose(0, 1)`. Also numpy's forms: a permutation as one sequence, or nothing to reverse all."""

def t(input: Tensor) -> Tensor:
    """The transpose of a matrix; a view of all of x with fewer dimensions."""

def take(input: Tensor, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Elements of the flattened tensor, in index's shape."""

def take_along_axis(input: Tensor, indices: Tensor, axis: _builtins.int | None = -1) -> Tensor:
    """numpy's name for take_along_dim, and numpy's default: the last axis."""

def take_along_dim(input: Tensor, indices: Tensor, dim: _builtins.int | None = None, *, out: Tensor | None = None) -> Tensor:
    """gather with broadcasting: x and indices stretch to each other outside `dim`, where negative ones count from the end."""

def tan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The tangent of x in radians."""

def tanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The hyperbolic tangent."""

def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: _builtins.bool = False, pin_memory: _builtins.bool = False) -> Tensor:
    """A copy of data: a number, nested lists, a numpy array, a tensor."""

def tensor_split(input: Tensor, indices_or_sections: Any, dim: _builtins.int = 0) -> tuple[Tensor, ...]:
    """So many parts (sizes differ by one at most), or the parts between the indices listed."""

def tensordot(a: Tensor, b: Tensor, dims: _builtins.int | Tensor | Sequence[Any] = 2, *, out: Tensor | None = None) -> Tensor:
    """Sum of products over `dims`: the last `dims` of a with the first of b, or a pair of lists that name them."""

def tile(input: Tensor, *dims: Any) -> Tensor:
    """numpy's repeat: `dims` may be shorter than x's shape."""

def transpose(input: Tensor, *dims: Any, dim0: _builtins.int | None = None, dim1: _builtins.int | None = None) -> Tensor:
    """Two dimensions exchanged: `x.transpose(0, 1)`. Also numpy's forms: a permutation as one sequence, or nothing to reverse all."""

def tril(input: Tensor, diagonal: _builtins.int = 0, *, out: Tensor | None = None) -> Tensor:
    """The lower triangle of the last two dimensions, zeros elsewhere."""

def tril_indices(row: _builtins.int, col: _builtins.int, offset: _builtins.int = 0, *, dtype: Any = None, device: Any = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """Row and column numbers of the lower triangle: (2, count)."""

def triu(input: Tensor, diagonal: _builtins.int = 0, *, out: Tensor | None = None) -> Tensor:
    """The upper triangle of the last two dimensions, zeros elsewhere."""

def triu_indices(row: _builtins.int, col: _builtins.int, offset: _builtins.int = 0, *, dtype: Any = None, device: Any = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """Row and column numbers of the upper triangle: (2, count)."""

def true_divide(input: Tensor, other: Any, *, rounding_mode: _builtins.str | None = None, out: Tensor | None = None) -> Tensor:
    """x / other."""

def trunc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x without its fraction."""

def unbind(input: Tensor, dim: _builtins.int = 0) -> tuple[Tensor, ...]:
    """All slices along a dimension."""

def unflatten(input: Tensor, dim: _builtins.int, sizes: Any) -> Tensor:
    """Dimension `dim` split into `sizes`, one of which may be -1."""

def unfold(input: Tensor, dimension: _builtins.int, size: _builtins.int, step: _builtins.int) -> Tensor:
    """All windows of `size` elements along a dimension, `step` apart, in a new last dimension."""

def uniform_(input: Tensor, a: _builtins.float = 0.0, b: _builtins.float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Overwrite x with uniform numbers of [a, b)."""

def unsqueeze(input: Tensor, dim: _builtins.int) -> Tensor:
    """With a new dimension of size 1 at `dim`."""

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

def view_as_real(input: Tensor) -> Tensor:
    """Complex numbers (...) as pairs of real ones (..., 2), a view."""

def vsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Parts along dim 0."""

def vstack(tensors: Any, *, out: Tensor | None = None) -> Tensor:
    """Joined row by row: vectors count as rows."""

def where(condition: Tensor, input: Any | None = None, other: Any | None = None, *, out: Tensor | None = None) -> Any:
    """input where condition holds, else other: tensors that broadcast, or numbers. With condition alone: where it holds, as `nonzero(as_tuple=True)`."""

def xlogy(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """x * log(other), 0 where x is 0 and other no NaN; integers give floats. One of them may be a number."""

def zeros(*size: Any, dtype: Any = None, device: Any = None, out: Tensor | None = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """Zeros of a shape: `zeros(2, 3)` or `zeros((2, 3))`."""

def zeros_like(input: Tensor, *, dtype: Any = None, device: Any = None, memory_format: Any = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """Zeros of x's shape, dtype, device and layout, or in a memory format."""
