"""numpy's BLAS: its number of threads, and its products with integers of 64 bits. This file loads no compiler."""

from __future__ import annotations

import ctypes
import functools
import os
import re
from typing import Any, NamedTuple

import numpy as np

from tritensor.ground.process.late_imports import loading

# The names under which BLAS libraries set and tell their number of threads, and those of products with integers of 64 bits, where they have such;
# numpy's wheels bring the first.
_THREADS = (
    ("scipy_openblas_set_num_threads64_", "scipy_openblas_get_num_threads64_", "scipy_{}gemm_64_"),
    ("openblas_set_num_threads64_", "openblas_get_num_threads64_", "{}gemm_64_"),
    ("openblas_set_num_threads", "openblas_get_num_threads", ""),
    ("MKL_Set_Num_Threads", "MKL_Get_Max_Threads", ""),
)


class Blas(NamedTuple):
    """The BLAS that numpy has loaded: what sets and tells its number of threads, and its products with integers of 64 bits, {type: function}."""

    set: Any
    get: Any
    products: dict[np.dtype, Any]


@functools.cache
def blas() -> Blas | None:
    """numpy's BLAS, None where it is not one that can be asked."""
    lines = []
    if os.path.exists("/proc/self/maps"):
        with loading("BLAS"), open("/proc/self/maps") as maps:
            lines = maps.read().splitlines()
    # off the map of this process: numpy does not say which library it has loaded
    for path in sorted({found[1] for line in lines if (found := re.search(r" (/.*(?:blas|mkl_rt)[^/]*\.so[^/ ]*)$", line))}):
        library = ctypes.CDLL(path)
        for setter, getter, product in _THREADS:
            if hasattr(library, setter) and hasattr(library, getter):
                names = {np.dtype(kind): product.format(letter) for kind, letter in ((np.float32, "s"), (np.float64, "d"))}
                products = {kind: getattr(library, name) for kind, name in names.items() if product and hasattr(library, name)}
                return Blas(getattr(library, setter), getattr(library, getter), products)
    return None
