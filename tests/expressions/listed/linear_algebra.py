"""Factorizations, systems, spectra, powers and norms of matrices, under the names of linalg and the older ones."""

from __future__ import annotations

import re

_P = "(m @ m.mT + T.eye(3, dtype=m.dtype, device=on))"  # positive definite
_Q = "(b @ b.mT + T.eye(3, dtype=b.dtype, device=on))"  # a batch of them
_S = "T.linalg"
_ONE = (
    "cholesky", "cholesky_solve", "cholesky_inverse", "inv", "inverse", "solve", "solve_triangular", "lu_solve", "ldl_solve", "householder_product", "orgqr",
    "ormqr", "matrix_power", "svd", "eigh", "lstsq", "tensorinv",
)  # fmt: skip
_SEVERAL = (
    "cholesky_ex",
    "lu_factor",
    "lu_factor_ex",
    "inv_ex",
    "qr",
    "geqrf",
    "solve_ex",
    "triangular_solve",
    "lu",
    "ldl_factor",
    "ldl_factor_ex",
)


def _in_order(e: str) -> str:
    """An expression in C order: PyTorch gives LAPACK's columns, this library rows (docs/differences.md)."""
    found = re.match(r"(?:T\.linalg\.|T\.|[a-z]\.)(\w+)\(", e)
    name = found[1] if found else "cholesky" if e.endswith(".cholesky()") else ""
    return f"({e}).contiguous()" if name in _ONE else f"[p.contiguous() for p in {e}]" if name in _SEVERAL else e


_ASKED = [
    *[f"{_S}.cholesky({a})" for a in (_P, _Q, f"{_P}, upper=True", "x", "x.half()", "i", "-m @ m.mT", "v")],
    *[f"{_S}.cholesky_ex({a})" for a in (_P, f"{_P}, upper=True, check_errors=True")], f"T.cholesky({_P})", f"T.cholesky({_P}, upper=True)", f"{_P}.cholesky()",
    f"T.cholesky_solve(m, T.linalg.cholesky({_P}))", f"m.cholesky_solve(T.linalg.cholesky({_P}), upper=False)", f"T.cholesky_inverse(T.linalg.cholesky({_P}))",
    f"T.cholesky_inverse(T.linalg.cholesky({_P}).mT, upper=True)", "T.cholesky_solve(x, m)",
    *[f"{_S}.{f}(m)" for f in ("inv", "det", "slogdet", "svdvals", "lu", "lu_factor", "lu_factor_ex", "inv_ex", "pinv", "matrix_exp", "matrix_rank", "cond", "norm", "matrix_norm", "vector_norm", "diagonal", "qr", "vander")],
    *[f"{_S}.{f}(x)" for f in ("inv", "det", "slogdet", "svdvals", "lu", "lu_factor", "pinv", "matrix_exp", "matrix_rank", "norm", "matrix_norm", "vector_norm", "diagonal", "qr", "vander", "cond")],
    *[f"{_S}.{f}(i)" for f in ("inv", "det", "svdvals", "lu", "pinv", "matrix_exp", "matrix_rank", "norm", "matrix_norm", "vector_norm", "diagonal", "qr", "vander", "cond", "eigvals", "eigvalsh")],
    *[f"m.{f}()" for f in ("det", "slogdet", "logdet", "inverse", "pinverse", "matrix_exp", "trace", "qr")], "T.inverse(m)", "T.det(m)", "T.slogdet(m)", "T.logdet(m)", "T.pinverse(x)", "T.pinverse(x, rcond=0.5)",
    "T.logdet(-m)", "T.det(b)", "T.det(v)", "T.matrix_exp(m)", "T.inverse(T.zeros(2, 2, device=on))", "T.linalg.inv(T.zeros(2, 2, device=on))", "T.linalg.solve(T.zeros(2, 2, device=on), T.ones(2, device=on))",
    *[f"T.matrix_power(m, {n})" for n in (0, 1, 2, 5, -1, -2)], "T.matrix_power(x, 2)", "m.matrix_power(3)", "T.linalg.matrix_power(m, 2)", "T.linalg.matrix_power(m, 0.5)", "T.trace(m)", "T.trace(x)", "T.trace(i)", "T.trace(v)", "T.trace(k)",
    *[f"{_S}.solve({a})" for a in ("m, m", "m, v", "m, x, left=False", "m, v, left=False", "m, x", "m, f[0]", "b[:, :, :2], v[:2]", "b[:, :, :2], b")], "T.linalg.solve_ex(m, m)", "T.linalg.solve_ex(m, v, check_errors=True)",
    *[f"{_S}.solve_triangular({a})" for a in ("m, m, upper=True", "m, m, upper=False", "m, x, upper=True, left=False", "m, m, upper=True, unitriangular=True", "m, x, upper=True", "m, m")],
    *[f"T.triangular_solve({a})" for a in ("m, m", "m, m, upper=False", "m, m, transpose=True", "m, m, unitriangular=True")], "m.triangular_solve(m)",
    *[f"{_S}.lu({a})" for a in ("b", "m, pivot=False")], "T.lu(m)", "T.lu(m, get_infos=True)", "m.lu()", "T.lu_unpack(*T.linalg.lu_factor(m))",
    "T.lu_unpack(*T.linalg.lu_factor(m), unpack_pivots=False)", "T.linalg.lu_solve(*T.linalg.lu_factor(m), m)", "T.linalg.lu_solve(*T.linalg.lu_factor(m), m, adjoint=True)",
    "T.linalg.lu_solve(*T.linalg.lu_factor(m), x, left=False)", "T.lu_solve(m, *T.linalg.lu_factor(m))", "m.lu_solve(*T.linalg.lu_factor(m))", "T.linalg.lu_factor(T.zeros(2, 2, device=on))",
    "T.linalg.ldl_factor((m + m.mT).detach())", "T.linalg.ldl_factor_ex((m + m.mT).detach(), hermitian=True)", "T.linalg.ldl_solve(*T.linalg.ldl_factor((m + m.mT).detach()), m.detach())",
    *[f"{_S}.qr({a})" for a in ("m, 'complete'", "m, mode='r'", "m, 'x'", "b")], "T.qr(m)", "T.qr(x, some=False)", "T.geqrf(x.detach())", "T.linalg.householder_product(*T.geqrf(m.detach()))", "T.orgqr(*T.geqrf(m.detach()))",
    "T.ormqr(*T.geqrf(m.detach()), m)", "T.ormqr(*T.geqrf(m.detach()), x, left=False)", "T.ormqr(*T.geqrf(m.detach()), m, transpose=True)", "m.ormqr(v, m)", "m.orgqr(v)",
    *[f"{_S}.svd({a}).S" for a in ("m", "x", "x, full_matrices=False", "b", "m, driver='gesvd'")], *[f"{_S}.svd({a}).Vh.abs()" for a in ("m", "x, False")], "T.svd(x).V.abs()", "x.svd(some=False)[0].abs()", "T.svd(x, compute_uv=False).U", "T.linalg.svdvals(b)",
    *[f"{_S}.eigh({a}).eigenvalues" for a in ("m", "m, 'U'", "m, UPLO='X'")], "T.linalg.eigh(m)[1].abs()", "T.linalg.eigvalsh(m)", "T.linalg.eigvalsh(m, 'U')",
    *[f"{_S}.lstsq({a}).solution" for a in ("m, m", "x, x", "x.mT, m[:, :1]", "x.mT, v", "x.mT, m, driver='gels'")], "T.linalg.lstsq(x.mT, m, driver='gelsd').residuals", "T.linalg.lstsq(x.mT, m, driver='gelsd').rank", "T.linalg.lstsq(x.mT, m, driver='gelss').singular_values", "T.linalg.lstsq(m, x)",
    *[f"{_S}.pinv({a})" for a in ("x, rtol=0.5", "x, atol=0.1", "m + m.mT, hermitian=True", "x, 0.5", "b", "x, atol=T.zeros(1, dtype=T.float64, device=on)", "x, hermitian=True")], *[f"{_S}.matrix_rank({a})" for a in ("x, atol=1.0", "x, rtol=0.5", "m + m.mT, hermitian=True", "x, 1.0", "b")],
    *[f"{_S}.cond(m, {p})" for p in ("None", "2", "-2", "'fro'", "'nuc'", "1", "-1", "float('inf')", "'x'")], *[f"{_S}.matrix_norm(x, {p})" for p in ("'fro'", "'nuc'", "1", "-1", "2", "-2", "float('inf')", "-float('inf')", "3", "'x'")],
    *[f"{_S}.matrix_norm({a})" for a in ("b, dim=(0, 1)", "b, 'nuc', (0, 2), True", "b, 1, keepdim=True", "v", "x, dtype=T.float32", "f, dtype=T.float64", "x, dim=(0, 0)")],
    *[f"{_S}.vector_norm(x, {a})" for a in ("1", "0", "3", "0.5", "-1", "float('inf')", "2, 1", "3, (0, 1), True", "dim=0, keepdim=True", "'fro'", "dtype=T.float32")], "T.linalg.vector_norm(f, dtype=T.float64)", "T.linalg.vector_norm(T.zeros(0, device=on), float('inf'))",
    *[f"{_S}.norm({a})" for a in ("v, 1", "x, 'nuc'", "x, 1", "x, 2, 1", "b", "b, 2", "b, 'fro', (0, 1)", "x, dim=0", "x, 3, 0, True", "f, dtype=T.float64")],
    *[f"{_S}.cross({a})" for a in ("x, y", "x, y, dim=1", "x, y, dim=0", "m, m, dim=0", "v, x", "x, f")], "T.cross(m, m)", "T.cross(x, y, 1)", "T.cross(x, y, dim=0)", "m.cross(m, dim=1)", "T.linalg.vecdot(x, y)", "T.linalg.vecdot(x, y, dim=0)", "T.linalg.vecdot(x, v)", "T.linalg.vecdot(i, i)",
    "T.linalg.multi_dot([x, m, v])", "T.linalg.multi_dot([x, m, m])", "T.linalg.multi_dot([x])", "T.linalg.multi_dot([x, x])", "T.linalg.matmul(x, m)", "T.linalg.vander(v, N=2)", "T.linalg.vander(x, N=4)", "T.linalg.vander(x, 4)", "T.linalg.vander(v, N=1)", "T.linalg.diagonal(b, offset=1)", "T.linalg.diagonal(b, dim1=0, dim2=1)",
    "T.linalg.tensorinv(m.reshape(3, 3, 1), 1)", "T.linalg.tensorinv(x)", "T.linalg.tensorsolve(m, v)", "T.linalg.tensorsolve(m.reshape(3, 1, 3), v.reshape(3, 1))", "T.linalg.tensorsolve(m, v, dims=(0,))",
    "tuple(p.shape for p in T.svd_lowrank(m, 2))", "tuple(p.shape for p in T.svd_lowrank(x, 5))", "tuple(p.shape for p in T.pca_lowrank(m))", "T.linalg.inv(m.half())", "T.addmm(i, i @ i.t(), i, alpha=1.6)", "T.addmm(i, i @ i.t(), i, beta=float('nan'))", "T.addmm(i, i @ i.t(), i, beta=3 + 0j)", "T.addmm(m, m, m, alpha=3 + 0j)", "T.addmv(i[0].to(T.uint8), (i.t() @ i).to(T.uint8), i[0].to(T.uint8), alpha=-1)", "T.addmv(i[0], i.t() @ i, i[0], beta=1.5)", "T.addr(i.t() @ i, i[0], i[0], alpha=0.5)", "T.addr(k[:, :2], k[0, :2], k[0, 1:], beta=0)",
    "T.addmm(b, m, m)",
]  # fmt: skip
_STORED = ["T.linalg.inv(m)", "T.linalg.cholesky(m @ m.mT)", "T.linalg.solve(m, m)"]
_UNPACKED = "T.lu_unpack(*T.linalg.lu_factor(m), unpack_data=False)"
EXPRESSIONS = [*map(_in_order, _ASKED), *_STORED, _UNPACKED]
# What is otherwise than in PyTorch on purpose: why
MEANT = {
    **dict.fromkeys(_STORED, "results lie in C order, as those of all other functions do"),
    _UNPACKED: "P, and tensors without elements, follow no gradient",
}
