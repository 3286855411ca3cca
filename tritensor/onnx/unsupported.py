"""Ops that ONNX cannot express, each with the reason and a substitute."""

from __future__ import annotations

from tritensor.onnx.registry import unsupported

unsupported("it clips gradients, which an exported model has none of", "norm_of_all", "scale_all")
unsupported(
    "a graph of ONNX works on whole tensors and knows no chunks; export F.cross_entropy of F.linear",
    "linear_cross_entropy",
)
unsupported(
    "running statistics are written in place, and a graph of ONNX writes nothing; call .eval() before the export",
    "follow_statistics",
)
unsupported(
    "it overwrites its input; the trace notes index_put in its place",
    "index_assign",
)
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
