"""torch.return_types: what functions of several results return, by the name of the function."""

from __future__ import annotations

from typing import Any

from tritensor.tensor.functions.factorizations import results
from tritensor.tensor.functions.pointwise.floats import frexp_result
from tritensor.tensor.functions.reductions.reductions import MinMax, ValuesIndices
from tritensor.tensor.functions.reductions.statistics import Histogram, HistogramDD
from tritensor.tensor.return_types import return_type

KINDS: dict[str, type[tuple[Any, ...]]] = {
    **dict.fromkeys(("cummax", "cummin", "kthvalue", "max", "median", "min", "mode", "nanmedian", "sort", "topk"), ValuesIndices),
    "aminmax": MinMax, "frexp": frexp_result, "histogram": Histogram, "histogramdd": HistogramDD,
    "geqrf": results.Reflectors, "lu_unpack": results.PLU, "qr": results.QR, "slogdet": results.SignLog, "svd": results.OldSVD,
    "triangular_solve": results.TriangularSolve,
    "linalg_cholesky_ex": results.CholeskyEx, "linalg_eig": results.Eigen, "linalg_eigh": results.Eigen, "linalg_inv_ex": results.InverseEx,
    "linalg_ldl_factor": results.LDLFactor, "linalg_ldl_factor_ex": results.LDLFactorEx, "linalg_lstsq": results.LeastSquares, "linalg_lu": results.PLU,
    "linalg_lu_factor": results.LUFactor, "linalg_lu_factor_ex": results.LUFactorEx, "linalg_qr": results.QR, "linalg_slogdet": results.SignLog,
    "linalg_solve_ex": results.SolveEx, "linalg_svd": results.SVD,
}  # fmt: skip
__all__ = [*KINDS]
# The classes that the functions give, so that pickle finds them here.
globals().update((name, return_type(name, kind)) for name, kind in KINDS.items())
