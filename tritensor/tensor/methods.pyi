# Written by `python -m tritensor.tools.stubs`; edit the functions themselves.
import builtins as _builtins
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tritensor.random import Generator
from tritensor.tensor.core import Tensor
from tritensor.tensor.size import Size

class Methods:
    """The methods and operators of Tensor that the files of tensor/functions publish."""

    @property
    def H(self) -> Tensor:
        """The transpose of a matrix, complex numbers conjugated."""

    @property
    def T(self) -> Tensor:
        """All dimensions in reverse order."""

    def __abs__(self) -> Any: ...

    def __add__(self, other: Any) -> Any: ...

    def __and__(self, other: Any) -> Any: ...

    def __array_ufunc__(self, ufunc: Any, method: _builtins.str, *inputs: Any, **options: Any) -> Any:
        """A function of numpy that was given a tensor. An operator (`ndarray + tensor`) is the tensor's own, gradients included; any other"""

    def __eq__(self, other: Any) -> Any:  # type: ignore[override]
        """Return self==value."""

    def __floordiv__(self, other: Any) -> Any: ...

    def __ge__(self, other: Any) -> Any:
        """Return self>=value."""

    def __getitem__(self, index: Any, plain_only: _builtins.bool = False) -> Any:
        """x[index]: a view for ints (0-d integer tensors too), slices, None and ..., a copy as soon as an array, list or mask takes part."""

    def __gt__(self, other: Any) -> Any:
        """Return self>value."""

    def __iadd__(self, other: Any) -> Any: ...

    def __iand__(self, other: Any) -> Any: ...

    def __ifloordiv__(self, other: Any) -> Any: ...

    def __ilshift__(self, other: Any) -> Any: ...

    def __imatmul__(self, other: Any) -> Any: ...

    def __imod__(self, other: Any) -> Any: ...

    def __imul__(self, other: Any) -> Any: ...

    def __invert__(self) -> Any: ...

    def __ior__(self, other: Any) -> Any: ...

    def __ipow__(self, other: Any) -> Any: ...

    def __irshift__(self, other: Any) -> Any: ...

    def __isub__(self, other: Any) -> Any: ...

    def __itruediv__(self, other: Any) -> Any: ...

    def __ixor__(self, other: Any) -> Any: ...

    def __le__(self, other: Any) -> Any:
        """Return self<=value."""

    def __lshift__(self, other: Any) -> Any: ...

    def __lt__(self, other: Any) -> Any:
        """Return self<value."""

    def __matmul__(self, other: Any) -> Any: ...

    def __mod__(self, other: Any) -> Any: ...

    def __mul__(self, other: Any) -> Any: ...

    def __ne__(self, other: Any) -> Any:  # type: ignore[override]
        """Return self!=value."""

    def __neg__(self) -> Any: ...

    def __or__(self, other: Any) -> Any:
        """Return self|value."""

    def __pos__(self) -> Tensor: ...

    def __pow__(self, other: Any) -> Any: ...

    def __radd__(self, other: Any) -> Any: ...

    def __rand__(self, other: Any) -> Any: ...

    def __rdiv__(self, other: Any) -> Any: ...

    def __repr__(self) -> _builtins.str: ...

    def __rfloordiv__(self, other: Any) -> Any: ...

    def __rlshift__(self, other: Any) -> Any: ...

    def __rmatmul__(self, other: Any) -> Any: ...

    def __rmod__(self, other: Any) -> Any: ...

    def __rmul__(self, other: Any) -> Any: ...

    def __ror__(self, other: Any) -> Any:
        """Return value|self."""

    def __rpow__(self, other: Any) -> Any: ...

    def __rrshift__(self, other: Any) -> Any: ...

    def __rshift__(self, other: Any) -> Any: ...

    def __rsub__(self, other: Any) -> Any: ...

    def __rtruediv__(self, other: Any) -> Any: ...

    def __rxor__(self, other: Any) -> Any: ...

    def __setitem__(self, index: Any, value: Any) -> None:
        """x[index] = value, which broadcasts and is cast; recorded by autograd. Of repeated positions the last one stays."""

    def __sub__(self, other: Any) -> Any: ...

    def __truediv__(self, other: Any) -> Any: ...

    def __xor__(self, other: Any) -> Any: ...

    def _is_view(self) -> _builtins.bool:
        """Whether the tensor is a view of another one, which `_base` is."""

    def abs(self, *, out: Tensor | None = None) -> Tensor:
        """The absolute value; its gradient at 0 is 0."""

    def abs_(self) -> Tensor:
        """The absolute value; its gradient at 0 is 0."""

    def absolute(self, *, out: Tensor | None = None) -> Tensor:
        """The absolute value; its gradient at 0 is 0."""

    def absolute_(self) -> Tensor:
        """The absolute value; its gradient at 0 is 0."""

    def acos(self, *, out: Tensor | None = None) -> Tensor:
        """The inverse cosine."""

    def acos_(self) -> Tensor:
        """The inverse cosine."""

    def acosh(self, *, out: Tensor | None = None) -> Tensor:
        """The inverse hyperbolic cosine."""

    def acosh_(self) -> Tensor:
        """The inverse hyperbolic cosine."""

    def add(self, other: Any, *, alpha: _builtins.float = 1, out: Tensor | None = None) -> Tensor:
        """x + alpha * other."""

    def add_(self, other: Any, *, alpha: _builtins.float = 1) -> Tensor:
        """x + alpha * other."""

    def addbmm(self, batch1: Tensor, batch2: Tensor, *, beta: _builtins.float = 1, alpha: _builtins.float = 1, out: Tensor | None = None) -> Tensor:
        """beta * input + alpha * the sum over the batch of bmm(batch1, batch2), as one product: of rows of all matrices by columns of all."""

    def addbmm_(self, batch1: Tensor, batch2: Tensor, *, beta: _builtins.float = 1, alpha: _builtins.float = 1) -> Tensor:
        """addbmm in place; a tensor that no graph remembers, and that is smaller than the sum, gets its shape, as in PyTorch."""

    def addcdiv(self, tensor1: Any, tensor2: Any, *, value: _builtins.float = 1, out: Tensor | None = None) -> Tensor:
        """x + value * tensor1 / tensor2."""

    def addcdiv_(self, tensor1: Any, tensor2: Any, *, value: _builtins.float = 1) -> Tensor:
        """x + value * tensor1 / tensor2."""

    def addcmul(self, tensor1: Any, tensor2: Any, *, value: _builtins.float = 1, out: Tensor | None = None) -> Tensor:
        """x + value * tensor1 * tensor2; of integers value is cut to a whole number."""

    def addcmul_(self, tensor1: Any, tensor2: Any, *, value: _builtins.float = 1) -> Tensor:
        """x + value * tensor1 * tensor2; of integers value is cut to a whole number."""

    def addmm(self, mat1: Tensor, mat2: Tensor, *, beta: _builtins.float = 1, alpha: _builtins.float = 1, out: Tensor | None = None) -> Tensor:
        """beta * input + alpha * (mat1 @ mat2); input broadcasts to the product's shape. Of integers beta and alpha are cut to whole numbers."""

    def addmm_(self, mat1: Tensor, mat2: Tensor, *, beta: _builtins.float = 1, alpha: _builtins.float = 1) -> Tensor:
        """beta * input + alpha * (mat1 @ mat2); input broadcasts to the product's shape. Of integers beta and alpha are cut to whole numbers."""

    def addmv(self, mat: Tensor, vec: Tensor, *, beta: _builtins.float = 1, alpha: _builtins.float = 1, out: Tensor | None = None) -> Tensor:
        """beta * input + alpha * (mat @ vec)."""

    def addmv_(self, mat: Tensor, vec: Tensor, *, beta: _builtins.float = 1, alpha: _builtins.float = 1) -> Tensor:
        """beta * input + alpha * (mat @ vec)."""

    def addr(self, vec1: Tensor, vec2: Tensor, *, beta: _builtins.float = 1, alpha: _builtins.float = 1, out: Tensor | None = None) -> Tensor:
        """beta * input + alpha * outer(vec1, vec2); of bools (beta and input) or (alpha and vec1 and vec2). Raises DTypeError for fractions and integers."""

    def addr_(self, vec1: Tensor, vec2: Tensor, *, beta: _builtins.float = 1, alpha: _builtins.float = 1) -> Tensor:
        """beta * input + alpha * outer(vec1, vec2); of bools (beta and input) or (alpha and vec1 and vec2). Raises DTypeError for fractions and integers."""

    def adjoint(self) -> Tensor:
        """The last two dimensions exchanged, complex numbers conjugated."""

    def all(self, dim: _builtins.int | Sequence[_builtins.int] | None = None, keepdim: _builtins.bool = False, *, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _builtins.bool | None = None, out: Tensor | None = None) -> Tensor:
        """Whether all elements over dims are not zero; True over none; over dim=() each element's own truth. uint8 stays uint8."""

    def allclose(self, other: Tensor, rtol: _builtins.float = 1e-05, atol: _builtins.float = 1e-08, equal_nan: _builtins.bool = False) -> _builtins.bool:
        """Whether all elements are close (see isclose)."""

    def amax(self, dim: _builtins.int | Sequence[_builtins.int] | None = None, keepdim: _builtins.bool = False, *, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _builtins.bool | None = None, out: Tensor | None = None) -> Tensor:
        """Largest over dims; the gradient is shared evenly among equals. ShapeError over no elements."""

    def amin(self, dim: _builtins.int | Sequence[_builtins.int] | None = None, keepdim: _builtins.bool = False, *, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _builtins.bool | None = None, out: Tensor | None = None) -> Tensor:
        """Smallest over dims; the gradient is shared evenly among equals. ShapeError over no elements."""

    def aminmax(self, *, dim: _builtins.int | Sequence[_builtins.int] | None = None, keepdim: _builtins.bool = False, out: Tensor | None = None) -> Any:
        """(min, max): smallest and largest over dims; gradients as those of amin and amax."""

    def angle(self, *, out: Tensor | None = None) -> Tensor:
        """The angle of complex numbers in (-pi, pi]; of real ones 0, pi below 0, NaN of NaN. The gradient of a real x is 0."""

    def any(self, dim: _builtins.int | Sequence[_builtins.int] | None = None, keepdim: _builtins.bool = False, *, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _builtins.bool | None = None, out: Tensor | None = None) -> Tensor:
        """Whether any element over dims is not zero (NaN is not); over dim=() each element's own truth. uint8 stays uint8."""

    def apply_(self, callable: Callable[[Any], Any]) -> Tensor:
        """Write callable(v) over every element v: a Python call for each, on the CPU, for trying things out. Returns x."""

    def arccos(self, *, out: Tensor | None = None) -> Tensor:
        """The inverse cosine."""

    def arccos_(self) -> Tensor:
        """The inverse cosine."""

    def arccosh(self, *, out: Tensor | None = None) -> Tensor:
        """The inverse hyperbolic cosine."""

    def arccosh_(self) -> Tensor:
        """The inverse hyperbolic cosine."""

    def arcsin(self, *, out: Tensor | None = None) -> Tensor:
        """The inverse sine."""

    def arcsin_(self) -> Tensor:
        """The inverse sine."""

    def arcsinh(self, *, out: Tensor | None = None) -> Tensor:
        """The inverse hyperbolic sine."""

    def arcsinh_(self) -> Tensor:
        """The inverse hyperbolic sine."""

    def arctan(self, *, out: Tensor | None = None) -> Tensor:
        """The inverse tangent."""

    def arctan2(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The angle of the point (other, x), in (-pi, pi]."""

    def arctan2_(self, other: Tensor) -> Tensor:
        """The angle of the point (other, x), in (-pi, pi]."""

    def arctan_(self) -> Tensor:
        """The inverse tangent."""

    def arctanh(self, *, out: Tensor | None = None) -> Tensor:
        """The inverse hyperbolic tangent."""

    def arctanh_(self) -> Tensor:
        """The inverse hyperbolic tangent."""

    def argmax(self, dim: _builtins.int | None = None, keepdim: _builtins.bool = False, *, axis: _builtins.int | None = None, keepdims: _builtins.bool | None = None, out: Tensor | None = None) -> Tensor:
        """Index (int64) of the first largest along dim, or in the flattened tensor."""

    def argmin(self, dim: _builtins.int | None = None, keepdim: _builtins.bool = False, *, axis: _builtins.int | None = None, keepdims: _builtins.bool | None = None, out: Tensor | None = None) -> Tensor:
        """Index (int64) of the first smallest along dim, or in the flattened tensor."""

    def argsort(self, dim: _builtins.int = -1, descending: _builtins.bool = False, *, stable: _builtins.bool = False, out: Tensor | None = None) -> Tensor:
        """The indices (int64) that sort x along dim; equal elements keep their order, whatever `stable` says."""

    def argwhere(self) -> Tensor:
        """Positions of the elements that are not 0: (count, ndim)."""

    def as_strided(self, size: Any, stride: Any, storage_offset: _builtins.int | None = None) -> Tensor:
        """A view of any shape and strides, in elements, on the whole memory of which x is a view."""

    def as_strided_(self, size: Any, stride: Any, storage_offset: _builtins.int | None = None) -> Tensor:
        """as_strided, in place: the memory stays, this tensor's window on it changes."""

    def as_strided_scatter(self, src: Tensor, size: Any, stride: Any, storage_offset: _builtins.int | None = None) -> Tensor:
        """A copy of x, of x's strides, in which src stands in the window x.as_strided(size, stride, storage_offset)."""

    def as_subclass(self, cls: Any) -> Any:
        """The same memory and place in the graph as an instance of cls, a subclass of Tensor, whose __new__ and __init__ are not called. A view: writes are"""

    def asin(self, *, out: Tensor | None = None) -> Tensor:
        """The inverse sine."""

    def asin_(self) -> Tensor:
        """The inverse sine."""

    def asinh(self, *, out: Tensor | None = None) -> Tensor:
        """The inverse hyperbolic sine."""

    def asinh_(self) -> Tensor:
        """The inverse hyperbolic sine."""

    def astype(self, dtype: Any, copy: _builtins.bool = True) -> Tensor:
        """x as another dtype (the array API's name of `to`)."""

    def atan(self, *, out: Tensor | None = None) -> Tensor:
        """The inverse tangent."""

    def atan2(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The angle of the point (other, x), in (-pi, pi]."""

    def atan2_(self, other: Tensor) -> Tensor:
        """The angle of the point (other, x), in (-pi, pi]."""

    def atan_(self) -> Tensor:
        """The inverse tangent."""

    def atanh(self, *, out: Tensor | None = None) -> Tensor:
        """The inverse hyperbolic tangent."""

    def atanh_(self) -> Tensor:
        """The inverse hyperbolic tangent."""

    def baddbmm(self, batch1: Tensor, batch2: Tensor, *, beta: _builtins.float = 1, alpha: _builtins.float = 1, out: Tensor | None = None) -> Tensor:
        """beta * input + alpha * bmm(batch1, batch2)."""

    def baddbmm_(self, batch1: Tensor, batch2: Tensor, *, beta: _builtins.float = 1, alpha: _builtins.float = 1) -> Tensor:
        """beta * input + alpha * bmm(batch1, batch2)."""

    def bernoulli(self, p: _builtins.float | None = None, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor:
        """1 with probability x (or p, where it is given), else 0, for each element of x."""

    def bernoulli_(self, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
        """Overwrite x with 1 of probability p (a number or a tensor), else 0."""

    def bfloat16(self, memory_format: Any = ...) -> Tensor:
        """x as bfloat16; itself when it is."""

    def bincount(self, weights: Tensor | None = None, minlength: _builtins.int = 0) -> Tensor:
        """How often each of 0, 1, ..., max(x) stands in a 1-d x of integers, int64; with `weights` their sums, in float32 if they are, else float64."""

    def bitwise_and(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Bits set in both."""

    def bitwise_and_(self, other: Any) -> Tensor:
        """Bits set in both."""

    def bitwise_invert(self, *, out: Tensor | None = None) -> Tensor:
        """Every bit flipped; `not` of booleans."""

    def bitwise_invert_(self) -> Tensor:
        """Every bit flipped; `not` of booleans."""

    def bitwise_left_shift(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Bits shifted up by other."""

    def bitwise_left_shift_(self, other: Any) -> Tensor:
        """Bits shifted up by other."""

    def bitwise_not(self, *, out: Tensor | None = None) -> Tensor:
        """Every bit flipped; `not` of booleans."""

    def bitwise_not_(self) -> Tensor:
        """Every bit flipped; `not` of booleans."""

    def bitwise_or(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Bits set in one or both."""

    def bitwise_or_(self, other: Any) -> Tensor:
        """Bits set in one or both."""

    def bitwise_right_shift(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Bits shifted down by other."""

    def bitwise_right_shift_(self, other: Any) -> Tensor:
        """Bits shifted down by other."""

    def bitwise_xor(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Bits set in one only."""

    def bitwise_xor_(self, other: Any) -> Tensor:
        """Bits set in one only."""

    def bmm(self, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
        """(b, m, k) @ (b, k, n), one product for each of b, without broadcasting."""

    def bool(self, memory_format: Any = ...) -> Tensor:
        """x as bool; itself when it is."""

    def broadcast_to(self, *shape: Any) -> Tensor:
        """numpy's name for expand."""

    def byte(self, memory_format: Any = ...) -> Tensor:
        """x as uint8; itself when it is."""

    def cauchy_(self, median: _builtins.float = 0, sigma: _builtins.float = 1, *, generator: Generator | None = None) -> Tensor:
        """Overwrite x with Cauchy numbers: median + sigma tan(pi (u - 1/2)). Raises ValueError for a sigma that is not positive."""

    def cdouble(self, memory_format: Any = ...) -> Tensor:
        """x as complex128; itself when it is."""

    def ceil(self, *, out: Tensor | None = None) -> Tensor:
        """The smallest whole number not below x. Integers come back copied. Raises DTypeError for complex numbers."""

    def ceil_(self) -> Tensor:
        """The smallest whole number not below x. Integers come back copied. Raises DTypeError for complex numbers."""

    def cfloat(self, memory_format: Any = ...) -> Tensor:
        """x as complex64; itself when it is."""

    def char(self, memory_format: Any = ...) -> Tensor:
        """x as int8; itself when it is."""

    def cholesky(self, upper: _builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
        """The Cholesky factor of positive definite matrices, the upper one if `upper`; see linalg.cholesky."""

    def cholesky_inverse(self, upper: _builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
        """The inverse of A from its Cholesky factor L (its upper one if `upper`). Raises LinAlgError where L has a 0 on its diagonal."""

    def cholesky_solve(self, L: Tensor, upper: _builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
        """X with A X = B, for the Cholesky factor L of A (its upper one if `upper`); batches broadcast."""

    def chunk(self, chunks: _builtins.int, dim: _builtins.int = 0) -> tuple[Tensor, ...]:
        """At most `chunks` parts of equal size, the last smaller where they do not divide."""

    def clamp(self, min: Any | None = None, max: Any | None = None, *, out: Tensor | None = None) -> Tensor:
        """x, but at least min and at most max (tensors that broadcast, numbers, or None); max wins where min exceeds it."""

    def clamp_(self, min: Any | None = None, max: Any | None = None) -> Tensor:
        """x, but at least min and at most max (tensors that broadcast, numbers, or None); max wins where min exceeds it."""

    def clamp_max(self, max: Any, *, out: Tensor | None = None) -> Tensor:
        """x, but at most max."""

    def clamp_max_(self, max: Any) -> Tensor:
        """x, but at most max."""

    def clamp_min(self, min: Any, *, out: Tensor | None = None) -> Tensor:
        """x, but at least min."""

    def clamp_min_(self, min: Any) -> Tensor:
        """x, but at least min."""

    def clip(self, min: Any | None = None, max: Any | None = None, *, out: Tensor | None = None) -> Tensor:
        """x, but at least min and at most max (tensors that broadcast, numbers, or None); max wins where min exceeds it."""

    def clip_(self, min: Any | None = None, max: Any | None = None) -> Tensor:
        """x, but at least min and at most max (tensors that broadcast, numbers, or None); max wins where min exceeds it."""

    def clone(self, *, memory_format: Any = None) -> Tensor:
        """A copy in fresh memory, in the graph; laid out as x is where x has no gaps, or in another memory format."""

    def combinations(self, r: _builtins.int = 2, with_replacement: _builtins.bool = False) -> Tensor:
        """All choices of r elements of a vector, as itertools.combinations orders them: (count, r)."""

    def conj(self) -> Tensor:
        """The complex conjugate, computed at once (no lazy view, as PyTorch's is); a real x itself."""

    def conj_physical(self, *, out: Tensor | None = None) -> Tensor:
        """The complex conjugate in memory of its own; a real x itself."""

    def conj_physical_(self) -> Tensor:
        """The complex conjugate in memory of its own; a real x itself."""

    def const_data_ptr(self) -> _builtins.int:
        """Address of the first element, for reading."""

    def contiguous(self, memory_format: Any = ...) -> Tensor:
        """x itself when its elements lie without gaps in C order (or in another memory format's), else a copy that does."""

    def copy_(self, source: Any, non_blocking: _builtins.bool = False) -> Tensor:
        """Write source (broadcast, cast, moved between devices) over x; returns x. `non_blocking` as in `to`, for a source on another device."""

    def copysign(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """|x| with the sign of other, also that of -0 and of NaN; integers give floats."""

    def copysign_(self, other: Any) -> Tensor:
        """|x| with the sign of other, also that of -0 and of NaN; integers give floats."""

    def corrcoef(self) -> Tensor:
        """Correlation coefficients (variables, variables) of x (variables, observations), in -1..1; NaN for a variable that does not vary."""

    def cos(self, *, out: Tensor | None = None) -> Tensor:
        """The cosine of x in radians."""

    def cos_(self) -> Tensor:
        """The cosine of x in radians."""

    def cosh(self, *, out: Tensor | None = None) -> Tensor:
        """The hyperbolic cosine."""

    def cosh_(self) -> Tensor:
        """The hyperbolic cosine."""

    def count_nonzero(self, dim: _builtins.int | Sequence[_builtins.int] | None = None, *, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _builtins.bool = False) -> Tensor:
        """How many elements over dims are not zero, int64."""

    def cov(self, *, correction: _builtins.int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Tensor:
        """Covariance matrix (variables, variables) of x (variables, observations); of one row of observations its variance."""

    def cpu(self, memory_format: Any = ...) -> Tensor:
        """x on the CPU; itself when it is there."""

    def cross(self, other: Tensor, dim: _builtins.int | None = None, *, out: Tensor | None = None) -> Tensor:
        """The vector product along dim, which has size 3; without dim the first dimension of size 3. Batches broadcast."""

    def cuda(self, device: Any = None, non_blocking: _builtins.bool = False, memory_format: Any = ...) -> Tensor:
        """x on a GPU; itself when it is there. `non_blocking` as in `to`. Raises DeviceError when there is none."""

    def cummax(self, dim: _builtins.int | None = None, *, axis: _builtins.int | None = None, out: Tensor | None = None) -> Any:
        """(values, indices): the largest so far along dim, and where it stood last (int64). NaN counts as largest; the gradient goes to the index."""

    def cummin(self, dim: _builtins.int | None = None, *, axis: _builtins.int | None = None, out: Tensor | None = None) -> Any:
        """(values, indices): the smallest so far along dim, and where it stood last (int64). NaN counts as smallest; the gradient goes to the index."""

    def cumprod(self, dim: _builtins.int | None = None, *, dtype: Any = None, axis: _builtins.int | None = None, out: Tensor | None = None) -> Tensor:
        """Running product along dim (a 1-d tensor needs none); integers and bools in int64. The gradient is exact where elements are zero."""

    def cumprod_(self, dim: _builtins.int | None = None, *, dtype: Any = None, axis: _builtins.int | None = None) -> Tensor:
        """Running product along dim (a 1-d tensor needs none); integers and bools in int64. The gradient is exact where elements are zero."""

    def cumsum(self, dim: _builtins.int | None = None, *, dtype: Any = None, axis: _builtins.int | None = None, out: Tensor | None = None) -> Tensor:
        """Running sum along dim (a 1-d tensor needs none); integers and bools in int64."""

    def cumsum_(self, dim: _builtins.int | None = None, *, dtype: Any = None, axis: _builtins.int | None = None) -> Tensor:
        """Running sum along dim (a 1-d tensor needs none); integers and bools in int64."""

    def cumulative_prod(self, dim: _builtins.int | None = None, *, dtype: Any = None, axis: _builtins.int | None = None, out: Tensor | None = None) -> Tensor:
        """Running product along dim (a 1-d tensor needs none); integers and bools in int64. The gradient is exact where elements are zero."""

    def cumulative_prod_(self, dim: _builtins.int | None = None, *, dtype: Any = None, axis: _builtins.int | None = None) -> Tensor:
        """Running product along dim (a 1-d tensor needs none); integers and bools in int64. The gradient is exact where elements are zero."""

    def cumulative_sum(self, dim: _builtins.int | None = None, *, dtype: Any = None, axis: _builtins.int | None = None, out: Tensor | None = None) -> Tensor:
        """Running sum along dim (a 1-d tensor needs none); integers and bools in int64."""

    def cumulative_sum_(self, dim: _builtins.int | None = None, *, dtype: Any = None, axis: _builtins.int | None = None) -> Tensor:
        """Running sum along dim (a 1-d tensor needs none); integers and bools in int64."""

    def deg2rad(self, *, out: Tensor | None = None) -> Tensor:
        """Degrees as radians."""

    def deg2rad_(self) -> Tensor:
        """Degrees as radians."""

    def dense_dim(self) -> _builtins.int:
        """The number of dimensions: all are dense."""

    def det(self, *, out: Tensor | None = None) -> Tensor:
        """Determinants of square matrices (..., n, n). Its gradient, the cofactors, exists for singular matrices too."""

    def diag(self, diagonal: _builtins.int = 0, *, out: Tensor | None = None) -> Tensor:
        """The diagonal of a matrix (a copy; `diagonal` gives a view), or the matrix with a vector on its diagonal."""

    def diag_embed(self, offset: _builtins.int = 0, dim1: _builtins.int = -2, dim2: _builtins.int = -1) -> Tensor:
        """Zeros with x's last dimension on the diagonal of dim1 and dim2."""

    def diagflat(self, offset: _builtins.int = 0) -> Tensor:
        """A matrix with x's elements, in C order, on a diagonal: `offset` above (positive) or below the main one."""

    def diagonal(self, offset: _builtins.int = 0, dim1: _builtins.int = 0, dim2: _builtins.int = 1) -> Tensor:
        """The diagonal of two dimensions as the last one; `offset` above (positive) or below the main one."""

    def diagonal_scatter(self, src: Tensor, offset: _builtins.int = 0, dim1: _builtins.int = 0, dim2: _builtins.int = 1) -> Tensor:
        """A copy of x in which src stands on a diagonal of two dimensions."""

    def diff(self, n: _builtins.int = 1, dim: _builtins.int = -1, prepend: Tensor | None = None, append: Tensor | None = None, *, out: Tensor | None = None) -> Tensor:
        """The n-th difference along dim, x[i + 1] - x[i] taken n times, of x with what `prepend` and `append` put before and behind it."""

    def digamma(self, *, out: Tensor | None = None) -> Tensor:
        """The derivative of lgamma; NaN at -1, -2, ..."""

    def digamma_(self) -> Tensor:
        """The derivative of lgamma; NaN at -1, -2, ..."""

    def dim_order(self, *, ambiguity_check: Any = False) -> tuple[_builtins.int, ...]:
        """The dimensions from the outermost in memory to the innermost; those of which the strides do not say stay in their order."""

    def dist(self, other: Tensor, p: _builtins.float = 2) -> Tensor:
        """The p-norm of x - other."""

    def div(self, other: Any, *, rounding_mode: _builtins.str | None = None, out: Tensor | None = None) -> Tensor:
        """x / other."""

    def div_(self, other: Any, *, rounding_mode: _builtins.str | None = None) -> Tensor:
        """x / other."""

    def divide(self, other: Any, *, rounding_mode: _builtins.str | None = None, out: Tensor | None = None) -> Tensor:
        """x / other."""

    def divide_(self, other: Any, *, rounding_mode: _builtins.str | None = None) -> Tensor:
        """x / other."""

    def dot(self, tensor: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Sum of products of two vectors of one length, a 0-d tensor."""

    def double(self, memory_format: Any = ...) -> Tensor:
        """x as float64; itself when it is."""

    def dsplit(self, indices_or_sections: Any) -> tuple[Tensor, ...]:
        """Parts along dim 2."""

    def eig(self, eigenvectors: _builtins.bool = False, *, e: Any = None, v: Any = None) -> Any:
        """Removed: linalg.eig gives complex (eigenvalues, eigenvectors). Raises RuntimeError."""

    def eq(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Whether x == other, element by element."""

    def eq_(self, other: Any) -> Tensor:
        """Whether x == other, element by element."""

    def equal(self, other: Tensor) -> _builtins.bool:
        """Whether both have the same shape and elements."""

    def erf(self, *, out: Tensor | None = None) -> Tensor:
        """The error function."""

    def erf_(self) -> Tensor:
        """The error function."""

    def erfc(self, *, out: Tensor | None = None) -> Tensor:
        """1 - erf(x), accurate where erf is near 1."""

    def erfc_(self) -> Tensor:
        """1 - erf(x), accurate where erf is near 1."""

    def erfinv(self, *, out: Tensor | None = None) -> Tensor:
        """The inverse of erf: infinite at 1 and -1, NaN beyond."""

    def erfinv_(self) -> Tensor:
        """The inverse of erf: infinite at 1 and -1, NaN beyond."""

    def exp(self, *, out: Tensor | None = None) -> Tensor:
        """e to the power x."""

    def exp2(self, *, out: Tensor | None = None) -> Tensor:
        """2 to the power x."""

    def exp2_(self) -> Tensor:
        """2 to the power x."""

    def exp_(self) -> Tensor:
        """e to the power x."""

    def expand(self, *size: Any, implicit: _builtins.bool = False) -> Tensor:
        """Dimensions of size 1 stretched, new ones put in front, without copying; -1 keeps a size. `implicit` changes nothing."""

    def expand_as(self, other: Tensor) -> Tensor:
        """x.expand(other.shape)."""

    def expand_dims(self, dim: Any = 0) -> Tensor:
        """numpy's name for unsqueeze; several dims as a tuple."""

    def expit(self, *, out: Tensor | None = None) -> Tensor:
        """1 / (1 + exp(-x))."""

    def expit_(self) -> Tensor:
        """1 / (1 + exp(-x))."""

    def expm1(self, *, out: Tensor | None = None) -> Tensor:
        """exp(x) - 1, accurate near 0."""

    def expm1_(self) -> Tensor:
        """exp(x) - 1, accurate near 0."""

    def exponential_(self, lambd: _builtins.float = 1.0, *, generator: Generator | None = None) -> Tensor:
        """Overwrite x with exponential numbers of rate lambd."""

    def fill_(self, value: Any) -> Tensor:
        """Write one value, a number or a 0-d tensor, everywhere; returns x."""

    def fill_diagonal_(self, fill_value: Any, wrap: _builtins.bool = False) -> Tensor:
        """Write one value on the main diagonal of a matrix, or of a tensor of more dimensions of one size; returns x."""

    def fix(self, *, out: Tensor | None = None) -> Tensor:
        """x without its fraction. Integers come back copied. Raises DTypeError for complex numbers."""

    def fix_(self) -> Tensor:
        """x without its fraction. Integers come back copied. Raises DTypeError for complex numbers."""

    def flatten(self, start_dim: _builtins.int = 0, end_dim: _builtins.int = -1) -> Tensor:
        """Dimensions start_dim to end_dim joined into one; copies only where strides need that."""

    def flip(self, *dims: Any) -> Tensor:
        """The elements in reverse order along dimensions: `x.flip(0, 1)`; a copy. None named: along all."""

    def fliplr(self) -> Tensor:
        """Columns in reverse order."""

    def flipud(self) -> Tensor:
        """Rows in reverse order."""

    def float(self, memory_format: Any = ...) -> Tensor:
        """x as float32; itself when it is."""

    def float_power(self, exponent: Any, *, out: Tensor | None = None) -> Tensor:
        """x to the power exponent in float64 (complex128 for complex numbers), whatever their types."""

    def float_power_(self, exponent: Any) -> Tensor:
        """float_power over x, which is float64 or complex128 already."""

    def floor(self, *, out: Tensor | None = None) -> Tensor:
        """The largest whole number not above x. Integers come back copied. Raises DTypeError for complex numbers."""

    def floor_(self) -> Tensor:
        """The largest whole number not above x. Integers come back copied. Raises DTypeError for complex numbers."""

    def floor_divide(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """floor(x / other) in x's type; integers on the CPU divided by 0 raise DivisionByZeroError, on a GPU nothing is said."""

    def floor_divide_(self, other: Any) -> Tensor:
        """floor(x / other) in x's type; integers on the CPU divided by 0 raise DivisionByZeroError, on a GPU nothing is said."""

    def fmax(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The larger of x and other, the other one where one is NaN; at a tie the gradient is x's."""

    def fmin(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The smaller of x and other, the other one where one is NaN; at a tie the gradient is x's."""

    def fmod(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """x - trunc(x / other) * other: it has the sign of x."""

    def fmod_(self, other: Any) -> Tensor:
        """x - trunc(x / other) * other: it has the sign of x."""

    def frac(self, *, out: Tensor | None = None) -> Tensor:
        """x - trunc(x)."""

    def frac_(self) -> Tensor:
        """x - trunc(x)."""

    def frexp(self, *, out: Tensor | None = None) -> Any:
        """(mantissa, exponent) with x = mantissa * 2^exponent and 1/2 <= |mantissa| < 1; the exponent is int32. Raises DTypeError for integers."""

    def gather(self, dim: _builtins.int, index: Tensor, *, sparse_grad: _builtins.bool = False, out: Tensor | None = None) -> Tensor:
        """y[.., i, ..] = x[.., index[.., i, ..], ..] along `dim`; y has index's shape. `sparse_grad` is accepted; gradients are dense."""

    def gcd(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The greatest common divisor of integers; gcd(0, 0) is 0."""

    def gcd_(self, other: Tensor) -> Tensor:
        """The greatest common divisor of integers; gcd(0, 0) is 0."""

    def ge(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Whether x >= other."""

    def ge_(self, other: Any) -> Tensor:
        """Whether x >= other."""

    def geometric_(self, p: _builtins.float, *, generator: Generator | None = None) -> Tensor:
        """Overwrite x with numbers of trials until the first success of probability p: ceil(log(u) / log(1 - p)), 1 at least."""

    def geqrf(self, *, out: Tensor | None = None) -> Any:
        """(a, tau): QR as LAPACK keeps it, R on and above a's diagonal, the reflectors 1 - tau v v^H below it. A derivative raises NoDerivativeError."""

    def ger(self, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
        """input[i] * vec2[j]: (n,), (m,) to (n, m)."""

    def get_device(self) -> _builtins.int:
        """The number of a tensor's GPU, -1 on the CPU."""

    @property
    def grad_dtype(self) -> Any:
        """The type of this tensor's gradient: its own."""
    @grad_dtype.setter
    def grad_dtype(self, value: Any) -> None: ...

    def greater(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Whether x > other."""

    def greater_(self, other: Any) -> Tensor:
        """Whether x > other."""

    def greater_equal(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Whether x >= other."""

    def greater_equal_(self, other: Any) -> Tensor:
        """Whether x >= other."""

    def gt(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Whether x > other."""

    def gt_(self, other: Any) -> Tensor:
        """Whether x > other."""

    def half(self, memory_format: Any = ...) -> Tensor:
        """x as float16; itself when it is."""

    def hardshrink(self, lambd: _builtins.float = 0.5, *, out: Tensor | None = None) -> Tensor:
        """0 where |x| <= lambd, as x's type holds it, else x."""

    def hash_tensor(self, dim: Any = (), *, keepdim: _builtins.bool = False, mode: _builtins.int = 0, out: Tensor | None = None) -> Tensor:
        """The exclusive or over dims of the elements' 64 bits, as uint64: of integers' own value, of floats as float64. All dims unless given."""

    def heaviside(self, values: Tensor, *, out: Tensor | None = None) -> Tensor:
        """0 below 0, `values` at 0, 1 above; constant in x. Raises DTypeError for two types, and for complex numbers."""

    def heaviside_(self, values: Tensor) -> Tensor:
        """0 below 0, `values` at 0, 1 above; constant in x. Raises DTypeError for two types, and for complex numbers."""

    def histc(self, bins: _builtins.int = 100, min: _builtins.float = 0, max: _builtins.float = 0, *, out: Tensor | None = None) -> Tensor:
        """How many elements fall in each of so many bins of one width between min and max (if both are equal: of the elements), in x's type."""

    def histogram(self, bins: Any = 100, *, range: Sequence[_builtins.float] | None = None, weight: Tensor | None = None, density: _builtins.bool = False, out: Tensor | None = None) -> Any:
        """(hist, bin_edges): how many elements, or how much weight, fall between neighbouring edges, in x's type; the last bin is closed."""

    def hsplit(self, indices_or_sections: Any) -> tuple[Tensor, ...]:
        """Parts along dim 1, along dim 0 of a vector."""

    def hypot(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """sqrt(x^2 + other^2), whose squares neither overflow nor vanish; inf where one is infinite, NaN beside it or not. Its gradient at the origin is 0."""

    def hypot_(self, other: Tensor) -> Tensor:
        """sqrt(x^2 + other^2), whose squares neither overflow nor vanish; inf where one is infinite, NaN beside it or not. Its gradient at the origin is 0."""

    def i0(self, *, out: Tensor | None = None) -> Tensor:
        """The modified Bessel function I0."""

    def i0_(self) -> Tensor:
        """The modified Bessel function I0."""

    def igamma(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The regularised lower incomplete gamma function P(x, other). Raises GradError for a gradient by x; there is that by other alone."""

    def igamma_(self, other: Tensor) -> Tensor:
        """The regularised lower incomplete gamma function P(x, other). Raises GradError for a gradient by x; there is that by other alone."""

    def igammac(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The regularised upper incomplete gamma function 1 - P(x, other). Raises GradError for a gradient by x; there is that by other alone."""

    def igammac_(self, other: Tensor) -> Tensor:
        """The regularised upper incomplete gamma function 1 - P(x, other). Raises GradError for a gradient by x; there is that by other alone."""

    @property
    def imag(self) -> Tensor:
        """The imaginary parts, a view. Raises DTypeError for real numbers, which have none to look at."""
    @imag.setter
    def imag(self, value: Any) -> None: ...

    def index_add(self, dim: _builtins.int, index: Tensor, source: Tensor, *, alpha: _builtins.float = 1, out: Tensor | None = None) -> Tensor:
        """A copy of x with alpha * source's slices added at the indices of a dimension, in a fixed order; of integers alpha is cut to a whole number."""

    def index_add_(self, dim: _builtins.int, index: Tensor, source: Tensor, *, alpha: _builtins.float = 1) -> Tensor:
        """A copy of x with alpha * source's slices added at the indices of a dimension, in a fixed order; of integers alpha is cut to a whole number."""

    def index_copy(self, dim: _builtins.int, index: Tensor, source: Tensor, *, out: Tensor | None = None) -> Tensor:
        """A copy of x with source's slices written at the indices of a dimension; of repeated indices the last one stays."""

    def index_copy_(self, dim: _builtins.int, index: Tensor, source: Tensor) -> Tensor:
        """A copy of x with source's slices written at the indices of a dimension; of repeated indices the last one stays."""

    def index_fill(self, dim: _builtins.int, index: Tensor, value: Any) -> Tensor:
        """A copy of x with one value, a number or a 0-d tensor, written at the indices of a dimension; negative ones count from the end."""

    def index_fill_(self, dim: _builtins.int, index: Tensor, value: Any) -> Tensor:
        """A copy of x with one value, a number or a 0-d tensor, written at the indices of a dimension; negative ones count from the end."""

    def index_put(self, indices: Any, values: Tensor, accumulate: _builtins.bool = False) -> Tensor:
        """A copy of x with values written, or added with `accumulate`, at a tuple of index tensors; None among them stands for a whole dimension."""

    def index_put_(self, indices: Any, values: Tensor, accumulate: _builtins.bool = False) -> Tensor:
        """A copy of x with values written, or added with `accumulate`, at a tuple of index tensors; None among them stands for a whole dimension."""

    def index_reduce(self, dim: _builtins.int, index: Tensor, source: Tensor, reduce: _builtins.str, *, include_self: _builtins.bool = True, out: Tensor | None = None) -> Tensor:
        """A copy of x in which the `reduce` of source's slices, and of x's own unless include_self is False, stands at the indices of a dimension."""

    def index_reduce_(self, dim: _builtins.int, index: Tensor, source: Tensor, reduce: _builtins.str, *, include_self: _builtins.bool = True) -> Tensor:
        """A copy of x in which the `reduce` of source's slices, and of x's own unless include_self is False, stands at the indices of a dimension."""

    def index_select(self, dim: _builtins.int, index: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The slices of a dimension that a vector of indices names. Raises IndexError for a negative index, too."""

    def inner(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Sum of products over the last dimension of both; with a 0-d operand, their product."""

    def int(self, memory_format: Any = ...) -> Tensor:
        """x as int32; itself when it is."""

    def inverse(self, *, out: Tensor | None = None) -> Tensor:
        """The inverse of square matrices, another name of linalg.inv. Raises LinAlgError where there is none."""

    def is_coalesced(self) -> _builtins.bool:
        """Raises RuntimeError, as of every tensor that is not sparse; none is."""

    def is_conj(self) -> _builtins.bool:
        """Whether x is conjugated lazily: never, here."""

    @property
    def is_cpu(self) -> _builtins.bool:
        """Whether the tensor is on the CPU."""

    def is_distributed(self) -> _builtins.bool:
        """False: a tensor is in one process."""

    def is_inference(self) -> _builtins.bool:
        """False: a tensor made in inference_mode is an ordinary one."""

    @property
    def is_ipu(self) -> _builtins.bool:
        """False: devices are the CPU and CUDA's."""

    @property
    def is_maia(self) -> _builtins.bool:
        """False: devices are the CPU and CUDA's."""

    @property
    def is_meta(self) -> _builtins.bool:
        """Whether there are no values: the tensor is on device meta, and has a shape, strides and a type alone."""

    @property
    def is_mkldnn(self) -> _builtins.bool:
        """False: every tensor lies as its strides say."""

    @property
    def is_mps(self) -> _builtins.bool:
        """False: devices are the CPU and CUDA's."""

    @property
    def is_mtia(self) -> _builtins.bool:
        """False: devices are the CPU and CUDA's."""

    def is_neg(self) -> _builtins.bool:
        """Whether x is negated lazily: never, here."""

    @property
    def is_nested(self) -> _builtins.bool:
        """False: every tensor is one array."""

    def is_nonzero(self) -> _builtins.bool:
        """Whether the one element of a tensor is not 0; waits for the device. Raises ShapeError for more or fewer elements."""

    def is_pinned(self, device: Any = None) -> _builtins.bool:
        """Whether x lies in pinned host memory."""

    @property
    def is_quantized(self) -> _builtins.bool:
        """False: no tensor is quantized."""

    def is_same_size(self, other: Tensor) -> _builtins.bool:
        """Whether two tensors have one shape."""

    def is_set_to(self, tensor: Tensor) -> _builtins.bool:
        """Whether both look at the same memory in the same way."""

    def is_shared(self) -> _builtins.bool:
        """Whether another process could see this memory: True on a GPU, as in PyTorch; on the CPU after share_memory_(), or where it came from"""

    def is_signed(self) -> _builtins.bool:
        """Whether a tensor's type holds negative numbers."""

    @property
    def is_sparse(self) -> _builtins.bool:
        """False: no tensor is sparse."""

    @property
    def is_sparse_csr(self) -> _builtins.bool:
        """False: no tensor is sparse."""

    @property
    def is_vulkan(self) -> _builtins.bool:
        """False: devices are the CPU and CUDA's."""

    @property
    def is_xla(self) -> _builtins.bool:
        """False: devices are the CPU and CUDA's."""

    @property
    def is_xpu(self) -> _builtins.bool:
        """False: devices are the CPU and CUDA's."""

    def isclose(self, other: Tensor, rtol: _builtins.float = 1e-05, atol: _builtins.float = 1e-08, equal_nan: _builtins.bool = False) -> Tensor:
        """|x - other| <= atol + rtol * |other|, element by element; equal infinities are close, NaN to NaN only with `equal_nan`."""

    def isfinite(self) -> Tensor:
        """Whether x is neither infinite nor NaN."""

    def isinf(self) -> Tensor:
        """Whether x is infinite."""

    def isnan(self) -> Tensor:
        """Whether x is NaN."""

    def isneginf(self, *, out: Tensor | None = None) -> Tensor:
        """Whether x is -inf. Raises DTypeError for complex numbers."""

    def isposinf(self, *, out: Tensor | None = None) -> Tensor:
        """Whether x is inf. Raises DTypeError for complex numbers."""

    def isreal(self) -> Tensor:
        """Whether the imaginary part is 0: true of every number that is not complex."""

    def istft(self, n_fft: _builtins.int, hop_length: _builtins.int | None = None, win_length: _builtins.int | None = None, window: Tensor | None = None, center: _builtins.bool = True, normalized: _builtins.bool = False, onesided: _builtins.bool | None = None, length: _builtins.int | None = None, return_complex: _builtins.bool = False) -> Tensor:
        """The signal whose spectra are nearest, in the squared error, to those given: the inverse of `stft`, with the same arguments."""

    def kron(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The Kronecker product: each element of x times all of other, laid side by side. Dimensions count from the last."""

    def kthvalue(self, k: _builtins.int, dim: _builtins.int = -1, keepdim: _builtins.bool = False, *, out: Tensor | None = None) -> Any:
        """(value, index) of the k-th smallest element along dim, k from 1; of equal elements in the order of their places."""

    @property
    def layout(self) -> Any:
        """Always `tritensor.strided`."""

    def lcm(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The least common multiple of integers, 0 where one of them is 0."""

    def lcm_(self, other: Tensor) -> Tensor:
        """The least common multiple of integers, 0 where one of them is 0."""

    def ldexp(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """x * 2^other in the type of both, integers as floating; of a large other in steps that do not overflow before the result does."""

    def ldexp_(self, other: Tensor) -> Tensor:
        """x * 2^other in the type of both, integers as floating; of a large other in steps that do not overflow before the result does."""

    def le(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Whether x <= other."""

    def le_(self, other: Any) -> Tensor:
        """Whether x <= other."""

    def lerp(self, end: Any, weight: Any, *, out: Tensor | None = None) -> Tensor:
        """x + weight * (end - x), from the nearer end: exactly x where weight is 0 and end where it is 1."""

    def lerp_(self, end: Any, weight: Any) -> Tensor:
        """x + weight * (end - x), from the nearer end: exactly x where weight is 0 and end where it is 1."""

    def less(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Whether x < other."""

    def less_(self, other: Any) -> Tensor:
        """Whether x < other."""

    def less_equal(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Whether x <= other."""

    def less_equal_(self, other: Any) -> Tensor:
        """Whether x <= other."""

    def lgamma(self, *, out: Tensor | None = None) -> Tensor:
        """log |gamma(x)|, infinite at 0, -1, -2, ..."""

    def lgamma_(self) -> Tensor:
        """log |gamma(x)|, infinite at 0, -1, -2, ..."""

    def log(self, *, out: Tensor | None = None) -> Tensor:
        """The natural logarithm; NaN below 0."""

    def log10(self, *, out: Tensor | None = None) -> Tensor:
        """The logarithm to base 10."""

    def log10_(self) -> Tensor:
        """The logarithm to base 10."""

    def log1p(self, *, out: Tensor | None = None) -> Tensor:
        """log(1 + x), accurate near 0."""

    def log1p_(self) -> Tensor:
        """log(1 + x), accurate near 0."""

    def log2(self, *, out: Tensor | None = None) -> Tensor:
        """The logarithm to base 2."""

    def log2_(self) -> Tensor:
        """The logarithm to base 2."""

    def log_(self) -> Tensor:
        """The natural logarithm; NaN below 0."""

    def log_normal_(self, mean: _builtins.float = 1, std: _builtins.float = 2, *, generator: Generator | None = None) -> Tensor:
        """Overwrite x with exp(mean + std z), z normal. Raises ValueError for a std that is not positive."""

    def log_softmax(self, dim: _builtins.int | None = None, dtype: Any = None, *, axis: _builtins.int | None = None, out: Tensor | None = None) -> Tensor:
        """x - log sum e^x along dim; `dtype`: cast x first."""

    def logaddexp(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """log(exp(x) + exp(other)) without overflow. Between two equal infinities its gradient is NaN."""

    def logaddexp2(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """log2(2^x + 2^other) without overflow."""

    def logcumsumexp(self, dim: _builtins.int | None = None, *, axis: _builtins.int | None = None, out: Tensor | None = None) -> Tensor:
        """log of the running sum of e^x along dim, from the largest so far down, so that nothing overflows. DTypeError for types that are not floating."""

    def logdet(self) -> Tensor:
        """The logarithm of the determinant: NaN where a real one is negative, -inf where it is 0."""

    def logical_and(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Whether neither is 0."""

    def logical_and_(self, other: Tensor) -> Tensor:
        """Whether neither is 0."""

    def logical_not(self, *, out: Tensor | None = None) -> Tensor:
        """Whether x is 0."""

    def logical_not_(self) -> Tensor:
        """Whether x is 0."""

    def logical_or(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Whether one of them is not 0."""

    def logical_or_(self, other: Tensor) -> Tensor:
        """Whether one of them is not 0."""

    def logical_xor(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Whether exactly one of them is 0."""

    def logical_xor_(self, other: Tensor) -> Tensor:
        """Whether exactly one of them is 0."""

    def logit(self, eps: _builtins.float | None = None, *, out: Tensor | None = None) -> Tensor:
        """log(x / (1 - x)), NaN outside [0, 1] as is its gradient; x first clamped to [eps, 1 - eps] where eps is given."""

    def logit_(self, eps: _builtins.float | None = None) -> Tensor:
        """log(x / (1 - x)), NaN outside [0, 1] as is its gradient; x first clamped to [eps, 1 - eps] where eps is given."""

    def logsumexp(self, dim: _builtins.int | Sequence[_builtins.int] | None = None, keepdim: _builtins.bool = False, *, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _builtins.bool | None = None, out: Tensor | None = None) -> Tensor:
        """log sum e^x over dims, from the largest element down, so that nothing overflows; -inf over no elements."""

    def long(self, memory_format: Any = ...) -> Tensor:
        """x as int64; itself when it is."""

    def lstsq(self, A: Any, *, out: Any = None) -> Any:
        """Removed: linalg.lstsq, whose arguments go the other way round. Raises RuntimeError."""

    def lt(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Whether x < other."""

    def lt_(self, other: Any) -> Tensor:
        """Whether x < other."""

    def lu(self, pivot: _builtins.bool = True, get_infos: _builtins.bool = False, *, out: Tensor | None = None) -> tuple[Tensor, ...]:
        """(LU, pivots), or with info if `get_infos`; see linalg.lu_factor_ex."""

    def lu_solve(self, LU_data: Tensor, LU_pivots: Tensor, *, out: Tensor | None = None) -> Tensor:
        """X with A X = b, A given by its LU; see linalg.lu_solve."""

    @property
    def mH(self) -> Tensor:
        """The last two dimensions exchanged, complex numbers conjugated."""

    @property
    def mT(self) -> Tensor:
        """The last two dimensions exchanged."""

    def map2_(self, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
        """map_ with a function of three elements: of this tensor and of two others. Returns this one."""

    def map_(self, other: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
        """Write callable(v, w) over every element v of x, w of other, which broadcasts to x: a Python call for each, on the CPU. Returns x."""

    def masked_fill(self, mask: Tensor, value: Any) -> Tensor:
        """x with `value`, a number or 0-d tensor, where mask is True; the number becomes one of x's type. The result is contiguous."""

    def masked_fill_(self, mask: Tensor, value: Any) -> Tensor:
        """x with `value`, a number or 0-d tensor, where mask is True; the number becomes one of x's type. The result is contiguous."""

    def masked_scatter(self, mask: Tensor, source: Tensor) -> Tensor:
        """x with its elements where mask is True replaced by the first elements of source, in order; x and mask broadcast to each other."""

    def masked_scatter_(self, mask: Tensor, source: Tensor) -> Tensor:
        """x with its elements where mask is True replaced by the first elements of source, in order; x and mask broadcast to each other."""

    def masked_select(self, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The elements where mask (which broadcasts with x) is True, as a vector. Waits for the device."""

    def matmul(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Matrix product with numpy's rules: (..., m, k) @ (..., k, n), batches broadcast, a 1-d operand is a row or a column."""

    def matrix_exp(self) -> Tensor:
        """The exponential 1 + x + x^2 / 2 + ... of square matrices (..., n, n), by scaling and squaring (Higham 2005)."""

    def matrix_power(self, n: _builtins.int, *, out: Tensor | None = None) -> Tensor:
        """x to the power of an int: the identity for 0, powers of the inverse below, by repeated squaring. Raises LinAlgError for a singular x and n < 0."""

    def matrix_transpose(self) -> Tensor:
        """The last two dimensions exchanged."""

    def max(self, dim: Any = None, keepdim: _builtins.bool = False, *, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _builtins.bool | None = None, other: Tensor | None = None, out: Tensor | None = None) -> Any:
        """max(x): the largest element. max(x, dim): (values, indices). max(x, other): the larger of each pair."""

    def maximum(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The larger of x and other, NaN where either is; at a tie each gets half of the gradient."""

    def mean(self, dim: _builtins.int | Sequence[_builtins.int] | None = None, keepdim: _builtins.bool = False, *, dtype: Any = None, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _builtins.bool | None = None, out: Tensor | None = None) -> Tensor:
        """Mean over dims, of floating types (DTypeError for others; cast them or give dtype). NaN over no elements."""

    def median(self, dim: _builtins.int | None = None, keepdim: _builtins.bool = False, *, out: Tensor | None = None) -> Any:
        """median(x): the middle element, the lower one of two; its gradient is shared evenly among equals. median(x, dim): (value, index)."""

    def min(self, dim: Any = None, keepdim: _builtins.bool = False, *, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _builtins.bool | None = None, other: Tensor | None = None, out: Tensor | None = None) -> Any:
        """min(x): the smallest element. min(x, dim): (values, indices). min(x, other): the smaller of each pair. NaN counts as smallest."""

    def minimum(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The smaller of x and other, NaN where either is; at a tie each gets half of the gradient."""

    def mm(self, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
        """(m, k) @ (k, n), without broadcasting."""

    def mode(self, dim: _builtins.int = -1, keepdim: _builtins.bool = False, *, out: Tensor | None = None) -> Any:
        """(value, index) of the most frequent element along dim, of several the smallest; the index is that of its last occurrence."""

    def moveaxis(self, source: Any, destination: Any) -> Tensor:
        """Dimensions `source` moved to `destination`; the others keep their order."""

    def movedim(self, source: Any, destination: Any) -> Tensor:
        """Dimensions `source` moved to `destination`; the others keep their order."""

    def msort(self, *, out: Tensor | None = None) -> Tensor:
        """x in ascending order along its first dim."""

    def mul(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """x * other."""

    def mul_(self, other: Any) -> Tensor:
        """x * other."""

    def multinomial(self, num_samples: _builtins.int, replacement: _builtins.bool = False, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor:
        """Indices drawn with probabilities proportional to the weights in x, (n,) or (rows, n). Without replacement each comes at most once,"""

    def multiply(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """x * other."""

    def multiply_(self, other: Any) -> Tensor:
        """x * other."""

    def mv(self, vec: Tensor, *, out: Tensor | None = None) -> Tensor:
        """(m, k) @ (k,)."""

    def mvlgamma(self, p: _builtins.int, *, out: Tensor | None = None) -> Tensor:
        """log of the multivariate gamma function of p dimensions: p (p - 1) / 4 log(pi) + sum of lgamma(x - k / 2) for k < p (DLMF 35.3.4)."""

    def mvlgamma_(self, p: _builtins.int) -> Tensor:
        """log of the multivariate gamma function of p dimensions: p (p - 1) / 4 log(pi) + sum of lgamma(x - k / 2) for k < p (DLMF 35.3.4)."""

    @property
    def name(self) -> None:
        """None: tensors have no names."""

    def nan_to_num(self, nan: _builtins.float | None = None, posinf: _builtins.float | None = None, neginf: _builtins.float | None = None, *, out: Tensor | None = None) -> Tensor:
        """x with NaN (by 0) and infinities replaced, infinities by the type's largest and smallest values unless given; so both parts of complex numbers."""

    def nan_to_num_(self, nan: _builtins.float | None = None, posinf: _builtins.float | None = None, neginf: _builtins.float | None = None) -> Tensor:
        """x with NaN (by 0) and infinities replaced, infinities by the type's largest and smallest values unless given; so both parts of complex numbers."""

    def nanmean(self, dim: _builtins.int | Sequence[_builtins.int] | None = None, keepdim: _builtins.bool = False, *, dtype: Any = None, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _builtins.bool | None = None, out: Tensor | None = None) -> Tensor:
        """Mean over dims of what is not NaN."""

    def nanmedian(self, dim: _builtins.int | None = None, keepdim: _builtins.bool = False, *, out: Tensor | None = None) -> Any:
        """As `median`, of what is not NaN; NaN where there is nothing else."""

    def nanquantile(self, q: Any, dim: _builtins.int | None = None, keepdim: _builtins.bool = False, *, interpolation: _builtins.str = 'linear', out: Tensor | None = None) -> Tensor:
        """As `quantile`, of what is not NaN; NaN where there is nothing else."""

    def nansum(self, dim: _builtins.int | Sequence[_builtins.int] | None = None, keepdim: _builtins.bool = False, *, dtype: Any = None, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _builtins.bool | None = None, out: Tensor | None = None) -> Tensor:
        """Sum over dims of what is not NaN."""

    def narrow(self, dim: _builtins.int, start: _builtins.int, length: _builtins.int) -> Tensor:
        """Elements start to start + length - 1 of a dimension."""

    def narrow_copy(self, dim: _builtins.int, start: _builtins.int, length: _builtins.int, *, out: Tensor | None = None) -> Tensor:
        """Elements start to start + length - 1 of a dimension, as a copy."""

    def ne(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Whether x != other."""

    def ne_(self, other: Any) -> Tensor:
        """Whether x != other."""

    def neg(self, *, out: Tensor | None = None) -> Tensor:
        """-x."""

    def neg_(self) -> Tensor:
        """-x."""

    def negative(self, *, out: Tensor | None = None) -> Tensor:
        """-x."""

    def negative_(self) -> Tensor:
        """-x."""

    def new(self, *data: Any, device: Any = None) -> Tensor:
        """Of x's type and device: uninitialised of a shape, or a copy of a sequence; see new_empty and new_tensor, which say which."""

    def new_empty(self, *given: Any, dtype: Any = None, device: Any = None, **options: Any) -> Tensor:
        """empty(...) of this tensor's dtype and device."""

    def new_empty_strided(self, size: Any, stride: Any, *, dtype: Any = None, device: Any = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
        """empty_strided of this tensor's dtype and device."""

    def new_full(self, *given: Any, dtype: Any = None, device: Any = None, **options: Any) -> Tensor:
        """full(...) of this tensor's dtype and device."""

    def new_ones(self, *given: Any, dtype: Any = None, device: Any = None, **options: Any) -> Tensor:
        """ones(...) of this tensor's dtype and device."""

    def new_tensor(self, *given: Any, dtype: Any = None, device: Any = None, **options: Any) -> Tensor:
        """tensor(...) of this tensor's dtype and device."""

    def new_zeros(self, *given: Any, dtype: Any = None, device: Any = None, **options: Any) -> Tensor:
        """zeros(...) of this tensor's dtype and device."""

    def nextafter(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The next number after x towards other. Floating types only; its gradient is x's, none where they are equal."""

    def nextafter_(self, other: Tensor) -> Tensor:
        """The next number after x towards other. Floating types only; its gradient is x's, none where they are equal."""

    def nonzero(self, *, as_tuple: _builtins.bool = False, out: Tensor | None = None) -> Any:
        """Positions of the elements that are not 0: (count, ndim), or a vector per dimension. Waits for the device."""

    def nonzero_static(self, *, size: _builtins.int, fill_value: _builtins.int = -1, out: Tensor | None = None) -> Tensor:
        """The first `size` positions of elements that are not 0, (size, ndim); rows that are left over hold fill_value. Waits for nothing."""

    def norm(self, p: _builtins.float | _builtins.str | None = 'fro', dim: _builtins.int | Sequence[_builtins.int] | None = None, keepdim: _builtins.bool = False, dtype: Any = None, *, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _builtins.bool | None = None, out: Tensor | None = None) -> Tensor:
        """The p-norm over dims, (sum |x|^p)^(1/p): p = 2 (or "fro", None), 1, 0 (how many are not zero), inf, -inf, or any number."""

    def normal_(self, mean: _builtins.float = 0.0, std: _builtins.float = 1.0, *, generator: Generator | None = None) -> Tensor:
        """Overwrite x with normal numbers."""

    def not_equal(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Whether x != other."""

    def not_equal_(self, other: Any) -> Tensor:
        """Whether x != other."""

    def orgqr(self, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Another name of linalg.householder_product."""

    def ormqr(self, tau: Tensor, other: Tensor, left: _builtins.bool = True, transpose: _builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
        """Q other, or other Q unless `left`, for Q = H_1 ... H_k of geqrf's reflectors; Q^H in its place if `transpose`."""

    def outer(self, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
        """input[i] * vec2[j]: (n,), (m,) to (n, m)."""

    def permute(self, *dims: Any) -> Tensor:
        """Dimensions in the order given: `x.permute(2, 0, 1)`."""

    def permute_dims(self, *dims: Any) -> Tensor:
        """Dimensions in the order given: `x.permute(2, 0, 1)`."""

    def pin_memory(self, device: Any = None) -> Tensor:
        """A copy of x in pinned host memory, from and to which a GPU copies by itself; x itself when it lies there."""

    def pinverse(self, rcond: _builtins.float = 1e-15) -> Tensor:
        """The pseudo-inverse of matrices; singular values at most rcond times the largest count as 0."""

    def polygamma(self, n: _builtins.int) -> Tensor:
        """The n-th derivative of digamma."""

    def polygamma_(self, n: _builtins.int) -> Tensor:
        """The n-th derivative of digamma."""

    def positive(self) -> Tensor:
        """x itself. Raises DTypeError for bool."""

    def pow(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """x to the power other; integers stay integers."""

    def pow_(self, other: Any) -> Tensor:
        """x to the power other; integers stay integers."""

    def prelu(self, weight: Tensor) -> Tensor:
        """x where positive, else weight x; weight holds one number, or one for each channel (dim 1 of x). Both of one type."""

    def prod(self, dim: _builtins.int | Sequence[_builtins.int] | None = None, keepdim: _builtins.bool = False, *, dtype: Any = None, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _builtins.bool | None = None, out: Tensor | None = None) -> Tensor:
        """Product over dims; integers and bools in int64. The gradient is exact where elements are zero."""

    def put(self, index: Tensor, source: Tensor, accumulate: _builtins.bool = False) -> Tensor:
        """A copy of x with source's elements written, or added, at places of the flattened x; index and source have as many elements."""

    def put_(self, index: Tensor, source: Tensor, accumulate: _builtins.bool = False) -> Tensor:
        """A copy of x with source's elements written, or added, at places of the flattened x; index and source have as many elements."""

    def qr(self, some: _builtins.bool = True, *, out: Tensor | None = None) -> Any:
        """(Q, R) with x = Q R; see linalg.qr, whose mode is "reduced" if `some`, else "complete"."""

    def quantile(self, q: Any, dim: _builtins.int | None = None, keepdim: _builtins.bool = False, *, interpolation: _builtins.str = 'linear', out: Tensor | None = None) -> Tensor:
        """The element at q (n - 1) of the sorted elements over dim (None: all), interpolated between two neighbours; NaN where there is one."""

    def rad2deg(self, *, out: Tensor | None = None) -> Tensor:
        """Radians as degrees."""

    def rad2deg_(self) -> Tensor:
        """Radians as degrees."""

    def random_(self, start: Any = ..., end: Any = ..., *, generator: Generator | None = None) -> Tensor:
        """Overwrite x with integers: `random_(from, to)` of [from, to), `random_(to)` of [0, to), `random_()` up to what x's type holds exactly,"""

    def ravel(self) -> Tensor:
        """x in one dimension; a copy unless x is contiguous."""

    @property
    def real(self) -> Tensor:
        """The real parts: of complex numbers a view, of real ones x itself."""
    @real.setter
    def real(self, value: Any) -> None: ...

    def reciprocal(self, *, out: Tensor | None = None) -> Tensor:
        """1 / x."""

    def reciprocal_(self) -> Tensor:
        """1 / x."""

    def record_stream(self, stream: Any) -> None:
        """Say that work on a stream uses x: its memory is not handed out again before the work queued there when x dies is done."""

    def relu(self, *, out: Tensor | None = None) -> Tensor:
        """max(x, 0); the gradient at 0 is 0."""

    def relu_(self) -> Tensor:
        """max(x, 0); the gradient at 0 is 0."""

    def remainder(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """x - floor(x / other) * other: it has the sign of other."""

    def remainder_(self, other: Any) -> Tensor:
        """x - floor(x / other) * other: it has the sign of other."""

    def renorm(self, p: _builtins.float, dim: _builtins.int, maxnorm: _builtins.float, *, out: Tensor | None = None) -> Tensor:
        """x with each slice along dim whose p-norm is larger than maxnorm scaled down to it. Raises ArgumentError for p <= 0 and maxnorm < 0."""

    def renorm_(self, p: _builtins.float, dim: _builtins.int, maxnorm: _builtins.float) -> Tensor:
        """x with each slice along dim whose p-norm is larger than maxnorm scaled down to it. Raises ArgumentError for p <= 0 and maxnorm < 0."""

    def repeat(self, *repeats: Any) -> Tensor:
        """x laid side by side, `repeats` times along each dimension (new ones in front); always a copy."""

    def repeat_interleave(self, repeats: Any = None, dim: _builtins.int | None = None, *, output_size: _builtins.int | None = None) -> Tensor:
        """Each element (or slice along `dim`) repeated in place: so many times, or as often as a tensor of counts says."""

    def reshape(self, *shape: Any) -> Tensor:
        """x's elements in C order under another shape, one size may be -1; a view where x's strides allow one, else a copy."""

    def reshape_as(self, other: Tensor) -> Tensor:
        """x.reshape(other.shape)."""

    def resize(self, *sizes: Any) -> Tensor:
        """The tensor in another shape of as many elements: reshape under an older name. Raises ShapeError for another number of elements."""

    def resize_(self, *size: Any, memory_format: Any = None) -> Tensor:
        """Give x another shape, in place: its elements in the order of memory, new ones behind them without a value where it grows."""

    def resize_as(self, tensor: Tensor) -> Tensor:
        """The tensor in another one's shape: x.reshape(tensor.shape) under an older name."""

    def resize_as_(self, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
        """x.resize_(the_template.shape), laid out as the template where memory_format is preserve_format."""

    def resolve_conj(self) -> Tensor:
        """x itself: no tensor here is conjugated lazily."""

    def resolve_neg(self) -> Tensor:
        """x itself: no tensor here is negated lazily."""

    def roll(self, shifts: Any, dims: Any = None) -> Tensor:
        """Elements shifted along dimensions, coming back at the other end; over the flattened tensor where none is named."""

    def rot90(self, k: _builtins.int = 1, dims: Any = (0, 1)) -> Tensor:
        """Turned k times by 90 degrees from the first of two dimensions towards the second."""

    def round(self, *, decimals: _builtins.int = 0, out: Tensor | None = None) -> Tensor:
        """x rounded to `decimals` places, halves to the even neighbour; integers come back copied."""

    def round_(self, *, decimals: _builtins.int = 0) -> Tensor:
        """x rounded to `decimals` places, halves to the even neighbour; integers come back copied."""

    def rsqrt(self, *, out: Tensor | None = None) -> Tensor:
        """1 / sqrt(x)."""

    def rsqrt_(self) -> Tensor:
        """1 / sqrt(x)."""

    def rsub(self, other: Any, *, alpha: _builtins.float = 1) -> Tensor:
        """other - alpha * x."""

    def scatter(self, dim: _builtins.int, index: Tensor, src: Any = None, *, value: Any = None, reduce: _builtins.str | None = None, out: Tensor | None = None) -> Tensor:
        """A copy of x with src[.., j, ..] (or a number) written at [.., index[.., j, ..], ..]; of repeated positions the last one stays."""

    def scatter_(self, dim: _builtins.int, index: Tensor, src: Any = None, *, value: Any = None, reduce: _builtins.str | None = None) -> Tensor:
        """A copy of x with src[.., j, ..] (or a number) written at [.., index[.., j, ..], ..]; of repeated positions the last one stays."""

    def scatter_add(self, dim: _builtins.int, index: Tensor, src: Tensor, *, out: Tensor | None = None) -> Tensor:
        """A copy of x with src[.., j, ..] added at [.., index[.., j, ..], ..] along `dim`, in a fixed order."""

    def scatter_add_(self, dim: _builtins.int, index: Tensor, src: Tensor) -> Tensor:
        """A copy of x with src[.., j, ..] added at [.., index[.., j, ..], ..] along `dim`, in a fixed order."""

    def scatter_reduce(self, dim: _builtins.int, index: Tensor, src: Tensor, reduce: _builtins.str, *, include_self: _builtins.bool = True, out: Tensor | None = None) -> Tensor:
        """A copy of x in which the `reduce` of src[.., j, ..], and of x itself unless include_self is False, stands at [.., index[.., j, ..], ..]."""

    def scatter_reduce_(self, dim: _builtins.int, index: Tensor, src: Tensor, reduce: _builtins.str, *, include_self: _builtins.bool = True) -> Tensor:
        """A copy of x in which the `reduce` of src[.., j, ..], and of x itself unless include_self is False, stands at [.., index[.., j, ..], ..]."""

    def select(self, dim: _builtins.int, index: _builtins.int) -> Tensor:
        """x at one index of a dimension, which goes."""

    def select_scatter(self, src: Tensor, dim: _builtins.int, index: _builtins.int) -> Tensor:
        """A copy of x in which src stands where x.select(dim, index) is."""

    def set_(self, source: Tensor | None = None, storage_offset: _builtins.int = 0, size: Any = None, stride: Any = None) -> Tensor:
        """Let x look at source's memory: as source does, or from `storage_offset` of it on with `size` and `stride`; without source at none."""

    def sgn(self, *, out: Tensor | None = None) -> Tensor:
        """x / |x| of complex numbers, 0 at 0; the sign of real ones."""

    def sgn_(self) -> Tensor:
        """x / |x| of complex numbers, 0 at 0; the sign of real ones."""

    def share_memory_(self) -> Tensor:
        """Move the memory that x lies in to where other processes see it, with all tensors that lie in it, and return x."""

    def short(self, memory_format: Any = ...) -> Tensor:
        """x as int16; itself when it is."""

    def sigmoid(self, *, out: Tensor | None = None) -> Tensor:
        """1 / (1 + exp(-x))."""

    def sigmoid_(self) -> Tensor:
        """1 / (1 + exp(-x))."""

    def sign(self, *, out: Tensor | None = None) -> Tensor:
        """1, 0 or -1 by the sign of x; its gradient is 0. Raises DTypeError for complex numbers, which `sgn` takes."""

    def sign_(self) -> Tensor:
        """1, 0 or -1 by the sign of x; its gradient is 0. Raises DTypeError for complex numbers, which `sgn` takes."""

    def signbit(self, *, out: Tensor | None = None) -> Tensor:
        """Whether the sign's bit is set: of negative numbers, -0 and -NaN."""

    def sin(self, *, out: Tensor | None = None) -> Tensor:
        """The sine of x in radians."""

    def sin_(self) -> Tensor:
        """The sine of x in radians."""

    def sinc(self, *, out: Tensor | None = None) -> Tensor:
        """sin(pi x) / (pi x), 1 at 0."""

    def sinc_(self) -> Tensor:
        """sin(pi x) / (pi x), 1 at 0."""

    def sinh(self, *, out: Tensor | None = None) -> Tensor:
        """The hyperbolic sine."""

    def sinh_(self) -> Tensor:
        """The hyperbolic sine."""

    def slice_scatter(self, src: Tensor, dim: _builtins.int = 0, start: _builtins.int | None = None, end: _builtins.int | None = None, step: _builtins.int = 1, *, out: Tensor | None = None) -> Tensor:
        """A copy of x in which src stands at start:end:step of a dimension."""

    def slogdet(self, *, out: Tensor | None = None) -> Any:
        """(sign, logabsdet) with det = sign e^logabsdet; see linalg.slogdet."""

    def softmax(self, dim: _builtins.int | None = None, dtype: Any = None, *, axis: _builtins.int | None = None, out: Tensor | None = None) -> Tensor:
        """e^x / sum e^x along dim; `dtype`: cast x first."""

    def solve(self, A: Any, *, out: Any = None) -> Any:
        """Removed: linalg.solve, whose arguments go the other way round. Raises RuntimeError."""

    def sort(self, dim: _builtins.int = -1, descending: _builtins.bool = False, *, stable: _builtins.bool = False, out: Tensor | None = None) -> Any:
        """(values, indices) in ascending order along dim, or in descending order; equal elements keep their order, whatever `stable` says."""

    def sparse_dim(self) -> _builtins.int:
        """0: no dimension is sparse."""

    def split(self, split_size_or_sections: Any, dim: _builtins.int = 0) -> tuple[Tensor, ...]:
        """Parts of a size (the last may be smaller), or of the sizes listed."""

    def split_with_sizes(self, split_sizes: Any, dim: _builtins.int = 0) -> tuple[Tensor, ...]:
        """Parts of the sizes listed."""

    def sqrt(self, *, out: Tensor | None = None) -> Tensor:
        """The square root, correctly rounded; NaN below 0."""

    def sqrt_(self) -> Tensor:
        """The square root, correctly rounded; NaN below 0."""

    def square(self, *, out: Tensor | None = None) -> Tensor:
        """x * x; whole numbers of bools."""

    def square_(self) -> Tensor:
        """x * x; whole numbers of bools."""

    def squeeze(self, dim: Any = None) -> Tensor:
        """Without dimensions of size 1: all of them, or those named (others stay)."""

    def squeeze_(self, *args: Any, **kwargs: Any) -> Tensor:
        """squeeze, in place: the memory stays, this tensor's shape changes."""

    def std(self, dim: Any = None, unbiased: _builtins.bool | None = None, keepdim: _builtins.bool = False, *, correction: _builtins.float | None = None, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _builtins.bool | None = None, out: Tensor | None = None) -> Tensor:
        """Standard deviation over dims: the square root of `var`, with gradient 0 where it is 0."""

    def std_mean(self, dim: Any = None, unbiased: _builtins.bool | None = None, keepdim: _builtins.bool = False, *, correction: _builtins.float | None = None, axis: _builtins.int | Sequence[_builtins.int] | None = None) -> tuple[Tensor, Tensor]:
        """(standard deviation, mean) over dims."""

    def stft(self, n_fft: _builtins.int, hop_length: _builtins.int | None = None, win_length: _builtins.int | None = None, window: Tensor | None = None, center: _builtins.bool = True, pad_mode: _builtins.str = 'reflect', normalized: _builtins.bool = False, onesided: _builtins.bool | None = None, return_complex: _builtins.bool | None = None, align_to_window: _builtins.bool | None = None) -> Tensor:
        """Spectra of windows of a signal: (length) or (batch, length) to (batch, frequencies, windows), complex."""

    def storage(self) -> Any:
        """The memory that x lies in, in elements of x's type, for reading: nbytes(), data_ptr(), size()."""

    def storage_offset(self) -> _builtins.int:
        """Elements between the start of the memory that x is a view of and x's first element."""

    def sub(self, other: Any, *, alpha: _builtins.float = 1, out: Tensor | None = None) -> Tensor:
        """x - alpha * other."""

    def sub_(self, other: Any, *, alpha: _builtins.float = 1) -> Tensor:
        """x - alpha * other."""

    def subtract(self, other: Any, *, alpha: _builtins.float = 1, out: Tensor | None = None) -> Tensor:
        """x - alpha * other."""

    def subtract_(self, other: Any, *, alpha: _builtins.float = 1) -> Tensor:
        """x - alpha * other."""

    def sum(self, dim: _builtins.int | Sequence[_builtins.int] | None = None, keepdim: _builtins.bool = False, *, dtype: Any = None, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _builtins.bool | None = None, out: Tensor | None = None) -> Tensor:
        """Sum over dims. Integers and bools give int64, unless dtype says another type; 16-bit floats accumulate in float32."""

    def sum_to_size(self, *size: Any) -> Tensor:
        """x summed to a shape that broadcasts to its own: the reverse of expand; x itself where nothing is summed."""

    def svd(self, some: _builtins.bool = True, compute_uv: _builtins.bool = True, *, out: Tensor | None = None) -> Any:
        """(U, S, V) with x = U diag(S) V^H, V and not V^H; U and V have all columns unless `some`, and are zero unless `compute_uv`."""

    def swapaxes(self, *dims: Any, dim0: _builtins.int | None = None, dim1: _builtins.int | None = None) -> Tensor:
        """Two dimensions exchanged: `x.transpose(0, 1)`. Also numpy's forms: a permutation as one sequence, or nothing to reverse all."""

    def swapaxes_(self, *args: Any, **kwargs: Any) -> Tensor:
        """transpose, in place: the memory stays, this tensor's shape changes."""

    def swapdims(self, *dims: Any, dim0: _builtins.int | None = None, dim1: _builtins.int | None = None) -> Tensor:
        """Two dimensions exchanged: `x.transpose(0, 1)`. Also numpy's forms: a permutation as one sequence, or nothing to reverse all."""

    def swapdims_(self, *args: Any, **kwargs: Any) -> Tensor:
        """transpose, in place: the memory stays, this tensor's shape changes."""

    def symeig(self, eigenvectors: _builtins.bool = False, upper: _builtins.bool = True, *, out: Any = None) -> Any:
        """Removed: linalg.eigh, which reads the lower triangle unless UPLO="U". Raises RuntimeError."""

    def t(self) -> Tensor:
        """The transpose of a matrix; a view of all of x with fewer dimensions."""

    def t_(self, *args: Any, **kwargs: Any) -> Tensor:
        """t, in place: the memory stays, this tensor's shape changes."""

    def take(self, index: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Elements of the flattened tensor, in index's shape; negative indices count from the end."""

    def take_along_axis(self, indices: Tensor, axis: _builtins.int | None = -1) -> Tensor:
        """numpy's name for take_along_dim, and numpy's default: the last axis."""

    def take_along_dim(self, indices: Tensor, dim: _builtins.int | None = None, *, out: Tensor | None = None) -> Tensor:
        """gather with broadcasting: x and indices stretch to each other outside `dim`, where negative ones count from the end."""

    def tan(self, *, out: Tensor | None = None) -> Tensor:
        """The tangent of x in radians."""

    def tan_(self) -> Tensor:
        """The tangent of x in radians."""

    def tanh(self, *, out: Tensor | None = None) -> Tensor:
        """The hyperbolic tangent."""

    def tanh_(self) -> Tensor:
        """The hyperbolic tangent."""

    def tensor_split(self, indices_or_sections: Any, dim: _builtins.int = 0) -> tuple[Tensor, ...]:
        """So many parts (sizes differ by one at most), or the parts between the indices listed."""

    def tile(self, *dims: Any) -> Tensor:
        """numpy's repeat: `dims` may be shorter than x's shape."""

    def to(self, *args: Any, device: Any = None, dtype: Any = None, non_blocking: _builtins.bool = False, copy: _builtins.bool = False, memory_format: Any = None) -> Tensor:
        """x on another device and/or as another dtype: `x.to("cuda")`, `x.to(float16)`, `x.to(other)`; itself when nothing changes."""

    def to_dense(self, dtype: Any = None, *, masked_grad: _builtins.bool | None = None) -> Tensor:
        """The tensor itself, which is dense, or cast to dtype."""

    def topk(self, k: _builtins.int, dim: _builtins.int = -1, largest: _builtins.bool = True, sorted: _builtins.bool = True, *, out: Tensor | None = None) -> Any:
        """(values, indices) of the k largest elements along dim, or the k smallest; always in order, whatever `sorted` says."""

    def trace(self) -> Tensor:
        """The sum of a matrix's diagonal; int64 of integers. Raises ShapeError for what is no matrix, DTypeError for bools."""

    def transpose(self, *dims: Any, dim0: _builtins.int | None = None, dim1: _builtins.int | None = None) -> Tensor:
        """Two dimensions exchanged: `x.transpose(0, 1)`. Also numpy's forms: a permutation as one sequence, or nothing to reverse all."""

    def transpose_(self, *args: Any, **kwargs: Any) -> Tensor:
        """transpose, in place: the memory stays, this tensor's shape changes."""

    def triangular_solve(self, A: Tensor, upper: _builtins.bool = True, transpose: _builtins.bool = False, unitriangular: _builtins.bool = False, *, out: Tensor | None = None) -> Any:
        """(solution, cloned_coefficient): X with T X = b, T a triangle of A, T^T in its place if `transpose`; and a copy of A."""

    def tril(self, diagonal: _builtins.int = 0, *, out: Tensor | None = None) -> Tensor:
        """The lower triangle of the last two dimensions, zeros elsewhere."""

    def tril_(self, diagonal: _builtins.int = 0) -> Tensor:
        """The lower triangle of the last two dimensions, zeros elsewhere."""

    def triu(self, diagonal: _builtins.int = 0, *, out: Tensor | None = None) -> Tensor:
        """The upper triangle of the last two dimensions, zeros elsewhere."""

    def triu_(self, diagonal: _builtins.int = 0) -> Tensor:
        """The upper triangle of the last two dimensions, zeros elsewhere."""

    def true_divide(self, other: Any, *, rounding_mode: _builtins.str | None = None, out: Tensor | None = None) -> Tensor:
        """x / other."""

    def true_divide_(self, other: Any, *, rounding_mode: _builtins.str | None = None) -> Tensor:
        """x / other."""

    def trunc(self, *, out: Tensor | None = None) -> Tensor:
        """x without its fraction. Integers come back copied. Raises DTypeError for complex numbers."""

    def trunc_(self) -> Tensor:
        """x without its fraction. Integers come back copied. Raises DTypeError for complex numbers."""

    def type(self, dtype: Any = None, non_blocking: _builtins.bool = False) -> Any:
        """The name of x's type and device, `tritensor.cuda.FloatTensor`; or, given a type (a dtype, a typed class, such a name), x as that."""

    def type_as(self, other: Tensor) -> Tensor:
        """x as other's dtype, on its device."""

    def unbind(self, dim: _builtins.int = 0) -> tuple[Tensor, ...]:
        """All slices along a dimension."""

    def unflatten(self, dim: _builtins.int, sizes: Any) -> Tensor:
        """Dimension `dim` split into `sizes`, one of which may be -1."""

    def unfold(self, dimension: _builtins.int, size: _builtins.int, step: _builtins.int) -> Tensor:
        """All windows of `size` elements along a dimension, `step` apart, in a new last dimension."""

    def uniform_(self, a: _builtins.float = 0.0, b: _builtins.float = 1.0, *, generator: Generator | None = None) -> Tensor:
        """Overwrite x with uniform numbers of [a, b)."""

    def unique(self, sorted: _builtins.bool = True, return_inverse: _builtins.bool = False, return_counts: _builtins.bool = False, dim: _builtins.int | None = None) -> Any:
        """The distinct elements, or the distinct slices along dim, in ascending order whatever `sorted` says. Each NaN is one of its own."""

    def unique_consecutive(self, return_inverse: _builtins.bool = False, return_counts: _builtins.bool = False, dim: _builtins.int | None = None) -> Any:
        """The first of every run of equal elements (of equal slices along dim), in order. NaN equals nothing."""

    def unsafe_chunk(self, chunks: _builtins.int, dim: _builtins.int = 0) -> tuple[Tensor, ...]:
        """chunk, whose parts may each be written in place in the graph."""

    def unsafe_split(self, split_size: Any, dim: _builtins.int = 0) -> tuple[Tensor, ...]:
        """split, whose parts may each be written in place in the graph."""

    def unsafe_split_with_sizes(self, split_sizes: Any, dim: _builtins.int = 0) -> tuple[Tensor, ...]:
        """split_with_sizes, whose parts may each be written in place in the graph."""

    def unsqueeze(self, dim: _builtins.int) -> Tensor:
        """With a new dimension of size 1 at `dim`."""

    def unsqueeze_(self, *args: Any, **kwargs: Any) -> Tensor:
        """unsqueeze, in place: the memory stays, this tensor's shape changes."""

    def untyped_storage(self) -> Any:
        """The memory that x lies in, in bytes, for reading: nbytes(), data_ptr(), size()."""

    def var(self, dim: Any = None, unbiased: _builtins.bool | None = None, keepdim: _builtins.bool = False, *, correction: _builtins.float | None = None, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _builtins.bool | None = None, out: Tensor | None = None) -> Tensor:
        """Variance over dims, sum((x - mean)^2) / max(0, n - correction); correction is 1 unless given (unbiased=False: 0)."""

    def var_mean(self, dim: Any = None, unbiased: _builtins.bool | None = None, keepdim: _builtins.bool = False, *, correction: _builtins.float | None = None, axis: _builtins.int | Sequence[_builtins.int] | None = None) -> tuple[Tensor, Tensor]:
        """(variance, mean) over dims."""

    def vdot(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """dot of two vectors, the first conjugated."""

    def view(self, *shape: Any) -> Tensor:
        """x's memory in another shape, one size may be -1: `x.view(-1, 8)`. `x.view(dtype)` reads the bytes as another type,"""

    def view_as(self, other: Tensor) -> Tensor:
        """x.view(other.shape)."""

    def view_as_complex(self) -> Tensor:
        """Pairs (..., 2) of float32 or float64 as complex numbers (...), a view. Raises ShapeError where the strides allow none."""

    def view_as_real(self) -> Tensor:
        """Complex numbers (...) as pairs of real ones (..., 2), a view."""

    def vsplit(self, indices_or_sections: Any) -> tuple[Tensor, ...]:
        """Parts along dim 0."""

    def where(self, condition: Tensor, other: Any) -> Tensor:
        """self where condition holds, else other."""

    def xlogy(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """x * log(other), 0 where x is 0 and other no NaN; integers give floats. One of them may be a number."""

    def xlogy_(self, other: Any) -> Tensor:
        """x * log(other), 0 where x is 0 and other no NaN; integers give floats. One of them may be a number."""

    def zero_(self) -> Tensor:
        """Write zeros; returns x."""
