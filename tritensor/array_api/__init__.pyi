# Written by `python -m tritensor.tools.stubs`; edit the functions themselves.
import builtins as _builtins
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tritensor.random import Generator
from tritensor.tensor.core import Tensor
from tritensor.tensor.size import Size

def abs(x: Tensor, /) -> Tensor:
    """The absolute value; of complex numbers the modulus."""

def acos(x: Tensor, /) -> Tensor:
    """The inverse cosine."""

def acosh(x: Tensor, /) -> Tensor:
    """The inverse hyperbolic cosine."""

def add(x1: Any, x2: Any, /) -> Tensor:
    """x1 + x2."""

def all(x: Tensor, /, *, axis: _builtins.int | tuple[_builtins.int, ...] | None = None, keepdims: _builtins.bool = False) -> Tensor:
    """Whether all along axes are true; bool, where PyTorch's of uint8 is uint8."""

def any(x: Tensor, /, *, axis: _builtins.int | tuple[_builtins.int, ...] | None = None, keepdims: _builtins.bool = False) -> Tensor:
    """Whether one along axes is true; bool, where PyTorch's of uint8 is uint8."""

def arange(start: _builtins.int | _builtins.float, /, stop: _builtins.int | _builtins.float | None = None, step: _builtins.int | _builtins.float = 1, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Numbers from start (0 where stop is not given) up to but not including stop; none where the step leads away from it."""

def argmax(x: Tensor, /, *, axis: _builtins.int | None = None, keepdims: _builtins.bool = False) -> Tensor:
    """The position of the first largest along an axis; of x flattened for None."""

def argmin(x: Tensor, /, *, axis: _builtins.int | None = None, keepdims: _builtins.bool = False) -> Tensor:
    """The position of the first smallest along an axis; of x flattened for None."""

def argsort(x: Tensor, /, *, axis: _builtins.int = -1, descending: _builtins.bool = False, stable: _builtins.bool = True) -> Tensor:
    """The positions that put x in order along an axis."""

def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: _builtins.bool | None = None) -> Tensor:
    """An array of a number, nested sequences (of numbers or arrays), an array, or an object with a buffer or DLPack."""

def asin(x: Tensor, /) -> Tensor:
    """The inverse sine."""

def asinh(x: Tensor, /) -> Tensor:
    """The inverse hyperbolic sine."""

def astype(x: Tensor, dtype: Any, /, *, copy: _builtins.bool = True, device: Any = None) -> Tensor:
    """x in another type: a copy, unless copy=False and it has the type already. Raises DTypeError for complex numbers made real."""

def atan(x: Tensor, /) -> Tensor:
    """The inverse tangent."""

def atan2(x1: Any, x2: Any, /) -> Tensor:
    """The angle of the point (x2, x1), in [-pi, pi]."""

def atanh(x: Tensor, /) -> Tensor:
    """The inverse hyperbolic tangent."""

bfloat16: Any

def bitwise_and(x1: Any, x2: Any, /) -> Tensor:
    """Bits set in both."""

def bitwise_invert(x: Tensor, /) -> Tensor:
    """Every bit flipped."""

def bitwise_left_shift(x1: Any, x2: Any, /) -> Tensor:
    """Bits shifted up by x2."""

def bitwise_or(x1: Any, x2: Any, /) -> Tensor:
    """Bits set in one or both."""

def bitwise_right_shift(x1: Any, x2: Any, /) -> Tensor:
    """Bits shifted down by x2."""

def bitwise_xor(x1: Any, x2: Any, /) -> Tensor:
    """Bits set in one only."""

bool: Any

def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """Arrays as views of their common shape."""

def broadcast_to(x: Tensor, /, shape: tuple[_builtins.int, ...]) -> Tensor:
    """x as a view of a shape that it broadcasts to."""

def can_cast(from_: Any, to: Any, /) -> _builtins.bool:
    """Whether promotion leads from one type to the other."""

def ceil(x: Tensor, /) -> Tensor:
    """The smallest whole number not below x."""

def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """x, but at least min and at most max (arrays that broadcast, numbers, or None), in x's type."""

complex128: Any

complex64: Any

def concat(arrays: Sequence[Tensor], /, *, axis: _builtins.int | None = 0) -> Tensor:
    """Arrays one after another along an axis; flattened for None."""

def conj(x: Tensor, /) -> Tensor:
    """The complex conjugate."""

def copysign(x1: Any, x2: Any, /) -> Tensor:
    """The size of x1 with the sign of x2."""

def cos(x: Tensor, /) -> Tensor:
    """The cosine of x in radians."""

def cosh(x: Tensor, /) -> Tensor:
    """The hyperbolic cosine."""

def count_nonzero(x: Tensor, /, *, axis: _builtins.int | tuple[_builtins.int, ...] | None = None, keepdims: _builtins.bool = False) -> Tensor:
    """How many along axes are not 0."""

def cumulative_prod(x: Tensor, /, *, axis: _builtins.int | None = None, dtype: Any = None, include_initial: _builtins.bool = False) -> Tensor:
    """Running products along an axis, which a vector need not name; with include_initial a 1 stands first."""

def cumulative_sum(x: Tensor, /, *, axis: _builtins.int | None = None, dtype: Any = None, include_initial: _builtins.bool = False) -> Tensor:
    """Running sums along an axis, which a vector need not name; with include_initial a 0 stands first."""

def diff(x: Tensor, /, *, axis: _builtins.int = -1, n: _builtins.int = 1, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor:
    """The n-th differences of neighbours along an axis, with values put before and after."""

def divide(x1: Any, x2: Any, /) -> Tensor:
    """x1 / x2."""

e: Any

def empty(shape: _builtins.int | tuple[_builtins.int, ...], *, dtype: Any = None, device: Any = None) -> Tensor:
    """Uninitialised memory of a shape."""

def empty_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Uninitialised memory of x's shape and type."""

def equal(x1: Any, x2: Any, /) -> Tensor:
    """Whether x1 == x2."""

def exp(x: Tensor, /) -> Tensor:
    """e to the power x."""

def expand_dims(x: Tensor, /, axis: _builtins.int) -> Tensor:
    """x with an axis of size 1 at a place. Raises IndexError for one beyond x's axes."""

def expm1(x: Tensor, /) -> Tensor:
    """exp(x) - 1, accurate near 0; of complex infinities as exp has them."""

def eye(n_rows: _builtins.int, n_cols: _builtins.int | None = None, /, *, k: _builtins.int = 0, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones on the k-th diagonal, zeros elsewhere."""

def finfo(type: Any, /) -> Any:
    """Limits of a floating type, or of a complex type's parts. Raises DTypeError for others."""

def flip(x: Tensor, /, *, axis: _builtins.int | tuple[_builtins.int, ...] | None = None) -> Tensor:
    """x backwards along axes, all of them for None."""

float16: Any

float32: Any

float64: Any

def floor(x: Tensor, /) -> Tensor:
    """The largest whole number not above x."""

def floor_divide(x1: Any, x2: Any, /) -> Tensor:
    """floor(x1 / x2), of infinities too, which PyTorch makes NaN or -1 of."""

def from_dlpack(x: Any, /, *, device: Any = None, copy: _builtins.bool | None = None) -> Tensor:
    """An array on another library's memory, through DLPack; a copy where copy=True or another device asks for one."""

def full(shape: _builtins.int | tuple[_builtins.int, ...], fill_value: _builtins.bool | _builtins.int | _builtins.float | _builtins.complex, *, dtype: Any = None, device: Any = None) -> Tensor:
    """One value in a shape; without dtype bool, int64 or the default floating or complex type, as the value is."""

def full_like(x: Tensor, /, fill_value: _builtins.bool | _builtins.int | _builtins.float | _builtins.complex, *, dtype: Any = None, device: Any = None) -> Tensor:
    """One value in x's shape and type."""

def greater(x1: Any, x2: Any, /) -> Tensor:
    """Whether x1 > x2."""

def greater_equal(x1: Any, x2: Any, /) -> Tensor:
    """Whether x1 >= x2."""

def hypot(x1: Any, x2: Any, /) -> Tensor:
    """The square root of x1^2 + x2^2."""

def iinfo(type: Any, /) -> Any:
    """Limits of an integer type. Raises DTypeError for others."""

def imag(x: Tensor, /) -> Tensor:
    """The imaginary part; zeros for real numbers."""

inf: Any

int16: Any

int32: Any

int64: Any

int8: Any

def isdtype(dtype: Any, kind: Any) -> _builtins.bool:
    """Whether a type is of a kind: a type, a word such as "integral" or "real floating", or one of several."""

def isfinite(x: Tensor, /) -> Tensor:
    """Whether x is neither infinite nor NaN."""

def isinf(x: Tensor, /) -> Tensor:
    """Whether x is infinite."""

def isnan(x: Tensor, /) -> Tensor:
    """Whether x is NaN."""

def less(x1: Any, x2: Any, /) -> Tensor:
    """Whether x1 < x2."""

def less_equal(x1: Any, x2: Any, /) -> Tensor:
    """Whether x1 <= x2."""

def linspace(start: _builtins.int | _builtins.float | _builtins.complex, stop: _builtins.int | _builtins.float | _builtins.complex, /, num: _builtins.int, *, dtype: Any = None, device: Any = None, endpoint: _builtins.bool = True) -> Tensor:
    """`num` numbers at equal distances from start to stop, without stop where endpoint=False."""

def log(x: Tensor, /) -> Tensor:
    """The natural logarithm."""

def log10(x: Tensor, /) -> Tensor:
    """The logarithm to base 10."""

def log1p(x: Tensor, /) -> Tensor:
    """log(1 + x), accurate near 0."""

def log2(x: Tensor, /) -> Tensor:
    """The logarithm to base 2."""

def logaddexp(x1: Any, x2: Any, /) -> Tensor:
    """log(exp(x1) + exp(x2))."""

def logical_and(x1: Any, x2: Any, /) -> Tensor:
    """Whether both are true."""

def logical_not(x: Tensor, /) -> Tensor:
    """Whether x is false."""

def logical_or(x1: Any, x2: Any, /) -> Tensor:
    """Whether one or both are true."""

def logical_xor(x1: Any, x2: Any, /) -> Tensor:
    """Whether exactly one is true."""

def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The matrix product; a vector is a row on the left and a column on the right."""

def matrix_transpose(x: Tensor, /) -> Tensor:
    """Matrices with rows for columns. Raises ValueError for fewer than two axes."""

def max(x: Tensor, /, *, axis: _builtins.int | tuple[_builtins.int, ...] | None = None, keepdims: _builtins.bool = False) -> Tensor:
    """The largest along axes, NaN where one is. Raises ValueError where there is no element."""

def maximum(x1: Any, x2: Any, /) -> Tensor:
    """The larger one, NaN where either is."""

def mean(x: Tensor, /, *, axis: _builtins.int | tuple[_builtins.int, ...] | None = None, keepdims: _builtins.bool = False) -> Tensor:
    """The mean along axes."""

def meshgrid(*arrays: Tensor, indexing: _builtins.str = 'xy') -> list[Tensor]:
    """Coordinates of a grid: an array for each vector, over all of them; "xy" has the first along columns."""

def min(x: Tensor, /, *, axis: _builtins.int | tuple[_builtins.int, ...] | None = None, keepdims: _builtins.bool = False) -> Tensor:
    """The smallest along axes, NaN where one is. Raises ValueError where there is no element."""

def minimum(x1: Any, x2: Any, /) -> Tensor:
    """The smaller one, NaN where either is."""

def moveaxis(x: Tensor, source: _builtins.int | tuple[_builtins.int, ...], destination: _builtins.int | tuple[_builtins.int, ...], /) -> Tensor:
    """x with axes at other places; the rest keep their order."""

def multiply(x1: Any, x2: Any, /) -> Tensor:
    """x1 * x2."""

nan: Any

def negative(x: Tensor, /) -> Tensor:
    """-x."""

newaxis: Any

def nextafter(x1: Any, x2: Any, /) -> Tensor:
    """The next number after x1 towards x2."""

def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """Where x is not 0: a vector of positions per axis. Raises ValueError for an array without axes."""

def not_equal(x1: Any, x2: Any, /) -> Tensor:
    """Whether x1 != x2."""

def ones(shape: _builtins.int | tuple[_builtins.int, ...], *, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones of a shape."""

def ones_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones of x's shape and type."""

def permute_dims(x: Tensor, /, axes: tuple[_builtins.int, ...]) -> Tensor:
    """x with its axes in another order."""

pi: Any

def positive(x: Tensor, /) -> Tensor:
    """x."""

def pow(x1: Any, x2: Any, /) -> Tensor:
    """x1 to the power x2."""

def prod(x: Tensor, /, *, axis: _builtins.int | tuple[_builtins.int, ...] | None = None, dtype: Any = None, keepdims: _builtins.bool = False) -> Tensor:
    """The product along axes."""

def real(x: Tensor, /) -> Tensor:
    """The real part."""

def reciprocal(x: Tensor, /) -> Tensor:
    """1 / x."""

def remainder(x1: Any, x2: Any, /) -> Tensor:
    """x1 - floor(x1 / x2) * x2, which has the sign of x2, where it is 0 too."""

def repeat(x: Tensor, repeats: _builtins.int | Tensor, /, *, axis: _builtins.int | None = None) -> Tensor:
    """Each element several times along an axis; of x flattened for None."""

def reshape(x: Tensor, /, shape: tuple[_builtins.int, ...], *, copy: _builtins.bool | None = None) -> Tensor:
    """x in another shape, a view where it can be. Raises ValueError where copy=False and it cannot."""

def result_type(*arrays_and_dtypes: Any) -> Any:
    """The type that arrays, types and numbers promote to. Raises ValueError where neither an array nor a type is given."""

def roll(x: Tensor, /, shift: _builtins.int | tuple[_builtins.int, ...], *, axis: _builtins.int | tuple[_builtins.int, ...] | None = None) -> Tensor:
    """Elements moved along axes, round the end; along x flattened for None."""

def round(x: Tensor, /) -> Tensor:
    """The nearest whole number, halves to the even neighbour; of complex numbers both parts."""

def searchsorted(x1: Tensor, x2: Tensor, /, *, side: _builtins.str = 'left', sorter: Tensor | None = None) -> Tensor:
    """Where in the sorted vector x1 (sorted by `sorter`, where given) each of x2 would go: before its equals, or after them ("right")."""

def sign(x: Tensor, /) -> Tensor:
    """1, 0 or -1 by the sign of x; x / |x| for complex numbers, and NaN for NaN."""

def signbit(x: Tensor, /) -> Tensor:
    """Whether the sign bit is set, that of -0 and of NaN too."""

def sin(x: Tensor, /) -> Tensor:
    """The sine of x in radians."""

def sinh(x: Tensor, /) -> Tensor:
    """The hyperbolic sine."""

def sort(x: Tensor, /, *, axis: _builtins.int = -1, descending: _builtins.bool = False, stable: _builtins.bool = True) -> Tensor:
    """x in order along an axis, equal ones in theirs."""

def sqrt(x: Tensor, /) -> Tensor:
    """The square root."""

def square(x: Tensor, /) -> Tensor:
    """x * x."""

def squeeze(x: Tensor, /, axis: _builtins.int | tuple[_builtins.int, ...]) -> Tensor:
    """x without axes of size 1. Raises ValueError for an axis of another size."""

def stack(arrays: Sequence[Tensor], /, *, axis: _builtins.int = 0) -> Tensor:
    """Arrays of one shape along a new axis."""

def std(x: Tensor, /, *, axis: _builtins.int | tuple[_builtins.int, ...] | None = None, correction: _builtins.int | _builtins.float = 0.0, keepdims: _builtins.bool = False) -> Tensor:
    """The standard deviation along axes, over n - correction."""

def subtract(x1: Any, x2: Any, /) -> Tensor:
    """x1 - x2."""

def sum(x: Tensor, /, *, axis: _builtins.int | tuple[_builtins.int, ...] | None = None, dtype: Any = None, keepdims: _builtins.bool = False) -> Tensor:
    """The sum along axes."""

def take(x: Tensor, indices: Tensor, /, *, axis: _builtins.int | None = None) -> Tensor:
    """The slices of x at indices along an axis, which a vector need not name."""

def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: _builtins.int = -1) -> Tensor:
    """The elements at indices along an axis, which differ from line to line."""

def tan(x: Tensor, /) -> Tensor:
    """The tangent of x in radians."""

def tanh(x: Tensor, /) -> Tensor:
    """The hyperbolic tangent."""

def tensordot(x1: Tensor, x2: Tensor, /, *, axes: _builtins.int | tuple[Sequence[_builtins.int], Sequence[_builtins.int]] = 2) -> Tensor:
    """Sums of products over axes: so many last ones of x1 with first ones of x2, or those named."""

def tile(x: Tensor, repetitions: tuple[_builtins.int, ...], /) -> Tensor:
    """x as a tile, laid so many times along each axis."""

def tril(x: Tensor, /, *, k: _builtins.int = 0) -> Tensor:
    """The part of matrices on and below the k-th diagonal, zeros above."""

def triu(x: Tensor, /, *, k: _builtins.int = 0) -> Tensor:
    """The part of matrices on and above the k-th diagonal, zeros below."""

def trunc(x: Tensor, /) -> Tensor:
    """x without its fraction."""

uint16: Any

uint32: Any

uint64: Any

uint8: Any

def unique_all(x: Tensor, /) -> Any:
    """The distinct elements of x in order, every NaN by itself: values, first positions in x flattened, inverse, counts."""

def unique_counts(x: Tensor, /) -> Any:
    """The distinct elements of x in order, every NaN by itself, and their counts."""

def unique_inverse(x: Tensor, /) -> Any:
    """The distinct elements of x in order, every NaN by itself, and which of them each element of x is."""

def unique_values(x: Tensor, /) -> Tensor:
    """The distinct elements of x in order, every NaN by itself."""

def unstack(x: Tensor, /, *, axis: _builtins.int = 0) -> tuple[Tensor, ...]:
    """The slices along an axis."""

def var(x: Tensor, /, *, axis: _builtins.int | tuple[_builtins.int, ...] | None = None, correction: _builtins.int | _builtins.float = 0.0, keepdims: _builtins.bool = False) -> Tensor:
    """The variance along axes, over n - correction."""

def vecdot(x1: Tensor, x2: Tensor, /, *, axis: _builtins.int = -1) -> Tensor:
    """Sums of conj(x1) * x2 along an axis counted from the end. Raises ValueError where its sizes differ."""

def where(condition: Tensor, x1: Any, x2: Any, /) -> Tensor:
    """x1 where the condition holds, else x2."""

def zeros(shape: _builtins.int | tuple[_builtins.int, ...], *, dtype: Any = None, device: Any = None) -> Tensor:
    """Zeros of a shape."""

def zeros_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Zeros of x's shape and type."""

from tritensor.array_api import fft as fft
from tritensor.array_api import linalg as linalg
