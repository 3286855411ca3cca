"""Which file of this folder registers which ops. Written by `python -m tritensor.tools.op_index`; a test holds it to be true."""

MODULES = {
    "complex_numbers.parts": "complex conj imag real view_as_complex view_as_real",
    "convolution.conv2d.op": "conv2d conv2d_input conv2d_weight",
    "creation.numbers": "arange eye full linspace tril triu",
    "elementwise.activations": "elu gelu leaky_relu relu sigmoid silu softplus",
    "elementwise.arithmetic": "abs add div lerp mul neg reciprocal rsqrt sqrt square sub",
    "elementwise.comparison": (
        "bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor eq ge gt isfinite isinf isnan le "
        "logical_and logical_not logical_or logical_xor lt ne"
    ),
    "elementwise.copy": "cast copy",
    "elementwise.powers": "floor_divide fmod pow remainder trunc_divide",
    "elementwise.replacement": "nan_to_num",
    "elementwise.rounding": "ceil floor round sign trunc",
    "elementwise.selection": "clamp maximum minimum where",
    "elementwise.transcendental": (
        "acos acosh asin asinh atan atan2 atanh cos cosh erf erfc exp exp2 expm1 hypot log log10 log1p log2 logaddexp logit "
        "one_minus_square real_angle sin sinh tan tanh xlogy"
    ),
    "factorizations.cholesky": "cholesky cholesky_solve",
    "factorizations.determinants": "cofactors det slogdet",
    "factorizations.eigenvalues": "eig eigh eigvals eigvalsh",
    "factorizations.exponential": "matrix_exp",
    "factorizations.ldl": "ldl_factor ldl_solve",
    "factorizations.lu": "lu_factor pivots_to_matrix pivots_to_order",
    "factorizations.qr": "geqrf qr",
    "factorizations.singular_values": "pinv svd svdvals",
    "factorizations.solve": "inv solve",
    "factorizations.triangular": "solve_triangular",
    "images.adaptive_max": "adaptive_max_pool",
    "images.constant_padding": "constant_pad",
    "images.edge_padding": "edge_pad edge_pad_adjoint",
    "images.grid_sampling.op": "grid_sample",
    "images.patches": "col2im im2col",
    "images.resampling": "resample resample_adjoint",
    "indexing.embedding": "embedding",
    "indexing.gathering": "gather scatter scatter_add",
    "indexing.index": "index_assign index_get index_put",
    "indexing.scatter_reduction": "scatter_reduce",
    "losses.cross_entropy.op": "cross_entropy",
    "losses.mse": "mse_loss",
    "normalization.layer_norm": "layer_norm",
    "normalization.softmax": "log_softmax softmax",
    "optimizers.adam_count": "adam_count",
    "optimizers.steps": "adam_step sgd_step",
    "pooling.average_pooling": "avg_pool2d avg_pool2d_spread",
    "pooling.max_pooling": "max_pool2d max_pool2d_gather max_pool2d_scatter",
    "products.linear": "linear",
    "products.matmul": "matmul",
    "random.dropout": "dropout",
    "random.sampling": "rand randint randn randperm",
    "reductions.cumprod": "cumprod",
    "reductions.cumulative_extrema": "cummax cummin",
    "reductions.distances": "cdist",
    "reductions.extrema": "all amax amin any argmax argmin max_dim min_dim",
    "reductions.histograms": "bin_numbers count_keys uniform_bins",
    "reductions.linear_scan": "linear_scan",
    "reductions.logcumsumexp": "logcumsumexp",
    "reductions.scan": "cumsum",
    "reductions.sums": "mean prod sum sum_of_squares var",
    "shaping.joining": "cat stack",
    "shaping.reordering": "flip roll",
    "shaping.view_gradients": "pad_diagonal pad_view",
    "shaping.views": "as_strided diagonal expand index_view permute reshape unfold",
    "sorting.positions": "nonzero_static",
    "sorting.ranks": "rank_place",
    "sorting.search": "run_lengths searchsorted",
    "sorting.sort": "argsort sort sort_values topk",
    "special.bessel": (
        "airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 i0 i0e i1 i1e modified_bessel_k0 modified_bessel_k1 "
        "scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0"
    ),
    "special.error": "entr erfcx erfinv log_ndtr logaddexp2 ndtr ndtri sinc xlog1py",
    "special.floats": "copysign fmax fmin frexp nextafter signbit",
    "special.gamma": "digamma lgamma trigamma zeta",
    "special.incomplete_gamma": "igamma igammac",
    "special.integers": "gcd lcm",
    "special.polynomials": (
        "chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w hermite_polynomial_h "
        "hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p shifted_chebyshev_polynomial_t "
        "shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w"
    ),
    "spectral.fourier": "fft_c2c fft_c2r fft_of_real fft_r2c",
    "spectral.overlap_add": "overlap_add",
}
