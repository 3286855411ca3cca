"""The Python array API standard, version 2024.12, on tritensor's tensors: the standard's names and meaning over the same ops.

`x.__array_namespace__()` returns this module. Where PyTorch and the standard disagree, `tritensor.<name>` is PyTorch's and
`tritensor.array_api.<name>` the standard's: an array without dimensions counts in type promotion as any other, `sum` of small integers
is int64 or uint64, `squeeze` refuses an axis that is not 1, `var` divides by n. Operators on tensors (`x + y`) keep PyTorch's meaning.
"""

from math import e as e
from math import inf as inf
from math import nan as nan
from math import pi as pi

from tritensor.array_api import creation as _creation
from tritensor.array_api import data_types as _data_types
from tritensor.array_api import elementwise as _elementwise
from tritensor.array_api import fft as fft
from tritensor.array_api import linalg as linalg
from tritensor.array_api import manipulation as _manipulation
from tritensor.array_api import searching as _searching
from tritensor.array_api import statistical as _statistical
from tritensor.array_api.inspection import __array_namespace_info__ as __array_namespace_info__
from tritensor.array_api.linalg import matmul as matmul
from tritensor.array_api.linalg import tensordot as tensordot
from tritensor.array_api.linalg import vecdot as vecdot
from tritensor.ground import dtypes as _dtypes

__array_api_version__ = "2024.12"
newaxis = None

_ROOMS = (_creation, _data_types, _elementwise, _manipulation, _searching, _statistical)
globals().update({n: getattr(room, n) for room in _ROOMS for n in room.__all__})
_TYPES = (*_data_types.NAMES, "bfloat16", "float16")  # the standard's, and two more that tensors have
globals().update({n: _dtypes.as_dtype(n) for n in _TYPES})

__all__ = sorted([
    *(n for room in _ROOMS for n in room.__all__), *_TYPES, "__array_api_version__", "__array_namespace_info__", "e", "fft", "inf",
    "linalg", "matmul", "nan", "newaxis", "pi", "tensordot", "vecdot",
])  # fmt: skip
