"""Table of translations from tritensor's ops to ONNX, and of reasons why an op has none, each with a substitute."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from tritensor.ops.table import registry as ops

Translation = Callable[..., Any]

_builtin: dict[str, Translation] = {}
_registered: dict[str, Translation] = {}  # of packages and programs, which go first
_reasons: dict[str, str] = {}


def translates(name: str, **fixed: Any) -> Callable[[Translation], Translation]:
    """Enter a translation of ours under the name of an op; `fixed` are arguments by which it differs from another op's of the same function."""

    def enter(f: Translation) -> Translation:
        _builtin[name] = partial(f, **fixed) if fixed else f
        return f

    return enter


def unsupported(reason: str, *names: str) -> None:
    """Enter why ops have no translation."""
    for name in names:
        _reasons[name] = reason


def register(op_name: str) -> Callable[[Translation], Translation]:
    """Say how an op is written in ONNX: `@tt.onnx.register("my_op")` over a function (g, *inputs, **attrs) that gives the output, or several.

    `g` is the graph, to which `g.op("Add", a, b)` appends a node. Inputs are values with `.shape` and `.dtype`, Python numbers, or None for one that was
    left out; `attrs` are those of the op. A translation of ours with the same name is replaced. Raises TypeError for a name that is no string.
    """
    if not isinstance(op_name, str):
        raise TypeError(f"onnx.register: the op's name is a {type(op_name).__name__}; give a string, as in @onnx.register('my_op')")

    def enter(f: Translation) -> Translation:
        if not callable(f):
            raise TypeError(f"onnx.register: {op_name!r} is translated by a {type(f).__name__}; give a function of (g, *inputs, **attrs)")
        _registered[op_name] = f
        return f

    return enter


def translation(name: str, custom: Mapping[str, Translation] | None = None) -> Translation | None:
    """How an op is written, or None."""
    return (custom or {}).get(name) or _registered.get(name) or _builtin.get(name)


def reason(name: str) -> str:
    """Why an op has no translation, and what could serve."""
    if name not in _reasons and name in ops and ops[name].mutates:
        return "it writes in place, as a step of an optimizer does, and a graph of ONNX writes nothing; export the model without its training step"
    return _reasons.get(name, f'nothing says how it is written in ONNX; say it with @tritensor.onnx.register("{name}")')


def list_ops() -> dict[str, str]:
    """Every op of the table: "translated", or the reason why it is not. The pseudo-op of views that are written is left out."""
    return {name: "translated" if name in _builtin else reason(name) for name in sorted(ops.everything())}


unsupported("it clips gradients, which an exported model has none of", "norm_of_all", "scale_all")
unsupported("a graph of ONNX works on whole tensors and knows no chunks; export F.cross_entropy of F.linear", "linear_cross_entropy")
unsupported(
    "running statistics are written in place, and a graph of ONNX writes nothing; call .eval() before the export", "follow_statistics"
)
unsupported("it overwrites its input; the trace notes index_put in its place", "index_assign")
unsupported(
    "ONNX's operators take no complex numbers; keep real and imaginary parts in tensors of their own (view_as_real), outside of the exported part",
    "conj", "real", "imag", "view_as_real", "view_as_complex", "complex", "fft_c2c", "fft_r2c", "fft_of_real", "fft_c2r",
)  # fmt: skip
unsupported(
    "ONNX has no factorization or solution of linear systems; compute it before the exported part, or as a custom operator of the runtime",
    "cholesky", "cholesky_solve", "cofactors", "slogdet", "eigh", "eigvalsh", "eig", "eigvals", "matrix_exp", "ldl_factor", "ldl_solve", "lu_factor",
    "pivots_to_matrix", "pivots_to_order", "qr", "geqrf", "svd", "svdvals", "pinv", "solve", "inv", "solve_triangular",
)  # fmt: skip
unsupported(
    "ONNX has no such special function; register a polynomial or a custom operator of the runtime for it",
    "airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "spherical_bessel_j0", "erfcx", "ndtri", "log_ndtr", "lgamma", "digamma",
    "trigamma", "zeta", "i0", "i0e", "i1", "i1e", "modified_bessel_k0", "modified_bessel_k1", "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1", "igamma", "igammac", "standard_gamma_grad", "dirichlet_grad",
)  # fmt: skip
unsupported(
    "its degree is a tensor, and ONNX has no recurrence of that length; write the polynomial of the degree that you need",
    *[f"{kind}_polynomial_{letter}" for kind in ("chebyshev", "shifted_chebyshev") for letter in "tuvw"],
    "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p",
)  # fmt: skip
unsupported("a trace notes attention in its place; its dropout is drawn anew in each call", "flash_attention")
unsupported("it looks at the bits of floating point numbers, which ONNX does not show", "nextafter", "frexp")
unsupported("Euclid's algorithm is a loop as long as the numbers ask for; ONNX has no operator for it", "gcd", "lcm")
unsupported(
    "it is the gradient of another op, which exported models do not compute",
    "conv1d_weight", "conv2d_weight", "conv3d_weight", "avg_pool2d_spread", "avg_pool3d_spread", "edge_pad_adjoint", "resample_adjoint",
    "linear_scan",
)  # fmt: skip
unsupported("the number of its steps depends on the lengths of the sequences; compute the loss outside of the exported part", "ctc_loss")
unsupported(
    "it counts equal neighbours or bins for histograms; compute them outside of the exported part",
    "run_lengths",
    "uniform_bins",
    "bin_numbers",
)
